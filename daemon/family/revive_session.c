/* Brings back a session of the last router, with everything that belongs to it. */
#include "revival.h"

#include "files/files.h"
#include "session/core/events.h"
#include "session/core/part.h"
#include "vault/vault.h"
#include "warden/nursery.h"

#include "proto/causes.h"

#include <fcntl.h>

#define CHUNK 65536

/* How the fields of a list come back: see records.h. */
#define INTERPRETER_TAKE(object, kind, field, need)                                                                \
	(object)->field = warden_interpreter(revival->warden, record->field);
#define CHECKPOINT_TAKE(object, kind, field, need)                                                                 \
	(object)->field = record->field ? checkpoint_at(object, record->field) : NULL;

/* ---- what it works on ---- */

static void displays_from(const struct revival *revival, struct cell *cell, uint64_t promise,
			  const struct cell_record *cell_record)
{
	struct display_record record;
	struct wire_fault fault;
	struct shown shown;
	size_t next = 0;

	while (old_family_record(revival->old, &next, &display_record_schema, promise, &record)) {
		if (wire_decode_known(&shown, &shown_schema, record.shown, &fault))
			continue;
		cell->displays.total = shown.at;
		displays_add(&cell->displays, &shown);
	}
	cell->displays.total = cell_record->displays;
	cell->displays.dropped = cell_record->displays_dropped;
}

static bool is_out(struct bytes numbers, uint64_t number)
{
	size_t cursor = 0;
	uint64_t out;

	while (wire_next_uint(numbers, &cursor, &out))
		if (out == number)
			return true;
	return false;
}

/* A call as it was, or what has become of it since. */
static int call_from(struct calls *calls, const struct kept_call *record)
{
	struct call *call = calls_find(calls, record->number);
	int r = 0;

	if (!call && record->function.data)
		r = calls_add(&call, calls,
			      &(struct call_message){.number = record->number,
						     .function = record->function,
						     .arguments = record->arguments,
						     .again = record->again});
	if (r || !call)
		return r;
	if (record->function.data) {
		call->since = record->since;
		call->timeout = record->timeout;
	}
	call_turn(calls, call, (enum call_state)MIN(record->state, (uint64_t)CALL_HELD), record->text);
	call->turned = record->turned;
	return 0;
}

static int calls_from(const struct revival *revival, struct cell *cell, const struct cell_record *cell_record)
{
	struct kept_call record;
	size_t next = 0;
	int r = 0;

	if (!cell_record->calls.data)
		return 0;
	while (!r && old_family_record(revival->old, &next, &kept_call_schema, cell_record->promise, &record))
		if (is_out(cell_record->calls, record.number))
			r = call_from(&cell->calls, &record);
	return r;
}

static void parts_read(const struct revival *revival, struct session *session)
{
	union {
		struct entry_record entry;
		struct effect_record effect;
	} record;

	parts_for_each(at, session)
	{
		size_t next = 0;

		while ((*at)->schema &&
		       old_family_record(revival->old, &next, (*at)->schema, session->tenant.number, &record))
			(*at)->read(session, &record);
	}
}

/* The file of a task goes along again, so it is only borrowed here. One that had not begun finds it anew. */
static int task_file_from(struct cell *cell, const struct revival *revival, const struct session *session)
{
	struct vault_item *held = cell->number > 0 ? vault_find(revival->families->vault, VAULT_TASK,
								revival->warden->family, session->tenant.number)
						   : NULL;
	int fd = held && held->fds[0] >= 0 ? fcntl(held->fds[0], F_DUPFD_CLOEXEC, 0) : -1;

	if (held)
		held->taken = cell->file_stored = true;
	if (cell->task == CELL_SAVE)
		cell->file = fd;
	else if (fd >= 0)
		return saved_take(&cell->saved, fd, session->owner, bytes_of(session->id));
	else
		(void)saved_find(&cell->saved, revival->families->sessions->saved, session->owner,
				 bytes_of(session->id));
	return 0;
}

static int task_from(struct cell **cellp, const struct revival *revival, struct session *session,
		     const struct cell_record *record, const struct address *address)
{
	int r = cell_new_task(cellp, record->task == CELL_LOAD ? CELL_LOAD : CELL_SAVE, address, record->timeout);

	if (r)
		return r;
	(*cellp)->number = record->number;
	(*cellp)->telling = (enum telling)MIN(record->telling, (uint64_t)TELL_LOAD);
	if (record->last_save)
		session->last_save = *cellp;
	return task_file_from(*cellp, revival, session);
}

/* Its user had no room for more. */
static void output_limit_from(struct output *output, uint64_t most)
{
	output->most = (size_t)MIN(most, (uint64_t)output->most);
	output->limit = MIN(output->limit, output->most);
}

