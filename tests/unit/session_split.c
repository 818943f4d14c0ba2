/* A branch at a call, step by step, and what may go wrong at each: the copy is refused, late or lost, somebody
 * ends, an answer comes meanwhile, nothing is left to make it of. Whoever asked is told once, and nothing stays
 * behind. */
#include "check.h"
#include "fakes/stage.h"

#include <stdarg.h>
#include <string.h>

#define SECOND (1000000ULL)

static struct stage stage;
static char told[512], key[64];

static void tell(const char *format, ...) _printf_(1, 2);

static void tell(const char *format, ...)
{
	size_t used = strlen(told);
	va_list args;

	va_start(args, format);
	vsnprintf(told + used, sizeof(told) - used, format, args);
	va_end(args);
}

static void on_message(uint64_t connection, struct bytes message)
{
	struct wire_frame frame;
	struct wire_fault fault;
	struct error_reply error;
	struct session_info info;

	(void)connection;
	if (wire_open_answer(&frame, message)) {
		CHECK(!"a message is a frame");
	} else if (!wire_decode(&error, &error_reply_schema, frame.body, &fault)) {
		tell("error:%.*s ", (int)error.code.size, error.code.data);
	} else if (!wire_decode(&info, &session_info_schema, frame.body, &fault)) {
		tell("opened %.*s ", (int)info.session.size, info.session.data);
		snprintf(key, sizeof(key), "%.*s", (int)info.key.size, info.key.data ? info.key.data : "");
	}
}

static struct bytes offer(void)
{
	static const struct function functions[] = {{.name = BYTES("look")},
						    {.name = BYTES("pay"), .effect = true}};
	static msgpack_sbuffer buffer;

	if (buffer.size > 0)
		return wire_bytes(&buffer);
	wire_put_array(&buffer, ARRAY_SIZE(functions));
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
		wire_encode_body(&buffer, &function_schema, &functions[i]);
	return wire_bytes(&buffer);
}

/* ---- a cell that waits for two calls ---- */

static void call(struct session *session, uint64_t number, const char *function)
{
	static const char nothing[] = "\x80";
	const struct call_message message = {
		.number = number, .function = bytes_of(function), .arguments = {.data = nothing, .size = 1}};

	fake_say(session->live, &call_message_schema, &message);
}

static struct session *calling(void)
{
	struct session *session;

	stage_begin(&stage);
	stage.functions = offer();
	stage.profile.functions = FUNCTIONS_ON;
	stage.profile.calls = stage.profile.calls_at_once = 10;
	stage.profile.call_size = 1 << 20;
	session = stage_open(&stage, "a");
	stage_exec(&stage, session, false, 10 * SECOND);
	call(session, 1, "look");
	call(session, 2, "pay");
	stage_settle(&stage);
	CHECK(session->cell->calls.n == 2);
	told[0] = key[0] = '\0';
	fake_n_orders = 0;
	return session;
}

static void split(struct session *session, const char *name)
{
	struct address address = stage_address(&stage);
	struct operation *operation;

	if (operation_new(&operation, OPERATION_BRANCH, &address, (struct bytes){.data = NULL}))
		abort();
	snprintf(operation->branch, sizeof(operation->branch), "%s", name);
	split_begin(session, operation);
}

static struct session *find(const char *id)
{
	return sessions_find(&stage.sessions, &(struct session_name){.owner = STAGE_OWNER, .id = bytes_of(id)});
}

static void copied(struct session *session, uint64_t serial, uint64_t pid)
{
	const struct frozen_message frozen = {.serial = serial, .pid = pid};

	fake_say(session->live, &frozen_message_schema, &frozen);
}

static void born(struct session *session)
{
	const struct spawned_message spawned = {.serial = session->live->serial, .pid = 9};

	fake_say(session->source, &spawned_message_schema, &spawned);
}

static void answer(struct session *session, uint64_t number, size_t size)
{
	static char value[1 << 20];
	struct call *one = calls_find(&session->cell->calls, number);

	memset(value, 1, sizeof(value));
	session_answer_call(session, one,
			    &(struct returned_message){.error = BYTES("ValueError"), .text = {value, size}},
			    STAGE_OWNER);
}

