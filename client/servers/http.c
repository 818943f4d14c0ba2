/* Servers over streamable HTTP. Each message is a POST of its own, whose answer is a document or a stream of
 * events; one GET listens for what comes unasked. libcurl moves the bytes, on the loop's descriptors. Its callbacks
 * only collect: their data is handed on when it is at rest, and only then transfers are freed. */
#include "upstream.h"

#include "base/json.h"
#include "base/jsonrpc.h"
#include "base/text.h"
#include "curl.h"

#include "proto/clock.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <strings.h>

#define CONNECT_PATIENCE 30L
#define SESSION_SIZE_MAX ((size_t)1024)
/* A stream that has ended sooner is not opened again. */
#define LISTEN_LONG 1.0
/* A stream that has ended without the answer is asked for the rest after so many seconds, or as the server says. */
#define RESUME_PAUSE 1.0
#define RESUME_PAUSE_MIN 0.1
#define RESUME_PAUSE_MAX 60.0
#define EVENT_ID_MAX ((size_t)1024)
/* Servers that keep sessions are told the end of theirs, and may take so long to listen. */
#define PARTING_SECONDS_MAX 5L
/* Transfers at once without a waiter: answers to requests of a server, mostly. */
#define UNASKED_MAX 32

struct buffer {
	char *data;
	size_t size, allocated;
};

struct http {
	struct upstream *upstream;
	struct http_loop *loop;
	char *url;
	struct curl_slist *headers; /* that the file gives */
	char *session;		    /* that the server has given; or NULL */
};

struct transfer {
	struct transfer *next;
	struct http *http; /* NULL: nobody waits for it */
	CURL *easy;
	struct curl_slist *headers;
	json_int_t id; /* of the request; 0: none, or it is answered */
	bool listening, events, done;
	bool parting;		/* it ends the session: nobody waits, but it is sent */
	bool resumes;		/* the stream of a request that the server has */
	bool unasked;		/* a notification, or an answer */
	double since, start_at; /* start_at: 0: it was started */
	char *event_id;		/* the last event's, from which the stream can be resumed; or NULL */
	double pause;		/* before it does */
	CURLcode outcome;
	struct buffer body, event; /* the data that was not looked at; the event so far */
	size_t looked;
	char error[CURL_ERROR_SIZE];
};

struct socket {
	struct event_source source;
	struct http_loop *loop;
};

struct http_loop {
	const struct curl *curl;
	struct servers *servers;
	CURLM *multi;
	double due;
	struct transfer *transfers;
};

/* ---- received data ---- */

static bool buffer_add(struct buffer *buffer, const char *data, size_t size)
{
	size_t allocated = MAX(buffer->allocated, (size_t)4096);
	char *grown;

	if (size > MESSAGE_SIZE_MAX - MIN(buffer->size, MESSAGE_SIZE_MAX))
		return false;
	while (allocated < buffer->size + size)
		allocated *= 2;
	if (allocated > buffer->allocated) {
		grown = realloc(buffer->data, allocated);
		if (!grown)
			return false;
		buffer->data = grown;
		buffer->allocated = allocated;
	}
	memcpy(buffer->data + buffer->size, data, size);
	buffer->size += size;
	return true;
}

static void message_take(struct transfer *transfer, struct lair_text text)
{
	if (transfer->http && text.size > 0)
		upstream_message(transfer->http->upstream, text);
}

/* The value of a line that begins with @name; absent if it does not. */
static struct lair_text field_of(const char *line, size_t size, const char *name)
{
	size_t n = strlen(name);

	if (size < n || memcmp(line, name, n) != 0)
		return (struct lair_text){.data = NULL};
	n += n < size && line[n] == ' ';
	return (struct lair_text){line + n, size - n};
}

static bool header_safe(struct lair_text value, size_t most)
{
	for (size_t i = 0; i < value.size; i++)
		if (value.data[i] <= ' ' || value.data[i] > '~')
			return false;
	return value.size > 0 && value.size <= most;
}

/* Digits are milliseconds. */
static void pause_take(struct transfer *transfer, struct lair_text value)
{
	double ms = 0;

	for (size_t i = 0; i < value.size; i++) {
		if (!isdigit((unsigned char)value.data[i]))
			return;
		ms = fmin(ms * 10 + (value.data[i] - '0'), RESUME_PAUSE_MAX * 1e3);
	}
	transfer->pause = fmax(ms / 1e3, RESUME_PAUSE_MIN);
}

