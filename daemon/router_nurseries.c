/* Whose template a session grows from. What grows from one has its layout of memory, its stack canary, its pointer
 * guard and its hash seed: what a session can tell of its own, it can tell of all its siblings. So a template is of
 * one user, from its first session on, and never of another.
 *
 * The first session of a user need not wait for a template to start where one is there that is nobody's yet. At the
 * start each profile has one, which a laird that is not root keeps for its own user; another is made when one was
 * taken, as soon as there are several users. While there is one, those whose users have had no session for a while
 * go. */
#include "router.h"

#include "log.h"

/* The user who has taken the last one comes first. */
#define RESERVE_US 1000000

static struct nursery *find(struct router *router, const struct profile *profile, bool owned, uid_t owner)
{
	struct nursery *nursery;

	list_for_each (nursery, &router->nurseries, node)
		if (nursery->profile == profile && nursery->owned == owned && nursery->owner == owner)
			return nursery;
	return NULL;
}

static struct nursery *find_free(struct router *router, const struct profile *profile)
{
	return find(router, profile, false, 0);
}

static struct nursery *make(struct router *router, struct profile *profile)
{
	struct nursery *nursery;

	if (nursery_new(&nursery, router, profile))
		return NULL;
	list_append(&router->nurseries, &nursery->node);
	return nursery;
}

static void on_reserve(struct timer *timer)
{
	struct router *router = container_of(timer, struct router, reserve);
	struct nursery *nursery;

	for (size_t i = 0; i < router->config->n_profiles && !router->stopping; i++) {
		struct profile *profile = router->config->profiles[i];

		nursery = find_free(router, profile) ? NULL : make(router, profile);
		if (nursery)
			nursery_warm(nursery);
	}
}

static void reserve_soon(struct router *router)
{
	if (router->several_users)
		(void)timer_set(&router->loop, &router->reserve, event_now() + RESERVE_US, on_reserve);
}

void router_own_nursery(struct router *router, struct nursery *nursery, uid_t owner)
{
	nursery_own(nursery, owner);
	if (!router->any_user)
		router->first_user = owner;
	router->any_user = true;
	router->several_users |= owner != router->first_user;
	reserve_soon(router);
}

struct nursery *router_nursery(struct router *router, struct profile *profile, uid_t owner)
{
	struct nursery *nursery = find(router, profile, true, owner);

	if (nursery)
		return nursery;
	nursery = find_free(router, profile);
	if (!nursery)
		nursery = make(router, profile);
	if (nursery)
		router_own_nursery(router, nursery, owner);
	return nursery;
}

void router_warm(struct router *router, struct profile *profile)
{
	struct nursery *nursery =
		geteuid() == 0 ? make(router, profile) : router_nursery(router, profile, geteuid());

	if (nursery)
		nursery_warm(nursery);
	reserve_soon(router);
}

void router_retire_nurseries(struct router *router)
{
	struct nursery *nursery;

	list_for_each (nursery, &router->nurseries, node)
		router_retire(router, nursery);
}

void router_retire(struct router *router, struct nursery *nursery)
{
	list_move(&router->retired, &nursery->node);
	nursery_retire(nursery);
}

void router_on_nursery_idle(struct router *router, struct nursery *nursery)
{
	if (!find_free(router, nursery->profile)) {
		nursery_idle(nursery);
		return;
	}
	log_info(NULL, "the template of profile %s for uid %u, who has no session, is let go",
		 nursery->profile->name, nursery->owner);
	router_retire(router, nursery);
}
