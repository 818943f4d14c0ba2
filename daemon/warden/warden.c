/* Wardens as the router sees them. The pidfd tells of a warden's death. If the host has no pidfds, the end of
 * its control pair does, because the warden alone holds the other end. */
#include "warden.h"

#include "base/log.h"
#include "budget.h"
#include "cages.h"
#include "keeper/workspace.h"
#include "nursery.h"
#include "places.h"
#include "tenant.h"
#include "vault/errand.h"
#include "vault/records.h"

#include "proto/channel.h"

#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>

#ifndef CAGE_PATIENCE_US
#define CAGE_PATIENCE_US (20 * 1000000ULL)
#endif
/* What a warden takes at most to end what is in its cage, and some more. */
#define FAREWELL_US (3 * 1000000ULL)
/* To write down a family for the first time. */
#define FIRST_COMMIT_US 300

static int control_make(struct warden *warden)
{
	int ours, r = channel_pair(&ours, &warden->theirs);

	if (!r)
		peer_init(&warden->peer, warden->cages->loop, &warden->cages->due, ours, -1);
	return r;
}

static struct warden *warden_blank(struct cages *cages, struct nursery *nursery, struct profile *profile)
{
	struct warden *warden = malloc(sizeof(*warden));

	if (!warden)
		return NULL;
	*warden = (struct warden){
		.cages = cages,
		.nursery = nursery,
		.profile = profile_ref(profile),
		.state = WARDEN_WANTED,
		.theirs = -1,
		.pidfd = -1,
		.directory = -1,
		.group = GROUP_NONE,
		.pidfd_source = EVENT_SOURCE_NONE,
		.keep = profile->workspace,
		.took = FIRST_COMMIT_US,
		.last_files = FILES_FIRST,
	};
	quota_init(&warden->quota, profile);
	msgpack_sbuffer_init(&warden->guards);
	peer_init(&warden->peer, cages->loop, &cages->due, -1, -1);
	ledger_init(&warden->ledger);
	list_init(&warden->node);
	list_init(&warden->touched);
	list_init(&warden->tenants);
	list_init(&warden->interpreters);
	return warden;
}

void warden_touch(struct warden *warden)
{
	if (list_empty(&warden->touched))
		warden->cages->owed += warden->took;
	list_move(&warden->cages->touched, &warden->touched);
}

static int uid_note(struct warden *warden)
{
	return warden->uid ? table_add(&warden->cages->uids, &warden->by_uid, hash_of_number(warden->uid)) : 0;
}

int warden_new(struct warden **wardenp, struct cages *cages, struct nursery *nursery, struct profile *profile)
{
	struct warden *warden = warden_blank(cages, nursery, profile);
	int r;

	if (!warden)
		return -ENOMEM;
	warden->family = warden->serial = ++cages->last_serial;
	r = cages_take_uid(&warden->uid, cages);
	if (!r)
		r = uid_note(warden);
	if (!r)
		r = workspace_create(&warden->workspace, &cages->workspaces, warden->serial, warden->uid,
				     warden->keep == WORKSPACE_KEEP);
	if (!r)
		r = workspace_handle(&warden->directory, warden->workspace);
	if (!r)
		r = control_make(warden);
	if (r) {
		log_error(NULL, "cannot make a workspace for profile %s: %s", profile->name, strerror(-r));
		warden_free(warden);
		return r;
	}
	*wardenp = warden;
	return 0;
}

struct warden *warden_free(struct warden *warden)
{
	struct interpreter *interpreter;

	if (!warden)
		return NULL;
	list_for_each (interpreter, &warden->interpreters, node)
		interpreter_free(interpreter);
	peer_deinit(&warden->peer);
	event_remove(warden->cages->loop, &warden->pidfd_source);
	timer_clear(warden->cages->loop, &warden->patience);
	quota_deinit(warden);
	fd_closep(&warden->theirs);
	fd_closep(&warden->pidfd);
	list_remove(&warden->node);
	table_remove(&warden->by_uid);
	list_remove(&warden->touched);
	ledger_deinit(&warden->ledger);
	done_calls_deinit(&warden->done_calls);
	msgpack_sbuffer_destroy(&warden->guards);
	fd_closep(&warden->directory);
	group_deinit(&warden->group);
	free(warden->workspace);
	free(warden->level);
	profile_unref(warden->profile);
	free(warden);
	return NULL;
}

