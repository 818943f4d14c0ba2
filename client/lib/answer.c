/* Messages of the daemon: each finds its call by number, and the final one is decoded into the struct of its
 * kind. The call keeps that message, and every text of the answer points into it. */
#include "handle.h"

static void result_from(struct lair_result *result, const struct exec_reply *reply)
{
	struct cell_error error = {.name = {.data = NULL}};
	struct wire_fault fault;

	/* What the interpreter said of itself may be anything. */
	if (reply->error.data && wire_decode_known(&error, &cell_error_schema, reply->error, &fault))
		error = (struct cell_error){.name = BYTES("?"), .value = BYTES(""), .traceback = BYTES("")};
	*result = (struct lair_result){
		.session = text_from(reply->session),
		.cell = reply->cell,
		.returncode = (int)reply->returncode,
		.state = text_from(reply->state),
		.cause = text_from(reply->cause),
		.out = text_from(reply->stdout),
		.err = text_from(reply->stderr),
		.out_dropped = reply->stdout_dropped,
		.err_dropped = reply->stderr_dropped,
		.text = text_from(reply->text),
		.data = items_from(reply->data),
		.displays = items_from(reply->displays),
		.displays_dropped = reply->displays_dropped,
		.error_name = text_from(error.name),
		.error_value = text_from(error.value),
		.error_traceback = text_from(error.traceback),
		.error_suggestion = text_from(error.suggestion),
		.error_line = error.line,
		.error_offset = error.offset,
		.error_context = text_from(error.context),
		.error_frames = items_from(error.frames),
		.blocked = items_from(reply->blocked),
		.artifacts = items_from(reply->artifacts),
		.artifacts_more = reply->artifacts_more,
		.duration_ms = reply->duration_ms,
		.limit = reply->limit,
		.restored = reply->restored,
		.effects = items_effects(reply->effects, reply->effects_more),
		.unfaithful = text_from(reply->unfaithful),
		.forgotten = reply->forgotten,
		.loaded = items_loaded(reply->saved_age, reply->loaded, reply->not_loaded),
		.ended = items_ended(reply->ended),
		.birth = reply->birth,
	};
}

static void take_hello(struct lair_call *call, const void *message)
{
	const struct hello_reply *reply = message;

	call->answer.daemon = (struct lair_daemon){
		.version = reply->version,
		.pid = reply->pid,
		.frame_max = reply->frame_max,
		.server = text_from(reply->server),
		.instance = text_from(reply->instance),
	};
}

static void take_session(struct lair_call *call, const void *message)
{
	items_session(&call->answer.session, message);
}

static void take_result(struct lair_call *call, const void *message)
{
	result_from(&call->answer.result, message);
}

static void take_interrupted(struct lair_call *call, const void *message)
{
	call->answer.interrupted = ((const struct interrupt_reply *)message)->interrupted;
}

static void take_list(struct lair_call *call, const void *message)
{
	call->answer.sessions = items_from(((const struct list_reply *)message)->sessions);
}

static void take_state(struct lair_call *call, const void *message)
{
	const struct state_reply *reply = message;

	call->answer.state = (struct lair_state){
		.cell = reply->cell,
		.name = text_from(reply->name),
		.effects = items_effects(reply->effects, reply->effects_more),
	};
}

static void take_reset(struct lair_call *call, const void *message)
{
	const struct reset_reply *reply = message;

	call->answer.effects = items_effects(reply->effects, reply->effects_more);
}

static void take_checkpoints(struct lair_call *call, const void *message)
{
	call->answer.checkpoints = items_from(((const struct checkpoints_reply *)message)->checkpoints);
}

static void take_piece(struct lair_call *call, const void *message)
{
	const struct get_reply *reply = message;

	call->answer.piece = (struct lair_piece){
		.data = text_from(reply->data),
		.size = reply->size,
		.file = reply->file,
		.mode = (unsigned)reply->mode & 0777,
	};
}

static void take_transfer(struct lair_call *call, const void *message)
{
	const struct transfer_reply *reply = message;

	call->answer.transfer =
		(struct lair_transfer){.transfer = reply->transfer, .offset = reply->offset, .size = reply->size};
}

static void take_listing(struct lair_call *call, const void *message)
{
	const struct files_reply *reply = message;

	call->answer.listing = (struct lair_listing){.files = items_from(reply->files), .next = reply->next};
}

