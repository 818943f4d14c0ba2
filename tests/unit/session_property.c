/* Whatever happens in whatever order: each request is answered exactly once, and each answer tells truly what the
 * state of its session is. What sessions live in is simulated (fakes/world/). A run that fails is tried again
 * without each of its steps, and what is left is shown. */
#include "check.h"
#include "fakes/world/world.h"

#include <signal.h>
#include <time.h>

#define SEEDS 10000
#define STEPS 300
/* After these nobody asks for anything more, and all that is under way comes to its end. */
#define QUIET_STEPS 3000

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
	if ((cell->calls.n > 0 || (cell->asking && cell->options.input)) == (session->deadline.index != 0))
		fail(cell->calls.n > 0 ? "its time goes on while it waits" : "its time stands still", cell->number);
}

/* Whoever waits for somebody else does not wait for ever. */
static void sessions_check(void)
{
	struct session *session;

	list_for_each (session, &world.stage.sessions.all, node) {
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
	bool gone = world.warden->grave.buried;

	calls_look();
	clients_settle(&world.stage.clients);
	answers_check();
	orders_take();
	stage_settle(&world.stage);
	sessions_check();
	if (gone)
		world.warden = NULL;
}

static bool step_end(void)
{
	if (!world.warden_killed)
		return false;
	show("  the warden is dead\n");
	fake_gone(world.warden);
	return true;
}

static bool step_time(void)
{
	uint64_t due = world.stage.loop.n_timers ? world.stage.loop.heap[1]->deadline : 0;
	struct slice slice = {.until = UINT64_MAX, .things = 1};

	if (!due || (!world.quiet && chance(3) && due > fake_now + 2000)) {
		fake_now += chance(1000);
		return due != 0;
	}
	show("  %llu us pass\n", (unsigned long long)(due > fake_now ? due - fake_now : 0));
	fake_now = MAX(fake_now, due);
	timer_run(&world.stage.loop, &slice);
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

	if (!world.quiet && world.scarcity && chance(world.scarcity) == 0) {
		fake_failures = 1;
		fake_failure = chance(2) ? -EMFILE : -ENOMEM;
	}
	if (!world.quiet && world.hostility && chance(world.hostility) == 0 && step_hostile())
		return true;
	if (world.warden_killed && chance(3) == 0)
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
	list_for_each (session, &world.stage.sessions.all, node)
		if (session_busy(session) && session->cell->asking) {
			answer_input(session);
			return true;
		}
	return step_time();
}

static bool all_answered(void)
{
	for (uint64_t id = 1; id <= world.stage.last_request; id++)
		if (world.requests[id].finals == 0)
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

	memset(world.processes, 0, (world.last_process + 1) * sizeof(*world.processes));
	world.last_process = 0;
	memset(world.requests, 0, sizeof(world.requests));
	memset(world.views, 0, sizeof(world.views));
	world.n_orders = world.n_news = world.n_answers = world.n_branches = world.n_made = 0;
	world.last_run = 0;
	world.n_nodes = 1;
	world.warden_killed = world.quiet = false;
	world.wrong[0] = '\0';
	chance_begin(seed, UINT32_MAX);
	stage_begin(&world.stage);
	world.stage.functions = chance(3) ? offer() : (struct bytes){.data = NULL};
	world.splits = world.stage.functions.data && chance(3) == 0;
	world.stage.profile.functions = FUNCTIONS_ON;
	world.stage.profile.calls = 1000;
	world.stage.profile.call_size = 1024;
	world.stage.profile.calls_at_once = 4;
	world.stage.profile.call_timeout = chance(3) ? 0 : SECOND;
	world.stage.profile.hold_timeout = SECOND;
	world.stage.profile.checkpoint = policies[chance(ARRAY_SIZE(policies))];
	world.stage.profile.checkpoints = 1 + chance(4);
	world.stage.profile.hard_ttl = chance(8) ? 0 : 30 * SECOND;
	world.scarcity = chance(3) ? 0 : 60;
	world.hostility = chance(3) ? (chance(2) ? 100 : 20) : 0;
	session = stage_open(&world.stage, chance(20) ? "s" : "");
	world.warden = session->warden;
	world.views[session->tenant.number] = (struct view){.known = true};
	process_born(1, 0, false);
	process_of(1)->known = true;
}

/* Everything that was asked is answered before, or when the session is told to end. */
static void world_end(void)
{
	struct session *session;

	world.quiet = true;
	fake_failures = 0;
	for (unsigned i = 0; world.warden && !all_answered() && !world.wrong[0]; i++) {
		if (i == QUIET_STEPS) {
			fail("not answered", 0);
			break;
		}
		if (step_quiet())
			settle();
		else
			fail("nothing happens, and something is not answered", 0);
	}
	if (world.warden) {
		while ((session = sessions_first_open(&world.stage.sessions)))
			session_end(session, "shutdown");
		fake_gone(world.warden);
		settle();
	}
	for (uint64_t id = 1; id <= world.stage.last_request; id++)
		if (world.requests[id].finals != 1)
			fail("not answered exactly once", id);
	stage_end(&world.stage);
}

/* Without the steps that @without says. Returns whether all was right. */
static bool run(uint64_t seed, const bool *without)
{
	world_begin(seed);
	for (uint64_t i = 0; i < STEPS && world.warden && !world.wrong[0]; i++) {
		if (without && without[i])
			continue;
		chance_begin(seed, i);
		show("%llu\n", (unsigned long long)i);
		if (step())
			settle();
		totals.steps++;
	}
	chance_begin(seed, STEPS);
	world_end();
	return !world.wrong[0];
}

/* Fewer steps, as long as it goes wrong in the same way. */
static void explain(uint64_t seed)
{
	static bool without[STEPS];
	char first[sizeof(world.wrong)];
	unsigned left = 0;

	memset(without, 0, sizeof(without));
	snprintf(first, sizeof(first), "%.20s", world.wrong);
	for (size_t size = STEPS / 4; size > 0; size /= 2)
		for (size_t at = 0; at + size <= STEPS; at += size) {
			bool before[STEPS];

			memcpy(before, without, sizeof(before));
			memset(without + at, true, size * sizeof(*without));
			if (run(seed, without) || strncmp(world.wrong, first, strlen(first)) != 0)
				memcpy(without, before, sizeof(before));
		}
	for (size_t i = 0; i < STEPS; i++)
		left += !without[i];
	world.shown = true;
	(void)run(seed, without);
	world.shown = false;
	fprintf(stderr, "seed %llu, %u steps: %s\n", (unsigned long long)seed, left, world.wrong);
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
	printf("%llu calls, of which %llu were repetitions, %llu told\n", (unsigned long long)totals.calls,
	       (unsigned long long)totals.repeats, (unsigned long long)totals.told);
	printf("%llu events, %.0f a second, %llu answers compared with the state, %llu when there was none\n",
	       (unsigned long long)totals.steps, (double)totals.steps / MAX(took, 0.001),
	       (unsigned long long)totals.truths, (unsigned long long)totals.unseen);
	CHECK((totals.truths > 100 && totals.repeats > 100 && totals.told > 100 && totals.splits > 100) ||
	      argc > 1);
	return check_report();
}
