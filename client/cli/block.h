/* Finds the end of one input of a prompt. Only its words decide, since only the session could compile it. */
#pragma once

#include "proto/base.h"

#include "lair.h"

/* Whether @text, whole lines of Python, can be run. If not, it waits for more: for the end of a bracket or a
 * triple-quoted string, for the line after a backslash, or for the empty line that ends a block. A block begins
 * with a line that ends with a colon, with a decorator, or with a line that begins with %%. @whole: the text was
 * written elsewhere, so a block that has begun is complete, and needs no empty line. */
bool block_complete(struct lair_text text, bool whole);

/* How many blanks the line after @text, which ends with a newline, should begin with. */
unsigned block_indent(struct lair_text text);
