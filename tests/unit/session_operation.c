/* Checkpoint, restore, undo, branch and drop, each begun over each kind of history: what whoever asks is told, and
 * which state lives then. The warden and the interpreters are fakes that do at once as they are told; an
 * interpreter's state is the number of the last cell that it has run. */
#include "check.h"
#include "fakes/stage.h"

#include <signal.h>
#include <stdarg.h>
#include <string.h>

#define SERIALS_MAX 64

static struct stage stage;
static struct warden *warden;
static uint64_t state_of[SERIALS_MAX]; /* by the serial of the interpreter */
static bool threads;		       /* a freeze is refused */
static bool dies;		       /* the session dies as soon as something is ordered of it */
static char told[512];

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
	struct state_reply state;
	struct session_info info;

	(void)connection;
	if (wire_open_answer(&frame, message))
		CHECK(!"a message is a frame");
	else if (!wire_decode(&error, &error_reply_schema, frame.body, &fault))
		tell("error:%.*s ", (int)error.code.size, error.code.data);
	else if (!wire_decode(&state, &state_reply_schema, frame.body, &fault))
		tell("at %llu%s%.*s ", (unsigned long long)state.cell, state.name.size ? " " : "",
		     (int)state.name.size, state.name.size ? state.name.data : "");
	else if (!wire_decode(&info, &session_info_schema, frame.body, &fault))
		tell("opened %.*s ", (int)info.session.size, info.session.data);
	else if (bytes_is(frame.type, empty_reply_schema.type))
		tell("ok ");
	else if (!bytes_is(frame.type, exec_reply_schema.type))
		tell("%.*s ", (int)frame.type.size, frame.type.data);
}

/* ---- the cage, which does at once as it is told ---- */

static void ordered(const struct order *order)
{
	struct interpreter *source = fake_interpreter(warden, order->source);
	struct interpreter *one = fake_interpreter(warden, order->serial);
	struct frozen_message frozen = {.serial = order->serial, .pid = 1000 + order->serial};
	const struct spawned_message spawned = {.serial = order->serial, .pid = 1000 + order->serial};
	const struct done_message done = {.cell = order->number};

	switch (order->kind) {
	case ORDER_SEND:
		if (order->schema == &run_message_schema && one) {
			state_of[order->serial] = order->number;
			fake_say(one, &done_message_schema, &done);
		}
		break;
	case ORDER_FREEZE:
		if (threads)
			frozen = (struct frozen_message){.serial = order->serial, .reason = BYTES("threads")};
		state_of[order->serial] = state_of[order->source];
		if (source)
			fake_say(source, &frozen_message_schema, &frozen);
		break;
	case ORDER_THAW:
		state_of[order->serial] = state_of[order->source];
		if (source)
			fake_say(source, &spawned_message_schema, &spawned);
		break;
	case ORDER_SIGNAL:
		fake_signalled(warden, order->serial);
		if (order->number == SIGKILL)
			fake_exited(warden, order->serial, SIGKILL, false);
		break;
	case ORDER_SWEEP:
		fake_swept(warden);
		break;
	case ORDER_SPAWN:
	case ORDER_ADOPT:
	case ORDER_DISCARD:
	case ORDER_KILL:
	case _ORDER_N:
		break;
	}
}

static void obey_all(void)
{
	for (unsigned turns = 0; turns < 100 && fake_n_orders > 0; turns++) {
		struct order orders[16];
		size_t n = MIN(fake_n_orders, ARRAY_SIZE(orders));

		memcpy(orders, fake_orders, n * sizeof(*orders));
		fake_n_orders = 0;
		if (dies) {
			fake_gone(warden);
			break;
		}
		for (size_t i = 0; i < n; i++)
			ordered(&orders[i]);
		stage_settle(&stage);
	}
	stage_settle(&stage);
}

/* ---- histories, a letter a step ---- */

static void step(struct session *session, char letter)
{
	char name[2] = {letter, '\0'};

	threads = letter == 't';
	switch (letter) {
	case 'r': /* a cell runs, and its state is saved */
	case 't': /* a cell runs, and its state cannot be */
		stage_exec(&stage, session, false, 1000000);
		obey_all();
		stage_wait(&stage, 1000);
		break;
	case 'u':
		stage_operate(&stage, session, OPERATION_UNDO, NULL, NULL, 1);
		break;
	default: /* the state gets that name */
		stage_operate(&stage, session, OPERATION_CHECKPOINT, name, NULL, 0);
	}
	obey_all();
}

/* ---- the table ---- */

