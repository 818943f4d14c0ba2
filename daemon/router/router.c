/* The router's process: set up, one blocking call, take down. One loop calls everything, and objects are freed
 * only between its rounds, so a handler may end anything. */
#include "router.h"

#include "base/descriptors.h"
#include "base/log.h"
#include "base/priority.h"
#include "family/family.h"
#include "family/revive.h"
#include "files/files.h"
#include "keeper/instance.h"
#include "keeper/pulse.h"
#include "request/request.h"
#include "session/core/counters.h"
#include "session/life/stop.h"
#include "session/parts/installing.h"
#include "vault/errand.h"
#include "vault/fault.h"

#include "proto/channel.h"

#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

/* How long each kind of things is done in one round, before what came of them is settled and answers go out. */
#define REQUESTS_US 250
#define EVENTS_US 250
#define TIMERS_US 500
/* A round accepts no more work when writing down its changes would take so long. */
#define SETTLE_US 2000
/* Of how many things of a kind a round is, at most; and of how many it may be in any case: fewer would cost a long
 * queue a settle for each cell. */
#define THINGS_MAX 64
#define THINGS_MIN 16
/* And so many bytes of answers, which wait for its end. */
#define ANSWERS_PER_ROUND ((size_t)32 << 20)
/* Blocks of this size are mapped one by one. */
#define LARGE (1 << 20)
/* How long cells may take to end by themselves when laird stops, and then their wardens to die. */
#define STOP_GRACE_US 1000000
#define STOP_LIMIT_US 5000000
#define STOP_LATE "laird had to stop before it was saved; stop_save allows it more time"
#define STOP_TWICE "laird was told to stop a second time before it was saved"

/* ---- the keeper ---- */

static struct nursery *nursery_by_serial(struct list *head, uint32_t serial)
{
	struct nursery *nursery;

	list_for_each (nursery, head, node)
		if (nursery->serial == serial)
			return nursery;
	return NULL;
}

static void on_keeper(struct event_source *source, uint32_t events)
{
	struct router *router = container_of(source, struct router, keeper_source);
	struct keeper_message message;
	struct nursery *nursery;
	int fds[CHANNEL_FDS_MAX], r;
	struct bytes data;
	size_t n_fds;

	r = channel_recv(KEEPER_FD, (char *)&message, sizeof(message), &data, fds, &n_fds);
	if (r == CHANNEL_E_EMPTY)
		return;
	if (r && r != -EMFILE) {
		log_error(NULL, "the keeper is gone");
		event_remove(&router->loop, source);
		router->stopped = true;
		return;
	}
	nursery = nursery_by_serial(&router->cages.nurseries, message.serial);
	if (!nursery)
		nursery = nursery_by_serial(&router->cages.retired, message.serial);
	if (data.size == keeper_message_size(KEEPER_STARTED) && message.op == KEEPER_STARTED && nursery)
		nursery_on_started(nursery, message.pid, steal_fd(&fds[0]), message.error);
	for (size_t i = 0; i < CHANNEL_FDS_MAX; i++)
		fd_closep(&fds[i]);
}

/* ---- the clients ---- */

static void on_request(struct front *front, const struct connection *connection, struct bytes data)
{
	struct router *router = container_of(front, struct router, clients.front);
	struct address from = {
		.fd = connection->fd, .connection = connection->serial, .uid = connection->user->uid};

	request_receive(&router->sessions, &from, data);
}

/* On the socket that the keeper holds. */
static int clients_listen(struct router *router)
{
	struct front *front = &router->clients.front;
	int r;

	front_init(front, &router->loop, &router->users, getppid(), router->config->frame_size, on_request);
	r = front_listen(front, router->listener);
	if (r)
		log_error(NULL, "cannot listen on %s: %s", router->socket_path, strerror(-r));
	return r;
}

/* Sessions resume their streams to clients that have caught up. */
static void sessions_resume(struct router *router)
{
	struct session *session;

	router->clients.front.drained = false;
	list_for_each (session, &router->sessions.all, node)
		session_resume(session);
}

/* ---- packages ---- */

static void on_installed(struct builds *builds, const char *key, const char *set, const char *reason)
{
	sessions_installed(&container_of(builds, struct router, builds)->sessions, key, set, reason);
}

