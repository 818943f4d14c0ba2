/* The warden. A process that an interpreter leaves behind becomes a child of the warden, which is pid 1 of the
 * cage's pid namespace, or else a child subreaper. A `sweep` kills all its children but the interpreters that it
 * knows, generation by generation, until there are none; only then is it answered. The warden knows the
 * interpreters that it has forked. Frozen copies and their forks are its children, too; `adopt` makes them
 * known. If a sweep does not succeed soon, the warden ends, and the cage with it. Before it ends, because nobody
 * listens any more or because it is told to, it kills all its children in the same way: without a pid namespace
 * they would live on. */
#include <Python.h>

#include "warden.h"

#include "interpreter/artifacts.h"

#include "base/fork.h"
#include "base/helpers.h"
#include "interpreter/interpreter.h"
#include "proto/clock.h"
#include "proto/link.h"
#include "refusal/policy.h"
#include "survey.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

/* For what is swept to be gone. */
#define SWEEP_MS 2000
/* Files looked at between two looks at the control pair: some milliseconds. */
#define SURVEY_ENTRIES 2000
/* Dead strangers remembered. Numbers are given out in turn, so none is another's while it is among so few. */
#define STRANGERS 64

struct interpreter {
	struct interpreter *next;
	uint64_t serial;
	pid_t pid;
};

/* One that died while the warden did not know it: it may have been a copy's child, on its way to be adopted. */
struct stranger {
	pid_t pid; /* 0: none */
	int status;
};

struct warden {
	struct cage *cage;
	int control, signals;
	uint64_t sent, received; /* the numbers of the last messages on the pair */
	bool ending;		 /* nobody listens any more */
	int children; /* of the host's /proc, opened before the cage forbade it; -1 where there is a better way */
	struct interpreter *interpreters;
	struct stranger strangers[STRANGERS]; /* the last ones, the oldest is overwritten */
	size_t n_strangers;
	uint64_t sweep_deadline; /* 0: none is under way */
	const char *workspace;
	struct survey survey;
	bool surveying;
	uint64_t survey_ns; /* of a processor */
	char buffer[CHANNEL_SIZE_MAX];
	int fds[CHANNEL_FDS_MAX]; /* came with the message; what its handler does not take is closed */
};

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

/* To the group: that is what a terminal's Ctrl-C reaches, and system() waits with SIGINT ignored for its child. But
 * a copy that has just been forked is in its original's group until it first runs, so what kills goes to one alone;
 * what that leaves is for a sweep. */
static void interpreter_signal(const struct interpreter *interpreter, int signal)
{
	if (signal == SIGKILL || kill(-interpreter->pid, signal) < 0)
		(void)kill(interpreter->pid, signal);
}

/* ---- talking ---- */

static _Noreturn void warden_end(struct warden *warden);

/* The router always reads; if it is gone, so are we, but not before what lives in here. */
static void say(struct warden *warden, const struct wire_schema *schema, const void *message)
{
	static const char room[LINK_HEADER];
	msgpack_sbuffer datagram = {0};
	int r;

	if (warden->ending)
		return;
	r = msgpack_sbuffer_write(&datagram, room, sizeof(room)) ? -ENOMEM : 0;
	if (!r)
		r = wire_encode(&datagram, schema, message);
	if (!r) {
		link_pack(datagram.data, &(struct link_header){.number = ++warden->sent});
		r = channel_send(warden->control, wire_bytes(&datagram), NULL, 0);
	}
	msgpack_sbuffer_destroy(&datagram);
	if (r)
		warden_end(warden);
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

/* ---- the dead, and what they leave ---- */

/* Another pid namespace's /proc, where no fresh one could be mounted, has other numbers for the same processes. */
static int children_open(void)
{
	char pid[16] = "";

	if (readlink("/proc/self", pid, sizeof(pid) - 1) < 0 || atoi(pid) != getpid())
		return -1;
	return open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
}

/* In a pid namespace the numbers of the host's /proc mean nothing, and there is either a /proc of our own or none.
 */
static void children_settle(struct warden *warden)
{
	if (getpid() == 1)
		warden->children = fd_close(warden->children);
}

/* Kill the children that are no interpreters. Returns how many there were, -1 if they cannot be listed. More than
 * fit are for the next time; a number that is cut off is not one. */
static int strangers_kill(struct warden *warden)
{
	_cleanup_(fd_closep) int fresh = warden->children < 0 ? children_open() : -1;
	char text[8192], *at = text, *end;
	ssize_t size;
	int n = 0;

	size = pread(fresh < 0 ? warden->children : fresh, text, sizeof(text) - 1, 0);
	if (size < 0)
		return -1;
	text[size] = '\0';
	for (long pid; (pid = strtol(at, &end, 10)) > 0 && *end == ' '; at = end) {
		if (interpreter_of(warden, (pid_t)pid))
			continue;
		(void)kill((pid_t)pid, SIGKILL);
		n++;
	}
	return n;
}

static void interpreter_remove(struct warden *warden, struct interpreter *interpreter)
{
	struct interpreter **slot = &warden->interpreters;

	while (*slot != interpreter)
		slot = &(*slot)->next;
	*slot = interpreter->next;
	free(interpreter);
}

static void stranger_remember(struct warden *warden, pid_t pid, int status)
{
	warden->strangers[warden->n_strangers++ % STRANGERS] = (struct stranger){.pid = pid, .status = status};
}

/* How it died. One that is forgotten, or never was a child of ours, might as well have been killed. */
static int stranger_status(struct warden *warden, pid_t pid)
{
	for (size_t i = 0; i < STRANGERS; i++) {
		if (warden->strangers[i].pid != pid)
			continue;
		warden->strangers[i].pid = 0;
		return warden->strangers[i].status;
	}
	return SIGKILL;
}

static void say_exited(struct warden *warden, uint64_t serial, int status)
{
	say(warden, &exited_message_schema, &(struct exited_message){.serial = serial, .status = (uint64_t)status});
}

static void reap(struct warden *warden)
{
	struct interpreter *interpreter;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		interpreter = interpreter_of(warden, pid);
		if (!interpreter) {
			stranger_remember(warden, pid, status);
			continue;
		}
		say_exited(warden, interpreter->serial, status);
		interpreter_remove(warden, interpreter);
	}
}