static void event_line(struct transfer *transfer, const char *line, size_t size)
{
	struct lair_text data = field_of(line, size, "data:"), id = field_of(line, size, "id:"),
			 retry = field_of(line, size, "retry:");

	if (size == 0) {
		message_take(transfer, (struct lair_text){transfer->event.data, transfer->event.size});
		transfer->event.size = 0;
	} else if (data.data) {
		if (!buffer_add(&transfer->event, data.data, data.size) && transfer->http)
			upstream_lost(transfer->http->upstream, "it has sent a message that is too long");
	} else if (id.data && header_safe(id, EVENT_ID_MAX)) {
		free(transfer->event_id);
		transfer->event_id = strndup(id.data, id.size);
	} else if (retry.size > 0) {
		pause_take(transfer, retry);
	}
}

/* The whole lines of a stream, which end with \n, \r\n or \r. */
static void events_take(struct transfer *transfer)
{
	struct buffer *body = &transfer->body;
	size_t start = 0, at = transfer->looked;

	while (transfer->http && at < body->size) {
		char c = body->data[at];

		if (c != '\n' && c != '\r') {
			at++;
			continue;
		}
		if (c == '\r' && at + 1 == body->size && !transfer->done)
			break;
		event_line(transfer, body->data + start, at - start);
		at += c == '\r' && at + 1 < body->size && body->data[at + 1] == '\n' ? 2 : 1;
		start = at;
	}
	if (start > 0)
		memmove(body->data, body->data + start, body->size - start);
	body->size -= start;
	transfer->looked = at - start;
}

static size_t on_body(char *data, size_t one, size_t size, void *userdata)
{
	struct transfer *transfer = userdata;

	return buffer_add(&transfer->body, data, size) ? size : 0;
}

static bool header_is(struct lair_text header, const char *name, struct lair_text *valuep)
{
	size_t n = strlen(name);

	if (header.size <= n || header.data[n] != ':' || strncasecmp(header.data, name, n) != 0)
		return false;
	*valuep = (struct lair_text){header.data + n + 1, header.size - n - 1};
	while (valuep->size > 0 && isspace((unsigned char)valuep->data[0])) {
		valuep->data++;
		valuep->size--;
	}
	while (valuep->size > 0 && isspace((unsigned char)valuep->data[valuep->size - 1]))
		valuep->size--;
	return true;
}

/* It goes into every header afterwards. */
static void session_take(struct http *http, struct lair_text value)
{
	if (!header_safe(value, SESSION_SIZE_MAX))
		return;
	free(http->session);
	http->session = strndup(value.data, value.size);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): as libcurl wants it */
static size_t on_header(char *data, size_t one, size_t size, void *userdata)
{
	static const char stream[] = "text/event-stream";
	struct transfer *transfer = userdata;
	struct lair_text header = {data, size}, value;

	if (header_is(header, "content-type", &value))
		transfer->events = value.size >= sizeof(stream) - 1 &&
				   strncasecmp(value.data, stream, sizeof(stream) - 1) == 0;
	else if (transfer->http && transfer->http->upstream->state == UPSTREAM_STARTING &&
		 header_is(header, "mcp-session-id", &value))
		session_take(transfer->http, value);
	return size;
}

/* ---- libcurl's view of the loop ---- */