static int code_from(struct cell **cellp, const struct revival *revival, const struct session *session,
		     const struct cell_record *cell_record, const struct address *address)
{
	struct code_record record;
	size_t next = 0;

	if (!old_family_record(revival->old, &next, &code_record_schema, cell_record->promise, &record))
		return -EBADMSG;
	return cell_new(cellp, record.options, address, cell_record->timeout, session->profile->output_size);
}

static void cell_values_from(struct cell *cell, const struct revival *revival, const struct cell_record *record)
{
	CELL_VALUES(RECORD_TAKE, cell);
	output_limit_from(&cell->stdout_, record->stdout_most);
	output_limit_from(&cell->stderr_, record->stderr_most);
	displays_from(revival, cell, record->promise, record);
	cell->prompt = record->prompt.data ? strndup(record->prompt.data, record->prompt.size) : NULL;
	cell->written = true;
}

static int cell_from(struct cell **cellp, const struct revival *revival, struct session *session, struct bytes body)
{
	struct cell_record record;
	struct wire_fault fault;
	struct address address;
	struct promise *promise;
	int r;

	if (wire_decode_known(&record, &cell_record_schema, body, &fault))
		return -EBADMSG;
	address = session_claim(session, record.promise);
	promise = address.promise;
	if (!promise)
		return -ENOMEM;
	if (record.task != CELL_CODE)
		r = task_from(cellp, revival, session, &record, &address);
	else
		r = code_from(cellp, revival, session, &record, &address);
	if (r)
		return r;
	if (promise->answer)
		promise->running = NULL;
	promise->cell = record.number;
	cell_values_from(*cellp, revival, &record);
	return calls_from(revival, *cellp, &record);
}

static int queue_from(const struct revival *revival, struct session *session, const struct kept_session *record)
{
	struct bytes item;
	struct cell *cell;
	size_t cursor = 0;
	int r = record->cell.data ? cell_from(&session->cell, revival, session, record->cell) : 0;

	while (!r && wire_next(record->queue, &cursor, &item)) {
		r = cell_from(&cell, revival, session, item);
		if (!r) {
			list_append(&session->queue, &cell->node);
			session->n_queued++;
		}
	}
	return r;
}

static struct checkpoint *checkpoint_at(const struct session *session, uint64_t position)
{
	struct checkpoint *checkpoint;

	list_for_each (checkpoint, (struct list *)&session->history.checkpoints, node)
		if (--position == 0)
			return checkpoint;
	return NULL;
}

static int checkpoint_from(const struct revival *revival, struct session *session, struct bytes body)
{
	struct kept_checkpoint kept, *record = &kept;
	struct interpreter *interpreter;
	struct checkpoint *checkpoint;
	struct wire_fault fault;

	if (wire_decode_known(record, &kept_checkpoint_schema, body, &fault))
		return -EBADMSG;
	interpreter = warden_interpreter(revival->warden, record->interpreter);
	checkpoint = interpreter ? history_add(&session->history, interpreter, record->cell) : NULL;
	if (!checkpoint)
		return interpreter ? -ENOMEM : -EBADMSG;
	if (record->name.data)
		history_name(&session->history, checkpoint, record->name);
	CHECKPOINT_VALUES(RECORD_TAKE, checkpoint);
	past_calls_read(&checkpoint->done_calls, record->done_calls);
	/* An older one, so it is there already. */
	checkpoint->parent = record->parent ? checkpoint_at(session, record->parent) : NULL;
	return 0;
}

static int history_from(const struct revival *revival, struct session *session, const struct kept_session *record)
{
	struct bytes item;
	size_t cursor = 0;
	int r = 0;

	while (!r && wire_next(record->checkpoints, &cursor, &item))
		r = checkpoint_from(revival, session, item);
	session->history.base = record->base ? checkpoint_at(session, record->base) : NULL;
	session->history.saved = record->saved;
	session->history.severed = record->severed;
	SESSION_CHECKPOINTS(CHECKPOINT_TAKE, session);
	return r;
}

static int question_from(struct question **questionp, const struct revival *revival, const struct session *session,
			 const struct operation_record *record)
{
	struct about_record about;
	struct question *question;
	size_t next = 0;
	int r;

	if (!old_family_record(revival->old, &next, &about_record_schema, record->about, &about))
		return -EBADMSG;
	r = question_new(&question, (enum question_kind)record->question, session->user, about.code, about.names);
	if (r)
		return r;
	QUESTION_VALUES(RECORD_TAKE, question);
	question->number = record->about;
	question->written = true;
	*questionp = question;
	return 0;
}

static int operation_from(struct operation **operationp, const struct revival *revival,
			  const struct session *session, struct bytes body)
{
	struct operation_record record;
	int r = operation_take(operationp, &record, session, body);

	return r || !record.asks ? r : question_from(&(*operationp)->question, revival, session, &record);
}

