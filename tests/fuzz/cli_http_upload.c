/* The body of an upload: a form in parts, which libmicrohttpd takes apart; a file; a file that is packed. */
#include "e2b/pieces.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define OUT_MAX ((size_t)64 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

/* What laird would be asked for: pieces in order, each file with one that begins it and one that ends it. */
static size_t take_all(struct pieces *pieces, bool *insidep)
{
	size_t n = 0;

	for (const struct piece *piece; (piece = pieces->first); pieces_next(pieces)) {
		check(piece->begins != *insidep);
		check(piece->begins == (piece->path != NULL));
		check(!piece->begins || *piece->path);
		check(piece->size <= LAIR_PIECE);
		check(piece->last || piece->size == LAIR_PIECE);
		*insidep = !piece->last;
		n += piece->size;
	}
	return n;
}

static void feed(struct pieces *pieces, const char *data, size_t size, size_t step, bool *insidep, size_t *outp)
{
	for (size_t n; size > 0 && !pieces->failed && *outp < OUT_MAX; data += n, size -= n) {
		n = pieces_add(pieces, data, MIN(size, step));
		*outp += take_all(pieces, insidep);
		while (pieces->waits && !pieces->failed && *outp < OUT_MAX) {
			(void)pieces_add(pieces, NULL, 0);
			*outp += take_all(pieces, insidep);
		}
	}
}

static void feed_file(const char *data, size_t size, size_t step, bool packed)
{
	struct pieces pieces = {0};
	bool inside = false;
	size_t out = 0;

	pieces_of_file(&pieces, "a file", packed);
	feed(&pieces, data, size, step, &inside, &out);
	pieces_end(&pieces);
	out += take_all(&pieces, &inside);
	check(!inside && (packed || out == size));
	pieces_deinit(&pieces);
}

/* ---- a form, in a request of HTTP ---- */

static size_t step;

static enum MHD_Result on_request(void *userdata, struct MHD_Connection *http, const char *url, const char *method,
				  const char *version, const char *data, size_t *size, void **statep)
{
	struct pieces *pieces = *statep;
	struct MHD_Response *response;
	bool inside = false;

	(void)userdata;
	(void)url;
	(void)method;
	(void)version;
	if (!pieces) {
		*statep = pieces = calloc(1, sizeof(*pieces));
		check(pieces);
		pieces_of_form(pieces, http, NULL);
		return MHD_YES;
	}
	if (*size > 0) {
		/* A file may go on in the next part of the body: here it is looked at as a whole. */
		for (size_t at = 0; at < *size && !pieces->failed; at += step)
			(void)pieces_add(pieces, data + at, MIN(step, *size - at));
		*size = 0;
		return MHD_YES;
	}
	pieces_end(pieces);
	(void)take_all(pieces, &inside);
	check(!inside || pieces->failed);
	response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
	(void)MHD_queue_response(http, 200, response);
	MHD_destroy_response(response);
	return MHD_YES;
}

static void on_completed(void *userdata, struct MHD_Connection *http, void **statep,
			 enum MHD_RequestTerminationCode code)
{
	(void)userdata;
	(void)http;
	(void)code;
	if (*statep)
		pieces_deinit(*statep);
	free(*statep);
	*statep = NULL;
}

/* The first line of @data is the type of the body. */
static void feed_form(const char *data, size_t size)
{
	static struct MHD_Daemon *daemon;
	const char *line = memchr(data, '\n', size);
	_cleanup_(freep) char *head = NULL;
	size_t body = line ? (size_t)(data + size - line - 1) : 0;
	struct sockaddr_storage address = {.ss_family = AF_UNIX};
	int ends[2], n;
	char drained[4096];

	if (!line || memchr(data, '\r', (size_t)(line - data)) || memchr(data, '\0', (size_t)(line - data)))
		return;
	if (!daemon)
		daemon = MHD_start_daemon(MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL, on_request, NULL,
					  MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL, MHD_OPTION_END);
	check(daemon && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
	n = asprintf(&head,
		     "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: %zu\r\nContent-Type: "
		     "multipart/form-data%.*s\r\n\r\n",
		     body, (int)(line - data), data);
	check(n > 0 && write(ends[0], head, (size_t)n) == n);
	check(body == 0 || write(ends[0], line + 1, body) == (ssize_t)body);
	check(shutdown(ends[0], SHUT_WR) == 0);
	check(MHD_add_connection(daemon, ends[1], (struct sockaddr *)&address, sizeof(sa_family_t)) == MHD_YES);
	do
		check(MHD_run(daemon) == MHD_YES);
	while (MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)->num_connections > 0);
	while (read(ends[0], drained, sizeof(drained)) > 0)
		;
	close(ends[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + 1;

	if (size == 0)
		return 0;
	step = 1 + (size_t)(*data >> 2) * 7;
	if (*data % 4 == 0)
		feed_file(text, size - 1, step, false);
	else if (*data % 4 == 1)
		feed_file(text, size - 1, step, true);
	else
		feed_form(text, size - 1);
	return 0;
}
