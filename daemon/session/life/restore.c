/* A new interpreter for a session whose old one is gone. The cell that was running is answered only when the new
 * interpreter is ready, so that the answer can say which state is in force. */
#include "steps.h"

#include "base/log.h"
#include "session/core/part.h"
#include "session/parts/filing.h"
#include "warden/budget.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

/* How long the copy of a branch's files may take. */
#define COPY_US (120 * 1000000ULL)
/* So many interpreters may die of one state with nothing to do. */
#define IDLE_DEATHS_MAX 3

static void restore_begin(struct session *session);

/* This is a branch that gets a copy of the files, with its first checkpoint. */
static bool is_copying(const struct session *session)
{
	return session->operation && session->operation->files;
}

/* The new interpreter is ready: tell everybody who waits for it, first the cell that broke the last one. */
static void restored(struct session *session)
{
	struct checkpoint *target = session->target;
	bool grown = session->growing;

	history_rebase(&session->history, target);
	session->at = session->lost_to = target ? target->cell : 0;
	session->target = NULL;
	session->growing = false;
	session->kill_cause = NULL;
	session->scarce_until = 0;
	if (session->cell) {
		session->verdict.restored = session->at;
		if (session->exact || target)
			session->verdict.state = "rolled_back";
		session_finish_cell(session, &session->verdict);
	}
	if (target)
		session->done_calls = target->done_calls;
	else if (!grown)
		session->done_calls = (struct past_calls){.forgotten = 0};
	if (!list_empty(&session->resets) && (target || grown)) {
		/* Asked for while it was on its way. */
		session_kill_interpreter(session, "reset");
		return;
	}
	session->state = SESSION_IDLE;
	/* A client that asked for this state need not be told that another one was lost. */
	if (session->operation || !list_empty(&session->resets))
		session->lost_cause[0] = '\0';
	session_answer_resets(session, true);
	if (grown) {
		/* The checkpoint it grew from belongs to its parent, so it needs one of its own to fall back on.
		 * A branch with files gets them at the same time. */
		session->history.saved = false;
		session->history.severed = true;
		session->at = session->n_cells;
		session->lost_cause[0] = '\0';
		if (session->operation && !is_copying(session))
			operation_on_born(session);
		session_freeze(session);
		if (session->state == SESSION_FREEZING && is_copying(session))
			session_deadline(session, COPY_US);
		return;
	}
	operation_on_restored(session);
	session_begin_idle(session);
}

/* Again after another sweep. */
static void restore_later(struct session *session)
{
	session->live = warden_discard(session->warden, session->live);
	if (session->state != SESSION_SWEEPING)
		session_deadline(session, DEATH_US);
	session->state = SESSION_SWEEPING;
	warden_sweep(session->warden, &session->tenant);
}

/* The next interpreter could not be made. If only descriptors or memory were scarce, it is tried again, for as long
 * as a sweep may take. */
static void restore_failed(struct session *session, int error)
{
	if (is_scarcity(error) && !operation_is_birth(session)) {
		restore_later(session);
		return;
	}
	log_error(session->name, "cannot start another interpreter: %s", strerror(-error));
	session_end(session, "internal");
}

static void restore_pristine(struct session *session)
{
	int r = warden_spawn(session->warden, session->workspace, &session->live);

	if (!r)
		r = interpreter_attach(session->live, &session->tenant);
	if (r)
		restore_failed(session, r);
	else
		restored(session);
}

void session_thaw(struct session *session, const struct spawn_message *how, struct interpreter *frozen)
{
	int r = warden_thaw(session->warden, frozen, how, &session->live);

	if (!r)
		r = interpreter_attach(session->live, &session->tenant);
	if (r) {
		restore_failed(session, r);
		return;
	}
	session->source = frozen;
	session->state = SESSION_RESTORING;
	session_deadline(session, PATIENCE_US);
}

/* The successor has waited until the last interpreter, and everything it had started, was dead. */
static void take_over(struct session *session)
{
	const struct filing *filing = &session->filing;
	const struct settle_message settle = {.files = filing->back.size > 0 || filing->more > 0 || filing->aside};
	int r;

	session->live = session->successor;
	session->successor = NULL;
	budget_count(session->warden);
	r = interpreter_attach(session->live, &session->tenant);
	if (!r && session->target)
		r = interpreter_send(session->live, &settle_message_schema, &settle);
	if (r)
		restore_failed(session, r);
	else
		restored(session);
}

void session_let_source_go(struct session *session)
{
	struct interpreter *source = session->source;

	session->source = NULL;
	if (source && source->tenant == &session->tenant && !history_of(&session->history, source))
		warden_discard(session->warden, source);
}

/* A branch died before it had a checkpoint of its own, or had to wait for its files: no cell has begun in it. */
static void grow_again(struct session *session)
{
	struct spawn_message how = {.reseed = true};

	session->growing = true;
	filing_filled(session, &how);
	session_thaw(session, &how, session->source);
}

