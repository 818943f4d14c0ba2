/* A fork gets its own descriptors, signals, number, part of the cage and seeds, and loses the old ones, before
 * it runs a cell or waits as a frozen copy. */
#include "process.h"

#include "base/fork.h"
#include "channel.h"
#include "describe.h"
#include "files/walk.h"
#include "files/witness.h"
#include "frozen.h"
#include "language.h"
#include "observe/artifacts.h"
#include "observe/outlets.h"
#include "observe/output.h"
#include "observe/positions.h"
#include "observe/rewriting.h"
#include "threads/threads.h"

#include "proto/message.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* How often a frozen copy tries to fork, and how long it waits in between. */
#define FORK_TRIES 50
#define FORK_PAUSE_NS 10000000
#define FD_FLOOR 100
/* How many descriptors lie from the floor on: the channel and its spare, the buffers, copies of stdout and stderr,
 * the channel of a copy, the warden's bell. */
#define FD_KEPT 7

static struct {
	pid_t pid;
	const struct cage *cage;
	pid_t copied;	    /* what this one is a copy of, or a fork of the copy */
	bool with_threads;  /* there are other threads, or were when this copy was made */
	char homeless[512]; /* why it lacks the files that it should have; "": it has them */
} self;

/* ---- becoming an interpreter ---- */

pid_t process_fork(void)
{
	pid_t pid;

	if (language.before_fork)
		language.before_fork();
	pid = fork();
	if (pid < 0)
		pid = -errno;
	if (language.after_fork)
		language.after_fork(pid == 0);
	return pid;
}

static int descriptor_floor(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= FD_FLOOR + FD_KEPT)
		return FD_FLOOR;
	return MAX((int)limit.rlim_cur - FD_KEPT, 3);
}

static void signals_reset(void)
{
	sigset_t interrupt;

	sigemptyset(&interrupt);
	sigaddset(&interrupt, SIGINT);
	sigprocmask(SIG_SETMASK, &interrupt, NULL);
}

/* For a fork that will run cells: its own number and group, and the router's descriptors out of the way of
 * cells. */
static int take_over(const int fds[INTERPRETER_FDS], int floor)
{
	char name[16];
	int channel;

	self.pid = getpid();
	setpgid(0, 0);
	snprintf(name, sizeof(name), "lair-%s", language.name);
	prctl(PR_SET_NAME, name);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(fds[INTERPRETER_STDOUT], STDOUT_FILENO) < 0 || dup2(fds[INTERPRETER_STDERR], STDERR_FILENO) < 0)
		return -errno;
	channel = fcntl(fds[INTERPRETER_CHANNEL], F_DUPFD_CLOEXEC, floor);
	if (channel < 0)
		return -errno;
	exec_channel_use(channel);
	witness_move(floor);
	return output_adopt(fds[INTERPRETER_BUFFERS], floor);
}

/* The descriptors below the floor are the warden's. */
static void descriptors_close(int floor)
{
	if (syscall(SYS_close_range, 3U, (unsigned)floor - 1, 0U) == 0)
		return;
	for (int fd = 3; fd < floor; fd++)
		(void)close(fd);
}

/* What a language without a move of its own gets: the working directory. */
static int move_plainly(enum language_move how, struct bytes name, char *text, size_t size)
{
	const char *root = artifacts_root(), *branch = strstr(root, "/" BRANCHES "/");
	int family = branch ? (int)(branch - root) : (int)strlen(root);

	if (how == MOVE_COPY) {
		snprintf(text, size, "this language cannot copy them: use files = restore");
		return -1;
	}
	snprintf(text, size, "%.*s/" BRANCHES "/%.*s", family, root, (int)name.size, name.data);
	if (chdir(text) == 0)
		return 0;
	snprintf(text, size, "%s", strerror(errno));
	return -1;
}

/* Moves to a copy of the workspace. Returns 0, or -1 with the reason in @why. */
static int move_home(enum language_move how, struct bytes name, char *why, size_t size)
{
	char text[PATH_MAX] = "";
	int r = language.move ? language.move(how, artifacts_root(), name, text, sizeof(text))
			      : move_plainly(how, name, text, sizeof(text));

	if (r == 0) {
		artifacts_home(text);
		return 0;
	}
	snprintf(why, size, "%s", text[0] ? text : strerror(ENOMEM));
	return -1;
}

