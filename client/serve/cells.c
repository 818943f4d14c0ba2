/* Cells: run one, watch one, and its result as a document or as events. */
#include "doors.h"
#include "feeds.h"
#include "metrics.h"

#include "base/result.h"
#include "base/text.h"
#include "lib/options.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

/* A stream with nothing to say says so, for what stands between. */
#define SILENCE 15.0
/* The requests of a tenant wait so long for a client that does not read. */
#define PATIENCE 0.25
/* A cell whose events a client gets: the state of its exchange. */
struct watching {
	struct follower follower; /* of a feed that many may follow; or it has a call of its own, exchange->call */
	struct lair_point at;	  /* the output so far */
	const char *session;	  /* of the exchange, in laird; NULL: a one-shot */
	char key[KEY_SIZE];	  /* "": not known */
	bool asks, inputs;
	struct text_rest rests[2];
	uint64_t left_out[2], displays_left_out; /* for want of room */
	double patience;			 /* how long the tenant may still be held up for this client */
};

bool profile_of(struct exchange *exchange, const char *profile, const char **profilep)
{
	const struct tenant *tenant = exchange->tenant;

	/* The first that it may name is its default. */
	*profilep = profile || !tenant->profiles ? profile : tenant->profiles[0];
	if (!profile || tenant_may(tenant, profile))
		return true;
	answer_problem(exchange, 403, "denied", "this token is not for the profile \"%.80s\"", profile);
	return false;
}

json_t *result_document(const struct exchange *exchange, const struct lair_result *result)
{
	metrics_count_result(result);
	return tenant_document(exchange, json_result(result), result->session);
}

void cell_left(struct exchange *exchange)
{
	struct lair_call *call = NULL;

	if (!exchange->interrupts || !exchange->call || lair_outcome(exchange->call) != -EINPROGRESS)
		return;
	(void)lair_cancel(exchange->lair, &call, exchange->call);
	(void)lair_call_free(call);
}

/* ---- events ---- */

/* A client that reads, if only a little slower than the cell writes, is to miss nothing. */
static void hold_up(struct exchange *exchange)
{
	struct watching *watching = exchange->state;

	line_hold(&exchange->tenant->streams, watching->patience);
	watching->patience = 0;
}

static void on_room(struct exchange *exchange)
{
	struct watching *watching = exchange->state;

	watching->patience = PATIENCE;
	line_resume(&exchange->tenant->streams);
}

static void on_silence(struct exchange *exchange)
{
	(void)stream_write(exchange, lair_text(":\n\n"));
	exchange_alarm(exchange, SILENCE, on_silence);
}

/* Before the first event: if laird refuses, that is still an answer of its own. */
static void events_begin(struct exchange *exchange)
{
	const struct watching *watching = exchange->state;

	if (exchange->streaming)
		return;
	answer_header(exchange, "X-Accel-Buffering", "no");
	stream_begin(exchange, 200, "text/event-stream", STREAM_OPEN);
	(void)stream_event(exchange, "begun", NULL,
			   json_pack("{s:o}", "key", *watching->key ? json_string(watching->key) : json_null()));
	exchange_alarm(exchange, SILENCE, on_silence);
}

/* Where to resume, in Last-Event-ID. */
static void point_text(char out[static 96], const struct exchange *exchange)
{
	const struct watching *watching = exchange->state;
	struct lair_point at = watching->at;

	snprintf(out, 96, "%" PRIu64 ".%" PRIu64 ".%" PRIu64,
		 at.out - MIN(at.out, watching->rests[LAIR_STDOUT].size),
		 at.err - MIN(at.err, watching->rests[LAIR_STDERR].size), at.displays);
}

