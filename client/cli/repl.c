/* repl: a prompt in a session. Input becomes one cell as soon as it is complete. When the prompt ends, the
 * session runs on. Without a terminal it reads the same from a pipe, without prompts. With --json every cell is
 * answered by one document on a line of its own. */
#include "cli.h"

#include "base/result.h"
#include "base/text.h"
#include "command.h"
#include "presence.h"
#include "reader.h"
#include "run.h"
#include "shorthand.h"
#include "shown.h"

#include "proto/clock.h"

#include <inttypes.h>
#include <math.h>
#include <poll.h>

#define SESSION_DEFAULT "main"
/* A prompt asks for output that was written between cells: how soon, and how often at least. The daemon answers at
 * once. */
#define STRAY_EVERY 0.2
#define STRAY_EVERY_MAX 1.6
#define STRAY_PATIENCE 1.0

struct repl {
	struct run run;
	char *session; /* owned; a branch replaces it */
	struct reader *reader;
	bool person; /* at a terminal */
	struct presence presence;
	uint64_t greeted; /* the session of which it was said that it is new */
	char *text;	  /* of the next cell */
	size_t size, allocated;
	bool whole;    /* it was pasted, or is from the history */
	bool cut;      /* an empty line has ended a block: indented lines after it may be more of the block */
	bool scripted; /* the cell is the script of a shorthand */
	double stray_at,
		stray_every; /* when to ask for output between cells, and how long to wait before asking again */
	uint64_t stray_had;  /* how many bytes of it the daemon has given to anybody, */
	bool stray_known;    /* if it has told that already */
	bool left;	     /* the prompt must end, with this exit status */
	int status;
};

static int text_add(struct repl *repl, const char *line, size_t size)
{
	size_t wanted = repl->size + size + 1;
	char *grown;

	if (wanted > repl->allocated) {
		grown = realloc(repl->text, 2 * wanted);
		if (!grown)
			return -ENOMEM;
		repl->text = grown;
		repl->allocated = 2 * wanted;
	}
	memcpy(repl->text + repl->size, line, size);
	repl->size += size;
	if (size == 0 || line[size - 1] != '\n')
		repl->text[repl->size++] = '\n';
	return 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static bool text_blank(const struct repl *repl)
{
	for (size_t i = 0; i < repl->size; i++)
		if (!is_blank(repl->text[i]) && repl->text[i] != '\n')
			return false;
	return true;
}

/* ---- reading ---- */

static int cell_from_terminal(struct repl *repl)
{
	struct lair_text cell;
	int r;

	repl->stray_every = STRAY_EVERY;
	repl->stray_at = clock_seconds() + STRAY_EVERY;
	r = reader_cell(repl->reader, &cell, &repl->whole);
	return r ? r : text_add(repl, cell.data, cell.size);
}

static void aside(void *userdata)
{
	struct repl *repl = userdata;

	if (repl->person)
		reader_aside(repl->reader);
}

static int keep_session(struct repl *repl)
{
	return presence_turn(&repl->presence, repl->run.cli, repl->session, aside, repl);
}

/* ---- output that is written between cells ---- */

static void stray_show(struct repl *repl, struct lair_text text, int fd)
{
	if (text.size == 0)
		return;
	run_write(&repl->run, fd, text);
	if (text.data[text.size - 1] != '\n')
		run_write(&repl->run, fd, lair_text("\n"));
}

/* Prints it above the line that is typed. Returns whether there was some, or an error, which the next cell will
 * tell. */
static int stray_fetch(struct repl *repl)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	const struct lair_stray *stray;
	uint64_t missed;
	int r;

	r = lair_stray(repl->run.cli->lair, &call, repl->session);
	/* Signals that come meanwhile wait for the prompt. */
	if (!r)
		r = lair_wait(call, STRAY_PATIENCE);
	stray = r ? NULL : lair_stray_output(call);
	if (!stray)
		return -ENODATA;
	missed = repl->stray_known && stray->at > repl->stray_had ? stray->at - repl->stray_had : 0;
	repl->stray_had = stray->at + stray->out.size + stray->err.size;
	repl->stray_known = true;
	if (missed + stray->out.size + stray->err.size == 0)
		return 0;
	aside(repl);
	if (missed)
		cli_notice("%" PRIu64 " bytes that threads wrote were shown elsewhere, or lost with a connection",
			   missed);
	stray_show(repl, stray->out, STDOUT_FILENO);
	stray_show(repl, stray->err, STDERR_FILENO);
	(void)cli_said(repl->run.cli);
	return 1;
}

