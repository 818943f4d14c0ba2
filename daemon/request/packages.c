/* The store of packages: what there is, what it costs and who has it, and to remove what nobody has. Whoever runs
 * laird sees all of it, and others what their own sessions have. */
#include "request.h"

#include "packages/builds.h"
#include "vault/errand.h"
#include "warden/cages.h"
#include "warden/prepared.h"

#include <stdlib.h>

/* As many as one answer has. */
#define SETS_MAX 500
#define NAMES_MAX 32

/* A session has that set, now or in one of its states. */
struct holding {
	char set[SHA256_HEX_SIZE];
	const struct session *session;
};

struct listing {
	const struct sessions *sessions;
	const struct package_store *store;
	uid_t asker;
	bool all, prune; /* all: not only what the asker's sessions have */
	struct holding *holdings;
	size_t n_holdings, room;
	struct wire_list sets;
	size_t more;
	int error;
};

/* ---- who has which ---- */

static void hold(struct listing *listing, const struct session *session, const struct interpreter *interpreter)
{
	struct holding holding = {.session = session}, *all = listing->holdings;

	if (interpreter)
		interpreter_set(holding.set, interpreter);
	if (!holding.set[0])
		return;
	if (listing->n_holdings == listing->room) {
		all = reallocarray(all, 2 * listing->room + 16, sizeof(*all));
		if (!all) {
			listing->error = -ENOMEM;
			return;
		}
		listing->holdings = all;
		listing->room = 2 * listing->room + 16;
	}
	all[listing->n_holdings++] = holding;
}

/* Those of one set come together, and those of one session among them. */
static int compare(const void *a, const void *b)
{
	const struct holding *one = a, *other = b;
	int r = strcmp(one->set, other->set);

	if (!r)
		r = (one->session->opened > other->session->opened) -
		    (one->session->opened < other->session->opened);
	return r ? r : (one->session > other->session) - (one->session < other->session);
}

static void holdings_gather(struct listing *listing)
{
	const struct session *session = NULL;
	struct checkpoint *checkpoint;

	while ((session = sessions_next(listing->sessions, listing->asker, session))) {
		hold(listing, session, session->live);
		list_for_each (checkpoint, (struct list *)&session->history.checkpoints, node)
			hold(listing, session, checkpoint->interpreter);
	}
	if (listing->n_holdings > 0)
		qsort(listing->holdings, listing->n_holdings, sizeof(*listing->holdings), compare);
}

/* The first of those of @set; there may be none. */
static const struct holding *first_of(const struct listing *listing, const char *set)
{
	size_t from = 0, to = listing->n_holdings;

	while (from < to) {
		size_t middle = (from + to) / 2;

		if (strcmp(listing->holdings[middle].set, set) < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return listing->holdings + from;
}

/* The names of the sessions that have it. */
static void names_put(struct wire_list *names, const struct listing *listing, const char *set)
{
	const struct holding *end = listing->holdings + listing->n_holdings, *first = first_of(listing, set);
	const struct session *last = NULL;
	char name[SESSION_NAME_SIZE];

	for (const struct holding *it = first; it < end && names->n < NAMES_MAX && strcmp(it->set, set) == 0;
	     it++) {
		if (!it->session->id[0] || it->session == last)
			continue;
		last = it->session;
		session_name_write(name, last->id, last->owner, listing->asker);
		(void)wire_list_add_string(names, bytes_of(name));
	}
}

static bool is_held(const struct listing *listing, const char *set)
{
	const struct holding *first = first_of(listing, set);

	return first < listing->holdings + listing->n_holdings && strcmp(first->set, set) == 0;
}

/* ---- the list ---- */

static int put(struct listing *listing, const struct package_record *record, uint64_t template)
{
	struct package_set set = {
		.set = bytes_of(record->set),
		.size = record->size,
		.made = record->made,
		.used = record->used,
		.projects = record->projects,
		.template = template,
	};
	_cleanup_(wire_list_deinit) struct wire_list names = {0};

	names_put(&names, listing, record->set);
	set.sessions = wire_list_bytes(&names);
	return names.r ? names.r : wire_list_add(&listing->sets, &package_set_schema, &set);
}

static bool add(void *userdata, const struct package_record *record)
{
	struct listing *listing = userdata;
	uint64_t template = prepared_size(listing->sessions->cages, record->set, listing->all ? 0 : listing->asker);

	errand_beat();
	if (!listing->all && !template && !is_held(listing, record->set))
		return true;
	if (listing->prune && (record->used || package_store_remove(listing->store, record->set)))
		return true;
	listing->more += listing->sets.n == SETS_MAX;
	if (listing->sets.n == SETS_MAX)
		return true;
	listing->error = put(listing, record, template);
	return !listing->error;
}

static void listing_send(struct sessions *sessions, const struct address *from, struct listing *listing)
{
	struct packages_reply reply = {
		.id = from->id, .path = bytes_of(listing->store->path), .more = listing->more};

	if (listing->all) {
		reply.taken = package_store_size(listing->store, &reply.cache);
		reply.total = sessions->builds->config->packages_total;
	}
	reply.sets = wire_list_bytes(&listing->sets);
	client_reply(sessions->clients, from, listing->error, &packages_reply_schema, &reply);
}

void handle_packages(struct sessions *sessions, const struct address *from, const struct request *request)
{
	struct listing listing = {
		.sessions = sessions,
		.store = &sessions->builds->store,
		.asker = from->uid,
		.all = from->uid == 0 || from->uid == geteuid(),
		.prune = request->packages.prune,
	};

	if (listing.prune && !is_operator(sessions, from, "remove packages"))
		return;
	if (listing.store->fd < 0) {
		client_limit(sessions->clients, from, "gone", NULL, "packages",
			     "no profile allows packages: packages = on or ask does");
		return;
	}
	holdings_gather(&listing);
	if (!listing.error)
		package_store_each(listing.store, add, &listing);
	if (listing.prune) {
		package_store_forget(listing.store);
		builds_drop_cache(sessions->builds);
	}
	listing_send(sessions, from, &listing);
	wire_list_deinit(&listing.sets);
	free(listing.holdings);
}
