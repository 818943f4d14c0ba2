/* Landlock: the second lock on every file; without a mount namespace it is the first. Invariant: every right
 * that the running kernel knows is handled, so an access that no rule grants is refused. Rules can only add, so
 * a hidden place must not lie in a granted one unless a mount covers it. */
#include "steps.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* The headers of older distributions stop at ABI 2. */
#define FS_TRUNCATE (1ULL << 14)
#define FS_IOCTL_DEV (1ULL << 15)
#define NET_BIND_TCP (1ULL << 0)
#define NET_CONNECT_TCP (1ULL << 1)
#define SCOPE_ABSTRACT_UNIX (1ULL << 0)
#define SCOPE_SIGNAL (1ULL << 1)
#define RULE_NET_PORT 2
#define RESTRICT_LOG_OFF (1U << 0 | 1U << 2) /* log no refusals of this layer and of later layers */

struct ruleset_attr {
	uint64_t fs, net, scoped;
};

struct port_attr {
	uint64_t access, port;
};

#define FS_READ (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
/* Everything but making devices and sockets. */
#define FS_CHANGE                                                                                                  \
	(LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |          \
	 LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_FIFO |                \
	 LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER | FS_TRUNCATE)
#define FS_OF_FILES                                                                                                \
	(LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | FS_TRUNCATE | \
	 FS_IOCTL_DEV)

/* All rights that each ABI knows. */
static const struct ruleset_attr handled[] = {
	[1] = {.fs = (1ULL << 13) - 1},
	[2] = {.fs = (1ULL << 14) - 1},
	[3] = {.fs = (1ULL << 15) - 1},
	[4] = {.fs = (1ULL << 15) - 1, .net = NET_BIND_TCP | NET_CONNECT_TCP},
	[5] = {.fs = (1ULL << 16) - 1, .net = NET_BIND_TCP | NET_CONNECT_TCP},
	[6] = {.fs = (1ULL << 16) - 1,
	       .net = NET_BIND_TCP | NET_CONNECT_TCP,
	       .scoped = SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL},
};

int landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	return abi < 0 ? 0 : (int)abi;
}

static size_t attr_size(int abi)
{
	return abi >= 6 ? sizeof(struct ruleset_attr) : abi >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
}

static int grant_opened(int ruleset, int fd, uint64_t access)
{
	struct landlock_path_beneath_attr rule = {.allowed_access = access, .parent_fd = fd};
	struct stat meta;

	if (fstat(fd, &meta) < 0)
		return -errno;
	if (!S_ISDIR(meta.st_mode))
		rule.allowed_access &= FS_OF_FILES;
	if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0)
		return -errno;
	return 0;
}

static int grant_path(int ruleset, const char *path, uint64_t access)
{
	_cleanup_(fd_closep) int fd = open(path, O_PATH | O_CLOEXEC);

	return fd < 0 ? -errno : grant_opened(ruleset, fd, access);
}

static int grant_found(int ruleset, const struct place *place, uint64_t access)
{
	_cleanup_(fd_closep) int fd = -1;
	int r = place_open(&fd, place);

	return r ? r : grant_opened(ruleset, fd, access);
}

