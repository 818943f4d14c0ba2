/* How a function is given on the command line. */
#pragma once

#include "proto/base.h"

#include <jansson.h>

/* NAME=COMMAND, or NAME(a: int, b: str = "x", c)=COMMAND. Types are str, int, float, bool, list, dict and any;
 * a default is JSON. Without brackets every argument is taken, by name. */
struct signature {
	char *name, *schema; /* owned; schema: JSON Schema of the arguments */
	json_t *defaults;    /* an object, owned */
	const char *command; /* in the text */
};

/* Returns 0; or -EINVAL with a sentence in @why, or -ENOMEM. */
int signature_parse(struct signature *signature, const char *text, char why[static 256]);
void signature_deinit(struct signature *signature);
