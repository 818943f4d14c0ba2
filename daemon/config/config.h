/* sessions.conf: one table has, for each key, its name, type, place, default, range and one line of meaning.
 * Parsing, checking, `laird -n` and the defaults come from this table. */
#pragma once

#include "proto/base.h"
#include "proto/paths.h"
#include "proto/pin.h"

#include <stdio.h>

/* Durations are kept in microseconds, sizes in bytes. 0 means "no limit" where the table allows it. */
struct string_list {
	char **items; /* NULL-terminated, owned */
	size_t n;
};

/* Directories of the host that a profile names, found when the settings were read. */
enum pinned_kind { PINNED_READ, PINNED_WRITE, PINNED_HIDE, PINNED_IMPORT, PINNED_DIRS, PINNED_PYTHON, _PINNED_N };

struct pinned {
	enum pinned_kind kind;
	const char *path; /* as the settings have it; borrowed from the profile */
	struct pin pin;
};

enum expiry_policy { EXPIRE_END, EXPIRE_SAVE };
enum workspace_policy { WORKSPACE_DELETE, WORKSPACE_KEEP };
enum functions_policy { FUNCTIONS_OFF, FUNCTIONS_ASK, FUNCTIONS_ON };
enum templates_policy { TEMPLATES_OFF, TEMPLATES_AUTO };
enum packages_policy { PACKAGES_OFF, PACKAGES_ASK, PACKAGES_ON };
enum call_log_policy { CALL_LOG_NAMES, CALL_LOG_ARGUMENTS };
enum forbid_policy { FORBID_CHECK, FORBID_EXEC };
enum files_policy { FILES_KEEP, FILES_RESTORE };
enum checkpoint_policy { CHECKPOINT_OFF, CHECKPOINT_CELL, CHECKPOINT_MANUAL };

struct profile {
	char *name;
	unsigned refs; /* sessions outlive a re-read of the file */

	/* who may open sessions with it: access.h */
	struct string_list users, groups;

	/* the interpreter */
	char *language;
	char *python; /* NULL: the distribution's */
	struct string_list preload;
	struct string_list env;
	uint64_t spares;

	/* time */
	uint64_t cell_timeout, cell_timeout_max, grace, idle_ttl, hard_ttl;

	/* answers that can be asked for again */
	uint64_t result_ttl, results, results_size;

	/* what outlives it */
	enum expiry_policy on_expire;
	uint64_t save_timeout, save_size, save_ttl;

	/* what it remembers */
	enum checkpoint_policy checkpoint;
	uint64_t checkpoints, checkpoint_memory;
	enum files_policy files;
	uint64_t checkpoint_files;

	/* what it may do */
	struct string_list read, write, hide, import, dirs;
	unsigned write_line;   /* where write stands, in the file */
	struct pinned *pinned; /* these and python */
	size_t n_pinned;
	char *network; /* "off", "host" or "tcp:PORT,..." */
	bool subprocess, terminals;
	char *level; /* NULL: the best there is */
	struct string_list forbid;
	enum forbid_policy forbid_in;

	/* what its cells may have their clients do: policy.h */
	enum functions_policy functions;
	struct string_list functions_deny, functions_ask, functions_allow;
	uint64_t calls, calls_at_once, call_size, call_timeout, hold_timeout;
	enum call_log_policy call_log;

	/* what may be installed for it while it runs: packages/ */
	enum packages_policy packages;
	struct string_list packages_allow, packages_deny;
	char *packages_newer; /* NULL: anything */
	uint64_t packages_size, packages_timeout;
	struct string_list requirements;
	enum templates_policy templates;

	/* what it may use */
	uint64_t memory, processes;
	uint64_t cpu;	  /* thousandths of a processor */
	uint64_t threads; /* 0: as many as cpu, rounded up; VALUE_ALL: the same, and without cpu all processors */
	uint64_t open_files, file_size, workspace_size, scratch_size;
	uint64_t queue, code_size, output_size, text_size;
	enum workspace_policy workspace;
	char *home;	 /* where sessions find their workspace; NULL: where it is */
	char *directory; /* where they start; NULL: in their workspace */
};

struct config {
	char *path; /* NULL: the embedded default */
	char *text; /* what was read */

	/* [daemon] */
	char *socket; /* NULL: path_default_socket */
	uint64_t socket_mode;
	char *socket_group;   /* NULL: laird's */
	char *workspaces;     /* NULL: chosen by the router, see workspace.h */
	char *saves;	      /* NULL: chosen as for workspaces */
	char *packages_store; /* NULL: chosen as for workspaces */
	uint64_t packages_total;
	char *uv; /* NULL: the one in PATH */
	bool template_images;
	char *log;	     /* "stderr" or a file */
	char *audit_log;     /* NULL: none */
	bool audit_code;     /* the code of cells is written into it */
	bool audit_required; /* without its line no cell runs */
	uint64_t sessions;
	uint64_t sessions_per_uid; /* 0: not given */
	uint64_t frame_size, results_per_uid, saves_per_uid;
	uint64_t stop_save; /* how long sessions are saved when laird stops */
	uint64_t connections_per_uid, router_memory, work_per_uid, template_ttl;
	uint64_t set_template_memory, set_template_ttl;
	uint64_t uid_first, uid_last; /* as root: a host uid per session; 0: see keeper/uids.h */

	struct profile **profiles; /* NULL-terminated, each with a reference */
	size_t n_profiles;

	struct pin *own; /* directories that hold laird's own files, see paths.h; none until config_pin_own */
	size_t n_own;
	struct pin sets; /* the packages that sessions see; PIN_NONE where no profile has any */
};

/* The file that is read if none is named; "" if there is none. Returns 0 or -ENAMETOOLONG. */
int config_usual(char path[static PATH_SIZE]);

struct config_error {
	char text[512]; /* "FILE:LINE: what was wrong, what was expected" */
};

/* Read @path, or the embedded default (the shipped sessions.conf) if NULL. Returns 0; -EINVAL with @error filled
 * in; or -errno of reading the file, also with @error. On failure *configp is untouched. */
int config_load(struct config **configp, const char *path, struct config_error *error);
/* The same from memory, for tests and the fuzzer; @name stands for the file in messages. */
int config_parse(struct config **configp, struct bytes text, const char *name, struct config_error *error);
/* The same for settings that were in force before. Their sessions go on even if the host has lost a directory
 * since. */
int config_parse_in_force(struct config **configp, struct bytes text, const char *name, struct config_error *error);

/* The text of the settings, for the next router: in a memory file, which is the caller's. Returns 0 or -errno. */
int config_leave(int *fdp, const struct config *config);
/* Read it back from there; @fd stays the caller's. Returns as config_load. */
int config_recall(struct config **configp, int fd, struct config_error *error);

struct config *config_free(struct config *config);

/* What messages call the file. Borrowed. */
const char *config_name(const struct config *config);

/* The text of the embedded default. */
struct bytes config_embedded(void);

/* Print every effective setting as a sessions.conf. */
void config_print(const struct config *config, FILE *out);

/* One profile, as a sessions.conf of its own. */
void profile_print(const struct profile *profile, FILE *out);

/* Borrowed; NULL if there is none. An empty name means "default". */
struct profile *config_profile(const struct config *config, struct bytes name);

struct profile *profile_ref(struct profile *profile);
/* The same settings: a reference to another profile, or NULL without memory. */
struct profile *profile_copy(const struct profile *profile);
/* The same settings, but nothing is preloaded and no spares are kept: a reference, or NULL without memory. */
struct profile *profile_bare(const struct profile *profile);
struct profile *profile_unref(struct profile *profile); /* NULL is fine; returns NULL */
