#include "fakes/stage.h"

#include <stdio.h>

#define KEPT_US (60 * 1000000ULL)

void stage_begin(struct stage *stage)
{
	static const char keeper[INSTANCE_NAME_SIZE] = "a-keeper";

	*stage = (struct stage){.config = {.sessions = 100, .sessions_per_uid = 100}};
	if (event_loop_init(&stage->loop))
		abort();
	breaker_open(&stage->breaker, -1, ROUTER_END_WELL);
	users_init(&stage->users);
	clients_init(&stage->clients);
	promises_init(&stage->promises, &stage->loop, &stage->clients, &stage->users, keeper);
	stage->promises.size_per_user = 1 << 20;
	fake_cages_init(&stage->cages, &stage->loop, &stage->breaker, &stage->config, &stage->profile);
	stage->profile = (struct profile){
		.name = (char *)"default",
		.refs = 1,
		.cell_timeout = 10 * 1000000ULL,
		.grace = 1000000,
		.checkpoint = CHECKPOINT_CELL,
		.checkpoints = 4,
		.result_ttl = KEPT_US,
		.results = 10,
		.results_size = 1 << 20,
		.output_size = 1 << 16,
	};
	life_init(&stage->sessions);
	stage->sessions.loop = &stage->loop;
	stage->sessions.breaker = &stage->breaker;
	stage->sessions.users = &stage->users;
	stage->sessions.clients = &stage->clients;
	stage->sessions.promises = &stage->promises;
	stage->sessions.cages = &stage->cages;
	stage->sessions.config = &stage->config;
}

void stage_end(struct stage *stage)
{
	struct session *session;
	struct list *first;

	while ((session = sessions_first_open(&stage->sessions)))
		session_end(session, "shutdown");
	while ((first = list_first(&stage->sessions.all)))
		fake_gone(container_of(first, struct session, node)->warden);
	stage_settle(stage);
	past_deinit(&stage->sessions.past);
	stop_deinit(&stage->sessions.stop);
	promises_deinit(&stage->promises);
	clients_deinit(&stage->clients);
	users_deinit(&stage->users);
	fake_cages_deinit(&stage->cages);
	breaker_close(&stage->breaker);
	event_loop_deinit(&stage->loop);
}

void stage_settle(struct stage *stage)
{
	clients_settle(&stage->clients);
	fake_free_interpreters(&stage->cages);
	graveyard_empty(&stage->sessions.dead);
	fake_free_wardens(&stage->cages);
	graveyard_empty(&stage->promises.dead);
}

bool stage_wait_for_timer(struct stage *stage, uint64_t us)
{
	struct slice slice = {.until = UINT64_MAX, .things = 1};
	uint64_t due;

	if (stage->loop.n_timers == 0)
		return false;
	due = stage->loop.heap[1]->deadline;
	if (due > fake_now + us)
		return false;
	fake_now = MAX(fake_now, due);
	timer_run(&stage->loop, &slice);
	stage_settle(stage);
	return true;
}

void stage_wait(struct stage *stage, uint64_t us)
{
	uint64_t end = fake_now + us;

	while (stage_wait_for_timer(stage, end - fake_now))
		;
	fake_now = end;
}

struct session *stage_open(struct stage *stage, const char *id)
{
	struct session *session = NULL;

	if (sessions_open(&session, &stage->sessions, &stage->profile, bytes_of(id), STAGE_OWNER,
			  &(struct beginning){.code.data = NULL}))
		return NULL;
	return session;
}

struct address stage_address(struct stage *stage)
{
	return (struct address){.fd = 1, .connection = 1, .uid = STAGE_OWNER, .id = ++stage->last_request};
}

uint64_t stage_exec(struct stage *stage, struct session *session, bool input, uint64_t timeout)
{
	const struct keeping keeping = profile_keeping(&stage->profile);
	const struct cell_options options = {.code = BYTES("x"), .input = input, .functions = stage->functions};
	const struct watch watch = {.input = input, .calls = stage->functions.data};
	struct address address = stage_address(stage);
	struct address to = address;
	msgpack_sbuffer encoded;
	struct cell *cell;

	msgpack_sbuffer_init(&encoded);
	if (wire_encode_body(&encoded, &cell_options_schema, &options) ||
	    promise_new(&to.promise, &stage->promises, STAGE_OWNER, bytes_of(session->id),
			(struct bytes){.data = NULL}, 0, &keeping) ||
	    promise_join(to.promise, &address, &watch) ||
	    cell_new(&cell, wire_bytes(&encoded), &to, timeout, stage->profile.output_size))
		abort();
	msgpack_sbuffer_destroy(&encoded);
	session_exec(session, cell);
	promise_taken(to.promise);
	return address.id;
}

uint64_t stage_reset(struct stage *stage, struct session *session)
{
	struct address address = stage_address(stage);

	session_reset(session, &address);
	return address.id;
}

uint64_t stage_close(struct stage *stage, struct session *session)
{
	struct address address = stage_address(stage);

	session_close(session, &address);
	return address.id;
}

uint64_t stage_operate(struct stage *stage, struct session *session, enum operation_kind kind, const char *name,
		       const char *branch, uint64_t n)
{
	static const struct bytes code = {.data = "x", .size = 1}, none;
	struct address address = stage_address(stage);
	struct operation *operation;

	if (operation_new(&operation, kind, &address, bytes_of(name)))
		abort();
	if (kind == OPERATION_QUESTION &&
	    question_new(&operation->question, QUESTION_IS_COMPLETE, session->user, code, none))
		abort();
	if (branch)
		snprintf(operation->branch, sizeof(operation->branch), "%s", branch);
	operation->n = n;
	session_operate(session, operation);
	return address.id;
}
