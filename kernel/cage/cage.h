/* The cage: everything that the kernel is asked to refuse, in the one safe order. Each mechanism has a file
 * beside this one; cage.c is the list of steps.
 *
 * The template prepares once what is the same for every session of a profile (probes, the seccomp program, the
 * list of directories). Then each warden enters its cage. Interpreters are forks of the warden and inherit all
 * of it. */
#pragma once

#include "proto/message.h"

#include <sys/types.h>

#define CAGE_GUARDS_MAX 24
#define CAGE_STEPS_MAX 16
#define CAGE_GROUPS_MAX 3

struct cage; /* what a template prepared; lives as long as the template, inherited by its wardens */

struct cage_report {
	const char *level; /* how strong the cage is: a level of docs/SECURITY.md */
	const char *guards[CAGE_GUARDS_MAX];
	size_t n_guards;
	char reason[256];		    /* after a failure: what failed, with what, and why */
	uint64_t step_took[CAGE_STEPS_MAX]; /* by cage_clock() */
};

/* Add a guard to those that hold. @name is static. */
void cage_guard(struct cage_report *report, const char *name);

/* Nanoseconds. */
uint64_t cage_clock(void);
/* The name of step @i of cage_enter; NULL after the last. Static. */
const char *cage_step_name(size_t i);

/* In the template, once, after Python and the preload are loaded. @configure need not outlive the call.
 * @language_dirs: NULL-terminated absolute directories and files that hold Python and its packages (always
 * readable). Returns 0; or -errno with report->reason: this host cannot build the cage that the profile demands. */
int cage_prepare(struct cage **cagep, const struct configure_message *configure, char *const language_dirs[],
		 struct cage_report *report);

/* In the clone, before cage_enter: this session has the places, memory, home and directory of @warden in place of
 * the profile's. @configure: the profile, as far as its network and terminals. Returns as cage_prepare. */
int cage_differ(struct cage *cage, const struct warden_message *warden, const struct configure_message *configure,
		char *const language_dirs[], struct cage_report *report);

/* In the template, when it has loaded more since then. Returns 0 or -errno. */
int cage_prepare_again(struct cage *cage);

/* In the template: clone a warden into its new namespaces, as a child of the template's parent. Returns 0 in the
 * warden; in the template the warden's pid (and *pidfdp, -1 if the kernel has none), or -errno. The raw clone
 * leaves the state of libc unchanged; only the thread id is corrected. @uid: host uid and gid to run as;
 * as root it must not be 0, else it must be (-EPERM). @groups: doors to its control groups, ended by -1 (NULL:
 * none). For version 1 a door is the group's file `tasks`, for version 2 its directory. The doors must stay
 * open. */
pid_t cage_clone(struct cage *cage, uid_t uid, const int *groups, int *pidfdp);

/* In the warden, single-threaded, before any user code: the ordered steps. @keep: descriptors to leave open (NULL
 * for none, ended by -1); every other one above 2 is closed. Returns 0, or -errno with report->reason; then only
 * _exit is safe. Afterwards the working directory is the workspace. */
int cage_enter(struct cage *cage, const char *workspace, const int *keep, struct cage_report *report);

/* In the warden, after cage_enter: where the workspace is for the session. */
const char *cage_workspace(const struct cage *cage);
/* In the warden, after cage_enter: the session's own directory for temporary files, "" if the host gives none. */
const char *cage_scratch(const struct cage *cage);

/* To the directory in which interpreters start, if it is not the workspace. */
void cage_start_over(const struct cage *cage);

/* Whether modes and times of files can be set. */
bool cage_sets_looks(const struct cage *cage);
/* Whether the processes of the cage run as a host uid that nothing else has. */
bool cage_has_uid_alone(const struct cage *cage);
/* Whether the session may start programs. */
bool cage_starts_programs(const struct cage *cage);
/* Whether the session sees its threads, without which none can be copied. */
bool cage_shows_threads(const struct cage *cage);
/* Whether the session has terminals of its own. */
bool cage_has_terminals(const struct cage *cage);

/* In each interpreter after its fork, before user code: its process group, its umask, its death when its parent
 * dies. Without a pid namespace also a limit on its signals. Returns 0 or -errno. */
int cage_enter_interpreter(const struct cage *cage);
