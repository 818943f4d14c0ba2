/* Saved states, as files that somebody wants to look at. */
#include "request.h"

/* As many records as one answer has; of the names of all of them, one answer could not take all. */
#define SAVES_MAX 1000

struct listing {
	struct bytes id; /* of the one that is asked for; absent: all, without names */
	uid_t asker;
	struct wire_list saves;
	size_t more;
};

static bool add(void *userdata, const struct saved_listed *listed)
{
	const struct saved_state *state = listed->state;
	struct listing *listing = userdata;
	char id[SESSION_ID_MAX + 1] = "", name[SESSION_NAME_SIZE] = "";
	struct save_record record = {.uid = listed->owner,
				     .expires = listed->expires,
				     .before = listed->before,
				     .damaged = listed->damaged};

	if (listing->id.data && (!state || !bytes_equal(state->session, listing->id)))
		return true;
	if (state && state->session.size > SESSION_ID_MAX)
		return true;
	listing->more += listing->saves.n == SAVES_MAX;
	if (listing->saves.n == SAVES_MAX)
		return true;
	record.session = bytes_of(name);
	if (state) {
		record.created = state->created;
		record.size = state->size;
		record.count = wire_count(state->names);
		bytes_copy(id, sizeof(id), state->session);
		(void)session_name_write(name, id, listed->owner, listing->asker);
		record.session = bytes_of(name);
	}
	if (state && listing->id.data) {
		record.names = state->names;
		record.not_saved = state->refused;
	}
	return !wire_list_add(&listing->saves, &save_record_schema, &record);
}

static void nothing_saved(struct sessions *sessions, const struct address *from, struct bytes text)
{
	client_error(sessions->clients, from, "gone", "no state of session \"%.*s\" is saved", (int)text.size,
		     text.data);
}

/* It may be there, and damaged so that it does not say whose it is. */
static void nothing_listed(struct sessions *sessions, const struct address *from, const struct request *request)
{
	struct saved *saved;

	if (saved_find(&saved, sessions->saved, request->name.owner, request->name.id)) {
		nothing_saved(sessions, from, request->named);
		return;
	}
	client_error(sessions->clients, from, "gone", "session \"%.*s\": %s", (int)request->named.size,
		     request->named.data, saved->damage[0] ? saved->damage : "its saved state was just written");
	saved_free(saved);
}

void handle_saves(struct sessions *sessions, const struct address *from, const struct request *request)
{
	struct bytes text = request->named;
	struct listing listing = {.asker = from->uid};
	struct saves_reply reply = {.id = from->id};
	/* (uid_t)-1: of every user. */
	uid_t owner = from->uid == 0 && !text.data ? (uid_t)-1 : request->name.owner;

	listing.id = request->name.id;
	saved_each(sessions->saved, owner, add, &listing);
	reply.saves = wire_list_bytes(&listing.saves);
	reply.more = listing.more;
	if (text.data && listing.saves.n == 0 && !listing.saves.r)
		nothing_listed(sessions, from, request);
	else
		client_reply(sessions->clients, from, listing.saves.r, &saves_reply_schema, &reply);
	wire_list_deinit(&listing.saves);
}

void handle_unsave(struct sessions *sessions, const struct address *from, const struct request *request)
{
	struct empty_reply reply = {.id = request->id};

	if (saved_remove(sessions->saved, request->name.owner, request->name.id, true))
		client_send(sessions->clients, from, &empty_reply_schema, &reply);
	else
		nothing_saved(sessions, from, request->named);
}
