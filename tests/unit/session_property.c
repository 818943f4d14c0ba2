/* Whatever happens in whatever order: each request is answered exactly once, and each answer tells truly what the
 * state of its session is.
 *
 * What wardens and interpreters would do is simulated: processes that have a state, take orders one after the
 * other, run cells, call functions, fork, die, and are told of late; some say what nobody should. A state is a node
 * that knows the one it came of and the cell that made it, so what an answer says can be compared with what the
 * live process really has. What happens in a step depends on the seed and the number of the step alone; so a run
 * that fails is tried again without each of its steps, and what is left is shown. */
#include "check.h"
#include "fakes/stage.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#define SEEDS 10000
#define STEPS 300
/* After these nobody asks for anything more, and all that is under way comes to its end. */
#define QUIET_STEPS 3000
#define PROCESSES_MAX 1200
#define NODES_MAX 4000
#define REQUESTS_MAX 2000
#define SESSIONS_MAX 24
#define CELLS_MAX 600
#define CALLS_MADE_MAX 4000
/* Different arguments of the function that must not be repeated in silence. */
#define PAYMENTS 4
#define QUEUE_MAX 64
#define SECOND 1000000ULL

/* ---- chance: by the step, so that one step less changes no other ---- */

static uint64_t chance_state;

static void chance_begin(uint64_t seed, uint64_t step)
{
	chance_state = seed * 0x9e3779b97f4a7c15ULL + step * 0xd1342543de82ef95ULL + 1;
}

static uint64_t chance(uint64_t below)
{
	uint64_t x = chance_state += 0x9e3779b97f4a7c15ULL;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return (x ^ (x >> 31)) % below;
}

/* ---- the simulated world ---- */

struct node {
	size_t parent;
	uint64_t cell;
	uint64_t run; /* each time that a cell begins has another one */
};

/* A call, as all who know of it see it. */
struct made {
	uint64_t session, cell, number, run, request, serial;
	char text[24];
	unsigned payment;	       /* of `pay`: which; else 0 */
	unsigned put;		       /* how often its provider got it */
	bool over;		       /* for the router */
	bool answered, refused, heard; /* heard: its cell has the answer */
	bool abandoned;
};

struct say {
	const struct wire_schema *schema;
	union {
		struct done_message done;
		struct ask_message ask;
		struct shown shown;
		struct told_message told;
		struct frozen_message frozen;
		struct spawned_message spawned;
		struct measured_message measured;
		struct call_message call;
		struct abandon_message abandon;
	} as;
	size_t made; /* the call */
};

struct process {
	bool born, dead, frozen, closed, known, reported;
	bool interrupted;
	int status;
	size_t truth;
	uint64_t computing, run, n_calls;
	bool waits; /* for an answer to what it has asked */
	struct order inbox[QUEUE_MAX];
	struct say outbox[QUEUE_MAX];
	size_t n_in, n_out;
};

enum news_kind { NEWS_SIGNALLED, NEWS_EXITED, NEWS_SWEPT, NEWS_FAILED };

struct news {
	enum news_kind kind;
	uint64_t serial;
};

enum request_kind { REQUEST_EXEC, REQUEST_STATE, REQUEST_BRANCH, REQUEST_RESET, REQUEST_OTHER };

struct request {
	enum request_kind kind;
	uint64_t session; /* its number in the family */
	char branch[16];
	unsigned finals;
};

/* What whoever asks knows of a session. */
struct view {
	bool known;
	char id[16];
	size_t state;
	size_t after[CELLS_MAX];
};

/* An answer of this round. */
struct answer {
	uint64_t request;
	bool is_error, is_result, from_done, forbidden;
	char state[16];
	uint64_t cell, restored;
};

static struct stage stage;
static struct warden *warden; /* NULL: gone */
static struct process processes[PROCESSES_MAX];
static struct order orders[QUEUE_MAX * 4];
static struct news news[QUEUE_MAX * 4];
static struct node nodes[NODES_MAX];
static struct request requests[REQUESTS_MAX];
static struct view views[SESSIONS_MAX];
static struct answer answers[QUEUE_MAX * 4];
static struct made made[CALLS_MADE_MAX];
static uint64_t last_process, last_run;
static size_t n_made;
static size_t n_orders, n_news, n_nodes, n_answers, n_branches;
static bool warden_killed, quiet, splits; /* splits: sessions branch at calls, and nothing is paid */
static uint64_t hostility, scarcity;	  /* in one step of so many; 0: never */
static char wrong[256];
static uint64_t n_steps_all, n_truths, n_unseen, n_calls_all, n_repeats_all, n_told_all, n_splits_all;
static bool shown;

static void fail(const char *what, uint64_t request)
{
	if (!wrong[0])
		snprintf(wrong, sizeof(wrong), "%s (request %llu)", what, (unsigned long long)request);
}

#define show(...)                                                                                                  \
	do {                                                                                                       \
		if (shown)                                                                                         \
			fprintf(stderr, __VA_ARGS__);                                                              \
	} while (0)

static size_t node_new(size_t parent, uint64_t cell, uint64_t run)
{
	if (n_nodes == NODES_MAX)
		abort();
	nodes[n_nodes] = (struct node){.parent = parent, .cell = cell, .run = run};
	return n_nodes++;
}

static struct process *process_of(uint64_t serial)
{
	if (serial >= PROCESSES_MAX)
		abort();
	last_process = MAX(last_process, serial);
	return &processes[serial];
}

static void process_born(uint64_t serial, size_t truth, bool frozen)
{
	struct process *process = process_of(serial);

	process->born = true;
	process->truth = truth;
	process->frozen = frozen;
}

static void news_add(enum news_kind kind, uint64_t serial)
{
	if (n_news == ARRAY_SIZE(news))
		abort();
	news[n_news++] = (struct news){.kind = kind, .serial = serial};
}

/* Its warden tells of a death as soon as it knows the one who died. */
static void report(uint64_t serial)
{
	struct process *process = process_of(serial);

	if (!process->dead || !process->known || process->reported)
		return;
	process->reported = true;
	news_add(NEWS_EXITED, serial);
}

static void process_dies(uint64_t serial, int status)
{
	struct process *process = process_of(serial);

	if (!process->born || process->dead)
		return;
	process->dead = true;
	process->status = status;
	process->n_in = 0;
	report(serial);
}

static void process_says(struct process *process, const struct say *say)
{
	if (!process->dead && !process->closed && process->n_out < QUEUE_MAX)
		process->outbox[process->n_out++] = *say;
}

