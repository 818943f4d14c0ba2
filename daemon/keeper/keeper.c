/* The keeper. Every process of a daemon is its child, or becomes its child when the parent dies. So when it
 * ends, nothing is left; processes that a session left behind are killed at once. To stop, it waits while the
 * router ends its sessions, kills everything that remains, waits for the children that remove workspaces, and
 * only then gives up the socket's name.
 *
 * A router that dies by itself is replaced. First the keeper reads the last messages of the dead router; then it
 * hands the stored descriptors to the next one, before anything else. */
#include "keeper.h"

#include "audit/scribe.h"
#include "base/log.h"
#include "base/spawn.h"
#include "cgroup/cgroup.h"
#include "handover.h"
#include "instance.h"
#include "notify.h"
#include "orphan.h"
#include "program.h"
#include "pulse.h"
#include "removal.h"
#include "scribes.h"
#include "throttle.h"

#include "proto/channel.h"
#include "proto/clock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

/* The router gives its sessions six seconds at most, and what it says that saving them takes. */
#define STOP_LIMIT_MS 10000
/* A scribe gives up before that, and says how many lines are lost. */
#define SCRIBES_LIMIT_MS (SCRIBE_LAST_MS + 1000)
#define KILL_LIMIT_MS 5000
#define KILL_PAUSE_MS 20
#define KILL_AGAIN_MS 1
#define KILL_SELDOM_MS 200 /* what does not die waits for a disk */
#define REAP_MAX 1000
#define EXIT_RUNNING 3

struct keeper {
	const struct keeper_options *options;
	struct instance instance;
	char uids[UIDS_TEXT_SIZE]; /* the host users of its sessions */
	int channel;		   /* to the router */
	int signals;
	int ready;
	pid_t router;	/* 0: there is none */
	int status;	/* the exit status of the last one, as from waitpid */
	bool was_ready; /* one of them */
	bool is_ready;	/* this one */
	bool handing;	/* it does not have all of the store yet */
	bool our_own;	/* only our own build can go on with what is stored */
	bool asked_to_stop, over;
	bool short_of_descriptors;  /* said once */
	bool orphaned;		    /* there may be children that a session left behind */
	uint64_t killing_since;	    /* milliseconds, 0: there are none known */
	enum router_end killed_for; /* why we did */
	enum router_end last_end;
	sigset_t owed;		/* signals for the router, which would die of them before it is ready */
	uint64_t stop_deadline; /* milliseconds, 0: not stopping */
	uint64_t start_at;	/* when the next router starts */
	struct throttle throttle;
	struct pulse pulse;
	uint64_t told_manager; /* that we are alive */
	struct store store;
	struct handover handover;
	struct removals removals;
	struct scribes scribes;
	char program[PATH_SIZE]; /* ourselves */
};

static bool stopping(const struct keeper *keeper)
{
	return keeper->stop_deadline > 0;
}

/* ---- talking ---- */

size_t keeper_message_size(enum keeper_op op)
{
	return op == KEEPER_REMOVE_TREE ? sizeof(struct keeper_message) : offsetof(struct keeper_message, path);
}

static int router_tell(struct keeper *keeper, const struct keeper_message *message, const int *fds, size_t n_fds)
{
	struct bytes data = {.data = (const char *)message, .size = keeper_message_size(message->op)};

	return channel_send(keeper->channel, data, fds, n_fds);
}

/* What it is owed, as soon as it can take it. */
static void router_pay(struct keeper *keeper)
{
	if (keeper->router == 0 || !keeper->is_ready)
		return;
	for (int signal = 1; signal < NSIG; signal++)
		if (sigismember(&keeper->owed, signal) == 1)
			(void)kill(keeper->router, signal);
	sigemptyset(&keeper->owed);
}

/* ---- templates ---- */

static void on_start_template(struct keeper *keeper, const struct keeper_message *request, int *fds, size_t n_fds)
{
	struct keeper_message reply = {.op = KEEPER_STARTED, .serial = request->serial};
	_cleanup_(fd_closep) int pidfd = -1;
	pid_t pid = 0;
	int r;

	(void)n_fds;
	if (keeper->router == 0)
		return;
	r = program_start(&pid, request->profile, keeper->options->socket, fds[0]);
	reply.error = r;
	reply.pid = pid;
	if (r == 0)
		pidfd = spawn_pidfd(pid);
	r = router_tell(keeper, &reply, &pidfd, pidfd >= 0);
	if (r == 0)
		return;
	/* The router has died, or reads so slowly that it is beyond help: it never learns of this template. */
	log_warn(NULL, "the router does not take its template %d", (int)pid);
	if (pid > 0)
		(void)kill(pid, SIGKILL);
}

