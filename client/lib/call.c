/* Calls: requests and their outcomes. A call is on its handle's list exactly while it has no outcome. */
#include "handle.h"
#include "options.h"

#include <stdio.h>
#include <sys/random.h>

static const struct {
	int error;
	const char *code;
} codes[] = {
	{LAIR_E_NO_SESSION, "no_session"},
	{LAIR_E_BUSY, "busy"},
	{LAIR_E_LIMIT, "limit"},
	{LAIR_E_BAD_REQUEST, "bad_request"},
	{LAIR_E_TOO_LARGE, "too_large"},
	{LAIR_E_DENIED, "denied"},
	{LAIR_E_GONE, "gone"},
	{LAIR_E_UNSUPPORTED, "unsupported"},
	{LAIR_E_INTERNAL, "internal"},
	{LAIR_E_SETTINGS, "settings"},
	{LAIR_E_NO_FILE, "no_file"},
	{LAIR_E_NO_DAEMON, "no_daemon"},
	{LAIR_E_START, "start"},
	{LAIR_E_LOST, "lost"},
	{LAIR_E_PROTOCOL, "protocol"},
	{-ETIMEDOUT, "timeout"},
};

const char *lair_code(int error)
{
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		if (codes[i].error == error)
			return codes[i].code;
	return "error";
}

int lair_error_of(struct bytes code)
{
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		if (bytes_is(code, codes[i].code))
			return codes[i].error;
	return LAIR_E_INTERNAL;
}

/* ---- life ---- */

struct lair_call *call_new(struct lair *lair, const struct wire_schema *reply)
{
	struct lair_call *call = calloc(1, sizeof(*call));

	if (!call)
		return NULL;
	call->lair = lair;
	call->id = ++lair->last_id;
	call->outcome = -EINPROGRESS;
	call->reply = reply;
	zmq_msg_init(&call->frame);
	msgpack_sbuffer_init(&call->request);
	call->previous = lair->last;
	if (lair->last)
		lair->last->next = call;
	else
		lair->first = call;
	lair->last = call;
	return call;
}

static void call_unlink(struct lair_call *call)
{
	struct lair *lair = call->lair;

	if (call->previous)
		call->previous->next = call->next;
	else
		lair->first = call->next;
	if (call->next)
		call->next->previous = call->previous;
	else
		lair->last = call->previous;
	call->previous = call->next = NULL;
}

static struct lair_call *call_destroy(struct lair_call *call)
{
	if (call->outcome == -EINPROGRESS)
		call_unlink(call);
	callings_end(call);
	zmq_msg_close(&call->frame);
	msgpack_sbuffer_destroy(&call->request);
	free(call->error);
	free(call->setting);
	free(call);
	return NULL;
}

/* If a request changes something, it must be done, even if nobody wants its answer. So its call stays until the
 * answer comes. */
struct lair_call *lair_call_free(struct lair_call *call)
{
	if (!call)
		return NULL;
	if (call->outcome != -EINPROGRESS || !call->keyed)
		return call_destroy(call);
	callings_end(call);
	call->forgotten = true;
	call->on_done = NULL;
	call->exec = (struct lair_exec){.session = NULL};
	return NULL;
}

void call_end(struct lair_call *call, int outcome, struct bytes sentence)
{
	call_unlink(call);
	callings_end(call);
	call->outcome = outcome;
	msgpack_sbuffer_destroy(&call->request);
	msgpack_sbuffer_init(&call->request);
	if (call->forgotten) {
		call_destroy(call);
		return;
	}
	if (sentence.data)
		call->error = strndup(sentence.data, sentence.size);
	if (call->on_done)
		call->on_done(call, call->userdata);
}

int lair_outcome(const struct lair_call *call)
{
	return call->outcome;
}

const char *lair_call_error(const struct lair_call *call)
{
	return call->error ? call->error : "";
}

const char *lair_call_setting(const struct lair_call *call)
{
	return call->setting ? call->setting : "";
}

void lair_on_done(struct lair_call *call, void (*on_done)(struct lair_call *call, void *userdata), void *userdata)
{
	call->on_done = on_done;
	call->userdata = userdata;
}

/* ---- sending requests ---- */

#define KEY_SIZE 32

static struct bytes *key_of(const struct wire_schema *schema, void *request)
{
	for (size_t i = 0; i < schema->n_fields; i++)
		if (bytes_is(schema->fields[i].name, "key"))
			return (struct bytes *)((char *)request + schema->fields[i].offset);
	return NULL;
}

