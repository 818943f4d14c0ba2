/* Each round commits each family once: first the descriptors go to the keeper, then the record that names them
 * is written. If this fails, because memory or descriptors are scarce, the family lives on but would not survive
 * the router. There is nothing better to do; the log says it once. */
#include "family.h"

#include "base/log.h"
#include "session/core/part.h"
#include "vault/errand.h"
#include "vault/fault.h"
#include "vault/vault.h"
#include "warden/nursery.h"

#include <stdio.h>

void families_init(struct families *families, struct sessions *sessions, struct vault *vault)
{
	families->sessions = sessions;
	families->vault = vault;
	list_init(&families->old);
	snapshot_init(&families->snapshot);
}

void families_deinit(struct families *families)
{
	snapshot_deinit(&families->snapshot);
}

/* ---- descriptors ---- */

static int warden_store(struct warden *warden)
{
	const int fds[] = {warden->peer.fd, warden->directory, warden->pidfd};
	int r;

	if (warden->stored || warden->state < WARDEN_READY)
		return 0;
	r = vault_store(VAULT_WARDEN, warden->family, 0, fds, warden->pidfd < 0 ? 2 : 3);
	warden->stored = r == 0;
	return r;
}

/* Only one at a time runs, and only that one's may hold something that is nowhere else. */
static int task_store(struct session *session)
{
	struct cell *cell = session->cell;
	int file, r;

	if (!cell || cell->task == CELL_CODE || cell->file_stored)
		return 0;
	file = cell->saved ? cell->saved->fd : cell->file;
	if (file < 0)
		return 0;
	r = vault_store(VAULT_TASK, session->warden->family, session->tenant.number, &file, 1);
	cell->file_stored = r == 0;
	return r;
}

static int session_store(struct session *session)
{
	const int fds[] = {session->transcripts[0].fd, session->transcripts[1].fd};
	int r;

	if (session->transcripts_stored)
		return 0;
	r = vault_store(VAULT_SESSION, session->warden->family, session->tenant.number, fds, 2);
	session->transcripts_stored = r == 0;
	return r;
}

/* The ends that are on their way to it. */
static const struct peer_message *message_about(const struct warden *warden, uint64_t serial)
{
	struct interpreter *interpreter;
	struct peer_message *message;

	list_for_each (message, (struct list *)&warden->peer.messages, node)
		if (message->subject == serial)
			return message;
	list_for_each (interpreter, (struct list *)&warden->interpreters, node)
		list_for_each (message, &interpreter->peer.messages, node)
			if (message->subject == serial)
				return message;
	return NULL;
}

static int interpreter_store(struct warden *warden, struct interpreter *interpreter)
{
	enum interpreter_stored wanted = interpreter->alive ? STORED_OURS : STORED_BOTH;
	const struct peer_message *message = NULL;
	int fds[STORE_FDS_MAX] = {interpreter->peer.fd, interpreter->pipes[0], interpreter->pipes[1],
				  interpreter->buffer};
	size_t n = interpreter->role == ROLE_LIVE ? 4 : 1;
	int r;

	if (interpreter->stored == wanted)
		return 0;
	if (wanted == STORED_BOTH)
		message = message_about(warden, interpreter->serial);
	for (size_t i = 0; message && i < message->n_fds; i++)
		fds[n++] = message->fds[i];
	r = vault_store(VAULT_INTERPRETER, warden->family, interpreter->serial, fds, n);
	if (!r)
		interpreter->stored = wanted;
	return r;
}

static int descriptors_store(struct warden *warden)
{
	struct interpreter *interpreter;
	struct session *session;
	int r = warden_store(warden);

	list_for_each (session, &warden->tenants, tenant.node)
		r = r ? r : session_store(session);
	list_for_each (session, &warden->tenants, tenant.node)
		r = r ? r : task_store(session);
	list_for_each (interpreter, &warden->interpreters, node)
		r = r ? r : interpreter_store(warden, interpreter);
	return r;
}

/* ---- records ---- */

static int profile_write(struct warden *warden)
{
	struct profile_record record;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	int r;

	if (!out)
		return -ENOMEM;
	profile_print(warden->profile, out);
	r = fclose(out) ? -ENOMEM : 0;
	record.text = (struct bytes){.data = text, .size = size};
	if (!r)
		r = ledger_append(&warden->ledger, &profile_record_schema, &record);
	warden->profile_size = size;
	free(text);
	return r;
}

static int code_write(struct ledger *ledger, struct cell *cell)
{
	const struct code_record record = {.promise = cell->reply.promise->serial, .options = cell->encoded};
	int r;

	if (cell->written || cell->task != CELL_CODE)
		return 0;
	r = ledger_append(ledger, &code_record_schema, &record);
	cell->written = r == 0;
	return r;
}

