/* Why a cell or a session ended otherwise than by itself: each cause once, with all that is said of it. Python's
 * table is made from the rows (client/python/generate.py). A cause without a row is a death, such as "signal 9". */
#pragma once

#include "proto/base.h"

/* X(cause, exception, cell, session). exception: the name of the error where the code raised none; cell: what
 * happened to the code; session: why there is no session. NULL: not said. */
#define CAUSES(X)                                                                                                  \
	X("error", NULL, NULL, NULL)                                                                               \
	X("exit", "SystemExit", "the code exited", NULL)                                                           \
	X("interrupt", "KeyboardInterrupt", "the code was interrupted", NULL)                                      \
	X("timeout", "TimeoutError", "the code was stopped at its time limit", NULL)                               \
	X("oom", "MemoryError", "the code was killed: it used more memory than its session may have", NULL)        \
	X("workspace", "OSError", "the code was killed: its files outgrew the limit of its session", NULL)         \
	X("forbidden", "SyntaxError", "the code breaks a rule, which stderr names, and was not run", NULL)         \
	X("reset", "SessionReset", "the session was reset while the code ran", NULL)                               \
	X("shutdown", "SessionEnded", "the session was ended while the code ran", "it was shut down")              \
	X("idle_ttl", "SessionEnded", "the session was idle for too long", "it was idle for too long")             \
	X("hard_ttl", "SessionEnded", "the session reached the end of its time", "its time was over")              \
	X("stopped", "SessionEnded", NULL, "laird was stopped")                                                    \
	X("lost", "SessionEnded", NULL, "laird was killed, or the host went down")                                 \
	X("unknown", "SessionEnded", NULL, "nobody knows why")

struct cause {
	const char *name, *exception, *cell, *session;
};

/* NULL: it has no row. */
static inline const struct cause *cause_find(const char *name, size_t size)
{
#define CAUSE_ROW(name_, exception_, cell_, session_) {name_, exception_, cell_, session_},
	static const struct cause causes[] = {CAUSES(CAUSE_ROW)};
#undef CAUSE_ROW

	for (size_t i = 0; i < ARRAY_SIZE(causes); i++)
		if (strlen(causes[i].name) == size && !memcmp(causes[i].name, name, size))
			return &causes[i];
	return NULL;
}
