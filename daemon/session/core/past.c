/* The file is a row of records of one size, the last of a name is true. When most of them are out of date it is
 * written anew. A disk that does not take a record costs that record and nothing else. */
#include "past.h"

#include "base/log.h"

#include "proto/causes.h"
#include "proto/clock.h"

#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#define FILE_NAME ".ended"
#define FILE_NAME_NEW ".ended-new"
/* It is not written anew for less. */
#define SLACK 1024
/* How long what is written may wait for more. */
#define SYNC_US 1000000
/* A number that every client can hold, be it as a double. */
#define BIRTH_BITS 53

static const char magic[8] = "lairpa1";

struct record {
	char id[SESSION_ID_MAX + 1];
	uint8_t spare[3];
	uint32_t owner;
	uint64_t living; /* the birth of the one that lives, 0: none does */
	struct ending ending;
};

struct known {
	struct list node; /* among the living, or those that ended, oldest first */
	struct record record;
};

/* ---- the table ---- */

static int compare(const void *a, const void *b)
{
	const struct known *left = a, *right = b;

	if (left->record.owner != right->record.owner)
		return left->record.owner < right->record.owner ? -1 : 1;
	return strcmp(left->record.id, right->record.id);
}

static struct known *known_find(const struct past *past, uid_t owner, struct bytes id)
{
	struct known key = {.record.owner = owner}, **found;

	if (id.size == 0 || id.size > SESSION_ID_MAX)
		return NULL;
	memcpy(key.record.id, id.data, id.size);
	found = tfind(&key, &past->table, compare);
	return found ? *found : NULL;
}

static enum past_kind kind_of(const struct known *known)
{
	if (known->record.living)
		return PAST_LIVING;
	return cause_is(known->record.ending.why, CAUSE_SHUTDOWN) ? PAST_SHUT : PAST_ENDED;
}

/* Before it changes, and after. */
static void known_leave(struct past *past, struct known *known)
{
	if (!list_empty(&known->node))
		past->n[kind_of(known)]--;
	list_remove(&known->node);
}

static void known_enter(struct past *past, struct known *known)
{
	list_append(&past->lists[kind_of(known)], &known->node);
	past->n[kind_of(known)]++;
}

static void known_drop(struct past *past, struct known *known)
{
	known_leave(past, known);
	tdelete(known, &past->table, compare);
	free(known);
}

static struct known *known_get(struct past *past, uid_t owner, struct bytes id)
{
	struct known *known = known_find(past, owner, id);

	if (known)
		return known;
	known = calloc(1, sizeof(*known));
	if (!known)
		return NULL;
	list_init(&known->node);
	known->record.owner = owner;
	memcpy(known->record.id, id.data, id.size);
	if (tsearch(known, &past->table, compare))
		return known;
	free(known);
	return NULL;
}

static bool is_old(const struct known *known)
{
	return known->record.ending.when + PAST_TTL_S < clock_date();
}

/* Of whom one is forgotten for another of @owner. */
static struct known *victim_of(struct list *ended, uid_t owner)
{
	struct known *known, *own = NULL;
	size_t n = 0;

	list_for_each (known, ended, node) {
		if (known->record.owner != owner)
			continue;
		own = own ? own : known;
		n++;
	}
	return n > PAST_MAX / PAST_PART ? own : container_of(list_first(ended), struct known, node);
}

/* For what has just been put into @kind. */
static void make_room(struct past *past, enum past_kind kind, uid_t owner)
{
	struct list *head = &past->lists[kind], *first;

	if (kind == PAST_LIVING)
		return;
	while ((first = list_first(head)) && is_old(container_of(first, struct known, node)))
		known_drop(past, container_of(first, struct known, node));
	while (past->n[kind] > PAST_MAX)
		known_drop(past, victim_of(head, owner));
}

/* ---- the file ---- */

static int records_write(int fd, const void *data, size_t size)
{
	ssize_t n = write(fd, data, size);

	return n < 0 ? -errno : (size_t)n == size ? 0 : -ENOSPC;
}

static void write_failed(struct past *past, int r)
{
	if (r && !past->failed)
		log_warn(NULL, "how sessions end cannot be written down: %s; after another start nobody is told",
			 strerror(-r));
	past->failed = r != 0;
}

