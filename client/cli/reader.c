/* Messages are arrays of JSON, one a line. Only one side speaks unasked: this one may ask for silence at any time.
 * What the process has said meanwhile is heard later. */
#include "reader.h"

#include "base/embed.h"
#include "base/json.h"
#include "base/lines.h"
#include "base/text.h"

#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>

/* The process does what it is asked at once, unless it is stopped or broken. */
#define PATIENCE_MS 2000
#define SYSTEM_PYTHON "/usr/bin/python3"

EMBED(prompt_program, PROMPT_PROGRAMS "/prompt.py");
EMBED(editor_program, PROMPT_PROGRAMS "/editor.py");

/* Python would look for its modules where the prompt was started first. */
static const char starter[] = "import sys\n"
			      "sys.path[:] = filter(None, sys.path)\n"
			      "import types\n"
			      "prompt = sys.modules['prompt'] = types.ModuleType('prompt')\n"
			      "exec(compile(sys.argv[1], 'prompt.py', 'exec'), prompt.__dict__)\n"
			      "prompt.main(*sys.argv[2:])";

struct reader {
	struct reader_options options;
	pid_t pid;
	struct lines in; /* its fd is our end of the socket */
	json_t *later;	 /* messages that came while another was awaited */
	json_t *heard;	 /* the last message: texts in it are used */
	bool plain;	 /* it reads line by line, and hears nothing meanwhile */
	bool hidden, ended;
	struct termios modes;
	bool has_modes;
};

/* ---- messages ---- */

/* Takes over @message. If the process has gone, that is noticed when it is awaited. */
static void say(const struct reader *reader, json_t *message)
{
	_cleanup_(freep) char *line = json_line(message);

	if (line)
		(void)send(reader->in.fd, line, strlen(line), MSG_NOSIGNAL);
}

/* Takes one that has come, if there is one. Returns 0, LINES_E_EMPTY or -EPIPE. */
static int message_next(struct reader *reader, json_t **messagep)
{
	struct lair_text line;
	int r = lines_next(&reader->in, &line);

	if (r)
		return r == LINES_E_EMPTY ? r : -EPIPE;
	*messagep = json_loadb(line.data, line.size, 0, NULL);
	return *messagep ? 0 : -EPIPE;
}

/* The same, but first those that came while another was awaited. */
static int message_take(struct reader *reader, json_t **messagep)
{
	if (json_array_size(reader->later) == 0)
		return message_next(reader, messagep);
	*messagep = json_incref(json_array_get(reader->later, 0));
	json_array_remove(reader->later, 0);
	return 0;
}

static const char *message_kind(const json_t *message)
{
	const char *kind = json_string_value(json_array_get(message, 0));

	return kind ? kind : "";
}

static void signals_take(struct reader *reader)
{
	struct signalfd_siginfo info;

	while (read(reader->options.signals, &info, sizeof(info)) == sizeof(info)) {
		reader->ended |= info.ssi_signo != SIGINT;
		if (!reader->ended && !reader->plain)
			say(reader, json_pack("[s]", "interrupt"));
	}
}

static int idle(struct reader *reader)
{
	int wait = reader->options.on_idle ? reader->options.on_idle(reader->options.userdata) : -1;

	if (reader->hidden)
		say(reader, json_pack("[s]", "show"));
	reader->hidden = false;
	return wait;
}

/* Waits for the next message, or for a signal that ends us: READER_E_EOF. */
static int message_await(struct reader *reader)
{
	struct pollfd fds[] = {{.fd = reader->in.fd, .events = POLLIN},
			       {.fd = reader->options.signals, .events = POLLIN}};
	int r;

	json_decref(reader->heard);
	reader->heard = NULL;
	while ((r = message_take(reader, &reader->heard)) == LINES_E_EMPTY) {
		int wait = idle(reader);

		if (json_array_size(reader->later) > 0)
			continue;
		if (poll(fds, ARRAY_SIZE(fds), wait) < 0) {
			if (errno != EINTR)
				return -errno;
			continue;
		}
		if (fds[1].revents)
			signals_take(reader);
		if (reader->ended)
			return READER_E_EOF;
		r = fds[0].revents ? lines_fill(&reader->in) : 0;
		if (r)
			return r;
	}
	return r;
}

void reader_aside(struct reader *reader)
{
	struct pollfd fd = {.fd = reader->in.fd, .events = POLLIN};
	json_t *message = NULL;
	int r = 0;

	if (reader->hidden)
		return;
	if (reader->plain) {
		fputc('\n', stdout);
		fflush(stdout);
		return;
	}
	reader->hidden = true;
	say(reader, json_pack("[s]", "hide"));
	while (r >= 0) {
		r = message_next(reader, &message);
		if (!r && strcmp(message_kind(message), "hidden") == 0) {
			json_decref(message);
			return;
		}
		if (!r)
			json_array_append_new(reader->later, message);
		else if (r == LINES_E_EMPTY)
			r = poll(&fd, 1, PATIENCE_MS) > 0 ? lines_fill(&reader->in) : -ETIMEDOUT;
	}
}

/* ---- what it says ---- */

