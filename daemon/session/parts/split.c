#include "split.h"

#include "rows.h"
#include "session/core/blame.h"
#include "session/core/events.h"
#include "session/core/sessions.h"
#include "vault/records.h"

#include <stdio.h>

/* A cell that is at work besides takes the order only when it waits again. */
#define SPLIT_US (2 * 1000000ULL)
#define ANSWERS_MAX ((size_t)1 << 20)

static void answers_forget(struct split *split)
{
	msgpack_sbuffer_destroy(&split->answers);
	msgpack_sbuffer_init(&split->answers);
}

void split_refuse(struct session *session, const char *code, const char *why)
{
	struct split *split = &session->split;
	struct operation *operation = split->operation;

	if (!operation)
		return;
	warden_touch(session->warden);
	client_error(session->sessions->clients, &operation->request, code,
		     "the running cell of session \"%s\" cannot be branched: %s", session->id, why);
	split->operation = operation_free(operation);
	answers_forget(split);
	timer_clear(session_loop(session), &split->due);
}

void split_abandon(struct session *session)
{
	split_refuse(session, "gone", "it has ended, or is being interrupted");
	session->split.copy = warden_discard(session->warden, session->split.copy);
}

static void on_due(struct timer *timer)
{
	struct session *session = container_of(timer, struct session, split.due);

	blame_session(session, TURN_CALL);
	split_refuse(session, "busy",
		     "it does not wait for a call now, or is at work besides; try again when it waits");
}

static void due_arm(struct session *session)
{
	(void)timer_set(session_loop(session), &session->split.due, event_now() + SPLIT_US, on_due);
}

void split_begin(struct session *session, struct operation *operation)
{
	struct split *split = &session->split;
	int r;

	warden_touch(session->warden);
	split->operation = operation;
	r = warden_freeze(session->warden, session->live, session->cell->number, &split->copy);
	if (r)
		split_refuse(session, "unsupported", strerror(-r));
	else
		due_arm(session);
}

void split_note(struct session *session, const struct returned_message *returned)
{
	struct split *split = &session->split;

	if (!split->operation)
		return;
	if (split->answers.size + returned->value.size + returned->text.size > ANSWERS_MAX ||
	    wire_encode_body(&split->answers, &returned_message_schema, returned))
		split_refuse(session, "busy", "its calls get too many answers now; try again");
}

bool split_is_there(struct session *session, const struct frozen_message *frozen)
{
	char why[512];

	timer_clear(session_loop(session), &session->split.due);
	if (session->split.operation && frozen->pid != 0)
		return true;
	snprintf(why, sizeof(why), "%.*s", (int)MIN(frozen->reason.size, sizeof(why) - 1),
		 frozen->reason.data ? frozen->reason.data : "");
	split_refuse(session, "unsupported", why);
	split_abandon(session);
	return false;
}

void split_end(struct session *session)
{
	session->split.copy = NULL;
	answers_forget(&session->split);
}

/* ---- as a part ---- */

static void init(struct session *session)
{
	msgpack_sbuffer_init(&session->split.answers);
}

static void deinit(struct session *session)
{
	timer_clear(session_loop(session), &session->split.due);
	operation_free(session->split.operation);
	msgpack_sbuffer_destroy(&session->split.answers);
}

static void on_revived(struct session *session)
{
	if (session->split.copy)
		session->split.copy->loose = true;
	if (session->split.operation)
		due_arm(session);
}

/* copy: its serial. */
#define SPLIT_FIELDS(F, m)                                                                                         \
	F(m, BIN, operation, OPTIONAL)                                                                             \
	F(m, UINT, copy, OPTIONAL)                                                                                 \
	F(m, BIN, answers, OPTIONAL)
WIRE_DECLARE(split_record, NO_ID, SPLIT_FIELDS);
WIRE_DEFINE(split_record, "split", NO_ID, SPLIT_FIELDS);

static int put(msgpack_sbuffer *buffer, const struct session *session)
{
	const struct split *split = &session->split;
	struct split_record record = {.copy = split->copy ? split->copy->serial : 0,
				      .answers = wire_bytes(&split->answers)};
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer operation = {0};
	int r;

	if (!split->operation && !split->copy)
		return 0;
	r = split->operation ? operation_put(&operation, split->operation) : 0;
	if (split->operation)
		record.operation = wire_bytes(&operation);
	r = r ? r : wire_encode_body(buffer, &split_record_schema, &record);
	return r;
}

static int take(struct session *session, struct bytes value)
{
	struct operation_record operation;
	struct split *split = &session->split;
	struct split_record record;
	struct wire_fault fault;

	if (wire_decode_known(&record, &split_record_schema, value, &fault))
		return -EBADMSG;
	split->copy = warden_interpreter(session->warden, record.copy);
	record_take_buffer(&split->answers, record.answers);
	return record.operation.data ? operation_take(&split->operation, &operation, session, record.operation) : 0;
}

const struct part split_part = {.name = "split",
				.init = init,
				.deinit = deinit,
				.on_exit = split_abandon,
				.on_end = split_abandon,
				.on_revived = on_revived,
				.put = put,
				.take = take};
