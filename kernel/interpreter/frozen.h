/* Whether a fork would be the same as what it was forked from, and what a frozen one costs. */
#pragma once

#include "proto/base.h"

/* Why a frozen copy of this process could not be faithful: a sentence that lives until the next call; NULL if it
 * can be. */
const char *freeze_unfaithful(void);

/* Bytes that only this process holds; 0 where the host does not tell. */
uint64_t freeze_memory(void);