/* What another session of the family has, too, is not to draw the same numbers in both. */
static struct spawn_message how_to_thaw(const struct session *session, const struct checkpoint *target)
{
	return (struct spawn_message){.reseed = target->interpreter->tenant != &session->tenant};
}

static void thaw_target(struct session *session)
{
	struct interpreter *frozen = session->target->interpreter;
	const struct spawn_message how = how_to_thaw(session, session->target);

	session_thaw(session, &how, frozen);
}

static void restore_begin(struct session *session)
{
	if (session->successor && session->successor_of != session->target)
		session_drop_successor(session);
	if (session->successor && session->successor->adopted)
		take_over(session);
	else if (session->target)
		thaw_target(session);
	else if (session->source)
		grow_again(session);
	else
		restore_pristine(session);
}

/* A branch: its checkpoint is its parent's. */
static void end_unborn(struct session *session, const char *why)
{
	char text[160];

	snprintf(text, sizeof(text), "the branch could not be made: %s", why ? why : "its interpreter ended");
	if (session->operation)
		operation_refuse(session, session->operation, text);
	session_end(session, "internal");
}

/* The frozen interpreter does not answer: go further back. */
void session_restore_older(struct session *session, const struct details *details)
{
	struct checkpoint *broken = session->target;

	session_let_source_go(session);
	session->live = warden_discard(session->warden, session->live);
	if (!broken && !session->midway && !operation_is_birth(session)) {
		session->growing = false;
		restore_pristine(session);
		return;
	}
	if (!broken) {
		end_unborn(session, details->why);
		return;
	}
	log_warn(session->name, "the checkpoint after cell %" PRIu64 " is broken: going further back",
		 broken->cell);
	session->target = broken->parent;
	session_forget(session, broken);
	session->state = SESSION_SWEEPING;
	session_restore_after_sweep(session, details);
}

/* Processes or memory are scarce, which says nothing against the checkpoint. If they stay so, an older one may be
 * had for less; this one is kept. */
void session_on_unforked(struct session *session, const struct details *details)
{
	uint64_t now = event_now();

	if (operation_is_birth(session) || session->midway || (!session->target && !session->growing)) {
		session_event(session, EVENT_LOST, details);
		return;
	}
	if (!session->scarce_until)
		session->scarce_until = now + DEATH_US;
	if (now < session->scarce_until) {
		restore_later(session);
		return;
	}
	if (!session->target) {
		session_event(session, EVENT_LOST, details);
		return;
	}
	log_warn(session->name,
		 "no process can be forked from the checkpoint after cell %" PRIu64
		 ", which is kept: going further back",
		 session->target->cell);
	session_let_source_go(session);
	session->live = warden_discard(session->warden, session->live);
	session->target = session->target->parent;
	session->state = SESSION_SWEEPING;
	session_restore_after_sweep(session, details);
}

/* How a process ended, whether or not we killed it. */
static struct verdict verdict_of_exit(struct session *session, const struct details *exit)
{
	struct verdict verdict = {.state = "reset", .returncode = RETURNCODE_KILLED, .cause = session->kill_cause};

	if (session->cell && session->cell->timed_out) {
		verdict.returncode = RETURNCODE_TIMEOUT;
		verdict.cause = session_overdue(session);
	} else if (exit->oom) {
		verdict.cause = "oom";
	} else if (WIFEXITED(exit->status)) {
		verdict.returncode = WEXITSTATUS(exit->status);
		verdict.cause = "exit";
	} else if (WIFSIGNALED(exit->status) && (!verdict.cause || WTERMSIG(exit->status) != SIGKILL)) {
		verdict.returncode = RETURNCODE_SIGNAL + WTERMSIG(exit->status);
		snprintf(session->verdict_cause, sizeof(session->verdict_cause), "signal %d",
			 WTERMSIG(exit->status));
		verdict.cause = session->verdict_cause;
	}
	return verdict;
}

/* A state may be such that every interpreter made from it dies at once. Then it is left for clients that ask for
 * it, and the session goes on from the state before. Returns false if that was the pristine image. */
static bool choose_recovery_point(struct session *session)
{
	struct checkpoint *base = session->history.base;

	session->target = base;
	if (session->cell || ++session->idle_deaths < IDLE_DEATHS_MAX)
		return true;
	session->idle_deaths = 0;
	if (base) {
		log_warn(session->name,
			 "each interpreter from the checkpoint after cell %" PRIu64 " dies: going further back",
			 base->cell);
		session->target = base->parent;
		return true;
	}
	if (session->source) {
		session->source = NULL;
		return true;
	}
	log_warn(session->name, "its interpreters die at once (%s): it gets no other", session->verdict.cause);
	return false;
}

