/* Messages of a warden, and what they mean for the sessions in its cage. */
#include "warden.h"

#include "budget.h"
#include "cages.h"
#include "nursery.h"
#include "tenant.h"
#include "vault/fault.h"

#include <signal.h>
#include <sys/wait.h>

/* An interpreter's death waits for its last words. */
#define WARDEN_E_LATER 100

static int on_ready(struct warden *warden, const void *decoded)
{
	const struct warden_ready *ready = decoded;
	struct interpreter *interpreter;
	struct tenant *tenant;
	int r;

	if (warden->state != WARDEN_CAGING)
		return WIRE_E_FIELD;
	timer_clear(warden->cages->loop, &warden->patience);
	warden->level = strndup(ready->level.data, ready->level.size);
	bytes_copy(warden->language, sizeof(warden->language), ready->language);
	bytes_copy(warden->version, sizeof(warden->version), ready->version);
	msgpack_sbuffer_write(&warden->guards, ready->guards.data, ready->guards.size);
	r = warden_spawn(warden, NULL, &interpreter);
	if (r) {
		warden_failed(warden, bytes_of(strerror(-r)));
		return 0;
	}
	warden->state = WARDEN_READY;
	if (list_empty(&warden->tenants))
		nursery_on_spare(warden->nursery, warden);
	list_for_each (tenant, &warden->tenants, node)
		tenant->ops->on_ready(tenant);
	return 0;
}

static int on_failed(struct warden *warden, const void *decoded)
{
	const struct failed_message *failed = decoded;
	struct tenant *tenant;

	/* A successor can be done without. */
	list_for_each (tenant, &warden->tenants, node)
		if (tenant->ops->on_no_successor(tenant, failed->serial))
			return 0;
	list_for_each (tenant, &warden->tenants, node)
		tenant->ops->on_stillborn(tenant, failed->serial);
	warden_failed(warden, failed->reason);
	return 0;
}

static struct interpreter *interpreter_find(struct warden *warden, uint64_t serial)
{
	struct interpreter *interpreter;

	list_for_each (interpreter, &warden->interpreters, node)
		if (interpreter->serial == serial)
			return interpreter;
	return NULL;
}

/* One from the pristine image; a fork of a frozen one is reported by that. */
static int on_spawned(struct warden *warden, const void *decoded)
{
	const struct spawned_message *spawned = decoded;
	struct interpreter *interpreter;

	interpreter = interpreter_find(warden, spawned->serial);
	if (interpreter) {
		interpreter->alive = true;
		budget_introduce(warden, interpreter, spawned->pid);
	}
	return 0;
}

/* An interpreter that we have discarded meanwhile belongs to nobody: here and below. */
static int on_signalled(struct warden *warden, const void *decoded)
{
	const struct signalled_message *signalled = decoded;
	struct interpreter *interpreter;

	interpreter = interpreter_find(warden, signalled->serial);
	if (interpreter && interpreter->signals_unanswered > 0 && --interpreter->signals_unanswered == 0 &&
	    interpreter->tenant)
		interpreter->tenant->ops->on_signalled(interpreter->tenant, interpreter);
	return 0;
}

static int on_exited(struct warden *warden, const void *decoded)
{
	const struct exited_message *exited = decoded;
	struct interpreter *interpreter;
	int status;

	status = (int)exited->status;
	interpreter = interpreter_find(warden, exited->serial);
	if (interpreter && interpreter->tenant && interpreter_has_last_words(interpreter)) {
		interpreter->tenant->ops->on_last_words(interpreter->tenant, interpreter);
		return WARDEN_E_LATER;
	}
	if (interpreter && interpreter->tenant)
		interpreter->tenant->ops->on_exited(interpreter->tenant, interpreter, status,
						    WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL &&
							    group_oom_killed(&warden->group));
	else if (interpreter)
		warden_failed(warden, BYTES("its interpreter died before any use"));
	return 0;
}

static int on_swept(struct warden *warden, const void *decoded)
{
	struct interpreter *interpreter;
	struct tenant *tenant;

	warden->sweeping = false;
	list_for_each (interpreter, &warden->interpreters, node)
		if (interpreter->peer.held)
			peer_hold(&interpreter->peer, false);
	list_for_each (tenant, &warden->tenants, node) {
		if (tenant->sweep != SWEEP_SENT)
			continue;
		tenant->sweep = SWEEP_NONE;
		tenant->ops->on_swept(tenant);
	}
	warden_sweep_try(warden);
	return 0;
}

