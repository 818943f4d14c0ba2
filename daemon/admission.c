/* The accept4() that libzmq calls: one thread, its only one for I/O, so what it keeps needs no lock. What it
 * refuses it closes at once, and libzmq hears of a connection that was aborted, which it takes lightly. A
 * descriptor is kept in reserve, for closing by it what could not be accepted otherwise: or the listening socket
 * would be ready for ever.
 *
 * Nobody tells when libzmq closes a connection. An entry is known by the socket's inode, and looked at again when
 * its user has too many. */
#include "admission.h"

#include "proto/channel.h"
#include "proto/clock.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define ANCESTORS_MAX 64
/* Between two looks at all that are known. */
#define LOOK_MS 100

struct connection {
	int fd; /* where it is in the table: -1, none */
	uid_t uid;
	ino_t inode;
};

static struct {
	struct connection *table; /* by descriptor */
	size_t size, n, n_max;
	int reserve;
	uint64_t looked_ms;
} known = {.reserve = -1};

static pid_t keeper;
static atomic_uint_least64_t per_user_max = UINT64_MAX, n_refused;
static _Atomic(const char *) last_reason = "";

static int reserve_open(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void admission_begin(pid_t keeper_pid)
{
	struct rlimit limit;

	keeper = keeper_pid;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		limit.rlim_cur = 1024;
	known.n_max = (size_t)MIN(limit.rlim_cur / 2, (rlim_t)1 << 20);
	known.reserve = reserve_open();
}

void admission_limit(uint64_t per_user)
{
	atomic_store(&per_user_max, per_user);
}

uint64_t admission_refused(const char **whyp)
{
	*whyp = atomic_load(&last_reason);
	return atomic_load(&n_refused);
}

static int refuse(int fd, const char *why)
{
	fd_close(fd);
	atomic_store(&last_reason, why);
	atomic_fetch_add(&n_refused, 1);
	errno = ECONNABORTED;
	return -1;
}

/* ---- those that are known ---- */

static void entry_clear(struct connection *entry)
{
	known.n -= entry->fd >= 0;
	entry->fd = -1;
}

static bool alive(const struct connection *entry)
{
	struct stat status;

	return entry->fd >= 0 && fstat(entry->fd, &status) == 0 && status.st_ino == entry->inode;
}

static void look_again(void)
{
	if (clock_ms() - known.looked_ms < LOOK_MS)
		return;
	known.looked_ms = clock_ms();
	for (size_t i = 0; i < known.size; i++)
		if (!alive(&known.table[i]))
			entry_clear(&known.table[i]);
}

static uint64_t count_of(uid_t uid)
{
	uint64_t n = 0;

	for (size_t i = 0; i < known.size; i++)
		n += known.table[i].fd >= 0 && known.table[i].uid == uid;
	return n;
}

static bool table_grow(int fd)
{
	size_t size = MAX((size_t)fd + 1, known.size * 2);
	struct connection *grown = realloc(known.table, size * sizeof(*grown));

	if (!grown)
		return false;
	for (size_t i = known.size; i < size; i++)
		grown[i].fd = -1;
	known.table = grown;
	known.size = size;
	return true;
}

static bool remember(int fd, uid_t uid)
{
	struct stat status;

	if (fstat(fd, &status) < 0 || ((size_t)fd >= known.size && !table_grow(fd)))
		return false;
	entry_clear(&known.table[fd]);
	known.table[fd] = (struct connection){.fd = fd, .uid = uid, .inode = status.st_ino};
	known.n++;
	return true;
}

/* ---- who it is ---- */

static pid_t parent_of(pid_t pid)
{
	char path[32], text[512], *after;
	ssize_t n;
	int fd, parent;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	fd_close(fd);
	text[MAX(n, 0)] = '\0';
	after = strrchr(text, ')');
	return after && sscanf(after + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

/* Wardens are the keeper's children, and a cage that is worth its name lets nobody out of reach of its warden. */
static bool is_caged(pid_t pid)
{
	for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
		if (pid == keeper)
			return true;
		pid = parent_of(pid);
	}
	return false;
}

static const char *why_not(int fd, uid_t *uidp)
{
	socklen_t size = sizeof(struct ucred);
	struct ucred peer;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return "nobody knows whose it is";
	*uidp = peer.uid;
	if (is_caged(peer.pid))
		return "it came out of a cage";
	if (known.n >= known.n_max || count_of(peer.uid) >= atomic_load(&per_user_max))
		look_again();
	if (known.n >= known.n_max)
		return "there are as many as the limit of descriptors allows";
	if (count_of(peer.uid) >= atomic_load(&per_user_max))
		return "its user has as many as connections_per_uid allows";
	return NULL;
}

/* ---- what libzmq calls ---- */

static int accept_by_reserve(int listener)
{
	int fd, error;

	known.reserve = fd_close(known.reserve);
	fd = (int)syscall(SYS_accept4, listener, NULL, NULL, SOCK_CLOEXEC);
	error = errno;
	fd_close(fd);
	known.reserve = reserve_open();
	if (fd >= 0)
		return refuse(-1, "there are no descriptors left");
	/* Nobody was there. Without a reserve there is no telling, and nothing to be done. */
	errno = error == EMFILE ? ENFILE : error;
	return -1;
}

int accept4(int fd, struct sockaddr *addr, socklen_t *addr_len, int flags)
{
	int peer = (int)syscall(SYS_accept4, fd, addr, addr_len, flags);
	const char *why;
	uid_t uid = 0;

	if (peer < 0)
		return errno == EMFILE || errno == ENFILE ? accept_by_reserve(fd) : -1;
	channel_refuse_fds(peer);
	why = why_not(peer, &uid);
	if (!why && !remember(peer, uid))
		why = "there was no memory for it";
	return why ? refuse(peer, why) : peer;
}
