/* The table of states and events, cell by cell: a session is brought into each state in the way that it gets there,
 * and each event is put to it. What it does then is in the table below, which has a row for each cell: one without
 * fails, and so does one that does something else. The warden, the interpreters and the clients are fakes. */
#include "check.h"
#include "fakes/states.h"

#include <signal.h>
#include <stdarg.h>
#include <string.h>

static struct stage stage;
/* What came of an event: the state, the orders; what clients were told. */
static char seen[512], told[256];

static void add(char *text, size_t size, const char *format, ...) _printf_(3, 4);

static void add(char *text, size_t size, const char *format, ...)
{
	size_t used = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + used, size - used, format, args);
	va_end(args);
}

#define saw(...) add(seen, sizeof(seen), __VA_ARGS__)
#define tell(...) add(told, sizeof(told), __VA_ARGS__)

/* All final answers but errors are of one type. */
static void tell_answer(struct bytes body)
{
	struct exec_reply reply;
	struct wire_fault fault;

	if (wire_decode(&reply, &exec_reply_schema, body, &fault))
		tell(" answer");
	else
		tell(" %.*s:%.*s", (int)reply.state.size, reply.state.data, (int)reply.cause.size,
		     reply.cause.data ? reply.cause.data : "");
}

static void on_message(uint64_t connection, struct bytes message)
{
	struct error_reply error;
	struct wire_frame frame;
	struct wire_fault fault;

	(void)connection;
	if (wire_open_answer(&frame, message)) {
		CHECK(!"a message is a frame");
		return;
	}
	if (bytes_is(frame.type, exec_reply_schema.type))
		tell_answer(frame.body);
	else if (bytes_is(frame.type, error_reply_schema.type) &&
		 !wire_decode(&error, &error_reply_schema, frame.body, &fault))
		tell(" error:%.*s", (int)error.code.size, error.code.data);
	else
		tell(" %.*s", (int)frame.type.size, frame.type.data);
}

static void saw_orders(void)
{
	for (size_t i = 0; i < fake_n_orders; i++) {
		const struct order *order = &fake_orders[i];

		if (order->kind == ORDER_SEND)
			saw(" send:%s", order->schema->type);
		else if (order->kind == ORDER_SIGNAL)
			saw(" signal:%d", (int)order->number);
		else
			saw(" %s", fake_order_names[order->kind]);
	}
}

/* ---- the events ---- */

static struct done_message done_now;
static struct ask_message ask_now;
static struct call_message call_now;
static struct abandon_message abandon_now;
static struct shown shown_now;
static struct told_message told_now;
static struct frozen_message frozen_now;
static struct spawned_message spawned_now;

static const void *const messages[_SESSION_EVENT_N] = {
	[EVENT_DONE] = &done_now,	[EVENT_ASK] = &ask_now,	      [EVENT_CALL] = &call_now,
	[EVENT_ABANDON] = &abandon_now, [EVENT_DISPLAY] = &shown_now, [EVENT_TOLD] = &told_now,
	[EVENT_FROZEN] = &frozen_now,	[EVENT_SPLIT] = &frozen_now,  [EVENT_SPAWNED] = &spawned_now,
};

/* Each says what would be right to say in that state. */
static void event_put(struct session *session, enum session_event event)
{
	static const char nothing[] = "\x80";
	const struct details details = {.message = messages[event], .why = "it was lost", .status = SIGKILL};

	done_now = (struct done_message){.cell = session->cell ? session->cell->number : 1};
	ask_now = (struct ask_message){.prompt = BYTES("?")};
	call_now = (struct call_message){
		.number = 1, .function = BYTES("f"), .arguments = {.data = nothing, .size = 1}};
	abandon_now = (struct abandon_message){.number = 1};
	shown_now = (struct shown){.data = {.data = nothing, .size = 1}};
	told_now = (struct told_message){.serial = session->n_questions, .refused = BYTES("no")};
	frozen_now = (struct frozen_message){.serial = session->freezing ? session->freezing->serial : 1, .pid = 2};
	spawned_now = (struct spawned_message){.serial = session->live ? session->live->serial : 1, .pid = 3};
	if (event == EVENT_RUN)
		stage_exec(&stage, session, false, 1000000);
	else if (event == EVENT_RESET)
		stage_reset(&stage, session);
	else
		session_event(session, event, &details);
}

