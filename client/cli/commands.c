/* Functions that are commands. Each call runs its command by the shell, as the leader of a process group: the
 * arguments go to its stdin as JSON, its stdout is the value. Several run side by side; the others wait for their
 * turn. Nothing here blocks but the end, which waits until all have ended. */
#include "offer.h"

#include "base/text.h"
#include "signature.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* How many run at once. */
#define RUNNING_MAX 32
/* Of stdout. What the daemon takes is less, and the cell is told so. */
#define OUT_MAX ((size_t)64 << 20)
/* Of stderr the end is kept. */
#define ERR_KEPT 4096
/* Of what is no JSON so much is shown. */
#define SHOWN_MAX 200
/* A command that was told to end has so many seconds. */
#define GRACE 1.0
/* The exit status that puts a call aside: try again later, as sysexits.h has it. */
#define STATUS_HOLD 75

struct command {
	char *name, *text;
	json_t *defaults; /* of the arguments */
};

enum { END_IN, END_OUT, END_ERR, END_EXIT, N_ENDS };

/* A call and its process. */
struct running {
	struct running *next;
	struct commands *commands;
	const struct command *command;
	struct lair_calling *calling; /* NULL: nobody waits */
	uint64_t number;
	bool started;
	pid_t pid;
	int fds[N_ENDS]; /* pipes, and a descriptor of the process */
	struct event_source sources[N_ENDS];
	char *arguments; /* with the defaults of those that are not given */
	size_t written;	 /* of them */
	struct {
		char *data;
		size_t size, allocated;
	} out;
	char err[ERR_KEPT + 1];
	size_t n_err;
	bool too_much;
	struct timer grace; /* it was told to end */
	bool told;
};

struct commands {
	struct source source;
	struct event_loop *loop;
	struct command commands[CLI_LIST_MAX];
	size_t n;
	struct running *first; /* in the order of their calls */
	unsigned n_running;
};

/* ---- starting ---- */

static _Noreturn void command_exec(const struct command *command, const char *key, const int fds[3], pid_t owner)
{
	static const int usual[] = {SIGPIPE, SIGCHLD, SIGINT, SIGTERM, SIGHUP};
	sigset_t none;

	(void)setpgid(0, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != owner || dup2(fds[0], 0) < 0 || dup2(fds[1], 1) < 0 || dup2(fds[2], 2) < 0)
		_exit(126);
	(void)syscall(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC);
	for (size_t i = 0; i < ARRAY_SIZE(usual); i++)
		(void)signal(usual[i], SIG_DFL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)setenv("LAIR_FUNCTION", command->name, 1);
	(void)setenv("LAIR_CALL", key, 1);
	execl("/bin/sh", "sh", "-c", command->text, NULL);
	_exit(127);
}

static void pairs_close(int pairs[3][2])
{
	for (size_t i = 0; i < 3; i++) {
		pairs[i][0] = fd_close(pairs[i][0]);
		pairs[i][1] = fd_close(pairs[i][1]);
	}
}

/* Our ends do not block. */
static int pairs_make(int pairs[3][2])
{
	for (size_t i = 0; i < 3; i++)
		if (pipe2(pairs[i], O_CLOEXEC) < 0 || fcntl(pairs[i][i == END_IN], F_SETFL, O_NONBLOCK) < 0)
			return -errno;
	return 0;
}

static void on_in(struct event_source *source, uint32_t events);
static void on_out(struct event_source *source, uint32_t events);
static void on_err(struct event_source *source, uint32_t events);
static void on_exit_of(struct event_source *source, uint32_t events);

static int running_watch(struct running *running)
{
	static const struct {
		uint32_t events;
		void (*fn)(struct event_source *source, uint32_t events);
	} ends[N_ENDS] = {
		[END_IN] = {EPOLLOUT, on_in},
		[END_OUT] = {EPOLLIN, on_out},
		[END_ERR] = {EPOLLIN, on_err},
		[END_EXIT] = {EPOLLIN, on_exit_of},
	};
	int r = 0;

	for (int end = N_ENDS - 1; !r && end >= 0; end--)
		r = event_add(running->commands->loop, &running->sources[end], running->fds[end], ends[end].events,
			      ends[end].fn);
	return r;
}

