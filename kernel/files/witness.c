/* The witness. A directory is watched before it is read, so none that is made meanwhile is missed. A new directory,
 * and a queue that has overflowed, end the watch: the next question begins it anew, and the count goes up. */
#include "witness.h"

#include "walk.h"

#include "proto/clock.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Each pins a little of the kernel's memory, and a user may have only so many. */
#define DIRECTORIES_MAX 2048
/* How many entries are seen in one step. */
#define STEP 1000
/* When a tree could not be watched, or was not for long: how long until it is tried again. */
#define AGAIN_MS 5000
/* How long an interpreter waits for an answer. */
#define WAIT_MS 50

#define WATCHED                                                                                                    \
	(IN_CREATE | IN_DELETE | IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE | IN_OPEN | IN_MOVED_FROM | IN_MOVED_TO |  \
	 IN_ONLYDIR | IN_EXCL_UNLINK)

struct page {
	_Atomic uint32_t asked, answered; /* so many questions */
	_Atomic uint32_t wanted;	  /* the count is */
	_Atomic uint32_t count, strangers;
};

static struct {
	struct page *page;
	int bell, home, watch; /* -1: none */
	bool elsewhere;	       /* this interpreter works in another tree */
	uint32_t count;	       /* never 0 */
	bool whole;	       /* all directories are watched */
	struct walk walk;
	unsigned directories;
	uint64_t not_before; /* in ms */
} witness = {.bell = -1, .home = -1, .watch = -1, .walk = WALK_NONE};

void witness_init(void)
{
	void *page = mmap(NULL, sizeof(struct page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return;
	witness.page = page;
	witness.count = 1;
	witness.home = open(".", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	witness.bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

int witness_bell(void)
{
	return witness.bell;
}

static void count_up(void)
{
	if (++witness.count == 0)
		witness.count = 1;
}

/* ---- watching ---- */

static void watch_end(void)
{
	walk_end(&witness.walk);
	witness.watch = fd_close(witness.watch);
	witness.whole = false;
}

static void watch_fail(void)
{
	watch_end();
	witness.not_before = clock_ms() + AGAIN_MS;
}

/* inotify takes only a path. So the warden goes there, where "." can be nothing else. */
static int watch_directory(struct walk *walk)
{
	int r = 0;

	if (fchdir(walk->fd) < 0)
		return -errno;
	if (inotify_add_watch(witness.watch, ".", WATCHED) < 0)
		r = -errno;
	return fchdir(witness.home) < 0 ? -errno : r;
}

static int see(struct walk *walk, const char *name, unsigned char type)
{
	if (type != DT_DIR || walk_is_branches(walk, name))
		return WALK_ON;
	return ++witness.directories < DIRECTORIES_MAX ? WALK_INTO : -EMFILE;
}

static int directory_lost(struct walk *walk, const char *path, int r)
{
	return r == -ENOENT || r == -ENOTDIR ? 0 : r; /* it has been removed since */
}

static void watch_begin(void)
{
	static const struct walk_visitor visitor = {watch_directory, see, directory_lost};

	watch_end();
	witness.directories = 0;
	witness.watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (witness.watch < 0 || walk_begin(&witness.walk, witness.home, 0, &visitor, NULL))
		watch_fail();
}

bool witness_busy(void)
{
	return walk_busy(&witness.walk);
}

void witness_step(void)
{
	int r = walk_step(&witness.walk, STEP);

	if (r < 0) {
		watch_fail();
	} else if (r == 0) {
		walk_end(&witness.walk);
		witness.whole = true;
		count_up(); /* nobody knows what happened before */
	}
}

/* ---- what happens ---- */

static bool is_news(const struct inotify_event *event)
{
	return !(event->mask & IN_IGNORED) && (event->mask & (IN_OPEN | IN_ISDIR)) != (IN_OPEN | IN_ISDIR);
}

/* Directories that nobody watches. */
static bool is_beyond(const struct inotify_event *event)
{
	return (event->mask & IN_Q_OVERFLOW) ||
	       ((event->mask & IN_ISDIR) && (event->mask & (IN_CREATE | IN_MOVED_TO)));
}

/* Those of @events may be the work of a cell. */
static void take(uint32_t events_of_cells)
{
	static char events[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
	bool news = false, beyond = false;
	ssize_t n;

	while (witness.watch >= 0 && (n = read(witness.watch, events, sizeof(events))) > 0)
		for (const char *at = events; at < events + n;) {
			const struct inotify_event *event = (const void *)at;

			news |= (event->mask & events_of_cells) && is_news(event);
			beyond |= is_beyond(event);
			at += sizeof(*event) + event->len;
		}
	if (news || beyond)
		count_up();
	if (beyond)
		watch_end();
}

void witness_take(void)
{
	take(UINT32_MAX);
}

void witness_forgive(bool reading)
{
	take(reading ? ~(uint32_t)(IN_OPEN | IN_ISDIR) : 0);
}

void witness_answer(bool strangers)
{
	uint32_t asked;
	uint64_t rings;

	if (read(witness.bell, &rings, sizeof(rings)) < 0)
		return;
	asked = atomic_load(&witness.page->asked);
	witness_take();
	atomic_store(&witness.page->count, witness.whole ? witness.count : 0);
	atomic_store(&witness.page->strangers, strangers);
	atomic_store(&witness.page->answered, asked);
	syscall(SYS_futex, &witness.page->answered, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	if (atomic_exchange(&witness.page->wanted, 0) && !witness.whole && !witness_busy() &&
	    clock_ms() >= witness.not_before)
		watch_begin();
}

/* ---- asking ---- */

void witness_move(int floor)
{
	int bell = witness.bell < 0 ? -1 : fcntl(witness.bell, F_DUPFD_CLOEXEC, floor);

	fd_close(witness.bell);
	witness.bell = bell;
	witness.home = fd_close(witness.home);
	watch_end();
}

void witness_leave(void)
{
	witness.elsewhere = true;
}

/* A cell may have closed it, and something else may have its number. */
static bool bell_ring(void)
{
	const uint64_t once = 1;
	struct stat status;

	return witness.bell >= 0 && fstat(witness.bell, &status) == 0 && (status.st_mode & S_IFMT) == 0 &&
	       write(witness.bell, &once, sizeof(once)) == sizeof(once);
}

/* Whether there is an answer. */
static bool ask(void)
{
	uint64_t until = clock_ms() + WAIT_MS;
	uint32_t question, answered;

	if (!witness.page)
		return false;
	question = atomic_fetch_add(&witness.page->asked, 1) + 1;
	if (!bell_ring())
		return false;
	while ((int32_t)((answered = atomic_load(&witness.page->answered)) - question) < 0) {
		uint64_t now = clock_ms();
		struct timespec wait = {.tv_nsec = (long)((until - now) * 1000000)};

		if (now >= until)
			return false;
		syscall(SYS_futex, &witness.page->answered, FUTEX_WAIT, answered, &wait, NULL, 0);
	}
	return true;
}

bool witness_strangers(void)
{
	return !ask() || atomic_load(&witness.page->strangers);
}

uint32_t witness_ask(void)
{
	if (!witness.page || witness.elsewhere)
		return 0;
	atomic_store(&witness.page->wanted, 1);
	return ask() ? atomic_load(&witness.page->count) : 0;
}