static int list_write(int fd, const struct list *head)
{
	struct known *known;
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer all = {0};
	int r = 0;

	list_for_each (known, (struct list *)head, node)
		if (!r && msgpack_sbuffer_write(&all, (const char *)&known->record, sizeof(known->record)))
			r = -ENOMEM;
	if (!r && all.size > 0)
		r = records_write(fd, all.data, all.size);
	return r;
}

static int all_write(struct past *past, int fd)
{
	int r = records_write(fd, magic, sizeof(magic));

	for (int i = 0; i < _PAST_N; i++)
		r = r ? r : list_write(fd, &past->lists[i]);
	return r;
}

static size_t n_entries(const struct past *past)
{
	return past->n[PAST_LIVING] + past->n[PAST_ENDED] + past->n[PAST_SHUT];
}

/* Another file takes its place, or in memory the same one. */
static int write_anew(struct past *past)
{
	_cleanup_(fd_closep) int fd = -1;
	int r;

	past->n_written = n_entries(past);
	if (past->directory < 0)
		return ftruncate(past->fd, 0) < 0 || lseek(past->fd, 0, SEEK_SET) < 0 ? -errno
										      : all_write(past, past->fd);
	fd = openat(past->directory, FILE_NAME_NEW, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = all_write(past, fd);
	if (!r && renameat(past->directory, FILE_NAME_NEW, past->directory, FILE_NAME) < 0)
		r = -errno;
	if (r) {
		(void)unlinkat(past->directory, FILE_NAME_NEW, 0);
		return r;
	}
	fd_close(past->fd);
	past->fd = steal_fd(&fd);
	past->renamed = true;
	return 0;
}

/* What is cut off would put all that follows out of step. */
static int append(struct past *past, const struct record *record)
{
	off_t end = lseek(past->fd, 0, SEEK_END);
	int r = end < 0 ? -errno : records_write(past->fd, record, sizeof(*record));

	if (r && end >= 0 && ftruncate(past->fd, end) < 0)
		return -errno;
	return r;
}

static void on_synced(struct copier *copier, int r, const uint8_t *digest)
{
	struct past *past = container_of(copier, struct past, copier);

	if (!r && past->renamed) {
		past->renamed = false;
		r = copier_sync(copier, past->directory, on_synced);
		if (!r)
			return;
	}
	copier_end(copier);
	write_failed(past, r);
}

static void sync_later(struct past *past);

static void on_later(struct timer *timer)
{
	struct past *past = container_of(timer, struct past, later);
	int r;

	if (past->copier.channel >= 0) {
		sync_later(past);
		return;
	}
	r = copier_begin(&past->copier, past->loop);
	if (!r)
		r = copier_sync(&past->copier, past->fd, on_synced);
	if (r)
		copier_end(&past->copier);
	write_failed(past, r);
}

static void sync_later(struct past *past)
{
	if (past->loop && past->directory >= 0 && !past->later.index)
		(void)timer_set(past->loop, &past->later, event_now() + SYNC_US, on_later);
}

static void known_write(struct past *past, const struct known *known)
{
	if (past->fd < 0)
		return;
	if (++past->n_written > 2 * n_entries(past) + SLACK)
		write_failed(past, write_anew(past));
	else
		write_failed(past, append(past, &known->record));
	sync_later(past);
}

static bool record_valid(const struct record *record)
{
	return record->id[0] && memchr(record->id, 0, sizeof(record->id)) &&
	       memchr(record->ending.why, 0, sizeof(record->ending.why)) &&
	       memchr(record->ending.not_saved, 0, sizeof(record->ending.not_saved));
}

static void record_take(struct past *past, const struct record *record)
{
	struct known *known;

	if (!record_valid(record))
		return;
	known = known_get(past, record->owner, bytes_of(record->id));
	if (!known)
		return;
	known_leave(past, known);
	known->record = *record;
	known_enter(past, known);
	make_room(past, kind_of(known), record->owner);
}

/* Returns whether it is whole: only then more can be appended to it. */
static bool records_read(struct past *past)
{
	off_t at = sizeof(magic);
	struct record record;
	char begin[sizeof(magic)];

	if (pread(past->fd, begin, sizeof(begin), 0) != sizeof(begin) || memcmp(begin, magic, sizeof(magic)) != 0)
		return false;
	for (; pread(past->fd, &record, sizeof(record), at) == sizeof(record); at += (off_t)sizeof(record)) {
		record_take(past, &record);
		past->n_written++;
	}
	return at == lseek(past->fd, 0, SEEK_END);
}

void past_init(struct past *past, struct event_loop *loop)
{
	*past = (struct past){.directory = -1, .fd = -1, .loop = loop, .copier = COPIER_NONE};
	for (int i = 0; i < _PAST_N; i++)
		list_init(&past->lists[i]);
}

void past_deinit(struct past *past)
{
	struct known *known;

	for (int i = 0; i < _PAST_N; i++)
		list_for_each (known, &past->lists[i], node)
			known_drop(past, known);
	copier_end(&past->copier);
	if (past->loop)
		timer_clear(past->loop, &past->later);
	past->fd = fd_close(past->fd);
	past->directory = fd_close(past->directory);
}

bool past_open(struct past *past, const struct saved_store *store, int left)
{
	past->fd = left;
	if (left < 0 && saved_directory(&past->directory, store) == 0)
		past->fd = openat(past->directory, FILE_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (past->fd < 0) {
		past->directory = fd_close(past->directory);
		past->fd = memfd_create("lair-ended", MFD_CLOEXEC);
	}
	if (past->fd < 0) {
		write_failed(past, -errno);
		return false;
	}
	if (!records_read(past))
		write_failed(past, write_anew(past));
	return left < 0 && past->directory < 0;
}

/* ---- what happens ---- */

uint64_t past_new_birth(void)
{
	uint64_t birth = 0;

	while (!birth)
		if (getrandom(&birth, sizeof(birth), 0) == sizeof(birth))
			birth >>= 64 - BIRTH_BITS;
	return birth;
}

static bool is_known(const struct known *known)
{
	return known && known->record.ending.why[0] && !is_old(known);
}

bool past_begin(struct past *past, uid_t owner, const char *id, uint64_t birth)
{
	struct known *known = known_get(past, owner, bytes_of(id));

	if (!known)
		return false;
	known_leave(past, known);
	known->record.living = birth;
	known_enter(past, known);
	known_write(past, known);
	return is_known(known);
}

void past_end(struct past *past, uid_t owner, const char *id, const struct ending *ending)
{
	struct known *known = known_get(past, owner, bytes_of(id));

	if (!known)
		return;
	known_leave(past, known);
	known->record.living = 0;
	known->record.ending = *ending;
	known_enter(past, known);
	known_write(past, known);
	make_room(past, kind_of(known), owner);
}

const struct ending *past_find(const struct past *past, const struct session_name *name)
{
	const struct known *known = known_find(past, name->owner, name->id);

	return is_known(known) ? &known->record.ending : NULL;
}

void past_lose(struct past *past, const struct session_name *name, const char *why)
{
	struct known *known = known_find(past, name->owner, name->id);

	if (!known || !known->record.ending.saved)
		return;
	known->record.ending.saved = 0;
	snprintf(known->record.ending.not_saved, sizeof(known->record.ending.not_saved), "%s", why);
	known_write(past, known);
}

void past_settle(struct past *past, bool (*lives)(void *userdata, const struct session_name *name, uint64_t birth),
		 void *userdata)
{
	struct ending ending = {.why = "lost", .when = clock_date()};
	struct known *known;

	list_for_each (known, &past->lists[PAST_LIVING], node) {
		struct session_name name = {.owner = known->record.owner, .id = bytes_of(known->record.id)};

		ending.birth = known->record.living;
		if (!lives(userdata, &name, ending.birth))
			past_end(past, name.owner, known->record.id, &ending);
	}
}

/* ---- what is told ---- */

int past_put(msgpack_sbuffer *buffer, const struct ending *ending)
{
	static const struct ending unknown = {.why = "unknown"};
	const struct ending *known = ending ? ending : &unknown;
	const struct ended_record record = {
		.why = bytes_of(known->why),
		.when = known->when,
		.birth = known->birth,
		.cells = known->cells,
		.saved = known->saved,
		.not_saved = bytes_of(known->not_saved[0] ? known->not_saved : NULL),
		.by_root = known->by_root,
	};

	return wire_encode_body(buffer, &ended_record_schema, &record);
}

const char *past_words(char out[static PAST_SENTENCE_SIZE], const struct ending *ending)
{
	const char *why = ending ? ending->why : causes[CAUSE_UNKNOWN].name;
	const struct cause_row *row = &causes[cause_of(why, strlen(why))];

	if (row->session && row != &causes[CAUSE_DEATH])
		return row->session;
	snprintf(out, PAST_SENTENCE_SIZE, DEATH_SESSION, why);
	return out;
}
