/* What is different between the settings in force and those that follow. */
#pragma once

#include "config.h"

struct setting_delta {
	const char *kind;	    /* "changed", a setting; "added" or "removed", a profile */
	const char *profile;	    /* NULL: [daemon] */
	const char *setting;	    /* NULL: the whole profile */
	const char *before, *after; /* as sessions.conf has the value; NULL: of a whole profile */
	bool at_start;		    /* it counts when laird is started anew */
};

/* Call @fn with each difference, which is gone when @fn returns, until it returns another value than 0. Returns
 * that value, 0 or -ENOMEM. */
int config_compare(const struct config *before, const struct config *now,
		   int (*fn)(void *userdata, const struct setting_delta *delta), void *userdata);
