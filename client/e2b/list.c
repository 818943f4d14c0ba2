/* The list of sandboxes that fit a query, a page at a time. */
#include "e2b.h"

#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LIST_MAX 100

static int nibble(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* Percents and pluses, in place. */
static void unquote(char *text)
{
	char *to = text;

	for (const char *at = text; *at; at++) {
		if (*at == '%' && nibble(at[1]) >= 0 && nibble(at[2]) >= 0) {
			*to++ = (char)(nibble(at[1]) << 4 | nibble(at[2]));
			at += 2;
		} else {
			*to++ = (char)(*at == '+' ? ' ' : *at);
		}
	}
	*to = '\0';
}

/* Whether it has all the pairs of a text as a query has them, each quoted twice. */
static bool has_metadata(const struct sandbox *sandbox, const char *wanted)
{
	_cleanup_(freep) char *pairs = strdup(wanted);
	char *state = NULL;

	for (char *pair = pairs ? strtok_r(pairs, "&", &state) : NULL; pair; pair = strtok_r(NULL, "&", &state)) {
		char *value = strchr(pair, '=');
		const char *found;

		if (value)
			*value++ = '\0';
		for (unsigned i = 0; i < 2; i++) {
			unquote(pair);
			if (value)
				unquote(value);
		}
		found = json_string_value(json_object_get(sandbox->metadata, pair));
		if (!found || strcmp(found, value ? value : "") != 0)
			return false;
	}
	return pairs != NULL;
}

/* Seconds since the epoch; negative if the text is no date. */
static double date_of(const char *text)
{
	int hours = 0, minutes = 0, at = 0;
	double seconds = 0, when;
	struct tm tm = {0};
	char sign = 'Z';

	if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%lf%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min,
		   &seconds, &at) != 6 ||
	    !(seconds >= 0 && seconds < 61))
		return -1;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	when = (double)timegm(&tm) + seconds;
	if (sscanf(text + at, "%c%2d:%2d", &sign, &hours, &minutes) == 3 &&
	    (sign == '+' || sign == ' ' || sign == '-'))
		when -= (sign == '-' ? -60.0 : 60.0) * (60 * hours + minutes);
	return when;
}

/* As exact as its time of beginning in the list. */
static bool is_late(const struct sandbox *sandbox, const char *after)
{
	return floor(sandbox->started * 1000) >= floor(date_of(after) * 1000 + 0.5);
}

static bool is_wanted(const struct exchange *exchange, const struct sandbox *sandbox)
{
	const char *metadata = exchange_query(exchange, "metadata"), *state = exchange_query(exchange, "state");
	const char *template = exchange_query(exchange, "template"),
		   *after = exchange_query(exchange, "startedAfter");

	return sandbox->tenant == exchange->tenant && (!metadata || has_metadata(sandbox, metadata)) &&
	       (!state || strstr(state, sandbox->paused ? "paused" : "running")) &&
	       (!template || strcmp(template, sandbox->template) == 0) && (!after || is_late(sandbox, after));
}

static bool is_alive(struct lair_items sessions, const struct sandbox *sandbox)
{
	struct lair_session found;
	size_t cursor = 0;

	while (lair_next_session(sessions, &cursor, &found))
		if (text_is(found.session, sandbox->session))
			return true;
	return sandbox->paused;
}

static void list_done(struct exchange *exchange)
{
	const char *order = exchange_query(exchange, "order");
	size_t limit = exchange_query_number(exchange, "limit"),
	       from = exchange_query_number(exchange, "nextToken"), n = 0;
	json_t *found = json_array(), *page = json_array();
	char next[32];

	for (struct sandbox *sandbox = e2b_of(exchange->server)->sandboxes, *following; sandbox;
	     sandbox = following) {
		following = sandbox->next;
		if (sandbox->tenant == exchange->tenant && !is_alive(lair_sessions(exchange->call), sandbox))
			sandbox_drop(exchange->server, sandbox);
		else if (is_wanted(exchange, sandbox) && order && strcmp(order, "asc") == 0)
			json_array_insert_new(found, 0, sandbox_info(sandbox));
		else if (is_wanted(exchange, sandbox))
			json_array_append_new(found, sandbox_info(sandbox));
	}
	limit = limit > 0 && limit < LIST_MAX ? limit : LIST_MAX;
	for (n = from; n < json_array_size(found) && n < from + limit; n++)
		json_array_append(page, json_array_get(found, n));
	if (n < json_array_size(found)) {
		snprintf(next, sizeof(next), "%zu", n);
		answer_header(exchange, "X-Next-Token", next);
	}
	json_decref(found);
	answer_json(exchange, 200, page);
}

void list_begin(struct exchange *exchange)
{
	struct lair *lair = exchange_lair(exchange);

	if (lair)
		exchange_wait(exchange, lair_list(lair, &exchange->call), list_done);
}
