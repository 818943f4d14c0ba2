/* The steps of a session's table: answer its cell, refuse what waits, be idle, kill its interpreter. */
#include "steps.h"

#include "session/core/audit_log.h"
#include "session/core/counters.h"
#include "session/core/part.h"
#include "session/parts/calls.h"
#include "session/parts/filing.h"
#include "session/parts/saving.h"
#include "session/parts/split.h"

#include "proto/causes.h"

#include <signal.h>

void session_answer_resets(struct session *session, bool back)
{
	struct reset_reply reply = {.id = 0};
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer effects = {0};

	if (list_empty(&session->resets))
		return;
	if (back)
		reply.effects_more = effects_put(&session->effects, 0, EFFECTS_FOREVER, &effects);
	reply.effects = wire_bytes(&effects);
	waiters_answer(&session->resets, session->sessions->clients, &reset_reply_schema, &reply);
}

const char *session_overdue(const struct session *session)
{
	return session->expiring ? session->expiring : "timeout";
}

void session_reply(struct session *session, struct cell *cell, const struct verdict *verdict)
{
	char name[SESSION_NAME_SIZE];

	if (cell->task != CELL_CODE) {
		saving_reply(session, cell, verdict);
		return;
	}
	session_name_write(name, session->id, session->owner, cell->reply.uid);
	cell_reply(cell, session->sessions->clients, session->id[0] ? name : NULL, session->profile, verdict);
}

/* The session does not go on, or has lost something since. Returns which effects are told if it went back. */
static uint64_t verdict_amend(struct verdict *told, const struct session *session)
{
	if (session->sessions->cages->stopping) {
		/* Its last cell may have ended well; and the interrupt was ours. */
		told->state = "ended";
		if (cause_is(told->cause, CAUSE_INTERRUPT))
			told->cause = "shutdown";
	} else if (!session->id[0]) {
		told->state = "ended";
	} else if (session->lost_cause[0] && fate_is(told->state, FATE_KEPT)) {
		told->state = session->lost_to ? "rolled_back" : "reset";
		told->restored = session->lost_to;
		if (!told->cause)
			told->cause = session->lost_cause;
		return EFFECTS_DURING(session->cell->number); /* what this cell has done is not lost */
	}
	return EFFECTS_FOREVER;
}

/* What only clients are told: of the session before this one, and of files. */
static void verdict_complete(struct verdict *told, struct session *session, bool went_back, msgpack_sbuffer *ended)
{
	if (!session_put_ended(session, ended) && ended->size > 0) {
		told->ended = wire_bytes(ended);
		if (fate_is(told->state, FATE_KEPT))
			told->state = "new";
	}
	if (went_back) {
		told->files = wire_bytes(&session->filing.back);
		told->files_more = session->filing.more;
		told->files_stay = session->filing.stay;
	}
	told->files_unkept = session->filing.unkept;
}

/* Of a cell that has been answered nothing is left in its session. */
static void cell_leave(struct session *session, bool of_client)
{
	session->untold &= !of_client;
	if (of_client) {
		if (load_report_any(&session->load_report))
			load_report_deinit(&session->load_report);
		for (int i = 0; i < 2; i++) {
			session->transcripts[i].begin = session->transcripts[i].end;
			session->words[i].size = 0;
		}
		filing_told(session);
	}
	session->task_file_due |= session->cell->file_stored;
	session->cell = cell_free(session->cell);
	timer_clear(session_loop(session), &session->alive);
	/* Whoever read too slowly watches no more. */
	if (session->live)
		interpreter_pause(session->live, false);
	session->lost_cause[0] = '\0';
	session->n_forgotten = 0;
	session->idle_deaths = 0;
	session->last = event_now();
	session->warden->measured = 0;
	session_deadline(session, 0);
}

