/* What a profile says of the functions that clients offer. */
#pragma once

#include "config.h"

enum function_ruling {
	FUNCTION_DENIED,
	FUNCTION_ASKED_FOR, /* somebody has to approve each call */
	FUNCTION_ALLOWED,   /* as any */
	FUNCTION_NAMED,	    /* by a pattern of functions_allow */
};

/* The first pattern of functions_deny, functions_ask or functions_allow that the name matches rules; else
 * functions. */
enum function_ruling profile_ruling(const struct profile *profile, struct bytes name);
/* Whether there may be a function that is not denied. */
bool profile_lets_call(const struct profile *profile);

/* Whether the project @name, normalized, may be asked for. */
bool profile_lets_install(const struct profile *profile, struct bytes name);
