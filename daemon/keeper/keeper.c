/* The keeper. Every process of a daemon is its child, or becomes its child when the parent dies. So when it
 * ends, nothing is left; processes that a session left behind are killed at once. To stop, it waits while the
 * router ends its sessions, kills everything that remains, waits for the children that remove workspaces, and
 * only then gives up the socket's name.
 *
 * A router that dies by itself is replaced. First the keeper reads the last messages of the dead router; then it
 * hands the stored descriptors to the next one, before anything else. */
#include "state.h"

#include "base/log.h"
#include "base/spawn.h"
#include "cgroup/cgroup.h"
#include "notify.h"

#include "proto/channel.h"
#include "proto/clock.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#define KILL_AGAIN_MS 1
#define KILL_SELDOM_MS 200 /* what does not die waits for a disk */
#define EXIT_RUNNING 3

/* ---- signals and messages ---- */

/* A router whose messages make no sense is replaced. If its end of the channel is closed, it will die soon. */
static void on_channel(struct keeper *keeper)
{
	int r = keeper_hear(keeper);

	if (r == 0 || r == CHANNEL_E_EMPTY)
		return;
	if (r < 0) {
		log_error(NULL, "the router does not make sense and is killed: %s", strerror(-r));
		keeper_kill_router(keeper, ROUTER_END_DIED);
	}
	keeper->channel = fd_close(keeper->channel);
}

static void on_signal(struct keeper *keeper)
{
	int signal = keeper_signal(keeper);

	switch (signal) {
	case SIGCHLD:
		keeper_reap(keeper);
		break;
	case SIGTERM:
	case SIGINT:
		keeper->asked_to_stop = true;
		keeper_stop(keeper);
		break;
	case SIGHUP:
	case SIGUSR2:
		if (signal == SIGUSR2)
			keeper->our_own = false; /* there may be another by now */
		sigaddset(&keeper->owed, signal);
		keeper_pay(keeper);
		break;
	}
}

/* ---- the loop ---- */

/* How long until the next thing to do: kill orphans, look at the router, give up on a router that does not stop,
 * or start a router. */
static int wait_ms(const struct keeper *keeper)
{
	uint64_t now = clock_ms(), at = now + PULSE_BEAT_MS;

	if (keeper->orphaned)
		return keeper->killing_since && now > keeper->killing_since + KILL_LIMIT_MS ? KILL_SELDOM_MS
											    : KILL_AGAIN_MS;
	if (keeper->router == 0)
		at = keeper->start_at;
	else if (keeper_stops(keeper))
		at = MIN(at, keeper->stop_deadline);
	return at > now ? (int)(at - now) : 0;
}

static int wait_once(struct keeper *keeper)
{
	struct pollfd ready[] = {
		{.fd = keeper->signals, .events = POLLIN},
		{.fd = keeper->channel, .events = (short)(POLLIN | (keeper->handing ? POLLOUT : 0))},
	};
	int r = poll(ready, ARRAY_SIZE(ready), wait_ms(keeper));

	if (r < 0)
		return errno == EINTR ? 0 : -errno;
	keeper_look_after_router(keeper);
	if (r > 0 && (ready[1].revents & POLLOUT) && keeper->handing)
		keeper_hand_over(keeper);
	if (r > 0 && (ready[1].revents & ~POLLOUT))
		on_channel(keeper);
	if (r > 0 && ready[0].revents)
		on_signal(keeper);
	keeper_kill_orphans(keeper);
	return 0;
}

static int run(struct keeper *keeper)
{
	int r = 0;

	while (r == 0 && !keeper->over) {
		if (keeper->router == 0 && clock_ms() >= keeper->start_at)
			(void)keeper_start_router(keeper);
		r = wait_once(keeper);
	}
	return r;
}

/* ---- the end ---- */

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
	keeper_end_children(keeper);
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

/* Our own name, before the file is replaced. */
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
	return r < 0 ? r : keeper_start_router(keeper);
}

/* Without the file, as where /run is not there, no other daemon can read it either. Returns whether to continue.
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
	store_init(&keeper.store);
	handover_init(&keeper.handover);
	if (begin(&keeper) == 0) {
		r = run(&keeper);
		if (r < 0)
			log_error(NULL, "cannot wait: %s", strerror(-r));
		status = r < 0 ? EXIT_FAILURE : end(&keeper);
	}
	removals_deinit(&keeper.removals);
	store_deinit(&keeper.store);
	instance_deinit(&keeper.instance);
	fd_close(keeper.channel);
	fd_close(keeper.signals);
	fd_close(keeper.ready);
	return status;
}
