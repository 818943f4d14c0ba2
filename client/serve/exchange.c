/* Exchanges: from bytes that libmicrohttpd has parsed to a handler, and from an answer to bytes. */
#include "exchange.h"

#include "metrics.h"
#include "schema.h"

#include "proto/clock.h"

#include "base/json.h"

#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* The largest body that is kept in memory; laird's frames have at most as much. Of all bodies together; and how
 * much of a body that nobody wants is read, so that its client can be told. */
#define BODY_MAX ((size_t)32 << 20)
#define BODIES_MAX ((uint64_t)512 << 20)
#define UNWANTED_MAX ((size_t)64 << 20)
/* When all streams hold so much that nobody reads, each has little room. */
#define STREAMS_MAX ((uint64_t)256 << 20)
#define STREAM_LEAST ((size_t)64 << 10)
#define BLOCK_OPEN 8192
#define BLOCK_SIZED ((size_t)64 << 10)
/* A stream with so much that its client has not read stops its flow, and for so many seconds if nothing is read at
 * all: laird would close a connection that is not read for 30. */
#define FLOW_MARK ((size_t)1 << 20)
#define FLOW_SECONDS 20.0
/* on_room is called when less than this is left, and the flow resumes. */
#define ROOM_MARK ((size_t)256 << 10)
#define PROBLEM_SIZE 1024

struct header {
	struct header *next;
	char *name, *value;
};

/* ---- life ---- */

struct exchange *exchange_new(struct server *server, struct MHD_Connection *http, const char *uri)
{
	struct exchange *exchange = calloc(1, sizeof(*exchange));

	if (!exchange)
		return NULL;
	exchange->server = server;
	exchange->http = http;
	exchange->began = server_now();
	exchange->failed = target_parse(&exchange->target, uri);
	exchange->next = server->exchanges;
	if (exchange->next)
		exchange->next->previous = exchange;
	server->exchanges = exchange;
	server->n_exchanges++;
	return exchange;
}

static void headers_free(struct exchange *exchange)
{
	for (struct header *header; (header = exchange->headers);) {
		exchange->headers = header->next;
		free(header->name);
		free(header->value);
		free(header);
	}
}

static void flow_start(struct exchange *exchange)
{
	if (exchange->stops)
		line_start(exchange->flow);
	exchange->stops = false;
}

static void flow_stop(struct exchange *exchange)
{
	size_t most = exchange->server->streams < STREAMS_MAX ? FLOW_MARK : STREAM_LEAST;

	if (!exchange->flow || exchange->stops || stream_waiting(exchange) <= most)
		return;
	exchange->stops = true;
	exchange->read = server_now();
	line_stop(exchange->flow);
}

void exchange_check_flow(struct exchange *exchange, double now)
{
	if (exchange->stops && exchange->read + FLOW_SECONDS < now)
		stream_break(exchange);
}

/* Whether the answer is there as a whole, as far as we know. */
static bool is_complete(const struct exchange *exchange)
{
	return exchange->queued && (!exchange->streaming || (exchange->ended && !exchange->broken));
}

static void exchange_free(struct exchange *exchange)
{
	struct server *server = exchange->server;

	if (exchange->previous)
		exchange->previous->next = exchange->next;
	else
		server->exchanges = exchange->next;
	if (exchange->next)
		exchange->next->previous = exchange->previous;
	server->n_exchanges--;
	server->bodies -= exchange->body_allocated;
	server->streams -= exchange->out_allocated;
	seats_leave(exchange, is_complete(exchange));
	if (exchange->tenant)
		exchange->tenant->n_exchanges--;
	flow_start(exchange);
	exchange->flow = flow_leave(exchange->flow);
	(void)lair_call_free(exchange->call);
	(void)lair_call_free(exchange->kept);
	if (exchange->free_state)
		exchange->free_state(exchange->state);
	if (exchange->response)
		MHD_destroy_response(exchange->response);
	headers_free(exchange);
	if (!exchange->failed)
		target_deinit(&exchange->target);
	json_decref(exchange->json);
	free(exchange->body);
	free(exchange->out);
	free(exchange);
}

void exchange_completed(struct exchange *exchange)
{
	exchange->gone = true;
	if (exchange->suspended)
		connection_unwatch(exchange->connection);
	if (exchange->connection)
		connection_rests(exchange->connection);
	metrics_count_exchange(exchange);
	if (!is_complete(exchange) && exchange->on_gone)
		exchange->on_gone(exchange);
	exchange_free(exchange);
}