static const char *const device_names[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"};

static int grant_devices(int ruleset, uint64_t all)
{
	int r = 0;

	for (size_t i = 0; !r && i < ARRAY_SIZE(device_names); i++) {
		r = grant_path(ruleset, device_names[i],
			       (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE) & all);
		if (r == -ENOENT)
			r = 0;
	}
	return r;
}

static int grant_terminals(int ruleset, uint64_t all)
{
	uint64_t device = (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | FS_IOCTL_DEV) & all;
	int r = grant_path(ruleset, "/dev/pts", device | (LANDLOCK_ACCESS_FS_READ_DIR & all));

	return r ? r : grant_path(ruleset, "/dev/tty", device);
}

/* Without a mount namespace, /tmp, /dev/shm and /proc are the host's and hold files of other processes, so nothing
 * in them is granted. */
static int grant_place(const struct cage *cage, int ruleset, const struct place *place, uint64_t all)
{
	bool own = cage->namespaces != 0;

	switch (place->kind) {
	case PLACE_READ:
		return grant_found(ruleset, place, FS_READ & all);
	case PLACE_WRITE:
		return grant_found(ruleset, place, (FS_READ | FS_CHANGE) & all);
	case PLACE_DEVICES:
		return grant_devices(ruleset, all);
	case PLACE_SCRATCH:
	case PLACE_SHM:
		return own ? grant_path(ruleset, place->path, (FS_READ | FS_CHANGE) & all) : 0;
	case PLACE_PROC:
		return own && cage->proc ? grant_path(ruleset, place->path, FS_READ & ~1ULL & all) : 0;
	case PLACE_TERMINALS:
		return cage->terminals ? grant_terminals(ruleset, all) : 0;
	case PLACE_TEXT:
		return own ? grant_path(ruleset, place->path, LANDLOCK_ACCESS_FS_READ_FILE) : 0;
	case PLACE_HIDE:
	case PLACE_LINK:
	case _PLACE_KIND_N:
		break;
	}
	return 0;
}

static int grant_ports(const struct cage *cage, int ruleset)
{
	for (size_t i = 0; i < cage->n_ports; i++) {
		struct port_attr rule = {.access = NET_CONNECT_TCP, .port = cage->ports[i]};

		if (syscall(SYS_landlock_add_rule, ruleset, RULE_NET_PORT, &rule, 0) < 0)
			return -errno;
	}
	return 0;
}

int landlock_enter(struct cage *cage, struct cage_report *report)
{
	int abi = cage->landlock_abi, r = 0;
	_cleanup_(fd_closep) int ruleset = -1;
	struct ruleset_attr attr;

	if (abi <= 0)
		return 0;
	attr = handled[MIN(abi, (int)ARRAY_SIZE(handled) - 1)];
	if (cage->network == NETWORK_HOST)
		attr.net = 0;
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, attr_size(abi), 0);
	if (ruleset < 0)
		return cage_fail(report, errno, "cannot make a Landlock ruleset");
	for (size_t i = 0; !r && i < cage->places.n; i++) {
		r = grant_place(cage, ruleset, &cage->places.items[i], attr.fs);
		if (r > 0)
			return cage_fail_place(report, r, cage->places.items[i].path);
		if (r)
			return cage_fail(report, -r, "Landlock: %s", cage->places.items[i].path);
	}
	if (attr.net)
		r = grant_ports(cage, ruleset);
	if (r)
		return cage_fail(report, -r, "Landlock: the ports");
	/* From ABI 7 on the kernel writes a line in the host's audit log for each refusal. A session must not be
	 * able to fill that log. */
	if (syscall(SYS_landlock_restrict_self, ruleset, abi >= 7 ? RESTRICT_LOG_OFF : 0) < 0)
		return cage_fail(report, errno, "cannot enter the Landlock domain");
	snprintf(cage->landlock_name, sizeof(cage->landlock_name), "landlock:%d", cage->landlock_abi);
	cage_guard(report, cage->landlock_name);
	return 0;
}

/* A layer that does not handle LANDLOCK_ACCESS_FS_REFER forbids moving files between directories. So this layer
 * handles it, and grants it everywhere. */
int landlock_enter_interpreter(void)
{
	const struct ruleset_attr attr = {.fs = LANDLOCK_ACCESS_FS_REFER, .scoped = SCOPE_SIGNAL};
	_cleanup_(fd_closep) int ruleset = -1;
	int r;

	ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, attr_size(6), 0);
	if (ruleset < 0)
		return -errno;
	r = grant_path(ruleset, "/", LANDLOCK_ACCESS_FS_REFER);
	if (!r && syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		r = -errno;
	return r;
}
