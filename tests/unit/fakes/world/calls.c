/* Calls of functions: as the cell, the router and the provider each know them. */
#include "world.h"

/* The last one of that process's cell with that number. */
static struct made *made_by(uint64_t run, uint64_t number)
{
	for (size_t i = world.n_made; i > 0; i--)
		if (world.made[i - 1].run == run && world.made[i - 1].number == number)
			return &world.made[i - 1];
	return NULL;
}

void call_heard(const struct process *process, uint64_t number)
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

	while (at && world.nodes[at].run != run)
		at = world.nodes[at].parent;
	return at || process->run == run;
}

/* Whether somebody may have done what the call asks for, in a cell that is not in the past of this one. */
static bool was_undone(const struct process *process, unsigned payment)
{
	for (size_t i = 0; i < world.n_made; i++)
		if (world.made[i].payment == payment && world.made[i].put > 0 && world.made[i].over &&
		    !world.made[i].refused && !in_past(process, world.made[i].run))
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

void calls_look(void)
{
	struct session *session;

	for (size_t i = 0; i < world.n_made; i++)
		world.made[i].over |= world.made[i].request && !call_of(&world.made[i], &session);
}

static struct bytes packed(struct made *one, const char *name, uint16_t n)
{
	static char arguments[8] = "\x81\xa1n\xcd";

	arguments[4] = (char)(n >> 8);
	arguments[5] = (char)n;
	snprintf(one->text, sizeof(one->text), "%s(n=%u)", name, n);
	return (struct bytes){.data = arguments, .size = 6};
}

void process_calls(struct process *process, uint64_t serial)
{
	static const char *const names[] = {"look", "pay", "asks", "slow"};
	struct say say = {.schema = &call_message_schema, .made = world.n_made};
	const char *name = names[chance(ARRAY_SIZE(names))];
	struct made *one = &world.made[world.n_made];

	if (world.splits && !strcmp(name, "pay"))
		name = names[0];

	if (world.n_made == CALLS_MADE_MAX || !world.stage.functions.data)
		return;
	world.n_made++;
	*one = (struct made){.cell = process->computing,
			     .number = ++process->n_calls,
			     .run = process->run,
			     .serial = serial,
			     .payment = strcmp(name, "pay") != 0 ? 0 : 1 + (unsigned)chance(PAYMENTS)};
	say.as.call = (struct call_message){.number = one->number, .function = bytes_of(name)};
	process_says(process, &say);
}

void process_abandons(struct process *process)
{
	struct say say = {.schema = &abandon_message_schema};

	for (size_t i = 0; i < world.n_made; i++)
		if (world.made[i].run == process->run && !world.made[i].heard && !world.made[i].abandoned &&
		    chance(2)) {
			world.made[i].abandoned = true;
			say.as.abandon.number = world.made[i].number;
			process_says(process, &say);
			return;
		}
}

/* It comes to its session, which refuses it or has it put. */
void call_said(struct interpreter *interpreter, struct say *say)
{
	struct made *one = &world.made[say->made];
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
	totals.calls++;
	too_many = session->cell->calls.n >= world.stage.profile.calls_at_once;
	fake_say(interpreter, say->schema, &say->as);
	if (session->state == SESSION_CLOSING || !session->cell || session->cell->number != one->cell)
		return;
	totals.repeats += repeats;
	if ((repeats || too_many) == !!calls_find(&session->cell->calls, one->number))
		fail(repeats ? "it was undone, and is repeated in silence" : "refused, and was never undone",
		     one->request);
	/* Nobody goes back in a one-shot, and nothing is noted of it. */
	if (!session->id[0])
		one->payment = 0;
	one->refused = one->over = !calls_find(&session->cell->calls, one->number);
}

/* Its provider, or who approves it, does something with one that it has. */
bool step_provider(void)
{
	struct returned_message answer = {.value = BYTES("\xc0")};
	struct session *session;
	struct made *one;
	struct call *call;
	size_t at = world.n_made ? chance(world.n_made) : 0;

	for (size_t i = 0; i < world.n_made; i++) {
		one = &world.made[(at + i) % world.n_made];
		call = one->request && !one->over ? call_of(one, &session) : NULL;
		if (!call)
			continue;
		show("  the provider of %s: call %llu, %s\n", session->id, (unsigned long long)one->number,
		     one->text);
		if (call->state == CALL_ASKS && chance(2)) {
			session_approve_call(session, call, STAGE_OWNER);
		} else if (call->state == CALL_ASKS ||
			   (!world.quiet && call->state == CALL_HELD && chance(3) == 0)) {
			one->refused = one->answered = true;
			if (call->state == CALL_HELD || chance(2))
				answer = (struct returned_message){.error = BYTES("PermissionError")};
			session_answer_call(session, call, &answer, STAGE_OWNER);
		} else if (!world.quiet && call->state == CALL_OUT && chance(5) == 0) {
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