/* ---- standing still ---- */

static void suspend(struct exchange *exchange)
{
	exchange->suspended = true;
	MHD_suspend_connection(exchange->http);
}

static void wake(struct exchange *exchange)
{
	if (!exchange->suspended)
		return;
	exchange->suspended = false;
	connection_unwatch(exchange->connection);
	MHD_resume_connection(exchange->http);
}

void exchange_drop(struct exchange *exchange)
{
	exchange->gone = true;
	wake(exchange);
}

void exchange_more(struct exchange *exchange)
{
	if (exchange->paused)
		wake(exchange);
	exchange->paused = false;
}

void exchange_alarm(struct exchange *exchange, double seconds, handler *fn)
{
	exchange->on_alarm = fn;
	exchange->alarm = seconds > 0 ? server_now() + seconds : 0;
	if (seconds > 0)
		exchange->server->next_tick = MIN(exchange->server->next_tick, exchange->alarm);
}

/* ---- the request ---- */

const char *exchange_path(const struct exchange *exchange, const char *name)
{
	return target_value(&exchange->target, exchange->route->path, name);
}

const char *exchange_query(const struct exchange *exchange, const char *name)
{
	return json_string_value(json_object_get(exchange->target.query, name));
}

uint64_t exchange_query_number(const struct exchange *exchange, const char *name)
{
	const char *text = exchange_query(exchange, name);

	return text ? strtoull(text, NULL, 10) : 0;
}

bool exchange_query_flag(const struct exchange *exchange, const char *name)
{
	const char *text = exchange_query(exchange, name);

	return text && (strcmp(text, "true") == 0 || strcmp(text, "1") == 0);
}

const char *exchange_header(const struct exchange *exchange, const char *name)
{
	return MHD_lookup_connection_value(exchange->http, MHD_HEADER_KIND, name);
}

struct lair_text exchange_body(const struct exchange *exchange)
{
	return (struct lair_text){.data = exchange->body ? exchange->body : "", .size = exchange->body_size};
}

const char *exchange_string(const struct exchange *exchange, const char *name)
{
	return json_string_value(json_object_get(exchange->json, name));
}

double exchange_number(const struct exchange *exchange, const char *name)
{
	return json_number_value(json_object_get(exchange->json, name));
}

bool exchange_flag(const struct exchange *exchange, const char *name)
{
	return json_is_true(json_object_get(exchange->json, name));
}

bool exchange_accepts(const struct exchange *exchange, const char *type)
{
	const char *accept = exchange_header(exchange, "Accept");

	return accept && strcasestr(accept, type);
}

/* ---- laird ---- */

static struct lair *lair_over(struct exchange *exchange, struct line *line)
{
	const char *sentence = "";
	int r;

	exchange->lair = line->lair;
	r = line_open(line, &sentence);
	if (!r)
		return line->lair;
	answer_error(exchange, r, sentence);
	return NULL;
}

struct lair *exchange_lair(struct exchange *exchange)
{
	return lair_over(exchange, &exchange->tenant->requests);
}

struct lair *exchange_streams(struct exchange *exchange)
{
	return lair_over(exchange, &exchange->tenant->streams);
}

struct lair *exchange_flow(struct exchange *exchange)
{
	exchange->flow = flow_use(exchange->tenant);
	return lair_over(exchange, exchange->flow);
}

const char *exchange_session(struct exchange *exchange, const char *id)
{
	size_t prefix = strlen(exchange->tenant->prefix), size = prefix + strlen(id) + 1;
	struct header *name;

	/* With a number and a slash before it, root would name the session of another user. */
	if (size > 129 || !*id ||
	    (!*exchange->tenant->prefix && strspn(id, "0123456789") > 0 && id[strspn(id, "0123456789")] == '/')) {
		answer_problem(exchange, 400, "bad_request",
			       "a session's id has 1 to %zu bytes, and does not begin with a number and a slash",
			       128 - prefix);
		return NULL;
	}
	/* It lives among the headers, unsent. */
	name = calloc(1, sizeof(*name));
	if (name)
		name->value = malloc(size);
	if (!name || !name->value) {
		free(name);
		answer_error(exchange, -ENOMEM, "out of memory");
		return NULL;
	}
	sprintf(name->value, "%s%s", exchange->tenant->prefix, id);
	name->next = exchange->headers;
	exchange->headers = name;
	return name->value;
}

void exchange_refuse(struct exchange *exchange)
{
	answer_error(exchange, lair_outcome(exchange->call), lair_call_error(exchange->call));
}