static int operations_from(const struct revival *revival, struct session *session,
			   const struct kept_session *record)
{
	struct operation *operation;
	struct bytes item;
	size_t cursor = 0;
	int r = record->operation.data ? operation_from(&session->operation, revival, session, record->operation)
				       : 0;

	while (!r && wire_next(record->operations, &cursor, &item)) {
		r = operation_from(&operation, revival, session, item);
		if (!r)
			list_append(&session->operations, &operation->node);
	}
	return r;
}

/* The head and the tail of what no reply holds; the middle may be gone. */
static void output_from(struct output *output, const struct transcript *transcript, struct bytes words)
{
	const size_t most = output->most;
	uint64_t head = transcript->begin + most - most / 2, at = transcript->begin;
	uint64_t tail = transcript->end > most / 2 ? transcript->end - most / 2 : 0;
	char chunk[CHUNK];

	while (at < transcript->end) {
		size_t wanted = (size_t)MIN(transcript->end - at, sizeof(chunk));
		ssize_t n;

		if (at >= head && at < tail) {
			output_skip(output, tail - at);
			at = tail;
			continue;
		}
		if (at < head)
			wanted = (size_t)MIN(wanted, head - at);
		n = transcript_read(transcript, at, chunk, wanted);
		if (n <= 0)
			break;
		output_add(output, (struct bytes){.data = chunk, .size = (size_t)n});
		at += (uint64_t)n;
	}
	output_add(output, words);
}

static int transcripts_from(const struct revival *revival, struct session *session,
			    const struct kept_session *record)
{
	struct vault_item *held =
		vault_find(revival->families->vault, VAULT_SESSION, revival->warden->family, record->number);
	const uint64_t begins[] = {record->stdout_begin, record->stderr_begin};
	const struct bytes words[] = {record->stdout_words, record->stderr_words};
	int r = 0;

	if (!held || held->n_fds != 2)
		return -ENOENT;
	held->taken = session->transcripts_stored = true;
	for (int i = 0; i < 2 && !r; i++) {
		struct output *output = session_output(session, (enum interpreter_stream)i);

		r = transcript_open(&session->transcripts[i], steal_fd(&held->fds[i]), begins[i]);
		if (!r)
			output_from(output, &session->transcripts[i], words[i]);
		if (!r && words[i].size > 0)
			(void)msgpack_sbuffer_write(&session->words[i], words[i].data, words[i].size);
	}
	return r;
}

static void values_from(const struct revival *revival, struct session *session, const struct kept_session *record)
{
	SESSION_VALUES(RECORD_TAKE, session);
	session->tenant.number = record->number;
	session->state = (enum session_state)MIN(record->state, (uint64_t)SESSION_CLOSING);
	session->tenant.sweep = (enum sweep)record->sweep;
	SESSION_INTERPRETERS(INTERPRETER_TAKE, session);
	if (!session->birth) /* a router that knew of none */
		session->birth = past_new_birth();
	SESSION_TEXTS(TEXT_TAKE, session);
	bytes_copy(session->kill_text, sizeof(session->kill_text), record->kill_cause);
	session->kill_cause = record->kill_cause.data ? session->kill_text : NULL;
	bytes_copy(session->verdict_cause, sizeof(session->verdict_cause), record->verdict_cause);
	session->verdict = (struct verdict){
		.state = "reset",
		.returncode = record->verdict_returncode,
		.cause = record->verdict_cause.data ? session->verdict_cause : NULL,
	};
}

int revival_session(const struct revival *revival, struct bytes body)
{
	struct warden *warden = revival->warden;
	struct kept_session record;
	struct session *session;
	struct wire_fault fault;
	char id[SESSION_ID_MAX + 1];
	int r;

	if (wire_decode_known(&record, &kept_session_schema, body, &fault))
		return -EBADMSG;
	bytes_copy(id, sizeof(id), record.id);
	session = session_alloc(revival->families->sessions, warden->profile, id, (uid_t)record.owner);
	if (!session)
		return -ENOMEM;
	session->warden = warden;
	list_append(&warden->tenants, &session->tenant.node);
	warden_own(warden, session->tenant.party);
	values_from(revival, session, &record);
	if (record.workspace.data)
		session->workspace = strndup(record.workspace.data, record.workspace.size);
	parts_read(revival, session);
	r = queue_from(revival, session, &record);
	r = r ? r : history_from(revival, session, &record);
	r = r ? r : parts_take(session, record.parts);
	r = r ? r : operations_from(revival, session, &record);
	r = r ? r : waiters_take(&session->resets, session, record.resets);
	r = r ? r : waiters_take(&session->closers, session, record.closers);
	r = r ? r : transcripts_from(revival, session, &record);
	r = r ? r : sessions_readmit(revival->families->sessions, session);
	if (!r && record.deadline)
		session_deadline(session,
				 record.deadline > event_now() ? record.deadline - event_now() : (uint64_t)1);
	session->patience = record.patience;
	if (!r && session->cell)
		session_watch(session);
	return r;
}