static void on_install_told(struct builds *builds, const char *key)
{
	sessions_install_told(&container_of(builds, struct router, builds)->sessions, key);
}

static void packages_begin(struct router *router)
{
	builds_init(&router->builds, &router->loop, &router->breaker);
	router->builds.on_built = on_installed;
	router->builds.on_told = on_install_told;
}

/* ---- stopping ---- */

static void on_stop_limit(struct timer *timer)
{
	log_warn(NULL, "not everything ended in time: the keeper will see to the rest");
	container_of(timer, struct router, stop_timer)->stopped = true;
}

/* @why: sessions that are left are not saved. */
static void stop_end(struct router *router, const char *why)
{
	router->ending = true;
	sessions_stop_end(&router->sessions, why);
	cages_retire_all(&router->cages);
	(void)timer_set(&router->loop, &router->stop_timer, event_now() + STOP_LIMIT_US, on_stop_limit);
}

static void stop_check(struct router *router)
{
	if (router->grace_over && !router->ending && sessions_stop_proceed(&router->sessions))
		stop_end(router, STOP_LATE);
	if (router->cages.stopping && list_empty(&router->sessions.all) && list_empty(&router->cages.nurseries) &&
	    list_empty(&router->cages.retired))
		router->stopped = true;
}

static void on_stop_late(struct timer *timer)
{
	stop_end(container_of(timer, struct router, stop_timer), STOP_LATE);
}

static void on_stop_grace(struct timer *timer)
{
	struct router *router = container_of(timer, struct router, stop_timer);

	router->grace_over = true;
	(void)timer_set(&router->loop, timer, router->stop_until, on_stop_late);
}

/* Those that are to be saved have their time for it; the others end with the last of them. */
static void stop_begin(struct router *router)
{
	uint64_t now = event_now();
	bool busy;

	if (router->cages.stopping)
		return;
	router->cages.stopping = true;
	log_info(NULL, "stopping");
	busy = sessions_stop(&router->sessions);
	if (!sessions_stop_proceed(&router->sessions)) {
		router->stop_until = now + router->config->stop_save;
		errand_stopping(router->config->stop_save / 1000);
		log_info(NULL, "%" PRIu64 " sessions are to be saved", router->sessions.stop.n_left);
	}
	router->stop_until = MAX(router->stop_until, now + (busy ? STOP_GRACE_US : 0));
	(void)timer_set(&router->loop, &router->stop_timer, now + (busy ? STOP_GRACE_US : 0), on_stop_grace);
}

/* A second order to stop: the operator does not want to wait for the remaining saves. */
static void stop_hurry(struct router *router)
{
	if (!router->cages.stopping || router->ending)
		return;
	log_warn(NULL, "told to stop a second time: nothing more is saved");
	stop_end(router, STOP_TWICE);
}

static void on_signal(struct event_source *source, uint32_t events)
{
	struct router *router = container_of(source, struct router, signal_source);
	struct signalfd_siginfo info;

	if (read(source->fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGUSR2)
		router->replaced = !router->cages.stopping;
	else if (info.ssi_signo == SIGUSR1)
		stop_hurry(router);
	else if (info.ssi_signo != SIGHUP)
		stop_begin(router);
	else if (!router->cages.stopping)
		reload(router, NULL);
}

/* ---- the process ---- */

static void on_stale(void *userdata, const char *path)
{
	if (families_use(&((struct router *)userdata)->families, path))
		return;
	/* A used workspace is kept; an empty one is a spare's, and is removed. */
	if (workspace_is_kept(path)) {
		(void)rmdir(path);
		return;
	}
	log_info(NULL, "sweeping %s, left by an earlier life", path);
	errand_remove_tree(path);
}

static int signals_open(struct router *router)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : event_add(&router->loop, &router->signal_source, fd, EPOLLIN, on_signal);
}

/* Large blocks return to the kernel as soon as they are freed. Otherwise malloc keeps room for the largest messages
 * of all time below blocks that are still in use. */
static void memory_prepare(void)
{
	(void)mallopt(M_MMAP_THRESHOLD, LARGE);
	(void)mallopt(M_TRIM_THRESHOLD, 8 * LARGE);
}

