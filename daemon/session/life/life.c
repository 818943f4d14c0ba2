/* How sessions end, and what clients may ask of them. table.c has everything in between. */
#include "base/log.h"
#include "session/core/audit_log.h"
#include "session/core/part.h"
#include "session/parts/filing.h"
#include "session/parts/saving.h"
#include "steps.h"
#include "stop.h"

#include "proto/clock.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

bool session_cancel(struct session *session, const struct address *request, bool kill)
{
	const struct verdict cancelled = {.returncode = RETURNCODE_INTERRUPTED,
					  .state = session->id[0] ? "kept" : "ended",
					  .cause = "interrupt"};
	struct cell *cell;

	if (session->cell && promise_asked_by(session->cell->reply.promise, request))
		return session_interrupt(session, kill);
	list_for_each (cell, &session->queue, node) {
		if (!promise_asked_by(cell->reply.promise, request))
			continue;
		warden_touch(session->warden);
		session_reply(session, cell, &cancelled);
		cell_free(cell);
		session->n_queued--;
		if (!session->id[0])
			session_end(session, "one-shot");
		return true;
	}
	return false;
}

bool session_interrupt(struct session *session, bool kill)
{
	warden_touch(session->warden);
	if (session->filing.state == FILING_BRINGS)
		return filing_on_late(session);
	if (!session_busy(session))
		return false;
	/* A cell that waits behind a checkpoint has not begun: it is interrupted when it does. */
	if (kill && !session->freezing) {
		log_info(session->name, "cell %" PRIu64 " is killed, as was asked", session->cell->number);
		session_kill_interpreter(session, "interrupt");
		return true;
	}
	interpreter_mark_interrupted(session->live, session->cell->number);
	if (warden_signal(session->warden, session->live, SIGINT))
		session_end(session, "internal");
	return true;
}

void session_reset(struct session *session, const struct address *request)
{
	warden_touch(session->warden);
	waiters_add(&session->resets, session->sessions->clients, request);
	session_event(session, EVENT_RESET, &session_nothing);
}

void session_close(struct session *session, const struct address *request)
{
	warden_touch(session->warden);
	waiters_add(&session->closers, session->sessions->clients, request);
	saving_close(session);
	session_end(session, "shutdown");
}

void session_answer(struct session *session, const struct input_request *input)
{
	struct answer_message answer = {.text = input->text, .eof = input->eof};
	struct cell *cell = session->cell;

	warden_touch(session->warden);
	cell->asking = false;
	/* It has all of its time again. */
	cell->rest = cell->timeout;
	if (session->state == SESSION_BUSY && !cell->stands)
		session_deadline(session, cell->timeout);
	session_heed_clock(session);
	if (interpreter_send(session->live, &answer_message_schema, &answer))
		session_end(session, "internal");
}

void session_resume(struct session *session)
{
	if (session->cell && session->live && !promise_waits(session->cell->reply.promise))
		interpreter_pause(session->live, false);
}

/* ---- the end ---- */

/* For clients that ask for its id later. */
static void past_note(struct session *session, const char *cause)
{
	struct ending ending = {.when = clock_date(), .birth = session->birth, .cells = session->n_cells};
	struct list *first = list_first(&session->closers);

	if (!session->id[0])
		return;
	snprintf(ending.why, sizeof(ending.why), "%s", session->sessions->cages->stopping ? "stopped" : cause);
	if (session->expiring) {
		ending.saved = session->save_tried && !session->last_save && !session->not_saved[0];
		if (!ending.saved)
			snprintf(ending.not_saved, sizeof(ending.not_saved), "%s",
				 session->not_saved[0] ? session->not_saved : "it ended before it was saved");
		stop_note(session, &ending);
	}
	ending.by_root = first && container_of(first, struct waiter, node)->request.uid == 0 && session->owner != 0;
	past_end(&session->sessions->past, session->owner, session->id, &ending);
}

void session_finish(struct session *session, const struct details *details)
{
	const char *cause = details->why;
	struct verdict verdict = {.returncode = RETURNCODE_KILLED, .state = "ended", .cause = cause};

	session->state = SESSION_CLOSING;
	session->kill_cause = cause;
	log_info(session->name, "ended: %s", cause);
	audit_log_ended(session, cause);
	if (session->cell && session->cell->timed_out)
		verdict.returncode = RETURNCODE_TIMEOUT;
	if (session->cell)
		session_finish_cell(session, &verdict);
	past_note(session, cause);
	session_refuse_work(session, "the session ended");
	session_refuse_resets(session);
	session_stop_clocks(session);
	parts_call(on_end, session);
	session->freezing = warden_discard(session->warden, session->freezing);
	session_drop_successor(session);
	session->live = NULL;
	session_let_source_go(session);
	sessions_on_ended(session->sessions, session);
	/* Its frozen interpreters go now, and nothing may refer to them. */
	session->target = NULL;
	history_deinit(&session->history);
	warden_leave(session->warden, &session->tenant);
}
