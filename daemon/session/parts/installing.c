/* What a cell asks for is checked here: its grammar, the profile's lists, and whether its client wants it. What is
 * known of a waiting call is in the call, so the next router has it, too. */
#include "installing.h"

#include "calls.h"
#include "config/policy.h"
#include "config/requirement.h"
#include "packages/builds.h"
#include "packages/declared.h"
#include "rows.h"
#include "session/core/audit_log.h"
#include "session/core/sessions.h"
#include "warden/prepared.h"

#include <stdio.h>

#define REASON_SIZE 4096

struct wanted {
	struct package_order order;
	char *items[REQUIREMENTS_MAX];
	char key[SHA256_HEX_SIZE];
	char why[REPEAT_TEXT_SIZE]; /* what is wrong with it */
};

static void wanted_deinit(struct wanted *wanted)
{
	for (size_t i = 0; i < wanted->order.n; i++)
		free(wanted->items[i]);
}

/* ---- what is asked for ---- */

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort(struct wanted *wanted)
{
	size_t n = 0;

	qsort(wanted->items, wanted->order.n, sizeof(*wanted->items), compare);
	for (size_t i = 0; i < wanted->order.n; i++) {
		if (n > 0 && strcmp(wanted->items[n - 1], wanted->items[i]) == 0)
			free(wanted->items[i]);
		else
			wanted->items[n++] = wanted->items[i];
	}
	wanted->order.n = n;
}

static bool take(struct wanted *wanted, const struct profile *profile, struct bytes item)
{
	char text[REQUIREMENT_SIZE];
	size_t name;

	if (requirement_normalize(text, &name, item))
		snprintf(wanted->why, sizeof(wanted->why),
			 "%.*s: packages are asked for by name and version, as polars or duckdb==1.*; not by "
			 "address, "
			 "path or option",
			 (int)MIN(item.size, (size_t)200), item.data);
	else if (!profile_lets_install(profile, (struct bytes){text, name}))
		snprintf(wanted->why, sizeof(wanted->why), "%.*s: the operator does not allow it", (int)name, text);
	else if (wanted->order.n == REQUIREMENTS_MAX)
		snprintf(wanted->why, sizeof(wanted->why), "more than %d packages at once: ask for fewer",
			 REQUIREMENTS_MAX);
	else if (!(wanted->items[wanted->order.n] = strdup(text)))
		snprintf(wanted->why, sizeof(wanted->why), "out of memory");
	else
		return ++wanted->order.n;
	return false;
}

/* Whether it can be asked for at all; else wanted->why. */
static bool wanted_read(struct wanted *wanted, const struct session *session, struct bytes arguments)
{
	struct cages *cages = session->sessions->cages;
	struct install_arguments install;
	struct wire_fault fault;
	size_t cursor = 0;
	struct bytes item;

	*wanted = (struct wanted){.order.profile = session->profile};
	wanted->order.requirements = wanted->items;
	if (wire_decode_known(&install, &install_arguments_schema, arguments, &fault)) {
		snprintf(wanted->why, sizeof(wanted->why), "no list of requirements");
		return false;
	}
	while (wire_next_string(install.requirements, &cursor, &item))
		if (!take(wanted, session->profile, item))
			return false;
	if (install.base.size > 0 && !package_store_has(&session->sessions->builds->store, install.base)) {
		snprintf(wanted->why, sizeof(wanted->why),
			 "the packages that it has already are not there any more");
		return false;
	}
	wanted->order.base = install.base;
	wanted->order.uid = cages_builder_uid(cages);
	wanted->order.owner = session->owner;
	sort(wanted);
	package_order_key(wanted->key, &wanted->order);
	return true;
}

