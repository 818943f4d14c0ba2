/* What an interpreter says when it crashes. */
#pragma once

#include "proto/base.h"

/* In the template, before Python starts. Returns false if this Python lacks what is needed: its own handler tells
 * crashes then. */
bool fatal_install(void);
