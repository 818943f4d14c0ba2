/* Servers over stdio. Between a server and its owner stands a guard: a process that does nothing but wait. It leads
 * the server's session and process group, and when its owner dies, however that happens, or tells it to, it ends
 * all of the group. A server whose input has ended gets a moment to end by itself, then SIGTERM and another moment,
 * then SIGKILL. */
#include "upstream.h"

#include "base/lines.h"
#include "base/outbox.h"
#include "base/text.h"

#include "proto/clock.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define GRACE_SECONDS 1
/* While so much waits to be read by a server, it gets no more calls. */
#define OUTBOX_MAX ((size_t)64 << 20)
#define READS_A_TURN 16

struct process {
	struct process *next;
	struct servers *servers;
	struct upstream *upstream; /* NULL: it was given up */
	pid_t guard;
	bool ended;
	int status;
	int pidfd, err_fd;
	struct event_source exit, out, err, in;
	struct lines input;   /* its stdout */
	struct outbox outbox; /* its stdin */
	char said[TEXT_END_SIZE];
	size_t n_said;
};

/* ---- the guard, and the server ---- */

struct launch {
	char **argv, **envp, *cwd;
	int in, out, err;
	pid_t owner;
};

static _Noreturn void server_run(const struct launch *launch, pid_t guard)
{
	static const int usual[] = {SIGPIPE, SIGCHLD, SIGINT, SIGTERM, SIGHUP};
	sigset_t none;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != guard)
		_exit(1);
	for (size_t i = 0; i < ARRAY_SIZE(usual); i++)
		(void)signal(usual[i], SIG_DFL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (launch->cwd && chdir(launch->cwd) < 0)
		dprintf(STDERR_FILENO, "%s: %s\n", launch->cwd, strerror(errno));
	else
		execvpe(launch->argv[0], launch->argv, launch->envp);
	dprintf(STDERR_FILENO, "%s: %s\n", launch->argv[0], strerror(errno));
	_exit(127);
}

/* Whether the server has ended, if that happens within the grace. */
static bool ended_within_grace(const sigset_t *set, pid_t server, int *statusp)
{
	struct timespec grace = {.tv_sec = GRACE_SECONDS};
	int signal_no;

	do {
		if (waitpid(server, statusp, WNOHANG) == server)
			return true;
		signal_no = sigtimedwait(set, NULL, &grace);
	} while (signal_no == SIGCHLD);
	return false;
}

static _Noreturn void guard_run(const struct launch *launch)
{
	pid_t self, server;
	int status = 0;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGINT);
	(void)sigprocmask(SIG_SETMASK, &set, NULL);
	(void)signal(SIGCHLD, SIG_DFL);
	(void)setsid();
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	self = getpid();
	if (getppid() != launch->owner || dup2(launch->in, 0) < 0 || dup2(launch->out, 1) < 0 ||
	    dup2(launch->err, 2) < 0 || syscall(SYS_close_range, 3, ~0U, 0) < 0)
		_exit(126);
	server = fork();
	if (server < 0)
		_exit(126);
	if (server == 0)
		server_run(launch, self);
	(void)syscall(SYS_close_range, 0, ~0U, 0);
	for (;;) {
		int signal_no = sigwaitinfo(&set, NULL);

		if (waitpid(server, &status, WNOHANG) == server)
			break;
		if (signal_no < 0 || signal_no == SIGCHLD)
			continue;
		if (ended_within_grace(&set, server, &status))
			break;
		(void)kill(-self, SIGTERM); /* blocked here */
		if (ended_within_grace(&set, server, &status))
			break;
		(void)kill(-self, SIGKILL);
	}
	/* Processes that it has left behind. */
	(void)kill(-self, SIGTERM);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

/* ---- arguments and environment ---- */

static char **texts_free(char **texts)
{
	for (size_t i = 0; texts && texts[i]; i++)
		free(texts[i]);
	free(texts);
	return NULL;
}

static void texts_freep(char ***textsp)
{
	*textsp = texts_free(*textsp);
}

