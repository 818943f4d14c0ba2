/* Messages of the daemon: each finds its call by number, and the final one is decoded into the struct of its
 * kind. The call keeps that message, and every text of the answer points into it. */
#include "handle.h"

static void result_from(struct lair_result *result, const struct exec_reply *reply)
{
	struct cell_error error = {.name = {.data = NULL}};
	struct wire_fault fault;

	/* This field comes from the interpreter, so it may hold anything. */
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
		.out_stray = reply->stdout_stray,
		.err_stray = reply->stderr_stray,
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
		.setting = text_from(reply->setting),
		.restored = reply->restored,
		.effects = items_effects(reply->effects, reply->effects_more),
		.back = items_back(reply->files, reply->files_more, reply->files_stay),
		.files_unkept = text_from(reply->files_unkept),
		.unfaithful = text_from(reply->unfaithful),
		.forgotten = reply->forgotten,
		.loaded = items_loaded(reply->saved_age, reply->loaded, reply->not_loaded, reply->saved_damaged),
		.ended = items_ended(reply->ended),
		.birth = reply->birth,
		.language = text_from(reply->language),
	};
}

static void take_result(struct lair_call *call, const void *message)
{
	result_from(&call->answer.result, message);
}

static void take_session(struct lair_call *call, const void *message)
{
	items_session(&call->answer.session, message);
}

static void take_interrupted(struct lair_call *call, const void *message)
{
	call->answer.interrupted = ((const struct interrupt_reply *)message)->interrupted;
}

static void take_state(struct lair_call *call, const void *message)
{
	const struct state_reply *reply = message;

	call->answer.state = (struct lair_state){
		.cell = reply->cell,
		.name = text_from(reply->name),
		.effects = items_effects(reply->effects, reply->effects_more),
		.back = items_back(reply->files, reply->files_more, reply->files_stay),
	};
}

static void take_reset(struct lair_call *call, const void *message)
{
	const struct reset_reply *reply = message;

	call->answer.effects = items_effects(reply->effects, reply->effects_more);
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

	call->answer.load.loaded =
		items_loaded(reply->saved_age, reply->loaded, reply->not_loaded, (struct bytes){.data = NULL});
	call->answer.load.ended = items_ended(reply->ended);
}

static void take_package_sets(struct lair_call *call, const void *message)
{
	const struct packages_reply *reply = message;

	call->answer.package_sets = (struct lair_package_sets){
		.path = text_from(reply->path),
		.sets = items_from(reply->sets),
		.more = reply->more,
		.taken = reply->taken,
		.cache = reply->cache,
		.total = reply->total,
	};
}

static void take_stopped(struct lair_call *call, const void *message)
{
	const struct stop_reply *reply = message;

	call->answer.stopped =
		(struct lair_stopped){.saved = reply->saved, .refused = items_from(reply->not_saved)};
}

static void take_stray(struct lair_call *call, const void *message)
{
	const struct stray_reply *reply = message;

	call->answer.stray = (struct lair_stray){
		.out = text_from(reply->stdout), .err = text_from(reply->stderr), .at = reply->at};
}

static void take_piece(struct lair_call *call, const void *message)
{
	const struct get_reply *reply = message;

	call->answer.piece = (struct lair_piece){GET_REPLY_FIELDS(TAKE, reply)};
	call->answer.piece.mode &= 0777;
}

/* For an answer that has the members of its message, and no others. */
#define TAKER(function, member, message, FIELDS)                                                                   \
	static void function(struct lair_call *call, const void *data)                                             \
	{                                                                                                          \
		const struct message *reply = data;                                                                \
                                                                                                                   \
		call->answer.member = (__typeof__(call->answer.member)){FIELDS(TAKE, reply)};                      \
	}
/* For an answer that is a list. */
#define LIST_TAKER(function, message, field)                                                                       \
	static void function(struct lair_call *call, const void *data)                                             \
	{                                                                                                          \
		call->answer.list = items_from(((const struct message *)data)->field);                             \
	}

