/* Sessions: how they begin and end, and what clients may ask of them. table.c has everything in between. */
#include "events.h"

#include "audit_log.h"
#include "base/log.h"
#include "files/files.h"
#include "filing.h"
#include "hand.h"
#include "installing.h"
#include "part.h"
#include "saving.h"
#include "sessions.h"
#include "stop.h"
#include "warden/nursery.h"
#include "warden/prepared.h"

#include "proto/clock.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#define STRAY_MAX 65536

/* The names that clients see: a state between two cells looks idle, one that brings an interpreter back looks
 * like a start. */
static const char *const state_names[_SESSION_STATE_N] = {
	[SESSION_STARTING] = "starting",  [SESSION_IDLE] = "idle",	  [SESSION_BUSY] = "busy",
	[SESSION_GRACE] = "busy",	  [SESSION_ANSWERING] = "idle",	  [SESSION_FREEZING] = "idle",
	[SESSION_UNSAVED] = "idle",	  [SESSION_KILLING] = "starting", [SESSION_SWEEPING] = "starting",
	[SESSION_RESTORING] = "starting", [SESSION_CLOSING] = "closing",
};

static void on_hard_ttl(struct timer *timer);

struct session *session_alloc(struct sessions *sessions, struct profile *profile, const char *id, uid_t owner)
{
	struct session *session = calloc(1, sizeof(*session));

	if (!session)
		return NULL;
	session->user = user_get(sessions->users, owner);
	if (!session->user) {
		free(session);
		return NULL;
	}
	list_init(&session->node);
	list_init(&session->mate);
	session->tenant = (struct tenant){.ops = &session_tenant_ops,
					  .id = session->id,
					  .party = &session->user->party,
					  .transcripts = session->transcripts};
	list_init(&session->tenant.node);
	list_init(&session->queue);
	list_init(&session->operations);
	list_init(&session->resets);
	list_init(&session->closers);
	history_init(&session->history);
	snprintf(session->id, sizeof(session->id), "%s", id);
	session->owner = owner;
	session_name_write(session->name, id, owner, geteuid());
	session->sessions = sessions;
	session->profile = profile_ref(profile);
	session->created = clock_date();
	session->birth = past_new_birth();
	session->opened = session->last = event_now();
	session->idle.calendar = session->hard.calendar = true;
	for (int i = 0; i < 2; i++) {
		output_init(&session->stray[i], STRAY_MAX);
		transcript_init(&session->transcripts[i]);
		msgpack_sbuffer_init(&session->words[i]);
	}
	parts_call(init, session);
	return session;
}

static int transcripts_create(struct session *session)
{
	int r = transcript_create(&session->transcripts[0]);

	return r ? r : transcript_create(&session->transcripts[1]);
}

void session_arm_hard(struct session *session)
{
	if (session->profile->hard_ttl)
		(void)timer_set(session_loop(session), &session->hard, session->opened + session->profile->hard_ttl,
				on_hard_ttl);
}

int session_new(struct session **sessionp, struct sessions *sessions, struct profile *profile, const char *id,
		uid_t owner, const struct beginning *with)
{
	struct session *session = session_alloc(sessions, profile, id, owner);
	struct nursery *nursery = cages_nursery_for(sessions->cages, profile, owner, with->code);
	int r = session && nursery ? transcripts_create(session) : -ENOMEM;
	char set[SHA256_HEX_SIZE];
	bool ahead = !r && prepared_any(nursery) && session_first_set(set, sessions, profile, with);

	if (!r)
		r = nursery_claim(nursery, ahead ? set : NULL, &session->tenant, &session->warden);
	if (r) {
		session_free(session);
		return r;
	}
	session_arm_hard(session);
	*sessionp = session;
	return 0;
}

/* In the family's workspace, since nothing else there can be written to. */
static int branch_directory(struct session *session, char name[32])
{
	snprintf(name, 32, "%llu", (unsigned long long)session->warden->last_interpreter + 1);
	return asprintf(&session->workspace, "%s/.branches/%s", session->warden->workspace, name) < 0 ? -ENOMEM : 0;
}

int session_alloc_branch(struct session **sessionp, struct session *parent, struct operation *operation,
			 const char *workspace)
{
	struct session *session =
		session_alloc(parent->sessions, parent->profile, operation->branch, parent->owner);

	if (!session)
		return -ENOMEM;
	session->warden = parent->warden;
	if (transcripts_create(session) || (workspace && !(session->workspace = strdup(workspace)))) {
		session_free(session);
		return -ENOMEM;
	}
	session->operation = operation;
	/* It shares its parent's cage, so it shares the end of that cage's life. */
	session->opened = parent->opened;
	*sessionp = session;
	return 0;
}

int session_new_branch(struct session **sessionp, struct session *parent, struct checkpoint *from,
		       struct operation *operation)
{
	struct spawn_message how = {.reseed = true};
	char directory[32];
	struct session *session;

