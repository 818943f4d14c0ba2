/* From objects to records; revive.c goes the other way. A field in one must be in the other. */
#include "snapshot.h"

#include "session/core/events.h"
#include "session/core/part.h"
#include "warden/warden.h"

/* How the fields of a list are kept: see records.h. */
#define INTERPRETER_PUT(object, kind, field, need) record.field = serial_of((object)->field);
#define CHECKPOINT_PUT(object, kind, field, need) record.field = checkpoint_place(object, (object)->field);

void snapshot_init(struct snapshot *snapshot)
{
	for (int i = 0; i < _PART_N; i++)
		msgpack_sbuffer_init(&snapshot->parts[i]);
}

void snapshot_deinit(struct snapshot *snapshot)
{
	for (int i = 0; i < _PART_N; i++)
		msgpack_sbuffer_destroy(&snapshot->parts[i]);
}

/* An array of that many follows. Returns 0 or -ENOMEM. */
static int part_begin(msgpack_sbuffer **bufferp, struct snapshot *snapshot, enum snapshot_part part, size_t n)
{
	*bufferp = &snapshot->parts[part];
	(*bufferp)->size = 0;
	return wire_put_array(*bufferp, n);
}

static struct bytes part(const struct snapshot *snapshot, enum snapshot_part which)
{
	return wire_bytes(&snapshot->parts[which]);
}

static uint64_t serial_of(const struct interpreter *interpreter)
{
	return interpreter ? interpreter->serial : 0;
}

/* ---- of a session ---- */

static int put_cell(msgpack_sbuffer *buffer, const struct session *session, const struct cell *cell)
{
	struct cell_record record = {
		.promise = cell->reply.promise->serial,
		.kept = cell->reply.promise->keep,
		.displays = cell->displays.total,
		.displays_dropped = cell->displays.dropped,
		.stdout_most = cell->stdout_.most,
		.stderr_most = cell->stderr_.most,
		.prompt = bytes_of(cell->prompt),
		.task = cell->task,
		.telling = cell->telling,
		.last_save = cell == session->last_save,
	};

	_cleanup_(wire_list_deinit) struct wire_list calls = {0};
	int r;

	CELL_VALUES(RECORD_PUT, cell);
	r = calls_numbers(&cell->calls, &calls);
	if (cell->calls.n > 0)
		record.calls = wire_list_bytes(&calls);
	if (!r)
		r = wire_encode_body(buffer, &cell_record_schema, &record);
	return r;
}

static int put_queue(struct snapshot *snapshot, const struct session *session)
{
	msgpack_sbuffer *buffer;
	struct cell *cell;
	int r = part_begin(&buffer, snapshot, PART_QUEUE, list_size(&session->queue));

	list_for_each (cell, (struct list *)&session->queue, node)
		r = r ? r : put_cell(buffer, session, cell);
	snapshot->parts[PART_CELL].size = 0;
	if (!r && session->cell)
		r = put_cell(&snapshot->parts[PART_CELL], session, session->cell);
	return r;
}

static uint64_t checkpoint_place(const struct session *session, const struct checkpoint *wanted)
{
	struct checkpoint *checkpoint;
	uint64_t position = 0;

	if (!wanted)
		return 0;
	list_for_each (checkpoint, (struct list *)&session->history.checkpoints, node) {
		position++;
		if (checkpoint == wanted)
			break;
	}
	return position;
}

static int put_checkpoints(struct snapshot *snapshot, const struct session *session)
{
	const struct list *all = &session->history.checkpoints;
	msgpack_sbuffer *buffer;
	struct checkpoint *checkpoint;
	int r = part_begin(&buffer, snapshot, PART_CHECKPOINTS, list_size(all));

	list_for_each (checkpoint, (struct list *)all, node) {
		struct kept_checkpoint record = {
			.name = record_text(checkpoint->name),
			.done_calls = past_calls_bytes(&checkpoint->done_calls),
			.parent = checkpoint_place(session, checkpoint->parent),
			.interpreter = checkpoint->interpreter->serial,
		};

		CHECKPOINT_VALUES(RECORD_PUT, checkpoint);
		r = r ? r : wire_encode_body(buffer, &kept_checkpoint_schema, &record);
	}
	return r;
}

static int put_operations(struct snapshot *snapshot, const struct session *session)
{
	msgpack_sbuffer *buffer;
	struct operation *operation;
	int r = part_begin(&buffer, snapshot, PART_OPERATIONS, list_size(&session->operations));

	list_for_each (operation, (struct list *)&session->operations, node)
		r = r ? r : operation_put(buffer, operation);
	snapshot->parts[PART_OPERATION].size = 0;
	if (!r && session->operation)
		r = operation_put(&snapshot->parts[PART_OPERATION], session->operation);
	return r;
}

static int put_waiters(struct snapshot *snapshot, enum snapshot_part part, const struct list *waiters)
{
	snapshot->parts[part].size = 0;
	return waiters_put(&snapshot->parts[part], waiters);
}