/* ---- what the router says ---- */

/* One type for all that may come, and one of them takes the descriptors.
 * NOLINTBEGIN(readability-non-const-parameter) */

static void on_remove_tree(struct keeper *keeper, const struct keeper_message *request, int *fds, size_t n_fds)
{
	removals_add(&keeper->removals, n_fds > 0 ? steal_fd(&fds[0]) : -1, request->path);
}

static void on_ready(struct keeper *keeper, const struct keeper_message *request, int *fds, size_t n_fds)
{
	(void)request;
	(void)fds;
	(void)n_fds;
	keeper->was_ready = keeper->is_ready = true;
	router_pay(keeper);
	if (keeper->ready >= 0 && write(keeper->ready, "\n", 1) < 0)
		log_warn(NULL, "nobody waits for laird to be ready: %s", strerror(errno));
	fd_closep(&keeper->ready);
	notify_manager("READY=1");
}

static void on_store(struct keeper *keeper, const struct keeper_message *request, int *fds, size_t n_fds)
{
	if (request->serial)
		handover_leave_ledger(&keeper->handover, &request->name, fds[0]);
	if (store_put(&keeper->store, &request->name, fds, n_fds) < 0)
		log_error(NULL, "no memory is left to hold the router's things");
	for (size_t i = 0; i < n_fds; i++)
		fds[i] = -1;
}

static void on_forget(struct keeper *keeper, const struct keeper_message *request, int *fds, size_t n_fds)
{
	(void)fds;
	(void)n_fds;
	store_forget(&keeper->store, &request->name);
}

static void on_start_scribe(struct keeper *keeper, const struct keeper_message *request, int *fds, size_t n_fds)
{
	(void)request;
	(void)n_fds;
	scribes_add(&keeper->scribes, fds);
}

static void on_beat(struct keeper *keeper, const struct keeper_message *request, int *fds, size_t n_fds)
{
	char extend[64];

	(void)fds;
	(void)n_fds;
	pulse_heard(&keeper->pulse, clock_ms());
	if (!request->serial || !stopping(keeper) || keeper->stop_deadline == UINT64_MAX)
		return;
	keeper->stop_deadline = clock_ms() + request->serial + STOP_LIMIT_MS;
	snprintf(extend, sizeof(extend), "EXTEND_TIMEOUT_USEC=%" PRIu64,
		 ((uint64_t)request->serial + STOP_LIMIT_MS) * 1000);
	notify_manager(extend);
}
/* NOLINTEND(readability-non-const-parameter) */

static const struct {
	void (*fn)(struct keeper *keeper, const struct keeper_message *request, int *fds, size_t n_fds);
	size_t n_fds, n_fds_max;
} requests[] = {
	[KEEPER_START_TEMPLATE] = {on_start_template, 1, 1},
	[KEEPER_READY] = {on_ready, 0, 0},
	[KEEPER_REMOVE_TREE] = {on_remove_tree, 0, 1},
	[KEEPER_STORE] = {on_store, 1, STORE_FDS_MAX},
	[KEEPER_FORGET] = {on_forget, 0, 0},
	[KEEPER_BEAT] = {on_beat, 0, 0},
	[KEEPER_START_SCRIBE] = {on_start_scribe, SCRIBE_FDS, SCRIBE_FDS},
};
_Static_assert(STORE_FDS_MAX <= CHANNEL_FDS_MAX, "one message is one item");

static bool request_valid(const struct keeper_message *request, size_t size, size_t n_fds)
{
	return size >= offsetof(struct keeper_message, path) && request->op < ARRAY_SIZE(requests) &&
	       requests[request->op].fn && size == keeper_message_size(request->op) &&
	       n_fds >= requests[request->op].n_fds && n_fds <= requests[request->op].n_fds_max &&
	       memchr(request->profile, 0, sizeof(request->profile)) &&
	       memchr(request->path, 0, sizeof(request->path));
}

/* The keeper had no room for the descriptors of a message: the router is not to blame. A template is not
 * started. A thing is not stored, and an older one under its name is out of date. */
