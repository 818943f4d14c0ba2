/* Shared by all of the command line. */
#pragma once

#include "proto/event.h"

#include "lair.h"

#include "base/asked.h"
#include "terminal.h"

#include <jansson.h>
#include <stdio.h>

/* Exit statuses of lair's own; the others of exec are the cell's. */
enum { EXIT_NOT_RUNNING = 1, EXIT_USAGE = 2, EXIT_TROUBLE = 125 };

/* How often it may have a flag that may be repeated. */
#define CLI_LIST_MAX 64
/* How many options of a cell may be lists. */
#define CLI_OPTION_LISTS 4
/* Of the name of a session, with room for the name of a user before it. */
#define CLI_NAME_SIZE 192

/* Which flags a verb takes, besides those that all verbs take. A command of a prompt does not take the latter. */
enum {
	WITH_SESSION = 1,
	WITH_PROFILE = 2,
	WITH_FILE = 4,
	WITH_STREAM = 8,
	WITH_BRANCH = 16,
	AT_PROMPT = 32,
	WITH_OPTIONS = 64, /* of a cell: those of exec */
	WITH_KEY = 128,
	WITH_FIGURES = 256,
	WITH_PROMPT_OPTIONS = 512, /* those of the prompt */
	WITH_CURSOR = 1024,
	WITH_SOURCE = 2048,
	WITH_FORGET = 4096,
	WITH_KEEP = 8192,
	WITH_TOOLS = 16384,
	WITH_FORMAT = 32768,
	WITH_CONFIG = 65536,
	WITH_RULES = 131072, /* of a profile */
	WITH_CELL = 262144,  /* no flag: its --timeout is that of cells */
	ON_SESSION = 524288, /* no flag: its first argument is a session */
	WITH_KILL = 1048576,
	WITH_INSTRUCTIONS = 2097152,
	WITH_COLOR = 4194304,
	WITH_LONG = 8388608,
	WITH_TOP = 16777216,
	WITH_ALLOW = 33554432,
	WITH_SERVE = 67108864,
	WITH_FUNCTIONS = 134217728,
	WITH_ANSWER = 268435456,
	WITH_LOG = 536870912,
	WITH_SERVERS = 1073741824,
};
/* The last bits are no int. */
#define WITH_KERNEL 2147483648u
#define WITH_BACK 4294967296ull
#define WITH_HTTP 8589934592ull
#define WITH_TOKEN 17179869184ull
#define PAGED 34359738368ull	  /* no flag: at a terminal its output goes through a pager */
#define WITH_ASKED 68719476736ull /* directories and limits of the session */

/* Which daemon a verb needs. */
enum need {
	NEED_NOTHING, /* none, or the verb looks for one itself */
	NEED_RUNNING, /* one that runs: if none answers, that is an error */
	NEED_STARTED, /* one that runs: if none answers, it is started */
};

struct cli;
struct run;
struct servers;

struct verb {
	const char *name, *usage, *summary;
	uint64_t flags;
	int args_min, args_max;
	enum need need;
	int (*fn)(struct cli *cli);
};

/* The arguments of a flag that may be repeated, ended by NULL. */
struct cli_list {
	const char *items[CLI_LIST_MAX + 1];
	size_t n;
};

/* The command line and what it led to. All text is in argv or the environment. */
struct cli {
	const struct verb *verb;
	const char *socket, *config, *session, *profile, *file, *from, *key, *figures, *cursor, *forget, *keep,
		*servers, *tools, *format, *color, *sort, *refuse, *prefix, *name, *listen, *tokens, *origins,
		*certificate, *certificate_key, *sessions, *requests, *rate, *memory, *cpus, *network;
	double timeout, patience; /* seconds; 0: not given */
	bool json, stream, files, share, keep_files, at_call, source, print_config, no_start, help, version, kill,
		instructions, longer, once, serve, approve, user, sys_prefix, by_path, follow;
	/* make a directory for pictures, since none was given and the terminal cannot show them; it was made */
	bool figures_place, figures_placed;
	char names[2][CLI_NAME_SIZE]; /* of sessions, if these differ from the arguments */
	struct cli_list allow, functions, ask, effect, directories;
	struct asked_settings asked; /* of these and of the limits */
	struct lair_exec options;    /* of a cell, as far as there are flags for them; its lists are among these */
	struct cli_list lists[CLI_OPTION_LISTS];
	size_t n_lists;
	char **args;
	int n_args;
	struct event_loop *loop;
	struct lair *lair;
	struct terminal terminal;
	struct run *run; /* at a prompt: its signals end waiting; else NULL */
};

/* flags.c: read the flags from argv[1] on into @cli. If @verb is NULL, it stops at the first word that is no flag;
 * else it reads the verb's flags between its arguments. The other words are left in cli->args. Returns 0 or
 * EXIT_USAGE, having said why. */
int flags_parse(struct cli *cli, const struct verb *verb, int argc, char *argv[]);
/* The flags of @verb, or of all verbs if NULL, one a line. */
void flags_print(const struct verb *verb, FILE *out);

/* The name of the argument of the flag @word, or NULL; and the names of all, for completion. */
const char *flag_argument(const struct verb *verb, const char *word);
void flags_each(const struct verb *verb, void (*fn)(void *userdata, const char *name, const char *help),
		void *userdata);