int process_become(const int fds[INTERPRETER_FDS], const struct cage *cage, struct bytes home)
{
	int floor = descriptor_floor(), r;
	char why[1];

	self.cage = cage;
	signals_reset();
	r = take_over(fds, floor);
	descriptors_close(floor);
	if (!r)
		r = cage_enter_interpreter(cage);
	if (!r && language.born)
		language.born();
	/* If a cell has put something else there, it works in the family's workspace. */
	if (!r && home.data)
		(void)move_home(MOVE_HOME, home, why, sizeof(why));
	return r;
}

void process_start_over(void)
{
	cage_start_over(self.cage);
}

bool process_is_interpreter(void)
{
	return getpid() == self.pid;
}

/* ---- frozen copies, and forks of them ---- */

/* In the copy: closes the descriptors of the live interpreter. Those that its cells have opened stay, but for
 * outlets. The copy talks only on @channel. */
static void let_go(int channel)
{
	int null;

	setpgid(0, 0);
	self.pid = getpid();
	output_release();
	exec_channel_use(channel);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null >= 0 && (dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0))
		_exit(1);
	fd_close(null);
	prctl(PR_SET_NAME, "lair-frozen");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	outlets_cut();
}

/* All other threads stand still, and hold nothing that is needed here, until unpark_others. Returns NULL, or why
 * they cannot. */
static const char *park_others(void)
{
	const char *why;

	self.with_threads = !threads_alone();
	if (!self.with_threads)
		return NULL;
	if (!output_hold())
		return "a thread writes, and nobody reads it";
	exec_channel_alone(true);
	why = threads_hold();
	if (why) {
		exec_channel_alone(false);
		output_let_go();
	}
	return why;
}

static void unpark_others(void)
{
	if (!self.with_threads)
		return;
	threads_release();
	exec_channel_alone(false);
	output_let_go();
}

/* In a fork of the copy. What is held there can be had only now, so without them nothing can be said. */
static void revive_others(void)
{
	if (!self.with_threads)
		return;
	if (threads_revive() < 0)
		_exit(1);
	exec_channel_alone(false);
	output_let_go();
}

/* A branch may have files of its own: a copy of the workspace, in which it works from now on. If there is no copy,
 * the branch says so when it is asked for its first checkpoint, and ends. */
static void branch_files(struct bytes name, bool filled)
{
	(void)move_home(filled ? MOVE_FILLED : MOVE_COPY, name, self.homeless, sizeof(self.homeless));
}

/* The files may not be those of this state yet, so nothing of the session runs, in no thread.
 * Returns whether files were put there meanwhile. */
static bool await_settle(void)
{
	struct settle_message settle;
	struct wire_frame message;
	int r = exec_channel_receive(&message);

	if (!r)
		r = exec_channel_decode(&settle, &settle_message_schema, &message);
	if (r)
		_exit(r == CHANNEL_E_EOF ? 0 : 1);
	return settle.files;
}

/* In a fork of the copy: live again, with the router's new descriptors. A branch shares its open files with its
 * parent, which goes on. */
static int thaw(const struct spawn_message *spawn, const int fds[INTERPRETER_FDS])
{
	bool files;
	int r;

	exec_channel_use(-1);
	r = take_over(fds, descriptor_floor());
	exec_channel_drop_fds();
	if (!r)
		r = cage_enter_interpreter(self.cage);
	if (r)
		_exit(1);
	files = spawn->hold ? await_settle() : !spawn->reseed;
	outlets_restore();
	revive_others();
	if (files)
		artifacts_of_others();
	if (!spawn->reseed)
		positions_set();
	if (language.thawed)
		language.thawed(&(struct language_thaw){.threads_of = self.with_threads ? self.copied : 0,
							.files = files,
							.branch = spawn->reseed});
	rewriting_begin();
	if (spawn->directory.data)
		branch_files(spawn->directory, spawn->filled);
	return 0;
}

