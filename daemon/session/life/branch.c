/* Branches: sessions that begin as a copy of another one, from one of its checkpoints or in the middle of its cell.
 * What is answered to a cell while its copy is being made goes to both, so the two part when the copy is there: the
 * calls that are out then are the parent's, and the branch has a copy of each. */
#include "base/log.h"
#include "session/core/audit_log.h"
#include "session/core/part.h"
#include "session/parts/calls.h"
#include "session/parts/filing.h"
#include "session/parts/split.h"
#include "steps.h"
#include "vault/records.h"

#include <stdio.h>

/* Of what the cell has shown so far. */
#define DISPLAYS_COPIED ((size_t)1 << 20)

/* While the state was being saved, other sessions may have been made, and one may have taken the id. If there is no
 * room for the branch, @operation is refused. */
static bool branch_fits(struct session *parent, struct operation *operation)
{
	struct sessions *sessions = parent->sessions;
	struct session_name name = {.owner = parent->owner, .id = bytes_of(operation->branch)};

	if (!sessions_room(sessions, &operation->request, parent->owner))
		operation_free(operation);
	else if (sessions_find(sessions, &name))
		operation_refuse(parent, operation, "the branch could not be made");
	else
		return true;
	return false;
}

static void admit(struct session *session, const struct session *parent, uint64_t cell)
{
	struct sessions *sessions = session->sessions;

	if (sessions_admit(sessions, session))
		session_end(session, "internal");
	if (session->state == SESSION_CLOSING)
		return;
	(void)past_begin(&sessions->past, session->owner, session->id, session->birth);
	log_info(session->name, "branched from session %s after cell %llu", parent->name, (unsigned long long)cell);
	audit_log_opened(session);
}

static int branch_alloc(struct session **sessionp, struct session *parent, struct operation *operation,
			const char *workspace)
{
	struct session *session =
		session_alloc(parent->sessions, parent->profile, operation->branch, parent->owner);

	if (!session)
		return -ENOMEM;
	session->warden = parent->warden;
	if (session_create_transcripts(session) || (workspace && !(session->workspace = strdup(workspace)))) {
		session_free(session);
		return -ENOMEM;
	}
	session->operation = operation;
	/* It shares its parent's cage, so it shares the end of that cage's life. */
	session->opened = parent->opened;
	*sessionp = session;
	return 0;
}

/* ---- from a checkpoint ---- */

/* In the family's workspace, since nothing else there can be written to. */
static int branch_directory(struct session *session, char name[32])
{
	snprintf(name, 32, "%llu", (unsigned long long)session->warden->last_interpreter + 1);
	return asprintf(&session->workspace, "%s/.branches/%s", session->warden->workspace, name) < 0 ? -ENOMEM : 0;
}

static int branch_new(struct session **sessionp, struct session *parent, struct checkpoint *from,
		      struct operation *operation)
{
	struct spawn_message how = {.reseed = true};
	char directory[32];
	struct session *session;

	if (branch_alloc(&session, parent, operation, operation->files ? NULL : parent->workspace))
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
	parts_branch(session, parent, from);
	operation->effects_more = effects_put(&parent->effects, from->cell, EFFECTS_FOREVER, &operation->effects);
	warden_join(session->warden, &session->tenant);
	session_arm_hard(session);
	*sessionp = session;
	if (session->filing.origin) {
		session->state = SESSION_SWEEPING;
		filing_fill(session);
	} else {
		session_thaw(session, &how, from->interpreter);
	}
	return 0;
}

void session_branch(struct session *parent, struct checkpoint *from, struct operation *operation)
{
	uint64_t cell = from->cell;
	struct session *session;

	if (!branch_fits(parent, operation))
		return;
	if (branch_new(&session, parent, from, operation))
		operation_refuse(parent, operation, "the branch could not be made");
	else
		admit(session, parent, cell);
}

/* ---- in the middle of a cell: the cell ---- */

/* What is left of its time. */
static uint64_t rest_of(const struct session *session)
{
	const struct cell *cell = session->cell;
	uint64_t end = session->deadline.deadline, now = event_now();

	if (!cell->timeout)
		return 0;
	if (cell->stands)
		return MAX(cell->rest, (uint64_t)1);
	return end > now ? end - now : 1;
}

