/* Messages from a session's warden and interpreters, turned into events. Every byte from an interpreter is
 * hostile: a frame is scanned, decoded by its table, and legal only from an interpreter of the right role. */
#include "base/log.h"
#include "session/parts/comparing.h"
#include "session/parts/filing.h"
#include "session/parts/saving.h"
#include "steps.h"
#include "vault/fault.h"

#include <inttypes.h>

/* Of what an interpreter sends in one message. */
#define BUNDLE_MAX 64
#define ERROR_FRAMES_MAX 128
#define ARTIFACTS_MAX 256
#define BLOCKED_ACTS_MAX 64
#define BLOCKED_SIZE_MAX ((size_t)64 << 10) /* lair-kernel tells less than 1 KiB of each */
#define MEASURED_REST_US 10000
/* At the state that is being saved, if nobody says that it is. */
#define SAVING_LOOK_AGAIN_US 100000
#define SPLIT_LOOK_AGAIN_US 500

/* ---- from its warden ---- */

static void on_ready(struct tenant *tenant)
{
	session_event(session_of_tenant(tenant), EVENT_READY, &session_nothing);
}

static bool on_no_successor(struct tenant *tenant, uint64_t serial)
{
	struct session *session = session_of_tenant(tenant);

	if (!session->successor || session->successor->serial != serial)
		return false;
	session_on_successor(session, 0);
	return true;
}

static void on_signalled(struct tenant *tenant, struct interpreter *interpreter)
{
	struct session *session = session_of_tenant(tenant);

	if (interpreter == session->live)
		session_event(session, EVENT_SIGNALLED, &session_nothing);
}

static void on_swept(struct tenant *tenant)
{
	struct session *session = session_of_tenant(tenant);

	session_event(session, EVENT_SWEPT, &session_nothing);
}

static void on_full(struct tenant *tenant)
{
	struct session *session = session_of_tenant(tenant);

	session_event(session, EVENT_FULL, &session_nothing);
}

/* Whoever was being grown from it has to know. */
static void checkpoint_lost(struct session *session, struct interpreter *frozen, const char *why)
{
	struct details details = {.why = why};
	struct warden *warden = session->warden;
	struct checkpoint *checkpoint;
	struct session *member;

	list_for_each (member, &warden->tenants, tenant.node) {
		if (member->source != frozen)
			continue;
		if (member->state == SESSION_RESTORING)
			session_event(member, EVENT_LOST, &details);
		else
			session_let_source_go(member);
	}
	/* The event may have forgotten it already. */
	list_for_each (member, &warden->tenants, tenant.node) {
		checkpoint = history_of(&member->history, frozen);
		if (!checkpoint)
			continue;
		log_warn(member->name, "the checkpoint after cell %" PRIu64 " is lost: %s", checkpoint->cell, why);
		member->n_forgotten++;
		session_forget(member, checkpoint);
	}
}

static void on_last_words(struct tenant *tenant, struct interpreter *interpreter)
{
	struct session *session = session_of_tenant(tenant);

	if (interpreter == session->live)
		session->exited = true;
}

static void on_exited(struct tenant *tenant, struct interpreter *interpreter, int status, bool oom)
{
	struct session *session = session_of_tenant(tenant);
	struct details details = {.status = status, .oom = oom};

	if (session->state == SESSION_CLOSING)
		return;
	if (interpreter == session->successor) {
		session_drop_successor(session);
		return;
	}
	if (interpreter != session->live) {
		checkpoint_lost(session, interpreter, "its process ended");
		return;
	}
	interpreter_drain(interpreter);
	interpreter_salvage(interpreter);
	session_gather_effects(session);
	session_event(session, EVENT_EXITED, &details);
	session->exited = false;
}

static void on_stillborn(struct tenant *tenant, uint64_t serial)
{
	struct session *session = session_of_tenant(tenant);

	if (!session->live || session->live->serial != serial)
		return;
	if (session->cell)
		session_put_back(session);
	session->state = SESSION_STARTING;
}