/* A kept workspace is one that a session has used; a spare's is nobody's. */
void warden_gone(struct warden *warden)
{
	struct list *first;

	peer_ignore(&warden->peer);
	event_remove(warden->cages->loop, &warden->pidfd_source);
	timer_clear(warden->cages->loop, &warden->patience);
	list_remove(&warden->node);
	table_remove(&warden->by_uid);
	warden->starved = group_oom_killed(&warden->group);
	if (warden->group.cgroups)
		cgroups_drop(&warden->cages->cgroups, warden->group.name);
	if (!warden->used || warden->keep == WORKSPACE_DELETE)
		errand_remove_tree(warden->workspace);
	nursery_on_warden_gone(warden->nursery, warden);
	while ((first = list_first(&warden->tenants))) {
		struct tenant *tenant = container_of(first, struct tenant, node);

		tenant->ops->on_gone(tenant);
	}
	cages_bury_warden(warden->cages, warden);
}

void blame_warden(const struct warden *warden, enum blame_turn turn)
{
	const struct thing thing = {.kind = BLAME_FAMILY, .turn = turn, .whose = warden->family};

	blame_note(warden->cages->breaker, &thing, "family", warden_session(warden));
}

static void on_pidfd(struct event_source *source, uint32_t events)
{
	struct warden *warden = container_of(source, struct warden, pidfd_source);

	blame_warden(warden, TURN_DEATH);
	if (warden->state != WARDEN_DYING && !warden->reason[0])
		snprintf(warden->reason, sizeof(warden->reason), "its warden died");
	warden_gone(warden);
}

static void on_impatience(struct timer *timer)
{
	struct warden *warden = container_of(timer, struct warden, patience);

	blame_warden(warden, TURN_PATIENCE);
	warden_failed(warden, BYTES("its cage was not ready in time"));
}

static void patience_start(struct warden *warden)
{
	(void)timer_set(warden->cages->loop, &warden->patience, event_now() + CAGE_PATIENCE_US, on_impatience);
}

/* @fds: the warden's end of its control pair, and a door to each hierarchy of its group. */
static int request_send(struct warden *warden, int template_channel, const int *fds, size_t n_fds)
{
	const struct profile *profile = warden->profile;
	bool differs = profile != warden->nursery->profile;
	struct warden_message message = {.serial = warden->serial,
					 .workspace = bytes_of(warden->workspace),
					 .uid = warden->uid,
					 .directory = bytes_of(profile->directory),
					 .memory = differs ? profile->memory : 0,
					 .home = bytes_of(differs ? profile->home : NULL)};
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer buffer = {0};
	_cleanup_(wire_list_deinit) struct wire_list places = {0};
	int r;

	r = differs ? places_put(&places, profile, warden->cages->config) : 0;
	if (!r && differs)
		message.places = wire_list_bytes(&places);
	if (!r)
		r = wire_encode(&buffer, &warden_message_schema, &message);
	if (!r)
		r = channel_send(template_channel, wire_bytes(&buffer), fds, n_fds);
	return r;
}

int warden_request(struct warden *warden, int template_channel)
{
	int fds[1 + _CONTROLLER_N] = {warden->theirs}, n, r;

	n = budget_begin(warden, fds + 1);
	if (n < 0)
		return n;
	r = request_send(warden, template_channel, fds, (size_t)n + 1);
	while (n > 0)
		fd_close(fds[n--]);
	if (r)
		return r;
	fd_closep(&warden->theirs);
	warden->state = WARDEN_MAKING;
	patience_start(warden);
	return 0;
}

void warden_want_again(struct warden *warden)
{
	int r;

	/* If it was made and nobody said so, it finds its control pair closed and goes. */
	timer_clear(warden->cages->loop, &warden->patience);
	peer_deinit(&warden->peer);
	warden->serial = ++warden->cages->last_serial;
	warden->state = WARDEN_WANTED;
	r = control_make(warden);
	if (r)
		warden_failed(warden, bytes_of(strerror(-r)));
}

static bool in_flight(const struct warden *warden)
{
	struct interpreter *interpreter;

	list_for_each (interpreter, &warden->interpreters, node)
		if (!interpreter->adopted && !interpreter->loose)
			return true;
	return false;
}

