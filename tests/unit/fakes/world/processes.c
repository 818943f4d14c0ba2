/* Interpreters: they take orders, run cells, fork and die. Some say what nobody should. */
#include "world.h"

#include <signal.h>

struct process *process_of(uint64_t serial)
{
	if (serial >= PROCESSES_MAX)
		abort();
	world.last_process = MAX(world.last_process, serial);
	return &world.processes[serial];
}

void process_born(uint64_t serial, size_t truth, bool frozen)
{
	struct process *process = process_of(serial);

	process->born = true;
	process->truth = truth;
	process->frozen = frozen;
}

void process_dies(uint64_t serial, int status)
{
	struct process *process = process_of(serial);

	if (!process->born || process->dead)
		return;
	process->dead = true;
	process->status = status;
	process->n_in = 0;
	process_report(serial);
}

void process_says(struct process *process, const struct say *say)
{
	if (!process->dead && !process->closed && process->n_out < QUEUE_MAX)
		process->outbox[process->n_out++] = *say;
}

static size_t node_new(size_t parent, uint64_t cell, uint64_t run)
{
	if (world.n_nodes == NODES_MAX)
		abort();
	world.nodes[world.n_nodes] = (struct node){.parent = parent, .cell = cell, .run = run};
	return world.n_nodes++;
}

/* It is in the middle of its cell. What it waits for, its copy waits for, too. */
static void cell_copied(const struct process *process, struct process *copy)
{
	size_t n = world.n_made;

	copy->computing = process->computing;
	copy->n_calls = process->n_calls;
	copy->run = ++world.last_run;
	for (size_t i = 0; i < n; i++) {
		if (world.made[i].run != process->run || world.made[i].heard || world.made[i].abandoned)
			continue;
		if (world.n_made == CALLS_MADE_MAX)
			abort();
		world.made[world.n_made] =
			(struct made){.cell = world.made[i].cell, .number = world.made[i].number, .run = copy->run};
		memcpy(world.made[world.n_made].text, world.made[i].text, sizeof(world.made[i].text));
		world.n_made++;
	}
}

static void fork_frozen(struct process *process, const struct order *order)
{
	struct say say = {.schema = &frozen_message_schema, .as.frozen = {.serial = order->serial}};

	if (order->number != process->computing || process->waits ||
	    (order->number && world.n_made + 10 > CALLS_MADE_MAX)) {
		say.as.frozen.reason = BYTES("it has ended, or waits for input");
	} else if (!world.quiet && chance(8) == 0) {
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

	if (world.quiet || chance(10) > 0) {
		say.as.spawned.pid = 1000 + order->serial;
		if (fake_interpreter(world.warden, order->serial))
			process_born(order->serial, process->truth, false);
		process_of(order->serial)->computing = process->computing;
		process_of(order->serial)->n_calls = process->n_calls;
		process_of(order->serial)->run = process->run;
	}
	process_says(process, &say);
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
		process->run = ++world.last_run;
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
	uint64_t last = world.warden->last_interpreter, at = last ? chance(last) : 0;

	for (uint64_t i = 0; i < last; i++) {
		uint64_t serial = 1 + (at + i) % last;

		if (world.processes[serial].born && can(&world.processes[serial])) {
			*serialp = serial;
			return &world.processes[serial];
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
	       !(forks && world.warden->sweeping);
}

static bool can_end_cell(const struct process *process)
{
	return !process->dead && !process->frozen && process->computing && !process->waits;
}

static bool can_speak(const struct process *process)
{
	const struct interpreter *interpreter =
		fake_interpreter(world.warden, (uint64_t)(process - world.processes));

	/* What one in the middle of a cell says before it is known to live waits in its channel. */
	if (interpreter && session_of(interpreter) && session_of(interpreter)->midway && process->n_out > 0)
		return false;
	return interpreter && fake_listens(interpreter) && (process->n_out > 0 || process->dead || process->closed);
}

static bool lives(const struct process *process)
{
	return !process->dead;
}

bool step_process_takes(void)
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
	if (!world.quiet && process->n_calls == 0 && chance(12) == 0)
		say.as.done.cause = say.as.done.text = BYTES("forbidden");
	else
		process->truth = node_new(process->truth, cell, process->run);
	if (!world.quiet && chance(12) == 0)
		say.as.done.unfaithful = BYTES("a thread runs");
	process_says(process, &say);
}

bool step_cell_goes_on(void)
{
	static const char empty_map[] = "\x80";
	uint64_t serial;
	struct process *process = process_find(can_end_cell, &serial);
	struct say display = {.schema = &display_message_schema, .as.shown = {.data = {empty_map, 1}}};

	if (!process)
		return false;
	show("  %llu is in its cell\n", (unsigned long long)serial);
	switch (world.quiet ? 0 : chance(world.stage.functions.data ? 18 : 10)) {
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

bool step_process_speaks(void)
{
	uint64_t serial;
	struct process *process = process_find(can_speak, &serial);
	struct interpreter *interpreter = process ? fake_interpreter(world.warden, serial) : NULL;
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
bool step_hostile(void)
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