/* While there is no output, asks less and less often. Returns in how many milliseconds to ask again; -1: only after
 * the next line. */
static int stray_turn(struct repl *repl)
{
	double now = clock_seconds();
	int r;

	if (repl->stray_every <= 0)
		return -1;
	if (now >= repl->stray_at) {
		r = stray_fetch(repl);
		repl->stray_every = r < 0 ? 0 : r > 0 ? STRAY_EVERY : MIN(2 * repl->stray_every, STRAY_EVERY_MAX);
		repl->stray_at = now + repl->stray_every;
	}
	return repl->stray_every > 0 ? (int)ceil((repl->stray_at - now) * 1e3) : -1;
}

static int on_idle(void *userdata)
{
	struct repl *repl = userdata;
	int keep = keep_session(repl), stray = stray_turn(repl);

	return keep < 0 || (stray >= 0 && stray < keep) ? stray : keep;
}

static int line_from_pipe(struct repl *repl)
{
	struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = repl->run.signals, .events = POLLIN}};
	struct lair_text line;
	int r;

	while ((r = lines_next(&repl->run.input, &line)) == LINES_E_EMPTY) {
		if (poll(fds, ARRAY_SIZE(fds), keep_session(repl)) < 0 && errno != EINTR)
			return -errno;
		if (fds[1].revents)
			return READER_E_EOF;
		r = fds[0].revents ? lines_fill(&repl->run.input) : 0;
		if (r)
			return r;
	}
	if (r)
		return READER_E_EOF;
	r = text_add(repl, line.data, line.size);
	return r ? r : reader_line(repl->reader, line);
}

/* Whether an empty line was the last one: then it ended a block. */
static bool ended_by_empty_line(const struct repl *repl)
{
	size_t at = repl->size - 1;

	while (at > 0 && is_blank(repl->text[at - 1]))
		at--;
	return at > 0 && repl->text[at - 1] == '\n';
}

/* Collects one cell, or a command. Returns 0, READER_E_EOF (there may be a last cell nevertheless) or -errno. */
static int cell_read(struct repl *repl)
{
	int r;

	repl->size = 0;
	repl->whole = false;
	if (repl->person)
		return cell_from_terminal(repl);
	do {
		r = line_from_pipe(repl);
		if (repl->size > 0 && text_blank(repl))
			repl->size = 0;
	} while (r == READER_E_MORE);
	return r;
}

/* After an empty line has ended a block, indented lines are no cell of their own. They are the rest of that block,
 * pasted without a mark. To run them as other code than they are helps nobody. */
static bool cell_is_rest(struct repl *repl)
{
	if (repl->cut && !repl->whole && is_blank(repl->text[0]))
		return true;
	repl->cut = !repl->whole && ended_by_empty_line(repl);
	return false;
}

/* ---- Tab ---- */

static void on_tab(void *userdata, struct lair_text before, struct reader_choice *choice)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	const struct lair_completions *found;
	struct repl *repl = userdata;
	struct lair_match match;
	size_t cursor = 0;

	if (lair_complete(repl->run.cli->lair, &call, repl->session, before, 0) || run_wait(&repl->run, call))
		return;
	found = lair_completions(call);
	choice->typed = found->end - MIN(found->start, found->end);
	while (choice->n < READER_CHOICES_MAX && lair_next_match(found->matches, &cursor, &match))
		choice->texts[choice->n++] = strndup(match.text.data, match.text.size);
}

/* ---- running ---- */