/* A gap is reported before the next event. Returns whether there is room. */
static bool gap_tell(struct exchange *exchange)
{
	struct watching *watching = exchange->state;
	uint64_t *left_out = watching->left_out;

	if (left_out[LAIR_STDOUT] == 0 && left_out[LAIR_STDERR] == 0 && watching->displays_left_out == 0)
		return true;
	if ((!exchange->urgent && stream_waiting(exchange) > STREAM_MAX / 2) ||
	    !stream_event(exchange, "left_out", NULL,
			  json_pack("{s:I, s:I, s:I}", "stdout", (json_int_t)left_out[LAIR_STDOUT], "stderr",
				    (json_int_t)left_out[LAIR_STDERR], "displays",
				    (json_int_t)watching->displays_left_out)))
		return false;
	left_out[LAIR_STDOUT] = left_out[LAIR_STDERR] = watching->displays_left_out = 0;
	return true;
}

/* @document is taken over. Returns false if there was no room. */
static bool tell(struct exchange *exchange, const char *event, json_t *document)
{
	char id[96];

	events_begin(exchange);
	if (!gap_tell(exchange)) {
		json_decref(document);
		return false;
	}
	point_text(id, exchange);
	return stream_event(exchange, event, id, document);
}

static void output_tell(struct exchange *exchange, enum lair_stream stream, struct lair_text data)
{
	struct watching *watching = exchange->state;
	json_t *document;

	/* At least. */
	if (!stream_fits(exchange, data.size)) {
		watching->left_out[stream] += data.size;
		return;
	}
	document = json_object();
	json_add_output(document, "text", data);
	if (!tell(exchange, stream == LAIR_STDOUT ? "stdout" : "stderr", document))
		watching->left_out[stream] += data.size;
	else if (watching->patience > 0 && stream_waiting(exchange) > STREAM_MAX / 2)
		hold_up(exchange);
}

static void output_came(struct exchange *exchange, enum lair_stream stream, struct lair_text data)
{
	struct watching *watching = exchange->state;
	_cleanup_(freep) char *owned = NULL;

	if (text_whole(&watching->rests[stream], &data, &owned))
		output_tell(exchange, stream, data);
}

static void cuts_tell(struct exchange *exchange)
{
	struct watching *watching = exchange->state;

	for (enum lair_stream stream = LAIR_STDOUT; stream <= LAIR_STDERR; stream++) {
		struct text_rest *rest = &watching->rests[stream];

		if (rest->size > 0)
			output_tell(exchange, stream, text_rest(rest));
	}
}

static void display_tell(struct exchange *exchange, const struct lair_display *display)
{
	struct watching *watching = exchange->state;
	json_t *document = json_display(display);

	json_object_set_new(document, "clear", json_boolean(display->clear));
	if (!tell(exchange, "display", document))
		watching->displays_left_out++;
}

static void alive_tell(struct exchange *exchange, const struct lair_alive *alive)
{
	(void)tell(exchange, "alive",
		   json_pack("{s:f, s:I, s:f, s:o*}", "elapsed", alive->elapsed, "memory",
			     (json_int_t)alive->memory, "cpu", alive->cpu, "doing",
			     alive->doing.data ? json_text(alive->doing) : NULL));
}

static void on_ask(struct lair_call *call, struct lair_text prompt, bool password, void *userdata)
{
	struct exchange *exchange = userdata;
	struct watching *watching = exchange->state;

	(void)call;
	watching->asks = true;
	(void)tell(exchange, "ask",
		   json_pack("{s:o, s:b}", "prompt", json_text(prompt), "password", (int)password));
}

/* It is answered by a request of its own, which names session and number. */
static void on_call(struct lair_call *call, struct lair_calling *calling, void *userdata)
{
	struct lair_text arguments = lair_calling_arguments(calling);
	json_t *document = arguments.data ? json_loadb(arguments.data, arguments.size, JSON_ALLOW_NUL, NULL) : NULL;

	(void)call;
	(void)tell(userdata, "call",
		   json_pack("{s:I, s:o, s:o, s:o}", "number", (json_int_t)lair_calling_number(calling), "function",
			     json_text(lair_calling_function(calling)), "arguments",
			     document ? document : json_null(), "key", json_text(lair_calling_key(calling))));
	(void)lair_calling_free(calling);
}

