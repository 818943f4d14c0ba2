/* The table of settings. A new setting needs a member in config.h, a row here and lines in sessions.conf;
 * parsing, checking, defaults and `laird -n` follow from the row. */
#include "keys.h"

#include "config.h"

#define K (1ULL << 10)
#define M (1ULL << 20)
#define G (1ULL << 30)
#define T (1ULL << 40)
#define MILLISECOND 1000ULL
#define SECOND 1000000ULL
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

static const char *const levels[] = {"strong", "strong-nomem", "landlock", "uid", "readonly", "audit-only", NULL};
static const char *const expiry_policies[] = {[EXPIRE_END] = "end", [EXPIRE_SAVE] = "save", NULL};
static const char *const workspace_policies[] = {[WORKSPACE_DELETE] = "delete", [WORKSPACE_KEEP] = "keep", NULL};

_Static_assert(offsetof(struct config, uid_last) == offsetof(struct config, uid_first) + sizeof(uint64_t),
	       "VALUE_RANGE wants its two numbers side by side");
static const char *const function_policies[] = {
	[FUNCTIONS_OFF] = "off", [FUNCTIONS_ASK] = "ask", [FUNCTIONS_ON] = "on", NULL};
static const char *const templates_policies[] = {[TEMPLATES_OFF] = "off", [TEMPLATES_AUTO] = "auto", NULL};
static const char *const packages_policies[] = {
	[PACKAGES_OFF] = "off", [PACKAGES_ASK] = "ask", [PACKAGES_ON] = "on", NULL};
static const char *const call_logs[] = {[CALL_LOG_NAMES] = "names", [CALL_LOG_ARGUMENTS] = "arguments", NULL};
static const char *const forbid_policies[] = {[FORBID_CHECK] = "check", [FORBID_EXEC] = "exec", NULL};
static const char *const files_policies[] = {
	[FILES_KEEP] = "keep",
	[FILES_RESTORE] = "restore",
	NULL,
};
static const char *const checkpoint_policies[] = {
	[CHECKPOINT_OFF] = "off", [CHECKPOINT_CELL] = "cell", [CHECKPOINT_MANUAL] = "manual", NULL};