static void take_detached(struct lair_call *call, const void *message)
{
	const struct detached_reply *reply = message;

	call->answer.detached = (struct lair_detached){.key = text_from(reply->key), .cell = reply->cell};
}

static void take_saved(struct lair_call *call, const void *message)
{
	const struct save_reply *reply = message;

	call->answer.saved = (struct lair_saved){
		.names = items_from(reply->saved), .refused = items_from(reply->not_saved), .size = reply->size};
}

static void take_loaded(struct lair_call *call, const void *message)
{
	const struct load_reply *reply = message;

	call->answer.loaded = items_loaded(reply->saved_age, reply->loaded, reply->not_loaded);
}

static void take_saves(struct lair_call *call, const void *message)
{
	call->answer.saves = items_from(((const struct saves_reply *)message)->saves);
}

static void take_stopped(struct lair_call *call, const void *message)
{
	const struct stop_reply *reply = message;

	call->answer.stopped =
		(struct lair_stopped){.saved = reply->saved, .refused = items_from(reply->not_saved)};
}

static void take_results(struct lair_call *call, const void *message)
{
	call->answer.results = items_from(((const struct results_reply *)message)->results);
}

static void take_counters(struct lair_call *call, const void *message)
{
	const struct stats_reply *reply = message;

	call->answer.counters = (struct lair_counters){
		.uptime = reply->uptime,
		.pid = reply->pid,
		.keeper_pid = reply->keeper_pid,
		.sessions = reply->sessions,
		.spares = reply->spares,
		.templates = reply->templates,
		.opened = reply->opened,
		.ended = reply->ended,
		.cells = reply->cells,
		.requests = reply->requests,
		.refused = reply->refused,
		.memory = reply->memory,
		.profiles = items_from(reply->profiles),
		.saving = reply->saving,
	};
}

static const struct {
	const struct wire_schema *reply;
	void (*take)(struct lair_call *call, const void *message);
} takers[] = {
	{&hello_reply_schema, take_hello},	  {&session_info_schema, take_session},
	{&exec_reply_schema, take_result},	  {&interrupt_reply_schema, take_interrupted},
	{&list_reply_schema, take_list},	  {&stats_reply_schema, take_counters},
	{&state_reply_schema, take_state},	  {&checkpoints_reply_schema, take_checkpoints},
	{&get_reply_schema, take_piece},	  {&transfer_reply_schema, take_transfer},
	{&files_reply_schema, take_listing},	  {&detached_reply_schema, take_detached},
	{&results_reply_schema, take_results},	  {&complete_reply_schema, take_completions},
	{&inspect_reply_schema, take_inspection}, {&vars_reply_schema, take_variables},
	{&check_reply_schema, take_checked},	  {&is_complete_reply_schema, take_completeness},
	{&history_reply_schema, take_history},	  {&save_reply_schema, take_saved},
	{&load_reply_schema, take_loaded},	  {&reset_reply_schema, take_reset},
	{&saves_reply_schema, take_saves},	  {&stop_reply_schema, take_stopped},
	{&stray_reply_schema, take_stray},
};

static void on_reply(struct lair_call *call, struct bytes body)
{
	union {
		struct hello_reply hello;
		struct session_info session;
		struct exec_reply exec;
		struct interrupt_reply interrupt;
		struct list_reply list;
		struct stats_reply stats;
		struct state_reply state;
		struct checkpoints_reply checkpoints;
		struct get_reply get;
		struct transfer_reply transfer;
		struct files_reply files;
		struct detached_reply detached;
		struct results_reply results;
		struct complete_reply complete;
		struct inspect_reply inspect;
		struct vars_reply vars;
		struct check_reply check;
		struct is_complete_reply is_complete;
		struct history_reply history;
		struct stray_reply stray;
		struct save_reply save;
		struct load_reply load;
		struct saves_reply saves;
		struct stop_reply stop;
		struct reset_reply reset;
		struct empty_reply empty;
	} message;
	struct wire_fault fault;

	if (wire_decode_known(&message, call->reply, body, &fault)) {
		call_end(call, LAIR_E_PROTOCOL, BYTES("the daemon's answer is malformed"));
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(takers); i++)
		if (takers[i].reply == call->reply)
			takers[i].take(call, &message);
	call_end(call, 0, (struct bytes){.data = NULL});
}