/* A sweep takes what the warden does not know, so it must not meet a fork that is still being introduced. */
void warden_sweep_try(struct warden *warden)
{
	struct sweep_message message = {0};
	struct tenant *tenant;
	bool wanted = false;

	list_for_each (tenant, &warden->tenants, node)
		wanted |= tenant->sweep == SWEEP_WANTED;
	if (!wanted || warden->sweeping || in_flight(warden))
		return;
	if (peer_say(&warden->peer, &sweep_message_schema, &message, 0, NULL, 0)) {
		warden_failed(warden, BYTES("its warden does not listen"));
		return;
	}
	warden->sweeping = true;
	list_for_each (tenant, &warden->tenants, node)
		if (tenant->sweep == SWEEP_WANTED)
			tenant->sweep = SWEEP_SENT;
}

void warden_sweep(struct warden *warden, struct tenant *tenant)
{
	tenant->sweep = SWEEP_WANTED;
	warden_touch(warden);
	warden_sweep_try(warden);
}

void warden_survey(struct warden *warden, uint64_t size, uint64_t files)
{
	struct survey_message message = {.size = size, .files = files};

	warden_touch(warden);
	if (peer_say(&warden->peer, &survey_message_schema, &message, 0, NULL, 0))
		warden_failed(warden, BYTES("its warden does not listen"));
}

uint64_t warden_keep_files(struct warden *warden, const char *directory, uint64_t max, struct bytes mapped)
{
	struct keep_files_message message = {
		.serial = ++warden->last_files, .directory = bytes_of(directory), .max = max, .mapped = mapped};

	warden_touch(warden);
	return peer_say(&warden->peer, &keep_files_message_schema, &message, 0, NULL, 0) ? 0 : message.serial;
}

/* Whether no other session can need it meanwhile. */
static bool is_only_of(const struct interpreter *interpreter, const struct warden *warden,
		       const struct tenant *tenant)
{
	struct tenant *other;

	list_for_each (other, (struct list *)&warden->tenants, node)
		if (other != tenant && other->ops->grows_from(other, interpreter))
			return false;
	return interpreter->tenant == tenant;
}

static int put_still(struct wire_list *list, const struct warden *warden, const struct tenant *tenant)
{
	struct interpreter *interpreter;

	list_for_each (interpreter, (struct list *)&warden->interpreters, node)
		if (is_only_of(interpreter, warden, tenant))
			(void)wire_list_add_uint(list, interpreter->serial);
	return list->r;
}

int warden_bring_files(struct warden *warden, const struct tenant *tenant, const char *directory, uint64_t number)
{
	struct bring_files_message message = {.serial = number, .directory = bytes_of(directory)};
	_cleanup_(wire_list_deinit) struct wire_list still = {0};
	int r;

	warden_touch(warden);
	r = put_still(&still, warden, tenant);
	message.still = wire_list_bytes(&still);
	if (!r)
		r = peer_say(&warden->peer, &bring_files_message_schema, &message, 0, NULL, 0);
	return r;
}

void warden_leave_files(struct warden *warden, const char *directory, uint64_t number)
{
	const struct leave_files_message message = {.serial = number, .directory = bytes_of(directory)};

	warden_touch(warden);
	(void)peer_say(&warden->peer, &leave_files_message_schema, &message, 0, NULL, 0);
}

uint64_t warden_next_number(struct warden *warden)
{
	warden_touch(warden);
	return ++warden->last_files;
}

uint64_t warden_compare_files(struct warden *warden, uint64_t since, uint64_t until)
{
	struct compare_files_message message = {
		.serial = warden_next_number(warden), .since = since, .until = until};

	return peer_say(&warden->peer, &compare_files_message_schema, &message, 0, NULL, 0) ? 0 : message.serial;
}

void warden_drop_files(struct warden *warden, uint64_t number)
{
	struct drop_files_message message = {.serial = number};

	warden_touch(warden);
	if (warden->state == WARDEN_READY)
		(void)peer_say(&warden->peer, &drop_files_message_schema, &message, 0, NULL, 0);
}

