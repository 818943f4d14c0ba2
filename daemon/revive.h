/* What the last router has left, made into objects again: the way back from family.h. */
#pragma once

#include "list.h"

struct router;

/* Read the ledgers of families, so that it is known which workspaces are theirs. */
void families_read(struct router *router);
/* Whether a family works in @path. */
bool families_use(const struct router *router, const char *path);
/* Make them, now that there are settings to compare theirs with, and nurseries. */
void families_revive(struct router *router);
