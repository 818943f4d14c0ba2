/* How many sessions a tenant has. Each session has a seat, which is taken before laird is asked to open it:
 * requests that come at once cannot all see the last free one. laird's list shows which sessions have ended;
 * it is asked for when no seat is free. */
#include "exchange.h"

#include <stdio.h>
#include <stdlib.h>

/* So long a session counts that nobody waits for any more: laird may have been asked to open it. */
#define LEFT_SECONDS 5.0

struct seat {
	size_t holders;	       /* exchanges that may open it */
	double left;	       /* when the last of them went; what laird has listed before says nothing of it */
	struct lair_call *end; /* laird is to end it; NULL: nobody waits for that */
	struct tenant *tenant;
	bool ended;		     /* or ends: it does not count */
	bool part, listed, nameless; /* listed: laird has it, while its list is read */
	char *files;		     /* where its workspace is, NULL: not known */
	char session[];		     /* as laird names it */
};

/* tenant->seats: from names to these. */
static struct seat *seat_in(const json_t *value)
{
	return json_is_integer(value) ? (struct seat *)(uintptr_t)json_integer_value(value) : NULL;
}

static struct seat *seat_find(const struct tenant *tenant, const char *session)
{
	return seat_in(json_object_get(tenant->seats, session));
}

static struct seat *seat_new(struct tenant *tenant, const char *session, size_t size)
{
	struct seat *seat = calloc(1, sizeof(*seat) + size + 1);

	if (!seat)
		return NULL;
	memcpy(seat->session, session, size);
	seat->tenant = tenant;
	if (!json_object_set_new(tenant->seats, seat->session, json_integer((json_int_t)(uintptr_t)seat)))
		return seat;
	free(seat);
	return NULL;
}

static void seat_free(struct seat *seat)
{
	(void)json_object_del(seat->tenant->seats, seat->session);
	(void)lair_call_free(seat->end);
	free(seat->files);
	free(seat);
}

void seats_free(struct tenant *tenant)
{
	void *first;

	while ((first = json_object_iter(tenant->seats)))
		seat_free(seat_in(json_object_iter_value(first)));
	json_decref(tenant->seats);
}

static size_t seats_taken(const struct tenant *tenant)
{
	const char *name;
	json_t *value;
	size_t n = 0;

	json_object_foreach(tenant->seats, name, value)
	{
		n += !seat_in(value)->ended && !seat_in(value)->part;
	}
	return n;
}

/* It is forgotten, unless an exchange that holds it opens it anew. */
static bool seat_is_done(const struct seat *seat)
{
	return seat->ended && !seat->end && seat->holders == 0;
}

/* ---- what laird has ---- */

/* Whether it is a branch that belongs to a sandbox of E2B's: its name says which, and it has the files of that.
 * Both are in one cage, which has the limits, so they are one session. */
static bool is_part(const struct seat *seat)
{
	const char *end = strrchr(seat->session, '~');
	size_t size = end ? (size_t)(end - seat->session) : 0;
	const struct seat *other = end ? seat_in(json_object_getn(seat->tenant->seats, seat->session, size)) : NULL;

	return other && seat->files && other->files && strcmp(seat->files, other->files) == 0;
}

static void seats_list(struct tenant *tenant, const struct lair_call *call)
{
	struct lair_session session;
	size_t cursor = 0;

	while (lair_next_session(lair_sessions(call), &cursor, &session)) {
		struct lair_text name = session.session;
		struct seat *seat;

		if (!tenant_own(tenant, name).data)
			continue;
		seat = seat_in(json_object_getn(tenant->seats, name.data, name.size));
		seat = seat ? seat : seat_new(tenant, name.data, name.size);
		if (!seat)
			continue;
		seat->listed = true;
		if (!seat->files && session.workspace.size > 0)
			seat->files = strndup(session.workspace.data, session.workspace.size);
	}
}

static void listed(struct exchange *exchange)
{
	struct tenant *tenant = exchange->tenant;
	const char *name;
	json_t *value;

	seats_list(tenant, exchange->call);
	for (void *at = json_object_iter(tenant->seats), *next; at; at = next) {
		struct seat *seat = seat_in(json_object_iter_value(at));

		next = json_object_iter_next(tenant->seats, at);
		if (!seat->listed && seat->holders == 0 && !seat->end && seat->left < exchange->asked)
			seat_free(seat);
		else
			seat->listed = false;
	}
	json_object_foreach(tenant->seats, name, value)
	{
		struct seat *seat = seat_in(value);

		if (seat)
			seat->part = is_part(seat);
	}
	tenant->listed = exchange->counted = true;
	exchange->call = lair_call_free(exchange->call);
	exchange->again(exchange);
}

