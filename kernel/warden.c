/* The warden. Its invariant: when it says `exited`, nothing lives in the cage that is not descended from a living
 * interpreter. What an interpreter leaves behind becomes a child of the warden (pid 1 of the cage's own pid
 * namespace, or else a child subreaper), and a child of the warden that is no interpreter is killed, generation by
 * generation, until there is none. If that does not succeed soon, the warden ends, and the cage with it. */
#include <Python.h>

#include "warden.h"

#include "audit.h"
#include "fork.h"
#include "helpers.h"
#include "interpreter.h"
#include "output.h"
#include "proto/channel.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>

/* For the dead of one interpreter to be gone. */
#define BURIAL_MS 2000

struct interpreter {
	struct interpreter *next;
	uint64_t serial;
	pid_t pid; /* 0 once it has been reaped */
	int status;
	int64_t burial_deadline;
	int fds[INTERPRETER_FDS]; /* the pipes, for what it wrote and did not flush */
	struct output_shared *shared;
};

struct warden {
	struct cage *cage;
	int control, signals;
	FILE *children; /* of the host's /proc, opened before the cage forbade it; NULL where there is a better way
			 */
	struct interpreter *interpreters;
	char buffer[CHANNEL_SIZE_MAX];
	int fds[CHANNEL_FDS_MAX]; /* came with the message; what its handler does not take is closed */
};

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void interpreter_free(struct interpreter *interpreter)
{
	for (size_t i = 0; i < INTERPRETER_FDS; i++)
		fd_close(interpreter->fds[i]);
	output_shared_free(interpreter->shared);
	free(interpreter);
}

static struct interpreter *interpreter_find(struct warden *warden, uint64_t serial)
{
	struct interpreter *interpreter = warden->interpreters;

	while (interpreter && interpreter->serial != serial)
		interpreter = interpreter->next;
	return interpreter;
}

static struct interpreter *interpreter_of(struct warden *warden, pid_t pid)
{
	struct interpreter *interpreter = warden->interpreters;

	while (interpreter && interpreter->pid != pid)
		interpreter = interpreter->next;
	return interpreter;
}

/* The group first: that is what a terminal's Ctrl-C reaches, and system() waits with SIGINT ignored for its child.
 */
static void interpreter_signal(const struct interpreter *interpreter, int signal)
{
	if (interpreter->pid == 0)
		return;
	if (kill(-interpreter->pid, signal) < 0)
		(void)kill(interpreter->pid, signal);
}

/* ---- talking ---- */

/* The router always reads; if it is gone, so are we. */
static void say(struct warden *warden, const struct wire_schema *schema, const void *message)
{
	msgpack_sbuffer frame = {0};
	int r = wire_encode(&frame, schema, message);

	if (!r)
		r = channel_send(warden->control, wire_bytes(&frame), NULL, 0);
	msgpack_sbuffer_destroy(&frame);
	if (r)
		_exit(1);
}

static void say_failed(struct warden *warden, uint64_t serial, const char *reason)
{
	const struct failed_message failed = {.serial = serial, .reason = bytes_of(reason)};

	say(warden, &failed_message_schema, &failed);
}

static void say_ready(struct warden *warden, const struct cage_report *report)
{
	struct warden_ready ready = {.level = bytes_of(report->level)};
	msgpack_sbuffer guards = {0};

	wire_put_array(&guards, report->n_guards);
	for (size_t i = 0; i < report->n_guards; i++)
		wire_put_string(&guards, bytes_of(report->guards[i]));
	ready.guards = wire_bytes(&guards);
	say(warden, &warden_ready_schema, &ready);
	msgpack_sbuffer_destroy(&guards);
}

/* ---- burying ---- */

/* Another pid namespace's /proc, where no fresh one could be mounted, has other numbers for the same processes. */
static FILE *children_open(void)
{
	char pid[16] = "";

	if (readlink("/proc/self", pid, sizeof(pid) - 1) < 0 || atoi(pid) != getpid())
		return NULL;
	return fopen("/proc/thread-self/children", "re");
}

/* In a pid namespace the numbers of the host's /proc mean nothing, and there is either a /proc of our own or none.
 */
static void children_settle(struct warden *warden)
{
	if (!warden->children || getpid() != 1)
		return;
	fclose(warden->children);
	warden->children = NULL;
}

