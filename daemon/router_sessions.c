/* What a router owns: sessions by their ids, nurseries, the uids that sessions run as. What has died is freed only
 * between two rounds of the loop, so a handler may end anything. */
#include "router.h"

#include "audit_log.h"
#include "family.h"
#include "log.h"
#include "request.h"

#include <search.h>
#include <stdio.h>

/* ---- sessions ---- */

static int compare(const void *a, const void *b)
{
	const struct session *left = a, *right = b;

	if (left->owner != right->owner)
		return left->owner < right->owner ? -1 : 1;
	return strcmp(left->id, right->id);
}

struct session *router_find(struct router *router, const struct session_name *name)
{
	struct session key = {.owner = name->owner}, **found;

	if (name->id.size == 0 || name->id.size > SESSION_ID_MAX)
		return NULL;
	memcpy(key.id, name->id.data, name->id.size);
	found = tfind(&key, &router->table, compare);
	return found ? *found : NULL;
}

struct session *router_first_that_stays(struct router *router)
{
	struct session *session;

	list_for_each (session, &router->sessions, node)
		if (session->state != SESSION_CLOSING)
			return session;
	return NULL;
}

int router_open(struct session **sessionp, struct router *router, struct profile *profile, struct bytes id,
		uid_t owner)
{
	char key[SESSION_ID_MAX + 1];
	struct session *session;
	int r;

	snprintf(key, sizeof(key), "%.*s", (int)id.size, id.size ? id.data : "");
	r = session_new(&session, router, profile, key, owner);
	if (r)
		return r;
	list_append(&router->sessions, &session->node);
	router->stats.opened++;
	if (session->id[0] && !tsearch(session, &router->table, compare)) {
		session_end(session, "internal");
		return -ENOMEM;
	}
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

int router_readmit(struct router *router, struct session *session)
{
	list_append(&router->sessions, &session->node);
	if (session->id[0] && session->state != SESSION_CLOSING && !tsearch(session, &router->table, compare))
		return -ENOMEM;
	return 0;
}

void router_branch(struct router *router, struct session *parent, struct checkpoint *from,
		   struct operation *operation)
{
	struct session_name name = {.owner = parent->owner, .id = bytes_of(operation->branch)};
	struct session *session;

	/* While the state was being saved others may have been made, and somebody may have taken the id. */
	if (!session_room(router, &operation->request, parent->owner)) {
		operation_free(operation);
		return;
	}
	if (router_find(router, &name) || session_new_branch(&session, parent, from, operation)) {
		operation_refuse(parent, operation, "the branch could not be made");
		return;
	}
	list_append(&router->sessions, &session->node);
	router->stats.opened++;
	if (session->state == SESSION_CLOSING)
		return;
	if (!tsearch(session, &router->table, compare)) {
		session_end(session, "internal");
		return;
	}
	log_info(session->name, "branched from session %s after cell %llu", parent->name,
		 (unsigned long long)from->cell);
	audit_log_opened(session);
}

void router_on_session_ended(struct router *router, struct session *session)
{
	struct session_name name = {.owner = session->owner, .id = bytes_of(session->id)};

	if (session->id[0] && router_find(router, &name) == session)
		tdelete(session, &router->table, compare);
}

/* ---- what they are made of ---- */

/* As root each session runs as a uid of its own; one still in use is passed over. */
static bool uid_in_use(struct router *router, uid_t uid)
{
	struct list *heads[] = {&router->nurseries, &router->retired};
	struct nursery *nursery;
	struct warden *warden;

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		list_for_each (nursery, heads[i], node)
			list_for_each (warden, &nursery->wardens, node)
				if (warden->uid == uid)
					return true;
	return false;
}

int router_take_uid(uid_t *uidp, struct router *router)
{
	uint64_t n = router->config->uid_last - router->config->uid_first + 1;

	*uidp = 0;
	if (geteuid() != 0)
		return 0;
	while (n-- > 0) {
		if (router->last_uid < router->config->uid_first || router->last_uid >= router->config->uid_last)
			router->last_uid = (uid_t)router->config->uid_first;
		else
			router->last_uid++;
		if (uid_in_use(router, router->last_uid))
			continue;
		*uidp = router->last_uid;
		return 0;
	}
	return -EUSERS;
}

/* ---- the dead ---- */

static void session_free_dead(struct grave *grave)
{
	session_free(container_of(grave, struct session, grave));
}

static void interpreter_free_dead(struct grave *grave)
{
	interpreter_free(container_of(grave, struct interpreter, grave));
}

static void warden_free_dead(struct grave *grave)
{
	warden_free(container_of(grave, struct warden, grave));
}

static void nursery_free_dead(struct grave *grave)
{
	nursery_free(container_of(grave, struct nursery, grave));
}

void router_dig_graves(struct router *router)
{
	graveyard_init(&router->dead_sessions, session_free_dead);
	graveyard_init(&router->dead_interpreters, interpreter_free_dead);
	graveyard_init(&router->dead_wardens, warden_free_dead);
	graveyard_init(&router->dead_nurseries, nursery_free_dead);
}

void router_bury_session(struct router *router, struct session *session)
{
	if (!graveyard_bury(&router->dead_sessions, &session->grave))
		return;
	router->stats.ended++;
	list_remove(&session->node);
	list_remove(&session->kin);
	family_touch(session->warden);
}

void router_bury_interpreter(struct router *router, struct interpreter *interpreter)
{
	list_remove(&interpreter->node);
	(void)graveyard_bury(&router->dead_interpreters, &interpreter->grave);
}

void router_bury_warden(struct router *router, struct warden *warden)
{
	list_remove(&warden->node);
	(void)graveyard_bury(&router->dead_wardens, &warden->grave);
}

void router_bury_nursery(struct router *router, struct nursery *nursery)
{
	list_remove(&nursery->node);
	(void)graveyard_bury(&router->dead_nurseries, &nursery->grave);
}

/* Each kind before those that it refers to. */
void router_free_dead(struct router *router)
{
	promises_sweep(&router->promises);
	graveyard_empty(&router->dead_interpreters);
	graveyard_empty(&router->dead_sessions);
	graveyard_empty(&router->dead_wardens);
	graveyard_empty(&router->dead_nurseries);
}

void router_free_all(struct router *router)
{
	struct session *session;
	struct nursery *nursery;
	struct warden *warden;

	list_for_each (session, &router->sessions, node)
		(void)graveyard_bury(&router->dead_sessions, &session->grave);
	list_for_each (nursery, &router->nurseries, node)
		list_move(&router->retired, &nursery->node);
	list_for_each (nursery, &router->retired, node) {
		list_for_each (warden, &nursery->wardens, node)
			router_bury_warden(router, warden);
		router_bury_nursery(router, nursery);
	}
	router_free_dead(router);
}
