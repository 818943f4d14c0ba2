/* Common parts of all verbs: a handle, a deadline, and failures told to a person or to a program. */
#include "cli.h"

#include "base/json.h"
#include "base/text.h"
#include "run.h"

#include <inttypes.h>
#include <stdarg.h>

#define ANSWER_TIMEOUT 30.0

static void say(const struct cli *cli, const char *code, const char *sentence, const char *setting)
{
	json_t *document;

	if (!cli->json) {
		fprintf(stderr, "lair: %s\n", sentence);
		if (*setting)
			cli_setting_notice(lair_text(setting));
		return;
	}
	document = json_pack("{s:{s:s, s:s}}", "error", "code", code, "message", sentence);
	if (!document)
		document = json_pack("{s:{s:s, s:s}}", "error", "code", code, "message", "(not UTF-8)");
	if (*setting)
		json_object_set_new(json_object_get(document, "error"), "setting", json_string(setting));
	json_dumpf(document, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
	putchar('\n');
	json_decref(document);
}

static void _printf_(3, 0) say_args(const struct cli *cli, const char *code, const char *format, va_list args)
{
	char sentence[16384];

	vsnprintf(sentence, sizeof(sentence), format, args);
	say(cli, code, text_tame(sentence), "");
}

int cli_usage(const struct cli *cli, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say_args(cli, "usage", format, args);
	va_end(args);
	if (!cli->json && cli->run)
		fputs("Try: %help\n", stderr);
	else if (!cli->json)
		fprintf(stderr, "Try: lair %s%s--help\n", cli->verb ? cli->verb->name : "", cli->verb ? " " : "");
	return EXIT_USAGE;
}

int cli_fail(const struct cli *cli, const char *code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say_args(cli, code, format, args);
	va_end(args);
	return EXIT_TROUBLE;
}

void cli_notice(const char *format, ...)
{
	char sentence[16384];
	va_list args;

	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	fflush(stdout);
	fprintf(stderr, "lair: %s\n", text_tame(sentence));
}

void cli_setting_notice(struct lair_text setting)
{
	if (setting.size > 0)
		cli_notice("%.*s decides this", (int)setting.size, setting.data);
}

int cli_said(struct cli *cli)
{
	static const int fds[] = {[LAIR_STDOUT] = STDOUT_FILENO, [LAIR_STDERR] = STDERR_FILENO};
	struct terminal_rest rests[2];
	uint64_t dropped;
	int r = 0;

	terminal_end(&cli->terminal, rests, &dropped);
	for (size_t i = 0; i < ARRAY_SIZE(rests); i++) {
		if (!r && rests[i].text.size > 0)
			r = write_all(fds[rests[i].stream], rests[i].text);
		free(rests[i].owned);
	}
	if (dropped > 0)
		cli_notice("left out of what the cell wrote: %" PRIu64
			   " sequence%s for the terminal, other than colours; "
			   "piped through cat it is all there",
			   dropped, dropped == 1 ? "" : "s");
	return r;
}

int cli_trouble(const struct cli *cli, int error)
{
	char sentence[1024];

	if (error == 0)
		return 0;
	if (error == -EINTR)
		return cli_fail(cli, "interrupted",
				"not waiting any longer; laird carries the request out nevertheless");
	/* If a daemon could not start, its own message is printed as it is, all lines of it. */
	if (error == LAIR_E_START && !cli->json) {
		fprintf(stderr, "%s\n", lair_error(cli->lair));
		return EXIT_TROUBLE;
	}
	snprintf(sentence, sizeof(sentence), "%s", lair_error(cli->lair));
	say(cli, lair_code(error), text_tame(sentence), lair_error_setting(cli->lair));
	return EXIT_TROUBLE;
}

int cli_args_check(const struct cli *cli)
{
	const struct verb *verb = cli->verb;

	if (cli->n_args < verb->args_min)
		return cli_usage(cli, "%s: expected %s", verb->name, verb->usage);
	if (cli->n_args > verb->args_max && verb->args_max == 0 && verb_meant(verb->name))
		return cli_usage(cli, "%s takes no argument; did you mean lair %s %s?", verb->name,
				 verb_meant(verb->name), cli->args[0]);
	if (cli->n_args > verb->args_max)
		return cli_usage(cli, "%s: \"%s\" is one argument too many; expected %s", verb->name,
				 cli->args[verb->args_max], *verb->usage ? verb->usage : "none");
	return 0;
}

int cli_connect(struct cli *cli, enum need need)
{
	struct lair_options options = {
		.socket = cli->socket,
		.config = cli->config,
		.no_start = cli->no_start || need != NEED_STARTED,
	};
	int r;

	cli->lair = lair_free(cli->lair);
	r = lair_new(&cli->lair, &options);
	if (r == -ENAMETOOLONG)
		return cli_usage(cli, "the path of the socket is too long; 107 bytes are the limit");
	if (r)
		return cli_fail(cli, "error", "%s", strerror(-r));
	if (need == NEED_NOTHING)
		return 0;
	r = lair_connect(cli->lair);
	if (r == LAIR_E_NO_DAEMON && need != NEED_STARTED)
		return cli_fail(cli, lair_code(r), "%s; lair start starts one", lair_error(cli->lair));
	return cli_trouble(cli, r);
}

int cli_wait(const struct cli *cli, int started, struct lair_call *const *callp)
{
	if (started)
		return started;
	if (cli->run)
		return run_wait(cli->run, *callp);
	return lair_wait(*callp, cli->timeout > 0 ? cli->timeout : ANSWER_TIMEOUT);
}

int json_print(json_t *document)
{
	_cleanup_(freep) char *line = json_line(document);

	fputs(line ? line : "\n", stdout);
	return !line || ferror(stdout) ? EXIT_TROUBLE : 0;
}
