/* From a request to its route: who asks, and what there is. */
#include "exchange.h"
#include "schema.h"

#include "base/text.h"

#include <math.h>
#include <stdio.h>

/* ---- who asks ---- */

static const char *bearer(const struct exchange *exchange)
{
	const char *value = exchange_header(exchange, "Authorization");

	if (!value || strncasecmp(value, "Bearer ", 7) != 0)
		return NULL;
	return value + 7 + strspn(value + 7, " ");
}

static bool asker_find(struct exchange *exchange)
{
	const struct door *door = exchange->door;
	const char *token = door->credential ? door->credential(exchange) : bearer(exchange);
	struct tenant *tenant = door->asker ? door->asker(exchange) : tenant_of(exchange->server, token);

	if (!tenant && (exchange->route->flags & ROUTE_OPEN))
		return true;
	if (!tenant) {
		answer_header(exchange, "WWW-Authenticate",
			      token ? "Bearer error=\"invalid_token\"" : "Bearer realm=\"lair\"");
		answer_problem(exchange, 401, "unauthorized",
			       token ? "this token is not known; it may have been revoked"
				     : "send a token, as Authorization: Bearer TOKEN; lair token add makes one");
		return false;
	}
	exchange->tenant = tenant;
	tenant->n_exchanges++;
	tenant->asked = server_now();
	if (connection_shown(exchange->connection, tenant))
		return true;
	exchange->close = true;
	answer_header(exchange, "Retry-After", "1");
	answer_problem(exchange, 429, "limit", "this token has %zu connections at once", tenant->n_connections);
	return false;
}

static bool rate_allows(struct exchange *exchange)
{
	struct tenant *tenant = exchange->tenant;
	char seconds[32];
	double wait;

	if (!tenant || (exchange->route->flags & ROUTE_ASIDE))
		return true;
	wait = tenant_admit(tenant);
	if (!(wait > 0) && !(tenant->limits.requests && tenant->n_exchanges > tenant->limits.requests))
		return true;
	snprintf(seconds, sizeof(seconds), "%d", (int)ceil(fmax(wait, 1)));
	answer_header(exchange, "Retry-After", seconds);
	if (wait > 0)
		answer_problem(exchange, 429, "limit", "this token may make %g requests a second",
			       tenant->limits.rate);
	else
		answer_problem(exchange, 429, "limit", "this token may have %llu requests at once",
			       (unsigned long long)tenant->limits.requests);
	return false;
}

/* ---- what there is ---- */

/* The route of @door for the path, or if there is none, *methods: those that there are for it. */
static const struct route *route_in(const struct exchange *exchange, const struct door *door, char *methods,
				    size_t size)
{
	for (size_t i = 0; i < door->n_routes; i++) {
		const struct route *route = &door->routes[i];
		size_t used = strlen(methods);

		if (!target_matches(&exchange->target, route->path))
			continue;
		if (strcmp(route->method, exchange->method) == 0)
			return route;
		snprintf(methods + used, size - used, "%s%s", used ? ", " : "", route->method);
	}
	return NULL;
}

static bool no_route(struct exchange *exchange, const char *methods)
{
	if (!*methods) {
		answer_problem(exchange, 404, "not_found",
			       "there is nothing at this path; /openapi.json lists all paths");
		return false;
	}
	answer_header(exchange, "Allow", methods);
	if (strcmp(exchange->method, "OPTIONS") == 0) {
		page_preflight(exchange, methods);
		answer_empty(exchange, 204);
	} else {
		answer_problem(exchange, 405, "bad_method", "this path takes %s", methods);
	}
	return false;
}

static bool query_is_right(struct exchange *exchange)
{
	char why[SCHEMA_WHY_SIZE];

	if (!exchange->route->query || schema_check_query(exchange->route->query, exchange->target.query, why))
		return true;
	answer_problem(exchange, 400, "bad_request", "%s", why);
	return false;
}

bool route_find(struct exchange *exchange)
{
	char methods[256] = "";

	if (exchange->failed) {
		answer_problem(exchange, exchange->failed == -ENOMEM ? 503 : 400, "bad_request",
			       "the path or the query is not as it should be");
		return false;
	}
	for (const struct door *const *doors = exchange->server->options->doors; *doors && !exchange->route;
	     doors++) {
		const struct door *door = *doors;

		if (door->claims && !door->claims(exchange))
			continue;
		exchange->door = door;
		exchange->route = route_in(exchange, door, methods, sizeof(methods));
		if (door->claims || *methods || exchange->route)
			break;
	}
	if (!page_may(exchange))
		return false;
	if (!exchange->route)
		return no_route(exchange, methods);
	return asker_find(exchange) && rate_allows(exchange) && query_is_right(exchange);
}
