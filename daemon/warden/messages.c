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

static void text_keep(char kept[static WARDEN_LANGUAGE_SIZE], struct bytes text)
{
	snprintf(kept, WARDEN_LANGUAGE_SIZE, "%.*s", (int)text.size, text.data ? text.data : "");
}

static int on_ready(struct warden *warden, struct bytes body, struct wire_fault *fault)
{
	struct interpreter *interpreter;
	struct warden_ready ready;
	struct tenant *tenant;
	int r = wire_decode(&ready, &warden_ready_schema, body, fault);

	if (r || warden->state != WARDEN_CAGING)
		return WIRE_E_FIELD;
	timer_clear(warden->cages->loop, &warden->patience);
	warden->level = strndup(ready.level.data, ready.level.size);
	text_keep(warden->language, ready.language);
	text_keep(warden->version, ready.version);
	msgpack_sbuffer_write(&warden->guards, ready.guards.data, ready.guards.size);
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

static int on_failed(struct warden *warden, struct bytes body, struct wire_fault *fault)
{
	struct failed_message failed;
	struct tenant *tenant;

	if (wire_decode(&failed, &failed_message_schema, body, fault))
		return WIRE_E_FIELD;
	/* A successor can be done without. */
	list_for_each (tenant, &warden->tenants, node)
		if (tenant->ops->on_no_successor(tenant, failed.serial))
			return 0;
	list_for_each (tenant, &warden->tenants, node)
		tenant->ops->on_stillborn(tenant, failed.serial);
	warden_failed(warden, failed.reason);
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
static int on_spawned(struct warden *warden, struct bytes body, struct wire_fault *fault)
{
	struct interpreter *interpreter;
	struct spawned_message spawned;

	if (wire_decode(&spawned, &spawned_message_schema, body, fault))
		return WIRE_E_FIELD;
	interpreter = interpreter_find(warden, spawned.serial);
	if (interpreter) {
		interpreter->alive = true;
		budget_introduce(warden, interpreter, spawned.pid);
	}
	return 0;
}

/* An interpreter that we have discarded meanwhile belongs to nobody: here and below. */
static int on_signalled(struct warden *warden, struct bytes body, struct wire_fault *fault)
{
	struct signalled_message signalled;
	struct interpreter *interpreter;

	if (wire_decode(&signalled, &signalled_message_schema, body, fault))
		return WIRE_E_FIELD;
	interpreter = interpreter_find(warden, signalled.serial);
	if (interpreter && interpreter->signals_unanswered > 0 && --interpreter->signals_unanswered == 0 &&
	    interpreter->tenant)
		interpreter->tenant->ops->on_signalled(interpreter->tenant, interpreter);
	return 0;
}

static int on_exited(struct warden *warden, struct bytes body, struct wire_fault *fault)
{
	struct interpreter *interpreter;
	struct exited_message exited;
	int status;

	if (wire_decode(&exited, &exited_message_schema, body, fault))
		return WIRE_E_FIELD;
	status = (int)exited.status;
	interpreter = interpreter_find(warden, exited.serial);
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

static int on_swept(struct warden *warden, struct bytes body, struct wire_fault *fault)
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

static int on_surveyed(struct warden *warden, struct bytes body, struct wire_fault *fault)
{
	struct surveyed_message surveyed;

	if (wire_decode(&surveyed, &surveyed_message_schema, body, fault) || !warden->quota.asked)
		return WIRE_E_FIELD;
	if (warden->state == WARDEN_READY)
		quota_on_surveyed(warden, &surveyed);
	return 0;
}

/* Every tenant hears it, since a warden does not know which one it is about. */
static int on_files_kept(struct warden *warden, struct bytes body, struct wire_fault *fault)
{
	struct files_kept_message kept;
	struct tenant *tenant;

	if (wire_decode(&kept, &files_kept_message_schema, body, fault))
		return WIRE_E_FIELD;
	list_for_each (tenant, &warden->tenants, node)
		tenant->ops->on_files_kept(tenant, &kept);
	return 0;
}

static int on_files_back(struct warden *warden, struct bytes body, struct wire_fault *fault)
{
	struct files_back_message back;
	struct tenant *tenant;

	if (wire_decode(&back, &files_back_message_schema, body, fault))
		return WIRE_E_FIELD;
	list_for_each (tenant, &warden->tenants, node)
		tenant->ops->on_files_back(tenant, &back);
	return 0;
}

static int on_files_going(struct warden *warden, struct bytes body, struct wire_fault *fault)
{
	struct files_going_message going;
	struct tenant *tenant;

	if (wire_decode(&going, &files_going_message_schema, body, fault))
		return WIRE_E_FIELD;
	quota_on_going(warden, &going);
	list_for_each (tenant, &warden->tenants, node)
		tenant->ops->on_files_going(tenant);
	return 0;
}

static int on_files_compared(struct warden *warden, struct bytes body, struct wire_fault *fault)
{
	struct files_compared_message compared;
	struct tenant *tenant;

	if (wire_decode(&compared, &files_compared_message_schema, body, fault))
		return WIRE_E_FIELD;
	list_for_each (tenant, &warden->tenants, node)
		tenant->ops->on_files_compared(tenant, &compared);
	return 0;
}

/* Returns 0, WARDEN_E_LATER, or what is wrong with the message. */
static const struct {
	const char *type;
	int (*fn)(struct warden *warden, struct bytes body, struct wire_fault *fault);
} handlers[] = {
	{"ready", on_ready},
	{"failed", on_failed},
	{"spawned", on_spawned},
	{"signalled", on_signalled},
	{"exited", on_exited},
	{"swept", on_swept},
	{"surveyed", on_surveyed},
	{"files_kept", on_files_kept},
	{"files_back", on_files_back},
	{"files_compared", on_files_compared},
	{"files_going", on_files_going},
};

const char *warden_message_type(size_t i)
{
	return i < ARRAY_SIZE(handlers) ? handlers[i].type : NULL;
}

static int message_handle(struct warden *warden, struct bytes data)
{
	struct wire_fault fault = {.field = "type", .expected = "known"};
	struct wire_frame frame;
	int r = wire_open(&frame, data);

	if (r)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(handlers); i++) {
		if (!bytes_is(frame.type, handlers[i].type))
			continue;
		fault_at("warden", handlers[i].type, warden_session(warden));
		return handlers[i].fn(warden, frame.body, &fault);
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
