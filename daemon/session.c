/* The life of a session, as a table: for each state, what each event does. An empty cell is a violation, for which
 * the session is ended. Whatever happens to a cell, its request is answered exactly once, and the answer says what
 * became of the session's state. */
#include "session.h"

#include "log.h"
#include "nursery.h"
#include "router.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>

/* How long a warden may take to kill an interpreter before it is itself killed. */
#define KILL_US (5 * 1000000ULL)
/* How long after the end of its channel an interpreter may be said to have died of itself. */
#define DEATH_US (1 * 1000000ULL)
#define STRAY_MAX 65536

#define RETURNCODE_TIMEOUT 124
#define RETURNCODE_SIGNAL 128
#define RETURNCODE_INTERRUPTED 130
#define RETURNCODE_KILLED 137

enum session_event {
	EVENT_READY,
	EVENT_RUN,
	EVENT_SIGNALLED,
	EVENT_DONE,
	EVENT_ASK,
	EVENT_DEADLINE,
	EVENT_CLOSED,
	EVENT_LOST,
	EVENT_EXITED,
	EVENT_RESET,
	_SESSION_EVENT_N,
};

static const char *const state_names[_SESSION_STATE_N] = {
	[SESSION_STARTING] = "starting", [SESSION_IDLE] = "idle",	 [SESSION_BUSY] = "busy",
	[SESSION_GRACE] = "busy",	 [SESSION_KILLING] = "starting", [SESSION_CLOSING] = "closing",
};

static const char *const event_names[_SESSION_EVENT_N] = {
	[EVENT_READY] = "ready",   [EVENT_RUN] = "run",	  [EVENT_SIGNALLED] = "signalled",
	[EVENT_DONE] = "done",	   [EVENT_ASK] = "ask",	  [EVENT_DEADLINE] = "deadline",
	[EVENT_CLOSED] = "closed", [EVENT_LOST] = "lost", [EVENT_EXITED] = "exited",
	[EVENT_RESET] = "reset",
};

/* What an event carries; only the members of that event are set. */
struct particulars {
	const struct done_message *done;
	const struct ask_message *ask;
	const char *why; /* LOST */
	int status;	 /* EXITED */
	bool oom;
};

/* A request that waits. */
struct waiter {
	struct list node;
	struct address request;
};

static void session_event(struct session *session, enum session_event event, const struct particulars *particulars);
static void on_deadline(struct timer *timer);
static void on_idle_ttl(struct timer *timer);
static void on_hard_ttl(struct timer *timer);

static const struct particulars nothing;

/* ---- small steps ---- */

static struct event_loop *loop_of(const struct session *session)
{
	return &session->router->loop;
}

static const char *id_or_null(const struct session *session)
{
	return session->id[0] ? session->id : NULL;
}

static void deadline_set(struct session *session, uint64_t after)
{
	if (after)
		(void)timer_set(loop_of(session), &session->deadline, event_now() + after, on_deadline);
	else
		timer_clear(loop_of(session), &session->deadline);
}

static void waiter_add(struct list *waiters, const struct address *request)
{
	struct waiter *waiter = request ? calloc(1, sizeof(*waiter)) : NULL;

	if (!waiter)
		return;
	waiter->request = *request;
	list_append(waiters, &waiter->node);
}

static void waiters_answer(struct session *session, struct list *waiters)
{
	struct waiter *waiter;

	list_for_each(waiter, waiters, node)
	{
		struct empty_reply reply = {.id = waiter->request.id};

		client_send(&session->router->clients, &waiter->request, &empty_reply_schema, &reply);
		list_remove(&waiter->node);
		free(waiter);
	}
}

/* Answer the running cell and forget it. */
static void cell_finish(struct session *session, const struct verdict *verdict)
{
	struct verdict told = *verdict;

	if (!session->id[0])
		told.state = "ended";
	else if (session->lost_cause[0] && !strcmp(told.state, "kept")) {
		told.state = "reset";
		if (!told.cause)
			told.cause = session->lost_cause;
	}
	cell_reply(session->cell, &session->router->clients, id_or_null(session), &told);
	session->cell = cell_free(session->cell);
	session->lost_cause[0] = '\0';
	session->last = event_now();
	deadline_set(session, 0);
}

