/* The cost of the cage, by the clock: its steps as a warden takes them, in a small process without Python, and what
 * the kernel asks for making and taking down each kind of namespace. */
#include "cost.h"

#include "cage/cage.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define ROUNDS 300
#define COST_UID 65534

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void line_print(const char *name, uint64_t took[ROUNDS])
{
	const size_t middle = ROUNDS / 2, late = ROUNDS * 99 / 100;

	qsort(took, ROUNDS, sizeof(took[0]), compare);
	printf("%-28s %8.1f %8.1f\n", name, (double)took[middle] / 1e3, (double)took[late] / 1e3);
}

/* ---- namespaces ---- */

static const struct {
	const char *name;
	unsigned long flags;
} kinds[] = {
	{"a process, no namespace", 0},
	{"user", CLONE_NEWUSER},
	{"user, mount", CLONE_NEWUSER | CLONE_NEWNS},
	{"user, pid", CLONE_NEWUSER | CLONE_NEWPID},
	{"user, ipc", CLONE_NEWUSER | CLONE_NEWIPC},
	{"user, uts", CLONE_NEWUSER | CLONE_NEWUTS},
	{"user, cgroup", CLONE_NEWUSER | CLONE_NEWCGROUP},
	{"user, net", CLONE_NEWUSER | CLONE_NEWNET},
	{"all but net", CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP},
	{"all",
	 CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP | CLONE_NEWNET},
};

static int clone_wait(unsigned long flags)
{
	long pid = syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, 0);

	if (pid == 0)
		_exit(EXIT_SUCCESS);
	return pid < 0 ? -errno : waitpid((pid_t)pid, NULL, 0) < 0 ? -errno : 0;
}

static void namespaces_measure(void)
{
	static uint64_t took[ROUNDS];
	int r = 0;

	printf("\n%-28s %8s %8s\n", "making and ending", "p50", "p99");
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		for (size_t n = 0; !r && n < ROUNDS; n++) {
			uint64_t start = cage_clock();

			r = clone_wait(kinds[i].flags);
			took[n] = cage_clock() - start;
		}
		if (r)
			printf("%-28s %s\n", kinds[i].name, strerror(-r));
		else
			line_print(kinds[i].name, took);
		r = 0;
	}
}

/* ---- steps ---- */

struct measured {
	struct cage_report report;
	uint64_t began, cloned, entered;
	bool done;
};

static _Noreturn void enter(struct cage *cage, const char *workspace, int held, struct measured *measured)
{
	measured->cloned = cage_clock();
	if (cage_enter(cage, workspace, (const int[]){held, -1}, &measured->report))
		_exit(EXIT_FAILURE);
	measured->entered = cage_clock();
	measured->done = true;
	_exit(EXIT_SUCCESS);
}

/* The clone is a child of our parent, so we cannot wait for it. But it holds one end of a pipe, which closes when
 * the clone ends. */
static int measure(struct cage *cage, const char *workspace, struct measured *measured)
{
	uid_t uid = geteuid() == 0 ? COST_UID : 0;
	int ends[2];
	char end;
	pid_t pid;

	if (pipe(ends) < 0)
		return -errno;
	*measured = (struct measured){.began = cage_clock()};
	pid = cage_clone(cage, uid, NULL, NULL);
	if (pid == 0)
		enter(cage, workspace, ends[1], measured);
	fd_close(ends[1]);
	if (pid > 0 && read(ends[0], &end, 1) != 0)
		pid = -EIO;
	fd_close(ends[0]);
	return pid < 0 ? pid : measured->done ? 0 : -EPERM;
}

static void steps_print(const struct measured *all)
{
	static uint64_t took[ROUNDS];

	printf("%-28s %8s %8s   microseconds; level %s\n", "step", "p50", "p99", all[0].report.level);
	for (size_t n = 0; n < ROUNDS; n++)
		took[n] = all[n].cloned - all[n].began;
	line_print("clone and identity maps", took);
	for (size_t i = 0; cage_step_name(i); i++) {
		for (size_t n = 0; n < ROUNDS; n++)
			took[n] = all[n].report.step_took[i];
		line_print(cage_step_name(i), took);
	}
	for (size_t n = 0; n < ROUNDS; n++)
		took[n] = all[n].entered - all[n].began;
	line_print("all of it", took);
}

static int steps_measure(struct cage *cage)
{
	char workspace[] = "/tmp/lair-cost-XXXXXX";
	uid_t uid = geteuid() == 0 ? COST_UID : 0;
	struct measured *all =
		mmap(NULL, ROUNDS * sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int r = 0;

	if (all == MAP_FAILED || !mkdtemp(workspace))
		return -errno;
	if (uid && chown(workspace, uid, uid) < 0)
		r = -errno;
	for (size_t n = 0; !r && n < ROUNDS; n++)
		r = measure(cage, workspace, &all[n]);
	(void)rmdir(workspace);
	if (r)
		printf("the cage: %s\n", all[0].report.reason[0] ? all[0].report.reason : strerror(-r));
	else
		steps_print(all);
	return r;
}

static int cage_measure(bool terminals)
{
	const struct configure_message configure = {.profile = BYTES("cost"),
						    .text_max = 1,
						    .scratch_size = 64 << 20,
						    .memory = 1 << 30,
						    .processes = 64,
						    .terminals = terminals};
	char *const nothing[] = {NULL};
	struct cage_report report = {0};
	struct cage *cage;
	int r = cage_prepare(&cage, &configure, nothing, &report);

	if (terminals)
		printf("\nwith terminals\n");
	if (r)
		printf("the cage: %s\n", report.reason);
	else
		r = steps_measure(cage);
	return r;
}

int cost_run(void)
{
	int r = cage_measure(false);

	if (!r)
		r = cage_measure(true);
	namespaces_measure();
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}