/* "!": it is a violation. Then the state, the orders that were given, the answers that went out. */
static const struct {
	enum session_state state;
	enum session_event event;
	const char *is;
} cells[] = {
	{SESSION_STARTING, EVENT_READY, "closing kill"},
	{SESSION_STARTING, EVENT_RUN, "starting"},
	{SESSION_STARTING, EVENT_SIGNALLED, "!closing kill"},
	{SESSION_STARTING, EVENT_DONE, "!closing kill"},
	{SESSION_STARTING, EVENT_ASK, "!closing kill"},
	{SESSION_STARTING, EVENT_CALL, "!closing kill"},
	{SESSION_STARTING, EVENT_ABANDON, "!closing kill"},
	{SESSION_STARTING, EVENT_DISPLAY, "!closing kill"},
	{SESSION_STARTING, EVENT_TOLD, "!closing kill"},
	{SESSION_STARTING, EVENT_DEADLINE, "!closing kill"},
	{SESSION_STARTING, EVENT_LOST, "!closing kill"},
	{SESSION_STARTING, EVENT_CLOSED, "!closing kill"},
	{SESSION_STARTING, EVENT_EXITED, "!closing kill"},
	{SESSION_STARTING, EVENT_SWEPT, "!closing kill"},
	{SESSION_STARTING, EVENT_FROZEN, "!closing kill"},
	{SESSION_STARTING, EVENT_SPLIT, "!closing kill"},
	{SESSION_STARTING, EVENT_SPAWNED, "!closing kill"},
	{SESSION_STARTING, EVENT_RESET, "starting answer"},
	{SESSION_STARTING, EVENT_FULL, "starting"},
	{SESSION_STARTING, EVENT_FILES, "!closing kill"},
	{SESSION_STARTING, EVENT_ANSWERED, "!closing kill"},
	{SESSION_STARTING, EVENT_PROCEED, "starting"},
	{SESSION_STARTING, EVENT_EXPIRED, "closing kill"},
	{SESSION_STARTING, EVENT_END, "closing kill"},
	{SESSION_IDLE, EVENT_READY, "!killing signal:9"},
	{SESSION_IDLE, EVENT_RUN, "busy send:run"},
	{SESSION_IDLE, EVENT_SIGNALLED, "idle"},
	{SESSION_IDLE, EVENT_DONE, "!killing signal:9"},
	{SESSION_IDLE, EVENT_ASK, "!killing signal:9"},
	{SESSION_IDLE, EVENT_CALL, "!killing signal:9"},
	{SESSION_IDLE, EVENT_ABANDON, "!killing signal:9"},
	{SESSION_IDLE, EVENT_DISPLAY, "!killing signal:9"},
	{SESSION_IDLE, EVENT_TOLD, "!killing signal:9"},
	{SESSION_IDLE, EVENT_DEADLINE, "idle"},
	{SESSION_IDLE, EVENT_LOST, "killing signal:9"},
	{SESSION_IDLE, EVENT_CLOSED, "killing"},
	{SESSION_IDLE, EVENT_EXITED, "sweeping discard sweep"},
	{SESSION_IDLE, EVENT_SWEPT, "!killing signal:9"},
	{SESSION_IDLE, EVENT_FROZEN, "!killing signal:9"},
	{SESSION_IDLE, EVENT_SPLIT, "idle"},
	{SESSION_IDLE, EVENT_SPAWNED, "!killing signal:9"},
	{SESSION_IDLE, EVENT_RESET, "killing signal:9 spawn"},
	{SESSION_IDLE, EVENT_FULL, "killing signal:9"},
	{SESSION_IDLE, EVENT_FILES, "!killing signal:9"},
	{SESSION_IDLE, EVENT_ANSWERED, "!killing signal:9"},
	{SESSION_IDLE, EVENT_PROCEED, "idle"},
	{SESSION_IDLE, EVENT_EXPIRED, "closing kill"},
	{SESSION_IDLE, EVENT_END, "closing kill"},
	{SESSION_BUSY, EVENT_READY, "!killing signal:9"},
	{SESSION_BUSY, EVENT_RUN, "busy"},
	{SESSION_BUSY, EVENT_SIGNALLED, "busy"},
	{SESSION_BUSY, EVENT_DONE, "unsaved kept:"},
	{SESSION_BUSY, EVENT_ASK, "busy ask"},
	{SESSION_BUSY, EVENT_CALL, "busy send:returned"},
	{SESSION_BUSY, EVENT_ABANDON, "busy"},
	{SESSION_BUSY, EVENT_DISPLAY, "busy"},
	{SESSION_BUSY, EVENT_TOLD, "!killing signal:9"},
	{SESSION_BUSY, EVENT_DEADLINE, "grace signal:2"},
	{SESSION_BUSY, EVENT_LOST, "killing signal:9"},
	{SESSION_BUSY, EVENT_CLOSED, "killing"},
	{SESSION_BUSY, EVENT_EXITED, "sweeping discard sweep"},
	{SESSION_BUSY, EVENT_SWEPT, "!killing signal:9"},
	{SESSION_BUSY, EVENT_FROZEN, "killing signal:9"},
	{SESSION_BUSY, EVENT_SPLIT, "busy"},
	{SESSION_BUSY, EVENT_SPAWNED, "!killing signal:9"},
	{SESSION_BUSY, EVENT_RESET, "killing signal:9 spawn"},
	{SESSION_BUSY, EVENT_FULL, "killing signal:9"},
	{SESSION_BUSY, EVENT_FILES, "!killing signal:9"},
	{SESSION_BUSY, EVENT_ANSWERED, "!killing signal:9"},
	{SESSION_BUSY, EVENT_PROCEED, "busy"},
	{SESSION_BUSY, EVENT_EXPIRED, "closing kill ended:it was lost"},
	{SESSION_BUSY, EVENT_END, "closing kill ended:it was lost"},
	{SESSION_GRACE, EVENT_READY, "!killing signal:9"},
	{SESSION_GRACE, EVENT_RUN, "grace"},
	{SESSION_GRACE, EVENT_SIGNALLED, "grace"},
	{SESSION_GRACE, EVENT_DONE, "unsaved kept:timeout"},
	{SESSION_GRACE, EVENT_ASK, "grace ask"},
	{SESSION_GRACE, EVENT_CALL, "grace send:returned"},
	{SESSION_GRACE, EVENT_ABANDON, "grace"},
	{SESSION_GRACE, EVENT_DISPLAY, "grace"},
	{SESSION_GRACE, EVENT_TOLD, "!killing signal:9"},
	{SESSION_GRACE, EVENT_DEADLINE, "killing signal:9"},
	{SESSION_GRACE, EVENT_LOST, "killing signal:9"},
	{SESSION_GRACE, EVENT_CLOSED, "killing"},
	{SESSION_GRACE, EVENT_EXITED, "sweeping discard sweep"},
	{SESSION_GRACE, EVENT_SWEPT, "!killing signal:9"},
	{SESSION_GRACE, EVENT_FROZEN, "killing signal:9"},
	{SESSION_GRACE, EVENT_SPLIT, "grace"},
	{SESSION_GRACE, EVENT_SPAWNED, "!killing signal:9"},
	{SESSION_GRACE, EVENT_RESET, "killing signal:9 spawn"},
	{SESSION_GRACE, EVENT_FULL, "killing signal:9"},
	{SESSION_GRACE, EVENT_FILES, "!killing signal:9"},
	{SESSION_GRACE, EVENT_ANSWERED, "!killing signal:9"},
	{SESSION_GRACE, EVENT_PROCEED, "grace"},
	{SESSION_GRACE, EVENT_EXPIRED, "closing kill ended:it was lost"},
	{SESSION_GRACE, EVENT_END, "closing kill ended:it was lost"},
	{SESSION_ANSWERING, EVENT_READY, "!killing signal:9"},
	{SESSION_ANSWERING, EVENT_RUN, "answering"},
	{SESSION_ANSWERING, EVENT_SIGNALLED, "answering"},
	{SESSION_ANSWERING, EVENT_DONE, "!killing signal:9"},
	{SESSION_ANSWERING, EVENT_ASK, "!killing signal:9"},
	{SESSION_ANSWERING, EVENT_CALL, "!killing signal:9"},
	{SESSION_ANSWERING, EVENT_ABANDON, "!killing signal:9"},
	{SESSION_ANSWERING, EVENT_DISPLAY, "!killing signal:9"},
	{SESSION_ANSWERING, EVENT_TOLD, "idle error:bad_request"},
	{SESSION_ANSWERING, EVENT_DEADLINE, "answering signal:2"},
	{SESSION_ANSWERING, EVENT_LOST, "killing signal:9"},
	{SESSION_ANSWERING, EVENT_CLOSED, "killing"},
	{SESSION_ANSWERING, EVENT_EXITED, "sweeping discard sweep error:gone"},
	{SESSION_ANSWERING, EVENT_SWEPT, "!killing signal:9"},
	{SESSION_ANSWERING, EVENT_FROZEN, "!killing signal:9"},
	{SESSION_ANSWERING, EVENT_SPLIT, "answering"},
	{SESSION_ANSWERING, EVENT_SPAWNED, "!killing signal:9"},
	{SESSION_ANSWERING, EVENT_RESET, "killing signal:9 spawn error:gone"},
	{SESSION_ANSWERING, EVENT_FULL, "killing signal:9"},
	{SESSION_ANSWERING, EVENT_FILES, "!killing signal:9"},
	{SESSION_ANSWERING, EVENT_ANSWERED, "idle"},
	{SESSION_ANSWERING, EVENT_PROCEED, "answering"},
	{SESSION_ANSWERING, EVENT_EXPIRED, "closing kill error:gone"},
	{SESSION_ANSWERING, EVENT_END, "closing kill error:gone"},
	{SESSION_UNSAVED, EVENT_READY, "!killing signal:9"},
	{SESSION_UNSAVED, EVENT_RUN, "busy freeze send:run"},
	{SESSION_UNSAVED, EVENT_SIGNALLED, "unsaved"},
	{SESSION_UNSAVED, EVENT_DONE, "!killing signal:9"},
	{SESSION_UNSAVED, EVENT_ASK, "!killing signal:9"},
	{SESSION_UNSAVED, EVENT_CALL, "!killing signal:9"},
	{SESSION_UNSAVED, EVENT_ABANDON, "!killing signal:9"},
	{SESSION_UNSAVED, EVENT_DISPLAY, "!killing signal:9"},
	{SESSION_UNSAVED, EVENT_TOLD, "!killing signal:9"},
	{SESSION_UNSAVED, EVENT_DEADLINE, "freezing freeze"},
	{SESSION_UNSAVED, EVENT_LOST, "killing signal:9"},
	{SESSION_UNSAVED, EVENT_CLOSED, "killing"},
	{SESSION_UNSAVED, EVENT_EXITED, "sweeping discard sweep"},
	{SESSION_UNSAVED, EVENT_SWEPT, "!killing signal:9"},
	{SESSION_UNSAVED, EVENT_FROZEN, "!killing signal:9"},
	{SESSION_UNSAVED, EVENT_SPLIT, "unsaved"},
	{SESSION_UNSAVED, EVENT_SPAWNED, "!killing signal:9"},
	{SESSION_UNSAVED, EVENT_RESET, "freezing freeze"},
	{SESSION_UNSAVED, EVENT_FULL, "killing signal:9"},
	{SESSION_UNSAVED, EVENT_FILES, "!killing signal:9"},
	{SESSION_UNSAVED, EVENT_ANSWERED, "!killing signal:9"},
	{SESSION_UNSAVED, EVENT_PROCEED, "unsaved"},
	{SESSION_UNSAVED, EVENT_EXPIRED, "closing kill"},
	{SESSION_UNSAVED, EVENT_END, "closing kill"},
	{SESSION_FREEZING, EVENT_READY, "!killing signal:9"},
	{SESSION_FREEZING, EVENT_RUN, "busy send:run"},
	{SESSION_FREEZING, EVENT_SIGNALLED, "freezing"},
	{SESSION_FREEZING, EVENT_DONE, "!killing signal:9"},
	{SESSION_FREEZING, EVENT_ASK, "!killing signal:9"},
	{SESSION_FREEZING, EVENT_CALL, "!killing signal:9"},
	{SESSION_FREEZING, EVENT_ABANDON, "!killing signal:9"},
	{SESSION_FREEZING, EVENT_DISPLAY, "!killing signal:9"},
	{SESSION_FREEZING, EVENT_TOLD, "!killing signal:9"},
	{SESSION_FREEZING, EVENT_DEADLINE, "killing signal:9"},
	{SESSION_FREEZING, EVENT_LOST, "killing signal:9"},
	{SESSION_FREEZING, EVENT_CLOSED, "killing"},
	{SESSION_FREEZING, EVENT_EXITED, "sweeping discard discard sweep"},
	{SESSION_FREEZING, EVENT_SWEPT, "!killing signal:9"},
	{SESSION_FREEZING, EVENT_FROZEN, "idle adopt"},
	{SESSION_FREEZING, EVENT_SPLIT, "freezing"},
	{SESSION_FREEZING, EVENT_SPAWNED, "!killing signal:9"},
	{SESSION_FREEZING, EVENT_RESET, "freezing"},
	{SESSION_FREEZING, EVENT_FULL, "killing signal:9"},
	{SESSION_FREEZING, EVENT_FILES, "!killing signal:9"},
	{SESSION_FREEZING, EVENT_ANSWERED, "!killing signal:9"},
	{SESSION_FREEZING, EVENT_PROCEED, "freezing"},
	{SESSION_FREEZING, EVENT_EXPIRED, "closing discard kill"},
	{SESSION_FREEZING, EVENT_END, "closing discard kill"},
	{SESSION_KILLING, EVENT_READY, "!killing"},
	{SESSION_KILLING, EVENT_RUN, "killing"},
	{SESSION_KILLING, EVENT_SIGNALLED, "killing"},
	{SESSION_KILLING, EVENT_DONE, "killing"},
	{SESSION_KILLING, EVENT_ASK, "killing"},
	{SESSION_KILLING, EVENT_CALL, "killing"},
	{SESSION_KILLING, EVENT_ABANDON, "killing"},
	{SESSION_KILLING, EVENT_DISPLAY, "killing"},
	{SESSION_KILLING, EVENT_TOLD, "killing"},
	{SESSION_KILLING, EVENT_DEADLINE, "closing kill ended:interrupt"},
	{SESSION_KILLING, EVENT_LOST, "killing"},
	{SESSION_KILLING, EVENT_CLOSED, "killing"},
	{SESSION_KILLING, EVENT_EXITED, "sweeping discard sweep"},
	{SESSION_KILLING, EVENT_SWEPT, "!killing"},
	{SESSION_KILLING, EVENT_FROZEN, "killing"},
	{SESSION_KILLING, EVENT_SPLIT, "killing"},
	{SESSION_KILLING, EVENT_SPAWNED, "!killing"},
	{SESSION_KILLING, EVENT_RESET, "killing"},
	{SESSION_KILLING, EVENT_FULL, "killing"},
	{SESSION_KILLING, EVENT_FILES, "!killing"},
	{SESSION_KILLING, EVENT_ANSWERED, "killing"},
	{SESSION_KILLING, EVENT_PROCEED, "killing"},
	{SESSION_KILLING, EVENT_EXPIRED, "closing kill ended:it was lost"},
	{SESSION_KILLING, EVENT_END, "closing kill ended:it was lost"},
	{SESSION_SWEEPING, EVENT_READY, "!closing kill ended:violation"},
	{SESSION_SWEEPING, EVENT_RUN, "sweeping"},
	{SESSION_SWEEPING, EVENT_SIGNALLED, "sweeping"},
	{SESSION_SWEEPING, EVENT_DONE, "!closing kill ended:violation"},
	{SESSION_SWEEPING, EVENT_ASK, "!closing kill ended:violation"},
	{SESSION_SWEEPING, EVENT_CALL, "!closing kill ended:violation"},
	{SESSION_SWEEPING, EVENT_ABANDON, "!closing kill ended:violation"},
	{SESSION_SWEEPING, EVENT_DISPLAY, "!closing kill ended:violation"},
	{SESSION_SWEEPING, EVENT_TOLD, "!closing kill ended:violation"},
	{SESSION_SWEEPING, EVENT_DEADLINE, "closing kill ended:internal"},
	{SESSION_SWEEPING, EVENT_LOST, "!closing kill ended:violation"},
	{SESSION_SWEEPING, EVENT_CLOSED, "!closing kill ended:violation"},
	{SESSION_SWEEPING, EVENT_EXITED, "!closing kill ended:violation"},
	{SESSION_SWEEPING, EVENT_SWEPT, "idle spawn rolled_back:interrupt"},
	{SESSION_SWEEPING, EVENT_FROZEN, "!closing kill ended:violation"},
	{SESSION_SWEEPING, EVENT_SPLIT, "!closing kill ended:violation"},
	{SESSION_SWEEPING, EVENT_SPAWNED, "!closing kill ended:violation"},
	{SESSION_SWEEPING, EVENT_RESET, "sweeping"},
	{SESSION_SWEEPING, EVENT_FULL, "sweeping"},
	{SESSION_SWEEPING, EVENT_FILES, "idle spawn rolled_back:interrupt"},
	{SESSION_SWEEPING, EVENT_ANSWERED, "!closing kill ended:violation"},
	{SESSION_SWEEPING, EVENT_PROCEED, "sweeping"},
	{SESSION_SWEEPING, EVENT_EXPIRED, "closing kill ended:it was lost"},
	{SESSION_SWEEPING, EVENT_END, "closing kill ended:it was lost"},
	{SESSION_RESTORING, EVENT_READY, "!idle discard discard spawn rolled_back:interrupt"},
	{SESSION_RESTORING, EVENT_RUN, "restoring"},
	{SESSION_RESTORING, EVENT_SIGNALLED, "restoring"},
	{SESSION_RESTORING, EVENT_DONE, "!idle discard discard spawn rolled_back:interrupt"},
	{SESSION_RESTORING, EVENT_ASK, "!idle discard discard spawn rolled_back:interrupt"},
	{SESSION_RESTORING, EVENT_CALL, "!idle discard discard spawn rolled_back:interrupt"},
	{SESSION_RESTORING, EVENT_ABANDON, "!idle discard discard spawn rolled_back:interrupt"},
	{SESSION_RESTORING, EVENT_DISPLAY, "!idle discard discard spawn rolled_back:interrupt"},
	{SESSION_RESTORING, EVENT_TOLD, "!idle discard discard spawn rolled_back:interrupt"},
	{SESSION_RESTORING, EVENT_DEADLINE, "idle discard discard spawn rolled_back:interrupt"},
	{SESSION_RESTORING, EVENT_LOST, "idle discard discard spawn rolled_back:interrupt"},
	{SESSION_RESTORING, EVENT_CLOSED, "idle discard discard spawn rolled_back:interrupt"},
	{SESSION_RESTORING, EVENT_EXITED, "!idle discard discard spawn rolled_back:interrupt"},
	{SESSION_RESTORING, EVENT_SWEPT, "!idle discard discard spawn rolled_back:interrupt"},
	{SESSION_RESTORING, EVENT_FROZEN, "!idle discard discard spawn rolled_back:interrupt"},
	{SESSION_RESTORING, EVENT_SPLIT, "!idle discard discard spawn rolled_back:interrupt"},
	{SESSION_RESTORING, EVENT_SPAWNED, "idle adopt rolled_back:interrupt"},
	{SESSION_RESTORING, EVENT_RESET, "restoring"},
	{SESSION_RESTORING, EVENT_FULL, "restoring"},
	{SESSION_RESTORING, EVENT_FILES, "!idle discard discard spawn rolled_back:interrupt"},
	{SESSION_RESTORING, EVENT_ANSWERED, "!idle discard discard spawn rolled_back:interrupt"},
	{SESSION_RESTORING, EVENT_PROCEED, "restoring"},
	{SESSION_RESTORING, EVENT_EXPIRED, "closing kill ended:it was lost"},
	{SESSION_RESTORING, EVENT_END, "closing kill ended:it was lost"},
	{SESSION_CLOSING, EVENT_READY, "closing"},
	{SESSION_CLOSING, EVENT_RUN, "closing error:gone"},
	{SESSION_CLOSING, EVENT_SIGNALLED, "closing"},
	{SESSION_CLOSING, EVENT_DONE, "closing"},
	{SESSION_CLOSING, EVENT_ASK, "closing"},
	{SESSION_CLOSING, EVENT_CALL, "closing"},
	{SESSION_CLOSING, EVENT_ABANDON, "closing"},
	{SESSION_CLOSING, EVENT_DISPLAY, "closing"},
	{SESSION_CLOSING, EVENT_TOLD, "closing"},
	{SESSION_CLOSING, EVENT_DEADLINE, "closing"},
	{SESSION_CLOSING, EVENT_LOST, "closing"},
	{SESSION_CLOSING, EVENT_CLOSED, "closing"},
	{SESSION_CLOSING, EVENT_EXITED, "closing"},
	{SESSION_CLOSING, EVENT_SWEPT, "closing answer"},
	{SESSION_CLOSING, EVENT_FROZEN, "closing"},
	{SESSION_CLOSING, EVENT_SPLIT, "closing"},
	{SESSION_CLOSING, EVENT_SPAWNED, "closing"},
	{SESSION_CLOSING, EVENT_RESET, "closing error:gone"},
	{SESSION_CLOSING, EVENT_FULL, "closing"},
	{SESSION_CLOSING, EVENT_FILES, "closing"},
	{SESSION_CLOSING, EVENT_ANSWERED, "closing"},
	{SESSION_CLOSING, EVENT_PROCEED, "closing"},
	{SESSION_CLOSING, EVENT_EXPIRED, "closing"},
	{SESSION_CLOSING, EVENT_END, "closing"},
};