/* The command and its arguments, with references to the environment replaced. */
static int argv_make(char ***argvp, const json_t *entry, char **whyp)
{
	const json_t *args = json_object_get(entry, "args");
	size_t n = json_array_size(args);
	char **argv = calloc(n + 2, sizeof(*argv));
	int r;

	*argvp = argv;
	if (!argv)
		return -ENOMEM;
	r = config_expand(&argv[0], json_string_value(json_object_get(entry, "command")), whyp);
	for (size_t i = 0; !r && i < n; i++)
		r = config_expand(&argv[i + 1], json_string_value(json_array_get(args, i)), whyp);
	return r;
}

/* A server gets of its owner's environment what programs need, and nothing that may be a secret: those it is given
 * by name. */
static const char *const inherited[] = {
	"HOME",
	"LANG",
	"LC_ALL",
	"LC_CTYPE",
	"LOGNAME",
	"NO_PROXY",
	"PATH",
	"SHELL",
	"SSL_CERT_DIR",
	"SSL_CERT_FILE",
	"TERM",
	"TMPDIR",
	"TZ",
	"USER",
	"HTTP_PROXY",
	"HTTPS_PROXY",
	"http_proxy",
	"https_proxy",
	"no_proxy",
	"NODE_EXTRA_CA_CERTS",
	"XDG_CACHE_HOME",
	"XDG_CONFIG_HOME",
	"XDG_DATA_HOME",
	"XDG_RUNTIME_DIR",
	"XDG_STATE_HOME",
};

static char *setting(const char *name, const char *value)
{
	char *text = NULL;

	return asprintf(&text, "%s=%s", name, value) < 0 ? NULL : text;
}

static int envp_make(char ***envpp, const json_t *entry, char **whyp)
{
	json_t *env = json_object_get(entry, "env"), *value;
	char **envp = calloc(ARRAY_SIZE(inherited) + json_object_size(env) + 1, sizeof(*envp));
	const char *name;
	size_t n = 0;
	int r = 0;

	*envpp = envp;
	if (!envp)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(inherited); i++)
		if (getenv(inherited[i]) && !json_object_get(env, inherited[i]) &&
		    !(envp[n++] = setting(inherited[i], getenv(inherited[i]))))
			return -ENOMEM;
	json_object_foreach(env, name, value)
	{
		_cleanup_(freep) char *expanded = NULL;

		r = config_expand(&expanded, json_string_value(value), whyp);
		if (r || !(envp[n++] = setting(name, expanded)))
			return r ? r : -ENOMEM;
	}
	return 0;
}

/* ---- starting ---- */

struct pipes {
	int in[2], out[2], err[2];
};

static void pipes_close(struct pipes *pipes)
{
	int *each[] = {pipes->in, pipes->out, pipes->err};

	for (size_t i = 0; i < ARRAY_SIZE(each); i++) {
		each[i][0] = fd_close(each[i][0]);
		each[i][1] = fd_close(each[i][1]);
	}
}