static void on_cancel(struct lair_call *call, uint64_t number, void *userdata)
{
	(void)call;
	(void)tell(userdata, "cancel", json_pack("{s:I}", "number", (json_int_t)number));
}

static void on_held(struct lair_call *call, const struct lair_waiting *waiting, void *userdata)
{
	struct exchange *exchange = userdata;

	(void)call;
	(void)tell(exchange, "held", tenant_document(exchange, json_waiting(waiting), waiting->session));
}

/* The result is told in any case, also to who has not read what came before. */
static void end_tell(struct exchange *exchange, const struct lair_call *call)
{
	int outcome = lair_outcome(call);

	if (outcome && !exchange->streaming) {
		answer_error(exchange, outcome, lair_call_error(call));
		return;
	}
	events_begin(exchange);
	cuts_tell(exchange);
	exchange->urgent = true;
	(void)gap_tell(exchange);
	if (outcome)
		(void)stream_event(exchange, "error", NULL,
				   json_pack("{s:s, s:i, s:o}", "code", lair_code(outcome), "status",
					     (int)status_of(outcome), "detail",
					     json_text(lair_text(lair_call_error(call)))));
	else
		(void)stream_event(exchange, "result", NULL, result_document(exchange, lair_result(call)));
	stream_end(exchange);
}

/* ---- the events of a call of the exchange's own ---- */

static void on_output(struct lair_call *call, enum lair_stream stream, struct lair_text data, void *userdata)
{
	struct exchange *exchange = userdata;

	((struct watching *)exchange->state)->at = lair_point(call);
	output_came(exchange, stream, data);
}

static void on_display(struct lair_call *call, const struct lair_display *display, void *userdata)
{
	struct exchange *exchange = userdata;

	((struct watching *)exchange->state)->at = lair_point(call);
	display_tell(exchange, display);
}

static void on_alive(struct lair_call *call, const struct lair_alive *alive, void *userdata)
{
	(void)call;
	alive_tell(userdata, alive);
}

static void watching_done(struct exchange *exchange)
{
	end_tell(exchange, exchange->call);
}

/* ---- the events of a feed ---- */

static void followed(struct follower *follower)
{
	struct watching *watching = follower->exchange->state;

	watching->at = (struct lair_point){.out = follower->at[FEED_STDOUT],
					   .err = follower->at[FEED_STDERR],
					   .displays = follower->at[FEED_DISPLAYS]};
}

static void on_joined(struct follower *follower)
{
	events_begin(follower->exchange);
}

static void on_fed_output(struct follower *follower, enum lair_stream stream, struct lair_text data)
{
	followed(follower);
	output_came(follower->exchange, stream, data);
}

static void on_fed_display(struct follower *follower, const struct lair_display *display)
{
	followed(follower);
	display_tell(follower->exchange, display);
}

static void on_fed_alive(struct follower *follower, const struct lair_alive *alive)
{
	followed(follower);
	alive_tell(follower->exchange, alive);
}

static void on_fed_done(struct follower *follower, const struct lair_call *call)
{
	followed(follower);
	end_tell(follower->exchange, call);
}

/* ---- who watches ---- */

static void watching_free(void *state)
{
	struct watching *watching = state;

	feed_leave(&watching->follower);
	free(watching);
}

static struct watching *watching_new(struct exchange *exchange)
{
	exchange->state = calloc(1, sizeof(struct watching));
	exchange->free_state = watching_free;
	exchange->on_room = on_room;
	if (!exchange->state)
		answer_error(exchange, -ENOMEM, "out of memory");
	else
		on_room(exchange);
	return exchange->state;
}

/* ---- an exec ---- */

static void exec_done(struct exchange *exchange)
{
	answer_json(exchange, 200, result_document(exchange, lair_result(exchange->call)));
}

