/* Scribes and their descriptors. If one dies, another one follows with the same descriptors. It is of the
 * keeper's build, which can read the ring of every router that can go on with what the keeper stores. */
#include "scribes.h"

#include "audit/ring.h"
#include "audit/scribe.h"
#include "base/log.h"
#include "base/spawn.h"
#include "throttle.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/wait.h>

struct scribe {
	struct list node;
	pid_t pid; /* 0: there is none */
	int fds[SCRIBE_FDS];
	uint64_t start_at; /* milliseconds */
	struct throttle throttle;
};

_Static_assert(SCRIBE_FDS <= SPAWN_FDS_MAX && SCRIBE_RING_FD - SCRIBE_CHANNEL_FD + 1 == SCRIBE_FDS,
	       "it finds what it is given");

static void scribe_free(struct scribe *scribe)
{
	for (size_t i = 0; i < SCRIBE_FDS; i++)
		fd_close(scribe->fds[i]);
	list_remove(&scribe->node);
	free(scribe);
}

static int ring_of(const struct scribe *scribe)
{
	return scribe->fds[SCRIBE_RING_FD - SCRIBE_CHANNEL_FD];
}

static void tell_lost(const struct scribe *scribe)
{
	uint64_t lines = audit_ring_left(ring_of(scribe));

	if (lines > 0)
		log_error(NULL, "the audit log misses its last %" PRIu64 " lines", lines);
}

void scribes_init(struct scribes *scribes)
{
	list_init(&scribes->all);
}

void scribes_deinit(struct scribes *scribes)
{
	struct scribe *scribe;

	list_for_each (scribe, &scribes->all, node)
		scribe_free(scribe);
}

void scribes_add(struct scribes *scribes, int fds[static SCRIBE_FDS])
{
	struct scribe *scribe = calloc(1, sizeof(*scribe));

	if (!scribe)
		log_error(NULL, "the audit log is not written: %s", strerror(ENOMEM));
	for (size_t i = 0; i < SCRIBE_FDS; i++) {
		int fd = steal_fd(&fds[i]);

		if (scribe)
			scribe->fds[i] = fd;
		else
			fd_close(fd);
	}
	if (!scribe)
		return;
	list_init(&scribe->node);
	list_append(&scribes->all, &scribe->node);
}

static void start(struct scribe *scribe, uint64_t now)
{
	static const char *const argv[] = {"laird", "--scribe", NULL};
	struct spawn_fds given = {.n = SCRIBE_FDS, .stays = true};
	int r;

	memcpy(given.fds, scribe->fds, sizeof(scribe->fds));
	r = spawn_program(&scribe->pid, "/proc/self/exe", argv, (const char *const *)environ, &given);
	if (!r)
		return;
	scribe->pid = 0;
	scribe->start_at = now + throttle_died(&scribe->throttle, now, false);
	log_error(NULL, "cannot start the scribe of the audit log: %s; the lines wait", strerror(-r));
}

uint64_t scribes_start(struct scribes *scribes, uint64_t now)
{
	uint64_t next = UINT64_MAX;
	struct scribe *scribe;

	list_for_each (scribe, &scribes->all, node) {
		if (scribe->pid == 0 && now >= scribe->start_at)
			start(scribe, now);
		if (scribe->pid == 0)
			next = MIN(next, scribe->start_at);
	}
	return next;
}

static struct scribe *scribe_find(struct scribes *scribes, pid_t pid)
{
	struct scribe *scribe;

	list_for_each (scribe, &scribes->all, node)
		if (scribe->pid == pid)
			return scribe;
	return NULL;
}

bool scribes_reap(struct scribes *scribes, pid_t pid, int status, uint64_t now)
{
	struct scribe *scribe = scribe_find(scribes, pid);

	if (!scribe)
		return false;
	if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS) {
		scribe_free(scribe);
		return true;
	}
	scribe->pid = 0;
	scribe->start_at = now + throttle_died(&scribe->throttle, now, true);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		log_error(NULL, "the audit log did not open within %d s", SCRIBE_OPEN_MS / 1000);
	else if (WIFSIGNALED(status))
		log_error(NULL, "the scribe of the audit log was killed by signal %d (%s): another one goes on",
			  WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		log_error(NULL, "the scribe of the audit log ended with status %d: another one goes on",
			  WEXITSTATUS(status));
	return true;
}

bool scribes_has(struct scribes *scribes, pid_t pid)
{
	return scribe_find(scribes, pid) != NULL;
}

void scribes_kill(struct scribes *scribes)
{
	struct scribe *scribe;

	list_for_each (scribe, &scribes->all, node) {
		if (scribe->pid > 0)
			(void)kill(scribe->pid, SIGKILL);
		tell_lost(scribe);
		scribe_free(scribe);
	}
}
