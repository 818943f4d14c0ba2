/* What the operator has told uv in files: copies for the builder's cage, which sees no home of anybody. */
#pragma once

#include "order.h"

/* Into the empty directory @home, for uv to find; they belong to @uid, 0: to us. Returns 0 or -errno. */
int config_copy(int home, uid_t uid);

/* What the cage has to show, ended by NULL: uv itself, Python, and what the environment names. Static. */
char *const *config_places(const struct order *order);
