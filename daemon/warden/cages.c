/* Which template a session is forked from. All sessions of a template share its layout of memory, its stack
 * canary, its pointer guard and its hash seed: a session that knows its own knows those of the others. So a
 * template belongs to one user, from its first session on.
 *
 * The first session of a user need not wait for a template to start if there is one that belongs to nobody yet.
 * At the start each profile gets one, one after the other if there are few processors, but at once if somebody asks
 * for it; a laird that is not root keeps it for its own user. Once there are several users, another is made
 * whenever one was taken. Then templates end if their users have had no session for a while. */
#include "cages.h"

#include "base/log.h"
#include "nursery.h"

/* The user who has taken the last one comes first. */
#define RESERVE_US 1000000

static struct nursery *find(struct cages *cages, const struct profile *profile, bool owned, uid_t owner)
{
	struct nursery *nursery;

	list_for_each (nursery, &cages->nurseries, node)
		if (nursery->profile == profile && nursery->owned == owned && nursery->owner == owner)
			return nursery;
	return NULL;
}

static struct nursery *find_free(struct cages *cages, const struct profile *profile)
{
	return find(cages, profile, false, 0);
}

static struct nursery *make(struct cages *cages, struct profile *profile)
{
	struct nursery *nursery;

	if (nursery_new(&nursery, cages, profile))
		return NULL;
	list_append(&cages->nurseries, &nursery->node);
	return nursery;
}

/* A processor is left to whoever asks for something meanwhile. */
static size_t loading_max(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n > 2 ? (size_t)n - 1 : 1;
}

static void on_ahead(struct timer *timer)
{
	struct cages *cages = container_of(timer, struct cages, ahead);
	size_t n = 0, max = loading_max();
	struct nursery *nursery;

	list_for_each (nursery, &cages->nurseries, node)
		n += nursery_is_starting(nursery);
	list_for_each (nursery, &cages->nurseries, node) {
		if (n >= max || cages->stopping)
			return;
		if (!nursery->ahead)
			continue;
		nursery_warm(nursery);
		n += nursery_is_starting(nursery);
	}
}

void cages_on_loaded(struct cages *cages)
{
	(void)timer_set(cages->loop, &cages->ahead, event_now(), on_ahead);
}

static void warm_ahead(struct cages *cages, struct nursery *nursery)
{
	nursery->ahead = nursery->state == NURSERY_DOWN;
	cages_on_loaded(cages);
}

static void on_reserve(struct timer *timer)
{
	struct cages *cages = container_of(timer, struct cages, reserve);
	struct nursery *nursery;

	for (size_t i = 0; i < cages->config->n_profiles && !cages->stopping; i++) {
		struct profile *profile = cages->config->profiles[i];

		nursery = find_free(cages, profile) ? NULL : make(cages, profile);
		if (nursery)
			warm_ahead(cages, nursery);
	}
}

static void reserve_soon(struct cages *cages)
{
	if (cages->several_users)
		(void)timer_set(cages->loop, &cages->reserve, event_now() + RESERVE_US, on_reserve);
}

static size_t shares_of(struct cages *cages, uid_t owner, size_t parts)
{
	const struct list *heads[] = {&cages->nurseries, &cages->retired};
	struct nursery *nursery;
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
		list_for_each (nursery, (struct list *)heads[i], node) {
			if (!nursery->owned || nursery->owner != owner || !nursery->share.made)
				continue;
			n++;
			if (parts)
				share_divide(&nursery->share, &cages->cgroups, parts);
		}
	}
	return n;
}

void cages_divide(struct cages *cages, uid_t owner)
{
	(void)shares_of(cages, owner, shares_of(cages, owner, 0));
}

void cages_own_nursery(struct cages *cages, struct nursery *nursery, uid_t owner)
{
	nursery_own(nursery, owner);
	if (!cages->any_user)
		cages->first_user = owner;
	cages->any_user = true;
	cages->several_users |= owner != cages->first_user;
	reserve_soon(cages);
}

struct nursery *cages_nursery(struct cages *cages, struct profile *profile, uid_t owner)
{
	struct nursery *nursery = find(cages, profile, true, owner);

	if (nursery)
		return nursery;
	nursery = find_free(cages, profile);
	if (!nursery)
		nursery = make(cages, profile);
	if (nursery)
		cages_own_nursery(cages, nursery, owner);
	return nursery;
}

/* Whether the code wants to wait for what is preloaded. If a module must be there, whoever cannot have it is told.
 */
static bool wants_any(struct bytes code, const struct string_list *modules)
{
	for (size_t i = 0; i < modules->n; i++) {
		const char *name = modules->items[i];

		if (!strchr(name, '?') || memmem(code.data, code.size, name, strcspn(name, ".?")))
			return true;
	}
	return false;
}

static struct nursery *bare_of(struct cages *cages, struct nursery *nursery)
{
	struct profile *profile = nursery->bare ? NULL : profile_bare(nursery->profile);

	if (profile)
		nursery->bare = make(cages, profile);
	if (profile && nursery->bare) {
		nursery->bare->makeshift = true;
		nursery->bare->held = cages->images >= 0 && !nursery->imports;
		nursery_own(nursery->bare, nursery->owner);
	}
	profile_unref(profile);
	return nursery->bare;
}

struct nursery *cages_nursery_for(struct cages *cages, struct profile *profile, uid_t owner, struct bytes code)
{
	struct nursery *nursery = cages_nursery(cages, profile, owner), *bare;

