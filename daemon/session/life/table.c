/* The life of a session, as a table: for each state, what each event does. An empty cell is a violation: the
 * interpreter is killed; if there is none, the session ends. Whatever happens to a cell, its request is answered
 * exactly once, and the answer says what happened to the session's state. */
#include "base/log.h"
#include "files/files.h"
#include "session/core/audit_log.h"
#include "session/core/part.h"
#include "session/parts/asking.h"
#include "session/parts/calls.h"
#include "session/parts/filing.h"
#include "session/parts/saving.h"
#include "steps.h"
#include "vault/errand.h"

#include "proto/causes.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

/* From the end of the channel to the news of the death. */
#define EXIT_US (3 * 1000000ULL)

static const char *const event_names[_SESSION_EVENT_N] = {
	[EVENT_READY] = "ready",     [EVENT_RUN] = "run",	  [EVENT_SIGNALLED] = "signalled",
	[EVENT_DONE] = "done",	     [EVENT_ASK] = "ask",	  [EVENT_DEADLINE] = "deadline",
	[EVENT_LOST] = "lost",	     [EVENT_CLOSED] = "closed",	  [EVENT_EXITED] = "exited",
	[EVENT_SWEPT] = "swept",     [EVENT_FROZEN] = "frozen",	  [EVENT_SPAWNED] = "spawned",
	[EVENT_RESET] = "reset",     [EVENT_FULL] = "full",	  [EVENT_DISPLAY] = "display",
	[EVENT_TOLD] = "told",	     [EVENT_CALL] = "call",	  [EVENT_ABANDON] = "abandon",
	[EVENT_SPLIT] = "split",     [EVENT_FILES] = "files",	  [EVENT_ANSWERED] = "answered",
	[EVENT_PROCEED] = "proceed", [EVENT_EXPIRED] = "expired", [EVENT_END] = "end",
};

static void ignore(struct session *session, const struct details *details)
{
}

static void start_idle(struct session *session, const struct details *details)
{
	int r;

	session->live = warden_first(session->warden);
	r = session->live ? interpreter_attach(session->live, &session->tenant) : -ESRCH;
	if (r) {
		log_error(session->name, "cannot watch its interpreter: %s", strerror(-r));
		session_end(session, "internal");
		return;
	}
	session_begin_idle(session);
}

/* The output before a cell is in the transcript as the cell gets it: a part may have been left out. */
static void stray_hand_over(struct session *session)
{
	uint64_t *before[] = {&session->cell->stdout_stray, &session->cell->stderr_stray};

	if (session->cell->task != CELL_CODE)
		return;
	for (int i = 0; i < 2; i++) {
		struct output *stray = &session->stray[i];
		bool cut = output_dropped(stray) > 0;

		if (stray->total > 0) {
			struct bytes text = output_join(stray);

			if (cut)
				transcript_replace(&session->transcripts[i], text);
			session_on_output(session, (enum interpreter_stream)i, text);
			*before[i] += text.size;
		}
		output_deinit(stray);
	}
}

static int send_run(struct session *session, const struct cell *cell)
{
	const struct run_message run = {.cell = cell->number, .options = cell->encoded};

	return interpreter_send(session->live, &run_message_schema, &run);
}

static void refuse_unaudited(struct session *session, struct cell *cell)
{
	list_remove(&cell->node);
	session->n_queued--;
	client_error(session->sessions->clients, &cell->reply, "internal",
		     "the audit log cannot be written, and audit_required is on: the cell has not run");
	cell_free(cell);
	if (!session->id[0])
		session_end(session, "internal");
	else
		session_proceed(session);
}

