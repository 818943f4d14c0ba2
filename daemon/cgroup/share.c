#include "share.h"

#include "base/log.h"
#include "file.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

/* The weight of a whole share. In version 2 laird itself stands beside the shares, see leaf.c. */
static const struct {
	const char *file;
	unsigned whole, least;
} weights[] = {[1] = {"cpu.shares", 1 << 16, 2}, [2] = {"cpu.weight", 1000, 1}};

void share_init(struct cpu_share *share, struct cgroups *cgroups)
{
	*share = (struct cpu_share){.made = false};
	if (!cgroups_find(cgroups, CONTROLLER_CPU))
		return;
	cgroups->last_share = MAX(cgroups->last_share + 1, event_now());
	snprintf(share->name, sizeof(share->name), "share-%" PRIu64, cgroups->last_share);
}

static int make_one(const struct hierarchy *hierarchy, const char *name)
{
	int r = mkdirat(hierarchy->fd, name, 0755) < 0 && errno != EEXIST ? -errno : 0;

	return r || hierarchy->version == 1 ? r : cgroup_pass_down(hierarchy->fd, name, hierarchy->controllers);
}

void share_make(struct cpu_share *share, const struct cgroups *cgroups)
{
	int r = 0;

	if (!share->name[0] || share->made)
		return;
	for (size_t i = 0; i < cgroups->n && !r; i++)
		if (cgroups->hierarchies[i].controllers)
			r = make_one(&cgroups->hierarchies[i], share->name);
	share->made = !r;
	if (!r)
		return;
	log_warn(NULL, "the processors are not divided between users: cannot make the control group %s: %s",
		 share->name, strerror(-r));
	share->name[0] = '\0';
}

void share_divide(const struct cpu_share *share, const struct cgroups *cgroups, size_t parts)
{
	const struct hierarchy *hierarchy = share->made ? cgroups_find(cgroups, CONTROLLER_CPU) : NULL;
	char text[16];

	if (!hierarchy)
		return;
	snprintf(text, sizeof(text), "%zu",
		 MAX(weights[hierarchy->version].whole / parts, (size_t)weights[hierarchy->version].least));
	(void)cgroup_write(hierarchy->fd, share->name, weights[hierarchy->version].file, text);
}

void share_drop(const struct cpu_share *share, struct cgroups *cgroups)
{
	if (share->made)
		cgroups_drop(cgroups, share->name);
}