static void queue_refuse(struct session *session, const char *why)
{
	struct cell *cell;

	list_for_each(cell, &session->queue, node)
	{
		client_error(&session->router->clients, &cell->reply, "gone", "%s before this cell could run", why);
		cell_free(cell);
	}
	session->n_queued = 0;
}

static void idle_begin(struct session *session)
{
	session->state = SESSION_IDLE;
	if (session->profile->idle_ttl)
		(void)timer_set(loop_of(session), &session->idle, session->last + session->profile->idle_ttl,
				on_idle_ttl);
	if (!list_empty(&session->queue))
		session_event(session, EVENT_RUN, &nothing);
}

/* A fresh interpreter from the pristine image, in the same cage and workspace. */
static void interpreter_renew(struct session *session)
{
	int r = warden_spawn(session->warden);

	if (!r)
		r = interpreter_attach(session->warden->interpreter, session);
	if (r) {
		log_error(session->id, "cannot start a fresh interpreter: %s", strerror(-r));
		session_end(session, "internal");
		return;
	}
	waiters_answer(session, &session->resets);
	idle_begin(session);
}

/* Kill the interpreter; a fresh one follows when it is gone. The first cause stands. */
static void interpreter_kill(struct session *session, const char *cause)
{
	session->state = SESSION_KILLING;
	session->kill_cause = cause;
	timer_clear(loop_of(session), &session->idle);
	if (warden_signal(session->warden, SIGKILL))
		session_end(session, "internal");
	else
		deadline_set(session, KILL_US);
}

/* How a process ended that we did not, or did, kill. @text must hold "signal NN". */
static struct verdict verdict_of_exit(const struct session *session, const struct particulars *exit, char text[32])
{
	struct verdict verdict = {.state = "reset", .returncode = RETURNCODE_KILLED, .cause = session->kill_cause};

	if (session->cell && session->cell->timed_out) {
		verdict.returncode = RETURNCODE_TIMEOUT;
		verdict.cause = "timeout";
	} else if (exit->oom) {
		verdict.cause = "oom";
	} else if (WIFEXITED(exit->status)) {
		verdict.returncode = WEXITSTATUS(exit->status);
		verdict.cause = "exit";
	} else if (!verdict.cause && WIFSIGNALED(exit->status)) {
		verdict.returncode = RETURNCODE_SIGNAL + WTERMSIG(exit->status);
		snprintf(text, 32, "signal %d", WTERMSIG(exit->status));
		verdict.cause = text;
	}
	return verdict;
}

/* ---- the table's entries ---- */

static void ignore(struct session *session, const struct particulars *particulars)
{
	(void)session;
	(void)particulars;
}

static void start_idle(struct session *session, const struct particulars *particulars)
{
	int r = interpreter_attach(session->warden->interpreter, session);

	(void)particulars;
	if (r) {
		log_error(session->id, "cannot watch its interpreter: %s", strerror(-r));
		session_end(session, "internal");
		return;
	}
	idle_begin(session);
}

static void stray_hand_over(struct session *session)
{
	for (int i = 0; i < 2; i++) {
		struct bytes joined;

		if (session->stray[i].total > 0 && !output_join(&session->stray[i], &joined))
			session_on_output(session, (enum interpreter_stream)i, joined);
		if (session->stray[i].total > 0)
			output_deinit(&session->stray[i]);
	}
}

static void run_next(struct session *session, const struct particulars *particulars)
{
	struct run_message run;
	struct cell *cell;

	(void)particulars;
	/* An interrupt on its way may only reach the cell it was meant for. */
	if (session->warden->signals_unanswered > 0 || session->exited)
		return;
	cell = container_of(list_first(&session->queue), struct cell, node);
	list_remove(&cell->node);
	session->n_queued--;
	session->cell = cell;
	session->state = SESSION_BUSY;
	session->kill_cause = NULL;
	cell->number = ++session->n_cells;
	session->router->stats.cells++;
	cell->started = event_now();
	timer_clear(loop_of(session), &session->idle);
	deadline_set(session, cell->timeout);
	stray_hand_over(session);
	run = (struct run_message){
		.cell = cell->number,
		.code = {.data = cell->code, .size = cell->code_size},
		.stream = cell->stream,
		.input = cell->input,
	};
	if (interpreter_send(session->warden->interpreter, &run_message_schema, &run)) {
		log_error(session->id, "out of memory for cell %" PRIu64, cell->number);
		session_end(session, "internal");
	}
}