	if (session_alloc_branch(&session, parent, operation, operation->files ? NULL : parent->workspace))
		return -ENOMEM;
	if (operation->files && branch_directory(session, directory)) {
		session->operation = NULL; /* the caller's still */
		session_free(session);
		return -ENOMEM;
	}
	how.directory = bytes_of(operation->files ? directory : NULL);
	session->growing = true;
	session->source = from->interpreter;
	session->n_cells = session->at = from->cell;
	journal_copy(&session->journal, &parent->journal, from->cell);
	session->deeds = from->deeds;
	filing_branch(session, from, operation->files);
	effects_copy(&session->effects, &parent->effects, from->cell);
	operation->effects_more = effects_put(&parent->effects, from->cell, EFFECTS_FOREVER, &operation->effects);
	warden_join(session->warden, &session->tenant);
	session_arm_hard(session);
	*sessionp = session;
	if (session->filing.origin)
		filing_fill(session);
	else
		session_thaw(session, &how, from->interpreter);
	return 0;
}

static void waiters_free(struct list *waiters)
{
	struct waiter *waiter;

	list_for_each (waiter, waiters, node)
		free(waiter);
}

static void history_empty(struct session *session)
{
	struct checkpoint *checkpoint;

	session->target = NULL;
	list_for_each (checkpoint, &session->history.checkpoints, node)
		history_remove(&session->history, checkpoint);
}

struct session *session_free(struct session *session)
{
	struct operation *operation;

	if (!session)
		return NULL;
	list_remove(&session->node);
	list_remove(&session->mate);
	list_remove(&session->tenant.node);
	timer_clear(session_loop(session), &session->deadline);
	timer_clear(session_loop(session), &session->idle);
	timer_clear(session_loop(session), &session->hard);
	timer_clear(session_loop(session), &session->measure);
	timer_clear(session_loop(session), &session->alive);
	timer_clear(session_loop(session), &session->trim);
	timer_clear(session_loop(session), &session->call_due);
	parts_call(deinit, session);
	cell_free(session->cell);
	history_empty(session);
	list_for_each (operation, &session->operations, node)
		operation_free(operation);
	operation_free(session->operation);
	waiters_free(&session->resets);
	waiters_free(&session->closers);
	for (int i = 0; i < 2; i++) {
		output_deinit(&session->stray[i]);
		transcript_deinit(&session->transcripts[i]);
		msgpack_sbuffer_destroy(&session->words[i]);
	}
	profile_unref(session->profile);
	free(session->workspace);
	free(session);
	return NULL;
}

const char *session_workspace(const struct session *session)
{
	return session->workspace ? session->workspace : session->warden->workspace;
}

int session_directory(int *fdp, const struct session *session)
{
	const struct warden *warden = session->warden;

	return file_directory(fdp, warden->directory,
			      session->workspace ? session->workspace + strlen(warden->workspace) + 1 : ".");
}

const char *session_state_name(const struct session *session)
{
	return state_names[session->state];
}

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

/* A client that cannot be told later, when it is done, is told so now. */
static void waiter_add(struct session *session, struct list *waiters, const struct address *request)
{
	struct waiter *waiter = request ? calloc(1, sizeof(*waiter)) : NULL;

	if (request && !waiter)
		(void)client_error(session->sessions->clients, request, "internal",
				   "out of memory to wait for this, which is being done");
	if (!waiter)
		return;
	waiter->request = *request;
	list_init(&waiter->node);
	list_append(waiters, &waiter->node);
}

void session_reset(struct session *session, const struct address *request)
{
	warden_touch(session->warden);
	waiter_add(session, &session->resets, request);
	session_event(session, EVENT_RESET, &session_nothing);
}

void session_close(struct session *session, const struct address *request)
{
	warden_touch(session->warden);
	waiter_add(session, &session->closers, request);
	saving_close(session);
	session_end(session, "shutdown");
}

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

void session_end(struct session *session, const char *cause)
{
	struct verdict verdict = {.returncode = RETURNCODE_KILLED, .state = "ended", .cause = cause};

	warden_touch(session->warden);
	if (session->state == SESSION_CLOSING)
		return;
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
	timer_clear(session_loop(session), &session->deadline);
	timer_clear(session_loop(session), &session->idle);
	timer_clear(session_loop(session), &session->hard);
	timer_clear(session_loop(session), &session->measure);
	timer_clear(session_loop(session), &session->alive);
	timer_clear(session_loop(session), &session->trim);
	timer_clear(session_loop(session), &session->call_due);
	parts_call(on_end, session);
	session->freezing = warden_discard(session->warden, session->freezing);
	session_drop_successor(session);
	session->live = NULL;
	session_let_source_go(session);
	sessions_on_ended(session->sessions, session);
	/* Its frozen interpreters go now, and nothing may refer to them. */
	history_empty(session);
	warden_leave(session->warden, &session->tenant);
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

static void on_hard_ttl(struct timer *timer)
{
	struct session *session = container_of(timer, struct session, hard);

	hand_session(session, TURN_HARD);
	saving_expire(session, "hard_ttl");
}
