/* liblair against a router of our own in a thread, over the real transport: what the code of an exec says decides
 * how that router misbehaves. */
#include "check.h"

#include "proto/message.h"

#include "lair.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <zmq.h>

#define FLOOD 1000

/* What a daemon of a later build may say. */
#define LATER_REPLY_FIELDS(F, m)                                                                                   \
	EXEC_REPLY_FIELDS(F, m)                                                                                    \
	F(m, RAW, later, OPTIONAL)
#define LATER_ERROR_FIELDS(F, m)                                                                                   \
	ERROR_FIELDS(F, m)                                                                                         \
	F(m, UINT, later, OPTIONAL)
#define LATER_ACT_FIELDS(F, m)                                                                                     \
	BLOCKED_FIELDS(F, m)                                                                                       \
	F(m, STR, later, OPTIONAL)

WIRE_DECLARE(later_reply, ID, LATER_REPLY_FIELDS);
WIRE_DEFINE(later_reply, "reply", ID, LATER_REPLY_FIELDS);
WIRE_DECLARE(later_error, ID, LATER_ERROR_FIELDS);
WIRE_DEFINE(later_error, "error", ID, LATER_ERROR_FIELDS);
WIRE_DECLARE(later_act, NO_ID, LATER_ACT_FIELDS);
WIRE_DEFINE(later_act, "blocked", NO_ID, LATER_ACT_FIELDS);

/* What the next daemon says of itself. */
static const char *instance;
static uint64_t frame_max = 4096;

static char directory[] = "/tmp/lair-unit-XXXXXX", address[64], other_path[64];

/* ---- the router ---- */

struct peer {
	void *socket;
	zmq_msg_t identity;
	uint64_t waiting[16]; /* execs not answered yet */
	size_t n_waiting, n_refused;
	bool gone;
};

static void peer_say_raw(struct peer *peer, const void *data, size_t size)
{
	zmq_msg_t to;

	zmq_msg_init(&to);
	zmq_msg_copy(&to, &peer->identity);
	zmq_msg_send(&to, peer->socket, ZMQ_SNDMORE);
	zmq_send(peer->socket, data, size, 0);
}

static void peer_say(struct peer *peer, const struct wire_schema *schema, const void *message)
{
	msgpack_sbuffer buffer;

	msgpack_sbuffer_init(&buffer);
	wire_encode(&buffer, schema, message);
	peer_say_raw(peer, buffer.data, buffer.size);
	msgpack_sbuffer_destroy(&buffer);
}

static void peer_error(struct peer *peer, uint64_t id, const char *code)
{
	struct error_reply error = {.id = id, .code = bytes_of(code), .message = BYTES("because of a limit")};

	peer_say(peer, &error_reply_schema, &error);
}

static void peer_result(struct peer *peer, uint64_t id, int returncode, struct bytes text)
{
	struct exec_reply reply = {
		.id = id,
		.session = BYTES("a"),
		.cell = 7,
		.returncode = returncode,
		.state = BYTES("kept"),
		.stdout = BYTES("out"),
		.stderr = BYTES(""),
		.text = text,
		.duration_ms = 1.5,
	};

	peer_say(peer, &exec_reply_schema, &reply);
}

static void peer_stream(struct peer *peer, uint64_t id, size_t n)
{
	struct stdout_event event = {.id = id, .data = BYTES("x")};

	for (size_t i = 0; i < n; i++)
		peer_say(peer, &stdout_event_schema, &event);
	event.data = BYTES("oops");
	peer_say(peer, &stderr_event_schema, &event);
	peer_result(peer, id, 0, BYTES("42"));
}

static void peer_later(struct peer *peer, uint64_t id)
{
	const struct later_act act = {.event = BYTES("open"), .reason = BYTES("no"), .later = BYTES("x")};
	struct later_reply reply = {
		.id = id, .cell = 1, .state = BYTES("kept"), .text = BYTES("6"), .later = BYTES("\x91\x01")};
	msgpack_sbuffer acts;

	msgpack_sbuffer_init(&acts);
	wire_put_array(&acts, 1);
	wire_encode_body(&acts, &later_act_schema, &act);
	reply.blocked = wire_bytes(&acts);
	peer_say(peer, &later_reply_schema, &reply);
	msgpack_sbuffer_destroy(&acts);
}