static bool take_all(struct wanted *wanted, const struct profile *profile, const struct beginning *with)
{
	size_t cursor = 0;
	struct bytes item;

	for (size_t i = 0; i < profile->requirements.n; i++)
		if (!take(wanted, profile, bytes_of(profile->requirements.items[i])))
			return false;
	while (wire_next_string(with->packages, &cursor, &item))
		if (!take(wanted, profile, item))
			return false;
	cursor = 0;
	while (declared_next(with->code, &cursor, &item))
		if (!take(wanted, profile, item))
			return false;
	return wanted->order.n > 0;
}

bool session_first_set(char set[static SHA256_HEX_SIZE], struct sessions *sessions, const struct profile *profile,
		       const struct beginning *with)
{
	struct wanted wanted = {.order.profile = profile};
	bool is;

	if (profile->packages == PACKAGES_OFF)
		return false;
	wanted.order.requirements = wanted.items;
	is = take_all(&wanted, profile, with);
	if (is) {
		sort(&wanted);
		package_order_key(wanted.key, &wanted.order);
		is = package_store_find(set, &sessions->builds->store, wanted.key);
	}
	wanted_deinit(&wanted);
	return is;
}

/* ---- who wants it ---- */

static bool names(struct bytes list, const char *requirement)
{
	char text[REQUIREMENT_SIZE];
	struct bytes item;
	size_t cursor = 0, name;

	while (wire_next_string(list, &cursor, &item))
		if (!requirement_normalize(text, &name, item) && strcmp(text, requirement) == 0)
			return true;
	return false;
}

static bool among(const struct string_list *list, const char *requirement)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->items[i], requirement) == 0)
			return true;
	return false;
}

/* The client of the cell, or the operator, wants all of them. */
static bool is_wanted(const struct session *session, const struct wanted *wanted)
{
	for (size_t i = 0; i < wanted->order.n; i++)
		if (!names(session->cell->options.packages, wanted->items[i]) &&
		    !among(&session->profile->requirements, wanted->items[i]))
			return false;
	return true;
}

/* ---- answers ---- */

static void answer(struct session *session, struct call *call, const struct returned_message *returned)
{
	session_return_call(session, call, returned, NULL);
}

static void answer_error(struct session *session, struct call *call, const char *error, const char *text)
{
	answer(session, call, &(struct returned_message){.error = bytes_of(error), .text = bytes_of(text)});
}

/* A session that has nothing yet begins with that set. */
static void begun_with(const struct session *session, const struct call *call, const char *set, const char *path)
{
	struct install_arguments install;
	struct wire_fault fault;

	if (!wire_decode_known(&install, &install_arguments_schema, call->arguments, &fault) &&
	    install.base.size == 0)
		prepared_asked(session->warden->nursery, set, path, install.requirements);
}

static void answer_set(struct session *session, struct call *call, const char *set)
{
	const struct package_store *store = &session->sessions->builds->store;
	char path[PATH_MAX + SHA256_HEX_SIZE + 8];
	struct installed installed = {.set = bytes_of(set)};
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer body = {0};

	snprintf(path, sizeof(path), "%s/sets/%s", store->path, set);
	installed.path = bytes_of(path);
	begun_with(session, call, set, path);
	if (wire_encode_body(&body, &installed_schema, &installed))
		answer_error(session, call, "PackageError", "out of memory");
	else
		answer(session, call, &(struct returned_message){.value = wire_bytes(&body)});
}

/* ---- the call ---- */

static void begin(struct session *session, struct call *call, const struct wanted *wanted)
{
	struct builds *builds = session->sessions->builds;
	char set[SHA256_HEX_SIZE];
	const char *why;

	if (package_store_find(set, &builds->store, wanted->key)) {
		answer_set(session, call, set);
		return;
	}
	if (call->state != CALL_HELD)
		session_hold_call(session, call, BYTES("it is being installed"), NULL);
	why = builds_begin(builds, &wanted->order, wanted->key);
	if (why)
		answer_error(session, call, "PackageError", why);
}

static void begin_call(struct session *session, struct call *call)
{
	struct wanted wanted;

	if (wanted_read(&wanted, session, call->arguments))
		begin(session, call, &wanted);
	else
		answer_error(session, call, "PackageError", wanted.why);
	wanted_deinit(&wanted);
}