static int interpreter_make(struct interpreter **interpreterp, struct warden *warden, enum interpreter_role role,
			    int theirs[INTERPRETER_FDS])
{
	int r = interpreter_new(interpreterp, warden, role, ++warden->last_interpreter, theirs);

	if (r)
		return r;
	list_append(&warden->interpreters, &(*interpreterp)->node);
	warden_touch(warden);
	return 0;
}

/* Ask @maker for it; one that forks itself, only when no sweep can take the fork for a stranger. */
static int interpreter_ask(struct warden *warden, struct interpreter **interpreterp, struct peer *maker,
			   const struct wire_schema *schema, const void *message, int *theirs, size_t n_theirs)
{
	int r = peer_say(maker, schema, message, (*interpreterp)->serial, theirs, n_theirs);

	if (warden->sweeping && maker != &warden->peer)
		peer_hold(maker, true);
	if (r)
		*interpreterp = interpreter_free(*interpreterp);
	return r;
}

int warden_spawn(struct warden *warden, const char *workspace, struct interpreter **interpreterp)
{
	struct spawn_message message = {.directory = bytes_of(workspace ? strrchr(workspace, '/') + 1 : NULL)};
	int theirs[INTERPRETER_FDS], r;

	r = interpreter_make(interpreterp, warden, ROLE_LIVE, theirs);
	if (r)
		return r;
	(*interpreterp)->adopted = true;
	message.serial = (*interpreterp)->serial;
	return interpreter_ask(warden, interpreterp, &warden->peer, &spawn_message_schema, &message, theirs,
			       INTERPRETER_FDS);
}

int warden_freeze(struct warden *warden, struct interpreter *live, uint64_t cell, struct interpreter **frozenp)
{
	struct freeze_message message = {.cell = cell};
	int theirs[INTERPRETER_FDS], r;

	r = interpreter_make(frozenp, warden, ROLE_FROZEN, theirs);
	if (r)
		return r;
	budget_count(warden);
	interpreter_set((*frozenp)->set, live);
	message.serial = (*frozenp)->serial;
	(*frozenp)->loose = cell != 0;
	return interpreter_ask(warden, frozenp, &live->peer, &freeze_message_schema, &message, theirs, 1);
}

int warden_thaw(struct warden *warden, struct interpreter *frozen, const struct spawn_message *how,
		struct interpreter **interpreterp)
{
	struct spawn_message message = *how;
	int theirs[INTERPRETER_FDS], r;

	r = interpreter_make(interpreterp, warden, ROLE_LIVE, theirs);
	if (r)
		return r;
	message.serial = (*interpreterp)->serial;
	return interpreter_ask(warden, interpreterp, &frozen->peer, &spawn_message_schema, &message, theirs,
			       INTERPRETER_FDS);
}

int warden_adopt(struct warden *warden, struct interpreter *interpreter, uint64_t pid)
{
	struct adopt_message message = {.serial = interpreter->serial, .pid = pid};
	int r = peer_say(&warden->peer, &adopt_message_schema, &message, 0, NULL, 0);

	interpreter->adopted = interpreter->alive = true;
	budget_introduce(warden, interpreter, pid);
	warden_touch(warden);
	warden_sweep_try(warden);
	return r;
}

int warden_signal(struct warden *warden, struct interpreter *interpreter, int signal)
{
	struct signal_message message = {.serial = interpreter->serial, .signal = (uint64_t)signal};
	int r = peer_say(&warden->peer, &signal_message_schema, &message, 0, NULL, 0);

	if (!r)
		interpreter->signals_unanswered++;
	warden_touch(warden);
	return r;
}

/* Whoever grows from it has it from now on, until session_let_source_go. */
static bool hand_on(struct warden *warden, struct interpreter *frozen)
{
	struct tenant *heir;

	list_for_each (heir, &warden->tenants, node) {
		if (!heir->ops->grows_from(heir, frozen))
			continue;
		frozen->tenant = heir;
		return true;
	}
	return false;
}

struct interpreter *warden_interpreter(const struct warden *warden, uint64_t serial)
{
	struct interpreter *interpreter;

	list_for_each (interpreter, (struct list *)&warden->interpreters, node)
		if (interpreter->serial == serial)
			return interpreter;
	return NULL;
}

