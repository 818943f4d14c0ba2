/* Tell a template about the host's directories. */
#pragma once

#include "cages.h"

/* Append the array `places` of configure: the pinned directories that @profile names and that hold laird's own
 * files. Returns 0 or -ENOMEM. */
int places_put(msgpack_sbuffer *buffer, const struct profile *profile, const struct config *config);

/* Append the array `changeable`: all directories that some session may write to, now or with the settings in
 * force. Returns 0 or -ENOMEM. */
int places_put_changeable(msgpack_sbuffer *buffer, struct cages *cages);
