/* The cage: one list of steps, in the only order that works. Each is fatal. */
#include "steps.h"

#include "proto/clock.h"

#include <limits.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static const char *const level_names[_LEVEL_N] = {
	[LEVEL_AUDIT_ONLY] = "audit-only", [LEVEL_READONLY] = "readonly",	  [LEVEL_UID] = "uid",
	[LEVEL_LANDLOCK] = "landlock",	   [LEVEL_STRONG_NOMEM] = "strong-nomem", [LEVEL_STRONG] = "strong",
};

const char *level_name(enum cage_level level)
{
	return level_names[level];
}

int cage_fail(struct cage_report *report, int error, const char *format, ...)
{
	va_list args;
	int size;

	va_start(args, format);
	size = vsnprintf(report->reason, sizeof(report->reason), format, args);
	va_end(args);
	if (size > 0 && (size_t)size < sizeof(report->reason))
		snprintf(report->reason + size, sizeof(report->reason) - (size_t)size, ": %s", strerror(error));
	return -error;
}

int cage_fail_place(struct cage_report *report, int r, const char *path)
{
	places_explain(report->reason, sizeof(report->reason), r, path);
	return r < 0 ? r : -ESTALE;
}

void cage_guard(struct cage_report *report, const char *name)
{
	if (report->n_guards < CAGE_GUARDS_MAX)
		report->guards[report->n_guards++] = name;
}

/* ---- reading the profile ---- */

static int network_parse(struct cage *cage, struct bytes text)
{
	const char *at = text.data, *end = at ? at + text.size : at;

	if (!at || text.size == 0 || bytes_is(text, "off"))
		return 0;
	cage->network = NETWORK_HOST;
	if (bytes_is(text, "host"))
		return 0;
	if (text.size <= 4 || memcmp(at, "tcp:", 4) != 0)
		return -EINVAL;
	cage->network = NETWORK_TCP;
	for (at += 4; at < end; at++) {
		unsigned port = 0;

		for (; at < end && *at >= '0' && *at <= '9' && port <= UINT16_MAX; at++)
			port = port * 10 + (unsigned)(*at - '0');
		if (port == 0 || port > UINT16_MAX || (at < end && *at != ',') ||
		    cage->n_ports == ARRAY_SIZE(cage->ports))
			return -EINVAL;
		cage->ports[cage->n_ports++] = (uint16_t)port;
	}
	return 0;
}

static int level_parse(enum cage_level *levelp, struct bytes text)
{
	*levelp = LEVEL_READONLY; /* if the profile names no level, every level from this one on will do */
	if (text.size == 0)
		return 0;
	for (size_t i = 0; i < _LEVEL_N; i++) {
		if (bytes_is(text, level_names[i])) {
			*levelp = (enum cage_level)i;
			return 0;
		}
	}
	return -EINVAL;
}

/* If a control group counts memory, it counts the files in memory, too. They stay when an interpreter is killed for
 * its memory, so they may take only half of it. */
static uint64_t scratch_size(const struct configure_message *configure)
{
	uint64_t size = configure->scratch_size, half = configure->memory / 2;

	if (!configure->memory_group)
		return size;
	return size ? MIN(size, half) : half;
}

/* Absolute, and each name in it is that of a directory. */
static bool is_plain(const char *path)
{
	size_t n;

	for (; *path == '/'; path += 1 + n) {
		n = strcspn(path + 1, "/");
		if (n == 0 || (path[1] == '.' && (n == 1 || (n == 2 && path[2] == '.'))))
			return false;
	}
	return !*path;
}

/* The workspace is mounted at @home: nothing that a session needs may be covered by it, and nothing is made in what
 * a session may only read. */
