/* Quotas step by step: what a survey finds, at which time, and what becomes of the sessions for it. The warden that
 * is surveyed, its sessions and the file system are fakes. */
#include "check.h"
#include "fakes/clock.h"

#include "warden/cages.h"
#include "warden/nursery.h"
#include "warden/prepared.h"
#include "warden/quota.h"
#include "warden/tenant.h"
#include "warden/warden.h"

#include <string.h>
#include <sys/statvfs.h>

#define LIMIT (64ULL << 20)
#define LARGE (100ULL << 30)

struct guest {
	struct tenant tenant;
	bool busy, recovering;
	unsigned killed, ended;
};

static struct event_loop loop;
static struct cages cages;
static struct nursery nursery;
static struct warden caged;
static struct guest guests[2];
static unsigned surveys;
static uint64_t survey_size, survey_files;
static struct statvfs disk;

/* ---- what lies around quota.c ---- */

void warden_survey(struct warden *warden, uint64_t size, uint64_t files)
{
	CHECK(warden == &caged);
	surveys++;
	survey_size = size;
	survey_files = files;
}

void blame_warden(const struct warden *warden, enum blame_turn turn)
{
	CHECK(warden == &caged && turn == TURN_QUOTA);
}

bool prepared_any_of(const struct cages *of)
{
	(void)of;
	return false;
}

void warden_failed(struct warden *warden, struct bytes reason)
{
	(void)warden;
	(void)reason;
}

bool cages_used(const struct cages *of)
{
	return !list_empty(&caged.tenants) && of == &cages;
}

int statvfs(const char *file, struct statvfs *buf)
{
	(void)file;
	*buf = disk;
	return 0;
}

static struct guest *guest_of(const struct tenant *tenant)
{
	return container_of((struct tenant *)tenant, struct guest, tenant);
}

static void on_full(struct tenant *tenant)
{
	guest_of(tenant)->killed++;
}

static void end(struct tenant *tenant, const char *cause)
{
	CHECK(!strcmp(cause, "workspace"));
	guest_of(tenant)->ended++;
}

static bool is_busy(const struct tenant *tenant)
{
	return guest_of(tenant)->busy;
}

static bool is_recovering(const struct tenant *tenant)
{
	return guest_of(tenant)->recovering;
}

static const struct tenant_ops ops = {
	.on_full = on_full, .end = end, .is_busy = is_busy, .is_recovering = is_recovering};

/* ---- the stage ---- */

static void begin(uint64_t limit)
{
	const struct profile profile = {.workspace_size = limit};

	CHECK(event_loop_init(&loop) == 0);
	cages = (struct cages){.loop = &loop, .workspaces.path = (char *)"/nowhere"};
	list_init(&cages.nurseries);
	list_init(&cages.retired);
	memset(&nursery, 0, sizeof(nursery));
	list_init(&nursery.node);
	list_init(&nursery.wardens);
	list_append(&cages.nurseries, &nursery.node);
	memset(&caged, 0, sizeof(caged));
	caged.cages = &cages;
	caged.state = WARDEN_READY;
	list_init(&caged.node);
	list_init(&caged.tenants);
	list_append(&nursery.wardens, &caged.node);
	quota_init(&caged.quota, &profile);
	for (size_t i = 0; i < ARRAY_SIZE(guests); i++) {
		guests[i] = (struct guest){.tenant = {.ops = &ops}};
		list_init(&guests[i].tenant.node);
		list_append(&caged.tenants, &guests[i].tenant.node);
	}
	surveys = 0;
	disk = (struct statvfs){.f_frsize = 4096, .f_bfree = 1 << 20, .f_ffree = 1 << 20};
}

static void finish(void)
{
	quota_deinit(&caged);
	timer_clear(&loop, &cages.disk.timer);
	CHECK(loop.n_timers == 0);
	event_loop_deinit(&loop);
}