static void result_show(struct repl *repl, const struct lair_result *whole)
{
	struct lair_result told = *whole;
	const struct lair_result *result = &told;

	if (repl->run.cli->json) {
		run_print(&repl->run, result_told(result));
		return;
	}
	if (result->birth == repl->greeted) {
		told.ended.why.data = NULL;
		told.loaded = (struct lair_loaded){0};
	} else if (repl->presence.birth && result->birth && result->birth != repl->presence.birth &&
		   !result->ended.why.data) {
		/* Another session has the name by now. The daemon does not know that this prompt has used the one
		 * before. */
		told.ended = ended_unknown;
	}
	if (result->text.data) {
		if (result->data.data)
			run_write(&repl->run, STDOUT_FILENO, result->text);
		else
			run_value(&repl->run, result->text);
		run_write(&repl->run, STDOUT_FILENO, lair_text("\n"));
		(void)cli_said(repl->run.cli);
	}
	(void)run_pictures(&repl->run, result->data);
	artifacts_notice(result);
	/* The script of a shorthand prints exceptions itself. */
	result_notice(result, NOTICE_PROMPT | (repl->scripted ? NOTICE_SCRIPTED : 0));
	/* By exit() people leave a prompt. */
	if (repl->person && result_left(result))
		repl->left = true;
}

/* If the daemon is gone, the prompt ends. */
static void leave_if_over(struct repl *repl, int status)
{
	struct lair *lair = repl->run.cli->lair;

	if (!repl->run.stop && (status != EXIT_TROUBLE || lair_fd(lair) < 0 || !lair_process(lair)))
		return;
	repl->left = true;
	repl->status = repl->run.stop ? 128 + repl->run.stop : status;
}

static const char *profile_of(const struct cli *cli)
{
	return cli->profile ? cli->profile : LAIR_WORKBENCH;
}

static void cell_run(struct repl *repl, struct lair_text code, bool timed)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	struct cli *cli = repl->run.cli;
	struct lair_exec exec = cli->options;
	int status;

	exec.session = repl->session;
	exec.profile = profile_of(cli);
	exec.code = code;
	exec.timeout = cli->timeout;
	/* A person sees how long the cell runs, and has Ctrl-C. */
	exec.unlimited = repl->person && !(cli->timeout > 0);
	exec.notebook = "{\"kind\":\"prompt\"}";
	if (repl->run.offer)
		exec.functions = offer_functions(repl->run.offer, &exec.n_functions);
	status = run_cell(&repl->run, &call, &exec);
	if (!status) {
		result_show(repl, lair_result(call));
		presence_begin(&repl->presence, lair_result(call)->birth);
	}
	if (!status && timed && !cli->json)
		cli_notice("that took %.3g ms", lair_result(call)->duration_ms);
	leave_if_over(repl, status);
}

/* Afterwards the prompt may be in another session. */
static void command_take(struct repl *repl, struct lair_text text)
{
	leave_if_over(repl, command_run(repl->run.cli, &repl->session, text));
	presence_begin(&repl->presence, 0);
}

/* Whether the session has IPython loaded, which then does itself what shorthands are for. */
static bool has_ipython(struct repl *repl)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	struct lair_inspect inspect = {.session = repl->session, .code = lair_text("get_ipython")};

	return !lair_inspect(repl->run.cli->lair, &call, &inspect) && !run_wait(&repl->run, call) &&
	       lair_inspection(call)->found;
}

static void input_run(struct repl *repl)
{
	struct lair_text text = {.data = repl->text, .size = repl->size};
	_cleanup_(freep) char *code = NULL;
	const struct shorthand *shorthand = shorthand_expand(text, &code);

	if (shorthand && has_ipython(repl))
		shorthand = NULL;

	repl->scripted = shorthand && shorthand->script;
	if (cell_is_rest(repl))
		(void)cli_fail(repl->run.cli, "usage",
			       "not run: it is indented, and an empty line had ended the block before it. "
			       "Leave empty lines out of blocks, or run a file: lair exec -f");
	else if (shorthand && code)
		cell_run(repl, lair_text(code), !shorthand->script);
	else if (shorthand)
		(void)cli_fail(repl->run.cli, "error", "out of memory");
	else if (command_is(text) && text.data[strspn(text.data, " \t")] != '!')
		command_take(repl, text);
	else
		cell_run(repl, text, false);
}