/* What sessions have ordered in this round is on its way. */
static void orders_take(void)
{
	for (size_t i = 0; i < fake_n_orders; i++) {
		const struct order *order = &fake_orders[i];
		struct process *process;

		if (order->kind == ORDER_KILL) {
			warden_killed = true;
		} else if (order->kind == ORDER_FREEZE || order->kind == ORDER_THAW || order->kind == ORDER_SEND) {
			process = process_of(order->kind == ORDER_SEND ? order->serial : order->source);
			if (!process->dead && process->n_in < QUEUE_MAX)
				process->inbox[process->n_in++] = *order;
		} else if (n_orders < ARRAY_SIZE(orders)) {
			orders[n_orders++] = *order;
		}
	}
	fake_n_orders = 0;
}

static bool step_warden_takes(void)
{
	struct order order;

	if (n_orders == 0)
		return false;
	order = orders[0];
	memmove(orders, orders + 1, --n_orders * sizeof(*orders));
	show("  the warden takes: %s %llu\n", fake_order_names[order.kind], (unsigned long long)order.serial);
	switch (order.kind) {
	case ORDER_SPAWN:
		if (!quiet && scarcity && chance(20) == 0) {
			news_add(NEWS_FAILED, order.serial);
			break;
		}
		process_born(order.serial, 0, false);
		process_of(order.serial)->known = true;
		break;
	case ORDER_ADOPT:
		process_of(order.serial)->known = true;
		report(order.serial);
		break;
	case ORDER_SIGNAL:
		if (order.number == SIGKILL)
			process_dies(order.serial, SIGKILL);
		else
			process_of(order.serial)->interrupted = true;
		news_add(NEWS_SIGNALLED, order.serial);
		break;
	case ORDER_DISCARD:
		process_of(order.serial)->reported = true;
		process_dies(order.serial, SIGKILL);
		break;
	case ORDER_SWEEP:
		news_add(NEWS_SWEPT, 0);
		break;
	case ORDER_FREEZE:
	case ORDER_THAW:
	case ORDER_KILL:
	case ORDER_SEND:
	case _ORDER_N:
		abort();
	}
	return true;
}

static bool has_last_words(uint64_t serial)
{
	const struct interpreter *interpreter = fake_interpreter(warden, serial);

	return interpreter && fake_listens(interpreter) && process_of(serial)->n_out > 0;
}

static bool step_warden_tells(void)
{
	struct news one;

	if (n_news == 0)
		return false;
	/* One that is being killed is not heard any more. */
	if (warden->state == WARDEN_DYING) {
		n_news = 0;
		return false;
	}
	one = news[0];
	show("  the warden tells: %d %llu\n", (int)one.kind, (unsigned long long)one.serial);
	if (one.kind == NEWS_EXITED &&
	    fake_exited(warden, one.serial, process_of(one.serial)->status, has_last_words(one.serial)))
		return true;
	memmove(news, news + 1, --n_news * sizeof(*news));
	if (one.kind == NEWS_SIGNALLED)
		fake_signalled(warden, one.serial);
	else if (one.kind == NEWS_SWEPT)
		fake_swept(warden);
	else if (one.kind == NEWS_FAILED)
		fake_failed(warden, one.serial);
	return true;
}

/* ---- processes ---- */

/* It is in the middle of its cell. What it waits for, its copy waits for, too. */
static void cell_copied(const struct process *process, struct process *copy)
{
	size_t n = n_made;

	copy->computing = process->computing;
	copy->n_calls = process->n_calls;
	copy->run = ++last_run;
	for (size_t i = 0; i < n; i++) {
		if (made[i].run != process->run || made[i].heard || made[i].abandoned)
			continue;
		if (n_made == CALLS_MADE_MAX)
			abort();
		made[n_made] = (struct made){.cell = made[i].cell, .number = made[i].number, .run = copy->run};
		memcpy(made[n_made].text, made[i].text, sizeof(made[i].text));
		n_made++;
	}
}

static void fork_frozen(struct process *process, const struct order *order)
{
	struct say say = {.schema = &frozen_message_schema, .as.frozen = {.serial = order->serial}};

	if (order->number != process->computing || process->waits ||
	    (order->number && n_made + 10 > CALLS_MADE_MAX)) {
		say.as.frozen.reason = BYTES("it has ended, or waits for input");
	} else if (!quiet && chance(8) == 0) {
		say.as.frozen.reason = BYTES("threads");
	} else {
		say.as.frozen.pid = 1000 + order->serial;
		process_born(order->serial, process->truth, true);
		if (order->number)
			cell_copied(process, process_of(order->serial));
	}
	process_says(process, &say);
}

static void fork_live(struct process *process, const struct order *order)
{
	struct say say = {.schema = &spawned_message_schema, .as.spawned = {.serial = order->serial}};

	if (quiet || chance(10) > 0) {
		say.as.spawned.pid = 1000 + order->serial;
		if (fake_interpreter(warden, order->serial))
			process_born(order->serial, process->truth, false);
		process_of(order->serial)->computing = process->computing;
		process_of(order->serial)->n_calls = process->n_calls;
		process_of(order->serial)->run = process->run;
	}
	process_says(process, &say);
}

/* ---- calls ---- */

static struct session *session_at(uint64_t number);

/* The last one of that process's cell with that number. */
static struct made *made_by(uint64_t run, uint64_t number)
{
	for (size_t i = n_made; i > 0; i--)
		if (made[i - 1].run == run && made[i - 1].number == number)
			return &made[i - 1];
	return NULL;
}

static void call_heard(const struct process *process, uint64_t number)
{
	struct made *call = process->computing ? made_by(process->run, number) : NULL;

	if (!call)
		return; /* of a cell that has ended */
	if (call->heard)
		fail("a call has two answers", call->request);
	call->heard = true;
}

static bool in_past(const struct process *process, uint64_t run)
{
	size_t at = process->truth;

	while (at && nodes[at].run != run)
		at = nodes[at].parent;
	return at || process->run == run;
}

/* Whether somebody may have done what the call asks for, in a cell that is not in the past of this one. */
static bool was_undone(const struct process *process, unsigned payment)
{
	for (size_t i = 0; i < n_made; i++)
		if (made[i].payment == payment && made[i].put > 0 && made[i].over && !made[i].refused &&
		    !in_past(process, made[i].run))
			return true;
	return false;
}

/* The router's, as far as it has not forgotten it. */
static struct call *call_of(const struct made *one, struct session **sessionp)
{
	struct session *session = session_at(one->session);