/* A key that nobody else ever has, or can guess. The kernel is asked once for several. */
static int key_make(char key[static KEY_SIZE + 1], struct lair *lair)
{
	static const char digits[] = "0123456789abcdef";

	if (lair->n_random < KEY_SIZE / 2) {
		if (getrandom(lair->random, sizeof(lair->random), 0) != sizeof(lair->random))
			return -errno;
		lair->n_random = sizeof(lair->random);
	}
	for (size_t i = 0; i < KEY_SIZE; i += 2) {
		unsigned char byte = lair->random[--lair->n_random];

		lair->random[lair->n_random] = 0;
		key[i] = digits[byte >> 4];
		key[i + 1] = digits[byte & 15];
	}
	key[KEY_SIZE] = '\0';
	return 0;
}

/* Fills in the id, with which every request begins. A request that changes something gets a key, too, so that it
 * can be sent again if nobody knows whether it was done. */
int call_start(struct lair_call **callp, struct lair *lair, const struct wire_schema *schema, void *request,
	       const struct wire_schema *reply)
{
	struct lair_call *call = call_new(lair, reply);
	struct bytes *slot = schema == &attach_request_schema ? NULL : key_of(schema, request);
	char key[KEY_SIZE + 1];
	int r = 0;

	if (!call)
		return lair_fail(lair, -ENOMEM, "out of memory");
	*(uint64_t *)request = call->id;
	call->asked = schema;
	call->keyed = slot != NULL;
	if (slot && !slot->data) {
		r = key_make(key, lair);
		*slot = bytes_of(key);
	}
	if (!r)
		r = wire_encode(&call->request, schema, request);
	if (r)
		lair_fail(lair, r, "%s", strerror(-r));
	else
		r = handle_send(lair, call);
	if (r)
		call_destroy(call);
	else
		*callp = call;
	return r;
}

int lair_hello(struct lair *lair, struct lair_call **callp)
{
	struct hello_request request = {.client = BYTES("liblair " LAIR_VERSION)};

	return call_start(callp, lair, &hello_request_schema, &request, &hello_reply_schema);
}

int lair_open(struct lair *lair, struct lair_call **callp, const char *session, const char *profile)
{
	return lair_open_with(lair, callp, session, profile, NULL);
}

int lair_open_with(struct lair *lair, struct lair_call **callp, const char *session, const char *profile,
		   const char *const *settings)
{
	struct open_request request = {.session = bytes_of(session), .profile = bytes_of(profile)};
	msgpack_sbuffer list;
	int r;

	msgpack_sbuffer_init(&list);
	r = strings_put(&list, settings);
	request.settings = wire_bytes(&list);
	if (r)
		r = lair_fail(lair, r, "%s", strerror(-r));
	else
		r = call_start(callp, lair, &open_request_schema, &request, &session_info_schema);
	msgpack_sbuffer_destroy(&list);
	return r;
}

/* The offered functions in the form of the protocol. The caller destroys the buffer. */
static int functions_put(msgpack_sbuffer *buffer, const struct lair_exec *exec)
{
	int r = exec->functions ? wire_put_array(buffer, exec->n_functions) : 0;

	for (size_t i = 0; exec->functions && !r && i < exec->n_functions; i++) {
		const struct lair_function *offered = &exec->functions[i];
		const struct function function = {
			.name = bytes_of(offered->name),
			.schema = bytes_of(offered->schema),
			.returns = bytes_of(offered->returns),
			.doc = bytes_of(offered->doc),
			.effect = offered->effect,
			.ask = offered->ask,
			.caution = offered->caution,
			.timeout = offered->timeout,
			.server = bytes_of(offered->server),
			.tool = bytes_of(offered->tool),
		};

		if (!utf8_valid(function.name) || !utf8_valid(function.schema) || !utf8_valid(function.returns) ||
		    !utf8_valid(function.doc) || !utf8_valid(function.server) || !utf8_valid(function.tool))
			return -EILSEQ;
		r = wire_encode_body(buffer, &function_schema, &function);
	}
	return r;
}

