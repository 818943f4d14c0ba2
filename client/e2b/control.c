/* E2B's control plane: requests about one sandbox, by its id. */
#include "e2b.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define METRICS_SLACK 10.0

static void no_sandbox(struct exchange *exchange)
{
	answer_problem(exchange, 404, "not_found", "sandbox \"%.80s\" not found", exchange_path(exchange, "id"));
}

static void control_found(struct exchange *exchange)
{
	struct work *work = exchange->state;
	const char *id = exchange_path(exchange, "id");
	struct sandbox *sandbox = sandbox_find(exchange, id);
	int r = lair_outcome(exchange->call);

	if (r == LAIR_E_NO_SESSION && sandbox && !sandbox->paused)
		sandbox_drop(exchange->server, sandbox);
	if (r == LAIR_E_NO_SESSION && !(sandbox && sandbox->paused)) {
		no_sandbox(exchange);
		return;
	}
	if (r && r != LAIR_E_NO_SESSION) {
		exchange_refuse(exchange);
		return;
	}
	if (!sandbox && strchr(id, '~')) {
		no_sandbox(exchange);
		return;
	}
	if (!sandbox)
		sandbox = sandbox_new(exchange, id, TEMPLATE);
	if (!sandbox) {
		answer_error(exchange, -ENOMEM, "out of memory");
		return;
	}
	if (!r)
		sandbox_learn(sandbox, lair_session(exchange->call));
	work_take(exchange, sandbox);
	work->then(exchange);
}

/* @then runs with the answer of info in exchange->call. It is an error only of a sandbox that is paused. */
static void control(struct exchange *exchange, handler *then)
{
	struct work *work = work_new(exchange, sizeof(*work));
	const char *session;
	struct lair *lair;

	if (!work || (exchange->body_size > 0 && !e2b_body(exchange, exchange_body(exchange), &work->asked)))
		return;
	work->then = then;
	session = exchange_session(exchange, exchange_path(exchange, "id"));
	lair = session ? exchange_lair(exchange) : NULL;
	if (lair)
		exchange_wait_any(exchange, lair_info(lair, &exchange->call, session), control_found);
}

static void info_found(struct exchange *exchange)
{
	answer_json(exchange, 200, sandbox_info(sandbox_of(exchange)));
}

void info_begin(struct exchange *exchange)
{
	control(exchange, info_found);
}

static void resume(struct exchange *exchange)
{
	struct work *work = exchange->state;
	struct sandbox *sandbox = work->sandbox;
	double ends = wall_now() + timeout_asked(work->asked, TIMEOUT_DEFAULT);

	/* It never shortens the time of one that runs. */
	if (sandbox->paused || (sandbox->ends > 0 && ends > sandbox->ends))
		sandbox->ends = ends;
	sandbox->paused = false;
	sandbox->stays = server_now() + STAY_SECONDS;
}

static void resumed(struct exchange *exchange)
{
	struct sandbox *sandbox = sandbox_of(exchange);

	if (lair_outcome(exchange->call)) {
		exchange_refuse(exchange);
		return;
	}
	sandbox_learn(sandbox, lair_session(exchange->call));
	sandbox->based = sandbox->filed = false;
	resume(exchange);
	answer_json(exchange, 201, sandbox_document(sandbox));
}

static void reopen(struct exchange *exchange)
{
	struct sandbox *sandbox = sandbox_of(exchange);
	const char *profile = NULL;

	if (template_profile(exchange, sandbox->template, &profile) &&
	    session_admitted_again(exchange, sandbox->session, reopen))
		exchange_wait_any(exchange,
				  lair_open(sandbox->tenant->lair, &exchange->call, sandbox->session, profile),
				  resumed);
}