static bool list(struct exchange *exchange, handler *again)
{
	struct lair *lair = exchange_lair(exchange);

	exchange->again = again;
	exchange->asked = server_now();
	if (lair)
		exchange_wait(exchange, lair_list(lair, &exchange->call), listed);
	return false;
}

/* ---- who takes one ---- */

static struct seat **held(struct exchange *exchange, const struct seat *seat)
{
	for (size_t i = 0; i < ARRAY_SIZE(exchange->seats); i++)
		if (exchange->seats[i] == seat)
			return &exchange->seats[i];
	return NULL;
}

static bool hold(struct exchange *exchange, struct seat *seat)
{
	struct seat **at = seat && !held(exchange, seat) ? held(exchange, NULL) : NULL;

	if (at) {
		*at = seat;
		seat->holders++;
	}
	return seat;
}

bool session_admitted_again(struct exchange *exchange, const char *session, handler *again)
{
	struct tenant *tenant = exchange->tenant;
	struct seat *seat = seat_find(tenant, session);

	if (!tenant->limits.sessions)
		return true;
	if (!tenant->listed)
		return list(exchange, again);
	if (seat && !seat->ended)
		return hold(exchange, seat);
	if (seats_taken(tenant) < tenant->limits.sessions) {
		seat = seat ? seat : seat_new(tenant, session, strlen(session));
		if (!hold(exchange, seat)) {
			answer_error(exchange, -ENOMEM, "out of memory");
			return false;
		}
		seat->ended = false;
		return true;
	}
	if (!exchange->counted)
		return list(exchange, again);
	answer_header(exchange, "Retry-After", "5");
	answer_problem(exchange, 429, "limit", "this token may have %llu sessions at once; end one first",
		       (unsigned long long)tenant->limits.sessions);
	return false;
}

bool session_admitted(struct exchange *exchange, const char *session)
{
	return session_admitted_again(exchange, session, exchange->route->begin);
}

bool once_admitted(struct exchange *exchange)
{
	char name[64];
	struct seat *seat;

	snprintf(name, sizeof(name), "%p", (void *)exchange);
	if (!session_admitted(exchange, name))
		return false;
	seat = seat_find(exchange->tenant, name);
	if (seat)
		seat->nameless = true;
	return true;
}

void once_named(struct exchange *exchange, const char *session)
{
	for (size_t i = 0; i < ARRAY_SIZE(exchange->seats); i++) {
		struct seat *seat = exchange->seats[i];

		if (!seat || !seat->nameless)
			continue;
		seat_free(seat);
		exchange->seats[i] = NULL;
		(void)hold(exchange, seat_new(exchange->tenant, session, strlen(session)));
	}
}

void seats_leave(struct exchange *exchange, bool complete)
{
	for (size_t i = 0; i < ARRAY_SIZE(exchange->seats); i++) {
		struct seat *seat = exchange->seats[i];

		if (!seat)
			continue;
		seat->holders--;
		seat->left = server_now() + (complete ? 0 : LEFT_SECONDS);
		if (seat->nameless || seat_is_done(seat))
			seat_free(seat);
	}
}

/* ---- who leaves one ---- */

static void on_ended(struct lair_call *call, void *userdata)
{
	struct seat *seat = userdata;

	(void)call;
	seat->end = lair_call_free(seat->end);
	if (seat_is_done(seat))
		seat_free(seat);
}

static void on_forgotten(struct lair_call *call, void *userdata)
{
	(void)userdata;
	(void)lair_call_free(call);
}

void seat_end(struct tenant *tenant, const char *session)
{
	struct seat *seat = seat_find(tenant, session);
	struct lair_call *call = NULL;

	if (lair_shutdown(tenant->lair, &call, session))
		return;
	if (seat && !seat->end)
		seat->end = call;
	if (seat)
		seat->ended = true;
	lair_on_done(call, seat && seat->end == call ? on_ended : on_forgotten, seat);
}

void seat_gone(struct tenant *tenant, const char *session)
{
	struct seat *seat = seat_find(tenant, session);

	if (!seat)
		return;
	seat->ended = true;
	if (seat_is_done(seat))
		seat_free(seat);
}