int lair_exec(struct lair *lair, struct lair_call **callp, const struct lair_exec *exec)
{
	struct exec_request request = {
		.code = bytes_from(exec->code),
		.stream = exec->on_output != NULL,
		.input = exec->on_ask != NULL,
	};
	msgpack_sbuffer lists[EXEC_OPTIONS_MAX] = {{.size = 0}}, functions;
	int r;

	msgpack_sbuffer_init(&functions);
	r = functions_put(&functions, exec);
	request.functions = wire_bytes(&functions);
	if (!r)
		r = exec_options_put(&request, lists, exec);
	if (!r)
		r = call_start(callp, lair, &exec_request_schema, &request,
			       exec->detach ? &detached_reply_schema : &exec_reply_schema);
	msgpack_sbuffer_destroy(&functions);
	for (size_t i = 0; i < EXEC_OPTIONS_MAX; i++)
		msgpack_sbuffer_destroy(&lists[i]);
	if (!r)
		(*callp)->exec = (struct lair_exec){
			.on_output = exec->on_output,
			.on_display = exec->on_display,
			.on_alive = exec->on_alive,
			.on_ask = exec->on_ask,
			.on_call = exec->on_call,
			.on_cancel = exec->on_cancel,
			.on_held = exec->on_held,
			.userdata = exec->userdata,
		};
	return r;
}

int lair_attach(struct lair *lair, struct lair_call **callp, const struct lair_attach *attach)
{
	struct attach_request request = {
		.session = bytes_of(attach->session),
		.cell = attach->cell,
		.key = bytes_of(attach->key),
		.stdout = attach->from.out,
		.stderr = attach->from.err,
		.displays = attach->from.displays,
		.stream = attach->on_output != NULL,
		.input = attach->on_ask != NULL,
		.calls = attach->on_call != NULL,
	};
	int r;

	r = call_start(callp, lair, &attach_request_schema, &request, &exec_reply_schema);
	if (r)
		return r;
	(*callp)->seen[LAIR_STDOUT] = attach->from.out;
	(*callp)->seen[LAIR_STDERR] = attach->from.err;
	(*callp)->displays = attach->from.displays;
	(*callp)->exec = (struct lair_exec){
		.on_output = attach->on_output,
		.on_display = attach->on_display,
		.on_alive = attach->on_alive,
		.on_ask = attach->on_ask,
		.on_call = attach->on_call,
		.on_cancel = attach->on_cancel,
		.on_held = attach->on_held,
		.userdata = attach->userdata,
	};
	return 0;
}