TAKER(take_daemon, daemon, hello_reply, HELLO_REPLY_FIELDS)
TAKER(take_counters, counters, stats_reply, STATS_REPLY_FIELDS)
TAKER(take_reloaded, reloaded, reload_reply, RELOAD_REPLY_FIELDS)
TAKER(take_difference, difference, diff_reply, DIFF_REPLY_FIELDS)
TAKER(take_transfer, transfer, transfer_reply, TRANSFER_REPLY_FIELDS)
TAKER(take_listing, listing, files_reply, FILES_REPLY_FIELDS)
TAKER(take_completions, completions, complete_reply, COMPLETE_REPLY_FIELDS)
TAKER(take_inspection, inspection, inspect_reply, INSPECT_REPLY_FIELDS)
TAKER(take_variables, variables, vars_reply, VARS_REPLY_FIELDS)
TAKER(take_checked, checked, check_reply, CHECK_REPLY_FIELDS)
TAKER(take_completeness, completeness, is_complete_reply, IS_COMPLETE_REPLY_FIELDS)
TAKER(take_waiting, waiting, calls_reply, CALLS_REPLY_FIELDS)

static void take_turn(struct lair_call *call, const void *data)
{
	call->answer.turn = ((const struct watch_calls_reply *)data)->turn;
}

LIST_TAKER(take_sessions, list_reply, sessions)
LIST_TAKER(take_saves, saves_reply, saves)
LIST_TAKER(take_results, results_reply, results)
LIST_TAKER(take_checkpoints, checkpoints_reply, checkpoints)
LIST_TAKER(take_history, history_reply, cells)

#define REPLIES(R)                                                                                                 \
	R(hello_reply, take_daemon)                                                                                \
	R(session_info, take_session)                                                                              \
	R(exec_reply, take_result)                                                                                 \
	R(interrupt_reply, take_interrupted)                                                                       \
	R(list_reply, take_sessions)                                                                               \
	R(stats_reply, take_counters)                                                                              \
	R(state_reply, take_state)                                                                                 \
	R(checkpoints_reply, take_checkpoints)                                                                     \
	R(diff_reply, take_difference)                                                                             \
	R(get_reply, take_piece)                                                                                   \
	R(transfer_reply, take_transfer)                                                                           \
	R(files_reply, take_listing)                                                                               \
	R(detached_reply, take_detached)                                                                           \
	R(results_reply, take_results)                                                                             \
	R(complete_reply, take_completions)                                                                        \
	R(inspect_reply, take_inspection)                                                                          \
	R(vars_reply, take_variables)                                                                              \
	R(check_reply, take_checked)                                                                               \
	R(is_complete_reply, take_completeness)                                                                    \
	R(history_reply, take_history)                                                                             \
	R(save_reply, take_saved)                                                                                  \
	R(load_reply, take_loaded)                                                                                 \
	R(saves_reply, take_saves)                                                                                 \
	R(reload_reply, take_reloaded)                                                                             \
	R(packages_reply, take_package_sets)                                                                       \
	R(stop_reply, take_stopped)                                                                                \
	R(stray_reply, take_stray)                                                                                 \
	R(reset_reply, take_reset)                                                                                 \
	R(calls_reply, take_waiting)                                                                               \
	R(watch_calls_reply, take_turn)

#define REPLY_MEMBER(message, taker) struct message message;
#define REPLY_ROW(message, taker) {&message##_schema, taker},

static const struct {
	const struct wire_schema *reply;
	void (*take)(struct lair_call *call, const void *message);
} takers[] = {REPLIES(REPLY_ROW)};

