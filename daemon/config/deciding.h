/* Which setting decides where something is refused, cut or ended, and where it stands: for the operator, who can
 * change it. */
#pragma once

#include "proto/base.h"

#define DECIDING_SIZE 512
#define DECIDING_MAX 8

/* X(why, setting): the cause of a cell's or a session's end (proto/causes.h), or the reason of a refusal
 * (kernel/refusal/). Refused requests name their setting themselves: client_limit. */
#define DECIDING(X)                                                                                                \
	X("oom", "memory")                                                                                         \
	X("memory-limit", "memory")                                                                                \
	X("workspace", "workspace_size")                                                                           \
	X("timeout", "cell_timeout")                                                                               \
	X("forbidden", "forbid")                                                                                   \
	X("idle_ttl", "idle_ttl")                                                                                  \
	X("hard_ttl", "hard_ttl")                                                                                  \
	X("write-outside-workspace", "write")                                                                      \
	X("read-outside", "read")                                                                                  \
	X("hidden", "hide")                                                                                        \
	X("subprocess-not-granted", "subprocess")                                                                  \
	X("terminals-not-granted", "terminals")                                                                    \
	X("network-not-granted", "network")                                                                        \
	X("port-not-granted", "network")                                                                           \
	X("names-not-granted", "network")

/* X(error, text, setting): the error that ended a cell, if its value has the text. */
#define DECIDING_ERRORS(X)                                                                                         \
	X("MemoryError", "", "memory")                                                                             \
	X("OSError", "[Errno 24]", "open_files")                                                                   \
	X("OSError", "[Errno 27]", "file_size")                                                                    \
	X("OSError", "[Errno 28]", "scratch_size")                                                                 \
	X("BlockingIOError", "[Errno 11]", "processes")                                                            \
	X("RuntimeError", "can't start new thread", "processes")                                                   \
	X("FunctionError", "calls = ", "calls")                                                                    \
	X("FunctionError", "calls_at_once = ", "calls_at_once")                                                    \
	X("FunctionError", "call_size = ", "call_size")                                                            \
	X("PermissionError", ": the operator does not allow it", "functions_deny")                                 \
	X("PermissionError", ": packages are for the operator", "packages")                                        \
	X("PackageError", "packages_size", "packages_size")                                                        \
	X("PackageError", "packages_timeout", "packages_timeout")                                                  \
	X("PackageError", "packages_total", "packages_total")

/* X(text, settings): why no session of a profile starts. The first text in the reason counts. */
#define DECIDING_STARTS(X)                                                                                         \
	X("cannot preload", "preload")                                                                             \
	X("preloaded module", "preload")                                                                           \
	X("not ready in time", "preload")                                                                          \
	X("home = ", "home")                                                                                       \
	X("level", "level")                                                                                        \
	X("bin/python", "python")                                                                                  \
	X("/", "read, write")

/* Settings of one section. */
struct deciding {
	const char *settings[DECIDING_MAX]; /* static, each once */
	size_t n;
	bool shows; /* the session has a directory of its client's: whether it writes there, its client decides */
};

/* Adds the setting of @why, if there is one. */
void deciding_add(struct deciding *deciding, struct bytes why);
/* The same of an error. */
void deciding_add_error(struct deciding *deciding, struct bytes name, struct bytes value);
/* Of the reason why no session starts; NULL: not known. */
const char *deciding_start(const char *reason);
void deciding_add_setting(struct deciding *deciding, const char *setting);

/* "memory, network in [profile default] of /etc/lair/sessions.conf". @profile: NULL: that of the session is not
 * known. @file: NULL: for somebody who need not know it. Absent if there are no settings. */
struct bytes deciding_tell(char text[static DECIDING_SIZE], const struct deciding *deciding, const char *profile,
			   const char *file);
