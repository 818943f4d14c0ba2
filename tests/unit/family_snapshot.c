/* What is written down of a session in each of its states comes back as the same: the next router's family, written
 * down in its turn, has the same record. Both routers are in this process; the vault, wardens, interpreters and
 * clients are fakes. */
#include "check.h"
#include "fakes/states.h"
#include "fakes/vault.h"

#include "family/family.h"
#include "family/revive.h"
#include "session/core/question.h"

#include <string.h>

static struct stage former, next;
static struct families families[2];
static struct vault vault;
static struct config *config;

/* A profile that can be written down and read. */
static void begin(struct stage *stage, struct families *of)
{
	struct profile small;

	stage_begin(stage);
	small = stage->profile;
	stage->profile = *config_profile(config, BYTES(""));
	stage->profile.refs = 1;
	stage->profile.checkpoint = small.checkpoint;
	stage->profile.idle_ttl = stage->profile.hard_ttl = 0;
	families_init(of, &stage->sessions, &vault);
}

static void end(struct stage *stage, struct families *of)
{
	families_deinit(of);
	stage_end(stage);
}

static void settle(struct families *of)
{
	(void)of;
	stage_settle(&next);
}

struct taken {
	struct snapshot snapshot;
	struct family_record record;
};

static void take(struct taken *taken, struct stage *stage)
{
	struct list *first = list_first(&stage->sessions.all);

	snapshot_init(&taken->snapshot);
	CHECK(first != NULL);
	CHECK(snapshot_take(&taken->snapshot, &taken->record, container_of(first, struct session, node)->warden) ==
	      0);
}

/* The session that is brought back, field by field, so that it is known what differs. */
static void sessions_compare(const char *state, struct bytes left, struct bytes right)
{
	struct kept_session one, two;
	struct wire_fault fault;
	struct bytes item, other;
	size_t at = 0, at_other = 0;

	CHECK(wire_count(left) == wire_count(right));
	while (wire_next(left, &at, &item) && wire_next(right, &at_other, &other)) {
		CHECK(wire_decode(&one, &kept_session_schema, item, &fault) == 0);
		CHECK(wire_decode(&two, &kept_session_schema, other, &fault) == 0);
		for (size_t i = 0; i < kept_session_schema.n_fields; i++) {
			const struct wire_field *field = &kept_session_schema.fields[i];
			const char *a = (const char *)&one + field->offset, *b = (const char *)&two + field->offset;
			bool spans = field->type == WIRE_STR || field->type == WIRE_BIN || field->type == WIRE_RAW;
			bool same = spans ? bytes_equal(*(const struct bytes *)a, *(const struct bytes *)b)
				    : field->type == WIRE_FLAG ? *a == *b
							       : memcmp(a, b, sizeof(uint64_t)) == 0;

			if (!same)
				fprintf(stderr, "%s: %.*s\n", state, (int)field->name.size, field->name.data);
			CHECK(same);
		}
	}
}

static size_t journal_size(struct stage *stage)
{
	struct session *session = container_of(list_first(&stage->sessions.all), struct session, node);

	return session->journal.n + session->journal.size;
}

/* What others have asked for meanwhile waits in all states but these. */
static void add_waiting(struct session *session)
{
	if (session->state == SESSION_CLOSING)
		return;
	session->n_forgotten = 3;
	session->lost_to = 1;
	snprintf(session->lost_cause, sizeof(session->lost_cause), "signal 11");
	if (session->state == SESSION_STARTING || session->state == SESSION_KILLING ||
	    session->state == SESSION_BUSY) {
		stage_exec(&former, session, false, 77);
		stage_exec(&former, session, true, 0);
	}
	if (session->state == SESSION_SWEEPING)
		stage_reset(&former, session);
	if (session->state == SESSION_ANSWERING)
		stage_operate(&former, session, OPERATION_UNDO, NULL, NULL, 2);
}

/* Two calls of `effect` functions, of which one is in the past of the session, and the other in that of its base.
 */