static void descriptors_lost(struct keeper *keeper, const struct keeper_message *request, size_t size)
{
	struct keeper_message answer = {.op = KEEPER_STARTED, .serial = request->serial, .error = -EMFILE};

	if (!keeper->short_of_descriptors)
		log_error(NULL,
			  "no descriptors are left for those that the router stores: sessions may not outlive it");
	keeper->short_of_descriptors = true;
	if (size == keeper_message_size(KEEPER_START_TEMPLATE) && request->op == KEEPER_START_TEMPLATE)
		(void)router_tell(keeper, &answer, NULL, 0);
	else if (size == keeper_message_size(KEEPER_STORE) && request->op == KEEPER_STORE)
		store_forget(&keeper->store, &request->name);
}

/* Handle one message. Returns 0, CHANNEL_E_EMPTY, CHANNEL_E_EOF or -errno. */
static int channel_handle(struct keeper *keeper)
{
	struct keeper_message request = {0};
	int fds[CHANNEL_FDS_MAX];
	struct bytes data;
	size_t n_fds;
	int r = channel_recv(keeper->channel, (char *)&request, sizeof(request), &data, fds, &n_fds);

	if (r == -EMFILE) {
		descriptors_lost(keeper, &request, data.size);
		return 0;
	}
	if (r != 0)
		return r;
	if (request_valid(&request, data.size, n_fds))
		requests[request.op].fn(keeper, &request, fds, n_fds);
	else
		r = -EPROTO;
	for (size_t i = 0; i < n_fds; i++)
		fd_closep(&fds[i]);
	return r;
}

/* Give a new router everything that is stored, as fast as it reads. */
static void hand_over(struct keeper *keeper)
{
	struct keeper_message end = {.op = KEEPER_END, .error = keeper->last_end};
	struct store_item *item;

	while ((item = store_next(&keeper->store))) {
		struct keeper_message held = {.op = KEEPER_HELD, .name = item->name};

		if (router_tell(keeper, &held, item->fds, item->n_fds)) {
			store_again(&keeper->store);
			return;
		}
	}
	keeper->handing = router_tell(keeper, &end, NULL, 0) != 0;
}

/* ---- the end of a router ---- */

/* The router ended because it was told to, or none could ever run. */
static bool is_last(const struct keeper *keeper)
{
	return stopping(keeper) || !keeper->was_ready ||
	       (WIFEXITED(keeper->status) && WEXITSTATUS(keeper->status) == EXIT_SUCCESS);
}

static void explain_end(const struct keeper *keeper, uint64_t pause)
{
	char what[64], wait[64] = "";

	if (WIFSIGNALED(keeper->status))
		snprintf(what, sizeof(what), "was killed by signal %d (%s)", WTERMSIG(keeper->status),
			 strsignal(WTERMSIG(keeper->status)));
	else
		snprintf(what, sizeof(what), "ended with status %d", WEXITSTATUS(keeper->status));
	if (pause > 0)
		snprintf(wait, sizeof(wait), " in %.3g s", (double)pause / 1e3);
	log_error(NULL, "the router %s: another one starts%s, and sessions wait for it", what, wait);
}

static void router_replace_later(struct keeper *keeper)
{
	uint64_t now = clock_ms(), pause;

	if (WIFEXITED(keeper->status) && WEXITSTATUS(keeper->status) == ROUTER_EXIT_REPLACE) {
		keeper->start_at = now;
		return;
	}
	if (WIFEXITED(keeper->status) && WEXITSTATUS(keeper->status) == ROUTER_EXIT_LAYOUT && !keeper->our_own) {
		log_error(NULL, "the laird that is installed cannot go on with these sessions: one of the build "
				"that was started does");
		keeper->our_own = true;
		keeper->start_at = now;
		return;
	}
	pause = throttle_died(&keeper->throttle, now, keeper->is_ready);
	if (keeper->options->restart_at_once && keeper->is_ready)
		pause = 0;
	keeper->start_at = now + pause;
	explain_end(keeper, pause);
}

/* If somebody else kills it, nothing in the router is to blame. */
static enum router_end router_end(const struct keeper *keeper)
{
	int status = WIFEXITED(keeper->status) ? WEXITSTATUS(keeper->status) : 0;

	if (WIFSIGNALED(keeper->status) && WTERMSIG(keeper->status) == SIGKILL)
		return keeper->killed_for;
	if (WIFEXITED(keeper->status) &&
	    (status == EXIT_SUCCESS || status == ROUTER_EXIT_REPLACE || status == ROUTER_EXIT_LAYOUT))
		return ROUTER_END_WELL;
	return ROUTER_END_DIED;
}