	*sessionp = session;
	if (!session || !session->cell || session->freezing || session->cell->number != one->cell)
		return NULL;
	return calls_find(&session->cell->calls, one->number);
}

/* What nobody has any more is over. */
static void calls_look(void)
{
	struct session *session;

	for (size_t i = 0; i < n_made; i++)
		made[i].over |= made[i].request && !call_of(&made[i], &session);
}

static struct bytes packed(struct made *one, const char *name, uint16_t n)
{
	static char arguments[8] = "\x81\xa1n\xcd";

	arguments[4] = (char)(n >> 8);
	arguments[5] = (char)n;
	snprintf(one->text, sizeof(one->text), "%s(n=%u)", name, n);
	return (struct bytes){.data = arguments, .size = 6};
}

static void process_calls(struct process *process, uint64_t serial)
{
	static const char *const names[] = {"look", "pay", "asks", "slow"};
	struct say say = {.schema = &call_message_schema, .made = n_made};
	const char *name = names[chance(ARRAY_SIZE(names))];
	struct made *one = &made[n_made];

	if (splits && !strcmp(name, "pay"))
		name = names[0];

	if (n_made == CALLS_MADE_MAX || !stage.functions.data)
		return;
	n_made++;
	*one = (struct made){.cell = process->computing,
			     .number = ++process->n_calls,
			     .run = process->run,
			     .serial = serial,
			     .payment = strcmp(name, "pay") != 0 ? 0 : 1 + (unsigned)chance(PAYMENTS)};
	say.as.call = (struct call_message){.number = one->number, .function = bytes_of(name)};
	process_says(process, &say);
}

static void process_abandons(struct process *process)
{
	struct say say = {.schema = &abandon_message_schema};

	for (size_t i = 0; i < n_made; i++)
		if (made[i].run == process->run && !made[i].heard && !made[i].abandoned && chance(2)) {
			made[i].abandoned = true;
			say.as.abandon.number = made[i].number;
			process_says(process, &say);
			return;
		}
}

/* The session that lives in it, if one does. */
static struct session *session_of(const struct interpreter *interpreter)
{
	struct session *session;

	list_for_each (session, &stage.sessions.all, node)
		if (session->live == interpreter)
			return session;
	return NULL;
}

/* It comes to its session, which refuses it or has it put. */
static void call_said(struct interpreter *interpreter, struct say *say)
{
	struct made *one = &made[say->made];
	struct process *process = process_of(one->serial);
	struct session *session = session_of(interpreter);
	bool repeats = one->payment && was_undone(process, one->payment), too_many;

	/* One that is being killed is not heard. */
	if (!session || !session_busy(session)) {
		fake_say(interpreter, say->schema, &say->as);
		return;
	}
	one->session = session->tenant.number;
	one->request = list_empty(&session->cell->reply.promise->askers)
			       ? 0
			       : container_of(session->cell->reply.promise->askers.next, struct asker, node)->to.id;
	say->as.call.arguments =
		packed(one, say->as.call.function.data, (uint16_t)(one->payment ? one->payment : 100 + say->made));
	n_calls_all++;
	too_many = session->cell->calls.n >= stage.profile.calls_at_once;
	fake_say(interpreter, say->schema, &say->as);
	if (session->state == SESSION_CLOSING || !session->cell || session->cell->number != one->cell)
		return;
	n_repeats_all += repeats;
	if ((repeats || too_many) == !!calls_find(&session->cell->calls, one->number))
		fail(repeats ? "it was undone, and is repeated in silence" : "refused, and was never undone",
		     one->request);
	/* Nobody goes back in a one-shot, and nothing is noted of it. */
	if (!session->id[0])
		one->payment = 0;
	one->refused = one->over = !calls_find(&session->cell->calls, one->number);
}

/* Its provider, or who approves it, does something with one that it has. */
static bool step_provider(void)
{
	struct returned_message answer = {.value = BYTES("\xc0")};
	struct session *session;
	struct made *one;
	struct call *call;
	size_t at = n_made ? chance(n_made) : 0;

	for (size_t i = 0; i < n_made; i++) {
		one = &made[(at + i) % n_made];
		call = one->request && !one->over ? call_of(one, &session) : NULL;
		if (!call)
			continue;
		show("  the provider of %s: call %llu, %s\n", session->id, (unsigned long long)one->number,
		     one->text);
		if (call->state == CALL_ASKS && chance(2)) {
			session_approve_call(session, call, STAGE_OWNER);
		} else if (call->state == CALL_ASKS || (!quiet && call->state == CALL_HELD && chance(3) == 0)) {
			one->refused = one->answered = true;
			if (call->state == CALL_HELD || chance(2))
				answer = (struct returned_message){.error = BYTES("PermissionError")};
			session_answer_call(session, call, &answer, STAGE_OWNER);
		} else if (!quiet && call->state == CALL_OUT && chance(5) == 0) {
			session_hold_call(session, call, BYTES("later"), NULL);
		} else if (chance(6) == 0) {
			one->answered = true;
			session_answer_call(session, call, &(struct returned_message){.error = BYTES("ValueError")},
					    0);
		} else {
			one->answered = true;
			if (chance(3) == 0)
				answer = (struct returned_message){.error = BYTES("ValueError")};
			(void)session_return_call(session, call, &answer, NULL);
		}
		return true;
	}
	return false;
}

static void obey(struct process *process, const struct order *order)
{
	struct say say = {.schema = &told_message_schema,
			  .as.told = {.serial = order->number, .refused = BYTES("no")}};

	if (order->kind == ORDER_FREEZE) {
		fork_frozen(process, order);
	} else if (order->kind == ORDER_THAW) {
		fork_live(process, order);
	} else if (order->schema == &run_message_schema) {
		process->computing = order->number;
		process->run = ++last_run;
		process->n_calls = 0;
		process->interrupted = false;
	} else if (order->schema == &returned_message_schema) {
		call_heard(process, order->number);
	} else if (order->schema == &question_message_schema) {
		process_says(process, &say);
	} else if (order->schema == &answer_message_schema) {
		process->waits = false;
	} else if (order->schema == &measure_message_schema) {
		process_says(process,
			     &(struct say){.schema = &measured_message_schema, .as.measured = {.memory = 1}});
	}
}

/* Nobody is found at random but among those who can do something, or a run would be long. */
static struct process *process_find(bool (*can)(const struct process *process), uint64_t *serialp)
{
	uint64_t last = warden->last_interpreter, at = last ? chance(last) : 0;

