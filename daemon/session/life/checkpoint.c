/* Checkpoints: made when a cell has been answered or a client asks, measured now and then, and forgotten when
 * there are too many. restore.c makes interpreters from them. */
#include "steps.h"

#include "base/descriptors.h"
#include "base/log.h"
#include "session/core/blame.h"
#include "session/parts/filing.h"

#include <inttypes.h>
#include <stdio.h>

/* Copying less than this is told to nobody. */
#define COSTLY_US 50000
/* Copying takes at most one part of the time; but a checkpoint is never put off for longer than this. */
#define COSTLY_PARTS 10
#define COSTLY_MAX_US (60 * 1000000ULL)

/* In which all checkpoints are looked at once. */
#define MEASURE_US 300000

void session_forget(struct session *session, struct checkpoint *checkpoint)
{
	struct interpreter *frozen = checkpoint->interpreter;
	uint64_t files;

	if (session->target == checkpoint)
		session->target = checkpoint->parent;
	if (session->successor_of == checkpoint)
		session_drop_successor(session);
	files = checkpoint->files;
	history_remove(&session->history, checkpoint);
	warden_discard(session->warden, frozen); /* another one of the family may have it, too */
	filing_unused(session, files);
}

/* Forget until the rest is within the limits, but not the one that is being restored. */
void session_trim_history(struct session *session)
{
	uint64_t memory = session->profile->checkpoint_memory, next = session->costly.bytes;
	struct checkpoint *checkpoint;

	if (session->target)
		return;
	/* The next cell is taken to write to as much as the last. */
	if (memory)
		memory = memory > next ? memory - next : 1;
	while ((checkpoint = history_excess(&session->history, session->profile->checkpoints, memory))) {
		session->n_forgotten++;
		session_forget(session, checkpoint);
	}
}

static void on_measure(struct timer *timer);

static void measure_after(struct session *session, uint64_t pause)
{
	if (!session->measure.index)
		(void)timer_set(session_loop(session), &session->measure, event_now() + pause, on_measure);
}

/* The memory that checkpoints hold alone changes while the live state moves on, and measuring one costs a
 * millisecond of a processor. So they are measured now and then, one at a time, until each has been since the
 * last new one; and while cells come, seldom. */
static void on_measure(struct timer *timer)
{
	struct session *session = container_of(timer, struct session, measure);
	struct measure_message measure = {0};
	struct checkpoint *checkpoint, *next = NULL;
	uint64_t newest = 0, n = 0;

	blame_session(session, TURN_MEASURE);
	list_for_each (checkpoint, &session->history.checkpoints, node) {
		newest = MAX(newest, checkpoint->born);
		n++;
		if (!next || checkpoint->measured < next->measured)
			next = checkpoint;
	}
	if (!next || next->measured > newest + MEASURE_US)
		return;
	next->measured = event_now();
	if (!interpreter_send(next->interpreter, &measure_message_schema, &measure))
		measure_after(session, event_now() - session->last < MEASURE_US ? MEASURE_US : MEASURE_US / n);
}

void session_arm_measure(struct session *session)
{
	if (!list_empty(&session->history.checkpoints))
		measure_after(session, MEASURE_US);
}

/* ---- a checkpoint that costs much ---- */

/* The base alone has now what was copied. A cell that has begun without a new one says nothing of the next. */
void session_note_rewriting(struct session *session, const struct done_message *done)
{
	struct checkpoint *base = session->history.base;

	if (!base || (!session->was_saved && !done->rewritten))
		return;
	session->costly.bytes = done->rewritten;
	base->memory = MAX(base->memory, done->rewritten);
	if (done->rewriting < COSTLY_US)
		return;
	session->costly.us = done->rewriting;
	session->costly.until = event_now() + MIN(done->rewriting, COSTLY_MAX_US / COSTLY_PARTS) * COSTLY_PARTS;
}

const char *session_unkept(char text[static UNKEPT_SIZE], const struct session *session)
{
	const char *unkept = session->history.unkept;
	const struct costliness *costly = &session->costly;
	uint64_t now = event_now();

	if (now >= costly->until) {
		snprintf(text, UNKEPT_SIZE, "the last state could not be kept: %s", unkept);
		return *unkept ? text : NULL;
	}
	snprintf(text, UNKEPT_SIZE,
		 "%.1f GiB were copied when a cell wrote to them, because of the last checkpoint, which took "
		 "%.1f s; the next one is made in %.0f s",
		 (double)costly->bytes / (1ULL << 30), event_seconds(costly->us),
		 event_seconds(costly->until - now) + 0.5);
	return text;
}

static void end_homeless(struct session *session, const char *why)
{
	log_warn(session->name, "the files for it cannot be copied: %s", why);
	operation_on_homeless(session, "unsupported", why);
	session_end(session, "files");
}

void session_abandon_freeze(struct session *session, const char *why)
{
	session->freezing = warden_discard(session->warden, session->freezing);
	operation_on_frozen(session, why);
}

/* Returns 0, also if there is no copy for a good reason; or -1: then the session gets the rest of the event. */
static int copy_take(struct session *session, const struct frozen_message *frozen)
{
	struct interpreter *copy = session->freezing;
	char why[512];

	if (!copy || frozen->serial != copy->serial) {
		session_on_lost(session, session->live, "it froze something else");
		return -1;
	}
	/* A branch begins here, with a checkpoint of its own or without. */
	session_let_source_go(session);
	if (frozen->pid == 0) {
		snprintf(why, sizeof(why), "%.*s", (int)MIN(frozen->reason.size, sizeof(why) - 1),
			 frozen->reason.data);
		/* For any other session this would be a way to end it. */
		if (frozen->homeless && operation_is_birth(session)) {
			end_homeless(session, why);
			return -1;
		}
		session_abandon_freeze(session, why);
		return 0;
	}
	session->freezing = NULL;
	if (warden_adopt(session->warden, copy, frozen->pid) || interpreter_attach(copy, &session->tenant) ||
	    !history_add(&session->history, copy, session->at)) {
		session_end(session, "internal");
		return -1;
	}
	session->history.base->done_calls = session->done_calls;
	filing_on_frozen(session, session->history.base);
	measure_after(session, MEASURE_US);
	operation_on_frozen(session, NULL); /* with its name, it does not count among those without */
	return 0;
}

void session_finish_frozen(struct session *session, const struct details *details)
{
	if (copy_take(session, details->frozen))
		return;
	session_trim_history(session);
	session_deadline(session, 0);
	if (list_empty(&session->resets))
		session_begin_idle(session);
	else
		session_kill_interpreter(session, "reset");
}

/* The cell begins only now. If there is a copy, it began in that state. */
void session_note_frozen(struct session *session, const struct details *details)
{
	if (copy_take(session, details->frozen))
		return;
	if (session->cell)
		session_depart(session);
	if (session->cell && session->state == SESSION_BUSY) {
		cell_start(session->cell);
		session_deadline(session, session->cell->timeout);
	}
	session_trim_history(session);
}

void session_freeze(struct session *session)
{
	int r;

	filing_keep(session);
	r = descriptors_left(DESCRIPTORS_CHECKPOINT)
		    ? warden_freeze(session->warden, session->live, 0, &session->freezing)
		    : -EMFILE;
	if (r == -ENOMEM || r == -EMFILE || r == -ENFILE) {
		session_let_source_go(session);
		operation_on_frozen(session, strerror(-r));
		session_begin_idle(session);
	} else if (r) {
		session_kill_interpreter(session, "violation");
	} else {
		session->state = SESSION_FREEZING;
		session_deadline(session, PATIENCE_US);
		session_proceed(session);
	}
}
