/* Only the router renames and deletes here, one after the other. */
#include "generations.h"

#include "base/directory.h"
#include "base/log.h"
#include "saved.h"

#include "proto/sha256.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <time.h>

#define WRITING "writing-"
/* So many damaged files of one id are kept aside. */
#define ASIDE_MAX 99

void saved_name(char name[static SAVED_NAME_SIZE], uid_t owner, struct bytes session, const char *suffix)
{
	char digest[SHA256_HEX_SIZE];

	snprintf(name, SAVED_NAME_SIZE, "%u-%s%s", owner, sha256_hex(digest, session), suffix);
}

int saved_store_open(int *fdp, const struct saved_store *store, bool make)
{
	_cleanup_(fd_closep) int fd = -1;
	char path[PATH_MAX];
	struct stat status;
	int r;

	r = directory_of_state(path, "saves", store->configured, store->socket);
	if (!r && make)
		r = directory_make(path);
	if (r)
		return r;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &status) < 0)
		return -errno;
	if (status.st_uid != geteuid() || (status.st_mode & 022))
		return -EPERM;
	*fdp = steal_fd(&fd);
	return 0;
}

int saved_directory(int *fdp, const struct saved_store *store)
{
	return saved_store_open(fdp, store, true);
}

bool saved_expired(const struct stat *status)
{
	return status->st_mtime <= time(NULL);
}

static bool is_writing(const char *name)
{
	return !strncmp(name, WRITING, strlen(WRITING));
}

static void walk(int directory, bool writing,
		 void (*fn)(int directory, const char *name, const struct stat *status, void *userdata),
		 void *userdata)
{
	DIR *dir = directory_read(directory);
	struct dirent *entry;
	struct stat status;

	if (!dir)
		return;
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' && is_writing(entry->d_name) == writing &&
		    fstatat(directory, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0)
			fn(directory, entry->d_name, &status, userdata);
	closedir(dir);
}

void saved_store_walk(int directory,
		      void (*fn)(int directory, const char *name, const struct stat *status, void *userdata),
		      void *userdata)
{
	walk(directory, false, fn, userdata);
}

/* ---- what is not needed any more ---- */

static void delete_one(int directory, const char *name, const struct stat *status, void *userdata)
{
	(void)unlinkat(directory, name, 0);
}

static void delete_expired(int directory, const char *name, const struct stat *status, void *userdata)
{
	if (saved_expired(status))
		delete_one(directory, name, status, userdata);
}

void saved_sweep(const struct saved_store *store, bool first)
{
	_cleanup_(fd_closep) int directory = -1;

	if (saved_store_open(&directory, store, false))
		return;
	walk(directory, false, delete_expired, NULL);
	if (first)
		walk(directory, true, delete_one, NULL);
}

struct tally {
	const char *prefix, *except;
	uint64_t n;
	bool spare; /* the victim was replaced, or is damaged */
	time_t first;
	char victim[NAME_MAX + 1];
};

static void tally_add(int directory, const char *name, const struct stat *status, void *userdata)
{
	struct tally *tally = userdata;
	bool spare = strchr(name, '.');

	if (strncmp(name, tally->prefix, strlen(tally->prefix)) != 0)
		return;
	tally->n++;
	if (!strcmp(name, tally->except) || (tally->victim[0] && tally->spare > spare) ||
	    (tally->victim[0] && tally->spare == spare && status->st_mtime >= tally->first))
		return;
	tally->spare = spare;
	tally->first = status->st_mtime;
	snprintf(tally->victim, sizeof(tally->victim), "%s", name);
}

void saved_make_room(int directory, const struct saved_store *store, uid_t owner, struct bytes session)
{
	char prefix[16], name[SAVED_NAME_SIZE];

	snprintf(prefix, sizeof(prefix), "%u-", owner);
	saved_name(name, owner, session, "");
	for (;;) {
		struct tally tally = {.prefix = prefix, .except = name};

		saved_store_walk(directory, tally_add, &tally);
		if (tally.n <= store->per_user || !tally.victim[0] || unlinkat(directory, tally.victim, 0) < 0)
			return;
		if (!tally.spare)
			log_info(NULL, "a saved state of uid %u is forgotten for another one", owner);
	}
}

struct removal {
	const char *name;
	bool damaged, any;
};

static void remove_one(int directory, const char *name, const struct stat *status, void *userdata)
{
	struct removal *removal = userdata;
	size_t size = strlen(removal->name);

	if (strncmp(name, removal->name, size) != 0 || (name[size] && name[size] != '.') ||
	    (!removal->damaged && !strncmp(name + size, SAVED_DAMAGED, strlen(SAVED_DAMAGED))))
		return;
	removal->any |= unlinkat(directory, name, 0) == 0;
}

bool saved_remove(const struct saved_store *store, uid_t owner, struct bytes session, bool damaged)
{
	_cleanup_(fd_closep) int directory = -1;
	char name[SAVED_NAME_SIZE];
	struct removal removal = {.name = name, .damaged = damaged};

	if (saved_store_open(&directory, store, false))
		return false;
	saved_name(name, owner, session, "");
	saved_store_walk(directory, remove_one, &removal);
	return removal.any;
}

/* ---- one takes the place of another ---- */

void saved_writing_name(char name[static SAVED_WRITING_SIZE])
{
	static unsigned serial;

	snprintf(name, SAVED_WRITING_SIZE, WRITING "%d-%u", (int)getpid(), ++serial);
}

int saved_put(int directory, const char *writing, uid_t owner, struct bytes session)
{
	char name[SAVED_NAME_SIZE], before[SAVED_NAME_SIZE];

	saved_name(name, owner, session, "");
	saved_name(before, owner, session, SAVED_BEFORE);
	(void)unlinkat(directory, before, 0);
	if (linkat(directory, name, directory, before, 0) < 0 && errno != ENOENT)
		log_warn(NULL, "the saved state before this one is not kept: %s", strerror(errno));
	return renameat(directory, writing, directory, name) < 0 ? -errno : 0;
}

static bool is_file(int directory, const char *name, int fd)
{
	struct stat named, open;

	return fstatat(directory, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && fstat(fd, &open) == 0 &&
	       named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

static bool rename_aside(int directory, const char *name, uid_t owner, struct bytes session)
{
	char aside[SAVED_NAME_SIZE], suffix[32];

	for (unsigned i = 1; i <= ASIDE_MAX; i++) {
		snprintf(suffix, sizeof(suffix), SAVED_DAMAGED "%u", i);
		saved_name(aside, owner, session, suffix);
		if (faccessat(directory, aside, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			continue;
		log_error(NULL, "the saved state %s is damaged; it is kept as %s until it expires", name, aside);
		return renameat(directory, name, directory, aside) == 0;
	}
	return false;
}

void saved_set_aside(int directory, int fd, uid_t owner, struct bytes session)
{
	char name[SAVED_NAME_SIZE], before[SAVED_NAME_SIZE];

	saved_name(name, owner, session, "");
	saved_name(before, owner, session, SAVED_BEFORE);
	if (is_file(directory, name, fd) && rename_aside(directory, name, owner, session))
		(void)renameat(directory, before, directory, name);
	else if (is_file(directory, before, fd))
		(void)rename_aside(directory, before, owner, session);
}