static void run_next(struct session *session, const struct details *details)
{
	struct cell *cell;
	int r;

	if (session->live->signals_unanswered > 0 || session->exited || filing_waits(session))
		return;
	cell = container_of(list_first(&session->queue), struct cell, node);
	if (cell->task == CELL_LOAD && !saving_fetch(session, cell))
		return;
	if (!cell->audited && !audit_log_exec(session, cell, session->n_cells + 1)) {
		refuse_unaudited(session, cell);
		return;
	}
	cell->audited = true;
	list_remove(&cell->node);
	session->n_queued--;
	session->cell = cell;
	session->state = SESSION_BUSY;
	session->kill_cause = NULL;
	session_depart(session);
	cell->after = session->at;
	cell_number(cell, ++session->n_cells);
	session->sessions->stats.cells++;
	quota_on_run(session->warden);
	(void)group_oom_killed(&session->warden->group); /* from here on it is this cell's doing */
	timer_clear(session_loop(session), &session->idle);
	if (!session->freezing)
		session_deadline(session, cell->timeout);
	session_watch(session);
	stray_hand_over(session);
	r = cell->task == CELL_CODE ? send_run(session, cell) : saving_send(session, cell);
	if (r) {
		log_error(session->name, "cannot run cell %" PRIu64 ": %s", cell->number, strerror(-r));
		session_end(session, "internal");
	}
}

/* The interpreter does one thing after the other, so a cell need not wait for the news of a checkpoint. Anything
 * else that may come next must know how that went. */
static void run_behind_freeze(struct session *session, const struct details *details)
{
	bool alone = !session->operation && list_empty(&session->operations) && list_empty(&session->resets);
	struct list *first = list_first(&session->queue);

	if (alone && !session->expiring && first && container_of(first, struct cell, node)->task == CELL_CODE)
		run_next(session, details);
}

/* What the interpreter says is missing, and how far a crash would go back now. */
static struct bytes unfaithful_tell(char *text, size_t room, const struct session *session, struct bytes why)
{
	const struct checkpoint *base = session->history.base;
	int said = (int)MIN(why.size, room / 2), size;

	if (!why.data || session->profile->checkpoint == CHECKPOINT_OFF)
		return (struct bytes){.data = NULL};
	if (base)
		size = snprintf(text, room, "a crash now would go back to cell %" PRIu64 ": %.*s", base->cell, said,
				why.data);
	else
		size = snprintf(text, room, "a crash now would go back to the beginning: %.*s", said, why.data);
	return (struct bytes){.data = text, .size = (size_t)size};
}

static void finish_done(struct session *session, const struct details *details)
{
	const struct done_message *done = details->done;
	struct verdict verdict = {.state = "kept",
				  .returncode = done->returncode,
				  .text = done->text,
				  .data = done->data,
				  .error = done->error,
				  .blocked = done->blocked,
				  .artifacts = done->artifacts,
				  .artifacts_more = done->artifacts_more,
				  .report = done->report};
	enum cause cause = cause_of(done->cause.data, done->cause.size);
	bool forbidden = cause == CAUSE_FORBIDDEN;
	bool changed = session->cell->task != CELL_SAVE;
	bool checkpoint = changed && session->id[0] && session->profile->checkpoint == CHECKPOINT_CELL &&
			  !done->unfaithful.data;
	char unfaithful[512], unkept[UNKEPT_SIZE];
	struct bytes why = done->unfaithful;
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer blocked = {0};

	if (done->cell != session->cell->number || session->freezing) {
		session_on_lost(session, session->live, "it answered for a cell that it does not run");
		return;
	}
	interpreter_drain(session->live);
	session_gather_effects(session);
	filing_note(session, done);
	session_note_rewriting(session, done);
	/* An interpreter can only tell what the code has done. */
	if (cause != CAUSE_NONE && !causes[cause].news)
		verdict.cause = causes[cause].name;
	if (session->cell->timed_out && !forbidden) {
		verdict.returncode = RETURNCODE_TIMEOUT;
		verdict.cause = session_overdue(session);
	}
	if (forbidden || !changed) {
		/* It was not run, or has changed nothing: the state is the same as before. */
		session->history.saved = session->was_saved;
		checkpoint = checkpoint && !session->was_saved;
	} else {
		session->at = session->cell->number;
	}
	if (checkpoint)
		why = bytes_of(session_unkept(unkept, session));
	verdict.unfaithful = unfaithful_tell(unfaithful, sizeof(unfaithful), session, why);
	if (group_oom_killed(&session->warden->group))
		verdict_tell_killed(&verdict, &blocked);
	session_finish_cell(session, &verdict);
	if (checkpoint)
		session_freeze_soon(session);
	else if (session->id[0])
		session_begin_idle(session);
	else
		session_end(session, "one-shot");
}

