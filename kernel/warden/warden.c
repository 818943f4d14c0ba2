/* The warden. A process that an interpreter leaves behind becomes a child of the warden, which is pid 1 of the
 * cage's pid namespace, or else a child subreaper. A `sweep` kills all its children but the interpreters that it
 * knows, generation by generation, until there are none; only then is it answered. The warden knows the
 * interpreters that it has forked. Frozen copies and their forks are its children, too; `adopt` makes them
 * known. If a sweep does not succeed soon, the warden ends, and the cage with it. Before it ends, because nobody
 * listens any more or because it is told to, it kills all its children in the same way: without a pid namespace
 * they would live on. */
#include "warden.h"

#include "observe/artifacts.h"

#include "files/survey.h"
#include "files/witness.h"
#include "interpreter/interpreter.h"
#include "interpreter/process.h"
#include "language.h"
#include "proto/clock.h"
#include "proto/link.h"
#include "refusal/policy.h"
#include "states.h"
#include "still.h"
#include "strangers.h"
#include "turns.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long a sweep may take without a death. */
#define SWEEP_MS 2000
/* How many entries are surveyed between two looks at the control pair. This takes less than half a millisecond. */
#define SURVEY_ENTRIES 200
/* How many dead strangers are remembered. The kernel gives out process numbers in turn, so none is used again while
 * it is among so few. */
#define STRANGERS 64

struct interpreter {
	struct interpreter *next;
	uint64_t serial;
	pid_t pid;
	bool still; /* it must not run for now */
};

/* A child that died while the warden did not know it. It may have been forked from a frozen copy, and the message
 * to adopt it is on its way. */
struct stranger {
	pid_t pid; /* 0: none */
	int status;
};

struct warden {
	struct cage *cage;
	int control, signals;
	uint64_t sent, received; /* the numbers of the last messages on the pair */
	bool ending;		 /* nothing is said any more */
	struct strangers strangers;
	struct interpreter *interpreters;
	struct stranger dead[STRANGERS]; /* the latest ones; the oldest is overwritten */
	size_t n_dead;
	uint64_t sweep_deadline; /* 0: no sweep is under way */
	unsigned sweep_left;	 /* how many had to die at the last look */
	const char *workspace;
	struct survey survey;
	bool surveying;
	uint64_t survey_ns; /* processor time that the survey has taken */
	struct states states;
	char buffer[CHANNEL_SIZE_MAX];
	int fds[CHANNEL_FDS_MAX]; /* came with the message; those that its handler does not take are closed */
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

static bool is_interpreter(const void *userdata, pid_t pid)
{
	return interpreter_of((struct warden *)userdata, pid);
}

static bool is_still(const void *userdata, pid_t pid)
{
	const struct interpreter *interpreter = interpreter_of((struct warden *)userdata, pid);

	return interpreter && interpreter->still;
}

/* A signal goes to the whole group, as a terminal's Ctrl-C does: system() ignores SIGINT while it waits for its
 * child. But SIGKILL goes to the interpreter alone, because a copy that was just forked is still in the group of
 * its original. A sweep kills the rest of the group. */
static void interpreter_signal(const struct interpreter *interpreter, int signal)
{
	if (signal == SIGKILL || kill(-interpreter->pid, signal) < 0)
		(void)kill(interpreter->pid, signal);
}

/* ---- talking ---- */

static _Noreturn void warden_end(struct warden *warden);

/* The router always reads. If it is gone, the warden ends, and everything in its cage before it. */
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
	struct warden_ready ready = {.level = bytes_of(report->level),
				     .language = bytes_of(language.name),
				     .version = bytes_of(language.version())};
	_cleanup_(wire_list_deinit) struct wire_list guards = {0};

	for (size_t i = 0; i < report->n_guards; i++)
		(void)wire_list_add_string(&guards, bytes_of(report->guards[i]));
	ready.guards = wire_list_bytes(&guards);
	say(warden, &warden_ready_schema, &ready);
}

/* ---- the dead, and what they leave ---- */

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
	warden->dead[warden->n_dead++ % STRANGERS] = (struct stranger){.pid = pid, .status = status};
}