/* NULL: nobody has said. */
static const char *expected(enum session_state state, enum session_event event)
{
	for (size_t i = 0; i < ARRAY_SIZE(cells); i++)
		if (cells[i].state == state && cells[i].event == event)
			return cells[i].is;
	return NULL;
}

static const char *look(enum session_state state, enum session_event event)
{
	struct session *session;
	unsigned violations;

	stage_begin(&stage);
	session = state_enter(&stage, state);
	CHECK(session && session->state == state);
	stage_settle(&stage);
	fake_n_orders = 0;
	seen[0] = told[0] = '\0';
	violations = fake_log_violations;
	event_put(session, event);
	saw("%s%s", fake_log_violations != violations ? "!" : "", state_name(session->state));
	saw_orders();
	stage_settle(&stage);
	saw("%s", told);
	return seen;
}

/* What was to be fresh is no more. */
static void test_an_end_before_a_reset(void)
{
	struct session *session;

	stage_begin(&stage);
	session = state_enter(&stage, SESSION_IDLE);
	stage_settle(&stage);
	stage_reset(&stage, session);
	CHECK(session->state == SESSION_KILLING);
	seen[0] = told[0] = '\0';
	session_end(session, "hard_ttl");
	stage_settle(&stage);
	CHECK(strstr(told, "error:gone") != NULL);
	stage_end(&stage);
}