/* Its cage or its template failed: everybody who waits is told. */
static void on_failed(struct tenant *tenant)
{
	struct session *session = session_of_tenant(tenant);
	struct cell *cell;

	log_error(session->name, "%s", session->warden->reason);
	list_for_each (cell, &session->queue, node) {
		client_limit(session->sessions->clients, &cell->reply, "internal", session->profile->name,
			     deciding_start(session->warden->reason), "the session could not be %s: %s",
			     session->state == SESSION_STARTING ? "started" : "kept",
			     reason_told(session->warden->reason));
		cell_free(cell);
	}
	session->n_queued = 0;
	session_end(session, "internal");
}

static void on_gone(struct tenant *tenant)
{
	struct session *session = session_of_tenant(tenant);

	/* Nobody asked for it: what was running is lost with its cage. */
	session_end(session, session->warden->starved ? "oom" : "killed");
	waiters_answer(&session->closers, session->sessions->clients, &empty_reply_schema,
		       &(struct empty_reply){.id = 0});
	sessions_bury(session->sessions, session);
}

/* ---- from its interpreters ---- */

void session_on_lost(struct session *session, struct interpreter *interpreter, const char *why)
{
	struct details details = {.why = why};

	if (session->state == SESSION_CLOSING)
		return;
	if (interpreter == session->live)
		session_event(session, why ? EVENT_LOST : EVENT_CLOSED, &details);
	else if (why)
		checkpoint_lost(session, interpreter, why);
}

/* It may send anything, and a reply with too many values in it would be refused by its reader. Whether @data is a
 * map of str to str or bin. */
static bool bundle_valid(struct bytes data)
{
	struct bytes key, value, span;
	size_t cursor = 0;
	bool binary;

	for (size_t n = 0; wire_next_pair(data, &cursor, &key, &value); n++)
		if (n == BUNDLE_MAX || !wire_read_span(value, &span, &binary))
			return false;
	return cursor > 0 && cursor == data.size;
}

/* Whether @raw is absent, or an array of at most @max maps that @schema describes. */
static bool records_valid(struct bytes raw, const struct wire_schema *schema, size_t max)
{
	struct wire_fault fault;
	size_t cursor = 0;
	struct bytes item;
	char record[512];

	if (!raw.data)
		return true;
	if (schema->size > sizeof(record))
		return false;
	for (size_t n = 0; wire_next(raw, &cursor, &item); n++)
		if (n == max || wire_decode(record, schema, item, &fault))
			return false;
	return cursor > 0 && cursor == raw.size;
}

/* Whether it is absent, or a cell_error. */
static bool error_valid(struct bytes raw)
{
	struct wire_fault fault;
	struct error_frame frame;
	struct cell_error error;
	size_t cursor = 0;
	struct bytes item;

	if (!raw.data)
		return true;
	if (wire_decode(&error, &cell_error_schema, raw, &fault) ||
	    !records_valid(error.frames, &error_frame_schema, ERROR_FRAMES_MAX))
		return false;
	while (wire_next(error.frames, &cursor, &item))
		if (wire_decode(&frame, &error_frame_schema, item, &fault) ||
		    (frame.values.data && !bundle_valid(frame.values)))
			return false;
	return true;
}

static bool done_valid(const struct session *session, const void *message)
{
	const struct done_message *done = message;

	return (!done->data.data || bundle_valid(done->data)) && error_valid(done->error) &&
	       done->blocked.size <= BLOCKED_SIZE_MAX &&
	       records_valid(done->blocked, &blocked_act_schema, BLOCKED_ACTS_MAX) &&
	       records_valid(done->artifacts, &artifact_schema, ARTIFACTS_MAX);
}

static void post(struct session *session, enum session_event event, const void *message)
{
	const struct details details = {.message = message};

	session_event(session, event, &details);
}

static void take_done(struct session *session, struct interpreter *interpreter, const void *message)
{
	/* That of a save stays where it is, for this router or the next, until the file is on the disk. */
	if (!session->cell || session->cell->task != CELL_SAVE || saving_is_written(session, message))
		post(session, EVENT_DONE, message);
	else
		interpreter_push_back(interpreter, SAVING_LOOK_AGAIN_US);
}

