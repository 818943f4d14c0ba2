/* How a cell has ended, and all that a client tells of it beside its output: the words stand here and nowhere else.
 * Names of causes and fates are compared by their numbers (./dev lint). Python's tables are made from the rows
 * (client/python/generate.py). */
#pragma once

#include "proto/base.h"

/* X(id, name, news, exception, cell, measure, session): why a cell or a session ended otherwise than by itself.
 * news: people are told of it even if the session goes on; else the code tells it itself. exception: the name of
 * the error where the code raised none; cell: what happened to the code; measure: the same with its returncode or
 * limit; session: why there is no session. NULL: not told. */
#define CAUSES(X)                                                                                                  \
	X(ERROR, "error", false, NULL, NULL, NULL, NULL)                                                           \
	X(EXIT, "exit", false, "SystemExit", "the code exited", "the code exited with status %s", NULL)            \
	X(INTERRUPT, "interrupt", false, "KeyboardInterrupt", "the code was interrupted", NULL, NULL)              \
	X(TIMEOUT, "timeout", true, "TimeoutError", "the code was stopped at its time limit",                      \
	  "the code was stopped after its %s s", NULL)                                                             \
	X(OOM, "oom", true, "MemoryError", "the code was killed: it used more memory than its session may have",   \
	  NULL, NULL)                                                                                              \
	X(WORKSPACE, "workspace", true, "OSError",                                                                 \
	  "the code was killed: its files outgrew the limit of its session", NULL, NULL)                           \
	X(FORBIDDEN, "forbidden", false, "SyntaxError",                                                            \
	  "the code breaks a rule, which stderr names, and was not run", NULL, NULL)                               \
	X(RESET, "reset", true, "SessionReset", "the session was reset while the code ran", NULL, NULL)            \
	X(SHUTDOWN, "shutdown", true, "SessionEnded", "the session was ended while the code ran", NULL,            \
	  "it was shut down")                                                                                      \
	X(IDLE_TTL, "idle_ttl", true, "SessionEnded", "the session was idle for too long", NULL,                   \
	  "it was idle for too long")                                                                              \
	X(HARD_TTL, "hard_ttl", true, "SessionEnded", "the session reached the end of its time", NULL,             \
	  "its time was over")                                                                                     \
	X(STOPPED, "stopped", true, "SessionEnded", NULL, NULL, "laird was stopped")                               \
	X(LOST, "lost", true, "SessionEnded", NULL, NULL, "laird was killed, or the host went down")               \
	X(UNKNOWN, "unknown", true, "SessionEnded", NULL, NULL, "nobody knows why")

/* A cause without a row is a death, such as "signal 9". %s: its name. */
#define DEATH_EXCEPTION "SessionLost"
#define DEATH_CELL "the interpreter crashed or was killed: %s"
#define DEATH_SESSION "it was ended: %s"

/* X(id, name, goes_on, text): what became of the session. goes_on: it is as the cell left it; then only a model is
 * told, if the cell failed. %s: to which state, and what came back. */
#define FATES(X)                                                                                                   \
	X(KEPT, "kept", true, "the session goes on; what the code had done until then stays")                      \
	X(NEW, "new", true, "the session goes on; what the code had done until then stays")                        \
	X(ROLLED_BACK, "rolled_back", false, "the session was rolled back to %s: its %s are as they were then")    \
	X(RESET, "reset", false, "the session was reset: all its variables and imports are lost, its files stay")  \
	X(ENDED, "ended", false, "the session has ended, and its files are gone; to use its id makes a new one")

/* Behind the fate, if the session met it before this code ran. */
#define FATE_BEFORE "; that was before this code, which ran on what came back"
/* The fate of a session that goes on, if the code was not run. */
#define FATE_UNCHANGED "the session is as it was"

/* X(id, function, text): what must be told of a result, in this order. Each has a function in client/base/result.c
 * and in client/python/lair/notes.py, which is called with the text. */
#define NOTES(X)                                                                                                   \
	X(ENDED, ended, "the session is new: the one before has ended (%s), and its %s are gone%s")                \
	X(DAMAGED, damaged, "the variables do not come back: %s")                                                  \
	X(LOADED, loaded, "the session goes on from the state that was saved %s ago: %s")                          \
	X(BLOCKED, blocked, "blocked: %s")                                                                         \
	X(CAUSE, cause, "%s%s")                                                                                    \
	X(FATE, fate, "%s%s")                                                                                      \
	X(BACK, back, "files brought back: %s")                                                                    \
	X(STAY, stay, "files stay as they are: %s")                                                                \
	X(EFFECTS, effects, "not undone: %s")                                                                      \
	X(UNKEPT, unkept, "going back will not bring back %s")                                                     \
	X(UNFAITHFUL, unfaithful, "the state after cell %s is not kept: %s")                                       \
	X(STRAY, stray,                                                                                            \
	  "the first %s bytes of %s are of earlier code: a thread or task wrote them before this code began")      \
	X(DROPPED, dropped, "%s bytes of %s were not kept")                                                        \
	X(DISPLAYS, displays, "%s more things were shown than are kept")                                           \
	X(ARTIFACTS, artifacts, "more files were created or modified than are listed")

enum cause {
	CAUSE_NONE,
#define CAUSE_ID(id, ...) CAUSE_##id,
	CAUSES(CAUSE_ID)
#undef CAUSE_ID
		CAUSE_DEATH
};

enum fate {
#define FATE_ID(id, ...) FATE_##id,
	FATES(FATE_ID)
#undef FATE_ID
		N_FATES
};

enum note {
#define NOTE_ID(id, ...) NOTE_##id,
	NOTES(NOTE_ID)
#undef NOTE_ID
		N_NOTES
};

struct cause_row {
	const char *name;
	bool news;
	const char *exception, *cell, *measure, *session;
};

struct fate_row {
	const char *name;
	bool goes_on;
	const char *text;
};

extern const struct cause_row causes[]; /* by enum cause; CAUSE_NONE has no text, CAUSE_DEATH no name */
extern const struct fate_row fates[];

/* CAUSE_NONE: @name is NULL. CAUSE_DEATH: it has no row. */
enum cause cause_of(const char *name, size_t size);
static inline bool cause_is(const char *name, enum cause cause)
{
	return name && strcmp(name, causes[cause].name) == 0;
}

/* FATE_ENDED: it has no row. */
enum fate fate_of(const char *name, size_t size);

static inline bool fate_is(const char *name, enum fate fate)
{
	return name && strcmp(name, fates[fate].name) == 0;
}