static int call_write(struct ledger *ledger, const struct cell *cell, struct call *call)
{
	struct kept_call record = {.promise = cell->reply.promise->serial,
				   .number = call->number,
				   .state = call->state,
				   .text = bytes_of(call->text),
				   .turned = call->turned};
	int r;

	if (!call->written) {
		record.function = call->function;
		record.arguments = call->arguments;
		record.since = call->since;
		record.timeout = call->timeout;
		record.again = call->again;
	}
	r = ledger_append(ledger, &kept_call_schema, &record);
	call->written |= r == 0;
	call->turn_written = r == 0;
	return r;
}

static int calls_write(struct ledger *ledger, struct cell *cell)
{
	struct call *call;
	int r = 0;

	list_for_each (call, &cell->calls.list, node)
		if (!r && (!call->written || !call->turn_written))
			r = call_write(ledger, cell, call);
	return r;
}

static int about_write(struct warden *warden, struct question *question)
{
	struct about_record record;
	int r;

	if (!question || question->written)
		return 0;
	if (!question->number)
		question->number = ++warden->last_question;
	record = (struct about_record){
		.number = question->number,
		.code = {.data = question->code, .size = question->code_size},
		.names = {.data = question->names, .size = question->names_size},
	};
	r = ledger_append(&warden->ledger, &about_record_schema, &record);
	question->written = r == 0;
	return r;
}

/* Into a ledger that is renewed. */
static int displays_write(struct warden *warden, struct cell *cell)
{
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer array = {0};
	struct shown shown;
	size_t cursor = 0;
	int r;

	r = displays_join(&cell->displays, &array);
	while (!r && displays_next(wire_bytes(&array), &cursor, &shown))
		r = cell_write_display(cell, &warden->ledger, &shown);
	return r;
}

/* What the record of a session refers to. */
static int details_of(struct warden *warden, struct session *session)
{
	struct operation *operation;
	struct cell *cell;
	int r = session->cell ? code_write(&warden->ledger, session->cell) : 0;

	if (!r && session->cell)
		r = calls_write(&warden->ledger, session->cell);
	list_for_each (cell, &session->queue, node)
		r = r ? r : code_write(&warden->ledger, cell);
	if (!r && session->operation)
		r = about_write(warden, session->operation->question);
	list_for_each (operation, &session->operations, node)
		r = r ? r : about_write(warden, operation->question);
	return r ? r : parts_write(session, &warden->ledger);
}

static int details_write(struct warden *warden)
{
	struct session *session;
	int r = 0;

	list_for_each (session, &warden->tenants, tenant.node)
		r = r ? r : details_of(warden, session);
	return r ? r : done_calls_write(&warden->done_calls, &warden->ledger);
}

static void question_again(struct question *question)
{
	if (question)
		question->written = false;
}

static int session_again(struct warden *warden, struct session *session)
{
	struct operation *operation;
	struct cell *cell;
	struct call *call;

	list_for_each (cell, &session->queue, node)
		cell->written = false;
	list_for_each (operation, &session->operations, node)
		question_again(operation->question);
	if (session->operation)
		question_again(session->operation->question);
	parts_rewrite(session);
	if (!session->cell)
		return 0;
	session->cell->written = false;
	list_for_each (call, &session->cell->calls.list, node)
		call->written = false;
	return displays_write(warden, session->cell);
}

static int everything_again(struct warden *warden)
{
	struct session *session;
	int r = 0;

	done_calls_rewrite(&warden->done_calls);
	list_for_each (session, &warden->tenants, tenant.node)
		r = r ? r : session_again(warden, session);
	return r;
}

static int family_write(struct snapshot *snapshot, struct warden *warden)
{
	struct family_record record;
	uint64_t before = warden->ledger.size;
	int r = snapshot_take(snapshot, &record, warden);

	if (!r)
		r = ledger_append(&warden->ledger, &family_record_schema, &record);
	warden->record_size = warden->ledger.size - before;
	return r;
}

/* ---- how much of the ledger is alive: never less than a new one would have ---- */

static uint64_t alive_of_cell(const struct cell *cell)
{
	return LEDGER_RECORD_OVERHEAD + cell->encoded.size + cell->calls.size +
	       cell->calls.n * LEDGER_RECORD_OVERHEAD + cell->displays.size +
	       cell->displays.n * LEDGER_RECORD_OVERHEAD;
}

static uint64_t alive_of_operation(const struct operation *operation)
{
	const struct question *question = operation->question;

	return question ? LEDGER_RECORD_OVERHEAD + question->code_size + question->names_size : 0;
}

