/* exec and attach: one cell, then its last expression as a prompt would print it, and its returncode. results:
 * which ones there are to attach to. */
#include "cli.h"

#include "base/result.h"
#include "base/text.h"
#include "run.h"
#include "shown.h"
#include "table.h"

#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>

static int code_read(struct cli *cli, const char *path, char **codep, size_t *sizep)
{
	bool standard = strcmp(path, "-") == 0;
	_cleanup_(fd_closep) int fd = standard ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	int r = standard || fd >= 0 ? read_all(standard ? STDIN_FILENO : fd, codep, sizep) : -errno;

	if (r)
		(void)cli_fail(cli, "usage", "%s: %s", standard ? "stdin" : path, strerror(-r));
	return r ? EXIT_USAGE : 0;
}

/* Where the code comes from; @path is NULL if the argument itself is the code. */
static int code_source(struct cli *cli, const char **pathp)
{
	bool takes_arguments = cli->verb->args_max > 1;

	if (cli->file && cli->n_args && !takes_arguments)
		return cli_usage(cli, "%s: either CODE or -f FILE", cli->verb->name);
	if (!cli->file && !cli->n_args)
		return cli_usage(cli, "%s: expected CODE, -f FILE, or - for stdin", cli->verb->name);
	*pathp = cli->file ? cli->file : strcmp(cli->args[0], "-") == 0 ? "-" : NULL;
	if (!*pathp && cli->n_args > 1)
		return cli_usage(cli, "%s: \"%s\" is one argument too many; expected %s, with the code in quotes",
				 cli->verb->name, cli->args[1], cli->verb->usage);
	return 0;
}

int cli_code(struct cli *cli, struct lair_text *code, char **readp)
{
	const char *path = NULL;
	int r = code_source(cli, &path);

	if (r || !path) {
		*code = lair_text(r ? NULL : cli->args[0]);
		return r;
	}
	r = code_read(cli, path, readp, &code->size);
	code->data = *readp;
	return r;
}

static bool code_is_stdin(const struct cli *cli)
{
	return strcmp(cli->file ? cli->file : cli->args[0], "-") == 0;
}

static int text_show(struct cli *cli, struct lair_text text)
{
	_cleanup_(freep) char *owned = NULL;
	int r = write_all(STDOUT_FILENO, terminal_text(&cli->terminal, LAIR_STDOUT, text, &owned));

	if (!r)
		r = write_all(STDOUT_FILENO, lair_text("\n"));
	if (!r)
		r = cli_said(cli);
	if (r)
		write_failed(r);
	return r ? EXIT_TROUBLE : 0;
}

/* Returns the exit status. */
static int result_show(struct cli *cli, const struct lair_result *result)
{
	int r = 0;

	if (cli->json) {
		r = json_print(result_told(result));
	} else {
		if (result->text.data)
			r = text_show(cli, result->text);
		if (!r) {
			shown_save(cli, result->data);
			result_notice(result, 0);
		}
	}
	return r ? r : result->returncode & 0xff;
}

static int run_start(struct run *run, struct cli *cli)
{
	int r = run_init(run, cli);

	run->answers = true;
	run->events = cli->json && cli->stream;
	return r ? cli_fail(cli, "error", "cannot take signals: %s", strerror(-r)) : 0;
}

static int code_run(struct cli *cli, struct lair_call **callp, const struct lair_exec *asked, struct offer *offer)
{
	_cleanup_(run_deinit) struct run run;
	struct lair_exec exec = *asked;
	int r;

	r = run_start(&run, cli);
	if (r)
		return r;
	run.answers = !code_is_stdin(cli);
	run.offer = offer;
	return run_cell(&run, callp, &exec);
}

static int code_detach(struct cli *cli, const struct lair_exec *exec)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	const struct lair_detached *detached;
	int r;

	/* The timeout is for the cell. */
	cli->timeout = 0;
	r = cli_wait(cli, lair_exec(cli->lair, &call, exec), &call);
	if (r)
		return cli_trouble(cli, r);
	detached = lair_detached(call);
	if (cli->json)
		return json_print(json_pack("{s:s?, s:o, s:o}", "session", exec->session, "cell",
					    detached->cell ? json_integer((json_int_t)detached->cell) : json_null(),
					    "key", json_text(detached->key)));
	printf("%.*s\n", (int)detached->key.size, detached->key.data);
	return 0;
}

int verb_exec(struct cli *cli)
{
	struct lair_exec exec = cli->options;
	_cleanup_(call_freep) struct lair_call *call = NULL;
	_cleanup_(offer_freep) struct offer *offer = NULL;
	_cleanup_(freep) char *read = NULL;
	int r;

	exec.session = cli->session;
	exec.profile = cli->profile;
	exec.timeout = cli->timeout;
	exec.key = cli->key;
	/* The words before the arguments, FILE or -, are what Python has as the first one. Their place in front of
	 * the arguments is that of a word that has been read. */
	if (cli->file)
		*--cli->args = (char *)(uintptr_t)cli->file;
	exec.argv = cli->file || cli->n_args > 1 ? (const char *const *)cli->args : NULL;
	cli->args += cli->file != NULL;
	r = cli_asked(cli, false);
	exec.settings = cli->options.settings;
	if (!r)
		r = cli_code(cli, &exec.code, &read);
	if (!r)
		r = offer_new(&offer, cli);
	/* A daemon is started only if the command line is right. */
	if (!r)
		r = cli_connect(cli, NEED_STARTED);
	if (r)
		return r;
	if (offer)
		exec.functions = offer_functions(offer, &exec.n_functions);
	if (exec.detach)
		return code_detach(cli, &exec);
	r = code_run(cli, &call, &exec, offer);
	return r ? r : result_show(cli, lair_result(call));
}

