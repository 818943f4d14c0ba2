/* A call in a few words, as pay(to="bob", amount=5), and the digest by which the same call is known again. Names
 * and arguments are hostile, but have been scanned as part of a frame. */
#pragma once

#include "proto/sha256.h"

#include "proto/wire.h"

#define CALL_TEXT_SIZE 256

/* Visible characters of UTF-8 and blanks; a long text is cut and ends with "...)". Returns @out. */
const char *call_text(char out[static CALL_TEXT_SIZE], struct bytes function, struct bytes arguments);

/* The same for the same function and arguments, in whatever order the keys of their maps are. Returns 0 or
 * -ENOMEM. */
int call_digest(uint8_t out[static SHA256_SIZE], struct bytes function, struct bytes arguments);

/* Whether all who read @arguments read the same, which is not so if text is no UTF-8 or a key is there twice: those
 * who show a call, and those who do it, could else see different arguments. They are a map whose keys are text; the
 * keys of maps inside are text or integers. */
bool call_arguments_plain(struct bytes arguments);