/* Whether anything may still live that no interpreter answers for. */
static bool strangers_live(struct warden *warden)
{
	int n = strangers_kill(warden);

	if (n >= 0)
		return n > 0;
	/* Without /proc there is only this to know, and only when no interpreter lives. */
	return !warden->interpreters && waitpid(-1, NULL, WNOHANG) >= 0;
}

static void sweep(struct warden *warden)
{
	if (!warden->sweep_deadline)
		return;
	if (!strangers_live(warden)) {
		warden->sweep_deadline = 0;
		say(warden, &swept_message_schema, &(struct swept_message){0});
	} else if (clock_ms() > warden->sweep_deadline) {
		_exit(1);
	}
}

/* ---- what the router asks for ---- */

/* From now on its death is told, and a sweep spares it. */
static int interpreter_add(struct warden *warden, uint64_t serial, pid_t pid)
{
	struct interpreter *interpreter = calloc(1, sizeof(*interpreter));

	if (!interpreter)
		return -ENOMEM;
	interpreter->serial = serial;
	interpreter->pid = pid;
	interpreter->next = warden->interpreters;
	warden->interpreters = interpreter;
	setpgid(pid, pid); /* as it does itself: whoever comes first */
	return 0;
}

static void handle_spawn(struct warden *warden, const void *decoded)
{
	const struct spawn_message *spawn = decoded;
	pid_t pid = interpreter_find(warden, spawn->serial) ? -EEXIST : fork_python();
	int r;

	if (pid == 0)
		interpreter_run(warden->fds, warden->cage, spawn->directory);
	r = pid < 0 ? pid : interpreter_add(warden, spawn->serial, pid);
	if (r)
		say_failed(warden, spawn->serial, strerror(-r));
	else
		say(warden, &spawned_message_schema,
		    &(struct spawned_message){.serial = spawn->serial, .pid = (uint64_t)pid});
}

/* The number comes from a hostile process: it must be a child of ours that is none yet, or was one and has died as
 * a stranger. */
static void handle_adopt(struct warden *warden, const void *decoded)
{
	const struct adopt_message *adopt = decoded;
	pid_t pid = (pid_t)adopt->pid;
	siginfo_t child;

	if (pid <= 0 || interpreter_of(warden, pid) || interpreter_find(warden, adopt->serial) ||
	    waitid(P_PID, (id_t)pid, &child, WEXITED | WNOHANG | WNOWAIT) < 0 ||
	    interpreter_add(warden, adopt->serial, pid))
		say_exited(warden, adopt->serial, pid > 0 ? stranger_status(warden, pid) : SIGKILL);
}

static void handle_sweep(struct warden *warden, const void *decoded)
{
	(void)decoded;
	warden->sweep_deadline = clock_ms() + SWEEP_MS;
	sweep(warden);
}

static void handle_survey(struct warden *warden, const void *decoded)
{
	const struct survey_message *message = decoded;

	survey_begin(&warden->survey, warden->workspace, message->size, message->files);
	warden->surveying = true;
	warden->survey_ns = 0;
}

static void survey(struct warden *warden)
{
	const struct survey *found = &warden->survey;
	uint64_t before;

	if (!warden->surveying)
		return;
	before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	warden->surveying = !survey_step(&warden->survey, SURVEY_ENTRIES);
	warden->survey_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
	if (warden->surveying)
		return;
	say(warden, &surveyed_message_schema,
	    &(struct surveyed_message){
		    .size = found->size,
		    .files = found->files,
		    .blind = found->blind,
		    .worked = warden->survey_ns / 1000,
	    });
}

static void handle_signal(struct warden *warden, const void *decoded)
{
	const struct signal_message *message = decoded;
	struct interpreter *interpreter = interpreter_find(warden, message->serial);

	if (interpreter && message->signal > 0 && message->signal < NSIG)
		interpreter_signal(interpreter, (int)message->signal);
	say(warden, &signalled_message_schema, &(struct signalled_message){.serial = message->serial});
}