/* Missing control groups are logged once. */
static void groups_open(struct router *router)
{
	cgroups_open(&router->cages.cgroups, router->socket_path, &router->loop);
	cgroups_adopt(&router->cages.cgroups);
	for (int i = 0; i < _CONTROLLER_N; i++)
		if (router->cages.cgroups.lacking[i][0])
			log_info(NULL, "no control groups for %s: %s", controller_names[i],
				 router->cages.cgroups.lacking[i]);
}

static int vault_read(struct router *router)
{
	struct vault_item *promises = vault_find(&router->vault, VAULT_PROMISES, 0, 0);
	int r = 0;

	/* Or all but the newest would be forgotten at once. */
	router->promises.size_per_user = router->config->results_per_uid;
	router->users.share = router->config->work_per_uid;
	if (promises) {
		promises->taken = true;
		r = promises_revive(&router->promises, steal_fd(&promises->fds[0]), &router->breaker);
	}
	if (r)
		log_error(NULL, "answers of the last router are lost: %s", strerror(-r));
	families_read(&router->families);
	return 0;
}

static void on_turn(struct event_loop *loop)
{
	breaker_take(&container_of(loop, struct router, loop)->breaker);
}

/* Without it nothing is worse than before there was one. */
static void breaker_begin(struct router *router, enum router_end last_end)
{
	struct vault_item *left = vault_find(&router->vault, VAULT_BREAKER, 0, 0);
	int r = 0;

	breaker_open(&router->breaker, left ? steal_fd(&left->fds[0]) : -1, last_end);
	if (left)
		left->taken = true;
	else if (router->breaker.fd >= 0)
		r = vault_store(VAULT_BREAKER, 0, 0, &router->breaker.fd, 1);
	if (r)
		log_warn(NULL, "the next router will not know of which work this one died: %s", strerror(-r));
	router->loop.on_turn = on_turn;
	fault_begin(breaker_faults(&router->breaker));
}

static void counters_begin(struct router *router)
{
	struct vault_item *left = vault_find(&router->vault, VAULT_COUNTERS, 0, 0);
	_cleanup_(fd_closep) int made = -1;

	counters_open(&router->sessions, left ? steal_fd(&left->fds[0]) : -1, &made);
	if (left)
		left->taken = true;
	if (!router->sessions.kept || (made >= 0 && vault_store(VAULT_COUNTERS, 0, 0, &made, 1)))
		log_warn(NULL, "the next router will count anew");
}

/* Each kind before those that it refers to. */
static void router_free_dead(struct router *router)
{
	graveyard_empty(&router->promises.dead);
	graveyard_empty(&router->cages.dead_interpreters);
	graveyard_empty(&router->sessions.dead);
	graveyard_empty(&router->cages.dead_wardens);
	graveyard_empty(&router->cages.dead_nurseries);
	graveyard_empty(&router->clients.front.dead);
}

/* Messages leave their sockets, and answers are sent, only after the next router would know of them. */
static void router_settle(struct router *router)
{
	breaker_settle(&router->breaker);
	counters_keep(&router->sessions);
	families_fault(&router->families, "begin");
	promises_commit(&router->promises);
	families_fault(&router->families, "promised");
	families_commit(&router->families);
	families_fault(&router->families, "written");
	peers_settle(&router->cages.due);
	families_fault(&router->families, "heard");
	clients_settle(&router->clients);
	families_fault(&router->families, "said");
	families_settle(&router->families);
	router_free_dead(router);
	breaker_put_down(&router->breaker);
}

static void on_revived(struct families *families)
{
	router_settle(container_of(families, struct router, families));
}

/* A keeper of an earlier build does not say. */
static void uids_take(struct router *router, const char *text)
{
	struct uids *uids = &router->cages.uids_given;
	const struct config *config = router->config;

	if (text && uids_parse(uids, text))
		return;
	*uids = config->uid_last ? (struct uids){config->uid_first, config->uid_last} : UIDS_BEFORE;
}