static void run_if_waiting(struct session *session, const struct particulars *particulars)
{
	if (!list_empty(&session->queue))
		run_next(session, particulars);
}

static void finish_done(struct session *session, const struct particulars *particulars)
{
	static const char *const causes[] = {"error", "exit", "interrupt"};
	const struct done_message *done = particulars->done;
	struct verdict verdict = {.state = "kept",
				  .returncode = done->returncode,
				  .text = done->text,
				  .error = done->error,
				  .blocked = done->blocked};

	if (done->cell != session->cell->number) {
		session_on_lost(session, "it answered for another cell");
		return;
	}
	interpreter_drain(session->warden->interpreter);
	for (size_t i = 0; i < ARRAY_SIZE(causes); i++)
		if (bytes_is(done->cause, causes[i]))
			verdict.cause = causes[i];
	if (session->cell->timed_out) {
		verdict.returncode = RETURNCODE_TIMEOUT;
		verdict.cause = "timeout";
	}
	cell_finish(session, &verdict);
	if (session->id[0])
		idle_begin(session);
	else
		session_end(session, "one-shot");
}

static void pass_ask(struct session *session, const struct particulars *particulars)
{
	struct ask_event event = {.id = session->cell->reply.id,
				  .prompt = particulars->ask->prompt,
				  .password = particulars->ask->password};
	struct answer_message eof = {.eof = true};

	interpreter_drain(session->warden->interpreter);
	if (session->cell->input && client_send(&session->router->clients, &session->cell->reply, &ask_event_schema,
						&event) != CLIENT_E_GONE) {
		/* A person may think: the cell's time stands still meanwhile. */
		session->cell->asking = true;
		deadline_set(session, 0);
	} else if (interpreter_send(session->warden->interpreter, &answer_message_schema, &eof)) {
		session_end(session, "internal");
	}
}

static void time_out(struct session *session, const struct particulars *particulars)
{
	(void)particulars;
	session->cell->timed_out = true;
	log_info(session->id, "cell %" PRIu64 " is over its time of %.3g s: interrupted", session->cell->number,
		 (double)session->cell->timeout / 1e6);
	session->state = SESSION_GRACE;
	if (warden_signal(session->warden, SIGINT))
		session_end(session, "internal");
	else
		deadline_set(session, MAX(session->profile->grace, (uint64_t)1));
}

static void kill_after_grace(struct session *session, const struct particulars *particulars)
{
	(void)particulars;
	log_info(session->id, "cell %" PRIu64 " did not end when interrupted: killed", session->cell->number);
	interpreter_kill(session, "timeout");
}

/* Most likely it has died, and its warden will say of what; until then nobody has killed it. */
static void await_exit(struct session *session, const struct particulars *particulars)
{
	(void)particulars;
	session->state = SESSION_KILLING;
	session->kill_cause = NULL;
	timer_clear(loop_of(session), &session->idle);
	deadline_set(session, DEATH_US);
}

static void kill_lost(struct session *session, const struct particulars *particulars)
{
	log_warn(session->id, "its interpreter is killed: %s", particulars->why);
	interpreter_kill(session, "violation");
}

static void kill_for_reset(struct session *session, const struct particulars *particulars)
{
	(void)particulars;
	queue_refuse(session, "the session was reset");
	interpreter_kill(session, "reset");
}

/* Already being killed: whatever the cause was, what follows is fresh. */
static void reset_meanwhile(struct session *session, const struct particulars *particulars)
{
	(void)particulars;
	queue_refuse(session, "the session was reset");
}

static void reset_before_start(struct session *session, const struct particulars *particulars)
{
	(void)particulars;
	queue_refuse(session, "the session was reset");
	waiters_answer(session, &session->resets);
}

static void give_up_killing(struct session *session, const struct particulars *particulars)
{
	struct particulars lost = {.why = "it closed its channel and lives"};

	(void)particulars;
	if (!session->kill_cause) {
		kill_lost(session, &lost);
		return;
	}
	log_error(session->id, "its interpreter could not be killed: the session is ended");
	session_end(session, session->kill_cause);
}