/* As after new connections: everything comes twice. */
static void peer_calls(struct peer *peer, uint64_t id)
{
	struct call_event call = {.id = id, .number = 1, .function = BYTES("f"), .arguments = BYTES("\x80")};
	struct held_event held = {.id = id, .number = 2, .function = BYTES("g"), .arguments = BYTES("\x80")};
	struct cancel_event cancel = {.id = id, .number = 2};

	for (int i = 0; i < 2; i++) {
		peer_say(peer, &call_event_schema, &call);
		peer_say(peer, &held_event_schema, &held);
	}
	for (int i = 0; i < 2; i++)
		peer_say(peer, &cancel_event_schema, &cancel);
	held.number = call.number = 3;
	peer_say(peer, &held_event_schema, &held);
	for (int i = 0; i < 2; i++)
		peer_say(peer, &call_event_schema, &call);
}

/* The first answer is refused. What the cell gets in its place is the cell's result. */
static void peer_return(struct peer *peer, const struct return_request *answer)
{
	struct empty_reply reply = {.id = answer->id};

	if (answer->number == 1 && answer->value.data) {
		peer_error(peer, answer->id, "limit");
	} else if (answer->number == 1) {
		peer_say(peer, &empty_reply_schema, &reply);
		peer_result(peer, answer->exec, 0, answer->text);
	} else {
		CHECK(answer->number == 3 && bytes_is(answer->value, "\x07"));
		peer_error(peer, answer->id, "gone");
	}
}

static void peer_exec(struct peer *peer, const struct exec_request *exec)
{
	struct ask_event ask = {.id = exec->id, .prompt = BYTES("name? "), .password = true};
	struct empty_reply empty = {.id = exec->id};

	if (bytes_is(exec->code, "stream")) {
		peer_stream(peer, exec->id, 3);
	} else if (bytes_is(exec->code, "flood")) {
		peer_stream(peer, exec->id, FLOOD);
	} else if (bytes_is(exec->code, "later")) {
		peer_later(peer, exec->id);
	} else if (bytes_is(exec->code, "refuse later")) {
		peer_say(peer, &later_error_schema,
			 &(struct later_error){
				 .id = exec->id, .code = BYTES("limit"), .message = BYTES("so much"), .later = 1});
	} else if (bytes_is(exec->code, "calls")) {
		peer_calls(peer, exec->id);
	} else if (bytes_is(exec->code, "limit")) {
		peer_error(peer, exec->id, "limit");
	} else if (bytes_is(exec->code, "strange")) {
		peer_error(peer, exec->id, "never heard of");
	} else if (bytes_is(exec->code, "malformed")) {
		peer_say(peer, &empty_reply_schema, &empty);
	} else if (bytes_is(exec->code, "garbage")) {
		peer_say_raw(peer, "\xc1garbage", 8);
		peer_say_raw(peer, "", 0);
		peer_result(peer, exec->id + 1000, 0, BYTES("not yours"));
		peer_result(peer, exec->id, 0, BYTES("yours"));
		peer_result(peer, exec->id, 0, BYTES("twice"));
	} else if (bytes_is(exec->code, "version")) {
		peer_error(peer, 0, "unsupported");
	} else if (bytes_is(exec->code, "last words")) {
		peer_result(peer, exec->id, 0, BYTES("bye"));
		peer->gone = true;
	} else if (bytes_is(exec->code, "die")) {
		peer->gone = true;
	} else if (bytes_is(exec->code, "reverse")) {
		while (peer->n_waiting > 0)
			peer_result(peer, peer->waiting[--peer->n_waiting], 0, BYTES("late"));
		peer_result(peer, exec->id, 0, BYTES("first"));
	} else {
		if (bytes_is(exec->code, "ask") && exec->input)
			peer_say(peer, &ask_event_schema, &ask);
		peer->waiting[peer->n_waiting++ % ARRAY_SIZE(peer->waiting)] = exec->id;
	}
}