/* The part that needs no memory and no other process. */
static void router_blank(struct router *router, const char *config_path, const char *keeper)
{
	*router = (struct router){.config_path = config_path,
				  .listener = -1,
				  .breaker.fd = -1,
				  .keeper_source = EVENT_SOURCE_NONE,
				  .signal_source = EVENT_SOURCE_NONE};
	cages_init(&router->cages, &router->loop, &router->breaker);
	router->sessions = (struct sessions){.loop = &router->loop,
					     .breaker = &router->breaker,
					     .users = &router->users,
					     .clients = &router->clients,
					     .promises = &router->promises,
					     .cages = &router->cages,
					     .saved = &router->saved,
					     .builds = &router->builds};
	life_init(&router->sessions);
	packages_begin(router);
	reload_init(router);
	families_init(&router->families, &router->sessions, &router->vault);
	vault_init(&router->vault);
	clients_init(&router->clients);
	users_init(&router->users);
	promises_init(&router->promises, &router->loop, &router->clients, &router->users, keeper);
	router->sessions.stats.started = event_now();
}

static int process_prepare(struct router *router, const char *socket_path)
{
	int r;

	/* Nobody inherits it: the keeper starts the templates. */
	descriptors_limit(true);
	priority_raise();
	memory_prepare();
	router->socket_path = strdup(socket_path);
	r = router->socket_path ? event_loop_init(&router->loop) : -ENOMEM;
	if (r)
		log_error(NULL, "%s", strerror(-r));
	return r;
}

/* Read the keeper's store, and how the last router ended. */
static int inherit(struct router *router, const char *uids)
{
	enum router_end last_end = ROUTER_END_WELL;
	int r = fcntl(KEEPER_FD, F_SETFL, O_NONBLOCK) < 0
			? -errno
			: vault_receive(&router->vault, &router->listener, &last_end);

	if (r == VAULT_E_LAYOUT)
		_exit(ROUTER_EXIT_LAYOUT); /* having touched nothing */
	if (!r)
		breaker_begin(router, last_end);
	if (!r)
		counters_begin(router);
	if (!r)
		r = settings_begin(router);
	if (!r)
		uids_take(router, uids);
	if (!r)
		r = event_add(&router->loop, &router->keeper_source, KEEPER_FD, EPOLLIN, on_keeper);
	if (!r)
		r = signals_open(router);
	return r ? r : vault_read(router);
}

static int workspaces_begin(struct router *router)
{
	struct workspaces *workspaces = &router->cages.workspaces;
	int r = workspaces_open(workspaces, router->config->workspaces, router->socket_path, on_stale, router);

	if (r == -ENOENT && !workspaces->path)
		log_error(NULL,
			  "no place for workspaces: neither XDG_STATE_HOME nor HOME is set; set one of them, or "
			  "workspaces in sessions.conf");
	else if (r)
		log_error(NULL, "cannot use %s for workspaces: %s",
			  workspaces->path ? workspaces->path : "any directory", strerror(-r));
	return r;
}

static int serve_begin(struct router *router)
{
	struct config_error error;
	int r;

	groups_open(router);
	r = settings_start(router, &error);
	if (r)
		log_error(NULL, "%s", error.text);
	return r ? r : clients_listen(router);
}

/* Go on where the router before this one has ended. */
static void go_on(struct router *router)
{
	struct config *config = router->config;

	router->config = NULL;
	settings_use(router, config);
	families_revive(&router->families, on_revived);
	/* The last router may have been of a build that took more. */
	descriptors_limit(false);
	sessions_settle_past(&router->sessions);
	promises_settle(&router->promises);
	vault_settle(&router->vault);
	router_settle(router);
	/* All that was not revived has ended. */
	breaker_forget(&router->breaker, BLAME_INTERPRETER);
	breaker_forget(&router->breaker, BLAME_SESSION);
	breaker_forget(&router->breaker, BLAME_FAMILY);
	breaker_forget(&router->breaker, BLAME_REVIVAL);
	breaker_forget(&router->breaker, BLAME_RECORD);
}