static int process_start(struct commands *commands, struct running *running)
{
	int pairs[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}}, r = pairs_make(pairs);
	const int theirs[] = {pairs[END_IN][0], pairs[END_OUT][1], pairs[END_ERR][1]};
	const char *key = lair_calling_key(running->calling).data;
	pid_t owner = getpid();

	if (!r) {
		running->pid = fork();
		r = running->pid < 0 ? -errno : 0;
	}
	if (!r && running->pid == 0)
		command_exec(running->command, key, theirs, owner);
	if (!r) {
		(void)setpgid(running->pid, running->pid);
		running->started = true;
		running->fds[END_IN] = steal_fd(&pairs[END_IN][1]);
		running->fds[END_OUT] = steal_fd(&pairs[END_OUT][0]);
		running->fds[END_ERR] = steal_fd(&pairs[END_ERR][0]);
		running->fds[END_EXIT] = (int)syscall(SYS_pidfd_open, running->pid, 0);
		commands->n_running++;
	}
	pairs_close(pairs);
	return r ? r : running_watch(running);
}

/* ---- its life ---- */

/* To close alone is not enough: a process that is just being started has a copy. */
static void running_close(struct running *running, int end)
{
	event_remove(running->commands->loop, &running->sources[end]);
	running->fds[end] = fd_close(running->fds[end]);
}

/* Forgets it. Its process has ended, or was never started. */
static void running_free(struct commands *commands, struct running *running)
{
	struct running **place = &commands->first;

	while (*place != running)
		place = &(*place)->next;
	*place = running->next;
	for (int end = 0; end < N_ENDS; end++)
		running_close(running, end);
	timer_clear(commands->loop, &running->grace);
	commands->n_running -= running->started;
	lair_calling_free(running->calling);
	free(running->arguments);
	free(running->out.data);
	free(running);
}

static void answer_error(struct running *running, const char *name, const char *text)
{
	if (running->calling && !lair_raise(running->calling, name, text))
		running->calling = NULL;
}

static void on_grace(struct timer *timer);

/* Tells its group to end; the second time it must. */
static void running_end(struct running *running)
{
	if (!running->started)
		return;
	(void)kill(-running->pid, running->told ? SIGKILL : SIGTERM);
	(void)kill(-running->pid, SIGCONT);
	running->told = true;
	(void)timer_set_in(running->commands->loop, &running->grace, GRACE, on_grace);
}

static void start_those_that_can(struct commands *commands)
{
	struct running *running, *next;
	char text[160];
	int r;

	for (running = commands->first; running && commands->n_running < RUNNING_MAX; running = next) {
		next = running->next;
		if (running->started)
			continue;
		r = process_start(commands, running);
		if (!r)
			continue;
		snprintf(text, sizeof(text), "the command could not be started: %s", strerror(-r));
		answer_error(running, "OSError", text);
		if (running->started)
			running_end(running);
		else
			running_free(commands, running);
	}
}

/* ---- what it says ---- */

static int out_add(struct running *running, const char *data, size_t size)
{
	size_t wanted = running->out.size + size + 1;
	char *grown;

	if (wanted > OUT_MAX) {
		running->too_much = true;
		return -EFBIG;
	}
	if (wanted > running->out.allocated) {
		grown = realloc(running->out.data, 2 * wanted);
		if (!grown)
			return -ENOMEM;
		running->out.data = grown;
		running->out.allocated = 2 * wanted;
	}
	memcpy(running->out.data + running->out.size, data, size);
	running->out.size += size;
	return 0;
}

static void err_add(struct running *running, const char *data, size_t size)
{
	size_t kept = MIN(size, (size_t)ERR_KEPT), stays = MIN(running->n_err, ERR_KEPT - kept);

	memmove(running->err, running->err + running->n_err - stays, stays);
	memcpy(running->err + stays, data + size - kept, kept);
	running->n_err = stays + kept;
}

/* Reads what is there. */
static void running_read(struct running *running, int end)
{
	char data[65536];
	ssize_t n = 1;

	while (n > 0 && running->fds[end] >= 0) {
		n = read(running->fds[end], data, sizeof(data));
		if (n > 0 && end == END_ERR)
			err_add(running, data, (size_t)n);
		else if (n > 0 && out_add(running, data, (size_t)n) && !running->told)
			running_end(running);
		else if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			running_close(running, end);
	}
}