static void wait_for(uint64_t us)
{
	struct slice slice = {.until = UINT64_MAX, .things = SIZE_MAX};

	fake_now += us;
	timer_run(&loop, &slice);
}

/* The survey that has been asked for is answered after @took microseconds. */
static void found(uint64_t size, uint64_t files, uint64_t took, uint64_t worked)
{
	const struct surveyed_message surveyed = {.size = size, .files = files, .worked = worked};

	CHECK(caged.quota.asked);
	fake_now += took;
	quota_on_surveyed(&caged, &surveyed);
}

/* Now, however long it would have rested. */
static void look(uint64_t size)
{
	quota_on_run(&caged);
	wait_for(1000000);
	found(size, 1, 10, 10);
}

static bool nothing_done(void)
{
	return guests[0].killed + guests[1].killed + guests[0].ended + guests[1].ended == 0;
}

/* Microseconds until the next survey, 0: there will be none. */
static uint64_t due(void)
{
	return caged.quota.timer.index ? caged.quota.timer.deadline - fake_now : 0;
}

/* ---- tests ---- */

static void test_no_limit(void)
{
	begin(0);
	guests[0].busy = true;
	quota_on_run(&caged);
	CHECK(loop.n_timers == 0 && quota_has_room(&caged, UINT64_MAX, UINT64_MAX));
	quota_put(&caged, 1, 1);
	quota_on_refused(&caged);
	CHECK(loop.n_timers == 0 && surveys == 0);
	finish();
}

/* The less room is left the sooner; never at once, never late; not while nothing runs. */
static void test_times(void)
{
	begin(LARGE);
	guests[1].busy = true;
	quota_on_run(&caged);
	CHECK(due() == 250000);
	wait_for(249999);
	CHECK(surveys == 0);
	wait_for(1);
	CHECK(surveys == 1 && survey_size == 2 * LARGE && survey_files == 2 * (LARGE >> 14) && due() == 0);
	quota_on_run(&caged);
	CHECK(due() == 0); /* one is under way */
	found(LARGE - 100000ULL * 4096, 1, 10, 10);
	CHECK(due() == 100000);
	wait_for(100000);
	found(LARGE - 1, 1, 10, 10);
	CHECK(due() == 20000);
	wait_for(20000);
	found(1, (LARGE >> 14) - 10000, 10, 10);
	CHECK(due() == 30000); /* by the number of files */
	wait_for(30000);
	found(LARGE - 1, 1, 200000, 1000); /* it had to wait */
	CHECK(due() == 200000);
	wait_for(200000);
	found(LARGE - 1, 1, 100000, 90000); /* it was work */
	CHECK(due() == 4 * 90000);
	wait_for(4 * 90000);
	found(LARGE - 1, 1, 10000, 90000); /* it says more than there was */
	CHECK(due() == 4 * 10000);
	wait_for(4 * 10000);
	guests[1].busy = false;
	found(LARGE - 1, 1, 10, 10);
	CHECK(due() == 0 && nothing_done());
	finish();
}

/* A warden that is dying or not ready is asked nothing. */
static void test_not_ready(void)
{
	begin(LIMIT);
	caged.state = WARDEN_DYING;
	quota_on_run(&caged);
	wait_for(250000);
	CHECK(surveys == 0 && !caged.quota.asked);
	finish();
}

static void test_within(void)
{
	begin(LIMIT);
	guests[0].busy = true;
	look(LIMIT);
	CHECK(caged.quota.step == QUOTA_KEPT && nothing_done());
	quota_on_run(&caged);
	wait_for(1000000);
	found(1, LIMIT >> 14, 10, 10);
	CHECK(caged.quota.step == QUOTA_KEPT && nothing_done());
	finish();
}