static void output_copy(struct session *session, enum interpreter_stream stream, const struct output *from)
{
	struct output *output = session_output(session, stream);
	struct piece pieces[PIECES_MAX];
	size_t n = output_pieces(from, pieces);

	output->most = MIN(output->most, from->most);
	output->limit = MIN(output->limit, output->most);
	for (size_t i = 0; i < n; i++) {
		if (pieces[i].at > output->total)
			output_skip(output, pieces[i].at - output->total);
		output_add(output, pieces[i].data);
		transcript_put(&session->transcripts[stream], pieces[i].at, pieces[i].data);
	}
}

static void displays_copy(struct session *session, const struct displays *from)
{
	struct displays *displays = &session->cell->displays;
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer joined = {0};
	struct shown shown;
	size_t cursor = 0;

	if (from->size <= DISPLAYS_COPIED && from->n > 0 && !displays_join(from, &joined))
		while (displays_next(wire_bytes(&joined), &cursor, &shown)) {
			displays->total = shown.at;
			if (displays_add(displays, &shown) &&
			    cell_write_display(session->cell, &session->warden->ledger, &shown))
				displays->dropped++;
		}
	displays->dropped = from->dropped + from->n - MIN(from->n, displays->n);
	displays->total = from->total;
}

/* NULL, or why somebody has to approve the copy of a call. What has an effect is not repeated in silence, and
 * neither is what waits for an answer from elsewhere. */
static const char *why_ask(char out[static REPEAT_TEXT_SIZE], const struct session *parent, const struct call *call,
			   const struct function *function)
{
	int size = REPEAT_TEXT_SIZE - 200;

	if (call->state == CALL_ASKS)
		return call->text;
	if (call->state == CALL_HELD)
		snprintf(out, REPEAT_TEXT_SIZE, "session \"%s\" has made this call, and it is held there: %.*s",
			 parent->id, size - SESSION_ID_MAX, call->text ? call->text : "");
	else if (!function || function->effect)
		snprintf(out, REPEAT_TEXT_SIZE,
			 "session \"%s\" has made this call, and it has an effect: approved, it is done once more",
			 parent->id);
	else
		return NULL;
	return out;
}

static int call_copy(struct session *session, const struct session *parent, const struct call *from)
{
	struct cell *cell = session->cell;
	const struct call_message message = {.number = from->number,
					     .function = from->function,
					     .arguments = from->arguments,
					     .again = from->again};
	const struct function *function = calls_function(&cell->calls, cell->options.functions, from->function);
	char text[REPEAT_TEXT_SIZE];
	const char *why = why_ask(text, parent, from, function);
	struct call *call;
	int r = calls_add(&call, &cell->calls, &message);

	if (r)
		return r;
	call->timeout = from->timeout;
	if (call_is_install(from))
		call_turn(&cell->calls, call, from->state, bytes_of(from->text));
	else if (why || from->state == CALL_ASKS)
		call_turn(&cell->calls, call, CALL_ASKS, bytes_of(why ? why : ""));
	return 0;
}

/* Nobody has asked for it, and it is of no request: who attaches has its key. */
static struct promise *promise_make(const struct session *session)
{
	const struct keeping keeping = profile_keeping(session->profile);
	struct promise *promise;

	if (promise_new(&promise, session->sessions->promises, session->owner, bytes_of(session->id),
			(struct bytes){.data = NULL}, session->birth, &keeping))
		return NULL;
	promise_name(promise);
	promise->keep = true;
	promise_taken(promise);
	return promise;
}

static int cell_copy(struct session *session, const struct session *parent)
{
	const struct cell *from = parent->cell;
	struct address address = {.uid = session->owner, .id = 1, .promise = promise_make(session)};
	struct call *call;
	int r;

	if (!address.promise)
		return -ENOMEM;
	r = cell_new(&session->cell, from->encoded, &address, from->timeout, session->profile->output_size);
	if (r) {
		promise_forget(address.promise);
		return r;
	}
	{
		const struct cell *record = from;

		CELL_VALUES(RECORD_TAKE, session->cell);
	}
	address.promise->cell = from->number;
	address.promise->since = from->started;
	session->cell->stands = false;
	session->cell->rest = rest_of(parent);
	output_copy(session, STREAM_STDOUT, &from->stdout_);
	output_copy(session, STREAM_STDERR, &from->stderr_);
	displays_copy(session, &from->displays);
	list_for_each (call, (struct list *)&from->calls.list, node)
		r = r ? r : call_copy(session, parent, call);
	return r;
}

/* ---- the branch ---- */

