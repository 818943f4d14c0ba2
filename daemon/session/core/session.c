/* A session as an object, and what each part of it may do with it. */
#include "events.h"

#include "files/files.h"
#include "part.h"
#include "sessions.h"

#include "proto/clock.h"

#define STRAY_MAX 65536

/* The names that clients see: a state between two cells looks idle, one that brings an interpreter back looks
 * like a start. */
static const char *const state_names[_SESSION_STATE_N] = {
	[SESSION_STARTING] = "starting",  [SESSION_IDLE] = "idle",	  [SESSION_BUSY] = "busy",
	[SESSION_GRACE] = "busy",	  [SESSION_ANSWERING] = "idle",	  [SESSION_FREEZING] = "idle",
	[SESSION_UNSAVED] = "idle",	  [SESSION_KILLING] = "starting", [SESSION_SWEEPING] = "starting",
	[SESSION_RESTORING] = "starting", [SESSION_CLOSING] = "closing",
};

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
	session->tenant = (struct tenant){.ops = sessions->tenant_ops,
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
	parts_init(session);
	return session;
}

struct session *session_free(struct session *session)
{
	struct operation *operation;

	if (!session)
		return NULL;
	list_remove(&session->node);
	list_remove(&session->mate);
	list_remove(&session->tenant.node);
	session_stop_clocks(session);
	parts_deinit(session);
	cell_free(session->cell);
	history_deinit(&session->history);
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

int session_create_transcripts(struct session *session)
{
	int r = transcript_create(&session->transcripts[0]);

	return r ? r : transcript_create(&session->transcripts[1]);
}

uint64_t promise_serial(const struct address *request)
{
	return request->promise ? request->promise->serial : 0;
}

/* Nobody, but for a promise, which puts the number of each asker where this one stands. */
struct address session_claim(const struct session *session, uint64_t promise)
{
	const struct keeping keeping = profile_keeping(session->profile);
	struct address address = {.uid = session->owner, .id = 1};

	if (promise > 0)
		address.promise = promises_claim(session->sessions->promises, promise, session->owner,
						 bytes_of(session->id), &keeping);
	if (address.promise && address.promise->by_root)
		address.uid = 0;
	return address;
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

struct session *session_of_tenant(const struct tenant *tenant)
{
	return container_of(tenant, struct session, tenant);
}

struct event_loop *session_loop(const struct session *session)
{
	return session->sessions->loop;
}

void session_depart(struct session *session)
{
	session->was_saved = session->history.saved;
	session->exact = session->was_saved && session->profile->checkpoint != CHECKPOINT_OFF;
	session->history.saved = false;
}

/* A cell that waits behind a checkpoint has done nothing yet. */
void session_gather_effects(struct session *session)
{
	bool during = session->cell && !session->freezing;
	uint64_t last = interpreter_noted(session->live);

	if (last > session->live->effects)
		effects_gather(&session->effects, session->live->buffer, session->live->effects, last,
			       during ? EFFECTS_DURING(session->cell->number)
				      : EFFECTS_AFTER(session->n_cells - (session->cell != NULL)));
	session->live->effects = last;
}

bool session_busy(const struct session *session)
{
	return session->state == SESSION_BUSY || session->state == SESSION_GRACE;
}

void session_exec(struct session *session, struct cell *cell)
{
	if (session->state == SESSION_CLOSING) {
		client_error(session->sessions->clients, &cell->reply, "gone",
			     "the session ended before this cell could run");
		cell_free(cell);
		return;
	}
	warden_touch(session->warden);
	list_append(&session->queue, &cell->node);
	session->n_queued++;
	session->hurried = session->n_cells > 0 && event_now() - session->last < HURRY_US;
	if (session->n_queued == 1)
		session_event(session, EVENT_RUN, &session_nothing);
}

int session_put_ended(const struct session *session, msgpack_sbuffer *buffer)
{
	const struct session_name name = {.owner = session->owner, .id = bytes_of(session->id)};

	return session->untold ? past_put(buffer, past_find(&session->sessions->past, &name)) : 0;
}

/* ---- to the table of states ---- */

const struct details session_nothing;

void session_event(struct session *session, enum session_event event, const struct details *details)
{
	session->sessions->on_event(session, event, details);
}

void session_end(struct session *session, const char *cause)
{
	const struct details details = {.why = cause};

	session_event(session, EVENT_END, &details);
}

void session_proceed(struct session *session)
{
	session_event(session, EVENT_PROCEED, &session_nothing);
}