static int router_init(struct router *router, const char *config_path, const char *socket_path, const char *uids)
{
	char keeper[INSTANCE_NAME_SIZE] = "";
	int r = instance_name(keeper, getppid());

	router_blank(router, config_path, keeper);
	if (r)
		log_error(NULL, "cannot tell when laird began: %s", strerror(-r));
	if (!r)
		r = process_prepare(router, socket_path);
	if (!r)
		r = inherit(router, uids);
	if (!r)
		r = workspaces_begin(router);
	if (!r)
		r = serve_begin(router);
	if (!r)
		go_on(router);
	return r;
}

static void router_deinit(struct router *router)
{
	builds_deinit(&router->builds);
	sessions_bury_all(&router->sessions);
	cages_bury_all(&router->cages);
	router_free_dead(router);
	promises_deinit(&router->promises);
	clients_deinit(&router->clients);
	fd_closep(&router->listener);
	users_deinit(&router->users);
	families_deinit(&router->families);
	cages_deinit(&router->cages);
	breaker_close(&router->breaker);
	audit_log_end(&router->sessions);
	past_deinit(&router->sessions.past);
	stop_deinit(&router->sessions.stop);
	watches_deinit(&router->sessions);
	config_free(router->config);
	timer_clear(&router->loop, &router->stop_timer);
	timer_clear(&router->loop, &router->beat);
	fd_close(router->signal_source.fd);
	event_loop_deinit(&router->loop);
	free(router->socket_path);
}

/* After a crash, a careful router handles one thing a round: a crash is then blamed on that one. */
static struct slice slice_begin(struct router *router, enum share share)
{
	static const uint64_t shares[_SHARE_N] = {
		[SHARE_REQUESTS] = REQUESTS_US, [SHARE_EVENTS] = EVENTS_US, [SHARE_TIMERS] = TIMERS_US};
	struct slice slice = {.until = event_now() + shares[share],
			      .things = THINGS_MAX,
			      .owed = &router->cages.owed,
			      .owed_max = SETTLE_US,
			      .few = THINGS_MIN};

	if (breaker_is_careful(&router->breaker))
		slice.things = router->careful_turn == (unsigned)share;
	return slice;
}

static void requests_take(struct router *router)
{
	struct slice slice = slice_begin(router, SHARE_REQUESTS);

	while (router->clients.front.queued <= ANSWERS_PER_ROUND && slice_take(&slice))
		if (front_serve(&router->clients.front) != 0)
			break;
}

static int round_run(struct router *router)
{
	bool pending = front_pending(&router->clients.front) || event_pending(&router->loop);
	int r = event_wait(&router->loop, pending ? 0 : timer_wait(&router->loop));
	struct slice slice;

	if (r) {
		log_error(NULL, "cannot wait: %s", strerror(-r));
		return r;
	}
	slice = slice_begin(router, SHARE_EVENTS);
	event_dispatch(&router->loop, &slice);
	requests_take(router);
	slice = slice_begin(router, SHARE_TIMERS);
	timer_run(&router->loop, &slice);
	router->careful_turn = (router->careful_turn + 1) % _SHARE_N;
	router->cages.n_measured = 0;
	if (router->clients.front.drained)
		sessions_resume(router);
	router_settle(router);
	stop_check(router);
	return 0;
}

static void on_beat(struct timer *timer)
{
	struct router *router = container_of(timer, struct router, beat);

	errand_beat();
	(void)timer_set(&router->loop, timer, event_now() + PULSE_BEAT_MS * 1000, on_beat);
}

int router_run(const char *config_path, const char *socket_path, const char *uids)
{
	struct keeper_message ready = {.op = KEEPER_READY};
	struct router router;
	int r;

	r = router_init(&router, config_path, socket_path, uids);
	if (!r) {
		log_info(NULL, "listening on %s", router.socket_path);
		if (router.config->path)
			log_info(NULL, "settings read from %s", router.config->path);
		r = keeper_tell(&ready, NULL, 0);
		on_beat(&router.beat);
	}
	while (!r && !router.stopped && !router.replaced)
		r = round_run(&router);
	if (!r && router.replaced) {
		/* The next router gets all that it holds, so it ends as if killed. */
		log_info(NULL, "making room for another router");
		_exit(ROUTER_EXIT_REPLACE);
	}
	if (!r)
		log_info(NULL, "stopped");
	router_deinit(&router);
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}