/* Answer the running cell and forget it. */
void session_finish_cell(struct session *session, const struct verdict *verdict)
{
	struct verdict told = *verdict;
	bool of_client = session->cell->task == CELL_CODE, went_back;
	uint64_t until = verdict_amend(&told, session);
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer ended = {0};
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer effects = {0};

	split_refuse(session, "gone", "it has ended");
	if (session->cell->calls.n > 0)
		session_end_calls(session);
	went_back = fate_is(told.state, FATE_ROLLED_BACK) || fate_is(told.state, FATE_RESET);
	if (went_back)
		told.effects_more = effects_put(&session->effects, told.restored, until, &effects);
	told.effects = wire_bytes(&effects);
	told.birth = session->birth;
	if (session->warden && strcmp(session->warden->language, LANGUAGE_OWN) != 0)
		told.language = session->warden->language;
	told.forgotten = session->n_forgotten;
	if (of_client) {
		verdict_complete(&told, session, went_back, &ended);
		counters_cell(session->sessions, session->cell, verdict);
	}
	audit_log_blocked(session, session->cell, told.blocked);
	if (session->id[0] && of_client)
		journal_add(&session->journal, session->cell, &told);
	told.load_report = load_report_any(&session->load_report) ? &session->load_report : NULL;
	session_reply(session, session->cell, &told);
	cell_leave(session, of_client);
}

void session_refuse_resets(struct session *session)
{
	waiters_refuse(&session->resets, session->sessions->clients, "the session ended before it was reset");
}

/* Whatever waits, cells and operations, will not be done. */
void session_refuse_work(struct session *session, const char *why)
{
	struct operation *operation;
	struct cell *cell;

	list_for_each (cell, &session->queue, node) {
		session->unloaded |= cell->task == CELL_LOAD;
		client_error(session->sessions->clients, &cell->reply, "gone", "%s before this cell could run",
			     why);
		cell_free(cell);
	}
	session->last_save = NULL;
	session->n_queued = 0;
	list_for_each (operation, &session->operations, node)
		operation_refuse(session, operation, why);
	if (session->operation)
		operation_refuse(session, session->operation, why);
}

void session_work(struct session *session, const struct details *details)
{
	bool work = !list_empty(&session->queue) || !list_empty(&session->operations);

	if (session->state == SESSION_UNSAVED && work)
		session_event(session, EVENT_RUN, &session_nothing);
	if (session->expiring && saving_proceed(session))
		return;
	/* An interrupt on its way must reach only the cell or question that it was meant for. */
	while (session->state == SESSION_IDLE && !session->operation && !session->exited &&
	       session->live->signals_unanswered == 0) {
		struct list *first = list_first(&session->operations);

		if (!first || filing_waits(session))
			break;
		operation_begin(session, container_of(first, struct operation, node));
	}
	if ((session->state == SESSION_IDLE || session->state == SESSION_FREEZING) && !list_empty(&session->queue))
		session_event(session, EVENT_RUN, &session_nothing);
}

void session_operate(struct session *session, struct operation *operation)
{
	warden_touch(session->warden);
	list_append(&session->operations, &operation->node);
	session_proceed(session);
}

void session_begin_idle(struct session *session)
{
	session->state = SESSION_IDLE;
	session_deadline(session, 0);
	session_arm_idle(session);
	session_proceed(session);
	if (session->state == SESSION_IDLE)
		parts_call(on_idle, session);
}

void session_freeze_soon(struct session *session)
{
	uint64_t now = event_now(), after = session->costly.until > now ? session->costly.until - now : 0;

	if (session->hurried && !after) {
		session_freeze(session);
		return;
	}
	session->state = SESSION_UNSAVED;
	session_deadline(session, MAX(after, (uint64_t)ANSWER_US));
	session_proceed(session);
}

/* A running cell went on while there was no router, and so did its time. Other answers could not be heard, and
 * their order may only now be sent: they get all of their time again. */
static void deadline_renew(struct session *session)
{
	bool goes_on = session->state == SESSION_BUSY && session->live && list_empty(&session->live->peer.messages);

	if (session->deadline.index && session->patience && !goes_on)
		session_deadline(session, session->patience);
}

void session_on_revived(struct session *session)
{
	if (session->state == SESSION_CLOSING)
		return;
	deadline_renew(session);
	session_arm_hard(session);
	session_arm_measure(session);
	if (session->state == SESSION_IDLE)
		session_arm_idle(session);
	quota_on_run(session->warden);
	parts_call(on_revived, session);
}

/* Kill the interpreter; another one follows when it is dead. The first cause counts. */
void session_kill_interpreter(struct session *session, const char *cause)
{
	session->state = SESSION_KILLING;
	session->kill_cause = cause;
	timer_clear(session_loop(session), &session->idle);
	if (warden_signal(session->warden, session->live, SIGKILL))
		session_end(session, "internal");
	else
		session_deadline(session, DEATH_US);
}

void session_expire(struct session *session, const struct details *details)
{
	saving_expire(session, details->why);
}
