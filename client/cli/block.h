/* Finds the end of one input of a prompt. Only its words decide, since only the session could compile it. */
#pragma once

#include "proto/base.h"

#include "lair.h"

/* Whether @text, whole lines of Python, can be run, or waits for more: an open bracket or triple-quoted string, a
 * backslash at the end, or a block (a line that ended with a colon, a decorator, or a line that begins with %%)
 * that no empty line has ended. If it is @whole it was written elsewhere: a block that has begun has its lines, and
 * needs no empty one. */
bool block_complete(struct lair_text text, bool whole);

/* How far the next line of @text, which ends with a newline, is to be indented. */
unsigned block_indent(struct lair_text text);