/* It was not run: that its time is over, too, is of no use to whoever asked. */
static void test_forbidden_after_its_time(void)
{
	struct session *session;

	stage_begin(&stage);
	session = state_enter(&stage, SESSION_GRACE);
	stage_settle(&stage);
	done_now = (struct done_message){.cell = session->cell->number, .cause = BYTES("forbidden")};
	seen[0] = told[0] = '\0';
	session_event(session, EVENT_DONE, &(struct details){.done = &done_now});
	stage_settle(&stage);
	CHECK(strstr(told, "kept:forbidden") != NULL);
	stage_end(&stage);
}

int main(void)
{
	unsigned n = 0;

	fake_front_on_message = on_message;
	test_forbidden_after_its_time();
	test_an_end_before_a_reset();
	for (int state = 0; state < _SESSION_STATE_N; state++)
		for (int event = 0; event < _SESSION_EVENT_N; event++) {
			const char *should = expected((enum session_state)state, (enum session_event)event);
			const char *is = look((enum session_state)state, (enum session_event)event);
			bool same = should && !strcmp(is, should);

			if (!same)
				fprintf(stderr, "%s, event %d: \"%s\", not \"%s\"\n",
					state_name((enum session_state)state), event, is, should ? should : "");
			CHECK(same);
			n += should != NULL;
			stage_end(&stage);
		}
	printf("%u cells\n", n);
	return check_report();
}