/* One that waits behind a checkpoint has not begun. */
static bool cell_runs(const struct session *session, const void *message)
{
	return session->cell && !session->freezing;
}

static bool cell_may_ask(const struct session *session, const void *message)
{
	return cell_runs(session, message) && !session->cell->asking;
}

static bool shown_valid(const struct session *session, const void *message)
{
	return bundle_valid(((const struct shown *)message)->data);
}

static void take_frozen(struct session *session, struct interpreter *interpreter, const void *message)
{
	const struct frozen_message *frozen = message;
	const struct interpreter *copy = session->split.copy;

	post(session, copy && copy->serial == frozen->serial ? EVENT_SPLIT : EVENT_FROZEN, message);
}

/* On a frozen one's channel. The fork it speaks of may be another session's, in the same family. */
static void take_spawned(struct session *session, struct interpreter *interpreter, const void *message)
{
	const struct spawned_message *spawned = message;
	struct details details = {.spawned = spawned, .why = "processes or memory are scarce"};
	struct session *member;

	list_for_each (member, &session->warden->tenants, tenant.node)
		if (member->state == SESSION_RESTORING && member->live->serial == spawned->serial && !spawned->pid)
			session_on_unforked(member, &details);
		else if (member->state == SESSION_RESTORING && member->live->serial == spawned->serial)
			session_event(member, EVENT_SPAWNED, &details);
		else if (member->successor && member->successor->serial == spawned->serial &&
			 !member->successor->adopted)
			session_on_successor(member, spawned->pid);
}

static void take_measured(struct session *session, struct interpreter *frozen, const void *message)
{
	const struct measured_message *measured = message;
	struct checkpoint *checkpoint = history_of(&session->history, frozen);

	if (!checkpoint)
		return;
	/* Nobody needs it often, and it may say so all the time. */
	peer_rest(&frozen->peer, MEASURED_REST_US);
	checkpoint->memory = measured->memory;
	session_trim_history(session);
}

/* The session that asked may be another one of the family, which has it, too. */
static void take_described(struct session *session, struct interpreter *interpreter, const void *message)
{
	struct session *member;

	list_for_each (member, &session->warden->tenants, tenant.node)
		if (comparing_on_described(member, interpreter, message))
			return;
	/* Nobody waits for it, or not any more. */
	peer_rest(&interpreter->peer, MEASURED_REST_US);
}

#define LIVE (1U << ROLE_LIVE)
#define FROZEN (1U << ROLE_FROZEN)

/* What an interpreter of a role may say; whether it is well-formed and may be said now (NULL: always); and what
 * comes of it: the event, or what is done (not NULL). */
static const struct {
	const char *type;
	const struct wire_schema *schema;
	unsigned roles;
	bool (*valid)(const struct session *session, const void *message);
	enum session_event event;
	void (*take)(struct session *session, struct interpreter *interpreter, const void *message);
} handlers[] = {
	{"done", &done_message_schema, LIVE, done_valid, EVENT_DONE, take_done},
	{"ask", &ask_message_schema, LIVE, cell_may_ask, EVENT_ASK, NULL},
	{"call", &call_message_schema, LIVE, cell_runs, EVENT_CALL, NULL},
	{"abandon", &abandon_message_schema, LIVE, cell_runs, EVENT_ABANDON, NULL},
	{"display", &shown_schema, LIVE, shown_valid, EVENT_DISPLAY, NULL},
	{"told", &told_message_schema, LIVE, NULL, EVENT_TOLD, NULL},
	{"frozen", &frozen_message_schema, LIVE, NULL, EVENT_FROZEN, take_frozen},
	{"spawned", &spawned_message_schema, FROZEN, NULL, EVENT_SPAWNED, take_spawned},
	{"measured", &measured_message_schema, FROZEN, NULL, EVENT_FROZEN, take_measured},
	{"described", &described_message_schema, LIVE | FROZEN, NULL, EVENT_TOLD, take_described},
};

const char *session_message_type(size_t i)
{
	return i < ARRAY_SIZE(handlers) ? handlers[i].type : NULL;
}