static void on_socket_ready(struct event_source *source, uint32_t events)
{
	struct http_loop *loop = container_of(source, struct socket, source)->loop;
	int bits = (events & EPOLLIN ? CURL_CSELECT_IN : 0) | (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
		   (events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0),
	    running;

	servers_touch(loop->servers);
	(void)loop->curl->multi_socket_action(loop->multi, source->fd, bits, &running);
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *userdata, void *known)
{
	struct http_loop *loop = userdata;
	struct socket *it = known;

	if (what == CURL_POLL_REMOVE) {
		if (it)
			event_remove(loop->servers->options.loop, &it->source);
		(void)loop->curl->multi_assign(loop->multi, fd, NULL);
		free(it);
		return 0;
	}
	if (!it) {
		it = calloc(1, sizeof(*it));
		if (!it)
			return -1;
		*it = (struct socket){.source = EVENT_SOURCE_NONE, .loop = loop};
		(void)loop->curl->multi_assign(loop->multi, fd, it);
	}
	return event_set(loop->servers->options.loop, &it->source, fd,
			 (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0),
			 on_socket_ready);
}

static int on_timer(CURLM *multi, long ms, void *userdata)
{
	struct http_loop *loop = userdata;

	loop->due = ms < 0 ? 0 : clock_seconds() + (double)ms / 1e3;
	return 0;
}

static struct http_loop *loop_of(struct servers *servers, const struct curl *curl)
{
	struct http_loop *loop = servers->http ? servers->http : calloc(1, sizeof(*loop));

	if (servers->http || !loop)
		return loop;
	*loop = (struct http_loop){.curl = curl, .servers = servers, .multi = curl->multi_init()};
	if (!loop->multi) {
		free(loop);
		return NULL;
	}
	(void)curl->multi_setopt(loop->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	(void)curl->multi_setopt(loop->multi, CURLMOPT_SOCKETDATA, loop);
	(void)curl->multi_setopt(loop->multi, CURLMOPT_TIMERFUNCTION, on_timer);
	(void)curl->multi_setopt(loop->multi, CURLMOPT_TIMERDATA, loop);
	servers->http = loop;
	return loop;
}

/* ---- transfers ---- */

static void transfer_free(struct transfer *transfer, const struct http_loop *loop)
{
	(void)loop->curl->multi_remove_handle(loop->multi, transfer->easy);
	loop->curl->easy_cleanup(transfer->easy);
	loop->curl->slist_free_all(transfer->headers);
	free(transfer->event_id);
	free(transfer->body.data);
	free(transfer->event.data);
	free(transfer);
}

static bool header_add(struct transfer *transfer, const char *name, const char *value)
{
	const struct curl *curl = transfer->http->loop->curl;
	_cleanup_(freep) char *line = NULL;
	struct curl_slist *longer;

	if (asprintf(&line, "%s: %s", name, value) < 0)
		return false;
	longer = curl->slist_append(transfer->headers, line);
	if (longer)
		transfer->headers = longer;
	return longer != NULL;
}

/* In a header, only printable ASCII without space at its ends is itself. */
static bool header_add_text(struct transfer *transfer, const char *name, const char *value)
{
	_cleanup_(freep) char *encoded = NULL, *wrapped = NULL;
	size_t n = strlen(value);
	bool plain = n > 0 && value[0] != ' ' && value[n - 1] != ' ' && strncmp(value, "=?", 2) != 0;

	for (size_t i = 0; i < n; i++)
		plain &= value[i] >= ' ' && value[i] <= '~';
	if (plain)
		return header_add(transfer, name, value);
	encoded = text_base64(lair_text(value));
	if (!encoded || asprintf(&wrapped, "=?base64?%s?=", encoded) < 0)
		return false;
	return header_add(transfer, name, wrapped);
}

/* In the stateless era the headers say what the document says. */
static bool headers_add(struct transfer *transfer, const json_t *document)
{
	const struct http *http = transfer->http;
	const struct upstream *upstream = http->upstream;
	const char *method = json_string_value(json_object_get(document, "method"));
	const char *name = json_string_value(json_object_get(json_object_get(document, "params"), "name"));
	bool fine = header_add(transfer, "Accept",
			       document ? "application/json, text/event-stream" : "text/event-stream") &&
		    header_add(transfer, "Content-Type", "application/json");

	for (const struct curl_slist *it = http->headers; fine && it; it = it->next) {
		struct curl_slist *longer = http->loop->curl->slist_append(transfer->headers, it->data);

		fine = longer != NULL;
		transfer->headers = longer ? longer : transfer->headers;
	}
	if (fine && upstream->version)
		fine = header_add(transfer, "MCP-Protocol-Version", upstream->version);
	if (fine && http->session && !upstream->modern)
		fine = header_add(transfer, "MCP-Session-Id", http->session);
	if (fine && upstream->modern && method)
		fine = header_add(transfer, "Mcp-Method", method) &&
		       (strcmp(method, "tools/call") != 0 ||
			header_add_text(transfer, "Mcp-Name", name ? name : ""));
	return fine;
}

static void transfer_options(struct transfer *transfer)
{
	const struct curl *curl = transfer->http->loop->curl;
	CURL *easy = transfer->easy;

	(void)curl->easy_setopt(easy, CURLOPT_URL, transfer->http->url);
	(void)curl->easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->headers);
	(void)curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	(void)curl->easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
	(void)curl->easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
	(void)curl->easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
	(void)curl->easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->error);
	(void)curl->easy_setopt(easy, CURLOPT_PRIVATE, transfer);
	(void)curl->easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	(void)curl->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, CONNECT_PATIENCE);
	(void)curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	(void)curl->easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	(void)curl->easy_setopt(easy, CURLOPT_USERAGENT, "lair/" LAIR_VERSION);
}