static int attach_run(struct cli *cli, struct lair_call **callp, struct lair_attach *attach)
{
	_cleanup_(offer_freep) struct offer *offer = NULL;
	_cleanup_(run_deinit) struct run run;
	int r = run_start(&run, cli);

	if (!r)
		r = offer_new(&offer, cli);
	run.offer = offer;
	return r ? r : run_attach(&run, callp, attach);
}

static bool results_have(struct cli *cli, const char *session, const char *key)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	struct lair_kept kept;
	size_t cursor = 0;

	if (cli_wait(cli, lair_results(cli->lair, &call, session), &call))
		return false;
	while (lair_next_kept(lair_result_list(call), &cursor, &kept))
		if (text_is(kept.key, key))
			return true;
	return false;
}

/* The session of the cell with that key, as exec --detach prints it; NULL: of none. */
static const char *session_of(struct cli *cli, char name[static CLI_NAME_SIZE], const char *key)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	struct lair_session session;
	size_t cursor = 0;

	if (cli_wait(cli, lair_list(cli->lair, &call), &call))
		return NULL;
	while (lair_next_session(lair_sessions(call), &cursor, &session)) {
		snprintf(name, CLI_NAME_SIZE, "%.*s", (int)session.session.size, session.session.data);
		if (results_have(cli, name, key))
			return name;
	}
	return NULL;
}

int verb_attach(struct cli *cli)
{
	struct lair_attach attach = {.session = cli->n_args ? cli->args[0] : NULL, .key = cli->key};
	_cleanup_(call_freep) struct lair_call *call = NULL;
	char name[CLI_NAME_SIZE];
	int r;

	if (!cli->key && cli->n_args == 0)
		return cli_usage(cli, "attach: expected ID CELL, or a KEY");
	if (!cli->key && cli->n_args == 1) {
		attach.key = cli->args[0];
		attach.session = session_of(cli, name, attach.key);
	}
	if (cli->key && cli->n_args > 1)
		return cli_usage(cli, "attach: either CELL or --key KEY");
	if (cli->n_args > 1 && (!text_number(cli->args[1], &attach.cell) || attach.cell == 0))
		return cli_usage(cli, "attach: expected the number of a cell; got \"%s\"", cli->args[1]);
	r = attach_run(cli, &call, &attach);
	return r ? r : result_show(cli, lair_result(call));
}

static bool kept_row(struct lair_items items, size_t *cursor, table_row row)
{
	struct lair_kept kept;
	char text[HUMAN_SIZE];

	if (!lair_next_kept(items, cursor, &kept))
		return false;
	if (kept.cell)
		snprintf(row[0], TABLE_CELL, "%" PRIu64, kept.cell);
	else
		snprintf(row[0], TABLE_CELL, "-");
	text_tamed(row[1], TABLE_CELL, kept.state);
	if (text_is(kept.state, "finished"))
		snprintf(row[2], TABLE_CELL, "%d", kept.returncode);
	else
		snprintf(row[2], TABLE_CELL, "-");
	snprintf(row[3], TABLE_CELL, "%s", human_seconds(text, kept.age));
	snprintf(row[4], TABLE_CELL, "%s", human_bytes(text, kept.bytes));
	text_tamed(row[5], TABLE_CELL, kept.key.data ? kept.key : lair_text("-"));
	return true;
}

int verb_results(struct cli *cli)
{
	static const table_row heads = {"CELL", "STATE", "RETURNCODE", "AGE", "SIZE", "KEY"};
	_cleanup_(call_freep) struct lair_call *call = NULL;
	const char *session = cli->n_args ? cli->args[0] : NULL;
	int r;

	r = cli_wait(cli, lair_results(cli->lair, &call, session), &call);
	if (r)
		return cli_trouble(cli, r);
	if (!cli->json) {
		table_print(heads, lair_result_list(call), kept_row);
		return 0;
	}
	return json_print(
		json_pack("{s:s?, s:o}", "session", session, "results", json_kept(lair_result_list(call))));
}

/* An empty cell that needs them. */
int verb_install(struct cli *cli)
{
	struct lair_exec exec = {.session = cli->args[0],
				 .profile = cli->profile,
				 .timeout = cli->timeout,
				 .code = lair_text(""),
				 .packages = (const char *const *)cli->args + 1};
	_cleanup_(call_freep) struct lair_call *call = NULL;
	int r = code_run(cli, &call, &exec, NULL);

	return r ? r : result_show(cli, lair_result(call));
}