static void peer_hear(struct peer *peer, const struct wire_frame *frame)
{
	union {
		uint64_t id;
		struct hello_request hello;
		struct exec_request exec;
		struct input_request input;
		struct return_request returned;
		struct interrupt_request interrupt;
		struct files_request files;
	} request;
	struct wire_fault fault;

	if (bytes_is(frame->type, "hello")) {
		struct hello_reply reply = {.version = 1,
					    .server = BYTES("test"),
					    .pid = 1,
					    .frame_max = frame_max,
					    .instance = bytes_of(instance)};

		CHECK(!wire_decode(&request, &hello_request_schema, frame->body, &fault));
		reply.id = request.id;
		peer_say(peer, &hello_reply_schema, &reply);
	} else if (bytes_is(frame->type, "exec")) {
		CHECK(!wire_decode(&request, &exec_request_schema, frame->body, &fault));
		peer_exec(peer, &request.exec);
	} else if (bytes_is(frame->type, "input")) {
		CHECK(!wire_decode(&request, &input_request_schema, frame->body, &fault));
		peer_result(peer, request.input.exec, 0, request.input.eof ? BYTES("eof") : request.input.text);
	} else if (bytes_is(frame->type, "return")) {
		CHECK(!wire_decode(&request, &return_request_schema, frame->body, &fault));
		peer_return(peer, &request.returned);
	} else if (bytes_is(frame->type, "interrupt")) {
		struct interrupt_reply reply = {.interrupted = true};

		CHECK(!wire_decode(&request, &interrupt_request_schema, frame->body, &fault));
		reply.id = request.id;
		peer_result(peer, request.interrupt.exec, request.interrupt.kill ? 137 : 130,
			    (struct bytes){.data = NULL});
		peer_say(peer, &interrupt_reply_schema, &reply);
	} else if (bytes_is(frame->type, "files")) {
		struct files_reply reply = {.files = BYTES("\x90"), .next = 7};

		CHECK(!wire_decode(&request, &files_request_schema, frame->body, &fault));
		reply.id = request.files.id;
		if (peer->n_refused++ < 3)
			peer_error(peer, reply.id, "limit");
		else
			peer_say(peer, &files_reply_schema, &reply);
	}
}

/* Until it is told to die. */
static void *peer_run(void *path)
{
	void *context = zmq_ctx_new();
	struct peer peer = {.socket = zmq_socket(context, ZMQ_ROUTER)};
	char endpoint[128];
	int zero = 0;

	zmq_setsockopt(peer.socket, ZMQ_SNDHWM, &zero, sizeof(zero));
	snprintf(endpoint, sizeof(endpoint), "ipc://%s", (const char *)path);
	CHECK(zmq_bind(peer.socket, endpoint) == 0);
	zmq_msg_init(&peer.identity);
	while (!peer.gone) {
		struct wire_frame frame;
		zmq_msg_t message;

		zmq_msg_init(&message);
		zmq_msg_recv(&peer.identity, peer.socket, 0);
		zmq_msg_recv(&message, peer.socket, 0);
		CHECK(!wire_open(&frame,
				 (struct bytes){.data = zmq_msg_data(&message), .size = zmq_msg_size(&message)}));
		peer_hear(&peer, &frame);
		zmq_msg_close(&message);
	}
	zmq_msg_close(&peer.identity);
	zmq_close(peer.socket);
	zmq_ctx_term(context);
	return NULL;
}

static bool listening(const char *path)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool yes;

	snprintf(name.sun_path, sizeof(name.sun_path), "%s", path);
	yes = connect(fd, (struct sockaddr *)&name, sizeof(name)) == 0;
	close(fd);
	return yes;
}

static pthread_t peer_start(const char *path)
{
	pthread_t thread;

	pthread_create(&thread, NULL, peer_run, (void *)(uintptr_t)path);
	while (!listening(path))
		usleep(1000);
	return thread;
}

/* ---- what is checked ---- */

static int connected(struct lair **lairp, const char *path, double timeout)
{
	struct lair_options options = {.socket = path, .no_start = true, .timeout = timeout};

	CHECK(lair_new(lairp, &options) == 0);
	return lair_connect(*lairp);
}

static struct lair_call *start(struct lair *lair, const char *code)
{
	struct lair_exec exec = {.session = "a", .code = lair_text(code)};
	struct lair_call *call = NULL;

	CHECK(lair_exec(lair, &call, &exec) == 0);
	return call;
}

static bool same(struct lair_text text, const char *string)
{
	return bytes_is((struct bytes){.data = text.data, .size = text.size}, string);
}

