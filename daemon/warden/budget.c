/* The settings limit what a session's own code uses. The limits of a group count everything in it, so they must
 * be higher. A process that asks for too much shall get its MemoryError, from the limit of the process, before
 * the group is full and the kernel kills. */
#include "budget.h"

#include "base/memory.h"
#include "base/process.h"
#include "cages.h"
#include "nursery.h"

/* Page tables and other memory of the kernel for a session, and small allocations of warden and interpreter. */
#define OVERHEAD (16ULL << 20)
#define OVERHEAD_PART 16

/* Of 1000, which makes up for all the memory there is. */
#define SCORE_LIVE 1000
/* Of a frozen interpreter, and of its warden, which sets it when it builds the cage. It is low if a group bounds
 * what all of them can do to the host. */
#define SCORE_GROUP 0
#define SCORE_NO_GROUP 500

/* While frozen copies may hold up to @frozen bytes that no live interpreter has any more. */
static uint64_t memory_of(const struct profile *profile, uint64_t image, uint64_t frozen)
{
	if (!profile->memory)
		return 0;
	if (profile->checkpoint_memory)
		frozen = MIN(frozen, profile->checkpoint_memory);
	/* An interpreter that writes to the image it shares with the template gets pages of its own. */
	return profile->memory + profile->memory / OVERHEAD_PART + OVERHEAD + image + frozen;
}

static uint64_t processes_of(const struct profile *profile, size_t n_frozen)
{
	return profile->processes ? 1 /* the warden */ + profile->processes + n_frozen : 0;
}

static struct group_limits limits_of(const struct profile *profile, uint64_t image)
{
	return (struct group_limits){.of = {
					     [CONTROLLER_MEMORY] = memory_of(profile, image, 0),
					     [CONTROLLER_PIDS] = processes_of(profile, 0),
					     [CONTROLLER_CPU] = profile->cpu,
				     }};
}

unsigned budget_controllers(const struct profile *profile, const struct cgroups *cgroups)
{
	struct group_limits limits = limits_of(profile, 0);

	return group_would_hold(cgroups, &limits);
}

int budget_begin(struct warden *warden, int doors[static _CONTROLLER_N])
{
	struct group_limits limits = limits_of(warden->profile, warden->nursery->baseline);
	int r = 0;

	/* If it is asked for again, because the template had no room or died, it has a group already. */
	if (!warden->group.cgroups) {
		nursery_make_share(warden->nursery);
		r = group_make(&warden->group, &warden->cages->cgroups, warden->nursery->share.name,
			       strrchr(warden->workspace, '/') + 1, &limits);
	}
	return r ? r : group_doors(&warden->group, doors);
}

void budget_count(struct warden *warden)
{
	struct interpreter *interpreter;
	struct tenant *tenant;
	size_t n = 0;

	list_for_each (interpreter, &warden->interpreters, node)
		n += interpreter->role == ROLE_FROZEN;
	list_for_each (tenant, &warden->tenants, node)
		n += tenant->ops->has_successor(tenant);
	(void)group_limit(&warden->group, CONTROLLER_PIDS, processes_of(warden->profile, n));
}

/* A frozen copy may come to hold alone everything that it was made with. The limit only grows: if it were
 * lowered, the kernel would kill, or we would wait, because of memory that is in use already. */
static void frozen_allow(struct warden *warden, struct interpreter *frozen, uint64_t memory)
{
	uint64_t sum = 0, limit;
	struct interpreter *interpreter;

	frozen->size = memory > warden->baseline ? memory - warden->baseline : 0;
	list_for_each (interpreter, &warden->interpreters, node)
		sum += interpreter->size;
	limit = memory_of(warden->profile, warden->baseline, sum);
	if (limit > warden->group.limits.of[CONTROLLER_MEMORY])
		(void)group_limit(&warden->group, CONTROLLER_MEMORY, limit);
}

void budget_introduce(struct warden *warden, struct interpreter *interpreter, uint64_t number)
{
	bool limited = warden->group.held & CONTROLLER_BIT(CONTROLLER_MEMORY);
	pid_t pid = process_find(warden->pid, number);

	if (pid <= 0)
		return;
	if (interpreter->role == ROLE_LIVE) {
		process_expose(pid, SCORE_LIVE);
		return;
	}
	process_expose(pid, limited ? SCORE_GROUP : SCORE_NO_GROUP);
	if (limited)
		frozen_allow(warden, interpreter, memory_of_process(pid));
}
