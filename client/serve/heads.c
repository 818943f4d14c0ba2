/* The head of a request. A proxy in front decides by it where the request ends, and so do we: if the two differ, a
 * stranger's bytes become a request of another client. libmicrohttpd takes more than RFC 9112 allows, so a head
 * that can be read in two ways is refused here, and its connection closed. */
#include "exchange.h"

#include <stdint.h>

struct head {
	size_t n_lengths, n_codings, n_hosts, n_origins;
	const char *why; /* NULL: nothing is wrong */
};

/* RFC 9110: the characters of a name. */
static bool is_token(const char *name, size_t size)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~";

	return size > 0 && strspn(name, letters) == size;
}

static bool is_value(const char *value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (((unsigned char)value[i] < ' ' && value[i] != '\t') || value[i] == 0x7f)
			return false;
	return true;
}

/* Whether a header was a line of its own that ended with CR and LF. Before 0.9.77 libmicrohttpd adds the second
 * line of a folded one to its name, which then lies behind the value, ends lines with a bare LF, and values with a
 * NUL. It puts a NUL in the place of CR and of LF; so there are two, where these were. */
static bool is_line(const char *name, const char *value, size_t size)
{
#if MHD_VERSION < 0x00097700
	return (uintptr_t)name < (uintptr_t)value && value[size] == '\0' && value[size + 1] == '\0';
#else
	(void)name;
	(void)value;
	(void)size;
	return true;
#endif
}

static bool is_name(const char *name, const char *wanted)
{
	return strcasecmp(name, wanted) == 0;
}

static bool is_length(const char *value, size_t size)
{
	return size > 0 && size < 20 && strspn(value, "0123456789") == size;
}

static enum MHD_Result on_header(void *userdata, enum MHD_ValueKind kind, const char *name, size_t name_size,
				 const char *value, size_t size)
{
	struct head *head = userdata;

	(void)kind;
	if (!is_token(name, name_size) || !value || !is_value(value, size) || !is_line(name, value, size)) {
		head->why = "a header is not as it should be";
		return MHD_NO;
	}
	head->n_hosts += is_name(name, "Host");
	head->n_origins += is_name(name, "Origin");
	head->n_lengths += is_name(name, "Content-Length");
	head->n_codings += is_name(name, "Transfer-Encoding");
	if (is_name(name, "Content-Length") && !is_length(value, size))
		head->why = "Content-Length is to be a number";
	if (is_name(name, "Transfer-Encoding") && strcasecmp(value, "chunked") != 0)
		head->why = "Transfer-Encoding can be chunked, and nothing else";
	return head->why ? MHD_NO : MHD_YES;
}

const char *head_wrong(const struct exchange *exchange, const char *version)
{
	struct head head = {.why = NULL};

	(void)MHD_get_connection_values_n(exchange->http, MHD_HEADER_KIND, on_header, &head);
	if (head.why)
		return head.why;
	if (head.n_lengths + head.n_codings > 1)
		return "a request has one Content-Length or one Transfer-Encoding, and not both";
	if (head.n_codings > 0 && strcmp(version, "HTTP/1.1") != 0)
		return "only HTTP/1.1 has Transfer-Encoding";
	return head.n_hosts > 1 || head.n_origins > 1 ? "a request has one Host and one Origin" : NULL;
}