	for (uint64_t i = 0; i < last; i++) {
		uint64_t serial = 1 + (at + i) % last;

		if (processes[serial].born && can(&processes[serial])) {
			*serialp = serial;
			return &processes[serial];
		}
	}
	return NULL;
}

/* While a sweep is under way nothing is forked that it could take for a stranger. */
static bool can_take(const struct process *process)
{
	bool forks = process->n_in > 0 &&
		     (process->inbox[0].kind == ORDER_FREEZE || process->inbox[0].kind == ORDER_THAW);
	bool goes_on = process->n_in > 0 && (process->inbox[0].schema == &answer_message_schema ||
					     process->inbox[0].schema == &returned_message_schema ||
					     (forks && process->inbox[0].number) || process->frozen);

	return !process->dead && process->n_in > 0 && (!process->computing || goes_on) &&
	       !(forks && warden->sweeping);
}

static bool can_end_cell(const struct process *process)
{
	return !process->dead && !process->frozen && process->computing && !process->waits;
}

static bool can_speak(const struct process *process)
{
	const struct interpreter *interpreter = fake_interpreter(warden, (uint64_t)(process - processes));

	/* What one in the middle of a cell says before it is known to live waits in its channel. */
	if (interpreter && session_of(interpreter) && session_of(interpreter)->midway && process->n_out > 0)
		return false;
	return interpreter && fake_listens(interpreter) && (process->n_out > 0 || process->dead || process->closed);
}

static bool lives(const struct process *process)
{
	return !process->dead;
}

static bool step_process_takes(void)
{
	struct order order;
	uint64_t serial;
	struct process *process = process_find(can_take, &serial);

	if (!process)
		return false;
	order = process->inbox[0];
	memmove(process->inbox, process->inbox + 1, --process->n_in * sizeof(*process->inbox));
	show("  %llu takes: %s %s %llu\n", (unsigned long long)serial, fake_order_names[order.kind],
	     order.schema ? order.schema->type : "", (unsigned long long)order.number);
	obey(process, &order);
	return true;
}

static void cell_done(struct process *process, uint64_t cell)
{
	struct say say = {.schema = &done_message_schema, .as.done = {.cell = cell, .text = BYTES("done")}};

	process->computing = 0;
	process->waits = false;
	if (process->interrupted)
		say.as.done.cause = BYTES("interrupt");
	process->interrupted = false;
	if (!quiet && process->n_calls == 0 && chance(12) == 0)
		say.as.done.cause = say.as.done.text = BYTES("forbidden");
	else
		process->truth = node_new(process->truth, cell, process->run);
	if (!quiet && chance(12) == 0)
		say.as.done.unfaithful = BYTES("a thread runs");
	process_says(process, &say);
}

static bool step_cell_goes_on(void)
{
	static const char empty_map[] = "\x80";
	uint64_t serial;
	struct process *process = process_find(can_end_cell, &serial);
	struct say display = {.schema = &display_message_schema, .as.shown = {.data = {empty_map, 1}}};

	if (!process)
		return false;
	show("  %llu is in its cell\n", (unsigned long long)serial);
	switch (quiet ? 0 : chance(stage.functions.data ? 18 : 10)) {
	case 0:
	case 1:
	case 2:
	case 3:
	case 4:
	case 5:
		cell_done(process, process->computing);
		break;
	case 6:
		process_says(process,
			     &(struct say){.schema = &ask_message_schema, .as.ask = {.prompt = BYTES("?")}});
		process->waits = true;
		break;
	case 7:
		process_says(process, &display);
		break;
	case 8:
		process_dies(serial, 3 << 8);
		break;
	case 9:
		process_dies(serial, SIGSEGV);
		break;
	case 10:
		process_abandons(process);
		break;
	default:
		process_calls(process, serial);
	}
	return true;
}

static bool step_process_speaks(void)
{
	uint64_t serial;
	struct process *process = process_find(can_speak, &serial);
	struct interpreter *interpreter = process ? fake_interpreter(warden, serial) : NULL;
	struct say say;

	if (!process)
		return false;
	if (process->n_out == 0) {
		show("  %llu: end of its channel\n", (unsigned long long)serial);
		fake_hang_up(interpreter);
		return true;
	}
	say = process->outbox[0];
	memmove(process->outbox, process->outbox + 1, --process->n_out * sizeof(*process->outbox));
	show("  %llu says: %s\n", (unsigned long long)serial, say.schema->type);
	if (say.schema == &call_message_schema)
		call_said(interpreter, &say);
	else
		fake_say(interpreter, say.schema, &say.as);
	return true;
}

/* What no honest one does. What it claims to have frozen is not doubted: nobody could. */
static bool step_hostile(void)
{
	uint64_t serial;
	struct process *process = process_find(lives, &serial);

	if (!process)
		return false;
	show("  %llu is hostile\n", (unsigned long long)serial);
	switch (chance(9)) {
	case 0:
		process_dies(serial, SIGKILL);
		break;
	case 1:
		process_dies(serial, 0);
		break;
	case 2:
		process->closed = true;
		break;
	case 3:
		process_says(process,
			     &(struct say){.schema = &told_message_schema, .as.told = {.serial = chance(5)}});
		break;
	case 4:
		process_says(process, &(struct say){.schema = &frozen_message_schema,
						    .as.frozen = {.serial = chance(2) * 100000, .pid = 7}});
		break;
	case 5:
		process_says(process,
			     &(struct say){.schema = &spawned_message_schema, .as.spawned = {.serial = 99999}});
		break;
	case 6:
		process_says(process,
			     &(struct say){.schema = &ask_message_schema, .as.ask = {.prompt = BYTES("?")}});
		break;
	case 7:
		process_says(process, &(struct say){.schema = &done_message_schema, .as.done = {.cell = 99999}});
		break;
	default:
		process_says(process, &(struct say){.schema = &run_message_schema});
	}
	return true;
}

/* ---- who asks ---- */

static struct session *session_at(uint64_t number)
{
	struct session *session;

	list_for_each (session, &stage.sessions.all, node)
		if (session->tenant.number == number)
			return session;
	return NULL;
}

/* One that the client knows of and that has not ended. */
static struct session *session_pick(void)
{
	struct session *session, *found = NULL;
	uint64_t n = 0;

	list_for_each (session, &stage.sessions.all, node)
		if (session->state != SESSION_CLOSING && session->tenant.number < SESSIONS_MAX &&
		    views[session->tenant.number].known && chance(++n) == 0)
			found = session;
	return found;
}