/* How the stranger died. If it was forgotten, or never was a child of ours, the answer is SIGKILL. */
static int stranger_status(struct warden *warden, pid_t pid)
{
	for (size_t i = 0; i < STRANGERS; i++) {
		if (warden->dead[i].pid != pid)
			continue;
		warden->dead[i].pid = 0;
		return warden->dead[i].status;
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

/* How many processes may be left in the cage besides its interpreters, which are told to die. */
static unsigned strangers_left(struct warden *warden)
{
	int n = strangers_kill(&warden->strangers);

	if (n >= 0)
		return (unsigned)n;
	/* Without /proc the warden only knows whether it has children, which says this if no interpreter lives. */
	return !warden->interpreters && waitpid(-1, NULL, WNOHANG) >= 0;
}

/* A router that dies between the death of an interpreter and its sweep leaves the cage halted: not for long. */
static void resume_in_time(struct warden *warden)
{
	if (warden->strangers.halted_ms && clock_ms() > warden->strangers.halted_ms + SWEEP_MS)
		strangers_resume(&warden->strangers);
}

static void sweep(struct warden *warden)
{
	unsigned left;

	if (!warden->sweep_deadline) {
		resume_in_time(warden);
		return;
	}
	left = strangers_left(warden);
	if (!left) {
		warden->sweep_deadline = 0;
		strangers_resume(&warden->strangers);
		say(warden, &swept_message_schema, &(struct swept_message){0});
	} else if (left < warden->sweep_left) {
		warden->sweep_deadline = clock_ms() + SWEEP_MS;
	} else if (clock_ms() > warden->sweep_deadline) {
		_exit(1);
	}
	warden->sweep_left = left;
}

/* ---- what the router asks for ---- */

/* From now on the death of this interpreter is told, and sweeps spare it. */
static int interpreter_add(struct warden *warden, uint64_t serial, pid_t pid)
{
	struct interpreter *interpreter = calloc(1, sizeof(*interpreter));

	if (!interpreter)
		return -ENOMEM;
	interpreter->serial = serial;
	interpreter->pid = pid;
	interpreter->next = warden->interpreters;
	warden->interpreters = interpreter;
	setpgid(pid, pid); /* the interpreter does this, too; either may come first */
	return 0;
}

static void handle_spawn(struct warden *warden, const void *decoded)
{
	const struct spawn_message *spawn = decoded;
	pid_t pid = interpreter_find(warden, spawn->serial) ? -EEXIST : process_fork();
	int r;

	if (pid == 0) {
		states_leave(&warden->states);
		interpreter_run(warden->fds, warden->cage, spawn->directory);
	}
	r = pid < 0 ? pid : interpreter_add(warden, spawn->serial, pid);
	if (r)
		say_failed(warden, spawn->serial, strerror(-r));
	else
		say(warden, &spawned_message_schema,
		    &(struct spawned_message){.serial = spawn->serial, .pid = (uint64_t)pid});
}

/* The number comes from a hostile process. It must belong to a child of ours that is no interpreter yet, or to one
 * that has died as a stranger. */
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
	warden->sweep_deadline = clock_ms() + SWEEP_MS;
	strangers_halt(&warden->strangers);
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

/* ---- files ---- */

static void say_kept(void *userdata, const struct files_kept_message *kept)
{
	say(userdata, &files_kept_message_schema, kept);
}

static void say_back(void *userdata, const struct files_back_message *back)
{
	say(userdata, &files_back_message_schema, back);
}

static void say_going(void *userdata, const struct files_going_message *going)
{
	say(userdata, &files_going_message_schema, going);
}

static void say_compared(void *userdata, const struct files_compared_message *compared)
{
	say(userdata, &files_compared_message_schema, compared);
}

static bool stop_all(void *userdata, struct bytes serials)
{
	struct interpreter *interpreter;
	size_t cursor = 0;
	uint64_t serial;
	bool still = true;

	while (wire_next_uint(serials, &cursor, &serial)) {
		interpreter = interpreter_find(userdata, serial);
		if (!interpreter)
			continue;
		interpreter->still = true;
		still &= still_stop(interpreter->pid);
	}
	return still;
}

static void resume_all(void *userdata, struct bytes serials)
{
	struct interpreter *interpreter;
	size_t cursor = 0;
	uint64_t serial;

	while (wire_next_uint(serials, &cursor, &serial)) {
		interpreter = interpreter_find(userdata, serial);
		if (!interpreter)
			continue;
		interpreter->still = false;
		still_end(interpreter->pid);
	}
}

static const struct states_listener states_listener = {.on_kept = say_kept,
						       .on_back = say_back,
						       .on_going = say_going,
						       .stop = stop_all,
						       .resume = resume_all,
						       .on_compared = say_compared};

static void handle_keep_files(struct warden *warden, const void *decoded)
{
	states_keep(&warden->states, decoded);
}

static void handle_bring_files(struct warden *warden, const void *decoded)
{
	states_bring(&warden->states, decoded);
}

static void handle_leave_files(struct warden *warden, const void *decoded)
{
	states_give_up(&warden->states, decoded);
}

static void handle_compare_files(struct warden *warden, const void *decoded)
{
	states_compare(&warden->states, decoded);
}

static void handle_drop_files(struct warden *warden, const void *decoded)
{
	const struct drop_files_message *drop = decoded;

	states_drop(&warden->states, drop->serial);
}

/* What it has started stands still from here to the end of the sweep that follows: it may be so much that a death
 * takes seconds. Other interpreters have nothing to do with it. */
static void interpreter_end(struct warden *warden, struct interpreter *interpreter)
{
	strangers_halt(&warden->strangers);
	strangers_kill_below(interpreter->pid);
	interpreter_signal(interpreter, SIGKILL);
	for (struct interpreter *other = warden->interpreters; other; other = other->next)
		if (other != interpreter && !other->still)
			strangers_spare(&warden->strangers, other->pid);
}

static void handle_signal(struct warden *warden, const void *decoded)
{
	const struct signal_message *message = decoded;
	struct interpreter *interpreter = interpreter_find(warden, message->serial);

	if (interpreter && message->signal == SIGKILL)
		interpreter_end(warden, interpreter);
	else if (interpreter && message->signal > 0 && message->signal < NSIG)
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
	{&keep_files_message_schema, 0, handle_keep_files},
	{&bring_files_message_schema, 0, handle_bring_files},
	{&leave_files_message_schema, 0, handle_leave_files},
	{&compare_files_message_schema, 0, handle_compare_files},
	{&drop_files_message_schema, 0, handle_drop_files},
};

/* Whether the message was understood. */
static bool dispatch(struct warden *warden, struct bytes data, size_t n_fds)
{
	struct wire_any decoded;
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

/* Returns false if the pair is closed, or if a message is not understood. */
static bool serve_control(struct warden *warden)
{
	struct link_header header;
	struct bytes data, frame;
	bool understood;
	size_t n_fds;

	if (channel_recv(warden->control, warden->buffer, sizeof(warden->buffer), &data, warden->fds, &n_fds))
		return false;
	understood = link_unpack(&header, &frame, data) && header.size == 0;
	/* A new router may send a message again that the last router has sent. */
	if (understood && header.number > warden->received) {
		warden->received = header.number;
		understood = dispatch(warden, frame, n_fds);
	}
	for (size_t i = 0; i < n_fds; i++)
		fd_closep(&warden->fds[i]);
	return understood;
}

/* ---- the life of a warden ---- */

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
	strangers_halt(&warden->strangers);
	for (struct interpreter *interpreter = warden->interpreters; interpreter; interpreter = interpreter->next)
		interpreter_signal(interpreter, SIGKILL);
	do {
		reap(warden);
		n = strangers_kill(&warden->strangers);
		poll(NULL, 0, n > 0 || children_left() ? 1 : 0);
	} while ((n > 0 || children_left()) && clock_ms() < deadline);
	_exit(0);
}

static bool is_busy(const struct warden *warden)
{
	return warden->surveying || states_busy(&warden->states) || witness_busy();
}

/* While files are kept or brought back no cell of that session runs, but those of others do, and threads. */
static void work_on_files(struct states *states)
{
	bool at_home = states_at_home(states), reading = states_reading(states);

	witness_take();
	states_step(states);
	if (at_home)
		witness_forgive(reading);
}

/* A piece of the most urgent work, and one of a survey: the quota holds meanwhile, too. */
static void work(struct warden *warden)
{
	if (states_busy(&warden->states))
		work_on_files(&warden->states);
	else if (witness_busy())
		witness_step();
	survey(warden);
}

static void serve(struct warden *warden)
{
	struct pollfd events[] = {
		{.fd = warden->control, .events = POLLIN},
		{.fd = warden->signals, .events = POLLIN},
		{.fd = witness_bell(), .events = POLLIN},
	};
	struct signalfd_siginfo information;
	bool told_to_end = false;

	while (!told_to_end) {
		int wait_ms = is_busy(warden)		    ? 0
			      : warden->sweep_deadline	    ? 1
			      : warden->strangers.halted_ms ? SWEEP_MS
							    : -1;

		if (poll(events, ARRAY_SIZE(events), wait_ms) < 0 && errno != EINTR)
			return;
		while (read(warden->signals, &information, sizeof(information)) > 0)
			told_to_end |= information.ssi_signo == SIGTERM;
		reap(warden);
		sweep(warden);
		if (events[2].revents)
			witness_answer(strangers_wait_for_nobody(&warden->strangers));
		if (!events[0].revents)
			work(warden);
		else if (!serve_control(warden))
			return;
	}
}

/* SIGTERM tells the warden to end. Only processes outside the cage may send it. But the first process of a pid
 * namespace could get it from inside, so there the warden does not take it. It needs no SIGTERM there: when it
 * dies, everything in its namespace dies. */
static int signals_open(sigset_t *taken)
{
	sigemptyset(taken);
	sigaddset(taken, SIGCHLD);
	sigaddset(taken, SIGIO); /* somebody opens a file of which it has a lease */
	if (getpid() != 1)
		sigaddset(taken, SIGTERM);
	return signalfd(-1, taken, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* The working directory is the workspace. In the cage its path may be another one. */
static int move_in(const struct cage *cage)
{
	char workspace[PATH_MAX];

	if (!getcwd(workspace, sizeof(workspace)) ||
	    policy_arm(workspace, *cage_scratch(cage), cage_has_terminals(cage)) < 0)
		return -1;
	artifacts_home(workspace);
	if (!language.move_in)
		return 0;
	return language.move_in(&(struct language_place){
		.workspace = workspace,
		.scratch = cage_scratch(cage),
		.programs = cage_starts_programs(cage),
		.network = policy.network,
		.names = policy.network_tcp && policy_port(NAMESERVER_PORT),
	});
}

void warden_run(struct cage *cage, const char *workspace, int control, const char *reason)
{
	static struct warden warden;
	struct cage_report report = {0};
	sigset_t taken;

	prctl(PR_SET_NAME, "lair-warden");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	turns_shorten();
	warden.cage = cage;
	warden.control = control;
	warden.survey = (struct survey)SURVEY_NONE;
	warden.signals = signals_open(&taken);
	strangers_init(&warden.strangers, is_interpreter, is_still, &warden);
	if (warden.signals < 0)
		_exit(1);
	if (reason) {
		say_failed(&warden, 0, reason);
		_exit(1);
	}
	if (cage_enter(cage, workspace, (const int[]){control, warden.signals, warden.strangers.children, -1},
		       &report) < 0) {
		say_failed(&warden, 0, report.reason);
		_exit(1);
	}
	warden.workspace = cage_workspace(cage);
	strangers_settle(&warden.strangers, cage_has_uid_alone(cage));
	sigprocmask(SIG_BLOCK, &taken, NULL);
	if (move_in(cage) < 0) {
		say_failed(&warden, 0, "the interpreter cannot be set up in the cage");
		_exit(1);
	}
	states_init(&warden.states, &states_listener, &warden);
	witness_init();
	if (!cage_sets_looks(cage))
		files_look_fixed();
	if (language.blocked)
		cage_guard(&report, "audit"); /* the language explains refusals */
	say_ready(&warden, &report);
	serve(&warden);
	warden_end(&warden);
	_exit(0);
}