static int transfer_begin(struct transfer *transfer, struct http_loop *loop)
{
	transfer->start_at = 0;
	transfer->since = clock_seconds();
	return loop->curl->multi_add_handle(loop->multi, transfer->easy) == CURLM_OK ? 0 : -ENOMEM;
}

/* @document: NULL for a stream to listen to. @before: the stream that it resumes, after its pause; or NULL. */
static int transfer_start(struct http *http, const json_t *document, json_int_t id, const struct transfer *before)
{
	_cleanup_(freep) char *body = document ? json_compact(document) : NULL;
	struct transfer *transfer = calloc(1, sizeof(*transfer));
	struct http_loop *loop = http->loop;
	int r = 0;

	if (!transfer)
		return -ENOMEM;
	*transfer = (struct transfer){.http = http,
				      .easy = loop->curl->easy_init(),
				      .id = id,
				      .listening = !document && !before,
				      .resumes = before != NULL,
				      .pause = before ? before->pause : RESUME_PAUSE,
				      .event_id = before && before->event_id ? strdup(before->event_id) : NULL};
	if (!transfer->easy || (document && !body) || !headers_add(transfer, document) ||
	    (transfer->event_id && !header_add(transfer, "Last-Event-ID", transfer->event_id))) {
		transfer_free(transfer, loop);
		return -ENOMEM;
	}
	transfer_options(transfer);
	if (body) {
		(void)loop->curl->easy_setopt(transfer->easy, CURLOPT_POSTFIELDSIZE_LARGE,
					      (curl_off_t)strlen(body));
		(void)loop->curl->easy_setopt(transfer->easy, CURLOPT_COPYPOSTFIELDS, body);
	}
	if (before)
		transfer->start_at = clock_seconds() + transfer->pause;
	else
		r = transfer_begin(transfer, loop);
	if (r) {
		transfer_free(transfer, loop);
		return r;
	}
	transfer->next = loop->transfers;
	loop->transfers = transfer;
	return 0;
}

static bool too_many_unasked(const struct http *http)
{
	size_t n = 0;

	for (const struct transfer *it = http->loop->transfers; it; it = it->next)
		n += it->http == http && it->unasked && !it->done;
	return n >= UNASKED_MAX;
}

int http_send(struct http *http, json_t *document, json_int_t id)
{
	int r = document ? 0 : -ENOMEM;

	if (!r && !id && too_many_unasked(http))
		r = -ENOBUFS;
	if (!r)
		r = transfer_start(http, document, id, NULL);
	if (!r)
		http->loop->transfers->unasked = !id;
	json_decref(document);
	return r;
}

void http_listen(struct http *http)
{
	(void)transfer_start(http, NULL, 0, NULL);
}

void http_answered(struct http *http, json_int_t id)
{
	for (struct transfer *it = http->loop->transfers; it; it = it->next)
		if (it->http == http && it->id == id)
			it->id = 0;
}

void http_drop(struct http *http, json_int_t id)
{
	for (struct transfer *it = http->loop->transfers; it; it = it->next)
		if (it->http == http && it->id == id)
			it->http = NULL;
}

/* ---- ends of transfers ---- */

/* The server's refusal, in a few words. */
static void refusal_make(const struct transfer *transfer, long status, char *why, size_t size)
{
	char said[200];
	struct lair_text body = {transfer->body.data ? transfer->body.data : "",
				 MIN(transfer->body.size, sizeof(said) - 1)};

	if (status == 401 || status == 403)
		snprintf(why, size,
			 "it refuses with HTTP status %ld: the headers of its entry must have credentials", status);
	else if (status >= 300 && status < 400)
		snprintf(why, size, "it is elsewhere (HTTP status %ld): redirections are not followed", status);
	else
		snprintf(why, size, "HTTP status %ld%s%s", status, body.size ? ": " : "",
			 transfer->events ? "" : text_tamed(said, sizeof(said), body));
}

