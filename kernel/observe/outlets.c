/* A copy shares every descriptor with the state that it was made of. If it kept an outlet, closing it in that
 * state would have no effect: a child would wait for ever for the end of its input, a peer for the end of the
 * connection, and the port would stay taken. So a copy keeps none. It loses nothing: two states cannot talk over
 * one connection, and the child dies with the state that started it. A pipe with both ends here belongs to the
 * state, with its content. The end that is written to is parked nevertheless: its number stands for the other end
 * meanwhile, from which the kernel makes it again. Otherwise who reads up to the end of the pipe, as does a thread
 * that starts a program, would wait for ever.
 *
 * poll tells which numbers are open, since not every cage has a /proc. */
#include "outlets.h"

#include "proto/base.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* How many numbers are looked at, and how many at once: their array must fit on the stack. */
#define NUMBERS_MAX 4096
#define AT_ONCE 128

/* If a state has more outlets, its copies keep them all. */
#define OUTLETS_MAX 512

struct outlet {
	int fd, mode; /* O_RDONLY, O_WRONLY or O_RDWR */
	bool socket;
	dev_t device;
	ino_t inode;
};

/* The end of a pipe that this copy would write to. */
struct parked {
	int fd, flags;
	dev_t device;
	ino_t inode;
};

static struct {
	struct outlet all[OUTLETS_MAX + 1];
	size_t n;
	struct parked parked[OUTLETS_MAX];
	size_t n_parked;
} self;

static int option(int fd, int name)
{
	int value = -1;
	socklen_t size = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, name, &value, &size) < 0 ? -1 : value;
}

static bool is_network(int fd)
{
	int domain = option(fd, SO_DOMAIN);

	return domain == AF_INET || domain == AF_INET6;
}

static void look_at(int fd)
{
	struct stat status;

	if (fstat(fd, &status) < 0 || self.n == ARRAY_SIZE(self.all))
		return;
	if (S_ISFIFO(status.st_mode) || (S_ISSOCK(status.st_mode) && is_network(fd)))
		self.all[self.n++] = (struct outlet){.fd = fd,
						     .mode = fcntl(fd, F_GETFL) & O_ACCMODE,
						     .socket = S_ISSOCK(status.st_mode),
						     .device = status.st_dev,
						     .inode = status.st_ino};
}

static void find(void)
{
	struct pollfd some[AT_ONCE];
	struct rlimit limit;
	int end;

	self.n = 0;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	end = (int)MIN(limit.rlim_cur, NUMBERS_MAX);
	for (int first = STDERR_FILENO + 1; first < end; first += AT_ONCE) {
		int n = MIN(AT_ONCE, end - first);

		for (int i = 0; i < n; i++)
			some[i] = (struct pollfd){.fd = first + i};
		if (poll(some, (nfds_t)n, 0) < 0)
			return;
		for (int i = 0; i < n; i++)
			if (!(some[i].revents & POLLNVAL))
				look_at(first + i);
	}
}

static bool ends_here(const struct outlet *outlet)
{
	for (size_t i = 0; i < self.n; i++) {
		const struct outlet *other = &self.all[i];

		if (other->inode == outlet->inode && other->device == outlet->device &&
		    (other->mode == O_RDWR || other->mode != outlet->mode))
			return true;
	}
	return false;
}

static void move_to(int from, int fd)
{
	if (from >= 0)
		(void)dup3(from, fd, fcntl(fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0);
}

static int dead_end(int mode)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	fd_close(ends[mode == O_RDONLY]);
	return ends[mode != O_RDONLY];
}

static int unconnected(int fd)
{
	int nonblocking = fcntl(fd, F_GETFL) & O_NONBLOCK ? SOCK_NONBLOCK : 0;

	return socket(option(fd, SO_DOMAIN), option(fd, SO_TYPE) | SOCK_CLOEXEC | nonblocking,
		      option(fd, SO_PROTOCOL));
}

static void cut(const struct outlet *outlet)
{
	int other = outlet->socket ? unconnected(outlet->fd) : dead_end(outlet->mode);

	move_to(other, outlet->fd);
	fd_close(other);
}

/* ---- pipes with both ends here ---- */

static const struct outlet *read_end_of(const struct outlet *outlet)
{
	for (size_t i = 0; i < self.n; i++) {
		const struct outlet *other = &self.all[i];

		if (!other->socket && other->mode == O_RDONLY && other->inode == outlet->inode &&
		    other->device == outlet->device)
			return other;
	}
	return NULL;
}

/* Needs a /proc. It is no act of the session's. */
static int write_end(int fd, int flags)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | flags | O_CLOEXEC);
}

static void park(const struct outlet *outlet)
{
	const struct outlet *other = read_end_of(outlet);
	int flags = fcntl(outlet->fd, F_GETFL) & (O_NONBLOCK | O_DIRECT);
	int again = other ? write_end(other->fd, flags) : -1;

	if (again < 0 || self.n_parked == ARRAY_SIZE(self.parked)) {
		fd_close(again);
		return;
	}
	fd_close(again);
	self.parked[self.n_parked++] =
		(struct parked){.fd = outlet->fd, .flags = flags, .device = outlet->device, .inode = outlet->inode};
	move_to(other->fd, outlet->fd);
}

static bool is_parked(const struct outlet *outlet)
{
	for (size_t i = 0; i < self.n_parked; i++)
		if (self.parked[i].inode == outlet->inode && self.parked[i].device == outlet->device)
			return true;
	return false;
}

void outlets_restore(void)
{
	for (size_t i = 0; i < self.n_parked; i++) {
		int fd = write_end(self.parked[i].fd, self.parked[i].flags);

		move_to(fd, self.parked[i].fd);
		fd_close(fd);
	}
	self.n_parked = 0;
}

void outlets_cut(void)
{
	find();
	if (self.n > OUTLETS_MAX)
		return;
	for (size_t i = 0; i < self.n; i++)
		if (self.all[i].socket || (!is_parked(&self.all[i]) && !ends_here(&self.all[i])))
			cut(&self.all[i]);
	for (size_t i = 0; i < self.n; i++)
		if (!self.all[i].socket && self.all[i].mode == O_WRONLY && ends_here(&self.all[i]))
			park(&self.all[i]);
}