/* Processes and memory may be scarce for a moment, while what a cell has left dies. Who holds is forked while it
 * lives still, and does not wait for that. */
static pid_t fork_in_time(bool hold)
{
	static const struct timespec pause = {.tv_nsec = FORK_PAUSE_NS};
	pid_t pid = fork_sibling(0, NULL);

	for (int i = 0; !hold && is_scarcity(pid) && i < FORK_TRIES; i++) {
		(void)nanosleep(&pause, NULL);
		pid = fork_sibling(0, NULL);
	}
	return pid;
}

static int serve_spawn(const struct wire_frame *message, bool *alive)
{
	struct spawned_message spawned;
	const int *fds = exec_channel_fds(INTERPRETER_FDS);
	struct spawn_message spawn;
	pid_t pid;
	int r;

	r = exec_channel_decode(&spawn, &spawn_message_schema, message);
	if (r || !fds)
		return r ? r : -EBADMSG;
	pid = fork_in_time(spawn.hold);
	if (pid == 0) {
		*alive = true;
		return thaw(&spawn, fds);
	}
	exec_channel_drop_fds();
	spawned = (struct spawned_message){.serial = spawn.serial, .pid = (uint64_t)MAX(pid, 0)};
	r = exec_channel_send(&spawned_message_schema, &spawned);
	if (pid > 0) /* the outlets of this copy belong to the new interpreter now */
		outlets_cut();
	return r;
}

static int serve_measure(void)
{
	struct measured_message measured = {.memory = freeze_memory()};

	return exec_channel_send(&measured_message_schema, &measured);
}

/* A frozen copy waits here, and each `spawn` makes a live interpreter of it. Returns only in those, or ends. */
static int wait_frozen(void)
{
	struct wire_frame message;
	bool alive = false;
	int r = 0;

	while (!r && !alive) {
		r = exec_channel_receive(&message);
		if (!r && bytes_is(message.type, measure_message_schema.type))
			r = serve_measure();
		else if (!r && bytes_is(message.type, describe_message_schema.type))
			r = describe_serve(&message);
		else if (!r)
			r = serve_spawn(&message, &alive);
	}
	if (r)
		_exit(r == CHANNEL_E_EOF ? 0 : 1);
	return 0;
}

/* NULL, or why there can be no copy. */
static const char *why_not(const struct freeze_message *freeze, uint64_t cell)
{
	if (self.homeless[0])
		return self.homeless;
	return freeze->cell == cell ? why_no_checkpoint() : "the cell has ended";
}

int process_freeze(const struct wire_frame *message, uint64_t cell, const char *why, bool *forked)
{
	struct freeze_message freeze;
	const int *fd = exec_channel_fds(1);
	struct frozen_message frozen;
	pid_t pid = 0;
	int r;

	*forked = false;
	r = exec_channel_decode(&freeze, &freeze_message_schema, message);
	if (r || !fd)
		return r ? r : -EBADMSG;
	self.copied = getpid();
	if (!why)
		why = why_not(&freeze, cell);
	if (!why) {
		positions_note();
		why = park_others();
	}
	if (!why)
		pid = fork_sibling(0, NULL);
	if (!why && pid == 0) {
		int channel = fcntl(*fd, F_DUPFD_CLOEXEC, descriptor_floor());

		exec_channel_drop_fds();
		let_go(channel);
		*forked = true;
		return wait_frozen();
	}
	if (!why)
		unpark_others();
	if (pid > 0)
		rewriting_begin();
	exec_channel_drop_fds();
	frozen = (struct frozen_message){
		.serial = freeze.serial, .pid = (uint64_t)MAX(pid, 0), .homeless = self.homeless[0] != '\0'};
	if (pid <= 0)
		frozen.reason = bytes_of(why ? why : strerror(-pid));
	r = exec_channel_send(&frozen_message_schema, &frozen);
	/* This branch has no files of its own and would work in those of its parent, so it must run nothing. */
	return r || !frozen.homeless ? r : -ENOENT;
}