struct interpreter *warden_discard(struct warden *warden, struct interpreter *interpreter)
{
	if (interpreter)
		warden_touch(warden);
	if (interpreter && !hand_on(warden, interpreter)) {
		if (interpreter->adopted && warden->state == WARDEN_READY)
			(void)peer_say(&warden->peer, &discard_message_schema,
				       &(struct discard_message){.serial = interpreter->serial}, 0, NULL, 0);
		interpreter_bury(interpreter);
		budget_count(warden);
		warden_sweep_try(warden);
	}
	return NULL;
}

struct interpreter *warden_first(struct warden *warden)
{
	struct list *first = list_first(&warden->interpreters);

	return first ? container_of(first, struct interpreter, node) : NULL;
}

struct bytes warden_session(const struct warden *warden)
{
	struct list *first = list_first((struct list *)&warden->tenants);

	return bytes_of(first ? container_of(first, struct tenant, node)->id : NULL);
}

void warden_join(struct warden *warden, struct tenant *tenant)
{
	list_append(&warden->tenants, &tenant->node);
	warden_own(warden, tenant->party);
	tenant->number = ++warden->last_session;
	warden->used = true;
	warden_touch(warden);
}

/* NULL if all sessions that are left are closing. */
static struct tenant *first_open_tenant(struct warden *warden)
{
	struct tenant *tenant;

	list_for_each (tenant, &warden->tenants, node)
		if (!tenant->ops->is_closing(tenant))
			return tenant;
	return NULL;
}

static struct interpreter *first_of(struct warden *warden, const struct tenant *tenant)
{
	struct interpreter *interpreter;

	list_for_each (interpreter, &warden->interpreters, node)
		if (interpreter->tenant == tenant)
			return interpreter;
	return NULL;
}

void warden_leave(struct warden *warden, struct tenant *tenant)
{
	struct interpreter *interpreter;

	/* Others that are leaving too, at the end of the family's life or the daemon's, will not need it. */
	if (!first_open_tenant(warden)) {
		warden_kill(warden);
		return;
	}
	/* To discard one may end a session, which discards others. */
	while ((interpreter = first_of(warden, tenant)))
		warden_discard(warden, interpreter);
	warden_sweep(warden, tenant);
}

void warden_kill(struct warden *warden)
{
	if (warden->state == WARDEN_DYING)
		return;
	if (warden->state < WARDEN_CAGING) {
		/* No process to wait for yet: one still being made finds its control pair closed and goes. */
		warden->state = WARDEN_DYING;
		warden_gone(warden);
		return;
	}
	warden->state = WARDEN_DYING;
	timer_clear(warden->cages->loop, &warden->patience);
	warden->kill_due = true;
	warden_touch(warden);
}

static void send_signal(const struct warden *warden, int signal)
{
	if (warden->pidfd >= 0)
		(void)syscall(SYS_pidfd_send_signal, warden->pidfd, signal, NULL, 0);
	else
		(void)kill(warden->pid, signal);
}

static void on_farewell(struct timer *timer)
{
	send_signal(container_of(timer, struct warden, patience), SIGKILL);
}

/* Whether all that is in the cage ends with its warden. Before there is a level nobody has been in there. */
static bool ends_as_one(const struct warden *warden)
{
	return !warden->level || strncmp(warden->level, "strong", strlen("strong")) == 0;
}

/* Whatever a warden leaves behind where there is no pid namespace goes on; so it is told to end that first. */
void warden_kill_now(struct warden *warden)
{
	bool killed = group_kill(&warden->group);

	warden->kill_due = false;
	if (!killed && !ends_as_one(warden) &&
	    timer_set(warden->cages->loop, &warden->patience, event_now() + FAREWELL_US, on_farewell) == 0)
		send_signal(warden, SIGTERM);
	else
		send_signal(warden, SIGKILL);
}

const char *reason_told(const char *reason)
{
	return strchr(reason, '/') ? "laird's log says why" : reason;
}

void warden_failed(struct warden *warden, struct bytes reason)
{
	struct tenant *tenant;

	bytes_copy(warden->reason, sizeof(warden->reason), reason);
	if (list_empty(&warden->tenants))
		log_error(NULL, "a spare could not be made: %s", warden->reason);
	/* The end of the last one may be the end of the warden, and of all its sessions. */
	while ((tenant = first_open_tenant(warden)))
		tenant->ops->on_failed(tenant);
	warden_kill(warden);
}