static const struct {
	const char *history;
	enum operation_kind kind;
	const char *name; /* the checkpoint */
	const char
		*also; /* "t": nothing can be frozen; "x": the session dies of it; "b": the branch's id is taken */
	uint64_t n;
	const char *is; /* the answer; the state that lives */
} rows[] = {
	/* Nothing has run: that state is nobody's yet, and is saved when it is asked for. */
	{"", OPERATION_CHECKPOINT, "a", "", 0, "at 0 a ; 0"},
	{"", OPERATION_CHECKPOINT, NULL, "", 0, "at 0 ; 0"},
	{"", OPERATION_CHECKPOINT, "a", "t", 0, "error:unsupported ; 0"},
	{"", OPERATION_RESTORE, "a", "", 0, "error:bad_request ; 0"},
	{"", OPERATION_UNDO, NULL, "", 1, "error:gone ; 0"},
	{"", OPERATION_BRANCH, NULL, "", 0, "opened b ; 0"},
	{"", OPERATION_BRANCH, NULL, "t", 0, "error:unsupported ; 0"},
	{"", OPERATION_DROP, "a", "", 0, "error:bad_request ; 0"},
	/* The live state is saved. */
	{"rr", OPERATION_CHECKPOINT, NULL, "", 0, "at 2 ; 2"},
	{"rr", OPERATION_CHECKPOINT, "a", "", 0, "at 2 a ; 2"},
	{"rra", OPERATION_CHECKPOINT, "a", "", 0, "at 2 a ; 2"},
	{"rar", OPERATION_CHECKPOINT, "a", "", 0, "error:bad_request ; 2"},
	{"rr", OPERATION_RESTORE, "1", "", 0, "at 1 ; 1"},
	{"rar", OPERATION_RESTORE, "a", "", 0, "at 1 a ; 1"},
	{"rr", OPERATION_RESTORE, "a", "", 0, "error:bad_request ; 2"},
	{"rr", OPERATION_UNDO, NULL, "", 0, "at 2 ; 2"},
	{"rr", OPERATION_UNDO, NULL, "", 1, "at 1 ; 1"},
	{"rr", OPERATION_UNDO, NULL, "", 2, "at 0 ; 0"},
	{"rr", OPERATION_UNDO, NULL, "", 3, "error:gone ; 2"},
	{"rru", OPERATION_UNDO, NULL, "", 1, "at 0 ; 0"},
	{"rrur", OPERATION_UNDO, NULL, "", 1, "at 1 ; 1"},
	{"rr", OPERATION_BRANCH, NULL, "", 0, "opened b ; 2"},
	{"rar", OPERATION_BRANCH, "a", "", 0, "opened b ; 2"},
	{"rr", OPERATION_BRANCH, "a", "", 0, "error:bad_request ; 2"},
	{"rr", OPERATION_BRANCH, NULL, "b", 0, "error:gone ; 2"},
	{"rar", OPERATION_DROP, "a", "", 0, "ok ; 2"},
	{"rra", OPERATION_DROP, "a", "", 0, "ok ; 2"},
	/* As many names as the profile allows. */
	{"rarbrcrdr", OPERATION_CHECKPOINT, "e", "", 0, "error:limit ; 5"},
	{"rarbrcrdr", OPERATION_CHECKPOINT, NULL, "", 0, "at 5 ; 5"},
	/* The live state could not be saved, and now it can, or still not. */
	{"rt", OPERATION_CHECKPOINT, "a", "", 0, "at 2 a ; 2"},
	{"rt", OPERATION_CHECKPOINT, "a", "t", 0, "error:unsupported ; 2"},
	{"rt", OPERATION_UNDO, NULL, "t", 1, "at 1 ; 1"},
	{"rt", OPERATION_BRANCH, NULL, "", 0, "opened b ; 2"},
	{"rt", OPERATION_BRANCH, NULL, "t", 0, "error:unsupported ; 2"},
	/* The session dies of it: answered all the same. */
	{"rt", OPERATION_CHECKPOINT, "a", "x", 0, "error:gone ; -"},
	{"rr", OPERATION_UNDO, NULL, "x", 1, "error:gone ; -"},
	{"rar", OPERATION_RESTORE, "a", "x", 0, "error:gone ; -"},
	{"rr", OPERATION_BRANCH, NULL, "x", 0, "error:gone ; -"},
};

static struct session *session_called(const char *id)
{
	const struct session_name name = {.owner = STAGE_OWNER, .id = bytes_of(id)};

	return sessions_find(&stage.sessions, &name);
}

static const char *look(size_t row)
{
	struct session *session;

	memset(state_of, 0, sizeof(state_of));
	threads = dies = false;
	session = stage_open(&stage, "s");
	warden = session->warden;
	obey_all();
	for (const char *letter = rows[row].history; *letter; letter++)
		step(session, *letter);
	threads = strchr(rows[row].also, 't') != NULL;
	dies = strchr(rows[row].also, 'x') != NULL;
	if (strchr(rows[row].also, 'b'))
		stage_open(&stage, "b");
	told[0] = '\0';
	stage_operate(&stage, session, rows[row].kind, rows[row].name, "b", rows[row].n);
	obey_all();
	session = session_called("s");
	if (session && session->live)
		tell("; %llu", (unsigned long long)state_of[session->live->serial]);
	else
		tell("; -");
	return told;
}

int main(void)
{
	fake_front_on_message = on_message;
	for (size_t row = 0; row < ARRAY_SIZE(rows); row++) {
		const char *is;
		bool same;

		stage_begin(&stage);
		is = look(row);
		same = !strcmp(is, rows[row].is);
		if (!same)
			fprintf(stderr, "row %zu, after \"%s\": \"%s\", not \"%s\"\n", row, rows[row].history, is,
				rows[row].is);
		CHECK(same);
		stage_end(&stage);
	}
	return check_report();
}
