/* Writing a saved state: its bytes, then what it says of itself, then its name. Each is on the disk before the
 * next. */
#include "saved_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <time.h>

struct saved_writing {
	const struct saved_store *store;
	int directory, fd;
	uid_t owner;
	uint64_t ttl;
	char temporary[SAVED_WRITING_SIZE];
	char *session;
	char *begin;	 /* all before the bytes of the session */
	uint64_t offset; /* its size */
	bool there;	 /* under its temporary name */
	int written;
	struct copier copier;
	void (*on_written)(void *userdata);
	void *userdata;
};

/* The digests are still missing. */
static int begin_make(struct saved_writing *writing, const struct saved_state *state)
{
	struct saved_head head = {.magic = SAVED_MAGIC};
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer buffer = {0};
	int r;

	r = wire_encode(&buffer, &saved_state_schema, state);
	if (!r && buffer.size > SAVED_FRAME_MAX)
		r = -EFBIG;
	head.size = (uint32_t)buffer.size;
	writing->offset = saved_offset(sizeof(head) + buffer.size);
	writing->begin = r ? NULL : calloc(1, writing->offset);
	if (writing->begin) {
		memcpy(writing->begin, &head, sizeof(head));
		memcpy(writing->begin + sizeof(head), buffer.data, buffer.size);
	} else if (!r) {
		r = -ENOMEM;
	}
	return r;
}

static int begin_write(const struct saved_writing *writing, const uint8_t *content)
{
	struct saved_head *head = (struct saved_head *)writing->begin;
	ssize_t n;

	memcpy(head->content, content, sizeof(head->content));
	sha256(head->digest,
	       (struct bytes){writing->begin + SAVED_HEAD_CHECKED, writing->offset - SAVED_HEAD_CHECKED});
	n = pwrite(writing->fd, writing->begin, writing->offset, 0);
	return n < 0 ? -errno : (uint64_t)n == writing->offset ? 0 : -ENOSPC;
}

static int expiry_set(int fd, uint64_t ttl)
{
	struct timespec times[2] = {{.tv_nsec = UTIME_NOW}};

	times[1].tv_sec = time(NULL) + (ttl ? (time_t)(ttl / 1000000) : (time_t)SAVED_FOR_EVER_S);
	return futimens(fd, times) < 0 ? -errno : 0;
}

static void finish(struct saved_writing *writing, int r)
{
	copier_end(&writing->copier);
	writing->written = r;
	writing->on_written(writing->userdata);
}

/* It is found after a power cut, so others may go. */
static void on_name_synced(struct copier *copier, int r, const uint8_t *digest)
{
	struct saved_writing *writing = container_of(copier, struct saved_writing, copier);

	if (!r)
		saved_make_room(writing->directory, writing->store, writing->owner, bytes_of(writing->session));
	finish(writing, r);
}

static void on_content_synced(struct copier *copier, int r, const uint8_t *digest)
{
	struct saved_writing *writing = container_of(copier, struct saved_writing, copier);

	if (!r)
		r = saved_put(writing->directory, writing->temporary, writing->owner, bytes_of(writing->session));
	if (!r) {
		writing->there = false;
		r = copier_sync(copier, writing->directory, on_name_synced);
	}
	if (r)
		finish(writing, r);
}

static void on_content_written(struct copier *copier, int r, const uint8_t *digest)
{
	struct saved_writing *writing = container_of(copier, struct saved_writing, copier);

	if (!r)
		r = begin_write(writing, digest);
	if (!r)
		r = expiry_set(writing->fd, writing->ttl);
	if (!r)
		r = copier_sync(copier, writing->fd, on_content_synced);
	if (r)
		finish(writing, r);
}

static int writing_open(struct saved_writing *writing)
{
	int r = saved_store_open(&writing->directory, writing->store, true);

	if (r)
		return r;
	saved_sweep(writing->store, false);
	saved_writing_name(writing->temporary);
	writing->fd = openat(writing->directory, writing->temporary,
			     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	writing->there = writing->fd >= 0;
	return writing->there ? 0 : -errno;
}

static int writing_begin(struct saved_writing *writing, struct event_loop *loop, const struct saved_state *state,
			 int file)
{
	struct copy_order order = {.size = state->size};
	int r = begin_make(writing, state);

	if (!r)
		r = writing_open(writing);
	if (!r)
		r = copier_begin(&writing->copier, loop);
	order.to_at = writing->offset;
	/* The session may still write to @file, and only harms its own state. */
	return r ? r : copier_copy(&writing->copier, &order, file, writing->fd, on_content_written);
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
	writing->copier = COPIER_NONE;
	writing->written = SAVED_E_UNDER_WAY;
	writing->on_written = on_written;
	writing->userdata = userdata;
	writing->session = strndup(state->session.data, state->session.size);
	r = writing->session ? writing_begin(writing, loop, state, file) : -ENOMEM;
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
		copier_end(&writing->copier);
		if (writing->there)
			(void)unlinkat(writing->directory, writing->temporary, 0);
		fd_close(writing->fd);
		fd_close(writing->directory);
		free(writing->begin);
		free(writing->session);
		free(writing);
	}
	return NULL;
}
