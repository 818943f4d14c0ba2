/* Finds out what this host allows, by building the whole cage in a throw-away child: some hosts allow a
 * namespace and then forbid its use. The strongest way that works is taken. If that is less than the profile
 * demands, the answer says why the stronger ones failed. */
#include "steps.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define PROBE_UID 65534 /* nobody; any uid without processes will do */

/* What the child found. */
struct finding {
	int error;
	bool own_processes;
	char reason[256];
};

/* Whether RLIMIT_NPROC counts only the processes of the cage. Since Linux 5.14 each user namespace has its own
 * count. Before that, a user has one count for all namespaces. */
static bool counts_apart(void)
{
	const struct rlimit few = {3, 3};
	pid_t pid;

	if (setrlimit(RLIMIT_NPROC, &few) < 0)
		return false;
	pid = fork();
	if (pid == 0)
		_exit(0);
	return pid > 0 && waitpid(pid, NULL, 0) == pid;
}

static _Noreturn void probe_child(struct cage *cage, const char *workspace, int out)
{
	struct cage_report report = {0};
	struct finding finding = {0};

	finding.error = cage_enter(cage, workspace, (const int[]){out, -1}, &report);
	if (!finding.error)
		finding.own_processes = cage->uid_alone || ((cage->namespaces & CLONE_NEWUSER) && counts_apart());
	memcpy(finding.reason, report.reason, sizeof(finding.reason));
	if (write(out, &finding, sizeof(finding)) != sizeof(finding))
		_exit(EXIT_FAILURE);
	_exit(EXIT_SUCCESS);
}