/* Arguments that nobody reads are no error. */
static void running_write(struct running *running)
{
	struct lair_text text = lair_text(running->arguments);
	ssize_t n = -1;

	if (running->written < text.size)
		n = write(running->fds[END_IN], text.data + running->written, text.size - running->written);
	if (n > 0)
		running->written += (size_t)n;
	if (running->written >= text.size || (n < 0 && errno != EAGAIN && errno != EINTR))
		running_close(running, END_IN);
}

/* ---- the answer ---- */

static struct lair_text trimmed(const char *data, size_t size)
{
	while (size > 0 && strchr(" \t\r\n", data[size - 1]))
		size--;
	while (size > 0 && strchr(" \t\r\n", *data)) {
		data++;
		size--;
	}
	return (struct lair_text){.data = data ? data : "", .size = size};
}

/* What is said of its end; the caller's to free. */
static char *words_of(const struct running *running, int status)
{
	struct lair_text said = trimmed(running->err, running->n_err);
	_cleanup_(freep) char *owned = NULL;
	char *text = NULL;
	int n;

	if (text_mend(&said, &owned))
		return NULL;
	if (running->too_much)
		n = asprintf(&text, "%s wrote more than %zu MiB", running->command->name, OUT_MAX >> 20);
	else if (said.size > 0)
		n = asprintf(&text, "%.*s", (int)said.size, said.data);
	else if (WIFSIGNALED(status))
		n = asprintf(&text, "%s was killed by signal %d", running->command->name, WTERMSIG(status));
	else
		n = asprintf(&text, "%s exited with status %d", running->command->name, WEXITSTATUS(status));
	return n < 0 ? NULL : text;
}

static void answer_value(struct running *running)
{
	struct lair_text value = trimmed(running->out.data, running->out.size);
	char shown[SHOWN_MAX], text[SHOWN_MAX + 256];
	int r;

	r = lair_return(running->calling, value.size ? value : lair_text("null"));
	if (!r) {
		running->calling = NULL;
		return;
	}
	snprintf(text, sizeof(text), "%s wrote what is no JSON: %s", running->command->name,
		 text_tamed(shown, sizeof(shown), value));
	answer_error(running, "ValueError", text);
}

static void report_held(struct running *running, const char *why)
{
	if (lair_hold(running->calling, why))
		return;
	cli_notice("%s is put aside: %s. lair calls shows it, lair answer answers it", running->command->name, why);
	running->calling = lair_calling_free(running->calling);
}

static void running_answer(struct running *running, int status)
{
	_cleanup_(freep) char *words = words_of(running, status);
	bool exited = WIFEXITED(status) && !running->too_much;

	if (!running->calling)
		return;
	if (exited && WEXITSTATUS(status) == STATUS_HOLD)
		report_held(running, words ? words : "");
	else if (exited && WEXITSTATUS(status) == 0)
		answer_value(running);
	else
		answer_error(running, "FunctionError", words ? words : "out of memory");
	/* What it said although it went well is for the person. */
	if (exited && WEXITSTATUS(status) == 0 && running->n_err > 0)
		(void)write_all(STDERR_FILENO, (struct lair_text){running->err, running->n_err});
}

/* It has ended, though something that it has started may live on. */
static void running_reap(struct commands *commands, struct running *running)
{
	int status = 0;

	if (waitpid(running->pid, &status, WNOHANG) == 0)
		return;
	running_read(running, END_OUT);
	running_read(running, END_ERR);
	running_answer(running, status);
	running_free(commands, running);
	start_those_that_can(commands);
}

static void on_in(struct event_source *source, uint32_t events)
{
	running_write(container_of(source, struct running, sources[END_IN]));
}

static void on_out(struct event_source *source, uint32_t events)
{
	running_read(container_of(source, struct running, sources[END_OUT]), END_OUT);
}

static void on_err(struct event_source *source, uint32_t events)
{
	running_read(container_of(source, struct running, sources[END_ERR]), END_ERR);
}

static void on_exit_of(struct event_source *source, uint32_t events)
{
	struct running *running = container_of(source, struct running, sources[END_EXIT]);

	running_reap(running->commands, running);
}

static void on_grace(struct timer *timer)
{
	struct running *running = container_of(timer, struct running, grace);

	running_end(running);
	running_reap(running->commands, running);
}

/* ---- a source ---- */