#define SESSION_REQUEST(function, verb, reply)                                                                     \
	int function(struct lair *lair, struct lair_call **callp, const char *session)                             \
	{                                                                                                          \
		struct verb##_request request = {.session = bytes_of(session)};                                    \
                                                                                                                   \
		return call_start(callp, lair, &verb##_request_schema, &request, &reply##_schema);                 \
	}
#define REQUEST(function, verb, reply)                                                                             \
	int function(struct lair *lair, struct lair_call **callp)                                                  \
	{                                                                                                          \
		struct verb##_request request = {.id = 0};                                                         \
                                                                                                                   \
		return call_start(callp, lair, &verb##_request_schema, &request, &reply##_schema);                 \
	}

SESSION_REQUEST(lair_results, results, results_reply)
SESSION_REQUEST(lair_interrupt, interrupt, interrupt_reply)
SESSION_REQUEST(lair_reset, reset, reset_reply)
SESSION_REQUEST(lair_shutdown, shutdown, empty_reply)
SESSION_REQUEST(lair_save, save, save_reply)
SESSION_REQUEST(lair_load, load, load_reply)
SESSION_REQUEST(lair_saves, saves, saves_reply)
SESSION_REQUEST(lair_unsave, unsave, empty_reply)
SESSION_REQUEST(lair_info, info, session_info)
SESSION_REQUEST(lair_checkpoints, checkpoints, checkpoints_reply)
REQUEST(lair_stop, stop, stop_reply)
REQUEST(lair_reload, reload, reload_reply)
REQUEST(lair_list, list, list_reply)
REQUEST(lair_stats, stats, stats_reply)

int lair_input(struct lair *lair, struct lair_call **callp, const struct lair_call *exec, struct lair_text line)
{
	struct input_request request = {
		.exec = exec->id, .text = bytes_from(line), .eof = !line.data, .number = exec->asks};

	/* The daemon would refuse the line, and the cell would still wait. */
	if (line.data && !utf8_valid(request.text))
		return lair_fail(lair, -EILSEQ, "a line of input is not UTF-8");
	return call_start(callp, lair, &input_request_schema, &request, &empty_reply_schema);
}

int lair_cancel(struct lair *lair, struct lair_call **callp, const struct lair_call *exec)
{
	struct interrupt_request request = {.exec = exec->id};

	return call_start(callp, lair, &interrupt_request_schema, &request, &interrupt_reply_schema);
}

int lair_kill(struct lair *lair, struct lair_call **callp, const char *session)
{
	struct interrupt_request request = {.session = bytes_of(session), .kill = true};

	return call_start(callp, lair, &interrupt_request_schema, &request, &interrupt_reply_schema);
}

int lair_kill_cell(struct lair *lair, struct lair_call **callp, const struct lair_call *exec)
{
	struct interrupt_request request = {.exec = exec->id, .kill = true};

	return call_start(callp, lair, &interrupt_request_schema, &request, &interrupt_reply_schema);
}

int lair_stay(struct lair *lair, struct lair_call **callp, const char *session, uint64_t birth)
{
	struct info_request request = {.session = bytes_of(session), .birth = birth, .stay = true};

	return call_start(callp, lair, &info_request_schema, &request, &session_info_schema);
}

int lair_packages(struct lair *lair, struct lair_call **callp, bool prune)
{
	struct packages_request request = {.prune = prune};

	return call_start(callp, lair, &packages_request_schema, &request, &packages_reply_schema);
}

int lair_checkpoint(struct lair *lair, struct lair_call **callp, const char *session, const char *name)
{
	struct checkpoint_request request = {.session = bytes_of(session), .name = bytes_of(name)};

	return call_start(callp, lair, &checkpoint_request_schema, &request, &state_reply_schema);
}

int lair_restore(struct lair *lair, struct lair_call **callp, const char *session, const char *name,
		 bool keep_files)
{
	struct restore_request request = {
		.session = bytes_of(session), .name = bytes_of(name), .keep_files = keep_files};

	return call_start(callp, lair, &restore_request_schema, &request, &state_reply_schema);
}

int lair_drop(struct lair *lair, struct lair_call **callp, const char *session, const char *name)
{
	struct drop_request request = {.session = bytes_of(session), .name = bytes_of(name)};

	return call_start(callp, lair, &drop_request_schema, &request, &empty_reply_schema);
}

int lair_undo(struct lair *lair, struct lair_call **callp, const char *session, uint64_t n, bool keep_files)
{
	struct undo_request request = {.session = bytes_of(session), .n = n, .keep_files = keep_files};

	return call_start(callp, lair, &undo_request_schema, &request, &state_reply_schema);
}

int lair_branch(struct lair *lair, struct lair_call **callp, const struct lair_branch *branch)
{
	struct branch_request request = {
		.session = bytes_of(branch->session),
		.branch = bytes_of(branch->branch),
		.origin = bytes_of(branch->from),
		.files = branch->files,
		.share = branch->share,
		.at_call = branch->at_call,
	};

	return call_start(callp, lair, &branch_request_schema, &request, &session_info_schema);
}

int lair_diff(struct lair *lair, struct lair_call **callp, const char *session, const char *since,
	      const char *until)
{
	struct diff_request request = {
		.session = bytes_of(session), .since = bytes_of(since), .until = bytes_of(until)};

	return call_start(callp, lair, &diff_request_schema, &request, &diff_reply_schema);
}

int lair_files(struct lair *lair, struct lair_call **callp, const struct lair_files_of *files)
{
	struct files_request request = {
		.session = bytes_of(files->session),
		.path = bytes_from(files->path),
		.host = files->host,
		.after = files->after,
	};

	return call_start(callp, lair, &files_request_schema, &request, &files_reply_schema);
}

int lair_get(struct lair *lair, struct lair_call **callp, const struct lair_get *get)
{
	struct get_request request = {
		.session = bytes_of(get->session),
		.path = bytes_from(get->path),
		.offset = get->offset,
		.size = get->size,
		.file = get->file,
	};

	return call_start(callp, lair, &get_request_schema, &request, &get_reply_schema);
}

int lair_put(struct lair *lair, struct lair_call **callp, const struct lair_put *put)
{
	struct put_request request = {
		.session = bytes_of(put->session),
		.path = bytes_from(put->path),
		.transfer = put->transfer,
		.offset = put->offset,
		.data = bytes_from(put->data),
		.mode = put->mode,
		.more = put->more,
		.directory = put->directory,
	};

	return call_start(callp, lair, &put_request_schema, &request, &transfer_reply_schema);
}

int lair_copy_in(struct lair *lair, struct lair_call **callp, const struct lair_copy_in *copy)
{
	struct copy_in_request request = {
		.session = bytes_of(copy->session),
		.source = bytes_from(copy->source),
		.path = bytes_from(copy->path),
		.transfer = copy->transfer,
	};

	return call_start(callp, lair, &copy_in_request_schema, &request, &transfer_reply_schema);
}