static void on_done(struct lair_call *call, void *userdata)
{
	struct exchange *exchange = userdata;

	(void)call;
	exchange->then(exchange);
}

static void on_done_well(struct lair_call *call, void *userdata)
{
	struct exchange *exchange = userdata;

	if (lair_outcome(call))
		exchange_refuse(exchange);
	else
		exchange->then(exchange);
}

static void wait_for(struct exchange *exchange, int started, handler *then, bool any)
{
	if (started) {
		answer_error(exchange, started,
			     started > 0 || started == -EAGAIN
				     ? lair_error(exchange->lair ? exchange->lair : exchange->tenant->lair)
				     : strerror(-started));
		return;
	}
	exchange->then = then;
	lair_on_done(exchange->call, any ? on_done : on_done_well, exchange);
}

void exchange_wait(struct exchange *exchange, int started, handler *then)
{
	wait_for(exchange, started, then, false);
}

void exchange_wait_any(struct exchange *exchange, int started, handler *then)
{
	wait_for(exchange, started, then, true);
}

bool exchange_key(struct exchange *exchange, char key[static KEY_SIZE], bool *badp)
{
	const char *given = exchange_header(exchange, "Idempotency-Key");
	unsigned char hash[crypto_generichash_BYTES];
	crypto_generichash_state state;

	*badp = false;
	if (!given)
		return false;
	if (!*given || strlen(given) > 255) {
		answer_problem(exchange, 400, "bad_request", "an Idempotency-Key has 1 to 255 characters");
		*badp = true;
		return false;
	}
	(void)crypto_generichash_init(&state, NULL, 0, sizeof(hash));
	(void)crypto_generichash_update(&state, (const unsigned char *)exchange->tenant->name,
					strlen(exchange->tenant->name) + 1);
	(void)crypto_generichash_update(&state, (const unsigned char *)given, strlen(given));
	(void)crypto_generichash_final(&state, hash, sizeof(hash));
	(void)sodium_bin2hex(key, KEY_SIZE, hash, sizeof(hash));
	return true;
}

/* ---- answers ---- */

void answer_header(struct exchange *exchange, const char *name, const char *value)
{
	struct header *header = calloc(1, sizeof(*header));

	if (header) {
		header->name = strdup(name);
		header->value = strdup(value);
		header->next = exchange->headers;
		exchange->headers = header;
	}
}

static bool has_header(const struct exchange *exchange, const char *name)
{
	for (const struct header *header = exchange->headers; header; header = header->next)
		if (header->name && strcasecmp(header->name, name) == 0)
			return true;
	return false;
}

static void default_header(struct exchange *exchange, const char *name, const char *value)
{
	if (!has_header(exchange, name))
		(void)MHD_add_response_header(exchange->response, name, value);
}

/* @response is taken over. */
static void answer(struct exchange *exchange, unsigned status, const char *type, struct MHD_Response *response)
{
	if (exchange->response || exchange->gone || !response) {
		if (response)
			MHD_destroy_response(response);
		else
			exchange_drop(exchange);
		return;
	}
	exchange->response = response;
	exchange->status = status;
	if (type)
		(void)MHD_add_response_header(response, "Content-Type", type);
	for (const struct header *header = exchange->headers; header; header = header->next)
		if (header->name && header->value)
			(void)MHD_add_response_header(response, header->name, header->value);
	default_header(exchange, "Cache-Control", "no-store");
	default_header(exchange, "X-Content-Type-Options", "nosniff");
	if (exchange->close || exchange->server->ending)
		(void)MHD_add_response_header(response, "Connection", "close");
	exchange_more(exchange);
	wake(exchange);
}

static char *ascii(json_t *document, size_t *sizep)
{
	char *text = json_ascii(document);

	json_decref(document);
	*sizep = text ? strlen(text) : 0;
	return text;
}

static void answer_document(struct exchange *exchange, unsigned status, const char *type, json_t *document)
{
	size_t size;
	char *text = ascii(document, &size);

	answer(exchange, status, type,
	       text ? MHD_create_response_from_buffer(size, text, MHD_RESPMEM_MUST_FREE) : NULL);
}

void answer_json(struct exchange *exchange, unsigned status, json_t *document)
{
	answer_document(exchange, status, "application/json", document);
}

/* libmicrohttpd does not change it, but says so in no type. */
void *text_unconst(const char *data)
{
	union {
		const char *from;
		void *to;
	} data_of = {.from = data};

	return data_of.to;
}

