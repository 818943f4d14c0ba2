/* In place of base/log.c: the last line, and whether any of them told of a violation. */
#pragma once

#include "base/log.h"

extern char fake_log_last[512];
extern unsigned fake_log_violations;
/* Show them all: set LAIR_TEST_LOG in the environment. */
