/* A saved state is a file. It has a magic of eight bytes, the length of a frame, and the frame with its user, id
 * and names; the bytes of the session begin at the next page. It is written under another name first, and
 * replaces nothing before it is whole. Its time of modification is the time when it expires. The bytes of a
 * session are copied in pieces, so nobody waits for them. */
#include "saved.h"

#include "base/directory.h"
#include "base/log.h"
#include "proto/sha256.h"

#include "proto/clock.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define MAGIC "lair\0sv1"
#define HEAD_SIZE 12
#define PAGE 4096ULL
#define FRAME_MAX (16U << 20)
#define TEMPORARY "writing-"
#define FOR_EVER_S (100LL * 365 * 24 * 3600)

#define NAME_SIZE 96

static void name_of(char name[static NAME_SIZE], uid_t owner, struct bytes session)
{
	char digest[SHA256_HEX_SIZE];

	snprintf(name, NAME_SIZE, "%u-%s", owner, sha256_hex(digest, session));
}

/* It must be ours alone, or it is not used. */
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

int saved_directory(int *fdp, const struct saved_store *store)
{
	return store_open(fdp, store, true);
}

/* ---- reading ---- */

static int read_exactly(int fd, void *data, size_t size, off_t offset)
{
	ssize_t n = pread(fd, data, size, offset);

	return n < 0 ? -errno : (size_t)n == size ? 0 : -EBADMSG;
}

/* What it says of itself. */
static int head_take(struct saved *saved)
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
	return (uint64_t)status.st_size == saved->offset + saved->state.size ? 0 : -EBADMSG;
}

static int head_read(struct saved *saved, uid_t owner, struct bytes session)
{
	int r = head_take(saved);

	if (!r && (saved->state.owner != owner || !bytes_equal(saved->state.session, session)))
		r = -EBADMSG;
	return r;
}

static struct saved *saved_blank(void)
{
	struct saved *saved = calloc(1, sizeof(*saved));

	if (saved) {
		saved->fd = saved->copy = -1;
		saved->fetched = SAVED_E_NOT_BEGUN;
	}
	return saved;
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
	saved = saved_blank();
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
	struct saved *saved = saved_blank();
	int r;

	if (!saved) {
		fd_close(fd);
		return -ENOMEM;
	}
	saved->fd = fd;
	saved->fetched = 0;
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
		copying_stop(&saved->copying);
		fd_close(saved->copy);
		fd_close(saved->fd);
		free(saved->text);
		free(saved);
	}
	return NULL;
}

static int copy_seal(const struct saved *saved)
{
	return fcntl(saved->copy, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0
		       ? -errno
		       : 0;
}

static void on_copied(struct copying *copying, int r)
{
	struct saved *saved = container_of(copying, struct saved, copying);

	saved->fetched = r ? r : copy_seal(saved);
	if (!saved->fetched) {
		fd_close(saved->fd);
		saved->fd = steal_fd(&saved->copy);
	}
	saved->on_fetched(saved->userdata);
}

static int copy_begin(struct saved *saved, struct event_loop *loop)
{
	saved->copy = memfd_create("lair-state", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (saved->copy < 0)
		return -errno;
	return copying_begin(&saved->copying, loop, saved->fd, 0, saved->offset + saved->state.size, saved->copy,
			     on_copied);
}

int saved_fetch(struct saved *saved, struct event_loop *loop, void (*on_fetched)(void *userdata), void *userdata)
{
	int r;

	if (saved->fetched != SAVED_E_NOT_BEGUN)
		return saved->fetched;
	saved->on_fetched = on_fetched;
	saved->userdata = userdata;
	/* Root's sessions are other users. */
	r = geteuid() == 0 ? 0 : copy_begin(saved, loop);
	saved->fetched = r || geteuid() == 0 ? r : SAVED_E_UNDER_WAY;
	return saved->fetched;
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

static int expiry_set(int fd, uint64_t ttl)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_NOW}};

	times[1].tv_sec = time(NULL) + (ttl ? (time_t)(ttl / 1000000) : (time_t)FOR_EVER_S);
	return futimens(fd, times) < 0 ? -errno : 0;
}

/* Called for every saved state of the store, whose name is its own again afterwards. What else is there begins with
 * a dot. */
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
	const bool *first = userdata;
	bool half = !strncmp(name, TEMPORARY, strlen(TEMPORARY));

	/* One that is being written has not got its time yet. */
	if (half ? *first : expired(status))
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

/* Delete states until there is room for one more. */
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

struct saved_writing {
	const struct saved_store *store;
	int directory, fd;
	uid_t owner;
	uint64_t ttl;
	char temporary[32], name[NAME_SIZE];
	bool there; /* under its temporary name */
	int written;
	struct copying copying;
	void (*on_written)(void *userdata);
	void *userdata;
};