/* Its last messages are read first: it may have stored something in them. */
static void router_ended(struct keeper *keeper, int status)
{
	keeper->router = 0;
	keeper->status = status;
	keeper->last_end = router_end(keeper);
	while (keeper->channel >= 0 && channel_handle(keeper) == 0)
		;
	keeper->channel = fd_close(keeper->channel);
	keeper->handing = false;
	if (is_last(keeper))
		keeper->over = true;
	else
		router_replace_later(keeper);
}

/* ---- signals and children ---- */

static void stop(struct keeper *keeper)
{
	if (stopping(keeper)) {
		/* Not the same signal again: whoever signals all processes of a host means one order. */
		sigaddset(&keeper->owed, SIGUSR1);
		router_pay(keeper);
		return;
	}
	keeper->stop_deadline = clock_ms() + STOP_LIMIT_MS;
	keeper->over = keeper->router == 0;
	notify_manager("STOPPING=1");
	if (keeper->router > 0)
		(void)kill(keeper->router, SIGTERM);
}

static void router_kill(struct keeper *keeper, enum router_end why)
{
	keeper->killed_for = why;
	(void)kill(keeper->router, SIGKILL);
}

/* A router whose messages make no sense is replaced. If its end of the channel is closed, it will die soon. */
static void on_channel(struct keeper *keeper)
{
	int r = channel_handle(keeper);

	if (r == 0 || r == CHANNEL_E_EMPTY)
		return;
	if (r < 0) {
		log_error(NULL, "the router does not make sense and is killed: %s", strerror(-r));
		router_kill(keeper, ROUTER_END_DIED);
	}
	keeper->channel = fd_close(keeper->channel);
}

/* What a child died of is worth a line unless we or the router killed it. */
static void child_ended(pid_t pid, int status)
{
	if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL && WTERMSIG(status) != SIGTERM)
		log_warn(NULL, "process %d was killed by signal %d (%s)", (int)pid, WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
}

/* Kill the children that are @such, but never one that removes a tree or writes the audit log. False if there
 * was none. */
static bool children_kill(struct keeper *keeper, bool (*such)(pid_t pid))
{
	FILE *children = fopen("/proc/thread-self/children", "re");
	bool any = false;
	int pid;

	if (!children) {
		/* A kernel without the list of children: they die with us. */
		log_warn(NULL, "cannot list the processes that are left: %s", strerror(errno));
		return false;
	}
	while (fscanf(children, "%d", &pid) == 1) {
		if (pid == keeper->router || removals_has(&keeper->removals, pid) ||
		    scribes_has(&keeper->scribes, pid) || !such(pid))
			continue;
		any = true;
		(void)kill(pid, SIGKILL);
	}
	(void)fclose(children);
	return any;
}