/* Kill the children that are no interpreters. Returns how many there were, -1 if they cannot be listed. */
static int strangers_kill(struct warden *warden)
{
	FILE *children = warden->children ? warden->children : children_open();
	int pid, n = 0;

	if (!children)
		return -1;
	rewind(children);
	while (fscanf(children, "%d", &pid) == 1) {
		if (pid <= 0 || interpreter_of(warden, pid))
			continue;
		(void)kill(pid, SIGKILL);
		n++;
	}
	if (!warden->children)
		fclose(children);
	return n;
}

static void reap(struct warden *warden)
{
	struct interpreter *interpreter;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		interpreter = interpreter_of(warden, pid);
		if (!interpreter)
			continue;
		/* Its group may still live; nobody can have joined the number since. */
		(void)kill(-pid, SIGKILL);
		interpreter->pid = 0;
		interpreter->status = status;
		interpreter->burial_deadline = now_ms() + BURIAL_MS;
	}
}

/* Whether anything may still live that no living interpreter answers for. */
static bool strangers_live(struct warden *warden)
{
	int n = strangers_kill(warden);

	if (n >= 0)
		return n > 0;
	/* Without /proc there is only this to know, and only when no interpreter lives. */
	for (struct interpreter *other = warden->interpreters; other; other = other->next)
		if (other->pid != 0)
			return false;
	return waitpid(-1, NULL, WNOHANG) >= 0;
}

/* Say `exited` for the dead once what they left is dead too. Returns whether some still wait for that. */
static bool bury(struct warden *warden)
{
	struct interpreter **slot = &warden->interpreters, *dead;
	bool live = false, checked = false;

	while ((dead = *slot)) {
		if (dead->pid != 0) {
			slot = &dead->next;
			continue;
		}
		if (!checked)
			live = strangers_live(warden);
		checked = true;
		if (live) {
			if (now_ms() > dead->burial_deadline)
				_exit(1);
			return true;
		}
		output_salvage(dead->shared, dead->fds[INTERPRETER_STDOUT], dead->fds[INTERPRETER_STDERR]);
		say(warden, &exited_message_schema,
		    &(struct exited_message){.serial = dead->serial, .status = (uint64_t)dead->status});
		*slot = dead->next;
		interpreter_free(dead);
	}
	return false;
}

/* ---- what the router asks for ---- */

static void fork_interpreter(struct warden *warden, struct interpreter *interpreter)
{
	pid_t pid = fork_python();

	if (pid == 0)
		interpreter_run(interpreter->fds, interpreter->shared, warden->cage);
	if (pid < 0) {
		say_failed(warden, interpreter->serial, strerror(-pid));
		interpreter_free(interpreter);
		return;
	}
	setpgid(pid, pid); /* as the child does: whoever comes first */
	interpreter->pid = pid;
	interpreter->next = warden->interpreters;
	warden->interpreters = interpreter;
	interpreter->fds[INTERPRETER_CHANNEL] = fd_close(interpreter->fds[INTERPRETER_CHANNEL]);
	say(warden, &spawned_message_schema, &(struct spawned_message){.serial = interpreter->serial});
}

static void handle_spawn(struct warden *warden, const void *decoded)
{
	const struct spawn_message *spawn = decoded;
	struct interpreter *interpreter;

	if (interpreter_find(warden, spawn->serial)) {
		say_failed(warden, spawn->serial, "there is an interpreter of that serial");
		return;
	}
	interpreter = calloc(1, sizeof(*interpreter));
	if (interpreter)
		interpreter->shared = output_shared_new();
	if (!interpreter || !interpreter->shared) {
		free(interpreter);
		say_failed(warden, spawn->serial, "out of memory");
		return;
	}
	interpreter->serial = spawn->serial;
	for (size_t i = 0; i < INTERPRETER_FDS; i++)
		interpreter->fds[i] = steal_fd(&warden->fds[i]);
	fork_interpreter(warden, interpreter);
}

static void handle_signal(struct warden *warden, const void *decoded)
{
	const struct signal_message *message = decoded;
	struct interpreter *interpreter = interpreter_find(warden, message->serial);

	if (interpreter && message->signal > 0 && message->signal < NSIG)
		interpreter_signal(interpreter, (int)message->signal);
	say(warden, &signalled_message_schema, &(struct signalled_message){.serial = message->serial});
}

