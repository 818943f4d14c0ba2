/* Quotas of workspaces. Invariant: while a cell runs that could write, a survey is under way or a timer is set.
 * A session can be over its limit by what it can write between two surveys; docs/SECURITY.md promises the
 * figures below. */
#include "quota.h"

#include "base/log.h"
#include "cages.h"
#include "nursery.h"
#include "prepared.h"
#include "tenant.h"
#include "warden.h"

#include <inttypes.h>
#include <sys/statvfs.h>

#define FILE_SHARE (16ULL << 10)
#define FILES_MIN 1024
/* The next survey comes before somebody this fast can have filled the room that is left. */
#define BYTES_PER_US 4096
#define US_PER_FILE 3
#define INTERVAL_MIN_US 20000
#define INTERVAL_MAX_US 250000
/* A survey that works long rests four times as long, and one that had to wait, for a processor or the disk, as long
 * as it took: the session that is looked at may be what it waited for. */
#define REST 4
/* Of the whole file system, before anybody is asked who it was. */
#define DISK_SIZE_STEP (8ULL << 20)
#define DISK_FILES_STEP 1000
#define DISK_REST_US 1000000

void quota_init(struct quota *quota, const struct profile *profile)
{
	*quota = (struct quota){.size_max = profile->workspace_size};
	if (quota->size_max)
		quota->files_max = MAX(quota->size_max / FILE_SHARE, (uint64_t)FILES_MIN);
	quota->size_allowed = quota->size_max;
	quota->files_allowed = quota->files_max;
}

void quota_deinit(struct warden *warden)
{
	timer_clear(warden->cages->loop, &warden->quota.timer);
}

/* ---- asking ---- */

/* With more than this all sessions end: twice the limit, if no more than that was brought back. */
static uint64_t most(uint64_t max, uint64_t allowed, uint64_t brought)
{
	return (allowed > 2 * max ? allowed + max : 2 * max) + brought;
}

static uint64_t size_most(const struct quota *quota)
{
	return most(quota->size_max, quota->size_allowed, quota->brought_size);
}

static uint64_t files_most(const struct quota *quota)
{
	return most(quota->files_max, quota->files_allowed, quota->brought_files);
}

static void ask(struct warden *warden)
{
	struct quota *quota = &warden->quota;

	if (warden->state != WARDEN_READY || quota->asked)
		return;
	quota->asked = true;
	quota->asked_at = event_now();
	quota->put_size = quota->put_files = 0;
	warden_survey(warden, size_most(quota), files_most(quota));
}

static void on_time(struct timer *timer)
{
	struct warden *warden = container_of(timer, struct warden, quota.timer);

	blame_warden(warden, TURN_QUOTA);
	ask(warden);
}

static uint64_t room(uint64_t allowed, uint64_t used)
{
	return allowed > used ? allowed - used : 0;
}

static void ask_later(struct warden *warden)
{
	struct quota *quota = &warden->quota;
	uint64_t interval = MIN(room(quota->size_allowed, quota->size) / BYTES_PER_US,
				room(quota->files_allowed, quota->files) * US_PER_FILE);

	if (!quota->size_max || quota->asked || quota->timer.index)
		return;
	interval = MIN(MAX(interval, (uint64_t)INTERVAL_MIN_US), (uint64_t)INTERVAL_MAX_US);
	(void)timer_set(warden->cages->loop, &quota->timer, event_now() + MAX(interval, quota->rest), on_time);
}

/* ---- acting ---- */

static bool any_busy(const struct warden *warden)
{
	struct tenant *tenant;

	if (warden->importing)
		return true;
	list_for_each (tenant, (struct list *)&warden->tenants, node)
		if (tenant->ops->is_busy(tenant))
			return true;
	return false;
}

static bool any_recovering(const struct warden *warden)
{
	struct tenant *tenant;

	list_for_each (tenant, (struct list *)&warden->tenants, node)
		if (tenant->ops->is_recovering(tenant))
			return true;
	return false;
}

static void allow_what_there_is(struct quota *quota)
{
	quota->settling = quota->settling && quota->asked_at <= quota->settles;
	if (!quota->settling)
		quota->brought_size = quota->brought_files = 0;
	quota->size_allowed = MAX(quota->size, quota->size_max);
	quota->files_allowed = MAX(quota->files, quota->files_max);
}

static void settle(struct quota *quota)
{
	quota->settling = true;
	quota->settles = event_now();
}

static void end_all(struct warden *warden)
{
	struct tenant *tenant;

	list_for_each (tenant, &warden->tenants, node)
		tenant->ops->end(tenant, "workspace");
}

static void kill_all(struct warden *warden)
{
	struct tenant *tenant;

	warden->quota.step = QUOTA_KILLED;
	settle(&warden->quota);
	list_for_each (tenant, &warden->tenants, node)
		tenant->ops->on_full(tenant);
}

