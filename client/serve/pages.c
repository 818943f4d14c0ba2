/* Pages: a browser sends requests for whatever page it shows, and to this machine's loopback no secret is needed.
 * So a request of a page is let in only if the page is the dashboard, or of an origin that was named.
 *
 * A browser says for which page it asks: Origin with each request that may change something or whose answer a
 * script may read, and Sec-Fetch-Site with each request to loopback or over TLS. A script cannot set either.
 * Programs send neither, and are no matter of this file. */
#include "exchange.h"

/* ---- origins ---- */

/* The size of the first of @list, with commas between them. */
static size_t origin_size(const char *list)
{
	return strcspn(list, ",");
}

static const char *origin_next(const char *list)
{
	size_t size = origin_size(list);

	return list + size + (list[size] == ',');
}

/* SCHEME://HOST or SCHEME://HOST:PORT, as a browser writes it. */
static bool origin_valid(const char *origin, size_t size)
{
	const char *host = memmem(origin, size, "://", 3);
	size_t left = host ? size - (size_t)(host + 3 - origin) : 0;

	return host && host > origin && left > 0 && !memchr(host + 3, '/', left) && !memchr(origin, '*', size) &&
	       !memchr(origin, ' ', size);
}

const char *origins_wrong(const char *list)
{
	for (const char *at = list; at && *at; at = origin_next(at))
		if (!origin_valid(at, origin_size(at)))
			return at;
	return NULL;
}

static bool is_named(const char *list, const char *origin)
{
	for (const char *at = list; at && *at; at = origin_next(at))
		if (strlen(origin) == origin_size(at) && strncasecmp(at, origin, origin_size(at)) == 0)
			return true;
	return false;
}

/* ---- which page ---- */

/* A page of ours is at the address that the request goes to. */
static bool is_own(const char *origin, const char *host)
{
	size_t scheme = strncasecmp(origin, "http://", 7) == 0	  ? 7
			: strncasecmp(origin, "https://", 8) == 0 ? 8
								  : 0;

	return scheme && host && strcasecmp(origin + scheme, host) == 0;
}

static enum page page_of(const struct exchange *exchange)
{
	const char *origin = exchange_header(exchange, "Origin"),
		   *site = exchange_header(exchange, "Sec-Fetch-Site");

	if (origin && is_named(exchange->server->options->origins, origin))
		return PAGE_NAMED;
	if (origin && !is_own(origin, exchange_header(exchange, "Host")))
		return PAGE_FOREIGN;
	/* "none": a person has typed the address. */
	if (site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0)
		return PAGE_FOREIGN;
	return origin || site ? PAGE_OWN : PAGE_NONE;
}

/* ---- requests that any page can send ---- */

static bool is_simple_type(const char *type)
{
	static const char *const types[] = {"application/x-www-form-urlencoded", "multipart/form-data",
					    "text/plain"};
	size_t size = strcspn(type, "; \t");

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (strlen(types[i]) == size && strncasecmp(types[i], type, size) == 0)
			return true;
	return size == 0;
}

bool exchange_is_simple(const struct exchange *exchange)
{
	static const char *const headers[] = {
		"Authorization",	"X-API-KEY",
		"X-Access-Token",	"E2B-Traffic-Access-Token",
		"E2b-Sandbox-Id",	"Connect-Protocol-Version",
		"Idempotency-Key",	"Mcp-Session-Id",
		"MCP-Protocol-Version",
	};
	const char *type = exchange_header(exchange, "Content-Type");

	if (strcmp(exchange->method, "GET") != 0 && strcmp(exchange->method, "POST") != 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(headers); i++)
		if (exchange_header(exchange, headers[i]))
			return false;
	return !type || is_simple_type(type);
}

/* Whether a browser sends it, although it may not say so. */
static bool is_browser(const struct exchange *exchange)
{
	const char *agent = exchange_header(exchange, "User-Agent");

	return exchange->page != PAGE_NONE || (agent && strncmp(agent, "Mozilla/", 8) == 0);
}

/* ---- CORS, for pages of origins that were named ---- */

static void cors_headers(struct exchange *exchange)
{
	answer_header(exchange, "Access-Control-Allow-Origin", exchange_header(exchange, "Origin"));
	answer_header(exchange, "Access-Control-Expose-Headers", "*");
	answer_header(exchange, "Vary", "Origin");
}

void page_preflight(struct exchange *exchange, const char *methods)
{
	const char *headers = exchange_header(exchange, "Access-Control-Request-Headers");

	if (exchange->page != PAGE_NAMED)
		return;
	answer_header(exchange, "Access-Control-Allow-Methods", methods);
	if (headers)
		answer_header(exchange, "Access-Control-Allow-Headers", headers);
	if (exchange_header(exchange, "Access-Control-Request-Private-Network"))
		answer_header(exchange, "Access-Control-Allow-Private-Network", "true");
	answer_header(exchange, "Access-Control-Max-Age", "600");
}

/* ---- whether it may ---- */

static bool host_may(struct exchange *exchange)
{
	const char *host = exchange_header(exchange, "Host");

	if (!host && strcmp(exchange->method, "OPTIONS") != 0) {
		answer_problem(exchange, 400, "bad_request", "a request has a Host");
		return false;
	}
	/* A page whose name means this machine by a trick with DNS is of our origin for its browser. */
	if (exchange->server->open && host && !host_is_loopback(host, strlen(host))) {
		answer_problem(exchange, 403, "denied",
			       "without tokens Host is to be localhost, or an address of this machine's loopback");
		return false;
	}
	return true;
}

/* A link to a page of ours may stand anywhere. And with tokens a request without one gets nothing anyway. */
static bool foreign_may(const struct exchange *exchange)
{
	unsigned flags = exchange->route ? exchange->route->flags : 0;

	return !exchange_header(exchange, "Origin") && (!exchange->server->open || (flags & ROUTE_OPEN));
}

bool page_may(struct exchange *exchange)
{
	if (!host_may(exchange))
		return false;
	exchange->page = page_of(exchange);
	if (exchange->page == PAGE_NAMED)
		cors_headers(exchange);
	if (exchange->page == PAGE_FOREIGN && !foreign_may(exchange)) {
		answer_problem(
			exchange, 403, "denied",
			"this is for no page of another site; lair serve --origins names those that may ask");
		return false;
	}
	if (exchange->page == PAGE_NAMED && exchange->route && (exchange->route->flags & ROUTE_OWN)) {
		answer_problem(exchange, 403, "denied", "calls are answered in the dashboard, or by a program");
		return false;
	}
	if (strcmp(exchange->method, "POST") == 0 && is_browser(exchange) && exchange_is_simple(exchange)) {
		answer_problem(exchange, 415, "bad_request", "a browser is to send application/json");
		return false;
	}
	return true;
}
