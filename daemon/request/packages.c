/* The store of packages, for whoever runs laird: what there is, and to remove what nobody uses. */
#include "request.h"

#include "packages/builds.h"
#include "vault/errand.h"

/* As many as one answer has. */
#define SETS_MAX 500

struct listing {
	const struct package_store *store;
	msgpack_sbuffer records;
	size_t n, more;
	bool prune;
	int error;
};

static bool add(void *userdata, const struct package_record *record)
{
	struct listing *listing = userdata;
	const struct package_set set = {
		.set = bytes_of(record->set),
		.size = record->size,
		.made = record->made,
		.used = record->used,
		.projects = wire_bytes(&record->projects),
	};

	errand_beat();
	if (listing->prune && (record->used || package_store_remove(listing->store, record->set)))
		return true;
	listing->more += listing->n == SETS_MAX;
	if (listing->n == SETS_MAX)
		return true;
	listing->error = wire_encode_body(&listing->records, &package_set_schema, &set);
	listing->n += !listing->error;
	return !listing->error;
}

static void listing_send(struct sessions *sessions, const struct address *from, const struct listing *listing)
{
	struct packages_reply reply = {
		.id = from->id, .path = bytes_of(listing->store->path), .more = listing->more};
	msgpack_sbuffer array;
	int r = listing->error;

	msgpack_sbuffer_init(&array);
	if (!r)
		r = wire_put_array(&array, listing->n);
	if (!r && listing->n > 0)
		r = msgpack_sbuffer_write(&array, listing->records.data, listing->records.size);
	reply.sets = wire_bytes(&array);
	if (r)
		client_error(sessions->clients, from, "internal", "out of memory");
	else
		client_send(sessions->clients, from, &packages_reply_schema, &reply);
	msgpack_sbuffer_destroy(&array);
}

void handle_packages(struct sessions *sessions, const struct address *from, const struct request *request)
{
	struct listing listing = {.store = &sessions->builds->store, .prune = request->packages.prune};

	if (!is_operator(sessions, from, "see which packages there are"))
		return;
	if (listing.store->fd < 0) {
		client_error(sessions->clients, from, "gone",
			     "no profile allows packages: packages = on or ask does");
		return;
	}
	msgpack_sbuffer_init(&listing.records);
	package_store_each(listing.store, add, &listing);
	if (listing.prune)
		package_store_forget(listing.store);
	listing_send(sessions, from, &listing);
	msgpack_sbuffer_destroy(&listing.records);
}
