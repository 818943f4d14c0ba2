/* exec: one cell, then its last expression as a prompt would print it, and its returncode. */
#include "cli.h"

#include "json.h"
#include "run.h"
#include "text.h"

#include <fcntl.h>

static int code_read(struct cli *cli, const char *path, char **codep, size_t *sizep)
{
	bool standard = strcmp(path, "-") == 0;
	_cleanup_(fd_closep) int fd = standard ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	int r = standard || fd >= 0 ? read_all(standard ? STDIN_FILENO : fd, codep, sizep) : -errno;

	if (r)
		(void)cli_fail(cli, "usage", "%s: %s", standard ? "stdin" : path, strerror(-r));
	return r ? EXIT_USAGE : 0;
}

/* Where the code comes from: @path is NULL if it is the argument itself. */
static int code_source(struct cli *cli, const char **pathp)
{
	if (cli->file && cli->n_args)
		return cli_usage(cli, "exec: either CODE or -f FILE");
	if (!cli->file && !cli->n_args)
		return cli_usage(cli, "exec: expected CODE, -f FILE, or - for stdin");
	*pathp = cli->file ? cli->file : strcmp(cli->args[0], "-") == 0 ? "-" : NULL;
	return 0;
}

static int result_show(struct run *run, const struct lair_result *result)
{
	if (run->cli->json)
		return json_print(json_result(result));
	if (result->text.data &&
	    (output_write(STDOUT_FILENO, result->text) || output_write(STDOUT_FILENO, lair_text("\n"))))
		return EXIT_TROUBLE;
	run_notice(result);
	return 0;
}

static int code_run(struct cli *cli, struct lair_text code, bool stdin_free)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	_cleanup_(run_deinit) struct run run;
	struct lair_exec exec = {
		.session = cli->session, .profile = cli->profile, .code = code, .timeout = cli->timeout};
	int r;

	r = run_init(&run, cli);
	if (r)
		return cli_fail(cli, "error", "cannot take signals: %s", strerror(-r));
	run.answers = stdin_free;
	run.events = cli->json && cli->stream;
	r = run_cell(&run, &call, &exec);
	if (!r)
		r = result_show(&run, lair_result(call));
	return r ? r : lair_result(call)->returncode & 0xff;
}

int verb_exec(struct cli *cli)
{
	_cleanup_(freep) char *read = NULL;
	struct lair_text code = {.data = NULL};
	const char *path = NULL;
	int r;

	r = code_source(cli, &path);
	if (r)
		return r;
	if (path) {
		r = code_read(cli, path, &read, &code.size);
		code.data = read;
	} else {
		code = lair_text(cli->args[0]);
	}
	/* Only for a command line that is right is a daemon started. */
	if (!r)
		r = cli_connect(cli, NEED_STARTED);
	return r ? r : code_run(cli, code, !path || strcmp(path, "-") != 0);
}
