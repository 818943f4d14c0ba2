/* The table of sessions. */
#include "sessions.h"

#include "base/descriptors.h"
#include "base/log.h"

#include <inttypes.h>
#include <search.h>
#include <stdio.h>

static int compare(const void *a, const void *b)
{
	const struct session *left = a, *right = b;

	if (left->owner != right->owner)
		return left->owner < right->owner ? -1 : 1;
	return strcmp(left->id, right->id);
}

struct session *sessions_find(struct sessions *sessions, const struct session_name *name)
{
	struct session key = {.owner = name->owner}, **found;

	if (name->id.size == 0 || name->id.size > SESSION_ID_MAX)
		return NULL;
	memcpy(key.id, name->id.data, name->id.size);
	found = tfind(&key, &sessions->table, compare);
	return found ? *found : NULL;
}

struct session *sessions_next(const struct sessions *sessions, uid_t uid, const struct session *session)
{
	const struct list *next = session ? session->node.next : sessions->all.next;
	const struct user *user = session ? session->user : user_find(sessions->users, uid);

	if (uid == 0)
		return next == &sessions->all ? NULL : container_of((struct list *)next, struct session, node);
	if (!user)
		return NULL;
	next = session ? session->mate.next : user->sessions.next;
	return next == &user->sessions ? NULL : container_of((struct list *)next, struct session, mate);
}

static void admit(struct sessions *sessions, struct session *session)
{
	list_append(&sessions->all, &session->node);
	list_append(&session->user->sessions, &session->mate);
	sessions->n++;
	session->user->n_sessions++;
}

struct session *sessions_first_open(struct sessions *sessions)
{
	struct session *session;

	list_for_each (session, &sessions->all, node)
		if (session->state != SESSION_CLOSING)
			return session;
	return NULL;
}

/* laird's own user may have all sessions, unless there is a number. Any other user may have only such a part
 * that the rest always find room. */
#define OTHERS_PART 4

static uint64_t sessions_allowed(const struct config *config, uid_t owner)
{
	if (config->sessions_per_uid)
		return config->sessions_per_uid;
	return owner == geteuid() ? config->sessions : MAX(config->sessions / OTHERS_PART, (uint64_t)1);
}

static void refuse_for_owner(struct sessions *sessions, const struct address *from, uint64_t own)
{
	const struct config *config = sessions->config;

	if (config->sessions_per_uid)
		client_limit(sessions->clients, from, "limit", NULL, "sessions_per_uid",
			     "you have %" PRIu64 " sessions already, as many as sessions_per_uid = %" PRIu64
			     " allows; end one first",
			     own, config->sessions_per_uid);
	else
		client_limit(sessions->clients, from, "limit", NULL, "sessions_per_uid",
			     "you have %" PRIu64
			     " sessions already, as many as sessions_per_uid = off, a quarter of "
			     "sessions = %" PRIu64 ", allows; end one first",
			     own, config->sessions);
}

bool sessions_room(struct sessions *sessions, const struct address *from, uid_t owner)
{
	const struct user *user = user_find(sessions->users, owner);
	uint64_t n = sessions->n, own = user ? user->n_sessions : 0;
	char why[DESCRIPTORS_TEXT_SIZE];

	if (n >= sessions->config->sessions)
		client_limit(sessions->clients, from, "limit", NULL, "sessions",
			     "there are %" PRIu64 " sessions already, as many as sessions = %" PRIu64
			     " allows; end one first",
			     n, sessions->config->sessions);
	else if (own >= sessions_allowed(sessions->config, owner))
		refuse_for_owner(sessions, from, own);
	else if (!descriptors_left(DESCRIPTORS_SESSION))
		client_error(sessions->clients, from, "limit", "%s", descriptors_explain(why));
	else
		return true;
	return false;
}

int sessions_open(struct session **sessionp, struct sessions *sessions, struct profile *profile, struct bytes id,
		  uid_t owner, const struct beginning *with)
{
	char key[SESSION_ID_MAX + 1];
	struct session *session;
	int r;

	snprintf(key, sizeof(key), "%.*s", (int)id.size, id.size ? id.data : "");
	r = session_new(&session, sessions, profile, key, owner, with);
	if (r)
		return r;
	admit(sessions, session);
	sessions->stats.opened++;
	if (session->id[0] && !tsearch(session, &sessions->table, compare)) {
		session_end(session, "internal");
		return -ENOMEM;
	}
	if (session->id[0])
		session->untold = past_begin(&sessions->past, owner, session->id, session->birth);
	log_info(session->name, "%s for uid %u, profile %s, workspace %s", session->id[0] ? "opened" : "one-shot",
		 owner, profile->name, session->warden->workspace);
	audit_log_opened(session);
	/* Not before it can be found, and forgotten: it may end of this. */
	if (session->warden->state == WARDEN_READY)
		session_on_ready(session);
	if (session->state == SESSION_CLOSING)
		return -ENOBUFS;
	*sessionp = session;
	return 0;
}

