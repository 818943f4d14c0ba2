/* A saved state is a file: eight bytes that say so, the length of a frame, the frame that says whose it is and
 * which names are in it, and from the next page on what the session wrote. It is written under another name first,
 * so what is there is whole. Its time of modification is when it expires. */
#include "saved.h"

#include "directory.h"
#include "log.h"
#include "sha256.h"

#include "proto/clock.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#define MAGIC "lair\0sv1"
#define HEAD_SIZE 12
#define PAGE 4096ULL
#define FRAME_MAX (16U << 20)
#define TEMPORARY "writing"
#define FOR_EVER_S (100LL * 365 * 24 * 3600)

#define NAME_SIZE 96

static void name_of(char name[static NAME_SIZE], uid_t owner, struct bytes session)
{
	char digest[SHA256_HEX_SIZE];

	snprintf(name, NAME_SIZE, "%u-%s", owner, sha256_hex(digest, session));
}

/* Ours alone, or it is not used. */
static int store_open(int *fdp, const struct saved_store *store, bool make)
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

/* ---- reading ---- */

static int read_exactly(int fd, void *data, size_t size, off_t offset)
{
	ssize_t n = pread(fd, data, size, offset);

	return n < 0 ? -errno : (size_t)n == size ? 0 : -EBADMSG;
}

static int head_read(struct saved *saved, uid_t owner, struct bytes session)
{
	struct wire_fault fault;
	struct wire_frame frame;
	char head[HEAD_SIZE];
	struct stat status;
	uint32_t size;
	int r;

	r = read_exactly(saved->fd, head, sizeof(head), 0);
	if (r)
		return r;
	memcpy(&size, head + 8, sizeof(size));
	if (memcmp(head, MAGIC, 8) != 0 || size > FRAME_MAX)
		return -EBADMSG;
	saved->text = malloc(size + 1);
	if (!saved->text)
		return -ENOMEM;
	r = read_exactly(saved->fd, saved->text, size, HEAD_SIZE);
	if (r)
		return r;
	if (wire_open(&frame, (struct bytes){.data = saved->text, .size = size}) ||
	    wire_decode(&saved->state, &saved_state_schema, frame.body, &fault) || fstat(saved->fd, &status) < 0)
		return -EBADMSG;
	saved->offset = (HEAD_SIZE + size + PAGE - 1) / PAGE * PAGE;
	if (saved->state.owner != owner || !bytes_equal(saved->state.session, session) ||
	    (uint64_t)status.st_size != saved->offset + saved->state.size)
		return -EBADMSG;
	return 0;
}

static bool expired(const struct stat *status)
{
	return status->st_mtime <= time(NULL);
}

int saved_find(struct saved **savedp, const struct saved_store *store, uid_t owner, struct bytes session)
{
	_cleanup_(fd_closep) int directory = -1;
	char name[NAME_SIZE];
	struct stat status;
	struct saved *saved;
	int r;

	r = store_open(&directory, store, false);
	if (r)
		return r;
	saved = calloc(1, sizeof(*saved));
	if (!saved)
		return -ENOMEM;
	name_of(name, owner, session);
	saved->fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (saved->fd < 0 || fstat(saved->fd, &status) < 0)
		r = -errno;
	else if (expired(&status))
		r = -ENOENT;
	else
		r = head_read(saved, owner, session);
	if (r && r != -ENOENT)
		log_warn(NULL, "the saved state %s cannot be read: %s", name, strerror(-r));
	if (r)
		saved_free(saved);
	else
		*savedp = saved;
	return r;
}

int saved_take(struct saved **savedp, int fd, uid_t owner, struct bytes session)
{
	struct saved *saved = calloc(1, sizeof(*saved));
	int r;

	if (!saved) {
		fd_close(fd);
		return -ENOMEM;
	}
	saved->fd = fd;
	r = head_read(saved, owner, session);
	if (r)
		saved_free(saved);
	else
		*savedp = saved;
	return r;
}

struct saved *saved_free(struct saved *saved)
{
	if (saved) {
		fd_close(saved->fd);
		free(saved->text);
		free(saved);
	}
	return NULL;
}