static void pass_ask(struct session *session, const struct details *details)
{
	struct answer_message eof = {.eof = true};

	interpreter_drain(session->live);
	if (cell_ask(session->cell, details->ask)) {
		session_heed_clock(session);
	} else if (interpreter_send(session->live, &answer_message_schema, &eof)) {
		session_end(session, "internal");
	}
}

/* For clients that watch, after what was printed before it; and it is kept. */
static void pass_display(struct session *session, const struct details *details)
{
	struct shown shown = *details->shown;

	interpreter_drain(session->live);
	interpreter_rest(session->live, shown.data.size);
	if (displays_add(&session->cell->displays, &shown) &&
	    cell_write_display(session->cell, &session->warden->ledger, &shown))
		session->cell->displays.dropped++;
	if (promise_display(session->cell->reply.promise, &shown) == CLIENT_E_WAITS)
		interpreter_pause(session->live, true);
}

static void kill_slow_freeze(struct session *session, const struct details *details)
{
	log_warn(session->name, "its interpreter does not answer between two cells: killed");
	session_kill_interpreter(session, "violation");
}

/* What a cell may still write after its time, of each stream: enough for its traceback. */
#define LAST_WORDS ((size_t)16 << 10)

static void time_out(struct session *session, const struct details *details)
{
	if (session->freezing && !session->expiring) {
		kill_slow_freeze(session, details);
		return;
	}
	session->cell->timed_out = true;
	output_last_words(&session->cell->stdout_, LAST_WORDS);
	output_last_words(&session->cell->stderr_, LAST_WORDS);
	if (session->expiring)
		log_info(session->name, "cell %" PRIu64 " is interrupted: %s", session->cell->number,
			 session->expiring);
	else
		log_info(session->name, "cell %" PRIu64 " is over its time of %.3g s: interrupted",
			 session->cell->number, event_seconds(session->cell->timeout));
	session->state = SESSION_GRACE;
	interpreter_mark_interrupted(session->live, session->cell->number);
	if (warden_signal(session->warden, session->live, SIGINT))
		session_end(session, "internal");
	else
		session_deadline(session, MAX(session->profile->grace, (uint64_t)1));
}

static void kill_after_grace(struct session *session, const struct details *details)
{
	log_info(session->name, "cell %" PRIu64 " did not end when interrupted: killed", session->cell->number);
	session_kill_interpreter(session, "timeout");
}

static void kill_lost(struct session *session, const struct details *details)
{
	log_warn(session->name, "its interpreter is killed: %s", details->why);
	session_kill_interpreter(session, "violation");
}

/* A closed channel is the first sign of a death. If no death follows, a cell has closed it. */
static void expect_exit(struct session *session, const struct details *details)
{
	session->state = SESSION_KILLING;
	session->kill_cause = NULL;
	timer_clear(session_loop(session), &session->idle);
	session_deadline(session, EXIT_US);
}

/* The files stay: somebody may need their content, and the next cell can delete some. */
static void kill_full(struct session *session, const struct details *details)
{
	uint64_t limit = session->profile->workspace_size;
	char note[160];
	int size = snprintf(note, sizeof(note),
			    "the files of this session take more than workspace_size = %" PRIu64
			    " bytes allows: killed; delete some before anything else\n",
			    limit);

	log_info(session->name, "its files take more than workspace_size = %" PRIu64 ": its interpreter is killed",
		 limit);
	interpreter_drain(session->live);
	session_on_words(session, STREAM_STDERR, (struct bytes){note, (size_t)size});
	session_kill_interpreter(session, "workspace");
}

static void kill_for_reset(struct session *session, const struct details *details)
{
	session_refuse_work(session, "the session was reset");
	session_replace(session, NULL, "reset");
}

/* First the work under way must end: a checkpoint, which is the state before the reset and can be restored; or
 * the death of an interpreter, from whatever cause: the interpreter after it is fresh. */
static void reset_afterwards(struct session *session, const struct details *details)
{
	session_refuse_work(session, "the session was reset");
}

static void refuse_reset(struct session *session, const struct details *details)
{
	session_refuse_resets(session);
}

static void reset_before_start(struct session *session, const struct details *details)
{
	session_refuse_work(session, "the session was reset");
	session_answer_resets(session, false);
}

static void kill_or_give_up(struct session *session, const struct details *details)
{
	if (!session->kill_cause) {
		log_warn(session->name, "its interpreter lives without a channel: killed");
		session_kill_interpreter(session, "violation");
		return;
	}
	log_error(session->name, "its interpreter could not be killed: the session is ended");
	session_end(session, session->kill_cause);
}