static size_t sent(const struct session *session, const struct wire_schema *schema)
{
	size_t n = 0;

	for (size_t i = 0; i < fake_n_orders; i++)
		n += fake_orders[i].kind == ORDER_SEND && fake_orders[i].schema == schema &&
		     fake_orders[i].serial == session->live->serial;
	return n;
}

/* Nothing of the family is in flight, and only the live ones and those that are a state are left. */
static void clean(const struct session *session, size_t interpreters)
{
	stage_settle(&stage);
	CHECK(!session->split.operation && session->split.answers.size == 0);
	CHECK(list_size(&session->warden->interpreters) == interpreters);
	stage_end(&stage);
}

static void test_it_goes_well(void)
{
	struct session *session = calling(), *branch;

	split(session, "b");
	CHECK(session->split.copy->loose && !fake_in_flight(session->warden));
	copied(session, session->split.copy->serial, 7);
	branch = find("b");
	CHECK(branch && branch->state == SESSION_RESTORING && session->state == SESSION_BUSY);
	born(branch);
	stage_settle(&stage);
	CHECK(branch->state == SESSION_BUSY && !strcmp(told, "opened b "));
	CHECK(key[0] && !strcmp(key, branch->cell->reply.promise->key));
	CHECK(branch->cell->number == session->cell->number && branch->cell->calls.n == 2);
	CHECK(calls_find(&branch->cell->calls, 1)->state == CALL_OUT);
	CHECK(calls_find(&branch->cell->calls, 2)->state == CALL_ASKS);
	CHECK(session->cell->calls.n == 2 && !branch->source);
	answer(branch, 1, 3);
	CHECK(sent(branch, &returned_message_schema) == 1 && sent(session, &returned_message_schema) == 0);
	clean(session, 2);
}

static void test_answers_meanwhile(void)
{
	struct session *session = calling(), *branch;

	split(session, "b");
	answer(session, 1, 3);
	call(session, 3, "unknown");
	call(session, 4, "look");
	copied(session, session->split.copy->serial, 7);
	branch = find("b");
	CHECK(sent(session, &returned_message_schema) == 2 && sent(branch, &returned_message_schema) == 2);
	CHECK(branch->cell->calls.n == 2 && calls_find(&branch->cell->calls, 4));
	/* It speaks before it is known to live: that has to wait. */
	call(branch, 5, "look");
	CHECK(branch->state == SESSION_RESTORING && !calls_find(&branch->cell->calls, 5));
	born(branch);
	call(branch, 5, "look");
	CHECK(calls_find(&branch->cell->calls, 5) && !calls_find(&session->cell->calls, 5));
	clean(session, 2);
}

static void test_too_many_answers(void)
{
	struct session *session = calling();
	uint64_t serial;

	split(session, "b");
	serial = session->split.copy->serial;
	answer(session, 1, 1 << 19);
	answer(session, 2, 1 << 19);
	stage_settle(&stage);
	CHECK(!strcmp(told, "error:busy ") && session->state == SESSION_BUSY);
	copied(session, serial, 7);
	CHECK(!find("b") && !session->split.copy);
	clean(session, 1);
}

static void test_no_copy(void)
{
	struct session *session = calling();

	split(session, "b");
	copied(session, session->split.copy->serial, 0);
	stage_settle(&stage);
	CHECK(!strcmp(told, "error:unsupported ") && session->state == SESSION_BUSY);
	clean(session, 1);
}

static void test_too_late(void)
{
	struct session *session = calling();
	uint64_t serial;

	split(session, "b");
	serial = session->split.copy->serial;
	stage_wait(&stage, 3 * SECOND);
	CHECK(!strcmp(told, "error:busy ") && session->split.copy);
	copied(session, serial, 7);
	CHECK(!find("b") && !session->split.copy && session->state == SESSION_BUSY);
	clean(session, 1);
}

/* Any state may get the news of a copy that nobody wants any more. */
static void test_the_cell_ends_first(void)
{
	struct session *session = calling();
	const struct done_message done = {.cell = session->cell->number};
	uint64_t serial;

	split(session, "b");
	serial = session->split.copy->serial;
	fake_say(session->live, &done_message_schema, &done);
	stage_settle(&stage);
	CHECK(strstr(told, "error:gone ") && session->state == SESSION_UNSAVED);
	copied(session, serial, 7);
	CHECK(!session->split.copy && session->state == SESSION_UNSAVED && !find("b"));
	clean(session, 1);
}