static void check_result(struct lair *lair)
{
	struct lair_call *call = start(lair, "reverse");
	const struct lair_result *result;

	CHECK(lair_result(call) == NULL);
	CHECK(lair_outcome(call) == -EINPROGRESS);
	CHECK(lair_wait(call, 5) == 0 && lair_outcome(call) == 0);
	result = lair_result(call);
	CHECK(result);
	if (!result)
		return;
	CHECK(same(result->session, "a") && result->cell == 7 && result->returncode == 0);
	CHECK(same(result->state, "kept") && !result->cause.data && same(result->out, "out"));
	CHECK(result->err.data && result->err.size == 0 && same(result->text, "first"));
	CHECK(!result->error_name.data && result->duration_ms > 1 && result->duration_ms < 2);
	CHECK(lair_session(call) == NULL && lair_counters(call) == NULL && !lair_interrupted(call));
	lair_call_free(call);
}

/* A daemon of a later build says more than this client knows of. */
static void check_later(struct lair *lair)
{
	struct lair_call *call = start(lair, "later"), *refused = start(lair, "refuse later");
	const struct lair_result *result;
	struct lair_blocked act;
	size_t cursor = 0;

	CHECK(lair_wait(call, 5) == 0);
	result = lair_result(call);
	CHECK(result && same(result->text, "6") && lair_next_blocked(result->blocked, &cursor, &act) &&
	      same(act.reason, "no"));
	CHECK(lair_wait(refused, 5) == LAIR_E_LIMIT && strcmp(lair_error(lair), "so much") == 0);
	lair_call_free(call);
	lair_call_free(refused);
}

static void check_refusals(struct lair *lair)
{
	struct lair_call *call = start(lair, "limit");
	struct lair_exec large = {.code = {.data = calloc(1, 8192), .size = 8192}};

	CHECK(lair_wait(call, 5) == LAIR_E_LIMIT && lair_outcome(call) == LAIR_E_LIMIT);
	CHECK(strcmp(lair_error(lair), "because of a limit") == 0);
	CHECK(strcmp(lair_call_error(call), "because of a limit") == 0 && lair_result(call) == NULL);
	CHECK(strcmp(lair_code(LAIR_E_LIMIT), "limit") == 0);
	lair_call_free(call);
	call = start(lair, "strange");
	CHECK(lair_wait(call, 5) == LAIR_E_INTERNAL);
	lair_call_free(call);
	call = start(lair, "malformed");
	CHECK(lair_wait(call, 5) == LAIR_E_PROTOCOL);
	lair_call_free(call);
	call = NULL;
	CHECK(lair_exec(lair, &call, &large) == LAIR_E_TOO_LARGE && !call && strstr(lair_error(lair), "4096"));
	free((void *)(uintptr_t)large.code.data);
}

static void check_order(struct lair *lair)
{
	struct lair_call *first = start(lair, "wait"), *second = start(lair, "wait"),
			 *forgotten = start(lair, "wait");
	struct lair_call *third;

	lair_call_free(forgotten);
	third = start(lair, "reverse");
	CHECK(lair_wait(first, 5) == 0 && same(lair_result(first)->text, "late"));
	/* Those that came before it are kept. */
	CHECK(lair_outcome(second) == 0);
	CHECK(lair_wait(third, 5) == 0 && lair_wait(second, 0) == 0);
	lair_call_free(first);
	lair_call_free(second);
	lair_call_free(third);
	third = start(lair, "garbage");
	CHECK(lair_wait(third, 5) == 0 && same(lair_result(third)->text, "yours"));
	lair_call_free(third);
}

static struct {
	size_t out, err, done;
} seen;

static void on_output(struct lair_call *call, enum lair_stream stream, struct lair_text data, void *userdata)
{
	CHECK(userdata == &seen && lair_outcome(call) == -EINPROGRESS);
	*(stream == LAIR_STDOUT ? &seen.out : &seen.err) += data.size;
}

static void on_ask(struct lair_call *call, struct lair_text prompt, bool password, void *userdata)
{
	struct lair *lair = *(struct lair **)userdata;
	struct lair_call *input = NULL;

	CHECK(same(prompt, "name? ") && password);
	CHECK(lair_input(lair, &input, call, lair_text("\xff")) == -EILSEQ && !input);
	CHECK(lair_input(lair, &input, call, lair_text("Ada")) == 0);
	lair_call_free(input);
}