void answer_text(struct exchange *exchange, unsigned status, const char *type, struct lair_text text)
{
	answer(exchange, status, type,
	       MHD_create_response_from_buffer(text.size, text_unconst(text.data), MHD_RESPMEM_MUST_COPY));
}

void answer_static(struct exchange *exchange, unsigned status, const char *type, struct lair_text text)
{
	answer(exchange, status, type,
	       MHD_create_response_from_buffer(text.size, text_unconst(text.data), MHD_RESPMEM_PERSISTENT));
}

void answer_empty(struct exchange *exchange, unsigned status)
{
	answer(exchange, status, NULL,
	       MHD_create_response_from_buffer(0, text_unconst(""), MHD_RESPMEM_PERSISTENT));
}

void answer_problem(struct exchange *exchange, unsigned status, const char *code, const char *format, ...)
{
	char sentence[PROBLEM_SIZE];
	va_list args;

	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	if (exchange->door && exchange->door->fail) {
		exchange->door->fail(exchange, status, code, sentence);
		return;
	}
	answer_document(exchange, status, "application/problem+json",
			json_pack("{s:s, s:s, s:i, s:o, s:s}", "type", "about:blank", "title",
				  MHD_get_reason_phrase_for(status), "status", (int)status, "detail",
				  json_text(lair_text(sentence)), "code", code));
}

unsigned status_of(int error)
{
	static const struct {
		int error;
		unsigned status;
	} statuses[] = {
		{LAIR_E_NO_SESSION, 404},
		{LAIR_E_NO_FILE, 404},
		{LAIR_E_BUSY, 409},
		{LAIR_E_LIMIT, 429},
		{LAIR_E_BAD_REQUEST, 400},
		{LAIR_E_TOO_LARGE, 413},
		{LAIR_E_DENIED, 403},
		{LAIR_E_GONE, 410},
		{LAIR_E_UNSUPPORTED, 422},
		{LAIR_E_NO_DAEMON, 503},
		{LAIR_E_START, 503},
		{LAIR_E_LOST, 503},
		{LAIR_E_PROTOCOL, 502},
		{-ETIMEDOUT, 504},
		{-EAGAIN, 429},
		{-EILSEQ, 400},
		{-EINVAL, 400},
		{-ENOMEM, 503},
	};

	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++)
		if (statuses[i].error == error)
			return statuses[i].status;
	return 500;
}

void answer_error(struct exchange *exchange, int error, const char *sentence)
{
	unsigned status = status_of(error);
	const char *code = error == -EAGAIN ? "limit" : error == -EINVAL ? "bad_request" : lair_code(error);

	if (status == 503 || error == -EAGAIN)
		answer_header(exchange, "Retry-After", "1");
	answer_problem(exchange, status, code, "%s", sentence);
}

/* ---- streams ---- */

static ssize_t stream_read(void *userdata, uint64_t at, char *to, size_t size)
{
	struct exchange *exchange = userdata;
	size_t n = MIN(exchange->out_size - exchange->out_at, size);

	(void)at;
	if (exchange->gone || exchange->broken)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (n > 0)
		memcpy(to, exchange->out + exchange->out_at, n);
	exchange->out_at += n;
	exchange->read = server_now();
	if (exchange->out_at == exchange->out_size)
		exchange->out_at = exchange->out_size = 0;
	if (stream_waiting(exchange) < ROOM_MARK)
		flow_start(exchange);
	if (exchange->on_room && !exchange->ended && stream_waiting(exchange) < ROOM_MARK)
		exchange->on_room(exchange);
	if (n > 0)
		return (ssize_t)n;
	if (exchange->broken)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (exchange->out_size > 0)
		return stream_read(userdata, at, to, size);
	if (exchange->ended)
		return MHD_CONTENT_READER_END_OF_STREAM;
	/* The memory for a flood is not kept for the silence after it. */
	freep(&exchange->out);
	exchange->server->streams -= exchange->out_allocated;
	exchange->out_allocated = 0;
	suspend(exchange);
	return 0;
}

void stream_begin(struct exchange *exchange, unsigned status, const char *type, uint64_t size)
{
	exchange->streaming = true;
	answer(exchange, status, type,
	       MHD_create_response_from_callback(size == STREAM_OPEN ? MHD_SIZE_UNKNOWN : size,
						 size == STREAM_OPEN ? BLOCK_OPEN : BLOCK_SIZED, stream_read,
						 exchange, NULL));
}