/* The interpreter is dead. What it had still said was taken in before. */
static void renew_after_exit(struct session *session, const struct particulars *particulars)
{
	char text[32];
	struct verdict verdict = verdict_of_exit(session, particulars, text);

	log_info(session->id, "its interpreter ended (%s)%s", verdict.cause,
		 session->id[0] ? "; a fresh one takes its place" : "");
	deadline_set(session, 0);
	if (session->cell)
		cell_finish(session, &verdict);
	else if (list_empty(&session->resets))
		snprintf(session->lost_cause, sizeof(session->lost_cause), "%s", verdict.cause);
	session->kill_cause = NULL;
	if (session->id[0])
		interpreter_renew(session);
	else
		session_end(session, "one-shot");
}

static void (*const table[_SESSION_STATE_N][_SESSION_EVENT_N])(struct session *, const struct particulars *) =
	{
		[SESSION_STARTING] =
			{
				[EVENT_READY] = start_idle,
				[EVENT_RUN] = ignore,
				[EVENT_RESET] = reset_before_start,
			},
		[SESSION_IDLE] =
			{
				[EVENT_RUN] = run_next,
				[EVENT_SIGNALLED] = run_if_waiting,
				[EVENT_CLOSED] = await_exit,
				[EVENT_LOST] = kill_lost,
				[EVENT_EXITED] = renew_after_exit,
				[EVENT_RESET] = kill_for_reset,
			},
		[SESSION_BUSY] =
			{
				[EVENT_RUN] = ignore,
				[EVENT_SIGNALLED] = ignore,
				[EVENT_DONE] = finish_done,
				[EVENT_ASK] = pass_ask,
				[EVENT_DEADLINE] = time_out,
				[EVENT_CLOSED] = await_exit,
				[EVENT_LOST] = kill_lost,
				[EVENT_EXITED] = renew_after_exit,
				[EVENT_RESET] = kill_for_reset,
			},
		[SESSION_GRACE] =
			{
				[EVENT_RUN] = ignore,
				[EVENT_SIGNALLED] = ignore,
				[EVENT_DONE] = finish_done,
				[EVENT_ASK] = pass_ask,
				[EVENT_DEADLINE] = kill_after_grace,
				[EVENT_CLOSED] = await_exit,
				[EVENT_LOST] = kill_lost,
				[EVENT_EXITED] = renew_after_exit,
				[EVENT_RESET] = kill_for_reset,
			},
		[SESSION_KILLING] =
			{
				[EVENT_RUN] = ignore,
				[EVENT_SIGNALLED] = ignore,
				[EVENT_DONE] = ignore,
				[EVENT_ASK] = ignore,
				[EVENT_DEADLINE] = give_up_killing,
				[EVENT_CLOSED] = ignore,
				[EVENT_LOST] = ignore,
				[EVENT_EXITED] = renew_after_exit,
				[EVENT_RESET] = reset_meanwhile,
			},
		[SESSION_CLOSING] =
			{
				[EVENT_READY] = ignore,
				[EVENT_RUN] = ignore,
				[EVENT_SIGNALLED] = ignore,
				[EVENT_DONE] = ignore,
				[EVENT_ASK] = ignore,
				[EVENT_DEADLINE] = ignore,
				[EVENT_CLOSED] = ignore,
				[EVENT_LOST] = ignore,
				[EVENT_EXITED] = ignore,
				[EVENT_RESET] = ignore,
			},
};

static void session_event(struct session *session, enum session_event event, const struct particulars *particulars)
{
	if (table[session->state][event]) {
		table[session->state][event](session, particulars);
		return;
	}
	log_warn(session->id, "violation: %s while %s", event_names[event], state_names[session->state]);
	if (session->state == SESSION_IDLE) {
		struct particulars lost = {.why = "it spoke while no cell ran"};

		session_event(session, EVENT_LOST, &lost);
	} else {
		session_end(session, "violation");
	}
}

/* ---- from outside ---- */