static void on_reply(struct lair_call *call, struct bytes body)
{
	union {
		REPLIES(REPLY_MEMBER)
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

/* The daemon may refuse a request for files while output waits to be read. When the refusal comes, the output has
 * been read, so the request is sent again. */
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
	else if (!asked_again(call, lair_error_of(reply.code))) {
		if (reply.setting.data)
			call->setting = strndup(reply.setting.data, reply.setting.size);
		call_end(call, lair_error_of(reply.code), reply.message);
	}
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
		call->exec.on_alive(call,
				    &(struct lair_alive){.elapsed = event.elapsed,
							 .cpu = event.cpu,
							 .memory = event.memory,
							 .doing = text_from(event.doing)},
				    call->exec.userdata);
}

static void on_ask(struct lair_call *call, struct bytes body)
{
	struct ask_event event;
	struct wire_fault fault;

	if (wire_decode_known(&event, &ask_event_schema, body, &fault))
		return;
	/* After a new connection the daemon repeats a question, even if its answer is on its way. A daemon of an
	 * earlier build does not number its questions. */
	if (event.number && event.number <= call->asks)
		return;
	call->asks = event.number;
	if (call->exec.on_ask)
		call->exec.on_ask(call, text_from(event.prompt), event.password, call->exec.userdata);
}

static const struct {
	const char *type;
	bool final;
	void (*fn)(struct lair_call *call, struct bytes body);
} handlers[] = {
	{"stdout", false, on_stdout},	  {"stderr", false, on_stderr},		{"ask", false, on_ask},
	{"display", false, on_display},	  {"alive", false, on_alive},		{"call", false, calling_on_call},
	{"held", false, calling_on_held}, {"cancel", false, calling_on_cancel}, {"reply", true, on_reply},
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

/* An error that belongs to no request: the daemon cannot read our requests, so it will answer none. */
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
			/* If a message is small, its bytes move with it. */
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

	/* A message that cannot be read is ignored. The request that it answers runs into its deadline. */
	if (wire_open_answer(&frame, data) == 0)
		frame_dispatch(lair, message, &frame);
	zmq_msg_close(message);
}

/* ---- reading answers ---- */

/* Whether @call has the answer @reply. */
static bool call_answered(const struct lair_call *call, const struct wire_schema *reply)
{
	return call && call->outcome == 0 && call->reply == reply;
}

#define ANSWER(type, member, message)                                                                              \
	const struct type *type(const struct lair_call *call)                                                      \
	{                                                                                                          \
		return call_answered(call, &message##_schema) ? &call->answer.member : NULL;                       \
	}
#define LIST(function, message)                                                                                    \
	struct lair_items function(const struct lair_call *call)                                                   \
	{                                                                                                          \
		return call_answered(call, &message##_schema) ? call->answer.list                                  \
							      : (struct lair_items){.data = NULL};                 \
	}

ANSWER(lair_daemon, daemon, hello_reply)
ANSWER(lair_session, session, session_info)
ANSWER(lair_result, result, exec_reply)
ANSWER(lair_counters, counters, stats_reply)
ANSWER(lair_detached, detached, detached_reply)
ANSWER(lair_saved, saved, save_reply)
ANSWER(lair_loaded, load.loaded, load_reply)
ANSWER(lair_package_sets, package_sets, packages_reply)
ANSWER(lair_stopped, stopped, stop_reply)
ANSWER(lair_reloaded, reloaded, reload_reply)
ANSWER(lair_state, state, state_reply)
ANSWER(lair_difference, difference, diff_reply)
ANSWER(lair_transfer, transfer, transfer_reply)
ANSWER(lair_listing, listing, files_reply)
ANSWER(lair_piece, piece, get_reply)
ANSWER(lair_completions, completions, complete_reply)
ANSWER(lair_inspection, inspection, inspect_reply)
ANSWER(lair_variables, variables, vars_reply)
ANSWER(lair_checked, checked, check_reply)
ANSWER(lair_waiting_list, waiting, calls_reply)
ANSWER(lair_completeness, completeness, is_complete_reply)
LIST(lair_sessions, list_reply)
LIST(lair_save_list, saves_reply)
LIST(lair_result_list, results_reply)
LIST(lair_checkpoint_list, checkpoints_reply)
LIST(lair_past_cells, history_reply)

uint64_t lair_calls_turn(const struct lair_call *call)
{
	return call_answered(call, &watch_calls_reply_schema) ? call->answer.turn : 0;
}

const struct lair_stray *lair_stray_output(const struct lair_call *call)
{
	return call_answered(call, &stray_reply_schema) ? &call->answer.stray : NULL;
}

const struct lair_effects *lair_reset_effects(const struct lair_call *call)
{
	return call_answered(call, &reset_reply_schema) ? &call->answer.effects : NULL;
}

bool lair_interrupted(const struct lair_call *call)
{
	return call_answered(call, &interrupt_reply_schema) && call->answer.interrupted;
}

const struct lair_ended *lair_load_ended(const struct lair_call *call)
{
	return call_answered(call, &load_reply_schema) ? &call->answer.load.ended : NULL;
}

struct lair_point lair_point(const struct lair_call *call)
{
	return (struct lair_point){call->seen[LAIR_STDOUT], call->seen[LAIR_STDERR], call->displays};
}