/* main.c: the verbs in turn, NULL after the last. One without a summary is not for people. */
const struct verb *verb_at(size_t i);
/* tried.c: a verb by its name or by an alias, which may stand for a flag of it, too; else NULL in *flagp. */
const struct verb *verb_named(const char *name, const char **flagp);
/* The aliases of a verb in turn, NULL after the last. *cursor begins at 0. */
const char *verb_alias(const struct verb *verb, size_t *cursor);
/* The verb that people mean by @word; NULL: not known. */
const char *verb_meant(const char *word);
/* Say that there is no such verb, and which may be meant. Returns EXIT_USAGE. */
int verb_unknown(const struct cli *cli, const char *word);

/* cli.c: a usage error. Returns EXIT_USAGE. */
int cli_usage(const struct cli *cli, const char *format, ...) _printf_(2, 3);
/* Say what went wrong with cli->lair, unless @error is 0. Returns EXIT_TROUBLE, or 0. */
int cli_trouble(const struct cli *cli, int error);
/* Say another failure. Returns EXIT_TROUBLE. */
int cli_fail(const struct cli *cli, const char *code, const char *format, ...) _printf_(3, 4);
/* After all that a session has written to stdout and stderr: a terminal becomes as it was before, and its user is
 * told how much was left out. Returns 0 or -errno. */
int cli_said(struct cli *cli);
/* One line for the person on stderr. */
void cli_notice(const char *format, ...) _printf_(1, 2);
/* Another: the setting that decided the failure reported before. Absent: none did. */
void cli_setting_notice(struct lair_text setting);
/* A handle for this command line, connected unless @need is NEED_NOTHING. Returns 0 or an exit status, having said
 * why. */
int cli_connect(struct cli *cli, enum need need);
/* Whether cli->verb has as many arguments as it wants. Returns 0 or EXIT_USAGE, having said why. */
int cli_args_check(const struct cli *cli);
/* asked.c: what the session is to have beside its profile, into cli->options; if @here and no directory is named,
 * the present one. Returns 0 or EXIT_USAGE, having said why. */
int cli_asked(struct cli *cli, bool here);
/* name.c: replace the names of sessions in the arguments of cli->verb by the names that the daemon knows. Returns 0
 * or EXIT_USAGE, having said why. */
int cli_names(struct cli *cli);
/* Wait for a call that was just started with the result @started. The call is given by its address, which is filled
 * in only by starting it. Returns 0 or an error as lair_wait. At a prompt there is no deadline, but Ctrl-C. */
int cli_wait(const struct cli *cli, int started, struct lair_call *const *callp);
/* exec.c: the code that the arguments, -f or stdin give; *readp is the caller's to free. Returns 0 or EXIT_USAGE,
 * having said why. */
int cli_code(struct cli *cli, struct lair_text *code, char **readp);
/* question.c: reset all variables but those in cli->keep. Returns 0 or an exit status, having said why. */
int cli_keep(struct cli *cli);
static inline void call_freep(struct lair_call **callp)
{
	*callp = lair_call_free(*callp);
}

/* Print one document on a line of its own, and release it. Returns 0 or EXIT_TROUBLE. */
int json_print(json_t *document);

/* servers.c: the servers of cli->servers, if that is given; their failures are told on stderr. Returns 0 or an exit
 * status, having said why. */
int cli_servers(const struct cli *cli, struct servers **serversp);

/* The verbs. Return exit statuses. */
int verb_exec(struct cli *cli);
int verb_install(struct cli *cli);
int verb_attach(struct cli *cli);
int verb_results(struct cli *cli);
int verb_calls(struct cli *cli);
int verb_answer(struct cli *cli);
int verb_save(struct cli *cli);
int verb_load(struct cli *cli);
int verb_packages(struct cli *cli);
int verb_saves(struct cli *cli);
int verb_open(struct cli *cli);
int verb_ls(struct cli *cli);
int verb_top(struct cli *cli);
int verb_info(struct cli *cli);
int verb_interrupt(struct cli *cli);
int verb_reset(struct cli *cli);
int verb_close(struct cli *cli);
int verb_repl(struct cli *cli);
int verb_checkpoint(struct cli *cli);
int verb_checkpoints(struct cli *cli);
int verb_diff(struct cli *cli);
int verb_restore(struct cli *cli);
int verb_undo(struct cli *cli);
int verb_branch(struct cli *cli);
int verb_drop(struct cli *cli);
int verb_put(struct cli *cli);
int verb_get(struct cli *cli);
int verb_files(struct cli *cli);
int verb_copy_in(struct cli *cli);
int verb_vars(struct cli *cli);
int verb_who(struct cli *cli);
int verb_complete(struct cli *cli);
int verb_inspect(struct cli *cli);
int verb_history(struct cli *cli);
int verb_check(struct cli *cli);
int verb_mcp(struct cli *cli);
int verb_jupyter(struct cli *cli);
int verb_serve(struct cli *cli);
int verb_token(struct cli *cli);
int verb_tools(struct cli *cli);
int verb_servers(struct cli *cli);
int verb_start(struct cli *cli);
int verb_stop(struct cli *cli);
int verb_reload(struct cli *cli);
int verb_upgrade(struct cli *cli);
int verb_status(struct cli *cli);
int verb_logs(struct cli *cli);
int verb_doctor(struct cli *cli);
int verb_version(struct cli *cli);
int verb_words(struct cli *cli);