static const struct handler {
	const struct wire_schema *schema;
	size_t n_fds;
	void (*handle)(struct warden *warden, const void *decoded);
} handlers[] = {
	{&spawn_message_schema, INTERPRETER_FDS, handle_spawn},
	{&signal_message_schema, 0, handle_signal},
};

/* Whether the message could be understood. */
static bool dispatch(struct warden *warden, struct bytes data, size_t n_fds)
{
	union {
		struct spawn_message spawn;
		struct signal_message signal;
	} decoded;
	struct wire_frame frame;
	struct wire_fault fault;

	if (wire_open(&frame, data))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(handlers); i++) {
		const struct handler *handler = &handlers[i];

		if (!bytes_is(frame.type, handler->schema->type))
			continue;
		if (n_fds != handler->n_fds || wire_decode(&decoded, handler->schema, frame.body, &fault))
			return false;
		handler->handle(warden, &decoded);
		return true;
	}
	return false;
}

/* Returns false when the pair is closed, or speaks nonsense. */
static bool serve_control(struct warden *warden)
{
	struct bytes data;
	size_t n_fds;
	bool understood;

	if (channel_recv(warden->control, warden->buffer, sizeof(warden->buffer), &data, warden->fds, &n_fds))
		return false;
	understood = dispatch(warden, data, n_fds);
	for (size_t i = 0; i < n_fds; i++)
		fd_closep(&warden->fds[i]);
	return understood;
}

/* ---- the life of one ---- */

static bool children_left(void)
{
	siginfo_t child;

	return waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static void warden_end(struct warden *warden)
{
	int64_t deadline = now_ms() + BURIAL_MS;
	int n;

	for (struct interpreter *interpreter = warden->interpreters; interpreter; interpreter = interpreter->next)
		interpreter_signal(interpreter, SIGKILL);
	do {
		reap(warden);
		n = strangers_kill(warden);
		poll(NULL, 0, n > 0 || children_left() ? 1 : 0);
	} while ((n > 0 || children_left()) && now_ms() < deadline);
	_exit(0);
}

static void serve(struct warden *warden)
{
	struct pollfd events[] = {
		{.fd = warden->control, .events = POLLIN},
		{.fd = warden->signals, .events = POLLIN},
	};
	struct signalfd_siginfo information;
	bool burying = false;

	for (;;) {
		if (poll(events, ARRAY_SIZE(events), burying ? 1 : -1) < 0 && errno != EINTR)
			return;
		while (read(warden->signals, &information, sizeof(information)) > 0)
			;
		reap(warden);
		burying = bury(warden);
		if (events[0].revents && !serve_control(warden))
			return;
	}
}

static int signals_open(sigset_t *children)
{
	sigemptyset(children);
	sigaddset(children, SIGCHLD);
	return signalfd(-1, children, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* The directory is the workspace now, by whatever path it is seen in here. */
static int move_in(void)
{
	char workspace[PATH_MAX];
	PyObject *done;

	if (!getcwd(workspace, sizeof(workspace)) || audit_arm(workspace) < 0)
		return -1;
	done = PyObject_CallFunction(helper(HELPER_MOVE_IN), "s", workspace);
	Py_XDECREF(done);
	return done ? 0 : -1;
}

void warden_run(struct cage *cage, const char *workspace, int control)
{
	static struct warden warden;
	struct cage_report report = {0};
	sigset_t children;

	prctl(PR_SET_NAME, "lair-warden");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	warden.cage = cage;
	warden.control = control;
	warden.signals = signals_open(&children);
	warden.children = fopen("/proc/thread-self/children", "re");
	if (warden.signals < 0)
		_exit(1);
	if (cage_enter(cage, workspace,
		       (const int[]){control, warden.signals, warden.children ? fileno(warden.children) : -1, -1},
		       &report) < 0) {
		say_failed(&warden, 0, report.reason);
		_exit(1);
	}
	children_settle(&warden);
	sigprocmask(SIG_BLOCK, &children, NULL);
	if (move_in() < 0) {
		say_failed(&warden, 0, "the interpreter cannot be set up in the cage");
		_exit(1);
	}
	say_ready(&warden, &report);
	serve(&warden);
	warden_end(&warden);
	_exit(0);
}