static int pipes_make(struct pipes *pipes)
{
	*pipes = (struct pipes){{-1, -1}, {-1, -1}, {-1, -1}};
	if (pipe2(pipes->in, O_CLOEXEC) < 0 || pipe2(pipes->out, O_CLOEXEC) < 0 ||
	    pipe2(pipes->err, O_CLOEXEC) < 0 || fcntl(pipes->in[1], F_SETFL, O_NONBLOCK) < 0 ||
	    fcntl(pipes->out[0], F_SETFL, O_NONBLOCK) < 0 || fcntl(pipes->err[0], F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

static void on_out(struct event_source *source, uint32_t events);
static void on_err(struct event_source *source, uint32_t events);
static void on_in(struct event_source *source, uint32_t events);
static void on_exit_of(struct event_source *source, uint32_t events);

static struct process *process_new(struct upstream *upstream, struct pipes *pipes, pid_t guard, int pidfd)
{
	struct process *process = calloc(1, sizeof(*process));

	if (!process)
		return NULL;
	process->servers = upstream->servers;
	process->upstream = upstream;
	process->guard = guard;
	process->exit = process->out = process->err = process->in = EVENT_SOURCE_NONE;
	process->pidfd = pidfd;
	process->err_fd = steal_fd(&pipes->err[0]);
	lines_init(&process->input, steal_fd(&pipes->out[0]));
	process->input.size_max = MESSAGE_SIZE_MAX;
	outbox_init(&process->outbox, steal_fd(&pipes->in[1]));
	process->next = process->servers->processes;
	process->servers->processes = process;
	upstream->process = process;
	return process;
}

static int process_watch(struct process *process)
{
	struct event_loop *loop = process->servers->options.loop;
	int r = event_add(loop, &process->exit, process->pidfd, EPOLLIN, on_exit_of);

	if (!r)
		r = event_add(loop, &process->out, process->input.fd, EPOLLIN, on_out);
	if (!r)
		r = event_add(loop, &process->err, process->err_fd, EPOLLIN, on_err);
	if (!r)
		r = event_add(loop, &process->in, process->outbox.fd, EPOLLERR, on_in);
	return r;
}

static void unwatch(struct process *process, struct event_source *source)
{
	event_remove(process->servers->options.loop, source);
}

/* The guard's memory is a copy of this process's, of which it uses next to nothing: between fork and exec, only
 * what is safe in a process that had threads. */
static pid_t guard_start(const struct launch *launch, int *pidfdp)
{
	sigset_t all, before;
	pid_t guard;

	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	guard = fork();
	if (guard == 0)
		guard_run(launch);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	*pidfdp = guard < 0 ? -1 : (int)syscall(SYS_pidfd_open, guard, 0);
	return guard < 0 ? -errno : guard;
}

int process_start(struct upstream *upstream, char **whyp)
{
	const json_t *cwd = json_object_get(upstream->entry, "cwd");
	_cleanup_(texts_freep) char **argv = NULL, **envp = NULL;
	_cleanup_(pipes_close) struct pipes pipes = {{-1, -1}, {-1, -1}, {-1, -1}};
	_cleanup_(freep) char *directory = NULL;
	int r = argv_make(&argv, upstream->entry, whyp), pidfd;
	struct launch launch;
	pid_t guard;

	if (!r)
		r = envp_make(&envp, upstream->entry, whyp);
	if (!r && cwd)
		r = config_expand(&directory, json_string_value(cwd), whyp);
	if (!r)
		r = pipes_make(&pipes);
	if (r)
		return r;
	launch = (struct launch){argv, envp, directory, pipes.in[0], pipes.out[1], pipes.err[1], getpid()};
	guard = guard_start(&launch, &pidfd);
	if (guard < 0)
		return (int)guard;
	if (pidfd < 0 || !process_new(upstream, &pipes, guard, pidfd)) {
		(void)kill(guard, SIGTERM);
		fd_close(pidfd);
		return -ENOMEM;
	}
	return process_watch(upstream->process);
}

/* Its guard sees to it that it ends. */
static void guard_end(const struct process *process)
{
	if (!process->ended)
		(void)kill(process->guard, SIGTERM);
}

/* ---- its output ---- */

static void said_add(struct process *process, const char *data, size_t size)
{
	size_t n = MIN(size, sizeof(process->said)), keep = MIN(process->n_said, sizeof(process->said) - n);

	memmove(process->said, process->said + process->n_said - keep, keep);
	memcpy(process->said + keep, data + size - n, n);
	process->n_said = keep + n;
}

static void err_read(struct process *process)
{
	char data[4096];
	ssize_t n;

	for (unsigned i = 0; i < READS_A_TURN; i++) {
		n = read(process->err_fd, data, sizeof(data));
		if (n <= 0)
			break;
		said_add(process, data, (size_t)n);
	}
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		unwatch(process, &process->err);
}

static void on_err(struct event_source *source, uint32_t events)
{
	err_read(container_of(source, struct process, err));
}

void process_said(const struct process *process, char text[static TEXT_END_SIZE])
{
	size_t start = 0, n = 0;
	bool gap = false;

	/* A line that was cut is left out, if there is a whole one. */
	if (process->n_said == sizeof(process->said)) {
		const char *newline = memchr(process->said, '\n', process->n_said);

		start = newline && newline + 1 < process->said + process->n_said
				? (size_t)(newline - process->said) + 1
				: 0;
	}
	for (size_t i = start; i < process->n_said && n < TEXT_END_SIZE - 3; i++) {
		char c = process->said[i];

		if (strchr(" \t\r\n", c)) {
			gap = n > 0;
			continue;
		}
		if (gap)
			text[n++] = ' ';
		gap = false;
		text[n++] = c;
	}
	text[n] = '\0';
	(void)text_tame(text);
}

static void out_lines(struct process *process)
{
	struct lair_text line;
	int r;

	/* A message may be the end of it. */
	while (process->upstream && (r = lines_next(&process->input, &line)) != LINES_E_EMPTY) {
		if (r == LINES_E_EOF)
			return;
		if (!r)
			upstream_message(process->upstream, line);
		else
			upstream_lost(process->upstream, "it has sent a message that is too long");
	}
}

static void out_read(struct process *process)
{
	int r = 0;

	for (unsigned i = 0; i < READS_A_TURN && process->upstream && !process->input.eof; i++) {
		size_t before = process->input.end - process->input.start;

		r = lines_fill(&process->input);
		if (r || (process->input.end - process->input.start == before && !process->input.eof))
			break;
		out_lines(process);
	}
	if (!r && !process->input.eof)
		return;
	/* It will not answer any more; how it ends is told by its guard. */
	unwatch(process, &process->out);
	if (process->upstream && r)
		upstream_lost(process->upstream, strerror(-r));
	else
		guard_end(process);
}

static void on_out(struct event_source *source, uint32_t events)
{
	struct process *process = container_of(source, struct process, out);

	servers_touch(process->servers);
	out_read(process);
}

static void on_exit_of(struct event_source *source, uint32_t events)
{
	struct process *process = container_of(source, struct process, exit);
	char why[64];

	servers_touch(process->servers);
	unwatch(process, &process->exit);
	(void)waitpid(process->guard, &process->status, 0);
	process->ended = true;
	/* Its last output. */
	err_read(process);
	if (!process->input.eof)
		out_read(process);
	if (!process->upstream)
		return;
	snprintf(why, sizeof(why), "its program ended with status %d",
		 WIFEXITED(process->status) ? WEXITSTATUS(process->status) : 128 + WTERMSIG(process->status));
	upstream_lost(process->upstream, why);
}

/* ---- its input ---- */

static void in_flush(struct process *process)
{
	if (outbox_flush(&process->outbox))
		outbox_deinit(&process->outbox); /* it does not read: its guard will tell */
	event_change(process->servers->options.loop, &process->in,
		     outbox_waiting(&process->outbox) > 0 ? EPOLLOUT : EPOLLERR);
}

static void on_in(struct event_source *source, uint32_t events)
{
	struct process *process = container_of(source, struct process, in);

	if (events & EPOLLERR) {
		unwatch(process, &process->in);
		outbox_deinit(&process->outbox);
		guard_end(process);
	} else {
		in_flush(process);
	}
}

int process_send(struct process *process, json_t *document)
{
	if (outbox_waiting(&process->outbox) > OUTBOX_MAX) {
		json_decref(document);
		return -ENOBUFS;
	}
	if (outbox_add(&process->outbox, document))
		return -ENOMEM;
	in_flush(process);
	return 0;
}

/* ---- the end ---- */

void process_end(struct process *process)
{
	process->upstream = NULL;
	unwatch(process, &process->in);
	process->outbox.fd = fd_close(process->outbox.fd);
	outbox_deinit(&process->outbox);
	guard_end(process);
}

static void process_free(struct process *process)
{
	struct event_source *sources[] = {&process->in, &process->out, &process->err, &process->exit};

	for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
		unwatch(process, sources[i]);
	fd_close(process->outbox.fd);
	fd_close(process->input.fd);
	fd_close(process->err_fd);
	fd_close(process->pidfd);
	lines_deinit(&process->input);
	outbox_deinit(&process->outbox);
	free(process);
}

void process_sweep(struct servers *servers)
{
	struct process **at = &servers->processes, *process;

	while ((process = *at)) {
		if (process->ended && !process->upstream) {
			*at = process->next;
			process_free(process);
		} else {
			at = &process->next;
		}
	}
}

void process_abandon(struct servers *servers)
{
	struct process *process;

	while ((process = servers->processes)) {
		servers->processes = process->next;
		process_free(process);
	}
}