static void add_done_calls(struct session *session)
{
	char where[] = "s", text[] = "pay(n=1)";
	const struct done_call done_call = {
		.digest = {1, 2, 3}, .session = 1, .cell = 2, .where = where, .text = text};
	struct done_calls *done_calls = &session->warden->done_calls;
	size_t place;

	CHECK(done_calls_place(&place, done_calls, NULL, NULL) == 0 &&
	      done_calls_add(done_calls, place, &done_call) == 0);
	past_calls_add(&session->done_calls, place);
	CHECK(done_calls_place(&place, done_calls, NULL, NULL) == 0 &&
	      done_calls_add(done_calls, place, &done_call) == 0);
	done_calls->all[place].maybe = true;
	if (session->history.base)
		past_calls_add(&session->history.base->done_calls, place);
	done_calls->forgotten = 3;
	session->done_calls.forgotten = 2;
	effects_call(&session->effects, true, true, "pay(n=1)", EFFECTS_DURING(2));
}

static void done_calls_compare(const struct done_calls *one, const struct done_calls *two)
{
	CHECK(one->n == two->n && one->size == two->size && one->last == two->last &&
	      one->forgotten == two->forgotten);
	for (size_t i = 0; one->all && two->all && i < DONE_CALLS_MAX; i++) {
		const struct done_call *left = &one->all[i], *right = &two->all[i];

		CHECK(left->serial == right->serial && left->session == right->session &&
		      left->cell == right->cell && left->maybe == right->maybe);
		CHECK(!memcmp(left->digest, right->digest, sizeof(left->digest)));
		CHECK(!left->serial || (!strcmp(left->where, right->where) && !strcmp(left->text, right->text)));
	}
}

/* What is false or nothing in most sessions. */
static void add_values(struct session *session)
{
	add_done_calls(session);
	session->exited = session->save_tried = session->restored = session->unloaded = true;
	session->history.severed = true;
	session->effects.dropped = 2;
	session->effects.dropped_at = 5;
}

/* The copy that has been asked for stands. */
static void frozen(struct session *session)
{
	const struct frozen_message message = {.serial = session->freezing ? session->freezing->serial : 0,
					       .pid = 2};

	CHECK(session->freezing != NULL);
	fake_say(session->live, &frozen_message_schema, &message);
	stage_settle(&former);
}

/* Two checkpoints, the older of which is the base; and somebody who is to follow, made of it or of the pristine
 * image.
 */
static void add_successor(struct session *session, bool pristine)
{
	const struct done_message done = {.cell = 2};

	frozen(session);
	stage_exec(&former, session, false, 0);
	fake_say(session->live, &done_message_schema, &done);
	if (!session->freezing)
		stage_wait(&former, 1000);
	frozen(session);
	CHECK(session->state == SESSION_IDLE && session->history.n_automatic == 2);
	history_rebase(&session->history, history_find(&session->history, BYTES("1")));
	if (pristine)
		stage_reset(&former, session);
	else
		stage_operate(&former, session, OPERATION_RESTORE, "1", NULL, 0);
	CHECK(session->state == SESSION_KILLING && session->successor != NULL);
	CHECK(pristine == !session->successor_of);
}

/* One that is put aside, one that is approved, two that ask, one that is no more. What becomes of
 * them is written after they are. */
static void add_calls(struct session *session)
{
	const struct bytes arguments = BYTES("\x81\xa1\x61\x01");

	for (uint64_t number = 1; number <= 5; number++) {
		const struct call_message message = {
			.number = number, .function = BYTES("f"), .arguments = arguments};

		fake_say(session->live, &call_message_schema, &message);
		fake_now += 1000;
	}
	stage_settle(&former);
	families_commit(&families[0]);
	CHECK(session->cell->calls.n == 5);
	session_hold_call(session, calls_find(&session->cell->calls, 1),
			  BYTES("Gr\xc3\xbc\xc3\x9f"
				"e"),
			  NULL);
	session_approve_call(session, calls_find(&session->cell->calls, 2), STAGE_OWNER);
	fake_say(session->live, &abandon_message_schema, &(struct abandon_message){.number = 5});
	CHECK(session->cell->calls.n == 4 && session->cell->n_calls == 5);
}

