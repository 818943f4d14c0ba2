/* The page holds a plain struct. A router that dies while it copies leaves some counters of this round and some of
 * the last one, which nobody can tell from having looked a moment earlier. */
#include "counters.h"

#include "sessions.h"

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

/* To leave with a status, as sys.exit() does, is no crash unless the interpreter is gone with it. */
void counters_cell(struct sessions *sessions, const struct verdict *verdict)
{
	const char *cause = verdict->cause ? verdict->cause : "";
	bool lost = strcmp(verdict->state, "kept") != 0;

	sessions->stats.timed_out += !strcmp(cause, "timeout");
	sessions->stats.out_of_memory += !strcmp(cause, "oom");
	sessions->stats.crashed += lost && (!strcmp(cause, "exit") || !strncmp(cause, "signal ", 7));
}

uint64_t counters_audit_missed(const struct sessions *sessions)
{
	return sessions->stats.audit_missed + audit_log_left_out(&sessions->audit_log);
}

void counters_keep(struct sessions *sessions)
{
	sessions->stats.refused = counters_refused(sessions);
	if (sessions->kept)
		*sessions->kept = sessions->stats;
}