static void turns_give(struct warden *warden)
{
	if (!warden->party)
		return;
	event_give(&warden->peer.source, warden->party);
	event_give(&warden->pidfd_source, warden->party);
}

void warden_own(struct warden *warden, struct party *party)
{
	warden->party = party;
	turns_give(warden);
}

/* From now on it is heard, and its death noticed. */
static int watch(struct warden *warden)
{
	int r = peer_listen(&warden->peer, warden_on_control);

	if (!r && warden->pidfd >= 0)
		r = event_add(warden->cages->loop, &warden->pidfd_source, warden->pidfd, EPOLLIN, on_pidfd);
	turns_give(warden);
	return r;
}

void warden_made(struct warden *warden, pid_t pid, int pidfd)
{
	int r;

	warden->pid = pid;
	warden->pidfd = pidfd;
	warden->state = WARDEN_CAGING;
	patience_start(warden);
	r = watch(warden);
	if (r)
		warden_failed(warden, bytes_of(strerror(-r)));
}

/* ---- one of the last router's ---- */

static void values_from(struct warden *warden, const struct family_record *record)
{
	struct quota *quota = &warden->quota;
	char group[GROUP_NAME_SIZE];

	WARDEN_VALUES(RECORD_TAKE, warden);
	warden->used = true;
	warden->level = record->level.data ? strndup(record->level.data, record->level.size) : NULL;
	/* A router that knew only Python has stored its version under that name. */
	snprintf(warden->language, sizeof(warden->language), "%.*s", (int)record->language.size,
		 record->language.data ? record->language.data : LANGUAGE_OWN);
	bytes_copy(warden->version, sizeof(warden->version), record->python);
	if (record->guards.data)
		msgpack_sbuffer_write(&warden->guards, record->guards.data, record->guards.size);
	bytes_copy(warden->reason, sizeof(warden->reason), record->reason);
	bytes_copy(group, sizeof(group), record->group);
	group_revive(&warden->group, &warden->cages->cgroups,
		     group[0] ? group : strrchr(warden->workspace, '/') + 1, (unsigned)record->group_held,
		     &(struct group_limits){.of = {[CONTROLLER_MEMORY] = record->group_memory,
						   [CONTROLLER_PIDS] = record->group_processes,
						   [CONTROLLER_CPU] = record->group_cpu}},
		     record->group_oom_kills);
	QUOTA_VALUES(RECORD_TAKE, quota);
	quota->asked_at = event_now();
}

static int listen_again(struct warden *warden, const struct family_record *record, int *fds)
{
	warden->state = record->state == WARDEN_DYING ? WARDEN_DYING : WARDEN_READY;
	warden->kill_due = warden->state == WARDEN_DYING;
	warden->stored = true;
	peer_init(&warden->peer, warden->cages->loop, &warden->cages->due, steal_fd(&fds[0]), -1);
	LINK_FIELDS(RECORD_TAKE, &warden->peer);
	warden->directory = steal_fd(&fds[1]);
	warden->pidfd = steal_fd(&fds[2]);
	return watch(warden);
}

/* It died with the last router: nobody has worked in there yet. */
static int make_again(struct warden *warden)
{
	int r = workspace_handle(&warden->directory, warden->workspace);

	warden->sweeping = false;
	group_deinit(&warden->group); /* nobody is in it: it is swept */
	if (!r)
		warden_want_again(warden);
	return r;
}

int warden_revive(struct warden **wardenp, struct cages *cages, struct nursery *nursery, uint64_t family,
		  const struct family_record *record, int *fds)
{
	struct warden *warden = warden_blank(cages, nursery, nursery->profile);
	int r;

	if (!warden)
		return -ENOMEM;
	warden->family = family;
	warden->workspace = strndup(record->workspace.data, record->workspace.size);
	r = warden->workspace && strrchr(warden->workspace, '/') ? 0 : -EBADMSG;
	if (!r)
		values_from(warden, record);
	if (!r)
		r = uid_note(warden);
	if (!r)
		r = fds ? listen_again(warden, record, fds) : make_again(warden);
	if (r)
		warden_free(warden);
	else
		*wardenp = warden;
	return r;
}