/* Before it is asked: the answer may be there at once. */
static void request_note(enum request_kind kind, const struct session *session, const char *branch)
{
	struct request *request = &requests[stage.last_request + 1];

	if (stage.last_request + 2 >= REQUESTS_MAX)
		abort();
	*request = (struct request){.kind = kind, .session = session->tenant.number};
	snprintf(request->branch, sizeof(request->branch), "%s", branch ? branch : "");
}

static void ask_operation(struct session *session)
{
	static const enum operation_kind kinds[] = {OPERATION_CHECKPOINT, OPERATION_RESTORE, OPERATION_UNDO,
						    OPERATION_BRANCH,	  OPERATION_DROP,    OPERATION_QUESTION};
	enum operation_kind kind = kinds[chance(ARRAY_SIZE(kinds))];
	char name[24] = "", branch[16] = "";
	bool named = kind == OPERATION_RESTORE || kind == OPERATION_DROP || chance(3) == 0;

	if (session_busy(session) || session->n_queued > 0 || list_size(&session->operations) > 3)
		return;
	if (kind != OPERATION_QUESTION && session->profile->checkpoint == CHECKPOINT_OFF)
		return;
	/* By the number of a cell, or by a name. */
	if (named && kind == OPERATION_CHECKPOINT)
		snprintf(name, sizeof(name), "name%llu", (unsigned long long)chance(3));
	else if (named && kind != OPERATION_QUESTION)
		snprintf(name, sizeof(name), chance(2) ? "name%llu" : "%llu",
			 (unsigned long long)(chance(session->n_cells + 2) % 10));
	if (kind == OPERATION_BRANCH) {
		if (list_size(&stage.sessions.all) > 4 || warden->last_session + 2 >= SESSIONS_MAX)
			return;
		snprintf(branch, sizeof(branch), "b%zu", ++n_branches);
	}
	request_note(kind == OPERATION_BRANCH				    ? REQUEST_BRANCH
		     : kind == OPERATION_QUESTION || kind == OPERATION_DROP ? REQUEST_OTHER
									    : REQUEST_STATE,
		     session, branch);
	show("  %s: request %llu: operation %d %s %s\n", session->id, (unsigned long long)stage.last_request + 1,
	     (int)kind, name, branch);
	stage_operate(&stage, session, kind, name[0] ? name : NULL, branch[0] ? branch : NULL, 1 + chance(2));
}

static void ask_split(struct session *session)
{
	struct address address;
	struct operation *operation;
	char branch[16];

	if (!splits || session->state != SESSION_BUSY || session->freezing || session->split.copy ||
	    session->cell->asking || session->profile->checkpoint == CHECKPOINT_OFF || !session->id[0] ||
	    list_size(&stage.sessions.all) > 4 || warden->last_session + 2 >= SESSIONS_MAX)
		return;
	snprintf(branch, sizeof(branch), "b%zu", ++n_branches);
	request_note(REQUEST_BRANCH, session, branch);
	show("  %s: request %llu: branch at a call %s\n", session->id, (unsigned long long)stage.last_request + 1,
	     branch);
	address = stage_address(&stage);
	if (operation_new(&operation, OPERATION_BRANCH, &address, (struct bytes){.data = NULL}))
		abort();
	snprintf(operation->branch, sizeof(operation->branch), "%s", branch);
	split_begin(session, operation);
}

static void answer_input(struct session *session)
{
	const struct input_request input = {.text = BYTES("yes")};

	if (session_busy(session) && session->cell->asking)
		session_answer(session, &input);
}

static bool step_client(void)
{
	struct session *session = session_pick();
	struct address request = {.fd = 1, .connection = 1, .uid = STAGE_OWNER};
	uint64_t act = chance(splits ? 36 : 30);

	if (!session || quiet)
		return false;
	if (act >= 30) {
		ask_split(session);
		return true;
	}
	if (act < 14) {
		if (session->n_queued >= 4 || session->n_cells + 10 >= CELLS_MAX)
			return false;
		request_note(REQUEST_EXEC, session, NULL);
		show("  %s: request %llu: exec\n", session->id, (unsigned long long)stage.last_request + 1);
		stage_exec(&stage, session, chance(3) == 0, chance(4) ? SECOND : 0);
	} else if (act < 20) {
		ask_operation(session);
	} else if (act < 22) {
		show("  %s: interrupt\n", session->id);
		(void)session_interrupt(session, chance(2));
	} else if (act < 25) {
		request.id = stage.last_request ? 1 + chance(stage.last_request) : 1;
		show("  %s: cancel %llu\n", session->id, (unsigned long long)request.id);
		(void)session_cancel(session, &request, chance(2));
	} else if (act < 27) {
		answer_input(session);
	} else if (act < 29) {
		request_note(REQUEST_RESET, session, NULL);
		show("  %s: request %llu: reset\n", session->id, (unsigned long long)stage.last_request + 1);
		stage_reset(&stage, session);
	} else if (chance(12) == 0) {
		request_note(REQUEST_OTHER, session, NULL);
		show("  %s: request %llu: shutdown\n", session->id, (unsigned long long)stage.last_request + 1);
		stage_close(&stage, session);
	}
	return true;
}

/* ---- what the answers say ---- */

static void call_put(uint64_t request, struct bytes body)
{
	struct call_event event;
	struct wire_fault fault;

	if (wire_decode(&event, &call_event_schema, body, &fault)) {
		fail("a call that is none", request);
		return;
	}
	for (size_t i = n_made; i > 0; i--)
		if (made[i - 1].request == request && made[i - 1].number == event.number) {
			if (made[i - 1].answered || ++made[i - 1].put > 1)
				fail("a call is put twice", request);
			return;
		}
	fail("a call that nobody made is put", request);
}

static bool is_told(struct bytes effects, const char *text)
{
	struct effect effect;
	struct wire_fault fault;
	struct bytes item;
	size_t cursor = 0;

	while (wire_next(effects, &cursor, &item))
		if (!wire_decode(&effect, &effect_schema, item, &fault) && effect.target.size >= strlen(text) &&
		    !memcmp(effect.target.data, text, strlen(text)))
			return true;
	return false;
}

/* Its cell is not in the past any more: each call of it was answered or may have been done, and that is told. */
static void check_told(const struct answer *answer, const struct exec_reply *reply)
{
	bool lost =
		!answer->from_done && (!strcmp(answer->state, "rolled_back") || !strcmp(answer->state, "reset"));

	calls_look();
	for (size_t i = 0; i < n_made; i++) {
		const struct made *one = &made[i];

		if (one->request != answer->request || !one->request)
			continue;
		if (!one->over)
			fail("its cell has ended, and a call is out", answer->request);
		if (!lost || one->put == 0 || one->refused || reply->effects_more)
			continue;
		n_told_all++;
		if (!is_told(reply->effects, one->text))
			fail("a call is not told", answer->request);
	}
}