static void request_refused(struct transfer *transfer, long status)
{
	struct upstream *upstream = transfer->http->upstream;
	json_int_t id = transfer->id;
	char why[300];

	if (status == 404 && transfer->http->session && !upstream->modern && !transfer->resumes) {
		free(transfer->http->session);
		transfer->http->session = NULL;
		upstream_forgotten(upstream, id);
		return;
	}
	/* It may be an answer in spite of its status. */
	message_take(transfer, (struct lair_text){transfer->body.data, transfer->body.size});
	if (!transfer->http || !transfer->id)
		return;
	refusal_make(transfer, status, why, sizeof(why));
	if (transfer->resumes)
		upstream_unanswered(upstream, id, why, false);
	else if (status == 401 || status == 403 || (status >= 300 && status < 400))
		upstream_unanswered(upstream, id, why, upstream->state == UPSTREAM_READY);
	else
		upstream_unanswered(upstream, id, why, status < 500);
}

static void listening_ended(const struct transfer *transfer, long status)
{
	if (status == 200 && clock_seconds() - transfer->since > LISTEN_LONG)
		http_listen(transfer->http);
}

/* Some servers end a stream before its answer, and have it asked for again. */
static bool resumed(const struct transfer *transfer)
{
	return transfer->events && transfer->event_id && !transfer->http->upstream->modern &&
	       transfer->outcome != CURLE_WRITE_ERROR &&
	       transfer_start(transfer->http, NULL, transfer->id, transfer) == 0;
}

static void transfer_ended(struct transfer *transfer)
{
	const struct curl *curl = transfer->http->loop->curl;
	long status = 0;

	(void)curl->easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
	if (transfer->listening) {
		listening_ended(transfer, status);
		return;
	}
	if (status >= 300 && transfer->outcome == CURLE_OK) {
		request_refused(transfer, status);
		return;
	}
	if (!transfer->events && transfer->outcome == CURLE_OK)
		message_take(transfer, (struct lair_text){transfer->body.data, transfer->body.size});
	if (!transfer->http || !transfer->id || resumed(transfer))
		return;
	if (transfer->outcome == CURLE_WRITE_ERROR)
		upstream_unanswered(transfer->http->upstream, transfer->id, "its answer is too long", false);
	else if (transfer->outcome != CURLE_OK)
		upstream_unanswered(transfer->http->upstream, transfer->id,
				    *transfer->error ? transfer->error : curl->easy_strerror(transfer->outcome),
				    transfer->outcome == CURLE_COULDNT_CONNECT && !transfer->resumes &&
					    transfer->http->upstream->state == UPSTREAM_READY);
	else
		upstream_unanswered(transfer->http->upstream, transfer->id,
				    "it has ended the stream without an answer", false);
}

/* ---- the loop ---- */

static void outcomes_read(struct http_loop *loop)
{
	struct transfer *transfer;
	CURLMsg *message;
	int left;

	while ((message = loop->curl->multi_info_read(loop->multi, &left))) {
		if (message->msg != CURLMSG_DONE ||
		    loop->curl->easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer) != CURLE_OK)
			continue;
		transfer->done = true;
		transfer->outcome = message->data.result;
	}
}

static void loop_sweep(struct http_loop *loop)
{
	struct transfer **at = &loop->transfers, *transfer;

	while ((transfer = *at)) {
		if (transfer->http || (transfer->parting && !transfer->done)) {
			at = &transfer->next;
			continue;
		}
		*at = transfer->next;
		transfer_free(transfer, loop);
	}
}

double http_due(const struct servers *servers)
{
	const struct http_loop *loop = servers->http;
	double due = loop ? loop->due : 0;

	for (const struct transfer *it = loop ? loop->transfers : NULL; it; it = it->next)
		if (it->start_at > 0 && (due <= 0 || it->start_at < due))
			due = it->start_at;
	return due;
}