/* What was asked of files while output waited to be read, which has been read when the refusal comes. */
static bool asked_again(struct lair_call *call, int error)
{
	return error == LAIR_E_LIMIT &&
	       (call->asked == &get_request_schema || call->asked == &files_request_schema) &&
	       handle_send(call->lair, call) == 0;
}

static void on_error(struct lair_call *call, struct bytes body)
{
	struct error_reply reply;
	struct wire_fault fault;

	if (wire_decode_known(&reply, &error_reply_schema, body, &fault))
		call_end(call, LAIR_E_PROTOCOL, BYTES("the daemon's answer is malformed"));
	else if (!asked_again(call, lair_error_of(reply.code)))
		call_end(call, lair_error_of(reply.code), reply.message);
}

static void on_output(struct lair_call *call, enum lair_stream stream, struct bytes body)
{
	struct stdout_event event;
	struct wire_fault fault;

	if (wire_decode_known(&event, &stdout_event_schema, body, &fault))
		return;
	call->seen[stream] = event.at + event.data.size;
	if (call->exec.on_output)
		call->exec.on_output(call, stream, text_from(event.data), call->exec.userdata);
}

static void on_stdout(struct lair_call *call, struct bytes body)
{
	on_output(call, LAIR_STDOUT, body);
}

static void on_stderr(struct lair_call *call, struct bytes body)
{
	on_output(call, LAIR_STDERR, body);
}

static void on_display(struct lair_call *call, struct bytes body)
{
	struct display_event event;
	struct lair_display display;
	struct wire_fault fault;

	if (wire_decode_known(&event, &display_event_schema, body, &fault))
		return;
	call->displays = event.at + 1;
	display = items_display(&(struct shown){.data = event.data,
						.metadata = event.metadata,
						.display_id = event.display_id,
						.update = event.update,
						.clear = event.clear});
	if (call->exec.on_display)
		call->exec.on_display(call, &display, call->exec.userdata);
}

static void on_alive(struct lair_call *call, struct bytes body)
{
	struct alive_event event;
	struct wire_fault fault;

	if (call->exec.on_alive && !wire_decode_known(&event, &alive_event_schema, body, &fault))
		call->exec.on_alive(
			call,
			&(struct lair_alive){.elapsed = event.elapsed, .cpu = event.cpu, .memory = event.memory},
			call->exec.userdata);
}

/* One that comes while the answer is on its way is a repetition of the one answered. */
static bool ask_answered(const struct lair_call *exec)
{
	for (const struct lair_call *call = exec->lair->first; call; call = call->next)
		if (call->answers == exec->id)
			return true;
	return false;
}

static void on_ask(struct lair_call *call, struct bytes body)
{
	struct ask_event event;
	struct wire_fault fault;

	if (call->exec.on_ask && !ask_answered(call) && !wire_decode_known(&event, &ask_event_schema, body, &fault))
		call->exec.on_ask(call, text_from(event.prompt), event.password, call->exec.userdata);
}

static const struct {
	const char *type;
	bool final;
	void (*fn)(struct lair_call *call, struct bytes body);
} handlers[] = {
	{"stdout", false, on_stdout},	{"stderr", false, on_stderr}, {"ask", false, on_ask},
	{"display", false, on_display}, {"alive", false, on_alive},   {"reply", true, on_reply},
	{"error", true, on_error},
};

static struct lair_call *call_find(struct lair *lair, uint64_t id)
{
	struct lair_call *call;

	for (call = lair->first; call; call = call->next)
		if (call->id == id)
			break;
	return call;
}

/* An error that answers nothing in particular: this daemon cannot read what we write, so it will answer nothing. */
static void on_stranger(struct lair *lair, struct bytes body)
{
	struct error_reply reply;
	struct wire_fault fault;

	if (wire_decode_known(&reply, &error_reply_schema, body, &fault))
		return;
	while (lair->first)
		call_end(lair->first, lair_error_of(reply.code), reply.message);
}