static void answer_tab(struct reader *reader)
{
	struct lair_text before = lair_text(json_string_value(json_array_get(reader->heard, 1)));
	struct reader_choice choice = {.n = 0};
	json_t *texts = json_array();

	if (before.data)
		reader->options.on_tab(reader->options.userdata, before, &choice);
	for (size_t i = 0; i < choice.n; i++) {
		if (choice.texts[i])
			json_array_append_new(texts, json_text(lair_text(text_tame(choice.texts[i]))));
		free(choice.texts[i]);
	}
	say(reader, json_pack("[s, I, o]", "matches", (json_int_t)choice.typed, texts));
}

int reader_cell(struct reader *reader, struct lair_text *cell, bool *wholep)
{
	int r;

	say(reader, json_pack("[s]", "read"));
	while (!(r = message_await(reader))) {
		const char *kind = message_kind(reader->heard);

		if (strcmp(kind, "complete") == 0)
			answer_tab(reader);
		else if (strcmp(kind, "plain") == 0)
			reader->plain = true;
		else if (strcmp(kind, "kitty") == 0)
			reader->options.terminal->graphics = GRAPHICS_KITTY;
		else if (strcmp(kind, "end") == 0)
			return READER_E_EOF;
		else if (strcmp(kind, "cell") == 0)
			break;
	}
	if (r)
		return r;
	*cell = lair_text(json_string_value(json_array_get(reader->heard, 1)));
	*wholep = json_is_true(json_array_get(reader->heard, 2));
	return cell->data ? 0 : -EPIPE;
}

int reader_line(struct reader *reader, struct lair_text line)
{
	int r;

	say(reader, json_pack("[s, o]", "line", json_text(line)));
	r = message_await(reader);
	if (r)
		return r;
	return strcmp(message_kind(reader->heard), "cell") == 0 ? 0 : READER_E_MORE;
}

/* ---- the process ---- */

static _Noreturn void program_start(const struct reader *reader, const int pair[2], const char *options)
{
	const char *const argv[] = {"python3", "-c", starter, prompt_program, editor_program, options, NULL};
	char *const *words = (char *const *)(uintptr_t)argv;
	int null = reader->options.terminal ? -1 : open("/dev/null", O_RDONLY | O_CLOEXEC);

	/* What is in the pipe is for the cells. */
	if (null >= 0)
		(void)dup2(null, STDIN_FILENO);
	(void)fcntl(pair[1], F_SETFD, 0);
	(void)sigprocmask(SIG_SETMASK, reader->options.mask, NULL);
	(void)execv(SYSTEM_PYTHON, words);
	(void)execvp("python3", words);
	fprintf(stderr, "lair: python3, which reads the prompt: %s\n", strerror(errno));
	_exit(127);
}

static char *options_text(const struct reader_options *options, int fd)
{
	const struct terminal *terminal = options->terminal;
	json_t *commands = json_array(), *document;
	char *text;

	for (size_t i = 0; terminal && options->commands[i]; i++)
		json_array_append_new(commands, json_string(options->commands[i]));
	document = json_pack("{s:i, s:b, s:b, s:b, s:o}", "fd", fd, "terminal", terminal != NULL, "colour",
			     terminal && terminal->colour[LAIR_STDOUT], "kitty",
			     terminal && terminal->graphics == GRAPHICS_NONE && !picture_multiplexed(), "commands",
			     commands);
	text = json_dumps(document, JSON_COMPACT);
	json_decref(document);
	return text;
}

int reader_new(struct reader **readerp, const struct reader_options *options)
{
	_cleanup_(freep) char *text = NULL;
	struct reader *reader = calloc(1, sizeof(*reader));
	int pair[2];

	if (!reader || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		free(reader);
		return -errno;
	}
	reader->options = *options;
	reader->later = json_array();
	reader->has_modes = options->terminal && tcgetattr(STDIN_FILENO, &reader->modes) == 0;
	text = options_text(options, pair[1]);
	lines_init(&reader->in, pair[0]);
	fflush(NULL);
	reader->pid = text ? fork() : -1;
	if (reader->pid == 0)
		program_start(reader, pair, text);
	(void)fd_close(pair[1]);
	*readerp = reader;
	if (reader->pid > 0)
		return 0;
	*readerp = reader_free(reader);
	return -ENOMEM;
}

/* It ends when its end of the socket is closed; while it waits for a line it does not see that. */
static void program_end(pid_t pid)
{
	for (int i = 0; i < 100; i++) {
		if (waitpid(pid, NULL, WNOHANG) != 0)
			return;
		if (i == 50)
			(void)kill(pid, SIGTERM);
		(void)poll(NULL, 0, 10);
	}
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

struct reader *reader_free(struct reader *reader)
{
	if (!reader)
		return NULL;
	(void)fd_close(reader->in.fd);
	if (reader->pid > 0) {
		if (reader->plain)
			(void)kill(reader->pid, SIGTERM);
		program_end(reader->pid);
	}
	if (reader->has_modes)
		(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &reader->modes);
	lines_deinit(&reader->in);
	json_decref(reader->later);
	json_decref(reader->heard);
	free(reader);
	return NULL;
}