static int on_surveyed(struct warden *warden, const void *decoded)
{
	const struct surveyed_message *surveyed = decoded;

	if (!warden->quota.asked)
		return WIRE_E_FIELD;
	if (warden->state == WARDEN_READY)
		quota_on_surveyed(warden, surveyed);
	return 0;
}

/* Every tenant hears it, since a warden does not know which one it is about. */
static int on_files_kept(struct warden *warden, const void *decoded)
{
	const struct files_kept_message *kept = decoded;
	struct tenant *tenant;

	list_for_each (tenant, &warden->tenants, node)
		tenant->ops->on_files_kept(tenant, kept);
	return 0;
}

static int on_files_back(struct warden *warden, const void *decoded)
{
	const struct files_back_message *back = decoded;
	struct tenant *tenant;

	list_for_each (tenant, &warden->tenants, node)
		tenant->ops->on_files_back(tenant, back);
	return 0;
}

static int on_files_going(struct warden *warden, const void *decoded)
{
	const struct files_going_message *going = decoded;
	struct tenant *tenant;

	quota_on_going(warden, going);
	list_for_each (tenant, &warden->tenants, node)
		tenant->ops->on_files_going(tenant);
	return 0;
}

static int on_files_compared(struct warden *warden, const void *decoded)
{
	const struct files_compared_message *compared = decoded;
	struct tenant *tenant;

	list_for_each (tenant, &warden->tenants, node)
		tenant->ops->on_files_compared(tenant, compared);
	return 0;
}

/* Returns 0, WARDEN_E_LATER, or what is wrong with the message. */
static const struct {
	const struct wire_schema *schema;
	int (*fn)(struct warden *warden, const void *decoded);
} handlers[] = {
	{&warden_ready_schema, on_ready},
	{&failed_message_schema, on_failed},
	{&spawned_message_schema, on_spawned},
	{&signalled_message_schema, on_signalled},
	{&exited_message_schema, on_exited},
	{&swept_message_schema, on_swept},
	{&surveyed_message_schema, on_surveyed},
	{&files_kept_message_schema, on_files_kept},
	{&files_back_message_schema, on_files_back},
	{&files_compared_message_schema, on_files_compared},
	{&files_going_message_schema, on_files_going},
};

const char *warden_message_type(size_t i)
{
	return i < ARRAY_SIZE(handlers) ? handlers[i].schema->type : NULL;
}

static int message_handle(struct warden *warden, struct bytes data)
{
	struct wire_any decoded;
	struct wire_fault fault;
	struct wire_frame frame;
	int r = wire_open(&frame, data);

	if (r)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(handlers); i++) {
		if (!bytes_is(frame.type, handlers[i].schema->type))
			continue;
		fault_at("warden", handlers[i].schema->type, warden_session(warden));
		if (wire_decode(&decoded, handlers[i].schema, frame.body, &fault))
			return WIRE_E_FIELD;
		return handlers[i].fn(warden, &decoded);
	}
	return WIRE_E_FIELD;
}

void warden_on_control(struct event_source *source, uint32_t events)
{
	struct warden *warden = container_of(source, struct warden, peer.source);
	struct bytes frame;
	int r;

	if (events & EPOLLOUT)
		peer_settle_later(&warden->peer);
	if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		return;
	blame_warden(warden, TURN_CHANNEL);
	r = peer_hear(&warden->peer, &frame);
	if (r == PEER_E_EMPTY)
		return;
	if (r == PEER_E_EOF) {
		peer_ignore(&warden->peer);
		if (warden->pidfd < 0)
			warden_gone(warden);
		return;
	}
	warden_touch(warden);
	/* A warden that is being killed may still say that it is ready. */
	if (!r && warden->state != WARDEN_DYING)
		r = message_handle(warden, frame);
	if (r == WARDEN_E_LATER)
		peer_push_back(&warden->peer);
	else if (r)
		warden_failed(warden, BYTES("its warden broke the protocol"));
}