size_t stream_waiting(const struct exchange *exchange)
{
	return exchange->out_size - exchange->out_at;
}

static bool stream_reserve(struct exchange *exchange, size_t size)
{
	size_t wanted = exchange->out_size + size, allocated;
	char *out;

	if (exchange->out_at > 0 && wanted > exchange->out_allocated) {
		memmove(exchange->out, exchange->out + exchange->out_at, stream_waiting(exchange));
		exchange->out_size -= exchange->out_at;
		exchange->out_at = 0;
		wanted = exchange->out_size + size;
	}
	if (wanted <= exchange->out_allocated)
		return true;
	allocated = MAX(wanted + wanted / 2, (size_t)1024);
	out = realloc(exchange->out, allocated);
	if (!out)
		return false;
	exchange->server->streams += allocated - exchange->out_allocated;
	exchange->out = out;
	exchange->out_allocated = allocated;
	return true;
}

static void stream_put(struct exchange *exchange, const char *data, size_t size)
{
	memcpy(exchange->out + exchange->out_size, data, size);
	exchange->out_size += size;
}

bool stream_fits(const struct exchange *exchange, size_t size)
{
	size_t most = exchange->server->streams < STREAMS_MAX ? STREAM_MAX : STREAM_LEAST;

	return !exchange->gone && !exchange->ended && !exchange->broken &&
	       (exchange->urgent || exchange->flow || stream_waiting(exchange) == 0 ||
		stream_waiting(exchange) + size <= most);
}

static bool stream_room(struct exchange *exchange, size_t size)
{
	return stream_fits(exchange, size) && stream_reserve(exchange, size);
}

static void written(struct exchange *exchange)
{
	flow_stop(exchange);
	wake(exchange);
}

bool stream_write(struct exchange *exchange, struct lair_text text)
{
	if (!stream_room(exchange, text.size))
		return false;
	stream_put(exchange, text.data, text.size);
	written(exchange);
	return true;
}

bool stream_line(struct exchange *exchange, json_t *document)
{
	size_t size;
	_cleanup_(freep) char *text = ascii(document, &size);

	if (!text || !stream_room(exchange, size + 1))
		return false;
	stream_put(exchange, text, size);
	stream_put(exchange, "\n", 1);
	written(exchange);
	return true;
}

bool stream_event(struct exchange *exchange, const char *event, const char *id, json_t *document)
{
	size_t size, most;
	_cleanup_(freep) char *text = ascii(document, &size);
	char head[256];
	int n;

	n = snprintf(head, sizeof(head), "%s%s%s%s%s%sdata: ", event ? "event: " : "", event ? event : "",
		     event ? "\n" : "", id ? "id: " : "", id ? id : "", id ? "\n" : "");
	most = (size_t)n + size + 2;
	if (!text || n < 0 || n >= (int)sizeof(head) || !stream_room(exchange, most))
		return false;
	stream_put(exchange, head, (size_t)n);
	stream_put(exchange, text, size);
	stream_put(exchange, "\n\n", 2);
	written(exchange);
	return true;
}

void stream_end(struct exchange *exchange)
{
	exchange->ended = true;
	wake(exchange);
}

void stream_break(struct exchange *exchange)
{
	exchange->broken = true;
	exchange_drop(exchange);
}

/* ---- requests ---- */

static bool body_reserve(struct exchange *exchange, size_t size)
{
	struct server *server = exchange->server;
	size_t wanted = exchange->body_size + size + 1, allocated;
	char *body;

	if (wanted <= exchange->body_allocated)
		return true;
	allocated = MIN(MAX(wanted + wanted / 2, (size_t)4096), BODY_MAX + 1);
	if (wanted > BODY_MAX + 1) {
		answer_problem(exchange, 413, "too_large", "the body has more than %zu bytes", BODY_MAX);
		return false;
	}
	if (server->bodies - exchange->body_allocated + allocated > BODIES_MAX) {
		answer_error(exchange, -ENOMEM, "too many bodies of requests are on their way");
		return false;
	}
	body = realloc(exchange->body, allocated);
	if (!body) {
		answer_error(exchange, -ENOMEM, "out of memory");
		return false;
	}
	server->bodies += allocated - exchange->body_allocated;
	exchange->body = body;
	exchange->body_allocated = allocated;
	return true;
}

static void body_append(struct exchange *exchange, const char *data, size_t size)
{
	if (exchange->response || !body_reserve(exchange, size))
		return;
	memcpy(exchange->body + exchange->body_size, data, size);
	exchange->body_size += size;
	exchange->body[exchange->body_size] = '\0';
}