static void calls_compare(const struct cell *one, const struct cell *two)
{
	const struct call *call, *other;

	CHECK(one->calls.n == two->calls.n && one->calls.size == two->calls.size && one->n_calls == two->n_calls);
	list_for_each (call, (struct list *)&one->calls.list, node) {
		other = calls_find(&two->calls, call->number);
		CHECK(other && other->state == call->state && other->since == call->since &&
		      other->turned == call->turned);
		CHECK(other && bytes_equal(other->function, call->function) &&
		      bytes_equal(other->arguments, call->arguments));
		CHECK(other && !strcmp(other->text ? other->text : "", call->text ? call->text : ""));
	}
}

static struct session *first_of(struct stage *stage)
{
	return container_of(list_first(&stage->sessions.all), struct session, node);
}

enum more { MORE_WAITING, MORE_VALUES, MORE_FRESH, MORE_OLDER, MORE_CALLS };

static void add(struct session *session, enum more more)
{
	switch (more) {
	case MORE_WAITING:
		add_waiting(session);
		break;
	case MORE_VALUES:
		add_values(session);
		break;
	case MORE_FRESH:
	case MORE_OLDER:
		add_successor(session, more == MORE_FRESH);
		break;
	case MORE_CALLS:
		add_calls(session);
	}
}

static void test_state(enum session_state state, enum more more)
{
	struct taken before, after;
	struct session *session;

	begin(&former, &families[0]);
	if (more == MORE_CALLS)
		former.functions = BYTES("\x91\x82\xa4name\xa1\x66\xa3"
					 "ask\xc3");
	session = state_enter(&former, state);
	CHECK(session && session->state == state);
	if (!session)
		return;
	add(session, more);
	stage_settle(&former);
	families_commit(&families[0]);
	CHECK(!session->warden->unkept);
	take(&before, &former);
	fake_vault_inherit(&vault);
	begin(&next, &families[1]);
	families_read(&families[1]);
	families_revive(&families[1], settle);
	CHECK(list_size(&next.sessions.all) == list_size(&former.sessions.all));
	if (!list_empty(&next.sessions.all)) {
		take(&after, &next);
		sessions_compare(state_name(state), before.record.sessions, after.record.sessions);
		CHECK(bytes_equal(before.record.interpreters, after.record.interpreters));
		CHECK(before.record.last_interpreter == after.record.last_interpreter);
		CHECK(before.record.last_session == after.record.last_session);
		CHECK(before.record.last_question == after.record.last_question);
		CHECK(journal_size(&former) == journal_size(&next));
		done_calls_compare(&session->warden->done_calls, &first_of(&next)->warden->done_calls);
		CHECK(session->effects.entries.n == first_of(&next)->effects.entries.n &&
		      session->effects.entries.size == first_of(&next)->effects.entries.size);
		if (more == MORE_CALLS)
			calls_compare(session->cell, first_of(&next)->cell);
		snapshot_deinit(&after.snapshot);
	}
	snapshot_deinit(&before.snapshot);
	fake_vault_end(&vault);
	end(&next, &families[1]);
	end(&former, &families[0]);
}

int main(void)
{
	struct config_error error;

	CHECK(config_load(&config, NULL, &error) == 0);
	for (int state = 0; state < _SESSION_STATE_N; state++) {
		test_state((enum session_state)state, MORE_WAITING);
		test_state((enum session_state)state, MORE_VALUES);
	}
	test_state(SESSION_FREEZING, MORE_FRESH);
	test_state(SESSION_FREEZING, MORE_OLDER);
	test_state(SESSION_BUSY, MORE_CALLS);
	config_free(config);
	return check_report();
}