int saved_protect(struct saved *saved)
{
	off_t at = 0, size = (off_t)(saved->offset + saved->state.size);
	_cleanup_(fd_closep) int copy = -1;

	/* Root's sessions are other users. */
	if (geteuid() == 0)
		return 0;
	copy = memfd_create("lair-state", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (copy < 0)
		return -errno;
	while (at < size) {
		ssize_t n = sendfile(copy, saved->fd, &at, (size_t)(size - at));

		if (n <= 0)
			return n < 0 ? -errno : -EBADMSG;
	}
	if (fcntl(copy, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
		return -errno;
	fd_close(saved->fd);
	saved->fd = steal_fd(&copy);
	return 0;
}

double saved_age(const struct saved *saved)
{
	return MAX(clock_date() - saved->state.created, 0.001);
}

/* ---- writing ---- */

static int write_exactly(int fd, const void *data, size_t size)
{
	ssize_t n = write(fd, data, size);

	return n < 0 ? -errno : (size_t)n == size ? 0 : -ENOSPC;
}

static int head_write(int fd, const struct saved_state *state)
{
	char head[HEAD_SIZE] = MAGIC;
	msgpack_sbuffer buffer;
	uint32_t size;
	off_t offset;
	int r;

	msgpack_sbuffer_init(&buffer);
	r = wire_encode(&buffer, &saved_state_schema, state);
	if (!r && buffer.size > FRAME_MAX)
		r = -EFBIG;
	size = (uint32_t)buffer.size;
	memcpy(head + 8, &size, sizeof(size));
	if (!r)
		r = write_exactly(fd, head, sizeof(head));
	if (!r)
		r = write_exactly(fd, buffer.data, buffer.size);
	msgpack_sbuffer_destroy(&buffer);
	offset = (off_t)((HEAD_SIZE + size + PAGE - 1) / PAGE * PAGE);
	if (!r && (ftruncate(fd, offset) < 0 || lseek(fd, offset, SEEK_SET) < 0))
		r = -errno;
	return r;
}

/* The session may still write to @file, and only harms its own state. */
static int body_write(int fd, int file, uint64_t size)
{
	off_t at = 0;

	while ((uint64_t)at < size) {
		ssize_t n = sendfile(fd, file, &at, size - (uint64_t)at);

		if (n <= 0)
			return n < 0 ? -errno : -EBADMSG;
	}
	return 0;
}

static int expiry_set(int fd, uint64_t ttl)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_NOW}};

	times[1].tv_sec = time(NULL) + (ttl ? (time_t)(ttl / 1000000) : (time_t)FOR_EVER_S);
	return futimens(fd, times) < 0 ? -errno : 0;
}

/* Called for every file of the store, whose name is its own again afterwards. */
static void store_walk(int directory,
		       void (*fn)(int directory, const char *name, const struct stat *status, void *userdata),
		       void *userdata)
{
	DIR *dir = directory_read(directory);
	struct dirent *entry;
	struct stat status;

	if (!dir)
		return;
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' && fstatat(directory, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0)
			fn(directory, entry->d_name, &status, userdata);
	closedir(dir);
}

static void sweep(int directory, const char *name, const struct stat *status, void *userdata)
{
	(void)userdata;
	if (expired(status) || !strcmp(name, TEMPORARY))
		(void)unlinkat(directory, name, 0);
}

struct tally {
	const char *prefix, *except;
	uint64_t n;
	time_t first;
	char name[NAME_MAX + 1];
};

static void tally_add(int directory, const char *name, const struct stat *status, void *userdata)
{
	struct tally *tally = userdata;

	(void)directory;
	if (strncmp(name, tally->prefix, strlen(tally->prefix)) != 0 || !strcmp(name, tally->except))
		return;
	if (tally->n++ == 0 || status->st_mtime < tally->first) {
		tally->first = status->st_mtime;
		snprintf(tally->name, sizeof(tally->name), "%s", name);
	}
}

/* For one more. */
static void make_room(int directory, const struct saved_store *store, uid_t owner, const char *name)
{
	char prefix[16];

	snprintf(prefix, sizeof(prefix), "%u-", owner);
	for (;;) {
		struct tally tally = {.prefix = prefix, .except = name};

		store_walk(directory, tally_add, &tally);
		if (tally.n < store->per_user || unlinkat(directory, tally.name, 0) < 0)
			return;
		log_info(NULL, "a saved state of uid %u is forgotten for another one", owner);
	}
}

int saved_write(const struct saved_store *store, const struct saved_state *state, int file, uint64_t ttl)
{
	_cleanup_(fd_closep) int directory = -1, fd = -1;
	char name[NAME_SIZE];
	int r;

	r = store_open(&directory, store, true);
	if (r)
		return r;
	name_of(name, (uid_t)state->owner, state->session);
	store_walk(directory, sweep, NULL);
	make_room(directory, store, (uid_t)state->owner, name);
	fd = openat(directory, TEMPORARY, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = head_write(fd, state);
	if (!r)
		r = body_write(fd, file, state->size);
	if (!r)
		r = expiry_set(fd, ttl);
	if (!r && renameat(directory, TEMPORARY, directory, name) < 0)
		r = -errno;
	if (r)
		(void)unlinkat(directory, TEMPORARY, 0);
	return r;
}

void saved_remove(const struct saved_store *store, uid_t owner, struct bytes session)
{
	_cleanup_(fd_closep) int directory = -1;
	char name[NAME_SIZE];

	if (store_open(&directory, store, false))
		return;
	name_of(name, owner, session);
	(void)unlinkat(directory, name, 0);
}

void saved_sweep(const struct saved_store *store)
{
	_cleanup_(fd_closep) int directory = -1;

	if (!store_open(&directory, store, false))
		store_walk(directory, sweep, NULL);
}