int session_new(struct session **sessionp, struct router *router, struct profile *profile, const char *id,
		uid_t owner)
{
	struct session *session = calloc(1, sizeof(*session));
	struct nursery *nursery;
	struct timespec now;
	int r;

	if (!session)
		return -ENOMEM;
	list_init(&session->node);
	list_init(&session->queue);
	list_init(&session->resets);
	list_init(&session->closers);
	snprintf(session->id, sizeof(session->id), "%s", id);
	session->owner = owner;
	session->router = router;
	session->profile = profile_ref(profile);
	clock_gettime(CLOCK_REALTIME, &now);
	session->created = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
	session->opened = session->last = event_now();
	for (int i = 0; i < 2; i++)
		output_init(&session->stray[i], STRAY_MAX);
	nursery = router_nursery(router, profile);
	r = nursery ? nursery_claim(nursery, session, &session->warden) : -ENOMEM;
	if (r) {
		session_free(session);
		return r;
	}
	if (profile->hard_ttl)
		(void)timer_set(&router->loop, &session->hard, session->opened + profile->hard_ttl, on_hard_ttl);
	*sessionp = session;
	if (session->warden->state == WARDEN_READY)
		session_event(session, EVENT_READY, &nothing);
	return 0;
}

struct session *session_free(struct session *session)
{
	struct waiter *waiter;

	if (!session)
		return NULL;
	list_remove(&session->node);
	timer_clear(loop_of(session), &session->deadline);
	timer_clear(loop_of(session), &session->idle);
	timer_clear(loop_of(session), &session->hard);
	cell_free(session->cell);
	list_for_each(waiter, &session->resets, node) free(waiter);
	list_for_each(waiter, &session->closers, node) free(waiter);
	for (int i = 0; i < 2; i++)
		output_deinit(&session->stray[i]);
	profile_unref(session->profile);
	free(session);
	return NULL;
}

void session_exec(struct session *session, struct cell *cell)
{
	list_append(&session->queue, &cell->node);
	session->n_queued++;
	if (session->n_queued == 1)
		session_event(session, EVENT_RUN, &nothing);
}

bool session_busy(const struct session *session)
{
	return session->state == SESSION_BUSY || session->state == SESSION_GRACE;
}

const char *session_state_name(const struct session *session)
{
	return state_names[session->state];
}

bool session_cancel(struct session *session, const struct address *request)
{
	static const struct verdict cancelled = {
		.returncode = RETURNCODE_INTERRUPTED, .state = "kept", .cause = "interrupt"};
	struct cell *cell;

	if (session->cell && address_same_request(&session->cell->reply, request))
		return session_interrupt(session);
	list_for_each(cell, &session->queue, node)
	{
		if (!address_same_request(&cell->reply, request))
			continue;
		cell_reply(cell, &session->router->clients, id_or_null(session), &cancelled);
		cell_free(cell);
		session->n_queued--;
		return true;
	}
	return false;
}

bool session_interrupt(struct session *session)
{
	if (!session_busy(session))
		return false;
	session->cell->interrupted = true;
	if (warden_signal(session->warden, SIGINT))
		session_end(session, "internal");
	return true;
}

void session_reset(struct session *session, const struct address *request)
{
	waiter_add(&session->resets, request);
	session_event(session, EVENT_RESET, &nothing);
}

void session_close(struct session *session, const struct address *request)
{
	waiter_add(&session->closers, request);
	session_end(session, "shutdown");
}

void session_end(struct session *session, const char *cause)
{
	struct verdict verdict = {.returncode = RETURNCODE_KILLED, .state = "ended", .cause = cause};

	if (session->state == SESSION_CLOSING)
		return;
	session->state = SESSION_CLOSING;
	session->kill_cause = cause;
	log_info(session->id, "ended: %s", cause);
	if (session->cell && session->cell->timed_out)
		verdict.returncode = RETURNCODE_TIMEOUT;
	if (session->cell)
		cell_finish(session, &verdict);
	queue_refuse(session, "the session ended");
	waiters_answer(session, &session->resets);
	timer_clear(loop_of(session), &session->deadline);
	timer_clear(loop_of(session), &session->idle);
	timer_clear(loop_of(session), &session->hard);
	router_on_session_ended(session->router, session);
	warden_kill(session->warden);
}

void session_answer(struct session *session, const struct input_request *input)
{
	struct answer_message answer = {.text = input->text, .eof = input->eof};

	session->cell->asking = false;
	if (session->state == SESSION_BUSY)
		deadline_set(session, session->cell->timeout);
	if (interpreter_send(session->warden->interpreter, &answer_message_schema, &answer))
		session_end(session, "internal");
}

