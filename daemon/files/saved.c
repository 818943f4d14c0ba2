/* Finding saved states, checking and listing them. */
#include "saved_file.h"

#include "base/log.h"

#include "proto/clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

/* ---- reading ---- */

static int read_exactly(int fd, void *data, size_t size, off_t offset)
{
	ssize_t n = pread(fd, data, size, offset);

	return n < 0 ? -errno : (size_t)n == size ? 0 : -EBADMSG;
}

/* Where the frame is, and how long. */
static int head_size(size_t *sizep, uint32_t *framep, struct saved *saved)
{
	struct saved_head head;
	int r = read_exactly(saved->fd, &head, SAVED_HEAD_OLD_SIZE, 0);

	if (r)
		return r;
	saved->checked = memcmp(head.magic, SAVED_MAGIC, SAVED_MAGIC_SIZE) == 0;
	if (!saved->checked && memcmp(head.magic, SAVED_MAGIC_OLD, SAVED_MAGIC_SIZE) != 0)
		return -EBADMSG;
	if (saved->checked)
		r = read_exactly(saved->fd, &head, sizeof(head), 0);
	else
		memcpy(&head.size, (const char *)&head + SAVED_MAGIC_SIZE, sizeof(head.size));
	*sizep = saved->checked ? sizeof(head) : SAVED_HEAD_OLD_SIZE;
	*framep = head.size;
	return r ? r : head.size > SAVED_FRAME_MAX ? -EBADMSG : 0;
}

static int digests_take(struct saved *saved)
{
	uint8_t digest[SHA256_SIZE];
	struct saved_head head;

	memcpy(&head, saved->text, sizeof(head));
	memcpy(saved->digest, head.content, sizeof(saved->digest));
	sha256(digest, (struct bytes){saved->text + SAVED_HEAD_CHECKED, saved->offset - SAVED_HEAD_CHECKED});
	return memcmp(digest, head.digest, sizeof(digest)) == 0 ? 0 : -EBADMSG;
}

/* What it says of itself. -EBADMSG: it is damaged. */
static int head_take(struct saved *saved)
{
	struct wire_fault fault;
	struct wire_frame frame;
	struct stat status;
	uint32_t frame_size;
	size_t size;
	int r;

	r = head_size(&size, &frame_size, saved);
	if (r)
		return r;
	saved->offset = saved_offset(size + frame_size);
	saved->text = malloc(saved->offset);
	if (!saved->text)
		return -ENOMEM;
	r = read_exactly(saved->fd, saved->text, saved->offset, 0);
	if (!r && saved->checked)
		r = digests_take(saved);
	if (r)
		return r;
	if (wire_open(&frame, (struct bytes){.data = saved->text + size, .size = frame_size}) ||
	    wire_decode(&saved->state, &saved_state_schema, frame.body, &fault) || fstat(saved->fd, &status) < 0)
		return -EBADMSG;
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
		saved->copier = COPIER_NONE;
		saved->fetched = SAVED_E_NOT_BEGUN;
	}
	return saved;
}

/* When the state in that file was saved; 0: there is none that can be read. */
static double created_of(int directory, const char *name)
{
	struct saved *saved = saved_blank();
	struct stat status;
	double created = 0;

	if (!saved)
		return 0;
	saved->fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (saved->fd >= 0 && fstat(saved->fd, &status) == 0 && !saved_expired(&status) && head_take(saved) == 0)
		created = saved->state.created;
	saved_free(saved);
	return created;
}

/* ---- damage ---- */

static void damage_put(struct saved *saved, double created)
{
	time_t time = (time_t)created;
	struct tm when;
	char date[32];

	saved->before = created > 0;
	if (!saved->before || !localtime_r(&time, &when) ||
	    !strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &when))
		snprintf(saved->damage, sizeof(saved->damage),
			 "the saved state is damaged, and is kept aside; there is none before it");
	else
		snprintf(
			saved->damage, sizeof(saved->damage),
			"the saved state is damaged, and is kept aside; the one before it, of %s, takes its place: "
			"load it",
			date);
}

static void damaged(struct saved *saved, uid_t owner, struct bytes session)
{
	_cleanup_(fd_closep) int directory = -1;
	char name[SAVED_NAME_SIZE];
	double created = 0;

	if (!saved_store_open(&directory, saved->store, false)) {
		saved_set_aside(directory, saved->fd, owner, session);
		saved_name(name, owner, session, "");
		created = created_of(directory, name);
	}
	damage_put(saved, created);
	saved->fetched = SAVED_E_DAMAGED;
}

int saved_find(struct saved **savedp, const struct saved_store *store, uid_t owner, struct bytes session)
{
	_cleanup_(fd_closep) int directory = -1;
	char name[SAVED_NAME_SIZE];
	struct stat status;
	struct saved *saved;
	int r;

	r = saved_store_open(&directory, store, false);
	if (r)
		return r;
	saved = saved_blank();
	if (!saved)
		return -ENOMEM;
	saved->store = store;
	saved_name(name, owner, session, "");
	saved->fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (saved->fd < 0 || fstat(saved->fd, &status) < 0)
		r = -errno;
	else if (saved_expired(&status))
		r = -ENOENT;
	else
		r = head_read(saved, owner, session);
	if (r == -EBADMSG) {
		damaged(saved, owner, session);
		r = 0;
	}
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
		copier_end(&saved->copier);
		fd_close(saved->copy);
		fd_close(saved->fd);
		free(saved->text);
		free(saved);
	}
	return NULL;
}