static void on_done(struct lair_call *call, void *userdata)
{
	CHECK(userdata == &seen && lair_outcome(call) == 0);
	seen.done++;
	lair_call_free(call);
}

static void check_events(struct lair *lair)
{
	struct lair_exec exec = {.code = lair_text("stream"), .on_output = on_output, .userdata = &seen};
	struct lair_call *call = NULL;

	CHECK(lair_exec(lair, &call, &exec) == 0 && lair_wait(call, 5) == 0);
	CHECK(seen.out == 3 && seen.err == 4 && same(lair_result(call)->text, "42"));
	call = lair_call_free(call);
	exec = (struct lair_exec){.code = lair_text("ask"), .on_ask = on_ask, .userdata = &lair};
	CHECK(lair_exec(lair, &call, &exec) == 0 && lair_wait(call, 5) == 0);
	CHECK(same(lair_result(call)->text, "Ada"));
	lair_call_free(call);
}

static struct {
	size_t calls, held, cancelled;
	struct lair_calling *first;
} told;

static void on_call(struct lair_call *call, struct lair_calling *calling, void *userdata)
{
	(void)call;
	(void)userdata;
	told.calls++;
	CHECK(same(lair_calling_function(calling), "f") && same(lair_calling_arguments(calling), "{}"));
	CHECK(lair_calling_packed(calling).size == 1 && lair_calling_key(calling).size > 2);
	if (lair_calling_number(calling) == 1)
		told.first = calling;
	else
		CHECK(lair_return(calling, lair_text("7")) == 0);
	/* By now all that comes twice has come. */
	if (told.calls == 2) {
		CHECK(lair_return(told.first, lair_text("nonsense")) == -EINVAL);
		CHECK(lair_raise(told.first, "E", "\xff") == -EINVAL);
		CHECK(lair_return(told.first, lair_text(NULL)) == 0);
	}
}

static void on_held(struct lair_call *call, const struct lair_waiting *waiting, void *userdata)
{
	(void)call;
	(void)userdata;
	CHECK(same(waiting->function, "g") && same(waiting->state, "asks") && waiting->bytes == 1);
	told.held++;
}

static void on_cancel(struct lair_call *call, uint64_t number, void *userdata)
{
	(void)call;
	(void)userdata;
	CHECK(number == 2);
	told.cancelled++;
}

/* Each call comes once, however often it is put; an answer that is refused becomes an error. */
static void check_calls(struct lair *lair)
{
	struct lair_function function = {.name = "f", .schema = "{}", .effect = true, .timeout = 1.5};
	struct lair_exec exec = {.code = lair_text("calls"),
				 .functions = &function,
				 .n_functions = 1,
				 .on_call = on_call,
				 .on_held = on_held,
				 .on_cancel = on_cancel};
	struct lair_call *call = NULL;

	CHECK(lair_exec(lair, &call, &exec) == 0 && lair_wait(call, 5) == 0);
	CHECK(told.calls == 2 && told.held == 2 && told.cancelled == 1);
	CHECK(same(lair_result(call)->text, "f could not be answered: because of a limit"));
	call = lair_call_free(call);
	function.doc = "\xff";
	CHECK(lair_exec(lair, &call, &exec) == -EILSEQ && !call);
}

/* What is still with the program when its cell, or the handle, is no more. */
static void check_calls_left(void)
{
	struct lair_exec exec = {.code = lair_text("calls"), .on_call = on_call};
	struct lair_call *call = NULL;
	struct lair *lair = NULL;

	told.first = NULL;
	CHECK(connected(&lair, address, 5) == 0 && lair_exec(lair, &call, &exec) == 0);
	while (!told.first)
		CHECK(lair_wait(call, 0.001) == -ETIMEDOUT);
	CHECK(!lair_calling_cancelled(told.first));
	lair_call_free(call);
	CHECK(lair_calling_cancelled(told.first));
	lair_free(lair);
	CHECK(lair_hold(told.first, "why") == 0 && lair_return_packed(told.first, lair_text("\x91")) == -EINVAL);
	CHECK(lair_return(told.first, lair_text("1")) == 0);
}