/* Kept, killed; what is there then is allowed; growing on from there is the end. */
static void test_over_while_busy(void)
{
	begin(LIMIT);
	guests[0].busy = true;
	look(LIMIT + 1);
	CHECK(caged.quota.step == QUOTA_KILLED && caged.quota.settling);
	CHECK(guests[0].killed == 1 && guests[1].killed == 1 && guests[0].ended + guests[1].ended == 0);
	CHECK(due() > 0); /* what they leave is looked at, though nothing runs */
	guests[0].busy = false;
	guests[0].recovering = true;
	look(LIMIT + 5000);
	CHECK(caged.quota.settling && guests[0].killed == 1 && guests[0].ended == 0);
	guests[0].recovering = false;
	look(LIMIT + 9000);
	CHECK(!caged.quota.settling && caged.quota.step == QUOTA_KILLED && guests[0].killed == 1);
	CHECK(caged.quota.size_allowed == LIMIT + 9000 && due() == 0);
	guests[0].busy = true;
	look(LIMIT + 9000);
	CHECK(guests[0].killed == 1 && guests[0].ended == 0);
	look(LIMIT + 9001);
	CHECK(guests[0].killed == 1 && guests[0].ended == 1 && guests[1].ended == 1);
	finish();
}

/* Who deletes what was too much begins anew. */
static void test_back_within(void)
{
	begin(LIMIT);
	guests[0].busy = true;
	look(LIMIT + 1);
	look(LIMIT + 1);
	CHECK(caged.quota.step == QUOTA_KILLED);
	look(LIMIT);
	CHECK(caged.quota.step == QUOTA_KEPT && caged.quota.size_allowed == LIMIT);
	look(LIMIT + 1);
	CHECK(caged.quota.step == QUOTA_KILLED && guests[0].killed == 2 && guests[0].ended == 0);
	finish();
}

/* Between cells it is noted at first; if it grows, who does that is killed. */
static void test_over_between_cells(void)
{
	begin(LIMIT);
	look(LIMIT + 1);
	CHECK(caged.quota.step == QUOTA_NOTED && nothing_done());
	look(LIMIT + 1);
	CHECK(caged.quota.step == QUOTA_NOTED && nothing_done());
	look(LIMIT + 2);
	CHECK(caged.quota.step == QUOTA_KILLED && guests[0].killed == 1 && guests[0].ended == 0);
	finish();
}

static void test_by_files(void)
{
	begin(LIMIT);
	CHECK(caged.quota.files_max == LIMIT >> 14);
	guests[0].busy = true;
	quota_on_run(&caged);
	wait_for(1000000);
	found(1, (LIMIT >> 14) + 1, 10, 10);
	CHECK(caged.quota.step == QUOTA_KILLED && guests[0].killed == 1);
	finish();
	begin(4096);
	CHECK(caged.quota.files_max == 1024);
	finish();
}

/* Nobody pays for what a restore writes, whenever it is seen; who writes more meanwhile does. */
static void test_brought_back(void)
{
	const struct files_going_message going = {.size = 3 * LIMIT, .files = 1};

	begin(LIMIT);
	guests[0].recovering = true;
	quota_on_run(&caged);
	wait_for(1000000);
	quota_on_going(&caged, &going);
	found(5 * LIMIT, 1, 10, 10);
	CHECK(nothing_done());
	quota_on_run(&caged);
	wait_for(1000000);
	CHECK(survey_size == 5 * LIMIT);
	quota_on_back(&caged);
	guests[0].recovering = false;
	found(3 * LIMIT, 1, 10, 10); /* asked for before that */
	CHECK(nothing_done() && caged.quota.settling && due() > 0);
	look(4 * LIMIT);
	CHECK(nothing_done() && !caged.quota.settling && caged.quota.size_allowed == 4 * LIMIT);
	guests[0].busy = true;
	look(4 * LIMIT + 1);
	CHECK(guests[0].killed == 1 && guests[0].ended == 0);
	finish();
	begin(LIMIT);
	guests[0].recovering = guests[1].busy = true;
	quota_on_going(&caged, &going);
	look(5 * LIMIT + 1);
	CHECK(guests[0].ended == 1 && guests[1].ended == 1);
	finish();
}