static void handle_discard(struct warden *warden, const void *decoded)
{
	const struct discard_message *discard = decoded;
	struct interpreter *interpreter = interpreter_find(warden, discard->serial);

	if (!interpreter)
		return;
	interpreter_signal(interpreter, SIGKILL);
	interpreter_remove(warden, interpreter);
}

static const struct handler {
	const struct wire_schema *schema;
	size_t n_fds;
	void (*handle)(struct warden *warden, const void *decoded);
} handlers[] = {
	{&spawn_message_schema, INTERPRETER_FDS, handle_spawn},
	{&signal_message_schema, 0, handle_signal},
	{&discard_message_schema, 0, handle_discard},
	{&adopt_message_schema, 0, handle_adopt},
	{&sweep_message_schema, 0, handle_sweep},
	{&survey_message_schema, 0, handle_survey},
};

/* Whether the message could be understood. */
static bool dispatch(struct warden *warden, struct bytes data, size_t n_fds)
{
	union {
		struct spawn_message spawn;
		struct signal_message signal;
		struct discard_message discard;
		struct adopt_message adopt;
		struct sweep_message sweep;
		struct survey_message survey;
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
	struct link_header header;
	struct bytes data, frame;
	bool understood;
	size_t n_fds;

	if (channel_recv(warden->control, warden->buffer, sizeof(warden->buffer), &data, warden->fds, &n_fds))
		return false;
	understood = link_unpack(&header, &frame, data) && header.size == 0;
	/* One that has been here before is there because another router could not know. */
	if (understood && header.number > warden->received) {
		warden->received = header.number;
		understood = dispatch(warden, frame, n_fds);
	}
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

static _Noreturn void warden_end(struct warden *warden)
{
	uint64_t deadline = clock_ms() + SWEEP_MS;
	int n;

	warden->ending = true;
	for (struct interpreter *interpreter = warden->interpreters; interpreter; interpreter = interpreter->next)
		interpreter_signal(interpreter, SIGKILL);
	do {
		reap(warden);
		n = strangers_kill(warden);
		poll(NULL, 0, n > 0 || children_left() ? 1 : 0);
	} while ((n > 0 || children_left()) && clock_ms() < deadline);
	_exit(0);
}

static void serve(struct warden *warden)
{
	struct pollfd events[] = {
		{.fd = warden->control, .events = POLLIN},
		{.fd = warden->signals, .events = POLLIN},
	};
	struct signalfd_siginfo information;
	bool told_to_end = false;

	while (!told_to_end) {
		int wait_ms = warden->surveying ? 0 : warden->sweep_deadline ? 1 : -1;

		if (poll(events, ARRAY_SIZE(events), wait_ms) < 0 && errno != EINTR)
			return;
		while (read(warden->signals, &information, sizeof(information)) > 0)
			told_to_end |= information.ssi_signo == SIGTERM;
		reap(warden);
		sweep(warden);
		survey(warden);
		if (events[0].revents && !serve_control(warden))
			return;
	}
}

/* SIGTERM is to end, and whoever may send it is not in the cage. To the first process of a pid namespace it would
 * come from there, too; and that needs none, since all in there ends with it. */
static int signals_open(sigset_t *taken)
{
	sigemptyset(taken);
	sigaddset(taken, SIGCHLD);
	if (getpid() != 1)
		sigaddset(taken, SIGTERM);
	return signalfd(-1, taken, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* The directory is the workspace now, by whatever path it is seen in here. */
static int move_in(const struct cage *cage)
{
	char workspace[PATH_MAX];
	PyObject *done;

	if (!getcwd(workspace, sizeof(workspace)) || policy_arm(workspace, *cage_scratch(cage)) < 0)
		return -1;
	artifacts_home(workspace);
	done = PyObject_CallFunction(helper(HELPER_MOVE_IN), "ssiii", workspace, cage_scratch(cage),
				     cage_starts_programs(cage), policy.network,
				     policy.network_tcp && policy_port(NAMESERVER_PORT));
	Py_XDECREF(done);
	return done ? 0 : -1;
}

void warden_run(struct cage *cage, const char *workspace, int control)
{
	static struct warden warden;
	struct cage_report report = {0};
	sigset_t taken;

	prctl(PR_SET_NAME, "lair-warden");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	warden.cage = cage;
	warden.control = control;
	warden.workspace = workspace;
	warden.survey = SURVEY_NONE;
	warden.signals = signals_open(&taken);
	warden.children = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
	if (warden.signals < 0)
		_exit(1);
	if (cage_enter(cage, workspace, (const int[]){control, warden.signals, warden.children, -1}, &report) < 0) {
		say_failed(&warden, 0, report.reason);
		_exit(1);
	}
	children_settle(&warden);
	sigprocmask(SIG_BLOCK, &taken, NULL);
	if (move_in(cage) < 0) {
		say_failed(&warden, 0, "the interpreter cannot be set up in the cage");
		_exit(1);
	}
	say_ready(&warden, &report);
	serve(&warden);
	warden_end(&warden);
	_exit(0);
}