static void wait_no_longer(struct session *session, const struct details *details)
{
	(void)parts_late(session);
}

static void hurry(struct session *session, const struct details *details)
{
	if (parts_late(session))
		return;
	log_info(session->name, "its interpreter did not answer a question: killed");
	session_kill_interpreter(session, "timeout");
}

static void finish_answer(struct session *session, const struct details *details)
{
	session_deadline(session, 0);
	if (details->changed)
		session->history.saved = false;
	if (!session->id[0])
		session_end(session, "one-shot");
	else if (details->changed && session->profile->checkpoint == CHECKPOINT_CELL)
		session_freeze(session);
	else
		session_begin_idle(session);
}

static void end_unswept(struct session *session, const struct details *details)
{
	if (parts_late(session))
		return;
	if (session->successor && !session->successor->adopted) {
		session_give_up_successor(session);
		return;
	}
	log_error(session->name, "processes of its interpreter could not be killed: the session is ended");
	session_end(session, "internal");
}

/* If a reset has come meanwhile, it follows when the checkpoint is made. */
static void freeze(struct session *session, const struct details *details)
{
	if (!session->exited)
		session_freeze(session);
}

/* What comes next does not wait for a checkpoint that would cost much. */
static void checkpoint_unless_costly(struct session *session, const struct details *details)
{
	if (session->costly.until > event_now() && !session->exited)
		session_begin_idle(session);
	else
		freeze(session, details);
}

/* Another session works there, too, or may be copying it. */
static bool workspace_is_shared(const struct session *session)
{
	struct session *member;

	list_for_each (member, &session->warden->tenants, tenant.node)
		if (member != session && ((member->workspace && !strcmp(member->workspace, session->workspace)) ||
					  (member->operation && member->operation->files)))
			return true;
	return false;
}

/* A branch or its parent has left the warden to the rest of its family, but not the files that it had alone. */
static void finish_closing(struct session *session, const struct details *details)
{
	_cleanup_(fd_closep) int branches = -1;

	if (session->workspace && session->warden->keep == WORKSPACE_DELETE && !workspace_is_shared(session) &&
	    file_directory(&branches, session->warden->directory, ".branches") == 0)
		errand_remove_from(branches, session->workspace);
	waiters_answer(&session->closers, session->sessions->clients, &empty_reply_schema,
		       &(struct empty_reply){.id = 0});
	sessions_bury(session->sessions, session);
}

/* ---- the table ---- */

typedef void act(struct session *session, const struct details *details);

/* In all states. */
static act *const always[_SESSION_EVENT_N] = {
	[EVENT_PROCEED] = session_work,
	[EVENT_EXPIRED] = session_expire,
	[EVENT_END] = session_finish,
};

/* While the interpreter lives. */
static act *const living[_SESSION_EVENT_N] = {
	[EVENT_SPLIT] = session_drop_split,	     [EVENT_LOST] = kill_lost,	     [EVENT_CLOSED] = expect_exit,
	[EVENT_EXITED] = session_replace_after_exit, [EVENT_RESET] = kill_for_reset, [EVENT_FULL] = kill_full,
};

/* While it runs a cell. */
static act *const running[_SESSION_EVENT_N] = {
	[EVENT_DONE] = finish_done,	  [EVENT_ASK] = pass_ask,
	[EVENT_CALL] = session_pass_call, [EVENT_ABANDON] = session_pass_abandon,
	[EVENT_DISPLAY] = pass_display,	  [EVENT_FROZEN] = session_note_frozen,
};

#define BIT(event) (1U << EVENT_##event)
_Static_assert(_SESSION_EVENT_N < 32, "an unsigned has a bit for each event");