/* clang-format off */
#define KEY(name_, type_, member_, initial_, ...) \
	{.name = name_, .type = VALUE_##type_, .offset = offsetof(struct SECTION, member_), .initial = initial_, __VA_ARGS__}

#define SECTION config
static const struct key daemon_rows[] = {
	KEY("socket", SOCKET, socket, NULL, .optional = true, .at_start = true,
	    .doc = "where clients connect; empty: in $XDG_RUNTIME_DIR or /run"),
	KEY("socket_mode", MODE, socket_mode, "0600", .at_start = true,
	    .doc = "who may connect: 0600 laird's user, 0660 also its group, 0666 everybody"),
	KEY("socket_group", GROUP, socket_group, NULL, .optional = true, .at_start = true,
	    .doc = "the group of the socket; empty: laird's own"),
	KEY("workspaces", PATH, workspaces, NULL, .optional = true, .at_start = true,
	    .doc = "the directory that holds the workspaces; empty: a standard place"),
	KEY("saves", PATH, saves, NULL, .optional = true,
	    .doc = "the directory that holds saved states; empty: a standard place"),
	KEY("packages_store", PATH, packages_store, NULL, .optional = true, .at_start = true,
	    .doc = "the directory that holds installed packages; empty: a standard place"),
	KEY("packages_total", SIZE, packages_total, "20G", .min = 1 * M, .max = 1024 * T, .optional = true,
	    .doc = "how large the store of packages may be, with what uv keeps to install them again"),
	KEY("uv", PATH, uv, NULL, .optional = true,
	    .doc = "the program that installs them; empty: the one in PATH"),
	KEY("log", LOG, log, "stderr", .at_start = true,
	    .doc = "stderr, or a file to append to"),
	KEY("audit_log", PATH, audit_log, NULL, .optional = true,
	    .doc = "who ran what and what was refused, as JSON lines, in this file; empty: nowhere"),
	KEY("audit_code", FLAG, audit_code, "off",
	    .doc = "whether it has the code of the cells, too"),
	KEY("audit_required", FLAG, audit_required, "on",
	    .doc = "whether a cell is refused if its line cannot be written"),
	KEY("sessions", INT, sessions, "1000", .min = 1, .max = 1000000,
	    .doc = "how many sessions at once, in all"),
	KEY("sessions_per_uid", INT, sessions_per_uid, "off", .min = 1, .max = 1000000, .optional = true,
	    .doc = "how many sessions at once for one user; off: all for laird's own, a quarter for another"),
	/* More than the largest code_size and everything else in a request together. */
	KEY("frame_size", SIZE, frame_size, "32M", .min = 16 * M, .max = 1 * G, .at_start = true,
	    .doc = "the largest request from a client"),
	KEY("connections_per_uid", INT, connections_per_uid, "1000", .min = 1, .max = 1000000,
	    .doc = "how many connections one user may have"),
	KEY("router_memory", SIZE, router_memory, "2G", .min = 256 * M, .max = 1024 * T, .optional = true,
	    .doc = "more than this, and laird's router is replaced; sessions go on"),
	KEY("results_per_uid", SIZE, results_per_uid, "256M", .min = 1 * M, .max = 1024 * T,
	    .doc = "what the answers kept for one user may hold together"),
	KEY("work_per_uid", SIZE, work_per_uid, "512M", .min = 32 * M, .max = 1024 * T, .optional = true,
	    .doc = "what is held in memory for one user: cells, answers on their way, kept answers"),
	KEY("stop_save", DURATION, stop_save, "30s", .min = 100 * MILLISECOND, .max = 1 * DAY, .optional = true,
	    .doc = "how long laird may take to save sessions when it stops"),
	KEY("saves_per_uid", INT, saves_per_uid, "32", .min = 1, .max = 100000,
	    .doc = "how many saved states one user may have; the first to expire goes first"),
	KEY("template_ttl", DURATION, template_ttl, "10m", .min = 1 * MILLISECOND, .max = 365 * DAY,
	    .doc = "how long a user without sessions keeps a template where there are several users"),
	KEY("template_images", FLAG, template_images, "off",
	    .doc = "whether templates are kept on disk, so that laird starts faster; not where several users may connect"),
	KEY("set_template_memory", SIZE, set_template_memory, "1G", .min = 1 * M, .max = 1024 * T, .optional = true,
	    .doc = "the memory of all templates of sets of packages together"),
	KEY("set_template_ttl", DURATION, set_template_ttl, "1h", .min = 1 * MILLISECOND, .max = 365 * DAY,
	    .doc = "how long a template of a set lasts after somebody has asked for the set"),
	KEY("uids", RANGE, uid_first, NULL, .min = 1, .max = 4294967293, .optional = true, .at_start = true,
	    .doc = "host users for sessions, one each, when laird is root; empty: 65536 that no other laird has"),
};
#undef SECTION

#define SECTION profile
static const struct key profile_rows[] = {
	KEY("users", USERS, users, NULL,
	    .doc = "users who may open sessions with it, besides root and laird's own; empty: see groups"),
	KEY("groups", GROUPS, groups, NULL,
	    .doc = "groups whose users may, too; users and groups empty: everybody"),

	KEY("language", LANGUAGE, language, LANGUAGE_OWN,
	    .doc = "what its sessions speak; lair doctor lists the languages that are installed"),
	KEY("python", PYTHON, python, NULL, .optional = true,
	    .doc = "a virtual environment or its interpreter; empty: the system's"),
	KEY("preload", MODULES, preload, "numpy? pandas? matplotlib.pyplot?",
	    .doc = "imported once, ready in every session; ?: may be missing"),
	KEY("env", ENVIRONMENT, env, NULL,
	    .doc = "NAME=value for the sessions' environment"),
	KEY("spares", INT, spares, "2", .min = 0, .max = 1000,
	    .doc = "sessions kept ready before anybody asks"),

	KEY("cell_timeout", DURATION, cell_timeout, "60s", .min = 1 * MILLISECOND, .max = 365 * DAY, .optional = true,
	    .doc = "how long a cell may run unless the request says"),
	KEY("cell_timeout_max", DURATION, cell_timeout_max, "off", .min = 1 * MILLISECOND, .max = 365 * DAY, .optional = true,
	    .doc = "the longest a request may ask for"),
	KEY("grace", DURATION, grace, "2s", .min = 1 * MILLISECOND, .max = 10 * MINUTE,
	    .doc = "from the interrupt of a late cell to its kill"),
	KEY("idle_ttl", DURATION, idle_ttl, "30m", .min = 10 * MILLISECOND, .max = 365 * DAY, .optional = true,
	    .doc = "a session ends this long after its last cell"),
	KEY("hard_ttl", DURATION, hard_ttl, "24h", .min = 10 * MILLISECOND, .max = 365 * DAY, .optional = true,
	    .doc = "a session ends this long after it opened, even if busy"),

	KEY("result_ttl", DURATION, result_ttl, "10m", .min = 1 * SECOND, .max = 365 * DAY,
	    .doc = "how long an answer can be asked for again"),
	KEY("results", INT, results, "64", .min = 1, .max = 100000,
	    .doc = "how many answers are kept for a session; the oldest goes first"),
	KEY("results_size", SIZE, results_size, "64M", .min = 1 * M, .max = 1 * T,
	    .doc = "what these may hold together; the newest is kept whatever its size"),

	KEY("on_expire", CHOICE, on_expire, "end", .words = expiry_policies,
	    .doc = "what comes of the variables of a session whose time is over: end, or save"),
	KEY("save_timeout", DURATION, save_timeout, "30s", .min = 100 * MILLISECOND, .max = 1 * HOUR,
	    .doc = "how long saving or loading them may take"),
	KEY("save_size", SIZE, save_size, "64M", .min = 64 * K, .max = 1 * G,
	    .doc = "how large a saved state may be; what does not fit is left out"),
	KEY("save_ttl", DURATION, save_ttl, "7d", .min = 1 * SECOND, .max = 3650 * DAY, .optional = true,
	    .doc = "how long a saved state is kept"),

	KEY("checkpoint", CHOICE, checkpoint, "cell", .words = checkpoint_policies,
	    .doc = "after every cell, only when asked for (manual), or never (off)"),
	KEY("checkpoints", INT, checkpoints, "8", .min = 1, .max = 1000,
	    .doc = "how many a session keeps; the oldest goes first"),
	KEY("checkpoint_memory", SIZE, checkpoint_memory, "1G", .min = 1 * M, .max = 1024 * T, .optional = true,
	    .doc = "what a session's checkpoints may hold together"),
	KEY("files", CHOICE, files, "restore", .words = files_policies,
	    .doc = "whether going back brings the files of that state back (restore) or leaves them (keep)"),
	KEY("checkpoint_files", SIZE, checkpoint_files, "256M", .min = 64 * K, .max = 1024 * T,
	    .doc = "what is kept of files for that; the oldest goes first"),

	KEY("read", DIRECTORIES, read, NULL,
	    .doc = "directories a session may read, besides Python's own"),
	KEY("write", DIRECTORIES, write, NULL,
	    .doc = "directories a session may change, besides its workspace"),
	KEY("hide", DIRECTORIES, hide, NULL,
	    .doc = "directories that stay out of reach although they lie in those"),
	KEY("import", DIRECTORIES, import, NULL,
	    .doc = "directories clients may have files copied in from, by laird"),
	KEY("dirs", DIRECTORIES, dirs, NULL,
	    .doc = "directories of which clients may have some shown in their session; laird's own user may any"),
	KEY("network", NETWORK, network, "off",
	    .doc = "off, host, or tcp:PORT,... to connect to"),
	KEY("subprocess", FLAG, subprocess, "off",
	    .doc = "whether cells may start other programs"),
	KEY("terminals", FLAG, terminals, "off",
	    .doc = "whether cells may open terminals of their own, in a file system of their own"),
	KEY("level", WORD, level, "landlock", .optional = true, .words = levels,
	    .doc = "the weakest cage that will do; empty: the best there is"),
	KEY("forbid", RULES, forbid, NULL,
	    .doc = "advice to those who write code: KIND NAME [max N]: MESSAGE, one a line"),
	KEY("forbid_in", CHOICE, forbid_in, "check", .words = forbid_policies,
	    .doc = "whether cells that break it are run (check) or refused (exec)"),

	KEY("functions", CHOICE, functions, "on", .words = function_policies,
	    .doc = "whether cells may call functions that their client offers: on, off, or ask"),
	KEY("functions_deny", PATTERNS, functions_deny, NULL,
	    .doc = "functions that they may not call; * stands for any characters"),
	KEY("functions_ask", PATTERNS, functions_ask, NULL,
	    .doc = "functions of which somebody approves each call"),
	KEY("functions_allow", PATTERNS, functions_allow, NULL,
	    .doc = "functions that they may call whatever functions says"),
	KEY("calls", INT, calls, "10000", .min = 1, .max = 1000000000,
	    .doc = "how many calls one cell may make"),
	KEY("calls_at_once", INT, calls_at_once, "1024", .min = 1, .max = 10000,
	    .doc = "how many calls of a cell may wait for their answers at once"),
	KEY("call_size", SIZE, call_size, "16M", .min = 1 * K, .max = 1 * G,
	    .doc = "the arguments of one call, and its answer"),
	KEY("call_timeout", DURATION, call_timeout, "1h", .min = 1 * MILLISECOND, .max = 365 * DAY, .optional = true,
	    .doc = "how long a function may take that does not say so itself"),
	KEY("hold_timeout", DURATION, hold_timeout, "24h", .min = 1 * MILLISECOND, .max = 365 * DAY, .optional = true,
	    .doc = "how long a call waits for somebody to approve or answer it"),
	KEY("call_log", CHOICE, call_log, "names", .words = call_logs,
	    .doc = "what the audit log has of calls: names, or arguments, too"),

	KEY("packages", CHOICE, packages, "off", .words = packages_policies,
	    .doc = "whether packages may be installed in a session: off, ask (its clients may), or on (its code, too)"),
	KEY("packages_allow", PATTERNS, packages_allow, NULL,
	    .doc = "projects that may be asked for; empty: all"),
	KEY("packages_deny", PATTERNS, packages_deny, NULL,
	    .doc = "projects that may neither be asked for nor come with others"),
	KEY("packages_newer", DATE, packages_newer, NULL, .optional = true,
	    .doc = "leave out what was published from this day on, or in so many days: 2026-01-31, 7d"),
	KEY("packages_size", SIZE, packages_size, "2G", .min = 1 * M, .max = 1 * T,
	    .doc = "how large the packages of one session may be"),
	KEY("packages_timeout", DURATION, packages_timeout, "10m", .min = 1 * SECOND, .max = 1 * DAY,
	    .doc = "how long installing them may take"),
	KEY("requirements", REQUIREMENTS, requirements, NULL,
	    .doc = "packages that every session has from its first cell on: polars duckdb==1.*"),
	KEY("templates", CHOICE, templates, "auto", .words = templates_policies,
	    .doc = "auto: sets of packages that are asked for again are imported ahead; off: none is"),

	KEY("memory", SIZE, memory, "1G", .min = 16 * M, .max = 1024 * T, .optional = true,
	    .doc = "the memory of a session"),
	KEY("processes", INT, processes, "1024", .min = 2, .max = 100000, .optional = true,
	    .doc = "processes and threads of a session"),
	KEY("cpu", PROCESSORS, cpu, "off", .min = 10, .max = 10000000, .optional = true,
	    .doc = "how many processors a session may keep busy"),
	KEY("threads", INT, threads, "cpu", .min = 1, .max = 1024, .optional = true, .absent = "cpu",
	    .all = "all",
	    .doc = "how many threads numpy's libraries may start; cpu: as many as that, rounded up, or 1; all: or all processors"),
	KEY("open_files", INT, open_files, "1024", .min = 32, .max = 1000000,
	    .doc = "files open at once in one process"),
	KEY("file_size", SIZE, file_size, "1G", .min = 4 * K, .max = 1024 * T, .optional = true,
	    .doc = "the size of one file"),
	KEY("workspace_size", SIZE, workspace_size, "1G", .min = 64 * K, .max = 1024 * T, .optional = true,
	    .doc = "the size of all files in a workspace"),
	KEY("scratch_size", SIZE, scratch_size, "256M", .min = 64 * K, .max = 1024 * T, .optional = true,
	    .doc = "the size of all files in /tmp and /dev/shm"),

	KEY("queue", INT, queue, "64", .min = 1, .max = 100000,
	    .doc = "cells waiting in one session"),
	KEY("code_size", SIZE, code_size, "1M", .min = 1 * K, .max = 15 * M,
	    .doc = "the code of one cell"),
	KEY("output_size", SIZE, output_size, "16M", .min = 1 * K, .max = 1 * G,
	    .doc = "what is kept of stdout and of stderr of a cell"),
	KEY("text_size", SIZE, text_size, "1M", .min = 1 * K, .max = 4 * M,
	    .doc = "the text of a last expression, as a prompt prints it"),

	KEY("workspace", CHOICE, workspace, "delete", .words = workspace_policies,
	    .doc = "keep or delete what a session leaves in its workspace"),
	KEY("home", PATH, home, NULL, .optional = true,
	    .doc = "where a session finds its workspace, as /home/user; empty: under the workspace's own path"),
	KEY("directory", PATH, directory, NULL, .optional = true,
	    .doc = "where a session starts, in a directory of read or write; empty: in its workspace"),
};
#undef SECTION
/* clang-format on */

_Static_assert(ARRAY_SIZE(daemon_rows) <= KEYS_MAX && ARRAY_SIZE(profile_rows) <= KEYS_MAX, "raise KEYS_MAX");

const struct key_table daemon_keys = {.keys = daemon_rows, .n = ARRAY_SIZE(daemon_rows)};
const struct key_table profile_keys = {.keys = profile_rows, .n = ARRAY_SIZE(profile_rows)};

const struct key_order profile_orders[] = {
	{.low = "cell_timeout", .high = "cell_timeout_max", .off_is_over = true},
	{.low = "idle_ttl", .high = "hard_ttl"},
	{.low = "threads", .high = "processes"},
};
const size_t n_profile_orders = ARRAY_SIZE(profile_orders);

const struct key *key_find(const struct key_table *table, const char *name)
{
	for (size_t i = 0; i < table->n; i++) {
		if (strcmp(table->keys[i].name, name) == 0)
			return &table->keys[i];
	}
	return NULL;
}