static int put_session(struct snapshot *snapshot, const struct session *session)
{
	struct kept_session record = {
		.number = session->tenant.number,
		.id = record_text(session->id),
		.owner = session->owner,
		.state = session->state,
		.sweep = session->tenant.sweep,
		.workspace = bytes_of(session->workspace),
		.stdout_begin = session->transcripts[0].begin,
		.stderr_begin = session->transcripts[1].begin,
		.stdout_words = wire_bytes(&session->words[0]),
		.stderr_words = wire_bytes(&session->words[1]),
		.kill_cause = bytes_of(session->kill_cause),
		.verdict_returncode = session->verdict.returncode,
		.verdict_cause = bytes_of(session->verdict.cause),
		.base = checkpoint_place(session, session->history.base),
		.saved = session->history.saved,
		.severed = session->history.severed,
		.deadline = session->deadline.index ? session->deadline.deadline : 0,
		.patience = session->patience,
	};
	int r = put_queue(snapshot, session);

	SESSION_VALUES(RECORD_PUT, session);
	SESSION_TEXTS(TEXT_PUT, session);
	SESSION_INTERPRETERS(INTERPRETER_PUT, session);
	SESSION_CHECKPOINTS(CHECKPOINT_PUT, session);
	r = r ? r : put_checkpoints(snapshot, session);
	r = r ? r : put_operations(snapshot, session);
	r = r ? r : put_waiters(snapshot, PART_RESETS, &session->resets);
	r = r ? r : put_waiters(snapshot, PART_CLOSERS, &session->closers);
	snapshot->parts[PART_PARTS].size = 0;
	r = r ? r : parts_put(&snapshot->parts[PART_PARTS], session);
	record.parts = part(snapshot, PART_PARTS);
	record.queue = part(snapshot, PART_QUEUE);
	if (session->cell)
		record.cell = part(snapshot, PART_CELL);
	record.checkpoints = part(snapshot, PART_CHECKPOINTS);
	record.operations = part(snapshot, PART_OPERATIONS);
	if (session->operation)
		record.operation = part(snapshot, PART_OPERATION);
	record.resets = part(snapshot, PART_RESETS);
	record.closers = part(snapshot, PART_CLOSERS);
	return r ? r : wire_encode_body(&snapshot->parts[PART_SESSIONS], &kept_session_schema, &record);
}

/* ---- of a family ---- */

static int put_messages(msgpack_sbuffer *buffer, const struct peer *peer, uint64_t to)
{
	struct peer_message *message;
	int r = 0;

	list_for_each (message, (struct list *)&peer->messages, node) {
		const struct message_record record = {
			.to = to,
			.number = message->number,
			.subject = message->subject,
			.n_fds = message->n_fds,
			.datagram = wire_bytes(&message->datagram),
		};

		r = r ? r : wire_encode_body(buffer, &message_record_schema, &record);
	}
	return r;
}

static int put_all_messages(struct snapshot *snapshot, const struct warden *warden)
{
	size_t n = list_size(&warden->peer.messages);
	struct interpreter *interpreter;
	msgpack_sbuffer *buffer;
	int r;

	list_for_each (interpreter, (struct list *)&warden->interpreters, node)
		n += list_size(&interpreter->peer.messages);
	r = part_begin(&buffer, snapshot, PART_MESSAGES, n);
	r = r ? r : put_messages(buffer, &warden->peer, 0);
	list_for_each (interpreter, (struct list *)&warden->interpreters, node)
		r = r ? r : put_messages(buffer, &interpreter->peer, interpreter->serial);
	return r;
}

static int put_interpreters(struct snapshot *snapshot, const struct warden *warden)
{
	msgpack_sbuffer *buffer;
	struct interpreter *interpreter;
	int r = part_begin(&buffer, snapshot, PART_INTERPRETERS, list_size(&warden->interpreters));

	list_for_each (interpreter, (struct list *)&warden->interpreters, node) {
		struct interpreter_record record = {
			.role = interpreter->role,
			.set = record_text(interpreter->set),
			.session = interpreter->tenant ? interpreter->tenant->number : 0,
		};

		LINK_FIELDS(RECORD_PUT, &interpreter->peer);
		INTERPRETER_VALUES(RECORD_PUT, interpreter);
		r = r ? r : wire_encode_body(buffer, &interpreter_record_schema, &record);
	}
	return r;
}

static int put_sessions(struct snapshot *snapshot, const struct warden *warden)
{
	struct session *session;
	msgpack_sbuffer *buffer;
	int r = part_begin(&buffer, snapshot, PART_SESSIONS, list_size(&warden->tenants));

	list_for_each (session, (struct list *)&warden->tenants, tenant.node)
		r = r ? r : put_session(snapshot, session);
	return r;
}

int snapshot_take(struct snapshot *snapshot, struct family_record *recordp, struct warden *warden)
{
	struct family_record record;
	int r = put_interpreters(snapshot, warden);

	r = r ? r : put_sessions(snapshot, warden);
	r = r ? r : put_all_messages(snapshot, warden);
	record = (struct family_record){
		.state = warden->state,
		.workspace = bytes_of(warden->workspace),
		.level = bytes_of(warden->level),
		.language = record_text(warden->language),
		.python = record_text(warden->version),
		.guards = wire_bytes(&warden->guards),
		.reason = record_text(warden->reason),
		.group = record_text(warden->group.name),
		.group_held = warden->group.held,
		.group_memory = warden->group.limits.of[CONTROLLER_MEMORY],
		.group_processes = warden->group.limits.of[CONTROLLER_PIDS],
		.group_cpu = warden->group.limits.of[CONTROLLER_CPU],
		.group_oom_kills = warden->group.oom_kills,
		.done_calls_forgotten = warden->done_calls.forgotten,
		.interpreters = part(snapshot, PART_INTERPRETERS),
		.sessions = part(snapshot, PART_SESSIONS),
		.messages = part(snapshot, PART_MESSAGES),
	};
	LINK_FIELDS(RECORD_PUT, &warden->peer);
	WARDEN_VALUES(RECORD_PUT, warden);
	QUOTA_VALUES(RECORD_PUT, &warden->quota);
	*recordp = record;
	return r;
}
