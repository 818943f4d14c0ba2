/* Whether a frozen copy would be the same as this process, and how much memory a frozen one holds. */
#pragma once

#include "proto/base.h"

/* Why a frozen copy of this process could not be faithful: a sentence that lives until the next call; NULL if it
 * can be. */
const char *freeze_unfaithful(void);

/* Bytes that only this process holds; 0 where the host does not tell. */
uint64_t freeze_memory(void);