static void read_result(struct answer *answer, struct bytes body)
{
	struct exec_reply reply;
	struct state_reply state;
	struct wire_fault fault;

	if (requests[answer->request].kind == REQUEST_EXEC &&
	    !wire_decode(&reply, &exec_reply_schema, body, &fault)) {
		answer->is_result = true;
		answer->from_done = reply.text.data != NULL;
		/* The cause may be that its time was over. */
		answer->forbidden = bytes_is(reply.text, "forbidden");
		answer->cell = reply.cell;
		answer->restored = reply.restored;
		snprintf(answer->state, sizeof(answer->state), "%.*s", (int)reply.state.size, reply.state.data);
		check_told(answer, &reply);
	} else if (requests[answer->request].kind == REQUEST_STATE &&
		   !wire_decode(&state, &state_reply_schema, body, &fault)) {
		answer->cell = state.cell;
	}
}

static void on_message(uint64_t connection, struct bytes message)
{
	static const char *const events[] = {"stdout", "stderr", "ask", "display", "alive", "held", "cancel"};
	struct answer answer = {.request = 0};
	struct wire_frame frame;

	(void)connection;
	if (wire_open_answer(&frame, message) || !wire_find_id(&answer.request, frame.body) ||
	    answer.request == 0 || answer.request > stage.last_request) {
		fail("an answer to nobody", answer.request);
		return;
	}
	if (bytes_is(frame.type, call_event_schema.type)) {
		call_put(answer.request, frame.body);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		if (bytes_is(frame.type, events[i]))
			return;
	if (++requests[answer.request].finals > 1)
		fail("answered twice", answer.request);
	answer.is_error = bytes_is(frame.type, error_reply_schema.type);
	if (!answer.is_error)
		read_result(&answer, frame.body);
	show("    answer to %llu: %s %s cell %llu restored %llu\n", (unsigned long long)answer.request,
	     answer.is_error ? "error" : "", answer.state, (unsigned long long)answer.cell,
	     (unsigned long long)answer.restored);
	if (n_answers < ARRAY_SIZE(answers))
		answers[n_answers++] = answer;
}

/* What the session really has. Returns false if it has nothing at the moment: it ends, or begins. */
static bool truth_of(size_t *truthp, const struct session *session)
{
	if (!session || !session->live || session->state == SESSION_CLOSING || session->state == SESSION_STARTING) {
		n_unseen++;
		return false;
	}
	/* One from the pristine image may not have been made yet. */
	*truthp = process_of(session->live->serial)->truth;
	n_truths++;
	return true;
}

static void check_kept(const struct answer *answer, struct view *view, size_t truth)
{
	/* One that was cancelled before it began. */
	if (answer->cell == 0)
		return;
	if (answer->forbidden ? truth != view->state
			      : nodes[truth].cell != answer->cell || nodes[truth].parent != view->state)
		fail("\"kept\", and it has another state", answer->request);
	view->state = view->after[answer->cell] = truth;
}

/* It may have been lost before this cell, which then has done its part. */
static void check_back(const struct answer *answer, struct view *view, size_t truth)
{
	bool added = answer->from_done && !answer->forbidden;
	size_t base;

	if (answer->restored >= CELLS_MAX) {
		fail("restored what never was", answer->request);
		return;
	}
	base = view->after[answer->restored];
	if (added ? nodes[truth].parent != base || nodes[truth].cell != answer->cell : truth != base)
		fail("it went back to another state than it says", answer->request);
	view->state = truth;
	if (answer->from_done)
		view->after[answer->cell] = truth;
}

static void check_result(const struct answer *answer)
{
	struct session *session = session_at(requests[answer->request].session);
	struct view *view = &views[requests[answer->request].session];
	size_t truth;

	if (!strcmp(answer->state, "ended")) {
		if (session && session->state != SESSION_CLOSING)
			fail("\"ended\", and it goes on", answer->request);
		return;
	}
	if (!session)
		fail("its session is gone, and the answer says otherwise", answer->request);
	if (!truth_of(&truth, session))
		return;
	if (!strcmp(answer->state, "kept"))
		check_kept(answer, view, truth);
	else if (!strcmp(answer->state, "reset") && answer->restored)
		fail("\"reset\", and it says after which cell", answer->request);
	else
		check_back(answer, view, truth);
}

static void check_state(const struct answer *answer)
{
	struct view *view = &views[requests[answer->request].session];
	size_t truth;

	if (!truth_of(&truth, session_at(requests[answer->request].session)))
		return;
	if (answer->cell >= CELLS_MAX || truth != view->after[answer->cell])
		fail("it has another state than the answer says", answer->request);
	view->state = truth;
}

static bool is_on_its_way(const struct process *process, uint64_t number)
{
	for (size_t i = 0; i < process->n_in; i++)
		if (process->inbox[i].schema == &returned_message_schema && process->inbox[i].number == number)
			return true;
	return false;
}

/* It goes on with a cell: somebody attaches. Each call that the cell waits for has an answer, or will get one. */
static void join(struct session *session)
{
	const struct process *process = process_of(session->live->serial);
	struct address address;

	n_splits_all++;
	request_note(REQUEST_EXEC, session, NULL);
	address = stage_address(&stage);
	orders_take();
	for (size_t i = 0; i < n_made; i++) {
		if (made[i].run != process->run || made[i].serial)
			continue;
		made[i].session = session->tenant.number;
		made[i].serial = session->live->serial;
		made[i].over = made[i].heard;
		if (calls_find(&session->cell->calls, made[i].number))
			made[i].request = address.id;
		else if (!made[i].heard && process->computing && !process->dead &&
			 !is_on_its_way(process, made[i].number))
			fail("a call of the branch is answered by nobody", address.id);
	}
	if (promise_join(session->cell->reply.promise, &address,
			 &(struct watch){.input = session->cell->input, .calls = true}))
		abort();
	session_heed_calls(session);
}

/* It may have come to the end of its cell already. */
static size_t before_cell(const struct session *session, size_t truth)
{
	const struct process *process = process_of(session->live->serial);
	bool ended = session->cell && truth && !process->computing && nodes[truth].run == process->run;

	return ended ? nodes[truth].parent : truth;
}

static void check_branch(const struct answer *answer)
{
	const struct request *request = &requests[answer->request];
	const struct view *parent = &views[request->session];
	struct session_name name = {.owner = STAGE_OWNER, .id = bytes_of(request->branch)};
	struct session *session = sessions_find(&stage.sessions, &name);
	struct view *view;
	size_t truth;

	if (!session)
		return;
	view = &views[session->tenant.number];
	*view = *parent;
	snprintf(view->id, sizeof(view->id), "%s", request->branch);
	view->state = parent->after[session->at];
	if (truth_of(&truth, session) && before_cell(session, truth) != view->state)
		fail("the branch grew from another state", answer->request);
	if (session_busy(session) && list_empty(&session->cell->reply.promise->askers))
		join(session);
}

static void check_reset(const struct answer *answer)
{
	size_t truth;

	if (truth_of(&truth, session_at(requests[answer->request].session)) && truth != 0)
		fail("it was reset, and is not fresh", answer->request);
	views[requests[answer->request].session].state = 0;
}

static void answers_check(void)
{
	for (size_t i = 0; i < n_answers; i++) {
		const struct answer *answer = &answers[i];

		if (answer->is_error)
			continue;
		switch (requests[answer->request].kind) {
		case REQUEST_EXEC:
			if (!answer->is_result)
				fail("a cell is answered with no result", answer->request);
			else
				check_result(answer);
			break;
		case REQUEST_STATE:
			check_state(answer);
			break;
		case REQUEST_BRANCH:
			check_branch(answer);
			break;
		case REQUEST_RESET:
			check_reset(answer);
			break;
		case REQUEST_OTHER:
			break;
		}
	}
	n_answers = 0;
}

/* ---- a run ---- */

static const char *const state_names[_SESSION_STATE_N] = {
	"starting", "idle",    "busy",	   "grace",	"answering", "unsaved",
	"freezing", "killing", "sweeping", "restoring", "closing",
};

/* An interpreter that is gone has no calls out, and none waits for ever. */
static void calls_check(const struct session *session)
{
	const struct cell *cell = session->cell;
	bool any = cell && cell->calls.n > 0;

	if (any && session->state != SESSION_BUSY && session->state != SESSION_GRACE &&
	    session->state != SESSION_KILLING && !session->midway)
		fail("a call of an interpreter that is gone", session->state);
	if (!any && session->call_due.index)
		fail("no call, and a timer for one", session->state);
	if (any && session_busy(session) && calls_wait(&cell->calls) && !session->call_due.index)
		fail("a call that waits for somebody does so for ever", session->state);
}

/* The time of a cell stands still exactly while it waits for somebody else. */
static void clock_check(const struct session *session)
{
	const struct cell *cell = session->cell;

	if (session->state != SESSION_BUSY || session->freezing)
		return;
	if (!cell) {
		fail("it is busy without a cell", session->state);
		return;
	}
	if (!cell->timeout)
		return;
	if (cell->stands == (session->deadline.index > 0))
		fail(cell->stands ? "its time stands still and goes on" : "its time has no end", cell->number);
	if ((cell->calls.n > 0 || (cell->asking && cell->input)) == (session->deadline.index != 0))
		fail(cell->calls.n > 0 ? "its time goes on while it waits" : "its time stands still", cell->number);
}

/* Whoever waits for somebody else does not wait for ever. */
static void sessions_check(void)
{
	struct session *session;

	list_for_each (session, &stage.sessions.all, node) {
		bool waits = session->state == SESSION_KILLING || session->state == SESSION_SWEEPING ||
			     session->state == SESSION_RESTORING || session->state == SESSION_FREEZING ||
			     session->state == SESSION_UNSAVED || session->state == SESSION_ANSWERING ||
			     session->state == SESSION_GRACE;

		show("    %s is %s\n", session->id, state_names[session->state]);
		/* The news of a death that has been told waits for nobody's answer. */
		if (waits && !session->exited && !session->deadline.index)
			fail("it waits without a deadline", session->state);
		calls_check(session);
		clock_check(session);
		if (session->n_queued != list_size(&session->queue))
			fail("the queue is counted wrong", session->n_queued);
		if (session->cell && session->state != SESSION_BUSY && session->state != SESSION_GRACE &&
		    session->state != SESSION_KILLING && session->state != SESSION_SWEEPING &&
		    session->state != SESSION_RESTORING)
			fail("a cell in a state without one", session->state);
	}
}

static void settle(void)
{
	/* Before the dead are freed. */
	bool gone = warden->grave.buried;

	calls_look();
	clients_settle(&stage.clients);
	answers_check();
	orders_take();
	stage_settle(&stage);
	sessions_check();
	if (gone)
		warden = NULL;
}

static bool step_end(void)
{
	if (!warden_killed)
		return false;
	show("  the warden is dead\n");
	fake_gone(warden);
	return true;
}

static bool step_time(void)
{
	uint64_t due = stage.loop.n_timers ? stage.loop.heap[1]->deadline : 0;
	struct slice slice = {.until = UINT64_MAX, .things = 1};

	if (!due || (!quiet && chance(3) && due > fake_now + 2000)) {
		fake_now += chance(1000);
		return due != 0;
	}
	show("  %llu us pass\n", (unsigned long long)(due > fake_now ? due - fake_now : 0));
	fake_now = MAX(fake_now, due);
	timer_run(&stage.loop, &slice);
	return true;
}

/* One thing happens. */
static bool step(void)
{
	static bool (*const steps[])(void) = {
		step_warden_takes,   step_warden_tells,	  step_process_takes, step_process_takes,
		step_process_speaks, step_process_speaks, step_cell_goes_on,  step_client,
		step_client,	     step_time,		  step_provider,
	};
	size_t at = chance(ARRAY_SIZE(steps));

	if (!quiet && scarcity && chance(scarcity) == 0) {
		fake_failures = 1;
		fake_failure = chance(2) ? -EMFILE : -ENOMEM;
	}
	if (!quiet && hostility && chance(hostility) == 0 && step_hostile())
		return true;
	if (warden_killed && chance(3) == 0)
		return step_end();
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
		if (steps[(at + i) % ARRAY_SIZE(steps)]())
			return true;
	return step_end();
}

/* Everybody does what is right, those who ask are answered, and time is the last to go on. */
static bool step_quiet(void)
{
	static bool (*const steps[])(void) = {
		step_process_speaks, step_warden_takes, step_warden_tells, step_process_takes,
		step_provider,	     step_cell_goes_on, step_end};
	struct session *session;

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
		if (steps[i]())
			return true;
	list_for_each (session, &stage.sessions.all, node)
		if (session_busy(session) && session->cell->asking) {
			answer_input(session);
			return true;
		}
	return step_time();
}

static bool all_answered(void)
{
	for (uint64_t id = 1; id <= stage.last_request; id++)
		if (requests[id].finals == 0)
			return false;
	return true;
}

/* Of the last one, a call takes longer than it may. */
static struct bytes offer(void)
{
	static const struct function functions[] = {{.name = BYTES("look")},
						    {.name = BYTES("pay"), .effect = true},
						    {.name = BYTES("asks"), .ask = true},
						    {.name = BYTES("slow"), .timeout = 1.0 / 16}};
	static msgpack_sbuffer buffer;

	if (buffer.size > 0)
		return wire_bytes(&buffer);
	wire_put_array(&buffer, ARRAY_SIZE(functions));
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++)
		wire_encode_body(&buffer, &function_schema, &functions[i]);
	return wire_bytes(&buffer);
}

