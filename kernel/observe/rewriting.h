/* What a frozen copy costs the process that goes on: whatever both have is copied when it is written to. */
#pragma once

#include "proto/base.h"

struct rewriting {
	uint64_t bytes, us; /* what was copied, and how long that took; 0: too little to matter */
};

/* Another process has the same memory from now on. */
void rewriting_begin(void);

/* A cell begins. */
void rewriting_cell(void);

/* What was copied since the last call, or since rewriting_begin. */
struct rewriting rewriting_so_far(void);
