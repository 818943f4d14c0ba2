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

static int enter(struct sessions *sessions, struct session *session)
{
	if (session->id[0] && session->state != SESSION_CLOSING && !tsearch(session, &sessions->table, compare))
		return -ENOMEM;
	return 0;
}

int sessions_admit(struct sessions *sessions, struct session *session)
{
	admit(sessions, session);
	sessions->stats.opened++;
	return enter(sessions, session);
}

int sessions_readmit(struct sessions *sessions, struct session *session)
{
	admit(sessions, session);
	return enter(sessions, session);
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