static void judge(struct warden *warden, bool blind)
{
	struct quota *quota = &warden->quota;
	bool within = !blind && quota->size <= quota->size_max && quota->files <= quota->files_max;
	bool grown = blind || quota->size > quota->size_allowed || quota->files > quota->files_allowed;

	if (warden->set[0]) {
		if (!within)
			warden_failed(warden, BYTES("a package has filled the workspace while it was imported"));
		return;
	}
	if (quota->size > size_most(quota) || quota->files > files_most(quota)) {
		end_all(warden);
		return;
	}
	if (any_recovering(warden))
		return;
	if (within || quota->settling) {
		quota->step = within ? QUOTA_KEPT : quota->step;
		allow_what_there_is(quota);
		return;
	}
	if (!grown)
		return;
	if (quota->step == QUOTA_KILLED) {
		end_all(warden);
	} else if (blind || quota->step == QUOTA_NOTED || any_busy(warden)) {
		kill_all(warden);
	} else {
		quota->step = QUOTA_NOTED;
		allow_what_there_is(quota);
	}
}

void quota_on_surveyed(struct warden *warden, const struct surveyed_message *surveyed)
{
	struct quota *quota = &warden->quota;
	uint64_t took = event_now() - quota->asked_at;

	quota->asked = false;
	quota->rest = MAX(took, REST * MIN(surveyed->worked, took));
	quota->size = surveyed->size + quota->put_size;
	quota->files = surveyed->files + quota->put_files;
	judge(warden, surveyed->blind);
	if (quota->settling || any_busy(warden))
		ask_later(warden);
}

/* ---- bringing back ---- */

void quota_on_going(struct warden *warden, const struct files_going_message *going)
{
	struct quota *quota = &warden->quota;

	quota->brought_size = MAX(quota->brought_size, going->size);
	quota->brought_files = MAX(quota->brought_files, going->files);
	ask_later(warden);
}

void quota_on_back(struct warden *warden)
{
	settle(&warden->quota);
	ask_later(warden);
}

/* ---- between cells ---- */

static bool differ(uint64_t a, uint64_t b, uint64_t by)
{
	return a + by < b || b + by < a;
}

/* Emptier too: what somebody deletes hides what another writes. */
static bool disk_changed(const struct disk_watch *disk, const struct statvfs *now)
{
	return differ(disk->size_free, (uint64_t)now->f_bfree * now->f_frsize, DISK_SIZE_STEP) ||
	       differ(disk->files_free, now->f_ffree, DISK_FILES_STEP);
}

/* Whether every warden could be asked: one that was asked a moment ago cannot. */
static bool ask_all(const struct list *nurseries)
{
	struct nursery *nursery;
	struct warden *warden;
	bool all = true;

	list_for_each (nursery, (struct list *)nurseries, node) {
		list_for_each (warden, &nursery->wardens, node) {
			if ((list_empty(&warden->tenants) && !warden->set[0]) || !warden->quota.size_max ||
			    warden->quota.timer.index)
				continue;
			if (warden->quota.asked_at + DISK_REST_US < event_now())
				ask(warden);
			else
				all = false;
		}
	}
	return all;
}

static bool ask_everybody(const struct cages *cages)
{
	bool all = ask_all(&cages->nurseries);

	return ask_all(&cages->retired) && all;
}

static void disk_watch(struct cages *cages);

static void on_disk_time(struct timer *timer)
{
	struct cages *cages = container_of(timer, struct cages, disk.timer);
	struct disk_watch *disk = &cages->disk;
	struct statvfs now;

	if (!cages_used(cages) && !prepared_any_of(cages)) {
		*disk = (struct disk_watch){0};
		return;
	}
	if (statvfs(cages->workspaces.path, &now) == 0 && disk_changed(disk, &now) && ask_everybody(cages)) {
		disk->size_free = (uint64_t)now.f_bfree * now.f_frsize;
		disk->files_free = now.f_ffree;
	}
	disk_watch(cages);
}

static void disk_watch(struct cages *cages)
{
	if (!cages->disk.timer.index)
		(void)timer_set(cages->loop, &cages->disk.timer, event_now() + INTERVAL_MAX_US, on_disk_time);
}

void quota_on_run(struct warden *warden)
{
	if (!warden->quota.size_max)
		return;
	ask_later(warden);
	disk_watch(warden->cages);
}

/* ---- what the router writes ---- */

bool quota_has_room(const struct warden *warden, uint64_t size, uint64_t files)
{
	const struct quota *quota = &warden->quota;

	return !quota->size_max ||
	       (size <= room(quota->size_max, quota->size) && files <= room(quota->files_max, quota->files));
}

void quota_on_refused(struct warden *warden)
{
	ask_later(warden);
}

void quota_put(struct warden *warden, uint64_t size, uint64_t files)
{
	struct quota *quota = &warden->quota;

	quota->size += size;
	quota->files += files;
	quota->put_size += size;
	quota->put_files += files;
	/* What it takes the place of is seen soon. */
	ask_later(warden);
}