int sessions_readmit(struct sessions *sessions, struct session *session)
{
	admit(sessions, session);
	if (session->id[0] && session->state != SESSION_CLOSING && !tsearch(session, &sessions->table, compare))
		return -ENOMEM;
	return 0;
}

/* While the state was being saved, other sessions may have been made, and one may have taken the id. If there is no
 * room for the branch, @operation is refused. */
static bool branch_fits(struct sessions *sessions, struct session *parent, struct operation *operation)
{
	struct session_name name = {.owner = parent->owner, .id = bytes_of(operation->branch)};

	if (!sessions_room(sessions, &operation->request, parent->owner))
		operation_free(operation);
	else if (sessions_find(sessions, &name))
		operation_refuse(parent, operation, "the branch could not be made");
	else
		return true;
	return false;
}

static void admit_branch(struct sessions *sessions, struct session *session, const struct session *parent,
			 uint64_t cell)
{
	admit(sessions, session);
	sessions->stats.opened++;
	if (session->state == SESSION_CLOSING)
		return;
	if (!tsearch(session, &sessions->table, compare)) {
		session_end(session, "internal");
		return;
	}
	(void)past_begin(&sessions->past, session->owner, session->id, session->birth);
	log_info(session->name, "branched from session %s after cell %llu", parent->name, (unsigned long long)cell);
	audit_log_opened(session);
}

void sessions_branch(struct sessions *sessions, struct session *parent, struct checkpoint *from,
		     struct operation *operation)
{
	uint64_t cell = from->cell;
	struct session *session;

	if (!branch_fits(sessions, parent, operation))
		return;
	if (session_new_branch(&session, parent, from, operation))
		operation_refuse(parent, operation, "the branch could not be made");
	else
		admit_branch(sessions, session, parent, cell);
}

void sessions_split(struct sessions *sessions, struct session *parent, struct operation *operation)
{
	struct interpreter *copy = parent->split.copy;
	struct session *session;

	if (!branch_fits(sessions, parent, operation)) {
		warden_discard(parent->warden, copy);
	} else if (session_new_split(&session, parent, copy, operation)) {
		operation_refuse(parent, operation, "the branch could not be made");
		warden_discard(parent->warden, copy);
	} else {
		admit_branch(sessions, session, parent, parent->at);
	}
}

void sessions_on_ended(struct sessions *sessions, struct session *session)
{
	struct session_name name = {.owner = session->owner, .id = bytes_of(session->id)};

	if (session->id[0] && sessions_find(sessions, &name) == session)
		tdelete(session, &sessions->table, compare);
}

/* ---- the dead ---- */

static void session_free_dead(struct grave *grave)
{
	session_free(container_of(grave, struct session, grave));
}

void sessions_init(struct sessions *sessions)
{
	sessions->audit_log = AUDIT_LOG_NONE;
	past_init(&sessions->past, sessions->loop);
	stop_init(&sessions->stop);
	watches_init(&sessions->watches);
	list_init(&sessions->all);
	graveyard_init(&sessions->dead, session_free_dead);
}

void sessions_bury(struct sessions *sessions, struct session *session)
{
	if (!graveyard_bury(&sessions->dead, &session->grave))
		return;
	sessions->stats.ended++;
	list_remove(&session->node);
	list_remove(&session->mate);
	sessions->n--;
	session->user->n_sessions--;
	list_remove(&session->tenant.node);
	warden_touch(session->warden);
}

void sessions_bury_all(struct sessions *sessions)
{
	struct session *session;

	list_for_each (session, &sessions->all, node)
		(void)graveyard_bury(&sessions->dead, &session->grave);
}

/* ---- the past ---- */

static bool lives(void *userdata, const struct session_name *name, uint64_t birth)
{
	const struct session *session = sessions_find(userdata, name);

	return session && session->birth == birth;
}

void sessions_settle_past(struct sessions *sessions)
{
	past_settle(&sessions->past, lives, sessions);
}

int session_put_ended(const struct session *session, msgpack_sbuffer *buffer)
{
	const struct session_name name = {.owner = session->owner, .id = bytes_of(session->id)};

	return session->untold ? past_put(buffer, past_find(&session->sessions->past, &name)) : 0;
}
