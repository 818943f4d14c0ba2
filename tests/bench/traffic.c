/* Notes which functions the router enters. It is preloaded into a laird that was compiled with
 * -finstrument-functions; traffic.py starts that one, maps the same file, and switches the notes on and off.
 *
 * A note is an address in the program, or a mark in the highest bits, or both. */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define NOTES_MAX (1 << 20)
#define MARK_LEFT (1ULL << 60)	/* the function returns */
#define MARK_WAITS (2ULL << 60) /* the router may sleep */
#define MARK_SENT (3ULL << 60)	/* something went to the client, which is traffic.py */

struct notes {
	uint32_t on, n;
	uint64_t all[NOTES_MAX];
};

void __cyg_profile_func_enter(void *fn, void *site);
void __cyg_profile_func_exit(void *fn, void *site);

static struct notes *notes;
static uintptr_t base;
static pid_t client;
static int (*real_wait)(int, struct epoll_event *, int, int);
static ssize_t (*real_sendmsg)(int, const struct msghdr *, int);

static int find_base(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	(void)data;
	base = info->dlpi_addr; /* the program comes first */
	return 1;
}

/* Keeper and router are one program: each process has a file of its own. */
__attribute__((constructor)) static void begin(void)
{
	const char *directory = getenv("LAIR_TRAFFIC"), *pid = getenv("LAIR_TRAFFIC_CLIENT");
	char path[4096];
	void *map;
	int fd;

	real_wait = (int (*)(int, struct epoll_event *, int, int))dlsym(RTLD_NEXT, "epoll_wait");
	real_sendmsg = (ssize_t(*)(int, const struct msghdr *, int))dlsym(RTLD_NEXT, "sendmsg");
	dl_iterate_phdr(find_base, NULL);
	if (!directory || !pid)
		return;
	client = (pid_t)strtol(pid, NULL, 10);
	snprintf(path, sizeof(path), "%s/%d", directory, getpid());
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(*notes)) < 0) {
		perror(path);
		exit(EXIT_FAILURE);
	}
	map = mmap(NULL, sizeof(*notes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	notes = map == MAP_FAILED ? NULL : map;
	close(fd);
}

static void note(uint64_t what)
{
	if (notes && __atomic_load_n(&notes->on, __ATOMIC_ACQUIRE) && notes->n < NOTES_MAX)
		notes->all[notes->n++] = what;
}

void __cyg_profile_func_enter(void *fn, void *site)
{
	(void)site;
	note((uintptr_t)fn - base);
}

void __cyg_profile_func_exit(void *fn, void *site)
{
	(void)site;
	note(MARK_LEFT | ((uintptr_t)fn - base));
}

int epoll_wait(int fd, struct epoll_event *events, int maxevents, int timeout)
{
	note(MARK_WAITS);
	return real_wait(fd, events, maxevents, timeout);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	ssize_t sent = real_sendmsg(fd, message, flags);
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (notes && sent > 0 && !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) && peer.pid == client)
		note(MARK_SENT);
	return sent;
}