/* Only so many at a time, because a session's orphans may come and go without end. */
static void reap(struct keeper *keeper)
{
	int status;
	pid_t pid;

	for (int i = 0; i < REAP_MAX && (pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0; i++) {
		if (pid == keeper->router) {
			router_ended(keeper, status);
		} else if (!removals_reap(&keeper->removals, pid, status) &&
			   !scribes_reap(&keeper->scribes, pid, status, clock_ms())) {
			child_ended(pid, status);
			keeper->orphaned = true;
		}
	}
}

/* One of the blocked signals; 0 if there is none. */
static int signal_take(struct keeper *keeper)
{
	struct signalfd_siginfo info;

	return read(keeper->signals, &info, sizeof(info)) == sizeof(info) ? (int)info.ssi_signo : 0;
}

static void on_signal(struct keeper *keeper)
{
	int signal = signal_take(keeper);

	switch (signal) {
	case SIGCHLD:
		reap(keeper);
		break;
	case SIGTERM:
	case SIGINT:
		keeper->asked_to_stop = true;
		stop(keeper);
		break;
	case SIGHUP:
	case SIGUSR2:
		if (signal == SIGUSR2)
			keeper->our_own = false; /* there may be another by now */
		sigaddset(&keeper->owed, signal);
		router_pay(keeper);
		break;
	}
}

static void on_stop_limit(struct keeper *keeper)
{
	log_error(NULL, "the router did not end in time and is killed");
	(void)kill(keeper->router, SIGKILL);
	keeper->stop_deadline = UINT64_MAX;
}

/* ---- routers ---- */

/* Execute the file of our name, which may be of another build by now. If that fails, execute the build that we
 * are, which always exists: it can read what is stored, because a router of another layout would not have begun. */
static int router_execute(struct keeper *keeper, const char *const argv[], int channel)
{
	const struct spawn_fds given = {.fds = {channel}, .n = 1};
	int r = keeper->our_own ? -EPROTONOSUPPORT
				: spawn_program(&keeper->router, keeper->program, argv,
						(const char *const *)environ, &given);

	if (r == 0)
		return 0;
	if (!keeper->our_own)
		log_error(NULL, "cannot start %s: %s; the router is of this same build", keeper->program,
			  strerror(-r));
	return spawn_program(&keeper->router, "/proc/self/exe", argv, (const char *const *)environ, &given);
}

static int router_start(struct keeper *keeper)
{
	const struct keeper_options *options = keeper->options;
	const char *argv[10] = {"laird", "--router", "--socket", keeper->instance.socket, "--uids", keeper->uids};
	_cleanup_(fd_closep) int theirs = -1;
	int r;

	if (options->config) {
		argv[6] = "--config";
		argv[7] = options->config;
	}
	r = channel_pair(&keeper->channel, &theirs);
	if (r == 0)
		r = router_execute(keeper, argv, theirs);
	if (r < 0) {
		log_error(NULL, "cannot start the router: %s", strerror(-r));
		keeper->channel = fd_close(keeper->channel);
		keeper->start_at = clock_ms() + THROTTLE_PAUSE_MAX_MS;
		return r;
	}
	keeper->is_ready = false;
	keeper->killed_for = ROUTER_END_WELL;
	keeper->handing = true;
	pulse_heard(&keeper->pulse, clock_ms());
	store_rewind(&keeper->store);
	return 0;
}

/* How long until the next thing to do: kill orphans, look at the router, give up on a router that does not stop,
 * start a router, or start a scribe at @scribe_at. */
static int wait_ms(const struct keeper *keeper, uint64_t scribe_at)
{
	uint64_t now = clock_ms(), at = now + PULSE_BEAT_MS;

	if (keeper->orphaned)
		return keeper->killing_since && now > keeper->killing_since + KILL_LIMIT_MS ? KILL_SELDOM_MS
											    : KILL_AGAIN_MS;
	if (keeper->router == 0)
		at = keeper->start_at;
	else if (stopping(keeper))
		at = MIN(at, keeper->stop_deadline);
	at = MIN(at, scribe_at);
	return at > now ? (int)(at - now) : 0;
}

static void look_after_router(struct keeper *keeper)
{
	uint64_t now = clock_ms();

	if (keeper->router > 0 && stopping(keeper) && now >= keeper->stop_deadline)
		on_stop_limit(keeper);
	if (keeper->router > 0 && !stopping(keeper) && pulse_silent(&keeper->pulse, now)) {
		log_error(NULL, "the router has not stirred for %d seconds and is killed", PULSE_SILENCE_MS / 1000);
		router_kill(keeper, ROUTER_END_STOOD);
		pulse_heard(&keeper->pulse, now);
	}
	if (keeper->was_ready && now - keeper->told_manager >= PULSE_BEAT_MS) {
		keeper->told_manager = now;
		notify_alive();
	}
}

/* Kill processes that became our children because a warden or an earlier orphan died, until there are no more. */
static void look_after_orphans(struct keeper *keeper)
{
	bool any;

	if (!keeper->orphaned)
		return;
	any = children_kill(keeper, orphan_is);
	if (any && !keeper->killing_since)
		log_warn(NULL, "something has outlived its session and is killed");
	if (!any || !keeper->killing_since)
		keeper->killing_since = any ? clock_ms() : 0;
	keeper->orphaned = any;
	reap(keeper);
}

static int wait_once(struct keeper *keeper)
{
	struct pollfd ready[] = {
		{.fd = keeper->signals, .events = POLLIN},
		{.fd = keeper->channel, .events = (short)(POLLIN | (keeper->handing ? POLLOUT : 0))},
	};
	int r = poll(ready, ARRAY_SIZE(ready), wait_ms(keeper, scribes_start(&keeper->scribes, clock_ms())));

	if (r < 0)
		return errno == EINTR ? 0 : -errno;
	look_after_router(keeper);
	if (r > 0 && (ready[1].revents & POLLOUT) && keeper->handing)
		hand_over(keeper);
	if (r > 0 && (ready[1].revents & ~POLLOUT))
		on_channel(keeper);
	if (r > 0 && ready[0].revents)
		on_signal(keeper);
	look_after_orphans(keeper);
	return 0;
}

static int run(struct keeper *keeper)
{
	int r = 0;

	while (r == 0 && !keeper->over) {
		if (keeper->router == 0 && clock_ms() >= keeper->start_at)
			(void)router_start(keeper);
		r = wait_once(keeper);
	}
	return r;
}

/* ---- the end ---- */

static bool any_child(pid_t pid)
{
	(void)pid;
	return true;
}

/* The children of the killed become ours, so it takes one round for each generation. */
static void children_end(struct keeper *keeper)
{
	uint64_t deadline = clock_ms() + KILL_LIMIT_MS;

	while (children_kill(keeper, any_child)) {
		struct pollfd ready = {.fd = keeper->signals, .events = POLLIN};

		if (clock_ms() > deadline) {
			log_error(NULL, "not everything could be killed");
			return;
		}
		(void)poll(&ready, 1, KILL_PAUSE_MS);
		(void)signal_take(keeper);
		reap(keeper);
	}
}

/* Nobody has anything more to write. */
static void scribes_end(struct keeper *keeper)
{
	uint64_t deadline = clock_ms() + SCRIBES_LIMIT_MS, now;

	while (!list_empty(&keeper->scribes.all) && (now = clock_ms()) < deadline) {
		struct pollfd ready = {.fd = keeper->signals, .events = POLLIN};
		uint64_t at = MIN(scribes_start(&keeper->scribes, now), deadline);

		(void)poll(&ready, 1, at > now ? (int)(at - now) : 0);
		(void)signal_take(keeper);
		reap(keeper);
	}
	scribes_kill(&keeper->scribes);
}

/* After a second order to stop, the next start removes the rest of them. */
static void removals_end(struct keeper *keeper)
{
	int signal = 0;

	while (!list_empty(&keeper->removals.trees) && signal != SIGTERM && signal != SIGINT) {
		struct pollfd ready = {.fd = keeper->signals, .events = POLLIN};

		signal = poll(&ready, 1, -1) > 0 ? signal_take(keeper) : 0;
		reap(keeper);
	}
}

/* The status of the router, as a shell would say it. If we were told to stop before it could listen, this is no
 * failure. */
static int exit_status(const struct keeper *keeper)
{
	int status = keeper->status;

	if (WIFSIGNALED(status))
		return keeper->asked_to_stop && WTERMSIG(status) == SIGTERM ? 0 : 128 + WTERMSIG(status);
	/* Told to stop while no router could run. */
	if (keeper->was_ready && keeper->asked_to_stop && WEXITSTATUS(status) != EXIT_SUCCESS && !keeper->is_ready)
		return EXIT_SUCCESS;
	return WEXITSTATUS(status);
}

static int end(struct keeper *keeper)
{
	int status = exit_status(keeper);

	if (WIFSIGNALED(keeper->status) && status != 0)
		log_error(NULL, "the router was killed by signal %d (%s): all sessions end",
			  WTERMSIG(keeper->status), strsignal(WTERMSIG(keeper->status)));
	else if (keeper->was_ready && !keeper->asked_to_stop)
		log_error(NULL, "the router ended by itself with status %d: all sessions end", status);
	/* Clients shall not wait for a router that never comes, nor sessions for their next cell. */
	instance_refuse(&keeper->instance);
	store_deinit(&keeper->store);
	children_end(keeper);
	cgroups_erase(keeper->instance.socket);
	scribes_end(keeper);
	removals_end(keeper);
	return status;
}

/* ---- the beginning ---- */

static int signals_open(int *fdp)
{
	static const int taken[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR2};
	struct sigaction standard = {.sa_handler = SIG_DFL}, ignore = {.sa_handler = SIG_IGN};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(taken); i++) {
		sigaddset(&set, taken[i]);
		/* An ignored signal would never arrive; and children of a process that ignores SIGCHLD cannot be
		 * waited for. */
		if (sigaction(taken[i], &standard, NULL) < 0)
			return -errno;
	}
	if (sigaction(SIGPIPE, &ignore, NULL) < 0 || sigprocmask(SIG_SETMASK, &set, NULL) < 0)
		return -errno;
	*fdp = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return *fdp < 0 ? -errno : 0;
}

