/* How the files of two states differ, for somebody who reads it: created, changed, deleted, renamed. */
#pragma once

#include "files/manifest.h"

#include "proto/wire.h"

/* Append the first of them, as an array of file_difference. Returns 0 or -ENOMEM. */
int differences_put(struct wire_list *list, uint64_t *morep, const struct manifest *since,
		    const struct manifest *until);
