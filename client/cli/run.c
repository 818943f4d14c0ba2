/* In the loop are the handle, the signals, the sources of functions, and stdin while the cell asks for something.
 * stdin is never read before a question, and never blocks an answer. Output waits outside the loop for its reader
 * or a signal, since a reader that does not read stops everything else. */
#include "run.h"

#include "base/json.h"
#include "base/text.h"
#include "shown.h"

#include "proto/clock.h"

#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <termios.h>

/* After a signal that ends us, the cell has so many seconds to end, too. */
#define STOP_PATIENCE 1.0
/* If the cell does not react to an interrupt for so many seconds, that is said. */
#define REACTION 1.0
/* The first interrupts the cell. The second says what the third will do: kill the cell. After one more nobody
 * waits. */
#define INTERRUPTS_MAX 4

int run_init(struct run *run, struct cli *cli)
{
	static const int taken[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action;
	sigset_t set;

	*run = (struct run){.cli = cli,
			    .signals = -1,
			    .on_lair = EVENT_SOURCE_NONE,
			    .on_signal = EVENT_SOURCE_NONE,
			    .on_input = EVENT_SOURCE_NONE};
	lines_init(&run->input, STDIN_FILENO);
	sigemptyset(&set);
	/* If nohup or a shell has made us ignore a signal, it stays ignored. If it were blocked here, it would
	 * not. */
	for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
		if (sigaction(taken[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
			sigaddset(&set, taken[i]);
	(void)signal(SIGPIPE, SIG_IGN);
	if (sigprocmask(SIG_BLOCK, &set, &run->mask) < 0)
		return -errno;
	run->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return run->signals < 0 ? -errno : 0;
}

void run_deinit(struct run *run)
{
	run->signals = fd_close(run->signals);
	(void)sigprocmask(SIG_SETMASK, &run->mask, NULL);
	lines_deinit(&run->input);
	run->answer = lair_call_free(run->answer);
}

/* ---- signals ---- */

static void on_no_reaction(struct timer *timer);
static void on_patience(struct timer *timer);

static void interrupt(struct run *run)
{
	struct lair_call *call = NULL;

	if (run->call && lair_cancel(run->cli->lair, &call, run->call) == 0)
		lair_call_free(call); /* the cell's own answer tells how it went */
	(void)timer_set_in(run->cli->loop, &run->unheard, REACTION, on_no_reaction);
}

static void cell_kill(struct run *run)
{
	struct lair_call *call = NULL;

	if (run->call && lair_kill_cell(run->cli->lair, &call, run->call) == 0)
		lair_call_free(call);
}

static void stop(struct run *run, int signal)
{
	if (run->stop)
		return;
	run->stop = signal;
	run->stop_since = clock_seconds();
	interrupt(run);
	timer_clear(run->cli->loop, &run->unheard);
	(void)timer_set_in(run->cli->loop, &run->patience, STOP_PATIENCE, on_patience);
}

static void alive_erase(struct run *run)
{
	if (run->alive)
		(void)write_all(STDERR_FILENO, lair_text("\r\033[K"));
	run->alive = false;
}

static void interrupt_notice(struct run *run, const char *sentence)
{
	if (run->cli->json || run->stop)
		return;
	alive_erase(run);
	if (run->in_line)
		fputc('\n', stderr);
	run->in_line = false;
	screen_mark(&run->cli->terminal.screen);
	cli_notice("%s", sentence);
}

/* Code in C does not react until it returns. From outside one can only wait to see that. */
static void on_interrupt(struct run *run)
{
	switch (++run->interrupts) {
	case 1:
		interrupt(run);
		break;
	case 2:
		timer_clear(run->cli->loop, &run->unheard);
		/* The reader of our output does not read. It is not the cell that does not react. */
		if (run->writing)
			run->interrupts = INTERRUPTS_MAX;
		else
			interrupt_notice(run,
					 "the cell has not reacted to the interrupt. Ctrl-C once more kills it; "
					 "a session goes back to its last checkpoint");
		break;
	case 3:
		interrupt_notice(run, "killing the cell");
		cell_kill(run);
		break;
	}
}

static void on_no_reaction(struct timer *timer)
{
	interrupt_notice(
		container_of(timer, struct run, unheard),
		"interrupted; the cell has not reacted yet, as code in C does not until it returns. Ctrl-C "
		"twice more kills it");
}

static void signals_read(struct run *run)
{
	struct signalfd_siginfo info;

	while (read(run->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo != SIGINT)
			stop(run, (int)info.ssi_signo);
		else
			on_interrupt(run);
	}
}

static void on_signal(struct event_source *source, uint32_t events)
{
	signals_read(container_of(source, struct run, on_signal));
}

static bool run_given_up(const struct run *run)
{
	return run->interrupts >= INTERRUPTS_MAX ||
	       (run->stop && clock_seconds() - run->stop_since >= STOP_PATIENCE);
}

/* The loop looks then whether it is given up. */
static void on_patience(struct timer *timer)
{
}

static int patience_left(const struct run *run)
{
	return run->stop ? (int)fmax(0, ceil((run->stop_since + STOP_PATIENCE - clock_seconds()) * 1e3)) : -1;
}

/* ---- stdout and stderr ---- */

static int room_wait(struct run *run, int fd)
{
	struct pollfd fds[] = {{.fd = fd, .events = POLLOUT}, {.fd = run->signals, .events = POLLIN}};

	if (poll(fds, ARRAY_SIZE(fds), patience_left(run)) < 0)
		return errno == EINTR ? 0 : -errno;
	if (fds[1].revents)
		signals_read(run);
	return 0;
}

/* Returns 0, -EINTR if nobody waits any longer, or -errno. */
static int write_waiting(struct run *run, int fd, struct lair_text text)
{
	int r = 0;

	run->writing = true;
	while (!r && text.size > 0) {
		ssize_t n = write_some(fd, text.data, text.size);

		if (n >= 0) {
			text.data += n;
			text.size -= (size_t)n;
		} else if (errno != EAGAIN) {
			r = errno == EINTR ? 0 : -errno;
		} else {
			r = run_given_up(run) ? -EINTR : room_wait(run, fd);
		}
	}
	run->writing = false;
	return r;
}

static void written(struct run *run, int r)
{
	if (!r || r == -EINTR)
		return;
	write_failed(r);
	stop(run, SIGPIPE);
}

void run_write(struct run *run, int fd, struct lair_text text)
{
	_cleanup_(freep) char *owned = NULL;

	text = terminal_text(&run->cli->terminal, fd == STDOUT_FILENO ? LAIR_STDOUT : LAIR_STDERR, text, &owned);
	written(run, write_waiting(run, fd, text));
}

void run_value(struct run *run, struct lair_text text)
{
	_cleanup_(freep) char *owned = NULL;

	written(run, write_waiting(run, STDOUT_FILENO, terminal_value(&run->cli->terminal, text, &owned)));
}

void run_print(struct run *run, json_t *document)
{
	_cleanup_(freep) char *line = json_line(document);

	written(run, line ? write_waiting(run, STDOUT_FILENO, lair_text(line)) : -ENOMEM);
}

/* ---- events, for programs ---- */

static void event_print(struct run *run, const char *name, struct lair_text data)
{
	json_t *event = json_pack("{s:s}", "event", name);

	json_add_output(event, "data", data);
	run_print(run, event);
}

static const char *const stream_names[] = {[LAIR_STDOUT] = "stdout", [LAIR_STDERR] = "stderr"};

/* A piece may end within a character. The beginning of the character then goes with the next piece. */
static void event_output(struct run *run, enum lair_stream stream, struct lair_text data)
{
	_cleanup_(freep) char *owned = NULL;

	if (text_whole(&run->rests[stream], &data, &owned))
		event_print(run, stream_names[stream], data);
}

/* If a character was cut off at the end, no more of it will come. */
static void events_end(struct run *run)
{
	for (enum lair_stream stream = LAIR_STDOUT; stream <= LAIR_STDERR; stream++) {
		struct lair_text rest = text_rest(&run->rests[stream]);

		if (rest.size > 0 && run->stop != SIGPIPE)
			event_print(run, stream_names[stream], rest);
	}
}

/* ---- the sign of life ---- */

/* The line is rewritten, so it must not be longer than the terminal is wide. */
static void alive_show(struct run *run, const char *text)
{
	char line[sizeof(run->doing) + 3 * HUMAN_SIZE];
	unsigned columns, rows;

	terminal_size(&columns, &rows);
	(void)write_all(STDERR_FILENO, lair_text("\r\033[K"));
	(void)write_all(
		STDERR_FILENO,
		lair_text(text_cut(line, columns > 8 ? MIN(sizeof(line), (size_t)columns) : sizeof(line), text)));
	run->alive = true;
}

/* The work that is done for the cell; returns whether it has changed. */
static bool doing_note(struct run *run, const struct lair_alive *alive)
{
	char doing[sizeof(run->doing)];
	bool other;

	text_tamed(doing, sizeof(doing), alive->doing);
	other = strcmp(doing, run->doing) != 0;
	memcpy(run->doing, doing, sizeof(doing));
	return other;
}

/* How much is used since the last sign of life; "": that is not known. */
static void cpu_note(struct run *run, const struct lair_alive *alive, char out[static HUMAN_SIZE])
{
	double passed = alive->elapsed - run->last_alive.elapsed, used = alive->cpu - run->last_alive.cpu;

	out[0] = '\0';
	if (run->last_alive.elapsed > 0 && passed > 0 && used >= 0)
		snprintf(out, HUMAN_SIZE, ", CPU %.0f%%", 100 * used / passed);
	run->last_alive.elapsed = alive->elapsed;
	run->last_alive.cpu = alive->cpu;
}

/* Never over the output of the cell. Without a terminal only the work that is done for it is shown, a line each. */
static void on_alive(struct lair_call *call, const struct lair_alive *alive, void *userdata)
{
	char line[sizeof(((struct run *)NULL)->doing) + 3 * HUMAN_SIZE];
	char elapsed[HUMAN_SIZE], memory[HUMAN_SIZE], cpu[HUMAN_SIZE];
	struct run *run = userdata;
	bool other = doing_note(run, alive);

	(void)call;
	approval_look(run);
	cpu_note(run, alive, cpu);
	if (run->events && run->stop != SIGPIPE)
		run_print(run, json_pack("{s:s, s:f, s:I, s:f, s:o*}", "event", "alive", "elapsed", alive->elapsed,
					 "memory", (json_int_t)alive->memory, "cpu", alive->cpu, "doing",
					 alive->doing.data ? json_text(alive->doing) : NULL));
	if (run->cli->json || run->in_line || run->asking || run->approving)
		return;
	human_seconds(elapsed, alive->elapsed);
	if (!isatty(STDERR_FILENO)) {
		if (other && run->doing[0])
			cli_notice("%s", run->doing);
		return;
	}
	if (run->doing[0])
		snprintf(line, sizeof(line), "[%s] %s", elapsed, run->doing);
	else
		snprintf(line, sizeof(line), "[%s, %s%s]", elapsed, human_bytes(memory, alive->memory), cpu);
	alive_show(run, line);
}

/* ---- output ---- */

bool run_pictures(struct run *run, struct lair_items data)
{
	struct lair_data item;
	bool shown = false;
	size_t cursor = 0;

	while (lair_next_data(data, &cursor, &item)) {
		_cleanup_(freep) char *owned = NULL;
		struct lair_text picture = {.data = NULL};

		if (text_is(item.type, "image/png"))
			picture = terminal_picture(&run->cli->terminal, item.data, &owned);
		shown |= picture.data != NULL;
		written(run, write_waiting(run, STDOUT_FILENO, picture));
	}
	screen_mark(&run->cli->terminal.screen);
	if (!shown)
		figures_place(run->cli, data);
	if (!shown || !run->cli->figures_placed)
		shown_save(run->cli, data);
	return shown;
}

static void display_print(struct run *run, struct lair_items data)
{
	struct lair_data item;
	size_t cursor = 0;

	if (run_pictures(run, data))
		return;
	while (lair_next_data(data, &cursor, &item)) {
		if (!text_is(item.type, "text/plain"))
			continue;
		run_write(run, STDOUT_FILENO, item.data);
		run_write(run, STDOUT_FILENO, lair_text("\n"));
	}
}

static void on_display(struct lair_call *call, const struct lair_display *display, void *userdata)
{
	struct run *run = userdata;
	json_t *event, *shown;

	(void)call;
	alive_erase(run);
	if (run->stop == SIGPIPE)
		return;
	if (!run->events) {
		run->in_line = false;
		display_print(run, display->data);
		approval_repeat(run);
		return;
	}
	event = json_pack("{s:s, s:b}", "event", "display", "clear", display->clear);
	shown = json_display(display);
	json_object_update(event, shown);
	json_decref(shown);
	run_print(run, event);
}

static void on_output(struct lair_call *call, enum lair_stream stream, struct lair_text data, void *userdata)
{
	struct run *run = userdata;

	(void)call;
	alive_erase(run);
	if (run->stop == SIGPIPE)
		return;
	run->in_line = data.size > 0 && data.data[data.size - 1] != '\n';
	if (run->events)
		event_output(run, stream, data);
	else
		run_write(run, stream == LAIR_STDOUT ? STDOUT_FILENO : STDERR_FILENO, data);
	approval_repeat(run);
}

/* ---- input ---- */

static void echo_set(bool on)
{
	struct termios mode;

	if (tcgetattr(STDIN_FILENO, &mode) < 0)
		return;
	mode.c_lflag = on ? mode.c_lflag | ECHO : mode.c_lflag & ~(tcflag_t)ECHO;
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &mode);
}

static void asked(struct run *run)
{
	if (!run->asking)
		return;
	run->asking = false;
	if (run->hidden) {
		echo_set(true);
		(void)write_all(STDERR_FILENO, lair_text("\n"));
	}
	run->hidden = false;
}

static void on_ask(struct lair_call *call, struct lair_text prompt, bool password, void *userdata)
{
	struct run *run = userdata;
	bool on_stdout = run->cli->terminal.is[LAIR_STDOUT] && !run->cli->json;
	_cleanup_(freep) char *owned = NULL;

	(void)call;
	alive_erase(run);
	/* Another client was faster. Input so far was meant for the question before. */
	if (run->asking) {
		asked(run);
		(void)tcflush(STDIN_FILENO, TCIFLUSH);
		cli_notice("somebody else has answered the question before");
	}
	approval_put_off(run);
	/* Before it is asked for: whoever sees the question may type at once. */
	if (password)
		echo_set(false);
	/* stdout is for what the cell prints; a program that reads it did not ask for our questions. */
	prompt = terminal_text(&run->cli->terminal, on_stdout ? LAIR_STDOUT : LAIR_STDERR, prompt, &owned);
	(void)write_waiting(run, on_stdout ? STDOUT_FILENO : STDERR_FILENO, prompt);
	run->asking = true;
	run->hidden = password;
}

/* ---- calls of functions ---- */

static void on_call(struct lair_call *call, struct lair_calling *calling, void *userdata)
{
	struct run *run = userdata;

	(void)call;
	offer_call(run->offer, calling);
}

static void on_cancel(struct lair_call *call, uint64_t number, void *userdata)
{
	struct run *run = userdata;

	(void)call;
	alive_erase(run);
	approval_cancel(run, number);
	if (run->offer)
		offer_cancel(run->offer, number);
}

static void on_held(struct lair_call *call, const struct lair_waiting *waiting, void *userdata)
{
	struct run *run = userdata;

	(void)call;
	alive_erase(run);
	if (run->in_line && !run->events)
		fputc('\n', stderr);
	run->in_line = false;
	screen_mark(&run->cli->terminal.screen);
	approval_begin(run, waiting);
}

/* A line that is not taken must not vanish without a word. */
static void on_answered(struct lair_call *call, void *userdata)
{
	(void)userdata;
	if (lair_outcome(call) == LAIR_E_GONE)
		cli_notice("the answer was not used: %s", lair_call_error(call));
}

static int answer(struct run *run)
{
	_cleanup_(freep) char *owned = NULL;
	struct lair_text line = {.data = NULL};
	int r;

	r = lines_next(&run->input, &line);
	if (r == LINES_E_EMPTY)
		return 0;
	if (run->approving) {
		approval_answer(run, line);
		return 0;
	}
	asked(run);
	r = line.data ? text_mend(&line, &owned) : 0;
	run->answer = lair_call_free(run->answer);
	if (!r)
		r = lair_input(run->cli->lair, &run->answer, run->call, line);
	if (run->answer)
		lair_on_done(run->answer, on_answered, run);
	approval_ask(run);
	return r;
}

/* ---- the loop ---- */

static void on_lair(struct event_source *source, uint32_t events)
{
	struct run *run = container_of(source, struct run, on_lair);
	int r = lair_process(run->cli->lair);

	/* If the connection is lost, the call has this error itself. */
	if (r != LAIR_E_LOST)
		run->error = r;
}

static void on_input(struct event_source *source, uint32_t events)
{
	struct run *run = container_of(source, struct run, on_input);

	if (lines_fill(&run->input)) /* a stdin that cannot be read has ended */
		run->input.eof = true;
}

static int run_watch(struct run *run)
{
	int r = event_add(run->cli->loop, &run->on_lair, lair_fd(run->cli->lair), EPOLLIN, on_lair);

	if (run->stop)
		(void)timer_set_in(run->cli->loop, &run->patience, STOP_PATIENCE, on_patience);
	return r ? r : event_add(run->cli->loop, &run->on_signal, run->signals, EPOLLIN, on_signal);
}

static void run_unwatch(struct run *run)
{
	event_remove(run->cli->loop, &run->on_lair);
	event_remove(run->cli->loop, &run->on_signal);
	event_remove(run->cli->loop, &run->on_input);
	timer_clear(run->cli->loop, &run->unheard);
	timer_clear(run->cli->loop, &run->patience);
}

static int run_turn(struct run *run)
{
	bool reads = run->asking || run->approving;
	int r = event_set(run->cli->loop, &run->on_input, STDIN_FILENO, reads ? EPOLLIN : 0, on_input);

	if (!r)
		r = event_round(run->cli->loop, -1);
	if (!r)
		r = run->error;
	if (!r && (run->asking || run->approving))
		r = answer(run);
	return r == LAIR_E_LOST ? 0 : r;
}

/* The exit status for a cell that nobody waits for any more. */
static int run_abandoned(const struct run *run, const char *session)
{
	if (!run->stop && session)
		cli_notice("not waiting any longer; the cell goes on in session \"%s\"", session);
	else if (!run->stop)
		cli_notice("not waiting any longer; the cell goes on until its timeout");
	return 128 + (run->stop ? run->stop : SIGINT);
}

static void run_begin(struct run *run)
{
	run->interrupts = 0;
	run->error = 0;
	run->asking = run->hidden = run->in_line = false;
	run->last_alive.elapsed = 0;
	run->doing[0] = '\0';
	screen_mark(&run->cli->terminal.screen);
	fflush(stdout);
}

/* Wait for the cell of a call just started with the result @r. */
static int run_follow(struct run *run, struct lair_call **callp, int r, const char *session)
{
	struct lair_call *call = *callp;

	run->call = call;
	if (!r)
		r = run_watch(run);
	while (!r && lair_outcome(call) == -EINPROGRESS && !run_given_up(run))
		r = run_turn(run);
	run_unwatch(run);
	asked(run);
	alive_erase(run);
	approvals_end(run);
	others_end(run);
	if (run->offer)
		offer_end(run->offer);
	events_end(run);
	written(run, cli_said(run->cli));
	run->call = NULL;
	if (r)
		return cli_trouble(run->cli, r);
	if (lair_outcome(call) == -EINPROGRESS || run->stop)
		return run_abandoned(run, session);
	return cli_trouble(run->cli, lair_wait(call, 0));
}

/* The size of the terminal comes before the cell's own environment, which may set another. A cell with a key gets
 * none, because it must be the same wherever it is sent from. */
static const char *const *environment(struct run *run, const struct lair_exec *exec)
{
	unsigned columns, rows;
	size_t n = 0;

	terminal_size(&columns, &rows);
	if (run->cli->json || exec->key || !run->cli->terminal.is[LAIR_STDOUT] || columns == 0 || rows == 0)
		return exec->env;
	snprintf(run->size.columns, sizeof(run->size.columns), "COLUMNS=%u", columns);
	snprintf(run->size.lines, sizeof(run->size.lines), "LINES=%u", rows);
	run->size.env[n++] = run->size.columns;
	run->size.env[n++] = run->size.lines;
	for (size_t i = 0; exec->env && exec->env[i]; i++)
		run->size.env[n++] = exec->env[i];
	run->size.env[n] = NULL;
	return run->size.env;
}

int run_cell(struct run *run, struct lair_call **callp, struct lair_exec *exec)
{
	static const struct lair_function none[1];
	_cleanup_(call_freep) struct lair_call *call = NULL;
	int r;

	run_begin(run);
	exec->env = environment(run, exec);
	exec->on_output = run->cli->json && !run->events ? NULL : on_output;
	exec->on_display = on_display;
	exec->on_alive = on_alive;
	exec->on_ask = run->answers ? on_ask : NULL;
	if (run->offer)
		exec->on_call = on_call;
	else if (approval_possible(run))
		exec->functions = none;
	if (exec->functions) {
		exec->on_cancel = on_cancel;
		exec->on_held = on_held;
	}
	exec->userdata = run;
	r = run_follow(run, &call, lair_exec(run->cli->lair, &call, exec), exec->session);
	if (!r)
		*callp = steal_ptr(&call);
	return r;
}

int run_attach(struct run *run, struct lair_call **callp, struct lair_attach *attach)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	int r;

	run_begin(run);
	attach->on_output = run->cli->json && !run->events ? NULL : on_output;
	attach->on_display = on_display;
	attach->on_alive = on_alive;
	attach->on_ask = run->answers ? on_ask : NULL;
	run->others.attach = run->offer ? NULL : attach;
	if (run->offer) {
		attach->on_call = on_call;
		attach->on_cancel = on_cancel;
		attach->on_held = on_held;
	}
	attach->userdata = run;
	r = run_follow(run, &call, lair_attach(run->cli->lair, &call, attach), attach->session);
	if (!r)
		*callp = steal_ptr(&call);
	return r;
}

int run_wait(struct run *run, struct lair_call *call)
{
	int r;

	run->interrupts = 0;
	run->error = 0;
	r = run_watch(run);
	while (!r && lair_outcome(call) == -EINPROGRESS && !run->interrupts && !run->stop)
		r = run_turn(run);
	run_unwatch(run);
	if (!r && lair_outcome(call) == -EINPROGRESS)
		r = -EINTR;
	return r ? r : lair_wait(call, 0);
}