static void exec_detached(struct exchange *exchange)
{
	const struct lair_detached *detached = lair_detached(exchange->call);

	answer_json(exchange, 200,
		    json_pack("{s:o, s:o}", "key", json_text(detached->key), "cell",
			      detached->cell ? json_integer((json_int_t)detached->cell) : json_null()));
}

char **environment_of(const json_t *env, bool *badp)
{
	size_t n = json_object_size(env), size = (n + 1) * sizeof(char *);
	const char *name;
	json_t *value;
	char **list, *at;

	*badp = false;
	json_object_foreach((json_t *)(uintptr_t)env, name, value)
	{
		*badp = *badp || !json_is_string(value) || !*name || strchr(name, '=') ||
			strlen(json_string_value(value)) != json_string_length(value);
		size += strlen(name) + json_string_length(value) + 2;
	}
	list = *badp ? NULL : calloc(1, size);
	if (!list)
		return NULL;
	at = (char *)(list + n + 1);
	n = 0;
	json_object_foreach((json_t *)(uintptr_t)env, name, value)
	{
		list[n++] = at;
		at += sprintf(at, "%s=%s", name, json_string_value(value)) + 1;
	}
	return list;
}

/* The functions that the cell may call, of the body. A schema is a document there and text for laird: *textsp owns
 * these. */
static struct lair_function *functions_of(const json_t *list, char ***textsp)
{
	size_t n = json_array_size(list), i;
	struct lair_function *functions = calloc(n + 1, sizeof(*functions));
	char **texts = calloc(2 * n + 1, sizeof(*texts)), **text = texts;
	json_t *one;

	*textsp = texts;
	if (!functions || !texts)
		return functions;
	json_array_foreach(list, i, one)
	{
		json_t *schema = json_object_get(one, "schema"), *returns = json_object_get(one, "returns");

		functions[i] = (struct lair_function){
			.name = json_string_value(json_object_get(one, "name")),
			.doc = json_string_value(json_object_get(one, "doc")),
			.effect = json_is_true(json_object_get(one, "effect")),
			.ask = json_is_true(json_object_get(one, "ask")),
			.caution = json_is_true(json_object_get(one, "caution")),
			.timeout = json_number_value(json_object_get(one, "timeout")),
		};
		if (json_is_object(schema))
			functions[i].schema = *text++ = json_dumps(schema, JSON_COMPACT);
		if (json_is_object(returns))
			functions[i].returns = *text++ = json_dumps(returns, JSON_COMPACT);
	}
	return functions;
}

static void texts_free(char **texts)
{
	for (size_t i = 0; texts && texts[i]; i++)
		free(texts[i]);
	free(texts);
}

static bool exec_take(struct exchange *exchange, struct lair_exec *exec)
{
	const json_t *code = json_object_get(exchange->json, "code");

	*exec = (struct lair_exec){
		.code = {.data = json_string_value(code), .size = json_string_length(code)},
		.n_functions = json_array_size(json_object_get(exchange->json, "functions")),
		.userdata = exchange,
	};
	exec_options_read(exec, exchange->json, DOOR_HTTP);
	exec->session = exchange_session(exchange, exchange_path(exchange, "id"));
	return exec->session && profile_of(exchange, exchange_string(exchange, "profile"), &exec->profile);
}

/* Each has a key, so that it can be watched again. */
static bool exec_watch(struct exchange *exchange, struct lair_exec *exec)
{
	struct watching *watching = watching_new(exchange);

	if (!watching)
		return false;
	if (exec->key) {
		snprintf(watching->key, sizeof(watching->key), "%s", exec->key);
	} else if (text_random(watching->key, 32)) {
		answer_error(exchange, -EIO, "no random numbers");
		return false;
	}
	watching->session = exec->session;
	exec->key = watching->key;
	exec->on_output = on_output;
	exec->on_display = on_display;
	exec->on_alive = on_alive;
	exec->on_ask = exchange_flag(exchange, "input") ? on_ask : NULL;
	exec->on_call = on_call;
	exec->on_cancel = on_cancel;
	exec->on_held = on_held;
	return true;
}