/* Nobody needs to be asked for what is there already: nothing of it goes anywhere. */
static bool needs_approval(const struct session *session, const struct wanted *wanted)
{
	char set[SHA256_HEX_SIZE];

	return session->profile->packages == PACKAGES_ASK && !is_wanted(session, wanted) &&
	       !package_store_find(set, &session->sessions->builds->store, wanted->key);
}

static const char ask_why[] = "the operator wants a client to approve of each package";
static const char ask_outside[] =
	"packages are not for code to install here: whoever runs the cell can, with lair install, packages= or the "
	"tool for it";

static void ask(struct session *session, struct call *call)
{
	if (!promise_has(session->cell->reply.promise, ASKING_CALLS)) {
		answer_error(session, call, "PermissionError", ask_outside);
		return;
	}
	call_turn(&session->cell->calls, call, CALL_ASKS, bytes_of(ask_why));
	promise_call(session->cell->reply.promise, call);
	session_heed_calls(session);
}

void session_install(struct session *session, const struct call_message *message)
{
	struct wanted wanted;
	struct call *call;

	if (session->profile->packages == PACKAGES_OFF)
		session_refuse_call(session, message, "PermissionError",
				    "the profile of this session allows no packages (packages-not-granted)");
	else if (!wanted_read(&wanted, session, message->arguments)) {
		session_refuse_call(session, message, "PackageError", wanted.why);
		wanted_deinit(&wanted);
	} else {
		if (calls_add(&call, &session->cell->calls, message))
			session_refuse_call(session, message, "PackageError",
					    "the session's user holds too much already");
		else if (needs_approval(session, &wanted))
			ask(session, call);
		else
			begin(session, call, &wanted);
		wanted_deinit(&wanted);
	}
}

void session_install_approved(struct session *session, struct call *call)
{
	begin_call(session, call);
}

static bool is_waiting(const struct call *call)
{
	return call_is_install(call) && call->state != CALL_ASKS;
}

static struct call *first_waiting(const struct session *session, const char *key)
{
	struct call *call;

	if (!session->cell || !session_busy(session))
		return NULL;
	list_for_each (call, &session->cell->calls.list, node) {
		struct wanted wanted;
		bool is;

		if (!is_waiting(call))
			continue;
		is = wanted_read(&wanted, session, call->arguments) && (!key || strcmp(wanted.key, key) == 0);
		wanted_deinit(&wanted);
		if (is)
			return call;
	}
	return NULL;
}

static const char *doing(const struct session *session)
{
	struct call *call = first_waiting(session, NULL);
	struct wanted wanted;
	const char *told;

	if (!call)
		return NULL;
	told = wanted_read(&wanted, session, call->arguments) ? builds_told(session->sessions->builds, wanted.key)
							      : NULL;
	wanted_deinit(&wanted);
	return told;
}

/* A former router's cell asks still. */
static void on_revived(struct session *session)
{
	struct call *call = first_waiting(session, NULL);

	if (call)
		begin_call(session, call);
}

/* An answer may end its session, and others with it. */
void sessions_installed(struct sessions *sessions, const char *key, const char *set, const char *reason)
{
	struct session *session;
	struct call *call;
	bool any;

	do {
		any = false;
		list_for_each (session, &sessions->all, node) {
			call = first_waiting(session, key);
			if (!call)
				continue;
			any = true;
			if (set)
				answer_set(session, call, set);
			else
				answer_error(session, call, "PackageError", reason);
			break;
		}
	} while (any);
}

void sessions_install_told(struct sessions *sessions, const char *key)
{
	struct session *session;

	list_for_each (session, &sessions->all, node)
		if (first_waiting(session, key))
			session_say_alive(session);
}

const struct part installing_part = {.name = "installing", .on_revived = on_revived, .doing = doing};