void session_resume(struct session *session)
{
	if (session->cell && session->warden && session->warden->interpreter &&
	    !client_waits(&session->router->clients, &session->cell->reply))
		interpreter_pause(session->warden->interpreter, false);
}

static void on_deadline(struct timer *timer)
{
	session_event(container_of(timer, struct session, deadline), EVENT_DEADLINE, &nothing);
}

static void on_idle_ttl(struct timer *timer)
{
	session_end(container_of(timer, struct session, idle), "idle_ttl");
}

static void on_hard_ttl(struct timer *timer)
{
	session_end(container_of(timer, struct session, hard), "hard_ttl");
}

void session_on_ready(struct session *session)
{
	session_event(session, EVENT_READY, &nothing);
}

void session_on_signalled(struct session *session)
{
	session_event(session, EVENT_SIGNALLED, &nothing);
}

void session_on_exited(struct session *session, int status, bool oom)
{
	struct particulars particulars = {.status = status, .oom = oom};

	session->exited = true;
	interpreter_drain_channel(session->warden->interpreter);
	interpreter_drain(session->warden->interpreter);
	session->exited = false;
	session_event(session, EVENT_EXITED, &particulars);
}

/* Its cage or its template failed: everybody who waits is told why. */
void session_on_warden_failed(struct session *session)
{
	struct cell *cell;

	if (session->state == SESSION_CLOSING)
		return;
	log_error(session->id, "%s", session->warden->reason);
	list_for_each(cell, &session->queue, node)
	{
		client_error(&session->router->clients, &cell->reply, "internal", "the session could not be %s: %s",
			     session->state == SESSION_STARTING ? "started" : "kept", session->warden->reason);
		cell_free(cell);
	}
	session->n_queued = 0;
	session_end(session, "internal");
}

void session_on_warden_gone(struct session *session)
{
	/* Nobody asked for it: what was running is lost with its cage. */
	session_end(session, "killed");
	waiters_answer(session, &session->closers);
	router_bury_session(session->router, session);
}

void session_on_lost(struct session *session, const char *why)
{
	struct particulars particulars = {.why = why};

	session_event(session, EVENT_LOST, &particulars);
}

void session_on_closed(struct session *session)
{
	session_event(session, EVENT_CLOSED, &nothing);
}

void session_on_output(struct session *session, enum interpreter_stream stream, struct bytes data)
{
	struct cell *cell = session->cell;
	struct stdout_event event = {.data = data};

	if (!cell) {
		output_add(&session->stray[stream], data);
	} else if (!cell->stream) {
		output_add(stream == STREAM_STDOUT ? &cell->stdout_ : &cell->stderr_, data);
	} else {
		event.id = cell->reply.id;
		switch (client_send(&session->router->clients, &cell->reply,
				    stream == STREAM_STDOUT ? &stdout_event_schema : &stderr_event_schema,
				    &event)) {
		case CLIENT_E_WAITS:
			interpreter_pause(session->warden->interpreter, true);
			break;
		case CLIENT_E_GONE:
			/* Nobody watches any more; what the cell goes on to write is kept like any other's. */
			cell->stream = false;
			break;
		}
	}
}

static void on_done_frame(struct session *session, struct bytes body)
{
	struct done_message done;
	struct particulars particulars = {.done = &done};
	struct wire_fault fault;

	if (wire_decode(&done, &done_message_schema, body, &fault))
		session_on_lost(session, "its `done` is malformed");
	else
		session_event(session, EVENT_DONE, &particulars);
}

static void on_ask_frame(struct session *session, struct bytes body)
{
	struct ask_message ask;
	struct particulars particulars = {.ask = &ask};
	struct wire_fault fault;

	if (wire_decode(&ask, &ask_message_schema, body, &fault) || !session->cell || session->cell->asking)
		session_on_lost(session, "its `ask` is malformed or out of place");
	else
		session_event(session, EVENT_ASK, &particulars);
}

void session_on_frame(struct session *session, struct bytes data)
{
	struct wire_frame frame;

	if (wire_open(&frame, data))
		session_on_lost(session, "it sent a malformed frame");
	else if (bytes_is(frame.type, "done"))
		on_done_frame(session, frame.body);
	else if (bytes_is(frame.type, "ask"))
		on_ask_frame(session, frame.body);
	else
		session_on_lost(session, "it sent an unknown message");
}