/* The cell may ask, and waits until a client watches that answers. */
static void on_ask_unwatched(struct lair_call *call, struct lair_text prompt, bool password, void *userdata)
{
	(void)call;
	(void)prompt;
	(void)password;
	(void)userdata;
}

static void exec_start(struct exchange *exchange, struct lair_exec *exec, bool events)
{
	struct lair *lair = events ? exchange_streams(exchange) : exchange_lair(exchange);

	if (!lair || (events && !exec_watch(exchange, exec)))
		return;
	exchange->on_gone = exec->detach ? NULL : cell_left;
	if (exec->detach && exchange_flag(exchange, "input"))
		exec->on_ask = on_ask_unwatched;
	if (events)
		exchange_wait_any(exchange, lair_exec(lair, &exchange->call, exec), watching_done);
	else
		exchange_wait(exchange, lair_exec(lair, &exchange->call, exec),
			      exec->detach ? exec_detached : exec_done);
}

void v1_exec(struct exchange *exchange)
{
	_cleanup_(freep) char **env = NULL;
	_cleanup_(freep) struct lair_function *functions = NULL;
	char **texts = NULL, key[KEY_SIZE];
	bool keyed, bad, events = exchange_accepts(exchange, "text/event-stream");
	struct lair_exec exec;

	keyed = exchange_key(exchange, key, &bad);
	if (bad || !exec_take(exchange, &exec) || !session_admitted(exchange, exec.session))
		return;
	env = environment_of(json_object_get(exchange->json, "env"), &bad);
	if (bad) {
		answer_problem(exchange, 400, "bad_request", "env: expected names with strings as their values");
		return;
	}
	if (exec.n_functions && !events && !exec.detach) {
		answer_problem(exchange, 400, "bad_request",
			       "functions: somebody has to hear of calls: Accept: text/event-stream, or detach");
		return;
	}
	functions = functions_of(json_object_get(exchange->json, "functions"), &texts);
	if (json_object_get(exchange->json, "functions") && (events || exec.detach))
		exec.functions = functions;
	exec.env = (const char *const *)env;
	exec.key = keyed ? key : NULL;
	exchange->interrupts = !keyed;
	exec_start(exchange, &exec, events && !exec.detach);
	texts_free(texts);
}

/* ---- a cell that was started before ---- */

static void point_parse(struct lair_point *point, const char *id)
{
	char *end = NULL;

	if (!id)
		return;
	point->out = strtoull(id, &end, 10);
	if (*end == '.')
		point->err = strtoull(end + 1, &end, 10);
	if (*end == '.')
		point->displays = strtoull(end + 1, &end, 10);
}

/* With a call of its own: who answers what the cell asks cannot share it. */
static void attach_alone(struct exchange *exchange, struct lair_attach *wanted)
{
	wanted->userdata = exchange;
	wanted->on_output = on_output;
	wanted->on_display = on_display;
	wanted->on_alive = on_alive;
	wanted->on_ask = exchange_query_flag(exchange, "input") ? on_ask : NULL;
	wanted->on_call = exchange_query_flag(exchange, "calls") ? on_call : NULL;
	wanted->on_cancel = on_cancel;
	wanted->on_held = on_held;
	exchange_wait_any(exchange, lair_attach(exchange->lair, &exchange->call, wanted), watching_done);
}

/* The cell has ended, so its result waits for whoever asks, and needs no feed. */
static void on_missed(struct follower *follower)
{
	struct exchange *exchange = follower->exchange;
	const char *key = exchange_path(exchange, "key"), *cell = exchange_path(exchange, "cell");
	struct watching *watching = exchange->state;
	struct lair_attach wanted = {.session = watching->session, .key = key};

	followed(follower);
	wanted.cell = cell ? strtoull(cell, NULL, 10) : 0;
	wanted.from = watching->at;
	if (!exchange->gone)
		attach_alone(exchange, &wanted);
}