static void test_somebody_is_killed(void)
{
	struct session *session = calling(), *branch;

	split(session, "b");
	(void)session_interrupt(session, true);
	copied(session, session->split.copy->serial, 7);
	stage_settle(&stage);
	CHECK(!strcmp(told, "error:gone ") && session->state == SESSION_KILLING && !find("b"));
	clean(session, 1);

	session = calling();
	split(session, "b");
	fake_exited(session->warden, session->live->serial, 9, false);
	stage_settle(&stage);
	CHECK(strstr(told, "error:gone ") && !session->split.copy);
	clean(session, 0);

	/* The parent ends while the branch is born, and the branch goes on. */
	session = calling();
	split(session, "b");
	copied(session, session->split.copy->serial, 7);
	branch = find("b");
	session_end(session, "shutdown");
	born(branch);
	stage_settle(&stage);
	CHECK(strstr(told, "opened b ") && branch->state == SESSION_BUSY);
	clean(branch, 1);

	/* The branch is ended, its interpreter is lost, or it never comes. */
	for (int i = 0; i < 3; i++) {
		session = calling();
		split(session, "b");
		copied(session, session->split.copy->serial, 7);
		branch = find("b");
		if (i == 0)
			stage_close(&stage, branch);
		else if (i == 1)
			fake_hang_up(branch->live);
		else
			stage_wait(&stage, 6 * SECOND);
		stage_settle(&stage);
		CHECK(strstr(told, "error:gone ") && !find("b") && session->state == SESSION_BUSY);
		clean(session, 1);
	}
}

static void test_a_reset_on_its_way(void)
{
	struct session *session = calling(), *branch;

	split(session, "b");
	copied(session, session->split.copy->serial, 7);
	branch = find("b");
	stage_reset(&stage, branch);
	born(branch);
	CHECK(branch->state == SESSION_KILLING && session->state == SESSION_BUSY);
	clean(session, 3);

	/* Nobody waits for it any more, and it is lost. */
	session = calling();
	split(session, "b");
	copied(session, session->split.copy->serial, 7);
	branch = find("b");
	stage_reset(&stage, branch);
	fake_hang_up(branch->live);
	CHECK(!find("b") && session->state == SESSION_BUSY);
	clean(session, 1);
}

static void test_the_name_is_taken(void)
{
	struct session *session = calling();

	split(session, "b");
	CHECK(stage_open(&stage, "b") != NULL);
	copied(session, session->split.copy->serial, 7);
	stage_settle(&stage);
	CHECK(!strcmp(told, "error:gone ") && session->state == SESSION_BUSY);
	clean(session, 1);
}

static void test_no_room(void)
{
	struct session *session = calling();

	split(session, "b");
	stage.config.sessions = 1;
	copied(session, session->split.copy->serial, 7);
	stage_settle(&stage);
	CHECK(!strcmp(told, "error:limit ") && session->state == SESSION_BUSY);
	clean(session, 1);
}

/* The nth thing that can fail from then on does. */
static void test_what_fails(void)
{
	struct session *session = calling(), *branch;

	fake_failures = 1;
	fake_failure = -EMFILE;
	split(session, "b");
	stage_settle(&stage);
	CHECK(!strcmp(told, "error:unsupported ") && session->state == SESSION_BUSY);
	clean(session, 1);

	session = calling();
	split(session, "b");
	fake_failures = 1;
	copied(session, session->split.copy->serial, 7);
	stage_settle(&stage);
	CHECK(strstr(told, "error:gone ") && session->state == SESSION_CLOSING);
	fake_failures = 0;
	stage_end(&stage);

	session = calling();
	split(session, "b");
	copied(session, session->split.copy->serial, 7);
	branch = find("b");
	fake_failures = 1;
	born(branch);
	stage_settle(&stage);
	CHECK(strstr(told, "error:gone ") && !find("b") && session->state == SESSION_BUSY);
	fake_failures = 0;
	stage_end(&stage);
}

int main(void)
{
	fake_front_on_message = on_message;
	test_it_goes_well();
	test_answers_meanwhile();
	test_too_many_answers();
	test_no_copy();
	test_too_late();
	test_the_cell_ends_first();
	test_somebody_is_killed();
	test_a_reset_on_its_way();
	test_the_name_is_taken();
	test_no_room();
	test_what_fails();
	return check_report();
}