static void connect_found(struct exchange *exchange)
{
	struct sandbox *sandbox = sandbox_of(exchange);
	bool paused = sandbox->paused;
	struct lair_call *call = NULL;
	int r;

	if (!lair_outcome(exchange->call)) {
		resume(exchange);
		if (paused) {
			r = lair_unsave(sandbox->tenant->lair, &call, sandbox->session);
			call_forget(call, r);
		}
		answer_json(exchange, paused ? 201 : 200, sandbox_document(sandbox));
		return;
	}
	/* laird has ended it meanwhile. It is opened anew, and its saved variables are loaded. */
	exchange->call = lair_call_free(exchange->call);
	reopen(exchange);
}

void connect_begin(struct exchange *exchange)
{
	control(exchange, connect_found);
}

static void timeout_found(struct exchange *exchange)
{
	const struct work *work = exchange->state;

	work->sandbox->ends = wall_now() + timeout_asked(work->asked, TIMEOUT_DEFAULT);
	answer_empty(exchange, 204);
}

void timeout_begin(struct exchange *exchange)
{
	control(exchange, timeout_found);
}

static void kill_done(struct exchange *exchange)
{
	/* If it has ended already, that is a success. */
	answer_empty(exchange, 204);
}

/* Once answered, the sandbox cannot be found any more: so laird's answer is waited for. */
static void kill_found(struct exchange *exchange)
{
	struct sandbox *sandbox = sandbox_of(exchange);

	exchange->call = lair_call_free(exchange->call);
	exchange_wait_any(exchange, lair_shutdown(sandbox->tenant->lair, &exchange->call, sandbox->session),
			  kill_done);
	sandbox_kill(exchange->server, sandbox);
}

void kill_begin(struct exchange *exchange)
{
	control(exchange, kill_found);
}

static void pause_done(struct exchange *exchange)
{
	struct sandbox *sandbox = sandbox_of(exchange);
	int r = lair_outcome(exchange->call);

	/* Nothing to save is no failure. */
	if (r && r != LAIR_E_UNSUPPORTED) {
		exchange_refuse(exchange);
		return;
	}
	sandbox->paused = true;
	sandbox->ends = 0;
	answer_empty(exchange, 204);
}

static void pause_found(struct exchange *exchange)
{
	struct sandbox *sandbox = sandbox_of(exchange);

	if (sandbox->paused) {
		answer_problem(exchange, 409, "busy", "sandbox \"%.80s\" is paused already", sandbox->id);
		return;
	}
	exchange->call = lair_call_free(exchange->call);
	exchange_wait_any(exchange, lair_save(sandbox->tenant->lair, &exchange->call, sandbox->session),
			  pause_done);
}

void pause_begin(struct exchange *exchange)
{
	control(exchange, pause_found);
}

/* As with E2B, a request for one time gets the seconds before and after it, too. */
static bool metrics_wanted(const struct exchange *exchange, double now)
{
	const char *from = exchange_query(exchange, "start"), *to = exchange_query(exchange, "end");

	return (!from || now >= strtod(from, NULL) - METRICS_SLACK) &&
	       (!to || now <= strtod(to, NULL) + METRICS_SLACK);
}

static void metrics_found(struct exchange *exchange)
{
	const struct lair_session *session = lair_session(exchange->call);
	const struct sandbox *sandbox = sandbox_of(exchange);
	json_t *metric;

	if (!session || !metrics_wanted(exchange, wall_now())) {
		answer_json(exchange, 200, json_array());
		return;
	}
	metric = json_pack("{s:o, s:I, s:i, s:f, s:I, s:I, s:i, s:I, s:I}", "timestamp", date_document(wall_now()),
			   "timestampUnix", (json_int_t)wall_now(), "cpuCount", (int)fmax(ceil(sandbox->cpu), 1),
			   "cpuUsedPct", 0.0, "memUsed", (json_int_t)session->memory, "memTotal",
			   (json_int_t)session->memory_limit, "memCache", 0, "diskUsed", (json_int_t)session->disk,
			   "diskTotal", (json_int_t)session->disk_limit);
	answer_json(exchange, 200, json_pack("[o]", metric));
}

void sandbox_metrics_begin(struct exchange *exchange)
{
	control(exchange, metrics_found);
}