/* Whether that was well-formed, and has been done. */
static bool take(struct session *session, struct interpreter *interpreter, size_t i, struct bytes body)
{
	union {
		struct done_message done;
		struct ask_message ask;
		struct call_message call;
		struct abandon_message abandon;
		struct shown shown;
		struct told_message told;
		struct frozen_message frozen;
		struct spawned_message spawned;
		struct measured_message measured;
		struct described_message described;
	} message;
	struct wire_fault fault;

	if (wire_decode(&message, handlers[i].schema, body, &fault) ||
	    (handlers[i].valid && !handlers[i].valid(session, &message)))
		return false;
	if (handlers[i].take)
		handlers[i].take(session, interpreter, &message);
	else
		post(session, handlers[i].event, &message);
	return true;
}

static void on_frame(struct tenant *tenant, struct interpreter *interpreter, struct bytes frame)
{
	struct session *session = session_of_tenant(tenant);
	struct wire_frame message;

	/* It goes on with its cell at once, and may speak before it is known to live. */
	if (session->midway && interpreter == session->live) {
		interpreter_push_back(interpreter, SPLIT_LOOK_AGAIN_US);
		return;
	}
	warden_touch(session->warden);
	if (wire_open(&message, frame)) {
		session_on_lost(session, interpreter, "it sent a malformed frame");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(handlers); i++) {
		if (!(handlers[i].roles & 1U << interpreter->role) || !bytes_is(message.type, handlers[i].type))
			continue;
		fault_at("interpreter", handlers[i].type, bytes_of(session->id));
		if (!take(session, interpreter, i, message.body))
			session_on_lost(session, interpreter, "it sent a malformed or misplaced message");
		return;
	}
	session_on_lost(session, interpreter, "it sent an unknown message");
}

/* ---- what a warden may know of it ---- */

static void on_output(struct tenant *tenant, enum interpreter_stream stream, struct bytes data)
{
	session_on_output(session_of_tenant(tenant), stream, data);
}

static void on_words(struct tenant *tenant, enum interpreter_stream stream, struct bytes data)
{
	session_on_words(session_of_tenant(tenant), stream, data);
}

static void on_lost(struct tenant *tenant, struct interpreter *interpreter, const char *why)
{
	session_on_lost(session_of_tenant(tenant), interpreter, why);
}

static void end(struct tenant *tenant, const char *cause)
{
	session_end(session_of_tenant(tenant), cause);
}

static bool is_closing(const struct tenant *tenant)
{
	return session_of_tenant(tenant)->state == SESSION_CLOSING;
}

static bool is_busy(const struct tenant *tenant)
{
	return session_busy(session_of_tenant(tenant));
}

static bool is_recovering(const struct tenant *tenant)
{
	const struct session *session = session_of_tenant(tenant);

	return session->state == SESSION_KILLING || session->state == SESSION_SWEEPING ||
	       session->state == SESSION_RESTORING;
}

static bool has_successor(const struct tenant *tenant)
{
	return session_of_tenant(tenant)->successor != NULL;
}

static bool grows_from(const struct tenant *tenant, const struct interpreter *frozen)
{
	struct session *session = session_of_tenant(tenant);

	return session->source == frozen || history_of(&session->history, frozen);
}

const struct tenant_ops session_tenant_ops = {
	.on_ready = on_ready,
	.on_failed = on_failed,
	.on_gone = on_gone,
	.on_swept = on_swept,
	.on_full = on_full,
	.on_no_successor = on_no_successor,
	.on_stillborn = on_stillborn,
	.on_signalled = on_signalled,
	.on_last_words = on_last_words,
	.on_exited = on_exited,
	.on_frame = on_frame,
	.on_output = on_output,
	.on_words = on_words,
	.on_lost = on_lost,
	.on_files_kept = filing_on_kept,
	.on_files_back = filing_on_back,
	.on_files_going = filing_on_going,
	.on_files_compared = comparing_on_files,
	.end = end,
	.is_closing = is_closing,
	.is_busy = is_busy,
	.is_recovering = is_recovering,
	.has_successor = has_successor,
	.grows_from = grows_from,
};