static int copy_seal(struct saved *saved)
{
	if (saved->copy < 0)
		return 0;
	if (fcntl(saved->copy, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
		return -errno;
	fd_close(saved->fd);
	saved->fd = steal_fd(&saved->copy);
	return 0;
}

static void on_copied(struct copier *copier, int r, const uint8_t *digest)
{
	struct saved *saved = container_of(copier, struct saved, copier);
	bool other = !r && saved->checked && memcmp(digest, saved->digest, sizeof(saved->digest)) != 0;

	copier_end(copier);
	if (other || r == -EBADMSG)
		damaged(saved, (uid_t)saved->state.owner, saved->state.session);
	else
		saved->fetched = r ? r : copy_seal(saved);
	saved->on_fetched(saved->userdata);
}

/* Root's sessions are other users. */
static int fetch_begin(struct saved *saved, struct event_loop *loop)
{
	const struct copy_order order = {.size = saved->offset + saved->state.size, .skip = saved->offset};
	int r;

	if (!saved->checked) {
		log_warn(NULL, "the saved state of %.*s has no digest, because an older laird wrote it",
			 (int)saved->state.session.size, saved->state.session.data);
		if (geteuid() == 0)
			return 0;
	}
	if (geteuid() != 0)
		saved->copy = memfd_create("lair-state", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (geteuid() != 0 && saved->copy < 0)
		return -errno;
	r = copier_begin(&saved->copier, loop);
	if (!r)
		r = copier_copy(&saved->copier, &order, saved->fd, saved->copy, on_copied);
	return r ? r : SAVED_E_UNDER_WAY;
}

int saved_fetch(struct saved *saved, struct event_loop *loop, void (*on_fetched)(void *userdata), void *userdata)
{
	if (saved->fetched != SAVED_E_NOT_BEGUN)
		return saved->fetched;
	saved->on_fetched = on_fetched;
	saved->userdata = userdata;
	saved->fetched = fetch_begin(saved, loop);
	return saved->fetched;
}

double saved_age(const struct saved *saved)
{
	return MAX(clock_date() - saved->state.created, 0.001);
}

/* ---- listing ---- */

struct each {
	uid_t owner;
	bool (*fn)(void *userdata, const struct saved_listed *listed);
	void *userdata;
	bool over;
};

/* Whether it lies under its name. */
static bool is_itself(const struct saved *saved, const char *name)
{
	char expected[SAVED_NAME_SIZE];

	saved_name(expected, (uid_t)saved->state.owner, saved->state.session, "");
	return !strcmp(expected, name);
}

static uint64_t damaged_of(int directory, const struct saved_state *state)
{
	char name[SAVED_NAME_SIZE], suffix[32];
	struct stat status;
	uint64_t n = 0;

	for (unsigned i = 1;; i++, n++) {
		snprintf(suffix, sizeof(suffix), SAVED_DAMAGED "%u", i);
		saved_name(name, (uid_t)state->owner, state->session, suffix);
		if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
			return n;
	}
}

static void each_saved(struct each *each, int directory, const char *name, const struct saved *saved,
		       const struct stat *status)
{
	/* More than half of for ever is that. */
	bool expires = status->st_mtime <= time(NULL) + (time_t)(SAVED_FOR_EVER_S / 2);
	struct saved_listed listed = {.owner = (uid_t)strtoul(name, NULL, 10),
				      .expires = expires ? (double)status->st_mtime : 0,
				      .damaged = 1};
	char before[SAVED_NAME_SIZE];

	if (saved) {
		saved_name(before, (uid_t)saved->state.owner, saved->state.session, SAVED_BEFORE);
		listed.state = &saved->state;
		listed.before = created_of(directory, before);
		listed.damaged = damaged_of(directory, &saved->state);
	}
	each->over = !each->fn(each->userdata, &listed);
}

static void each_one(int directory, const char *name, const struct stat *status, void *userdata)
{
	struct each *each = userdata;
	struct saved *saved;
	char prefix[16];
	int r;

	snprintf(prefix, sizeof(prefix), "%u-", each->owner);
	if (each->over || saved_expired(status) || strchr(name, '.') ||
	    (each->owner != (uid_t)-1 && strncmp(name, prefix, strlen(prefix)) != 0))
		return;
	saved = saved_blank();
	if (!saved)
		return;
	saved->fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	r = saved->fd < 0 ? -errno : head_take(saved);
	if (!r && !is_itself(saved, name))
		r = -EBADMSG;
	if (!r || r == -EBADMSG)
		each_saved(each, directory, name, r ? NULL : saved, status);
	saved_free(saved);
}

void saved_each(const struct saved_store *store, uid_t owner,
		bool (*fn)(void *userdata, const struct saved_listed *listed), void *userdata)
{
	struct each each = {.owner = owner, .fn = fn, .userdata = userdata};
	_cleanup_(fd_closep) int directory = -1;

	if (!saved_store_open(&directory, store, false))
		saved_store_walk(directory, each_one, &each);
}