	if (!nursery || !code.data || !nursery_loads(nursery) || nursery_spares(nursery) > 0 ||
	    wants_any(code, &profile->preload))
		return nursery;
	nursery_warm(nursery);
	bare = bare_of(cages, nursery);
	return bare && bare->failures == 0 ? bare : nursery;
}

void cages_warm(struct cages *cages, struct profile *profile)
{
	struct nursery *nursery = geteuid() == 0 ? make(cages, profile) : cages_nursery(cages, profile, geteuid());

	if (nursery)
		warm_ahead(cages, nursery);
	reserve_soon(cages);
}

void cages_retire_all(struct cages *cages)
{
	struct nursery *nursery;

	list_for_each (nursery, &cages->nurseries, node)
		cages_retire(cages, nursery);
}

void cages_retire(struct cages *cages, struct nursery *nursery)
{
	const struct list *heads[] = {&cages->nurseries, &cages->retired};
	struct nursery *other;

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		list_for_each (other, (struct list *)heads[i], node)
			if (other->bare == nursery)
				other->bare = NULL;
	list_move(&cages->retired, &nursery->node);
	nursery_retire(nursery);
}

void cages_on_nursery_idle(struct cages *cages, struct nursery *nursery)
{
	if (!find_free(cages, nursery->profile)) {
		nursery_idle(nursery);
		return;
	}
	log_info(NULL, "the template of profile %s for uid %u, who has no session, is let go",
		 nursery->profile->name, nursery->owner);
	cages_retire(cages, nursery);
}

bool cages_used(const struct cages *cages)
{
	const struct list *heads[] = {&cages->nurseries, &cages->retired};
	struct nursery *nursery;

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		list_for_each (nursery, (struct list *)heads[i], node)
			if (nursery_is_used(nursery))
				return true;
	return false;
}

/* ---- uids ---- */

/* As root each session runs as a uid of its own; one still in use is passed over. */
static bool uid_in_use(const struct cages *cages, uid_t uid)
{
	const struct warden *warden;

	table_for_each (warden, &cages->uids, hash_of_number(uid), by_uid)
		if (warden->uid == uid)
			return true;
	return false;
}

/* Of few uids none is set aside: then it is that of nobody. */
#define UIDS_ENOUGH 16
#define UID_NOBODY 65534

uid_t cages_builder_uid(const struct cages *cages)
{
	const struct uids *uids = &cages->uids_given;

	if (geteuid() != 0)
		return 0;
	return (uid_t)(uids->last - uids->first + 1 >= UIDS_ENOUGH ? uids->last : UID_NOBODY);
}

int cages_take_uid(uid_t *uidp, struct cages *cages)
{
	uint64_t n = cages->uids_given.last - cages->uids_given.first + 1;

	*uidp = 0;
	if (geteuid() != 0)
		return 0;
	while (n-- > 0) {
		if (cages->last_uid < cages->uids_given.first || cages->last_uid >= cages->uids_given.last)
			cages->last_uid = (uid_t)cages->uids_given.first;
		else
			cages->last_uid++;
		if (uid_in_use(cages, cages->last_uid) || cages->last_uid == cages_builder_uid(cages))
			continue;
		*uidp = cages->last_uid;
		return 0;
	}
	return -EUSERS;
}

/* ---- the dead ---- */

static void warden_free_dead(struct grave *grave)
{
	warden_free(container_of(grave, struct warden, grave));
}

static void nursery_free_dead(struct grave *grave)
{
	nursery_free(container_of(grave, struct nursery, grave));
}

void cages_init(struct cages *cages, struct event_loop *loop, struct breaker *breaker)
{
	*cages = (struct cages){.loop = loop, .breaker = breaker, .images = -1, .workspaces.fd = -1};
	list_init(&cages->nurseries);
	list_init(&cages->retired);
	list_init(&cages->due);
	list_init(&cages->touched);
	table_init(&cages->uids);
	graveyard_init(&cages->dead_interpreters, interpreter_free_dead);
	graveyard_init(&cages->dead_wardens, warden_free_dead);
	graveyard_init(&cages->dead_nurseries, nursery_free_dead);
}

void cages_deinit(struct cages *cages)
{
	table_deinit(&cages->uids);
	fd_closep(&cages->images);
	workspaces_close(&cages->workspaces);
	cgroups_close(&cages->cgroups);
	timer_clear(cages->loop, &cages->reserve);
	timer_clear(cages->loop, &cages->ahead);
	timer_clear(cages->loop, &cages->disk.timer);
}

void cages_bury_warden(struct cages *cages, struct warden *warden)
{
	list_remove(&warden->node);
	(void)graveyard_bury(&cages->dead_wardens, &warden->grave);
}

void cages_bury_nursery(struct cages *cages, struct nursery *nursery)
{
	list_remove(&nursery->node);
	(void)graveyard_bury(&cages->dead_nurseries, &nursery->grave);
}

void cages_bury_all(struct cages *cages)
{
	struct nursery *nursery;
	struct warden *warden;

	list_for_each (nursery, &cages->nurseries, node)
		list_move(&cages->retired, &nursery->node);
	list_for_each (nursery, &cages->retired, node) {
		list_for_each (warden, &nursery->wardens, node)
			cages_bury_warden(cages, warden);
		cages_bury_nursery(cages, nursery);
	}
}