/* What an event does in a state: its own, or nothing, or what it does in others, too. */
static const struct {
	act *own[_SESSION_EVENT_N];
	unsigned ignored;
	act *const *others[3];
} table[_SESSION_STATE_N] = {
	[SESSION_STARTING] = {.own = {[EVENT_READY] = start_idle, [EVENT_RESET] = reset_before_start},
			      .ignored = BIT(RUN) | BIT(FULL),
			      .others = {always}},
	[SESSION_IDLE] = {.own = {[EVENT_RUN] = run_next,
				  [EVENT_SIGNALLED] = session_work,
				  [EVENT_DEADLINE] = wait_no_longer},
			  .others = {living, always}},
	[SESSION_BUSY] = {.own = {[EVENT_DEADLINE] = time_out, [EVENT_SPLIT] = session_finish_split},
			  .ignored = BIT(RUN) | BIT(SIGNALLED),
			  .others = {running, living, always}},
	[SESSION_GRACE] = {.own = {[EVENT_DEADLINE] = kill_after_grace},
			   .ignored = BIT(RUN) | BIT(SIGNALLED),
			   .others = {running, living, always}},
	[SESSION_ANSWERING] = {.own = {[EVENT_TOLD] = session_finish_told,
				       [EVENT_DEADLINE] = hurry,
				       [EVENT_ANSWERED] = finish_answer},
			       .ignored = BIT(RUN) | BIT(SIGNALLED),
			       .others = {living, always}},
	[SESSION_UNSAVED] =
		{.own = {[EVENT_RUN] = checkpoint_unless_costly, [EVENT_DEADLINE] = freeze, [EVENT_RESET] = freeze},
		 .ignored = BIT(SIGNALLED),
		 .others = {living, always}},
	[SESSION_FREEZING] = {.own = {[EVENT_RUN] = run_behind_freeze,
				      [EVENT_FROZEN] = session_finish_frozen,
				      [EVENT_DEADLINE] = kill_slow_freeze,
				      [EVENT_RESET] = reset_afterwards},
			      .ignored = BIT(SIGNALLED),
			      .others = {living, always}},
	[SESSION_KILLING] = {.own = {[EVENT_FROZEN] = session_note_frozen,
				     [EVENT_SPLIT] = session_drop_split,
				     [EVENT_DEADLINE] = kill_or_give_up,
				     [EVENT_EXITED] = session_replace_after_exit,
				     [EVENT_RESET] = reset_afterwards},
			     .ignored = BIT(RUN) | BIT(SIGNALLED) | BIT(DONE) | BIT(ASK) | BIT(CALL) |
					BIT(ABANDON) | BIT(DISPLAY) | BIT(TOLD) | BIT(LOST) | BIT(CLOSED) |
					BIT(FULL) | BIT(ANSWERED),
			     .others = {always}},
	[SESSION_SWEEPING] = {.own = {[EVENT_SWEPT] = session_restore_after_sweep,
				      [EVENT_FILES] = session_restore_after_files,
				      [EVENT_DEADLINE] = end_unswept,
				      [EVENT_RESET] = reset_afterwards},
			      .ignored = BIT(RUN) | BIT(SIGNALLED) | BIT(FULL),
			      .others = {always}},
	[SESSION_RESTORING] = {.own = {[EVENT_SPAWNED] = session_adopt_restored,
				       [EVENT_DEADLINE] = session_restore_older,
				       [EVENT_LOST] = session_restore_older,
				       [EVENT_CLOSED] = session_restore_older,
				       [EVENT_RESET] = reset_afterwards},
			       .ignored = BIT(RUN) | BIT(SIGNALLED) | BIT(FULL),
			       .others = {always}},
	[SESSION_CLOSING] = {.own = {[EVENT_SWEPT] = finish_closing, [EVENT_RESET] = refuse_reset}, .ignored = ~0U},
};

/* NULL: it is a violation. */
static act *act_of(enum session_state state, enum session_event event)
{
	act *found = table[state].own[event];

	if (!found && table[state].ignored & 1U << event)
		found = ignore;
	for (size_t i = 0; !found && i < ARRAY_SIZE(table[state].others) && table[state].others[i]; i++)
		found = table[state].others[i][event];
	return found;
}

void session_on_event(struct session *session, enum session_event event, const struct details *details)
{
	act *found = act_of(session->state, event);

	warden_touch(session->warden);
	if (found) {
		found(session, details);
		return;
	}
	log_warn(session->name, "violation: %s while %s", event_names[event], session_state_name(session));
	if (act_of(session->state, EVENT_LOST)) {
		struct details lost = {.why = "it spoke out of turn"};

		session_event(session, EVENT_LOST, &lost);
	} else {
		session_end(session, "violation");
	}
}
