/* The rows of all parts. */
#pragma once

#include "session/core/part.h"

extern const struct part done_calls_part, filing_part, saving_part, transfers_part, split_part, calls_part,
	installing_part, comparing_part, asking_part;

/* NULL after the last. */
extern const struct part *const session_parts[];