/* As they came, if there are no defaults, or numbers that jansson does not know. */
static char *arguments_of(const struct command *command, struct lair_calling *calling)
{
	struct lair_text given = lair_calling_arguments(calling);
	json_t *all = NULL;
	char *text;

	if (json_object_size(command->defaults) > 0 && given.data)
		all = json_loadb(given.data, given.size, JSON_ALLOW_NUL, NULL);
	if (!all)
		return given.data ? strdup(given.data) : NULL;
	(void)json_object_update_missing(all, command->defaults);
	text = json_dumps(all, 0);
	json_decref(all);
	return text;
}

static struct running *running_new(struct commands *commands, struct lair_calling *calling)
{
	const char *name = lair_calling_function(calling).data;
	struct running *running = calloc(1, sizeof(*running));

	for (size_t i = 0; running && i < commands->n; i++)
		if (strcmp(commands->commands[i].name, name) == 0)
			running->command = &commands->commands[i];
	if (running && running->command)
		running->arguments = arguments_of(running->command, calling);
	if (!running || !running->arguments) {
		free(running);
		return NULL;
	}
	for (int end = 0; end < N_ENDS; end++) {
		running->fds[end] = -1;
		running->sources[end] = EVENT_SOURCE_NONE;
	}
	running->commands = commands;
	running->calling = calling;
	running->number = lair_calling_number(calling);
	return running;
}

static void on_call(struct source *source, struct lair_calling *calling)
{
	struct commands *commands = (struct commands *)source;
	struct running *running = running_new(commands, calling), **place = &commands->first;

	if (!running) {
		if (lair_raise(calling, "MemoryError", "lair has no memory for the call"))
			lair_calling_free(calling);
		return;
	}
	while (*place)
		place = &(*place)->next;
	*place = running;
	start_those_that_can(commands);
}

static void on_cancel(struct source *source, uint64_t number)
{
	struct commands *commands = (struct commands *)source;

	for (struct running *running = commands->first; running; running = running->next) {
		if (running->number != number || !running->calling)
			continue;
		running->calling = lair_calling_free(running->calling);
		if (running->started)
			running_end(running);
		else
			running_free(commands, running);
		break;
	}
}

static void on_end(struct source *source)
{
	struct commands *commands = (struct commands *)source;
	struct running *running, *next;

	for (running = commands->first; running; running = next) {
		next = running->next;
		running->calling = lair_calling_free(running->calling);
		if (!running->started)
			running_free(commands, running);
		else if (!running->told)
			running_end(running);
	}
	while (commands->first && !event_round(commands->loop, -1))
		;
}

static void on_free(struct source *source)
{
	struct commands *commands = (struct commands *)source;

	on_end(source);
	for (size_t i = 0; i < commands->n; i++) {
		free(commands->commands[i].name);
		free(commands->commands[i].text);
		json_decref(commands->commands[i].defaults);
	}
	free(commands);
}

/* ---- what is offered ---- */

static int command_add(struct commands *commands, struct offer *offer, const struct cli *cli, const char *text)
{
	_cleanup_(signature_deinit) struct signature signature;
	struct command *command = &commands->commands[commands->n];
	char why[256];
	int r = signature_parse(&signature, text, why);

	if (r == -EINVAL)
		return cli_usage(cli, "--function: %s", why);
	if (!r)
		r = offer_add(offer, &commands->source,
			      &(struct lair_function){.name = signature.name, .schema = signature.schema});
	if (r == -EEXIST)
		return cli_usage(cli, "--function: two functions are called %s", signature.name);
	if (!r) {
		*command = (struct command){strdup(signature.name), strdup(signature.command),
					    json_incref(signature.defaults)};
		commands->n++;
		r = command->name && command->text ? 0 : -ENOMEM;
	}
	return r ? cli_fail(cli, "error", "%s", strerror(-r)) : 0;
}

int commands_offer(struct offer *offer, const struct cli *cli)
{
	struct commands *commands = calloc(1, sizeof(*commands));
	int r = 0;

	if (!commands)
		return cli_fail(cli, "error", "out of memory");
	commands->source = (struct source){
		.call = on_call,
		.cancel = on_cancel,
		.end = on_end,
		.free = on_free,
	};
	commands->loop = cli->loop;
	offer_source(offer, &commands->source);
	for (size_t i = 0; !r && i < cli->functions.n; i++)
		r = command_add(commands, offer, cli, cli->functions.items[i]);
	return r;
}