static int probe_run(struct cage *cage, const char *workspace, struct finding *finding)
{
	int out[2], status;
	pid_t pid;

	*finding = (struct finding){.error = -ECHILD, .reason = "the probe died"};
	if (pipe2(out, O_CLOEXEC) < 0)
		return -errno;
	pid = namespaces_clone(cage, false, NULL);
	if (pid == 0)
		probe_child(cage, workspace, out[1]);
	fd_close(out[1]);
	if (pid < 0) {
		finding->error = pid;
		snprintf(finding->reason, sizeof(finding->reason), "cannot make the namespaces: %s",
			 strerror(-pid));
	} else {
		struct finding found;

		if (read(out[0], &found, sizeof(found)) == sizeof(found))
			*finding = found;
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	fd_close(out[0]);
	return finding->error;
}

static bool seccomp_there(void)
{
	/* With a NULL program prctl fails: with EFAULT if the kernel has filters, else with EINVAL. */
	return prctl(PR_SET_SECCOMP, 2 /* SECCOMP_MODE_FILTER */, NULL, 0, 0) < 0 && errno == EFAULT;
}

static enum cage_level level_of(const struct cage *cage)
{
	if (!cage->seccomp)
		return LEVEL_AUDIT_ONLY;
	if (cage->namespaces)
		return cage->memory_group ? LEVEL_STRONG : LEVEL_STRONG_NOMEM;
	if (cage->landlock_abi >= 3)
		return LEVEL_LANDLOCK;
	return cage->uid_alone ? LEVEL_UID : LEVEL_READONLY;
}

bool hides_in_vain(const struct cage *cage, char reason[static 256])
{
	for (size_t i = 0; !cage->namespaces && i < cage->places.n; i++) {
		if (cage->places.items[i].kind != PLACE_HIDE)
			continue;
		snprintf(reason, 256, "hiding %.120s, which lies in a readable directory, takes a mount namespace",
			 cage->places.items[i].path);
		return true;
	}
	return false;
}

/* Whether the profile asks for something that this kind of cage cannot give. */
static bool cannot_give(const struct cage *cage, char reason[static 256])
{
	if (cage->network == NETWORK_TCP && (cage->landlock_abi < 4 || !cage->seccomp)) {
		snprintf(reason, 256, "network = tcp: takes Landlock 4 (Linux 6.7)");
		return true;
	}
	return hides_in_vain(cage, reason);
}

/* Whether the host lets this cage be built. A host may forbid to mount /proc; then it is tried without. */
static int probe_proc(struct cage *cage, const char *workspace, struct finding *finding)
{
	char reason[sizeof(finding->reason)];
	int r;

	cage->proc = true;
	r = probe_run(cage, workspace, finding);
	if (!r || !cage->namespaces)
		return r;
	memcpy(reason, finding->reason, sizeof(reason));
	cage->proc = false;
	r = probe_run(cage, workspace, finding);
	if (r)
		memcpy(finding->reason, reason, sizeof(reason));
	return r;
}

/* Returns 0 if a cage with these namespaces can be built; then @cage says what it has. Otherwise -errno with the
 * reason. A host may also forbid to mount terminals. */
static int attempt(struct cage *cage, unsigned long namespaces, const char *workspace, struct cage_report *report)
{
	struct finding finding;
	bool again;
	int r;

	cage->namespaces = namespaces;
	cage->terminals = cage->terminals_wanted && (namespaces & CLONE_NEWNS);
	cage->own_processes = cage->uid_alone;
	cage->reached = level_of(cage);
	if (cannot_give(cage, report->reason))
		return -ENOTSUP;
	do {
		r = cage->seccomp ? seccomp_prepare(cage, report) : 0;
		if (r)
			return r;
		r = probe_proc(cage, workspace, &finding);
		again = r && cage->terminals;
		cage->terminals = cage->terminals && !r;
	} while (again);
	cage->own_processes = finding.own_processes;
	memcpy(report->reason, finding.reason, sizeof(report->reason));
	return r;
}

static int attempt_all(struct cage *cage, const char *workspace, struct cage_report *report)
{
	unsigned long all = namespaces_all & ~(cage->network == NETWORK_OFF ? 0UL : (unsigned long)CLONE_NEWNET);
	const unsigned long ways[] = {all, geteuid() == 0 ? all & ~(unsigned long)CLONE_NEWUSER : all, 0};
	char why[sizeof(report->reason)] = "";
	int r = -ENOTSUP;

	for (size_t i = 0; i < ARRAY_SIZE(ways) && r; i++) {
		if (i > 0 && ways[i] == ways[i - 1])
			continue;
		r = attempt(cage, ways[i], workspace, report);
		if (r && !why[0])
			memcpy(why, report->reason, sizeof(why));
	}
	if (r) {
		char last[sizeof(why)];

		memcpy(last, report->reason, sizeof(last));
		snprintf(report->reason, sizeof(report->reason), "%.120s; without them: %.110s", why, last);
		return r;
	}
	if (cage->reached >= cage->wanted)
		return 0;
	if (cage->reached == LEVEL_STRONG_NOMEM)
		snprintf(why, sizeof(why), "there is no memory cgroup for it");
	snprintf(report->reason, sizeof(report->reason),
		 "the profile demands level %s and this host gives %s: %.120s", level_name(cage->wanted),
		 level_name(cage->reached), why[0] ? why : "no seccomp");
	return -ENOTSUP;
}

int probe(struct cage *cage, struct cage_report *report)
{
	char workspace[] = "/tmp/lair-probe-XXXXXX";
	int r;

	(void)groups_take(cage, NULL);
	cage->uid_alone = geteuid() == 0;
	cage->uid = cage->uid_alone ? PROBE_UID : 0;
	cage->landlock_abi = landlock_abi();
	cage->seccomp = seccomp_there();
	if (!mkdtemp(workspace))
		return cage_fail(report, errno, "/tmp");
	if (cage->uid && chown(workspace, cage->uid, cage->uid) < 0)
		r = cage_fail(report, errno, "%s", workspace);
	else
		r = attempt_all(cage, workspace, report);
	(void)rmdir(workspace);
	cage->uid = 0;
	return r;
}