/* At once, in whichever state. */
static void test_twice_the_limit(void)
{
	begin(LIMIT);
	guests[0].recovering = true;
	look(2 * LIMIT);
	CHECK(nothing_done());
	look(2 * LIMIT + 1);
	CHECK(guests[0].ended == 1 && guests[1].ended == 1 && guests[0].killed == 0);
	finish();
}

/* What cannot be looked into counts as grown. */
static void test_blind(void)
{
	const struct surveyed_message blind = {.size = 1, .files = 1, .blind = true};

	begin(LIMIT);
	quota_on_run(&caged);
	wait_for(1000000);
	quota_on_surveyed(&caged, &blind);
	CHECK(caged.quota.step == QUOTA_KILLED && guests[0].killed == 1);
	wait_for(1000000);
	CHECK(caged.quota.asked);
	quota_on_surveyed(&caged, &blind);
	CHECK(guests[0].killed == 1 && guests[0].ended == 0);
	quota_on_run(&caged);
	wait_for(1000000);
	quota_on_surveyed(&caged, &blind);
	CHECK(guests[0].ended == 1);
	finish();
}

/* What the router itself writes counts until a survey has seen it, and no survey begun before can have. */
static void test_put(void)
{
	begin(LIMIT);
	CHECK(quota_has_room(&caged, LIMIT, 1) && !quota_has_room(&caged, LIMIT + 1, 1));
	CHECK(quota_has_room(&caged, 1, LIMIT >> 14) && !quota_has_room(&caged, 1, (LIMIT >> 14) + 1));
	quota_put(&caged, LIMIT - 10, 1);
	CHECK(quota_has_room(&caged, 10, 1) && !quota_has_room(&caged, 11, 1) && due() == 20000);
	wait_for(20000);
	quota_put(&caged, 6, 2);
	found(100, 3, 10, 10);
	CHECK(caged.quota.size == 106 && caged.quota.files == 5);
	quota_on_refused(&caged);
	wait_for(250000);
	found(100, 3, 10, 10);
	CHECK(caged.quota.size == 100 && caged.quota.files == 3 && nothing_done());
	finish();
}

/* Nobody runs anything, and the disk becomes fuller. */
static void test_the_disk(void)
{
	begin(LIMIT);
	quota_on_run(&caged);
	wait_for(1000000);
	found(1, 1, 10, 10);
	wait_for(250000); /* what is free is seen for the first time */
	surveys = 0;
	if (caged.quota.asked)
		found(1, 1, 10, 10);
	for (int i = 0; i < 10; i++)
		wait_for(250000);
	if (caged.quota.asked)
		found(1, 1, 10, 10);
	surveys = 0;
	for (int i = 0; i < 10; i++)
		wait_for(250000);
	CHECK(surveys == 0);
	disk.f_bfree -= (8 << 20) / 4096;
	wait_for(250000);
	CHECK(surveys == 0); /* a little */
	disk.f_bfree -= 1;
	wait_for(250000);
	CHECK(surveys == 1);
	found(LIMIT + 1, 1, 10, 10);
	CHECK(caged.quota.step == QUOTA_NOTED);
	disk.f_ffree += 1001;
	wait_for(250000);
	CHECK(surveys == 1); /* not again so soon */
	wait_for(1000000);
	CHECK(surveys == 2);
	found(LIMIT + 2, 1, 10, 10);
	CHECK(caged.quota.step == QUOTA_KILLED && guests[0].killed == 1);
	list_remove(&guests[0].tenant.node);
	list_remove(&guests[1].tenant.node);
	wait_for(250000);
	CHECK(!cages.disk.timer.index && cages.disk.size_free == 0); /* nobody is left to ask */
	finish();
}

int main(void)
{
	test_no_limit();
	test_times();
	test_not_ready();
	test_within();
	test_over_while_busy();
	test_back_within();
	test_over_between_cells();
	test_by_files();
	test_brought_back();
	test_twice_the_limit();
	test_blind();
	test_put();
	test_the_disk();
	return check_report();
}