static void attach_shared(struct exchange *exchange, const struct lair_attach *wanted)
{
	static const struct feed_events events = {
		.on_joined = on_joined,
		.on_output = on_fed_output,
		.on_display = on_fed_display,
		.on_alive = on_fed_alive,
		.on_done = on_fed_done,
		.on_missed = on_missed,
	};
	struct watching *watching = exchange->state;
	int r;

	r = feed_follow(&watching->follower, exchange, wanted, &events);
	if (r)
		answer_error(exchange, r, r > 0 || r == -EAGAIN ? lair_error(exchange->lair) : strerror(-r));
}

static void attach(struct exchange *exchange, struct lair_attach *wanted)
{
	bool events = exchange_accepts(exchange, "text/event-stream");
	struct lair *lair = events ? exchange_streams(exchange) : exchange_lair(exchange);
	struct watching *watching;

	if (!lair)
		return;
	if (!events) {
		exchange_wait(exchange, lair_attach(lair, &exchange->call, wanted), exec_done);
		return;
	}
	watching = watching_new(exchange);
	if (!watching)
		return;
	watching->session = wanted->session;
	snprintf(watching->key, sizeof(watching->key), "%s", wanted->key ? wanted->key : "");
	point_parse(&wanted->from, exchange_header(exchange, "Last-Event-ID"));
	watching->at = wanted->from;
	if (exchange_query_flag(exchange, "input") || exchange_query_flag(exchange, "calls"))
		attach_alone(exchange, wanted);
	else
		attach_shared(exchange, wanted);
}

void v1_attach_cell(struct exchange *exchange)
{
	struct lair_attach wanted = {.session = exchange_session(exchange, exchange_path(exchange, "id"))};
	const char *cell = exchange_path(exchange, "cell");

	wanted.cell = strtoull(cell, NULL, 10);
	if (!wanted.session)
		return;
	if (wanted.cell == 0 || strspn(cell, "0123456789") != strlen(cell)) {
		answer_problem(exchange, 400, "bad_request", "cell: expected the number of one");
		return;
	}
	attach(exchange, &wanted);
}

/* Of a session, or of a one-shot, if the path has no session. */
void v1_attach_key(struct exchange *exchange)
{
	const char *id = exchange_path(exchange, "id");
	struct lair_attach wanted = {.key = exchange_path(exchange, "key")};

	if (id)
		wanted.session = exchange_session(exchange, id);
	if (!id || wanted.session)
		attach(exchange, &wanted);
}

static void results_done(struct exchange *exchange)
{
	answer_json(exchange, 200, json_pack("{s:o}", "results", json_kept(lair_result_list(exchange->call))));
}

SESSION_HANDLER(v1_results, results_done, lair_results(lair, &exchange->call, session))

/* ---- its input ---- */

/* The exchange whose cell asks, in that session. */
static struct exchange *asker_in(const struct exchange *exchange, const char *session)
{
	for (struct exchange *other = exchange->server->exchanges; other; other = other->next) {
		const struct watching *watching = other->state;

		if (other->then != watching_done || other->tenant != exchange->tenant || !watching ||
		    !watching->asks || !watching->session || strcmp(watching->session, session) != 0)
			continue;
		return other;
	}
	return NULL;
}

void v1_input(struct exchange *exchange)
{
	const json_t *text = json_object_get(exchange->json, "text");
	struct lair_text line = {.data = json_string_value(text), .size = json_string_length(text)};
	const char *session;
	struct lair *lair = session_lair(exchange, &session);
	struct exchange *asker = lair ? asker_in(exchange, session) : NULL;

	if (!lair)
		return;
	if (!asker) {
		answer_problem(exchange, 410, "gone", "no cell of that session asks for input here");
		return;
	}
	((struct watching *)asker->state)->asks = false;
	exchange->lair = asker->lair;
	exchange_wait(exchange, lair_input(asker->lair, &exchange->call, asker->call, line), empty_done);
}
