/* Tell a template about the host's directories. */
#pragma once

#include "cages.h"

/* Add the elements of `places` of configure: the pinned directories that @profile names and that hold laird's own
 * files. Returns 0 or -ENOMEM. */
int places_put(struct wire_list *list, const struct profile *profile, const struct config *config);

/* Add those of `changeable`: all directories that some session may write to, now or with the settings in
 * force. Returns 0 or -ENOMEM. */
int places_put_changeable(struct wire_list *list, struct cages *cages);