static int loop(struct repl *repl)
{
	int r = 0;

	while (!r && !repl->left) {
		r = cell_read(repl);
		if (r < 0)
			return cli_fail(repl->run.cli, "error", "cannot read: %s",
					r == -EPIPE ? "the process of the prompt has ended" : strerror(-r));
		/* The last line of a pipe is a cell. What is typed before Ctrl-D is none. */
		if (repl->size > 0 && (!r || !repl->person))
			input_run(repl);
	}
	return repl->status;
}

/* ---- coming and going ---- */

/* It is started first, because it takes longest. */
static int reader_start(struct repl *repl)
{
	struct cli *cli = repl->run.cli;
	const char *commands[COMMANDS_MAX + 1];
	const struct reader_options options = {
		.signals = repl->run.signals,
		.mask = &repl->run.mask,
		.terminal = repl->person ? &cli->terminal : NULL,
		.commands = commands,
		.on_tab = on_tab,
		.on_idle = repl->person ? on_idle : NULL,
		.userdata = repl,
	};

	commands_list(commands);
	return reader_new(&repl->reader, &options);
}

static int greet(struct repl *repl)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	struct cli *cli = repl->run.cli;
	const struct lair_session *session;
	char idle[HUMAN_SIZE], left_out[PATH_MAX + 128];
	int r;

	r = cli_wait(cli, lair_open_with(cli->lair, &call, repl->session, profile_of(cli), cli->options.settings),
		     &call);
	if (r)
		return cli_trouble(cli, r);
	session = lair_session(call);
	presence_begin(&repl->presence, session->birth);
	if (!repl->person)
		return 0;
	if (session->cells > 0)
		printf("Session \"%s\", back after %s, %" PRIu64 " cell%s so far.", repl->session,
		       human_seconds(idle, session->idle), session->cells, session->cells == 1 ? "" : "s");
	else
		printf("Session \"%s\", new, profile %.*s.", repl->session, (int)session->profile.size,
		       session->profile.data);
	if (session->directory.data)
		printf(" It starts in %.*s%s.", (int)session->directory.size, session->directory.data,
		       session->writable ? "" : ", read-only");
	puts(" Ctrl-C interrupts, Ctrl-D leaves it running, %help says more.");
	fflush(stdout);
	if (asked_left_out(&cli->asked, session, left_out, sizeof(left_out)))
		cli_notice("%s", left_out);
	result_notice(&(struct lair_result){.ended = session->ended, .loaded = session->loaded}, 0);
	repl->greeted = session->birth;
	return 0;
}

static void take_leave(const struct repl *repl)
{
	bool is_default = strcmp(repl->session, SESSION_DEFAULT) == 0;

	printf("\nSession \"%s\" keeps running. Come back: lair repl%s%s   End it: lair close %s\n", repl->session,
	       is_default ? "" : " -s ", is_default ? "" : repl->session, repl->session);
}

int verb_repl(struct cli *cli)
{
	_cleanup_(offer_freep) struct offer *offer = NULL;
	struct repl repl = {.session = NULL};
	int r = cli_asked(cli, true);

	if (!r)
		r = offer_new(&offer, cli);
	if (r)
		return r;
	repl.session = strdup(cli->session ? cli->session : SESSION_DEFAULT);
	r = run_init(&repl.run, cli);
	if (!repl.session)
		r = -ENOMEM;
	repl.run.answers = true;
	repl.run.offer = offer;
	cli->run = &repl.run;
	repl.person = !cli->json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	if (!r)
		r = reader_start(&repl);
	if (r)
		r = cli_fail(cli, "error", "%s", strerror(-r));
	else
		r = greet(&repl);
	cli->figures_place = repl.person;
	if (!r)
		r = loop(&repl);
	if (!r && repl.person)
		take_leave(&repl);
	presence_end(&repl.presence);
	repl.reader = reader_free(repl.reader);
	cli->run = NULL;
	run_deinit(&repl.run);
	free(repl.session);
	free(repl.text);
	return r;
}
