/* The page holds a plain struct. A router that dies while it copies leaves some counters of this round and some of
 * the last one, which nobody can tell from having looked a moment earlier. */
#include "counters.h"

#include "sessions.h"

#include "proto/causes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

static struct stats *page_map(int fd)
{
	struct stat status;
	void *map;

	if (fd < 0 || fstat(fd, &status) < 0 || status.st_size != sizeof(struct stats))
		return NULL;
	map = mmap(NULL, sizeof(struct stats), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	return map == MAP_FAILED ? NULL : map;
}

static int page_make(void)
{
	_cleanup_(fd_closep) int fd = memfd_create("lair-counters", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || fallocate(fd, 0, 0, sizeof(struct stats)) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -1;
	return steal_fd(&fd);
}

void counters_open(struct sessions *sessions, int fd, int *fdp)
{
	_cleanup_(fd_closep) int left = fd;
	uint64_t started = sessions->stats.started;

	*fdp = -1;
	sessions->kept = page_map(left);
	if (sessions->kept) {
		sessions->stats = *sessions->kept;
		sessions->stats.started = started;
		sessions->refused_before = sessions->kept->refused;
		return;
	}
	*fdp = page_make();
	sessions->kept = page_map(*fdp);
}

uint64_t counters_refused(const struct sessions *sessions)
{
	return sessions->refused_before + front_refusals(&sessions->clients->front) + sessions->clients->n_errors;
}

/* ---- how long cells take ---- */

/* Seconds; what takes longer than the last has a place of its own. */
static const double most[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
			      0.5,    1,     2.5,    5,	    10,	  30,	 60,   300};
_Static_assert(ARRAY_SIZE(most) == TIMES_MAX - 1, "the page has a place for each");

static void times_add(struct times *times, uint64_t microseconds)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(most) && (double)microseconds > most[i] * 1e6)
		i++;
	times->n[i]++;
	times->sum += microseconds;
}

void counters_put_times(const struct sessions *sessions, struct wire_list *list)
{
	for (size_t i = 0; i < TIMES_MAX; i++) {
		const struct cell_times times = {.most = i < ARRAY_SIZE(most) ? most[i] : 0,
						 .ran = sessions->stats.ran.n[i],
						 .waited = sessions->stats.waited.n[i]};

		(void)wire_list_add(list, &cell_times_schema, &times);
	}
}

/* A cell that has never begun has taken no time. */
static void cell_times_add(struct stats *stats, const struct cell *cell)
{
	if (!cell->started)
		return;
	times_add(&stats->ran, event_now() - cell->started);
	times_add(&stats->waited, cell->asked ? cell->started - MIN(cell->asked, cell->started) : 0);
}

/* ---- how they end ---- */

/* To leave with a status, as sys.exit() does, is no crash unless the interpreter is gone with it. */
void counters_cell(struct sessions *sessions, const struct cell *cell, const struct verdict *verdict)
{
	const char *cause = verdict->cause ? verdict->cause : "";
	bool lost = !fate_is(verdict->state, FATE_KEPT);

	cell_times_add(&sessions->stats, cell);
	sessions->stats.timed_out += cause_is(cause, CAUSE_TIMEOUT);
	sessions->stats.out_of_memory += cause_is(cause, CAUSE_OOM);
	sessions->stats.crashed += lost && (cause_is(cause, CAUSE_EXIT) || !strncmp(cause, "signal ", 7));
}

void counters_keep(struct sessions *sessions)
{
	sessions->stats.refused = counters_refused(sessions);
	if (sessions->kept)
		*sessions->kept = sessions->stats;
}
