/* What answers say, compared with what the live processes really have. */
#include "world.h"

static void call_put(uint64_t request, struct bytes body)
{
	struct call_event event;
	struct wire_fault fault;

	if (wire_decode(&event, &call_event_schema, body, &fault)) {
		fail("a call that is none", request);
		return;
	}
	for (size_t i = world.n_made; i > 0; i--)
		if (world.made[i - 1].request == request && world.made[i - 1].number == event.number) {
			if (world.made[i - 1].answered || ++world.made[i - 1].put > 1)
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
	for (size_t i = 0; i < world.n_made; i++) {
		const struct made *one = &world.made[i];

		if (one->request != answer->request || !one->request)
			continue;
		if (!one->over)
			fail("its cell has ended, and a call is out", answer->request);
		if (!lost || one->put == 0 || one->refused || reply->effects_more)
			continue;
		totals.told++;
		if (!is_told(reply->effects, one->text))
			fail("a call is not told", answer->request);
	}
}

static void read_result(struct answer *answer, struct bytes body)
{
	struct exec_reply reply;
	struct state_reply state;
	struct wire_fault fault;

	if (world.requests[answer->request].kind == REQUEST_EXEC &&
	    !wire_decode(&reply, &exec_reply_schema, body, &fault)) {
		answer->is_result = true;
		answer->from_done = reply.text.data != NULL;
		/* The cause may be that its time was over. */
		answer->forbidden = bytes_is(reply.text, "forbidden");
		answer->cell = reply.cell;
		answer->restored = reply.restored;
		snprintf(answer->state, sizeof(answer->state), "%.*s", (int)reply.state.size, reply.state.data);
		check_told(answer, &reply);
	} else if (world.requests[answer->request].kind == REQUEST_STATE &&
		   !wire_decode(&state, &state_reply_schema, body, &fault)) {
		answer->cell = state.cell;
	}
}

void on_message(uint64_t connection, struct bytes message)
{
	static const char *const events[] = {"stdout", "stderr", "ask", "display", "alive", "held", "cancel"};
	struct answer answer = {.request = 0};
	struct wire_frame frame;

	(void)connection;
	if (wire_open_answer(&frame, message) || !wire_find_id(&answer.request, frame.body) ||
	    answer.request == 0 || answer.request > world.stage.last_request) {
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
	if (++world.requests[answer.request].finals > 1)
		fail("answered twice", answer.request);
	answer.is_error = bytes_is(frame.type, error_reply_schema.type);
	if (!answer.is_error)
		read_result(&answer, frame.body);
	show("    answer to %llu: %s %s cell %llu restored %llu\n", (unsigned long long)answer.request,
	     answer.is_error ? "error" : "", answer.state, (unsigned long long)answer.cell,
	     (unsigned long long)answer.restored);
	if (world.n_answers < ARRAY_SIZE(world.answers))
		world.answers[world.n_answers++] = answer;
}

/* What the session really has. Returns false if it has nothing at the moment: it ends, or begins. */
static bool truth_of(size_t *truthp, const struct session *session)
{
	if (!session || !session->live || session->state == SESSION_CLOSING || session->state == SESSION_STARTING) {
		totals.unseen++;
		return false;
	}
	/* One from the pristine image may not have been made yet. */
	*truthp = process_of(session->live->serial)->truth;
	totals.truths++;
	return true;
}

static void check_kept(const struct answer *answer, struct view *view, size_t truth)
{
	/* One that was cancelled before it began. */
	if (answer->cell == 0)
		return;
	if (answer->forbidden ? truth != view->state
			      : world.nodes[truth].cell != answer->cell || world.nodes[truth].parent != view->state)
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
	if (added ? world.nodes[truth].parent != base || world.nodes[truth].cell != answer->cell : truth != base)
		fail("it went back to another state than it says", answer->request);
	view->state = truth;
	if (answer->from_done)
		view->after[answer->cell] = truth;
}

static void check_result(const struct answer *answer)
{
	struct session *session = session_at(world.requests[answer->request].session);
	struct view *view = &world.views[world.requests[answer->request].session];
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
	struct view *view = &world.views[world.requests[answer->request].session];
	size_t truth;

	if (!truth_of(&truth, session_at(world.requests[answer->request].session)))
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

	totals.splits++;
	request_note(REQUEST_EXEC, session, NULL);
	address = stage_address(&world.stage);
	orders_take();
	for (size_t i = 0; i < world.n_made; i++) {
		if (world.made[i].run != process->run || world.made[i].serial)
			continue;
		world.made[i].session = session->tenant.number;
		world.made[i].serial = session->live->serial;
		world.made[i].over = world.made[i].heard;
		if (calls_find(&session->cell->calls, world.made[i].number))
			world.made[i].request = address.id;
		else if (!world.made[i].heard && process->computing && !process->dead &&
			 !is_on_its_way(process, world.made[i].number))
			fail("a call of the branch is answered by nobody", address.id);
	}
	if (promise_join(session->cell->reply.promise, &address,
			 &(struct watch){.input = session->cell->options.input, .calls = true}))
		abort();
	session_heed_calls(session);
}

/* It may have come to the end of its cell already. */
static size_t before_cell(const struct session *session, size_t truth)
{
	const struct process *process = process_of(session->live->serial);
	bool ended = session->cell && truth && !process->computing && world.nodes[truth].run == process->run;

	return ended ? world.nodes[truth].parent : truth;
}

static void check_branch(const struct answer *answer)
{
	const struct request *request = &world.requests[answer->request];
	const struct view *parent = &world.views[request->session];
	struct session_name name = {.owner = STAGE_OWNER, .id = bytes_of(request->branch)};
	struct session *session = sessions_find(&world.stage.sessions, &name);
	struct view *view;
	size_t truth;

	if (!session)
		return;
	view = &world.views[session->tenant.number];
	*view = *parent;
	memcpy(view->id, request->branch, sizeof(view->id));
	view->state = parent->after[session->at];
	if (truth_of(&truth, session) && before_cell(session, truth) != view->state)
		fail("the branch grew from another state", answer->request);
	if (session_busy(session) && list_empty(&session->cell->reply.promise->askers))
		join(session);
}

static void check_reset(const struct answer *answer)
{
	size_t truth;

	if (truth_of(&truth, session_at(world.requests[answer->request].session)) && truth != 0)
		fail("it was reset, and is not fresh", answer->request);
	world.views[world.requests[answer->request].session].state = 0;
}

void answers_check(void)
{
	for (size_t i = 0; i < world.n_answers; i++) {
		const struct answer *answer = &world.answers[i];

		if (answer->is_error)
			continue;
		switch (world.requests[answer->request].kind) {
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
	world.n_answers = 0;
}
