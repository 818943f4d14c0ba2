/* What the last router has left, made into objects again: the way back from family.h. */
#pragma once

#include "family.h"

/* Read the ledgers of families, so that it is known which workspaces are theirs. */
void families_read(struct families *families);
/* Whether a family works in @path. */
bool families_use(const struct families *families, const char *path);
/* Make them, now that there are settings to compare theirs with, and nurseries. @settle: the round, after
 * each. */
void families_revive(struct families *families, void (*settle)(struct families *families));