/* As a program with an event loop does it: no message may be overlooked, however many come at once. */
static void check_polled(struct lair *lair)
{
	struct pollfd ready = {.fd = lair_fd(lair), .events = POLLIN};
	struct lair_exec exec = {.code = lair_text("flood"), .on_output = on_output, .userdata = &seen};
	struct lair_call *call = NULL, *other;
	size_t turns = 0;

	memset(&seen, 0, sizeof(seen));
	CHECK(lair_exec(lair, &call, &exec) == 0);
	lair_on_done(call, on_done, &seen);
	while (!seen.done && poll(&ready, 1, 5000) == 1 && lair_process(lair) == 0)
		turns++;
	CHECK(seen.out == FLOOD && seen.err == 4 && seen.done == 1 && turns > 1);
	/* Answers that come while we send are not lost either. */
	call = start(lair, "wait");
	other = start(lair, "reverse");
	usleep(50000);
	lair_call_free(start(lair, "reverse"));
	while (lair_outcome(other) == -EINPROGRESS && poll(&ready, 1, 5000) == 1)
		CHECK(lair_process(lair) == 0);
	CHECK(lair_outcome(call) == 0 && lair_outcome(other) == 0);
	lair_call_free(call);
	lair_call_free(other);
}

static void on_alarm(int number)
{
	(void)number;
}

static void check_deadlines(struct lair *lair)
{
	struct itimerval soon = {.it_value = {.tv_usec = 20000}};
	struct sigaction action = {.sa_handler = on_alarm};
	struct lair_call *call = start(lair, "wait"), *cancel = NULL;

	CHECK(lair_wait(call, 0) == -ETIMEDOUT && lair_wait(call, 0.02) == -ETIMEDOUT);
	CHECK(strstr(lair_error(lair), "no answer"));
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &soon, NULL);
	CHECK(lair_wait(call, LAIR_FOREVER) == -EINTR);
	CHECK(lair_cancel(lair, &cancel, call) == 0 && lair_wait(cancel, 5) == 0 && lair_interrupted(cancel));
	CHECK(lair_wait(call, 0) == 0 && lair_result(call)->returncode == 130);
	lair_call_free(call);
	cancel = lair_call_free(cancel);
	call = start(lair, "wait");
	CHECK(lair_kill_cell(lair, &cancel, call) == 0 && lair_wait(cancel, 5) == 0 && lair_interrupted(cancel));
	CHECK(lair_wait(call, 0) == 0 && lair_result(call)->returncode == 137);
	lair_call_free(cancel);
	CHECK(lair_kill(lair, &cancel, "s") == 0 && lair_wait(cancel, 5) == 0);
	lair_call_free(call);
	lair_call_free(cancel);
}

/* Refused while output waits to be read. */
static void check_files(struct lair *lair)
{
	struct lair_files_of files = {.session = "a"};
	struct lair_call *call = NULL;

	CHECK(lair_files(lair, &call, &files) == 0 && lair_wait(call, 5) == 0);
	CHECK(lair_listing(call) && lair_listing(call)->next == 7);
	lair_call_free(call);
}

static void check_loss(struct lair *lair, pthread_t peer)
{
	struct lair_call *call = start(lair, "wait"), *last, *other = start(lair, "wait");
	struct lair_call *refused = NULL;
	struct lair_exec exec = {.code = lair_text("wait")};

	last = start(lair, "last words");
	CHECK(lair_wait(call, LAIR_FOREVER) == LAIR_E_LOST && strstr(lair_error(lair), "is gone"));
	CHECK(lair_outcome(other) == LAIR_E_LOST);
	CHECK(lair_wait(last, 0) == 0 && same(lair_result(last)->text, "bye"));
	CHECK(lair_exec(lair, &refused, &exec) == LAIR_E_LOST && lair_process(lair) == LAIR_E_LOST);
	pthread_join(peer, NULL);
	CHECK(lair_connect(lair) == LAIR_E_NO_DAEMON && lair_fd(lair) == -1);
	lair_call_free(call);
	lair_call_free(other);
	lair_call_free(last);
	/* A new one takes its place: the same handle goes on. */
	peer = peer_start(address);
	CHECK(lair_connect(lair) == 0);
	check_result(lair);
	call = start(lair, "version");
	CHECK(lair_wait(call, 5) == LAIR_E_UNSUPPORTED);
	lair_call_free(call);
	call = start(lair, "die");
	CHECK(lair_wait(call, LAIR_FOREVER) == LAIR_E_LOST);
	lair_call_free(call);
	pthread_join(peer, NULL);
}

