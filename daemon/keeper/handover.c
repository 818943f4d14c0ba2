/* Each descriptor has a name with the manager, which says what it is. There is one of each: a ledger stays the same
 * file from one keeper to the next (ledger.h). */
#include "handover.h"

#include "base/log.h"
#include "kind.h"
#include "notify.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#define PASSED_FIRST 3			  /* SD_LISTEN_FDS_START */
#define LISTENER "lair-listener-%" PRIx64 /* to be written and read alike */
#define NAME_SIZE 64

void handover_init(struct handover *handover)
{
	const char *places = getenv("FDSTORE");

	*handover = (struct handover){.offered = places && strtoul(places, NULL, 10) >= 2};
}

static int leave(const char *name, int fd)
{
	char state[NAME_SIZE + 64];

	/* Unpolled: it would be dropped as soon as nobody is at the other end. */
	snprintf(state, sizeof(state), "FDSTORE=1\nFDPOLL=0\nFDNAME=%s", name);
	return notify_manager_of(state, fd);
}

static void take_back(const char *name)
{
	char state[NAME_SIZE + 64];

	snprintf(state, sizeof(state), "FDSTOREREMOVE=1\nFDNAME=%s", name);
	notify_manager(state);
}

void handover_leave_listener(const struct handover *handover, struct instance *instance)
{
	char name[NAME_SIZE];

	if (!handover->offered)
		return;
	snprintf(name, sizeof(name), LISTENER, instance->inode);
	instance->handed_on = leave(name, instance->listener) == 0;
	if (!instance->handed_on)
		log_warn(NULL,
			 "the service manager does not take the socket: clients will not wait for another laird");
}

static void ledger_name(char name[static NAME_SIZE], uint64_t kind)
{
	snprintf(name, NAME_SIZE, "lair-ledger-%" PRIx64, kind);
}

/* None is better than one that is out of date: whoever knows of no request must not be taken for us. */
void handover_leave_ledger(const struct handover *handover, const struct store_name *ledger, int fd)
{
	char name[NAME_SIZE];

	if (!handover->offered)
		return;
	ledger_name(name, ledger->kind);
	take_back(name);
	if (leave(name, fd))
		log_warn(NULL,
			 "the service manager does not take the ledger: another laird will know of no request");
}

/* ---- the way back ---- */

/* Whether it was of use; then it is theirs. */
static bool claim(struct instance *instance, struct store *store, const char *name, int fd)
{
	const struct store_name ledger = {.kind = vault_kind_of(VAULT_PROMISES)};
	char ledgers[NAME_SIZE];
	uint64_t inode;

	if (sscanf(name, LISTENER, &inode) == 1)
		return instance_inherit(instance, fd, inode) == 0;
	ledger_name(ledgers, ledger.kind);
	if (strcmp(name, ledgers) != 0)
		return instance_adopt(instance, fd) == 0;
	(void)store_put(store, &ledger, &fd, 1);
	return true;
}

/* How many descriptors were passed to us, by whoever keeps them; a child of ours is not to think that it was meant.
 */
static int passed(void)
{
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
	long n = pid && count && strtol(pid, NULL, 10) == getpid() ? strtol(count, NULL, 10) : 0;

	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	return (int)MAX(MIN(n, 1024), 0);
}

void handover_claim(struct instance *instance, struct store *store)
{
	const char *passed_names = getenv("LISTEN_FDNAMES");
	_cleanup_(freep) char *names = passed_names ? strdup(passed_names) : NULL;
	char *rest = names, *name;
	int n = passed();

	for (int fd = PASSED_FIRST; fd < PASSED_FIRST + n; fd++) {
		if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
			continue;
		name = strsep(&rest, ":"); /* not every manager gives names */
		if (claim(instance, store, name ? name : "", fd))
			continue;
		fd_close(fd);
		if (name)
			take_back(name);
	}
	unsetenv("LISTEN_FDNAMES");
}