static uint64_t alive_of_session(const struct session *session)
{
	uint64_t alive = parts_alive(session);
	const struct operation *operation;
	const struct cell *cell;

	list_for_each (cell, (struct list *)&session->queue, node)
		alive += alive_of_cell(cell);
	list_for_each (operation, (struct list *)&session->operations, node)
		alive += alive_of_operation(operation);
	if (session->cell)
		alive += alive_of_cell(session->cell);
	if (session->operation)
		alive += alive_of_operation(session->operation);
	return alive;
}

static uint64_t family_alive(const struct warden *warden)
{
	uint64_t alive = warden->profile_size + LEDGER_RECORD_OVERHEAD + warden->record_size +
			 warden->done_calls.size +
			 warden->done_calls.n * (sizeof(struct done_call) + LEDGER_RECORD_OVERHEAD);
	const struct session *session;

	list_for_each (session, (struct list *)&warden->tenants, tenant.node)
		alive += alive_of_session(session);
	return alive;
}

/* From the beginning: a first one, or one without what is out of date. */
static int ledger_begin(struct snapshot *snapshot, struct warden *warden)
{
	int r = ledger_renew(&warden->ledger);

	if (!r)
		r = profile_write(warden);
	if (!r)
		r = everything_again(warden);
	if (!r)
		r = details_write(warden);
	if (!r)
		r = family_write(snapshot, warden);
	return r ? r : vault_store_ledger(VAULT_FAMILY, warden->family, &warden->ledger);
}

static int family_commit(struct snapshot *snapshot, struct warden *warden)
{
	int r = descriptors_store(warden);

	if (r)
		return r;
	if (ledger_is_stale(&warden->ledger, family_alive(warden)))
		return ledger_begin(snapshot, warden);
	r = details_write(warden);
	return r ? r : family_write(snapshot, warden);
}

/* A spare is nobody's, and not worth keeping. */
void families_commit(struct families *families)
{
	uint64_t first = event_now();
	struct warden *warden;

	list_for_each (warden, &families->sessions->cages->touched, touched) {
		uint64_t began = event_now();
		int r;

		fault_at("settle", "family", warden_session(warden));
		r = list_empty(&warden->tenants) ? 0 : family_commit(&families->snapshot, warden);
		if (r && !warden->unkept)
			log_error(NULL, "sessions of warden %d cannot be kept for another router: %s",
				  (int)warden->pid, strerror(-r));
		warden->unkept = r != 0;
		if (!list_empty(&warden->tenants))
			warden->took = event_now() - began;
		if (warden->party)
			party_took(warden->party, event_now() - began);
		if (event_now() - first > ERRAND_BEAT_US)
			errand_beat();
	}
}

void families_fault(struct families *families, const char *name)
{
	struct warden *warden;

	list_for_each (warden, &families->sessions->cages->touched, touched)
		fault_at("settle", name, warden_session(warden));
}

/* ---- afterwards ---- */

/* A family goes at once, and first: one of which only a part is left could not be revived. */
static void forget_dead(struct families *families)
{
	struct interpreter *interpreter;
	struct session *session;
	struct warden *warden;

	graveyard_for_each(warden, &families->sessions->cages->dead_wardens,
			   grave) if (warden->stored || warden->ledger.fd >= 0) vault_forget_family(warden->family);
	graveyard_for_each(interpreter, &families->sessions->cages->dead_interpreters,
			   grave) if (interpreter->stored)
		vault_forget(VAULT_INTERPRETER, interpreter->warden->family, interpreter->serial);
	graveyard_for_each(session, &families->sessions->dead, grave) if (session->transcripts_stored)
		vault_forget(VAULT_SESSION, session->warden->family, session->tenant.number);
}

static void session_settle(struct session *session)
{
	struct cell *cell = session->warden->unkept ? NULL : session->cell;

	if (cell) {
		cell->stdout_.known = cell->stdout_.most;
		cell->stderr_.known = cell->stderr_.most;
	}
	for (int i = 0; i < 2; i++)
		transcript_settle(&session->transcripts[i]);
	session_trim_transcripts(session);
	if (session->task_file_due)
		vault_forget(VAULT_TASK, session->warden->family, session->tenant.number);
	session->task_file_due = false;
}

void families_settle(struct families *families)
{
	struct session *session;
	struct warden *warden;

	list_for_each (warden, &families->sessions->cages->touched, touched) {
		list_remove(&warden->touched);
		if (warden->kill_due)
			warden_kill_now(warden);
		list_for_each (session, &warden->tenants, tenant.node)
			session_settle(session);
	}
	families->sessions->cages->owed = 0;
	forget_dead(families);
}