/* The next router takes smaller requests than the one that had this: that is said, and nothing else. */
static void check_unsent(void)
{
	static char much[8192];
	struct lair_exec exec = {.session = "a", .code = {.data = much, .size = sizeof(much)}};
	struct lair_call *call = NULL, *killer;
	struct lair *lair = NULL;
	pthread_t peer;

	memset(much, '#', sizeof(much));
	instance = "the same";
	frame_max = 65536;
	peer = peer_start(address);
	CHECK(connected(&lair, address, 5) == 0 && lair_exec(lair, &call, &exec) == 0);
	killer = start(lair, "die");
	pthread_join(peer, NULL);
	frame_max = 4096;
	peer = peer_start(address);
	CHECK(lair_wait(call, 5) == LAIR_E_LOST);
	CHECK(strstr(lair_call_error(call), "frame_size = 4096 is the limit"));
	pthread_join(peer, NULL);
	lair_call_free(call);
	lair_call_free(killer);
	lair_free(lair);
	instance = NULL;
}

static void check_freed_first(void)
{
	pthread_t peer = peer_start(address);
	struct lair *lair = NULL;
	struct lair_call *call, *killer;

	CHECK(connected(&lair, address, 5) == 0);
	call = start(lair, "wait");
	killer = start(lair, "die");
	CHECK(lair_wait(killer, 5) == LAIR_E_LOST);
	lair_call_free(killer);
	lair_free(lair);
	pthread_join(peer, NULL);
	CHECK(lair_outcome(call) == LAIR_E_LOST);
	lair_call_free(call);
}

/* Somebody listens, but is no daemon of ours; or where others could put a socket. */
static void check_strangers(void)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct lair *lair = NULL;

	snprintf(name.sun_path, sizeof(name.sun_path), "%s", other_path);
	CHECK(bind(fd, (struct sockaddr *)&name, sizeof(name)) == 0 && listen(fd, 4) == 0);
	CHECK(connected(&lair, other_path, 0.2) == -ETIMEDOUT && strstr(lair_error(lair), "does not answer"));
	lair_free(lair);
	chmod(directory, 0777);
	CHECK(connected(&lair, other_path, 1) == LAIR_E_DENIED && strstr(lair_error(lair), "others may"));
	lair_free(lair);
	chmod(directory, 0700);
	close(fd);
	CHECK(connected(&lair, other_path, 1) == LAIR_E_NO_DAEMON);
	lair_free(lair);
	unlink(other_path);
	CHECK(connected(&lair, other_path, 1) == LAIR_E_NO_DAEMON && strstr(lair_error(lair), other_path));
	lair_free(lair);
	CHECK(connected(&lair, "/nonexistent/socket", 1) == LAIR_E_NO_DAEMON);
	lair_free(lair);
	lair = NULL;
	CHECK(lair_new(&lair,
		       &(struct lair_options){
			       .socket = "/0123456789012345678901234567890123456789012345678901234567890123456789"
					 "0123456789012345678901234567890123456789"}) == -ENAMETOOLONG &&
	      !lair);
	CHECK(lair_free(NULL) == NULL && lair_call_free(NULL) == NULL);
}

int main(void)
{
	struct lair *lair = NULL;
	pthread_t peer;

	CHECK(mkdtemp(directory) != NULL);
	snprintf(address, sizeof(address), "%s/socket", directory);
	snprintf(other_path, sizeof(other_path), "%s/other", directory);
	peer = peer_start(address);
	CHECK(connected(&lair, address, 5) == 0);
	CHECK(strcmp(lair_socket(lair), address) == 0 && !lair_started(lair) && lair_fd(lair) >= 0);
	check_result(lair);
	check_later(lair);
	check_refusals(lair);
	check_order(lair);
	check_events(lair);
	check_calls(lair);
	check_calls_left();
	check_polled(lair);
	check_deadlines(lair);
	check_files(lair);
	check_loss(lair, peer);
	lair_free(lair);
	check_unsent();
	check_freed_first();
	check_strangers();
	unlink(address);
	CHECK(rmdir(directory) == 0);
	return check_report();
}