static int home_read(struct cage *cage, struct bytes home, struct cage_report *report)
{
	const struct place *outer;
	struct stat meta;

	freep(&cage->home);
	if (home.size == 0)
		return 0;
	cage->home = strndup(home.data, home.size);
	if (!cage->home)
		return cage_fail(report, ENOMEM, "home");
	if (!is_plain(cage->home) || strlen(cage->home) != home.size)
		return cage_fail(report, EINVAL, "home = %.120s", cage->home);
	for (size_t i = 0; i < cage->places.n; i++)
		if (strcmp(cage->places.items[i].path, "/") != 0 &&
		    path_within(cage->places.items[i].path, cage->home))
			return cage_fail(report, EINVAL, "home = %.100s: %.100s lies in it", cage->home,
					 cage->places.items[i].path);
	outer = places_find(&cage->places, cage->home, home.size);
	if (!outer || outer->kind == PLACE_HIDE || outer->kind == PLACE_SCRATCH)
		return 0;
	if (outer->kind == PLACE_READ && lstat(cage->home, &meta) == 0 && S_ISDIR(meta.st_mode))
		return 0;
	return cage_fail(report, EINVAL, "home = %.100s: it cannot be made in %.100s", cage->home, outer->path);
}

static int configure_read(struct cage *cage, const struct configure_message *configure, char *const language_dirs[],
			  struct cage_report *report)
{
	char culprit[PATH_MAX];
	int r;

	cage->subprocess = configure->subprocess;
	cage->terminals_wanted = configure->terminals;
	cage->memory = configure->memory;
	cage->processes = configure->processes;
	cage->open_files = configure->open_files;
	cage->file_size = configure->file_size;
	cage->memory_group = configure->memory_group;
	cage->processes_group = configure->processes_group;
	cage->cpu_group = configure->cpu_group;
	cage->scratch_size = scratch_size(configure);
	r = network_parse(cage, configure->network);
	if (r)
		return cage_fail(report, -r, "network");
	r = level_parse(&cage->wanted, configure->level);
	if (r)
		return cage_fail(report, -r, "level");
	r = places_init(&cage->places, configure, language_dirs, culprit, sizeof(culprit));
	return r ? cage_fail_place(report, r, culprit) : home_read(cage, configure->home, report);
}

/* ---- the template's part ---- */

static struct cage *cage_free(struct cage *cage)
{
	places_deinit(&cage->places);
	free(cage->home);
	free(cage->directory);
	free(cage->filter.filter);
	free(cage);
	return NULL;
}

int cage_prepare(struct cage **cagep, const struct configure_message *configure, char *const language_dirs[],
		 struct cage_report *report)
{
	struct cage *cage = calloc(1, sizeof(*cage));
	int r;

	if (!cage)
		return cage_fail(report, ENOMEM, "the cage");
	r = configure_read(cage, configure, language_dirs, report);
	if (!r)
		r = privileges_prepare(report);
	if (!r)
		r = limits_prepare(cage);
	if (!r)
		r = descriptors_prepare(cage);
	mounts_prepare(cage);
	if (!r)
		r = probe(cage, report);
	if (r) {
		cage_free(cage);
		return r;
	}
	*cagep = cage;
	return 0;
}

int cage_differ(struct cage *cage, const struct warden_message *warden, const struct configure_message *configure,
		char *const language_dirs[], struct cage_report *report)
{
	struct configure_message differing = *configure;
	uint64_t half = warden->memory / 2;
	char culprit[PATH_MAX];
	int r;

	cage->directory = warden->directory.size ? strndup(warden->directory.data, warden->directory.size) : NULL;
	if (warden->directory.size && !cage->directory)
		return cage_fail(report, ENOMEM, "the directory");
	if (!warden->places.data)
		return 0;
	differing.places = warden->places;
	cage->memory = warden->memory;
	if (cage->memory_group && half && (!cage->scratch_size || cage->scratch_size > half))
		cage->scratch_size = half;
	places_deinit(&cage->places);
	r = places_init(&cage->places, &differing, language_dirs, culprit, sizeof(culprit));
	if (r)
		return cage_fail_place(report, r, culprit);
	return hides_in_vain(cage, report->reason) ? -ENOTSUP : home_read(cage, warden->home, report);
}

int cage_prepare_again(struct cage *cage)
{
	int r = limits_prepare(cage);

	return r ? r : descriptors_prepare(cage);
}