void session_put_back(struct session *session)
{
	struct cell *cell = session->cell;

	session->cell = NULL;
	session->n_cells--;
	session->sessions->stats.cells--;
	timer_clear(session_loop(session), &session->alive);
	cell->number = cell->reply.promise->cell = cell->started = 0;
	list_append(session->queue.next, &cell->node);
	session->n_queued++;
}

/* For the next answer. Who asks for an undo before it means the state that is lost. */
static void note_loss(struct session *session)
{
	bool before = session->lost_cause[0] && session->lost_step;

	session->lost_step = before || !session->history.saved;
	snprintf(session->lost_cause, sizeof(session->lost_cause), "%s", session->verdict.cause);
}

/* The interpreter is dead, and its last messages are read. This decides what follows it: the pristine image
 * after a reset, the state that an operation wants, else the last checkpoint. The cell's reply waits until the
 * next interpreter is ready. */
void session_replace_after_exit(struct session *session, const struct details *details)
{
	if (session->freezing && session->cell && list_empty(&session->resets))
		session_put_back(session);
	session->verdict = verdict_of_exit(session, details);
	parts_call(on_exit, session);
	if (operation_is_birth(session)) {
		log_error(session->name, "it died before it had a state of its own");
		operation_on_homeless(session, "gone",
				      "its interpreter died of it, or took too long; the log says more");
		session_end(session, "internal");
		return;
	}
	if (session->freezing)
		session_abandon_freeze(session, "its interpreter ended");
	if (!session->id[0]) {
		if (session->cell)
			session_finish_cell(session, &session->verdict);
		session_end(session, "one-shot");
		return;
	}
	if (!list_empty(&session->resets)) {
		session->target = NULL;
		session->exact = false;
	} else if (!session->operation) {
		if (!choose_recovery_point(session)) {
			session_end(session, session->verdict.cause);
			return;
		}
		session->sessions->stats.rolled_back++;
		log_info(session->name, "its interpreter ended (%s); another one takes its place",
			 session->verdict.cause);
		if (!session->cell)
			note_loss(session);
	}
	session->live = warden_discard(session->warden, session->live);
	session->state = SESSION_SWEEPING;
	session_deadline(session, DEATH_US);
	warden_sweep(session->warden, &session->tenant);
}

void session_restore_after_files(struct session *session, const struct details *details)
{
	if (!list_empty(&session->resets) && !operation_is_birth(session)) {
		session->target = NULL;
		session_let_source_go(session);
	}
	session_deadline(session, PATIENCE_US);
	restore_begin(session);
}

void session_restore_after_sweep(struct session *session, const struct details *details)
{
	/* Before something was scarce, the files were brought back. */
	if (event_now() < session->scarce_until || !filing_bring(session))
		session_restore_after_files(session, details);
}

/* The successor takes too long, and until it comes nothing can be swept. */
void session_give_up_successor(struct session *session)
{
	struct checkpoint *broken = session->successor_of;

	log_warn(session->name, "the checkpoint after cell %" PRIu64 " is broken: going further back",
		 broken->cell);
	session_forget(session, broken);
	session_deadline(session, PATIENCE_US);
}

void session_adopt_restored(struct session *session, const struct details *details)
{
	if (!session->midway && (!session->growing || is_copying(session)))
		session_let_source_go(session);
	if (warden_adopt(session->warden, session->live, details->spawned->pid))
		session_end(session, "internal");
	else if (session->midway)
		session_begin_split(session);
	else
		restored(session);
}

void session_drop_successor(struct session *session)
{
	struct interpreter *successor = session->successor;

	session->successor = NULL;
	session->successor_of = NULL;
	warden_discard(session->warden, successor);
}

/* A fork takes as long as a death. If it fails, because the dying interpreter still has too many processes,
 * another one follows when that is dead. */
static int succeed(struct session *session, struct checkpoint *target)
{
	struct spawn_message how;

	session->successor_of = target;
	if (!target)
		return warden_spawn(session->warden, session->workspace, &session->successor);
	how = how_to_thaw(session, target);
	how.hold = true;
	return warden_thaw(session->warden, target->interpreter, &how, &session->successor);
}

void session_replace(struct session *session, struct checkpoint *target, const char *cause)
{
	session_kill_interpreter(session, cause);
	if (session->state != SESSION_KILLING)
		return;
	if (succeed(session, target)) {
		session->successor = NULL;
		return;
	}
	session->successor->tenant = &session->tenant;
	budget_count(session->warden);
}

void session_on_successor(struct session *session, uint64_t pid)
{
	if (pid == 0)
		session_drop_successor(session);
	else if (warden_adopt(session->warden, session->successor, pid))
		session_end(session, "internal");
}

void session_rewind(struct session *session, struct checkpoint *target)
{
	session->target = target;
	session_replace(session, target, "rewind");
}