/* The listening socket is held like what routers store. */
static int listener_store(struct keeper *keeper)
{
	const struct store_name name = {.kind = STORE_LISTENER};
	int fd, r = 0;

	if (keeper->instance.listener < 0) {
		r = instance_listen(&keeper->instance);
		if (r < 0)
			return r;
		handover_leave_listener(&keeper->handover, &keeper->instance);
	}
	r = instance_share(&keeper->instance, keeper->options->socket_mode, keeper->options->socket_group);
	if (r < 0)
		return r;
	fd = fcntl(keeper->instance.listener, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -errno : store_put(&keeper->store, &name, &fd, 1);
}

/* Our own name, before anybody replaced the file. */
static int program_find(char path[static PATH_SIZE])
{
	ssize_t n = readlink("/proc/self/exe", path, PATH_SIZE - 1);

	path[MAX(n, 0)] = '\0';
	return n < 0 ? -errno : 0;
}

static int begin(struct keeper *keeper)
{
	int r = signals_open(&keeper->signals);

	if (r == 0)
		r = prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ? -errno : 0;
	if (r < 0) {
		log_error(NULL, "cannot become the keeper: %s", strerror(-r));
		return r;
	}
	if (keeper->options->log) {
		r = log_open(keeper->options->log);
		if (r < 0) {
			log_error(NULL, "cannot log to %s: %s", keeper->options->log,
				  r == -EINVAL ? "not a regular file" : strerror(-r));
			return r;
		}
	}
	handover_claim(&keeper->instance, &keeper->store);
	spawn_raise_descriptors();
	cgroups_erase(keeper->instance.socket);
	r = program_find(keeper->program);
	if (r == 0)
		r = listener_store(keeper);
	if (r < 0)
		log_error(NULL, "cannot listen on %s: %s", keeper->instance.socket, strerror(-r));
	return r < 0 ? r : router_start(keeper);
}

/* Without the file, as where /run is not there, nobody else can look into it either. Returns whether we may go on.
 */
static bool uids_ours(struct keeper *keeper, int *fdp)
{
	struct uids uids = keeper->options->uids;
	int r = geteuid() == 0 ? uids_claim(&uids, fdp) : 0;

	uids_print(keeper->uids, &uids);
	if (r < 0)
		log_warn(NULL, "no lock for uids, so that two daemons could give sessions one user: %s",
			 strerror(-r));
	if (r == UIDS_E_TAKEN)
		fprintf(stderr,
			"laird: another laird gives some of uids = %s to its sessions; set others in "
			"sessions.conf, or none\n",
			keeper->uids);
	return r != UIDS_E_TAKEN;
}

static void explain_instance(const char *socket, int r)
{
	if (r == INSTANCE_E_RUNNING)
		fprintf(stderr, "laird: already running on %s\n", socket);
	else if (r == -EPERM)
		fprintf(stderr, "laird: the directory of %s must be yours, and writable to nobody else\n", socket);
	else
		fprintf(stderr, "laird: cannot use %s: %s\n", socket, strerror(-r));
}

int keeper_run(const struct keeper_options *options)
{
	struct keeper keeper = {.options = options, .channel = -1, .signals = -1, .ready = options->ready_fd};
	int r = instance_init(&keeper.instance, options->socket), status = EXIT_FAILURE;
	_cleanup_(fd_closep) int uids = -1;

	if (r != 0) {
		explain_instance(options->socket, r);
		return r == INSTANCE_E_RUNNING ? EXIT_RUNNING : EXIT_FAILURE;
	}
	if (!uids_ours(&keeper, &uids)) {
		instance_deinit(&keeper.instance);
		return EXIT_FAILURE;
	}
	removals_init(&keeper.removals);
	scribes_init(&keeper.scribes);
	store_init(&keeper.store);
	handover_init(&keeper.handover);
	if (begin(&keeper) == 0) {
		r = run(&keeper);
		if (r < 0)
			log_error(NULL, "cannot wait: %s", strerror(-r));
		status = r < 0 ? EXIT_FAILURE : end(&keeper);
	}
	removals_deinit(&keeper.removals);
	scribes_deinit(&keeper.scribes);
	store_deinit(&keeper.store);
	instance_deinit(&keeper.instance);
	fd_close(keeper.channel);
	fd_close(keeper.signals);
	fd_close(keeper.ready);
	return status;
}
