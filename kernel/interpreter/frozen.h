/* Whether a frozen copy would be the same as this process, and how much memory a frozen one holds. */
#pragma once

#include "proto/base.h"

/* Why a frozen copy of this process would not be faithful: a sentence, valid until the next call; NULL if it would
 * be. */
const char *why_no_checkpoint(void);

/* Bytes that only this process holds; 0 if the host does not tell. */
uint64_t freeze_memory(void);