static void world_begin(uint64_t seed)
{
	static const enum checkpoint_policy policies[] = {CHECKPOINT_CELL, CHECKPOINT_CELL, CHECKPOINT_CELL,
							  CHECKPOINT_MANUAL, CHECKPOINT_OFF};
	struct session *session;

	memset(processes, 0, (last_process + 1) * sizeof(*processes));
	last_process = 0;
	memset(requests, 0, sizeof(requests));
	memset(views, 0, sizeof(views));
	n_orders = n_news = n_answers = n_branches = n_made = 0;
	last_run = 0;
	n_nodes = 1;
	warden_killed = quiet = false;
	wrong[0] = '\0';
	chance_begin(seed, UINT32_MAX);
	stage_begin(&stage);
	stage.functions = chance(3) ? offer() : (struct bytes){.data = NULL};
	splits = stage.functions.data && chance(3) == 0;
	stage.profile.functions = FUNCTIONS_ON;
	stage.profile.calls = 1000;
	stage.profile.call_size = 1024;
	stage.profile.calls_at_once = 4;
	stage.profile.call_timeout = chance(3) ? 0 : SECOND;
	stage.profile.hold_timeout = SECOND;
	stage.profile.checkpoint = policies[chance(ARRAY_SIZE(policies))];
	stage.profile.checkpoints = 1 + chance(4);
	stage.profile.hard_ttl = chance(8) ? 0 : 30 * SECOND;
	scarcity = chance(3) ? 0 : 60;
	hostility = chance(3) ? (chance(2) ? 100 : 20) : 0;
	session = stage_open(&stage, chance(20) ? "s" : "");
	warden = session->warden;
	views[session->tenant.number] = (struct view){.known = true};
	process_born(1, 0, false);
	process_of(1)->known = true;
}