/* If the cell is killed, the branch goes back to where its parent would. That state stays as long as one of the two
 * has it. */
static int past_copy(struct session *session, const struct session *parent)
{
	const struct checkpoint *base = parent->history.base;
	struct checkpoint *shared;

	session->n_cells = parent->cell->number;
	session->at = parent->at;
	session->was_saved = parent->was_saved;
	session->exact = parent->exact;
	session->lost_to = parent->lost_to;
	memcpy(session->lost_cause, parent->lost_cause, sizeof(session->lost_cause));
	parts_branch(session, parent, NULL);
	session->history.severed = true;
	if (base) {
		shared = history_add(&session->history, base->interpreter, base->cell);
		if (!shared)
			return -ENOMEM;
		shared->done_calls = base->done_calls;
		shared->born = base->born;
		shared->files = base->files;
		shared->n_files = base->n_files;
		shared->files_size = base->files_size;
		shared->files_lack = base->files_lack;
	}
	session->history.saved = false;
	session->history.severed = parent->history.severed;
	return 0;
}

/* Its copy does not know of them. */
static void answers_pass_on(struct session *session, const msgpack_sbuffer *answers)
{
	struct bytes rest = wire_bytes(answers);
	struct returned_message returned;
	struct wire_fault fault;
	size_t size;

	while (session->state == SESSION_RESTORING && (size = wire_scan(rest, WIRE_DEPTH_MAX, rest.size)) > 0) {
		if (!wire_decode(&returned, &returned_message_schema, (struct bytes){rest.data, size}, &fault) &&
		    interpreter_send(session->live, &returned_message_schema, &returned))
			session_end(session, "internal");
		rest = (struct bytes){.data = rest.data + size, .size = rest.size - size};
	}
}

static void give_up(struct session *session)
{
	struct promise *promise = session->cell ? session->cell->reply.promise : NULL;

	session->operation = NULL; /* the caller's still */
	session_free(session);
	if (promise)
		promise_forget(promise);
}

static int split_new(struct session **sessionp, struct session *parent, struct operation *operation)
{
	const struct spawn_message how = {.reseed = true};
	struct interpreter *copy = parent->split.copy;
	struct session *session;
	int r = branch_alloc(&session, parent, operation, parent->workspace);

	if (r)
		return r;
	r = past_copy(session, parent);
	if (!r)
		r = cell_copy(session, parent);
	if (!r)
		r = interpreter_attach(copy, &session->tenant);
	if (r) {
		copy->tenant = NULL;
		give_up(session);
		return r;
	}
	warden_join(session->warden, &session->tenant);
	session_arm_hard(session);
	*sessionp = session;
	session->midway = true;
	session_thaw(session, &how, copy);
	answers_pass_on(session, &parent->split.answers);
	return 0;
}

static void split(struct session *parent, struct operation *operation)
{
	struct session *session;

	if (!branch_fits(parent, operation)) {
		warden_discard(parent->warden, parent->split.copy);
	} else if (split_new(&session, parent, operation)) {
		operation_refuse(parent, operation, "the branch could not be made");
		warden_discard(parent->warden, parent->split.copy);
	} else {
		admit(session, parent, parent->at);
	}
}

void session_finish_split(struct session *session, const struct details *details)
{
	struct operation *operation = session->split.operation;

	if (!split_is_there(session, details->frozen))
		return;
	interpreter_drain(session->live);
	session_gather_effects(session);
	if (warden_adopt(session->warden, session->split.copy, details->frozen->pid)) {
		session_end(session, "internal");
		return;
	}
	session->split.operation = NULL;
	split(session, operation);
	split_end(session);
}

void session_drop_split(struct session *session, const struct details *details)
{
	split_abandon(session);
}

void session_begin_split(struct session *session)
{
	struct cell *cell = session->cell;

	session_let_source_go(session);
	session->midway = false;
	session->state = SESSION_BUSY;
	session->sessions->stats.cells++;
	(void)audit_log_exec(session, cell, cell->number);
	cell->audited = true;
	session_deadline(session, cell->rest);
	quota_on_run(session->warden);
	session_watch(session);
	session_heed_calls(session);
	log_info(session->name, "goes on with cell %llu, at a call", (unsigned long long)cell->number);
	if (session->operation)
		operation_on_born(session);
	if (!list_empty(&session->resets))
		session_event(session, EVENT_RESET, &session_nothing);
}