pid_t cage_clone(struct cage *cage, uid_t uid, const int *groups, int *pidfdp)
{
	int r;

	if (pidfdp)
		*pidfdp = -1;
	if (geteuid() == 0 ? uid == 0 : uid != 0 && uid != geteuid())
		return -EPERM;
	cage->uid = uid;
	r = groups_take(cage, groups);
	return r ? r : namespaces_clone(cage, true, pidfdp);
}

/* ---- the warden's part ---- */

/* In a file system of its own the session finds its workspace where the profile says, and under no other path. */
static int workspace_place(struct cage *cage, struct cage_report *report)
{
	bool moves = cage->home && (cage->namespaces & CLONE_NEWNS);
	int r;

	if (moves && path_within(cage->workspace, cage->home))
		return cage_fail(report, EINVAL, "home = %.100s: the workspaces lie in it", cage->home);
	r = places_add(&cage->places, moves ? cage->home : cage->workspace, PLACE_WRITE,
		       moves ? cage->workspace : NULL);
	if (r)
		return cage_fail(report, -r, "the workspace");
	if (moves)
		cage->workspace = cage->home;
	return 0;
}

/* The directories beside the session's own belong to other sessions. */
static int workspace_add(struct cage *cage, struct cage_report *report)
{
	char siblings[PATH_MAX];
	const struct place *outer;
	char *slash;
	int r;

	snprintf(siblings, sizeof(siblings), "%s", cage->workspace);
	slash = strrchr(siblings, '/');
	if (cage->workspace[0] != '/' || slash == siblings)
		return cage_fail(report, EINVAL, "the workspace %s", cage->workspace);
	*slash = '\0';
	outer = places_find(&cage->places, siblings, strlen(siblings));
	if (outer && (outer->kind == PLACE_READ || outer->kind == PLACE_WRITE)) {
		if (!(cage->namespaces & CLONE_NEWNS))
			return cage_fail(report, EPERM, "the workspaces lie in %s, which sessions may read",
					 outer->path);
		r = places_add(&cage->places, siblings, PLACE_HIDE, NULL);
		if (r)
			return cage_fail(report, -r, "the workspace");
	}
	return workspace_place(cage, report);
}

/* In a file system of its own, a session sees only its own user and, without a network, only its own host. */
static int files_add(struct cage *cage, struct cage_report *report)
{
	unsigned uid = cage->uid ? cage->uid : geteuid(), gid = cage->uid ? cage->uid : getegid();
	char passwd[PATH_MAX + 256], group[128];
	int r = 0;

	if (!(cage->namespaces & CLONE_NEWNS))
		return 0;
	snprintf(passwd, sizeof(passwd),
		 "session:x:%u:%u::%s:/bin/sh\nnobody:x:65534:65534:the host's users:/nonexistent:/bin/false\n",
		 uid, gid, cage->workspace);
	snprintf(group, sizeof(group), "session:x:%u:\nnogroup:x:65534:\n", gid);
	r = places_add(&cage->places, "/etc/passwd", PLACE_TEXT, passwd);
	if (!r)
		r = places_add(&cage->places, "/etc/group", PLACE_TEXT, group);
	if (!r)
		r = places_add(&cage->places, "/etc/nsswitch.conf", PLACE_TEXT,
			       "passwd: files\ngroup: files\nhosts: files dns\n");
	if (!r && cage->network == NETWORK_OFF)
		r = places_add(&cage->places, "/etc/hosts", PLACE_TEXT, "127.0.0.1 localhost\n::1 localhost\n");
	return r ? cage_fail(report, -r, "the session's own files") : 0;
}

/* The session must not find the keys of other processes. */
static int keyring_enter(struct cage *cage, struct cage_report *report)
{
	(void)syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL); /* not every kernel has keys */
	return 0;
}

static int workspace_enter(struct cage *cage, struct cage_report *report)
{
	umask(077);
	if (cage->directory && chdir(cage->directory) < 0)
		return cage_fail(report, errno, "%s", cage->directory);
	return chdir(cage->workspace) < 0 ? cage_fail(report, errno, "%s", cage->workspace) : 0;
}