/* It is whole: others give way to it. */
static int put_in_place(struct saved_writing *writing)
{
	int r = expiry_set(writing->fd, writing->ttl);

	if (r)
		return r;
	make_room(writing->directory, writing->store, writing->owner, writing->name);
	if (renameat(writing->directory, writing->temporary, writing->directory, writing->name) < 0)
		return -errno;
	writing->there = false;
	return 0;
}

static void on_body_written(struct copying *copying, int r)
{
	struct saved_writing *writing = container_of(copying, struct saved_writing, copying);

	writing->written = r ? r : put_in_place(writing);
	writing->on_written(writing->userdata);
}

static int writing_open(struct saved_writing *writing)
{
	static unsigned serial;
	bool first = false;
	int r = store_open(&writing->directory, writing->store, true);

	if (r)
		return r;
	store_walk(writing->directory, sweep, &first);
	snprintf(writing->temporary, sizeof(writing->temporary), TEMPORARY "%d-%u", (int)getpid(), ++serial);
	writing->fd = openat(writing->directory, writing->temporary,
			     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	writing->there = writing->fd >= 0;
	return writing->there ? 0 : -errno;
}

int saved_write(struct saved_writing **writingp, const struct saved_store *store, struct event_loop *loop,
		const struct saved_state *state, int file, uint64_t ttl, void (*on_written)(void *userdata),
		void *userdata)
{
	struct saved_writing *writing = calloc(1, sizeof(*writing));
	int r;

	if (!writing)
		return -ENOMEM;
	writing->store = store;
	writing->directory = writing->fd = -1;
	writing->owner = (uid_t)state->owner;
	writing->ttl = ttl;
	writing->written = SAVED_E_UNDER_WAY;
	writing->on_written = on_written;
	writing->userdata = userdata;
	name_of(writing->name, writing->owner, state->session);
	r = writing_open(writing);
	if (!r)
		r = head_write(writing->fd, state);
	/* The session may still write to @file, and only harms its own state. */
	if (!r)
		r = copying_begin(&writing->copying, loop, file, 0, state->size, writing->fd, on_body_written);
	if (r)
		saved_writing_free(writing);
	else
		*writingp = writing;
	return r;
}

int saved_written(const struct saved_writing *writing)
{
	return writing->written;
}

struct saved_writing *saved_writing_free(struct saved_writing *writing)
{
	if (writing) {
		copying_stop(&writing->copying);
		if (writing->there)
			(void)unlinkat(writing->directory, writing->temporary, 0);
		fd_close(writing->fd);
		fd_close(writing->directory);
		free(writing);
	}
	return NULL;
}

bool saved_remove(const struct saved_store *store, uid_t owner, struct bytes session)
{
	_cleanup_(fd_closep) int directory = -1;
	char name[NAME_SIZE];

	if (store_open(&directory, store, false))
		return false;
	name_of(name, owner, session);
	return unlinkat(directory, name, 0) == 0;
}

struct each {
	uid_t owner;
	bool (*fn)(void *userdata, const struct saved_state *state, double expires);
	void *userdata;
	bool over;
};

/* Under the name that it would have. */
static bool is_itself(const struct saved *saved, const char *name)
{
	char expected[NAME_SIZE];

	name_of(expected, (uid_t)saved->state.owner, saved->state.session);
	return !strcmp(expected, name);
}

static void each_one(int directory, const char *name, const struct stat *status, void *userdata)
{
	double expires = (double)status->st_mtime;
	struct each *each = userdata;
	struct saved *saved;
	char prefix[16];

	snprintf(prefix, sizeof(prefix), "%u-", each->owner);
	if (each->over || expired(status) || !strncmp(name, TEMPORARY, strlen(TEMPORARY)) ||
	    (each->owner != (uid_t)-1 && strncmp(name, prefix, strlen(prefix)) != 0))
		return;
	saved = saved_blank();
	if (!saved)
		return;
	saved->fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	/* More than half of for ever is that. */
	if (status->st_mtime > time(NULL) + (time_t)(FOR_EVER_S / 2))
		expires = 0;
	if (saved->fd >= 0 && head_take(saved) == 0 && is_itself(saved, name))
		each->over = !each->fn(each->userdata, &saved->state, expires);
	saved_free(saved);
}

void saved_each(const struct saved_store *store, uid_t owner,
		bool (*fn)(void *userdata, const struct saved_state *state, double expires), void *userdata)
{
	struct each each = {.owner = owner, .fn = fn, .userdata = userdata};
	_cleanup_(fd_closep) int directory = -1;

	if (!store_open(&directory, store, false))
		store_walk(directory, each_one, &each);
}

void saved_sweep(const struct saved_store *store, bool first)
{
	_cleanup_(fd_closep) int directory = -1;

	if (!store_open(&directory, store, false))
		store_walk(directory, sweep, &first);
}