static void frame_dispatch(struct lair *lair, zmq_msg_t *message, const struct wire_frame *frame)
{
	struct lair_call *call;
	uint64_t id;

	if (!wire_find_id(&id, frame->body))
		return;
	if (id == 0 && bytes_is(frame->type, "error"))
		on_stranger(lair, frame->body);
	call = call_find(lair, id);
	for (size_t i = 0; call && i < ARRAY_SIZE(handlers); i++) {
		if (!bytes_is(frame->type, handlers[i].type))
			continue;
		if (handlers[i].final) {
			/* A small message does not keep its place in memory when it moves. */
			size_t offset = (size_t)(frame->body.data - (const char *)zmq_msg_data(message));

			zmq_msg_move(&call->frame, message);
			handlers[i].fn(call,
				       (struct bytes){.data = (const char *)zmq_msg_data(&call->frame) + offset,
						      .size = frame->body.size});
		} else {
			handlers[i].fn(call, frame->body);
		}
		return;
	}
}

void call_dispatch(struct lair *lair, zmq_msg_t *message)
{
	struct bytes data = {.data = zmq_msg_data(message), .size = zmq_msg_size(message)};
	struct wire_frame frame;

	/* What cannot be read answers nothing; what was asked for then runs into its deadline. */
	if (wire_open_answer(&frame, data) == 0)
		frame_dispatch(lair, message, &frame);
	zmq_msg_close(message);
}

/* ---- reading them ---- */

bool call_answered(const struct lair_call *call, const struct wire_schema *reply)
{
	return call && call->outcome == 0 && call->reply == reply;
}

const struct lair_daemon *lair_daemon(const struct lair_call *call)
{
	return call_answered(call, &hello_reply_schema) ? &call->answer.daemon : NULL;
}

const struct lair_session *lair_session(const struct lair_call *call)
{
	return call_answered(call, &session_info_schema) ? &call->answer.session : NULL;
}

const struct lair_result *lair_result(const struct lair_call *call)
{
	return call_answered(call, &exec_reply_schema) ? &call->answer.result : NULL;
}

const struct lair_counters *lair_counters(const struct lair_call *call)
{
	return call_answered(call, &stats_reply_schema) ? &call->answer.counters : NULL;
}

const struct lair_detached *lair_detached(const struct lair_call *call)
{
	return call_answered(call, &detached_reply_schema) ? &call->answer.detached : NULL;
}

const struct lair_saved *lair_saved(const struct lair_call *call)
{
	return call_answered(call, &save_reply_schema) ? &call->answer.saved : NULL;
}

const struct lair_loaded *lair_loaded(const struct lair_call *call)
{
	return call_answered(call, &load_reply_schema) ? &call->answer.loaded : NULL;
}

struct lair_items lair_result_list(const struct lair_call *call)
{
	return call_answered(call, &results_reply_schema) ? call->answer.results
							  : (struct lair_items){.data = NULL};
}

struct lair_point lair_point(const struct lair_call *call)
{
	return (struct lair_point){call->seen[LAIR_STDOUT], call->seen[LAIR_STDERR], call->displays};
}

bool lair_interrupted(const struct lair_call *call)
{
	return call_answered(call, &interrupt_reply_schema) && call->answer.interrupted;
}

struct lair_items lair_save_list(const struct lair_call *call)
{
	return call_answered(call, &saves_reply_schema) ? call->answer.saves : (struct lair_items){.data = NULL};
}

const struct lair_stopped *lair_stopped(const struct lair_call *call)
{
	return call_answered(call, &stop_reply_schema) ? &call->answer.stopped : NULL;
}

struct lair_items lair_sessions(const struct lair_call *call)
{
	return call_answered(call, &list_reply_schema) ? call->answer.sessions : (struct lair_items){.data = NULL};
}

const struct lair_state *lair_state(const struct lair_call *call)
{
	return call_answered(call, &state_reply_schema) ? &call->answer.state : NULL;
}

const struct lair_effects *lair_reset_effects(const struct lair_call *call)
{
	return call_answered(call, &reset_reply_schema) ? &call->answer.effects : NULL;
}

struct lair_items lair_checkpoint_list(const struct lair_call *call)
{
	return call_answered(call, &checkpoints_reply_schema) ? call->answer.checkpoints
							      : (struct lair_items){.data = NULL};
}

const struct lair_piece *lair_piece(const struct lair_call *call)
{
	return call_answered(call, &get_reply_schema) ? &call->answer.piece : NULL;
}

const struct lair_transfer *lair_transfer(const struct lair_call *call)
{
	return call_answered(call, &transfer_reply_schema) ? &call->answer.transfer : NULL;
}

const struct lair_listing *lair_listing(const struct lair_call *call)
{
	return call_answered(call, &files_reply_schema) ? &call->answer.listing : NULL;
}
