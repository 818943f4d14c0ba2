/* What a template is told of the host's directories. */
#pragma once

#include "cages.h"

/* Append the array `places` of configure: what @profile names and what holds laird's own files, as they are pinned.
 * Returns 0 or -ENOMEM. */
int places_put(msgpack_sbuffer *buffer, const struct profile *profile, const struct config *config);

/* Append the array `changeable`: whatever some session may write to, now or with the settings in force. Returns 0
 * or -ENOMEM. */
int places_put_changeable(msgpack_sbuffer *buffer, struct cages *cages);