/* Everything that was asked is answered before, or when the session is told to end. */
static void world_end(void)
{
	struct session *session;

	quiet = true;
	fake_failures = 0;
	for (unsigned i = 0; warden && !all_answered() && !wrong[0]; i++) {
		if (i == QUIET_STEPS) {
			fail("not answered", 0);
			break;
		}
		if (step_quiet())
			settle();
		else
			fail("nothing happens, and something is not answered", 0);
	}
	if (warden) {
		while ((session = sessions_first_that_stays(&stage.sessions)))
			session_end(session, "shutdown");
		fake_gone(warden);
		settle();
	}
	for (uint64_t id = 1; id <= stage.last_request; id++)
		if (requests[id].finals != 1)
			fail("not answered exactly once", id);
	stage_end(&stage);
}

/* Without the steps that @without says. Returns whether all was right. */
static bool run(uint64_t seed, const bool *without)
{
	world_begin(seed);
	for (uint64_t i = 0; i < STEPS && warden && !wrong[0]; i++) {
		if (without && without[i])
			continue;
		chance_begin(seed, i);
		show("%llu\n", (unsigned long long)i);
		if (step())
			settle();
		n_steps_all++;
	}
	chance_begin(seed, STEPS);
	world_end();
	return !wrong[0];
}

/* Fewer steps, as long as it goes wrong in the same way. */
static void explain(uint64_t seed)
{
	static bool without[STEPS];
	char first[sizeof(wrong)];
	unsigned left = 0;

	memset(without, 0, sizeof(without));
	snprintf(first, sizeof(first), "%.20s", wrong);
	for (size_t size = STEPS / 4; size > 0; size /= 2)
		for (size_t at = 0; at + size <= STEPS; at += size) {
			bool before[STEPS];

			memcpy(before, without, sizeof(before));
			memset(without + at, true, size * sizeof(*without));
			if (run(seed, without) || strncmp(wrong, first, strlen(first)) != 0)
				memcpy(without, before, sizeof(before));
		}
	for (size_t i = 0; i < STEPS; i++)
		left += !without[i];
	shown = true;
	(void)run(seed, without);
	shown = false;
	fprintf(stderr, "seed %llu, %u steps: %s\n", (unsigned long long)seed, left, wrong);
}

static uint64_t seed_now;

static void on_abort(int signal)
{
	fprintf(stderr, "seed %llu\n", (unsigned long long)seed_now);
	(void)raise(signal);
}

int main(int argc, char **argv)
{
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1,
		 n = argc > 2 ? strtoull(argv[2], NULL, 10) : SEEDS;
	struct sigaction action = {.sa_handler = on_abort, .sa_flags = (int)SA_RESETHAND};
	clock_t began = clock();
	unsigned failures = 0;
	double took;

	(void)sigaction(SIGABRT, &action, NULL);
	(void)sigaction(SIGSEGV, &action, NULL);
	fake_front_on_message = on_message;
	if (argc > 1 && argc < 3)
		n = 1;
	for (seed_now = first; seed_now < first + n && failures < 3; seed_now++) {
		bool right = run(seed_now, NULL);

		CHECK(right);
		if (!right) {
			failures++;
			explain(seed_now);
		}
	}
	took = (double)(clock() - began) / CLOCKS_PER_SEC;
	printf("%llu calls, of which %llu were repetitions, %llu told\n", (unsigned long long)n_calls_all,
	       (unsigned long long)n_repeats_all, (unsigned long long)n_told_all);
	printf("%llu events, %.0f a second, %llu answers compared with the state, %llu when there was none\n",
	       (unsigned long long)n_steps_all, (double)n_steps_all / MAX(took, 0.001),
	       (unsigned long long)n_truths, (unsigned long long)n_unseen);
	CHECK((n_truths > 100 && n_repeats_all > 100 && n_told_all > 100 && n_splits_all > 100) || argc > 1);
	return check_report();
}