void http_process(struct servers *servers)
{
	struct http_loop *loop = servers->http;
	int running;

	if (!loop)
		return;
	if (loop->due && loop->due <= clock_seconds()) {
		loop->due = 0;
		(void)loop->curl->multi_socket_action(loop->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	}
	for (struct transfer *it = loop->transfers; it; it = it->next)
		if (it->http && it->start_at > 0 && it->start_at <= clock_seconds() && transfer_begin(it, loop))
			it->start_at = clock_seconds() + RESUME_PAUSE;
	outcomes_read(loop);
	/* New ones come before those that are looked at, and have nothing yet. */
	for (struct transfer *it = loop->transfers; it; it = it->next) {
		if (it->http && it->events)
			events_take(it);
		if (it->http && it->done)
			transfer_ended(it);
		if (it->done)
			it->http = NULL;
	}
	loop_sweep(loop);
}

bool http_parting(const struct servers *servers)
{
	for (const struct transfer *it = servers->http ? servers->http->transfers : NULL; it; it = it->next)
		if (it->parting && !it->done)
			return true;
	return false;
}

void http_loop_free(struct servers *servers)
{
	struct http_loop *loop = servers->http;

	if (!loop)
		return;
	for (struct transfer *it = loop->transfers; it; it = it->next)
		it->parting = false;
	loop_sweep(loop);
	(void)loop->curl->multi_cleanup(loop->multi);
	free(loop);
	servers->http = NULL;
}

/* ---- one server ---- */

static int header_take(struct http *http, const char *name, const char *value, char **whyp)
{
	_cleanup_(freep) char *expanded = NULL, *line = NULL;
	int r = config_expand(&expanded, value, whyp);
	struct curl_slist *longer;

	if (r)
		return r;
	if (strpbrk(name, ": \r\n") || !*name || strpbrk(expanded, "\r\n"))
		return asprintf(whyp, "the header %.100s is none", name) < 0 ? -ENOMEM : -EINVAL;
	if (asprintf(&line, "%s: %s", name, expanded) < 0)
		return -ENOMEM;
	longer = http->loop->curl->slist_append(http->headers, line);
	if (longer)
		http->headers = longer;
	return longer ? 0 : -ENOMEM;
}

int http_start(struct upstream *upstream, char **whyp)
{
	const struct curl *curl = curl_loaded();
	json_t *value;
	const char *name;
	int r;

	if (!curl)
		return asprintf(whyp, "there is no libcurl on this host, so there are no servers with a url") < 0
			       ? -ENOMEM
			       : -ENOTSUP;
	upstream->http = calloc(1, sizeof(*upstream->http));
	if (!upstream->http || !loop_of(upstream->servers, curl))
		return -ENOMEM;
	upstream->http->upstream = upstream;
	upstream->http->loop = upstream->servers->http;
	r = config_expand(&upstream->http->url, json_string_value(json_object_get(upstream->entry, "url")), whyp);
	if (!r && !config_is_http(upstream->http->url))
		r = asprintf(whyp, "its url is not http:// or https://") < 0 ? -ENOMEM : -EINVAL;
	json_object_foreach(json_object_get(upstream->entry, "headers"), name, value)
	{
		if (!r)
			r = header_take(upstream->http, name, json_string_value(value), whyp);
	}
	return r;
}

static void http_close(struct http *http)
{
	struct http_loop *loop = http->loop;

	for (struct transfer *it = loop ? loop->transfers : NULL; it; it = it->next)
		if (it->http == http)
			it->http = NULL;
	if (loop)
		loop->curl->slist_free_all(http->headers);
	free(http->session);
	free(http->url);
	free(http);
}

/* It may forget the session. */
static void session_end(struct http *http)
{
	struct http_loop *loop = http->loop;

	if (!http->session || http->upstream->modern || transfer_start(http, NULL, 0, NULL))
		return;
	(void)loop->curl->easy_setopt(loop->transfers->easy, CURLOPT_CUSTOMREQUEST, "DELETE");
	(void)loop->curl->easy_setopt(loop->transfers->easy, CURLOPT_TIMEOUT, PARTING_SECONDS_MAX);
	loop->transfers->listening = false;
	loop->transfers->parting = true;
}

void http_end(struct http *http)
{
	if (http->loop)
		session_end(http);
	http_close(http);
}