static int identity_enter(struct cage *cage, struct cage_report *report)
{
	return cage->namespaces & CLONE_NEWUSER ? 0 : privileges_become(cage, report);
}

static const struct step {
	const char *name;
	int (*take)(struct cage *cage, struct cage_report *report);
} steps[] = {
	{"workspace", workspace_add},
	{"own files", files_add},
	{"namespaces", namespaces_enter},
	{"keyring", keyring_enter},
	{"mounts", mounts_enter}, /* in a user namespace this step also takes on the session's user */
	{"limits", limits_enter},
	{"bounding set", privileges_bound},	/* while the warden may still change it */
	{"identity", identity_enter},		/* after the mounts, which may need root's powers */
	{"privileges", privileges_drop},	/* sets no_new_privs, too, which Landlock and seccomp need */
	{"working directory", workspace_enter}, /* with the rights of the session only */
	{"landlock", landlock_enter},		/* forbids all mounting */
	{"seccomp", seccomp_enter},		/* forbids everything above */
};

_Static_assert(ARRAY_SIZE(steps) < CAGE_STEPS_MAX, "raise CAGE_STEPS_MAX");

/* The time before the first step is counted as one more step. */
const char *cage_step_name(size_t i)
{
	if (i == ARRAY_SIZE(steps))
		return "groups, descriptors";
	return i < ARRAY_SIZE(steps) ? steps[i].name : NULL;
}

uint64_t cage_clock(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

int cage_enter(struct cage *cage, const char *workspace, const int *keep, struct cage_report *report)
{
	uint64_t start = cage_clock(), end;
	int r = 0;

	cage->workspace = workspace;
	setsid();
	r = groups_enter(cage, report);
	if (!r)
		r = descriptors_close(cage, keep, report);
	end = cage_clock();
	report->step_took[ARRAY_SIZE(steps)] = end - start;
	for (size_t i = 0; !r && i < ARRAY_SIZE(steps); i++) {
		start = end;
		r = steps[i].take(cage, report);
		end = cage_clock();
		report->step_took[i] = end - start;
	}
	report->level = level_names[cage->reached];
	return r;
}

const char *cage_workspace(const struct cage *cage)
{
	return cage->workspace;
}

const char *cage_scratch(const struct cage *cage)
{
	return cage->namespaces & CLONE_NEWNS ? "/tmp" : "";
}

bool cage_sets_looks(const struct cage *cage)
{
	return (cage->namespaces & CLONE_NEWNS) || !cage->seccomp;
}

bool cage_has_uid_alone(const struct cage *cage)
{
	return cage->uid_alone;
}

bool cage_starts_programs(const struct cage *cage)
{
	return cage->subprocess;
}

bool cage_shows_threads(const struct cage *cage)
{
	return cage->namespaces & CLONE_NEWNS;
}

bool cage_has_terminals(const struct cage *cage)
{
	return cage->terminals;
}

/* A directory that is there no longer leaves it where it is. */
void cage_start_over(const struct cage *cage)
{
	if (cage->directory)
		(void)!chdir(cage->directory);
}

/* Only once for an interpreter and its forks: the kernel allows few layers of Landlock, and they may be elsewhere
 * by then. */
static int enclose(const struct cage *cage)
{
	bool scoped = cage->landlock_abi >= 6, alone = cage->namespaces & CLONE_NEWPID;
	static bool enclosed;
	int r = 0;

	if (enclosed)
		return 0;
	enclosed = true;
	cage_start_over(cage);
	if (scoped && !alone)
		r = landlock_enter_interpreter();
	return r ? r : seccomp_enter_interpreter(cage, scoped || alone);
}

int cage_enter_interpreter(const struct cage *cage)
{
	int r = enclose(cage);

	if (r)
		return r;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return -errno;
	umask(077);
	return setpgid(0, 0) < 0 ? -errno : 0;
}