static enum MHD_Result queue(struct exchange *exchange)
{
	exchange->queued = true;
	return MHD_queue_response(exchange->http, exchange->status, exchange->response);
}

static enum MHD_Result answer_or_wait(struct exchange *exchange)
{
	if (exchange->gone)
		return MHD_NO;
	if (exchange->response)
		return queue(exchange);
	suspend(exchange);
	return MHD_YES;
}

/* The body as JSON, as the route's schema has it. Returns whether it is. */
static bool body_parse(struct exchange *exchange)
{
	const char *type = exchange_header(exchange, "Content-Type");
	char why[SCHEMA_WHY_SIZE];
	json_error_t error = {.line = 0};

	/* The second is what curl says of any body: a form never is JSON. */
	if (exchange->body_size > 0 && type && strncasecmp(type, "application/json", 16) != 0 &&
	    strncasecmp(type, "application/x-www-form-urlencoded", 33) != 0) {
		answer_problem(exchange, 415, "bad_request", "the body is to be application/json");
		return false;
	}
	exchange->json = exchange->body_size > 0 ? json_loadb(exchange->body, exchange->body_size,
							      JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error)
						 : json_object();
	if (!exchange->json) {
		answer_problem(exchange, 400, "bad_request", "the body is no JSON: %s, in line %d", error.text,
			       error.line);
		return false;
	}
	if (schema_check(exchange->route->body, exchange->json, why))
		return true;
	answer_problem(exchange, 400, "bad_request", "%s", why);
	return false;
}

static void begin(struct exchange *exchange)
{
	exchange->begun = true;
	if (!exchange->route->body || body_parse(exchange))
		exchange->route->begin(exchange);
}

static bool body_announced(struct exchange *exchange)
{
	const char *length = exchange_header(exchange, "Content-Length");

	if (!length || (exchange->route->flags & ROUTE_RAW) || strtoull(length, NULL, 10) <= BODY_MAX)
		return true;
	answer_problem(exchange, 413, "too_large", "the body has more than %zu bytes", BODY_MAX);
	return false;
}

/* The headers have come. */
static enum MHD_Result on_headers(struct exchange *exchange, const char *method, const char *version)
{
	const char *wrong = head_wrong(exchange, version);

	exchange->routed = true;
	exchange->head = strcmp(method, "HEAD") == 0;
	exchange->method = exchange->head ? "GET" : method;
	connection_works(exchange->connection, exchange);
	if (wrong) {
		exchange->close = true;
		answer_problem(exchange, 400, "bad_request", "%s", wrong);
	} else if (route_find(exchange) && body_announced(exchange) && (exchange->route->flags & ROUTE_RAW)) {
		exchange->begun = true;
		exchange->route->begin(exchange);
	}
	if (exchange->gone)
		return MHD_NO;
	return exchange->response ? queue(exchange) : MHD_YES;
}

static enum MHD_Result on_upload(struct exchange *exchange, const char *data, size_t *size)
{
	size_t taken = *size;

	if (exchange->gone)
		return MHD_NO;
	if (exchange->response) {
		/* Libmicrohttpd takes no answer in the middle of a body. */
		exchange->body_size += *size;
		*size = 0;
		return exchange->body_size > UNWANTED_MAX ? MHD_NO : MHD_YES;
	}
	if (!(exchange->route->flags & ROUTE_RAW)) {
		body_append(exchange, data, *size);
	} else if (exchange->on_body) {
		taken = exchange->on_body(exchange, data, *size);
		if (exchange->response)
			exchange->body_size = 0;
	}
	*size = exchange->response ? 0 : *size - taken;
	if (*size > 0) {
		exchange->paused = true;
		suspend(exchange);
	}
	return exchange->gone ? MHD_NO : MHD_YES;
}

enum MHD_Result exchange_access(struct exchange *exchange, const char *method, const char *version,
				const char *upload, size_t *size)
{
	if (!exchange->routed)
		return on_headers(exchange, method, version);
	if (*size > 0)
		return on_upload(exchange, upload, size);
	if (!exchange->response && !exchange->gone && !exchange->begun) {
		begin(exchange);
	} else if (!exchange->response && !exchange->gone && exchange->on_body && !exchange->ended_body) {
		exchange->ended_body = true;
		(void)exchange->on_body(exchange, NULL, 0);
	}
	return answer_or_wait(exchange);
}
