/* The ring. The record comes first, then the number that says where it ends, so a record is whole or not there.
 * Pages are allocated before they are written to, so that a lack of memory is an error and not a signal. The
 * scribe gives them back, a chunk at a time, before the router may use the room again. So the ring takes no more
 * memory than the records in it.
 *
 * The two processes trust each other no more than they must: the scribe copies and measures a record before it
 * reads it. */
#include "ring.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define CHUNK ((uint64_t)256 << 10)
#define ALIGNMENT 8U
#define HEAD_SIZE ((uint64_t)64 << 10) /* with pages of any size */
#define FILE_SIZE (HEAD_SIZE + AUDIT_RING_SIZE)

_Static_assert(sizeof(struct audit_page) <= HEAD_SIZE, "the page is before the records");
_Static_assert(AUDIT_RING_SIZE % CHUNK == 0 && CHUNK % HEAD_SIZE == 0, "chunks are whole pages");

static uint64_t round_up(uint64_t size, uint64_t unit)
{
	return (size + unit - 1) / unit * unit;
}

static int map(struct audit_ring *ring)
{
	char *all = mmap(NULL, FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);

	if (all == MAP_FAILED)
		return -errno;
	ring->page = (struct audit_page *)(void *)all;
	ring->data = all + HEAD_SIZE;
	return 0;
}

void audit_ring_close(struct audit_ring *ring)
{
	if (ring->page)
		munmap(ring->page, FILE_SIZE);
	fd_close(ring->fd);
	*ring = AUDIT_RING_NONE;
}

int audit_ring_new(struct audit_ring *ring)
{
	int r;

	*ring = AUDIT_RING_NONE;
	ring->fd = memfd_create("lair-audit", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (ring->fd < 0)
		return -errno;
	if (ftruncate(ring->fd, (off_t)FILE_SIZE) < 0 || fallocate(ring->fd, 0, 0, (off_t)HEAD_SIZE) < 0 ||
	    fcntl(ring->fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		r = -errno;
	else
		r = map(ring);
	if (r)
		audit_ring_close(ring);
	return r;
}

int audit_ring_open(struct audit_ring *ring, int fd)
{
	struct stat status;
	int r;

	*ring = AUDIT_RING_NONE;
	if (fstat(fd, &status) < 0)
		return -errno;
	if ((uint64_t)status.st_size != FILE_SIZE || (fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK) == 0)
		return -EBADMSG;
	ring->fd = fd;
	r = map(ring);
	if (r) {
		*ring = AUDIT_RING_NONE;
		return r;
	}
	ring->reserved = round_up(atomic_load(&ring->page->put), CHUNK);
	return 0;
}

/* ---- the router ---- */

uint64_t audit_ring_room(const struct audit_ring *ring)
{
	uint64_t used = atomic_load(&ring->page->put) - atomic_load(&ring->page->freed);

	return used <= AUDIT_RING_SIZE ? AUDIT_RING_SIZE - used : 0;
}

static void copy_in(struct audit_ring *ring, uint64_t at, const void *from, size_t size)
{
	uint64_t offset = at % AUDIT_RING_SIZE;
	size_t first = (size_t)MIN((uint64_t)size, AUDIT_RING_SIZE - offset);

	if (size == 0)
		return;
	memcpy(ring->data + offset, from, first);
	memcpy(ring->data, (const char *)from + first, size - first);
}

static int reserve_one(const struct audit_ring *ring, uint64_t from, uint64_t size)
{
	int r;

	do
		r = fallocate(ring->fd, 0, (off_t)(HEAD_SIZE + from), (off_t)size) < 0 ? -errno : 0;
	while (r == -EINTR);
	return r;
}

static int reserve(struct audit_ring *ring, uint64_t end)
{
	uint64_t to = round_up(end, CHUNK), offset = ring->reserved % AUDIT_RING_SIZE, first;
	int r;

	if (to <= ring->reserved)
		return 0;
	first = MIN(to - ring->reserved, AUDIT_RING_SIZE - offset);
	r = reserve_one(ring, offset, first);
	if (!r && to - ring->reserved > first)
		r = reserve_one(ring, 0, to - ring->reserved - first);
	if (!r)
		ring->reserved = to;
	return r;
}

static int put(struct audit_ring *ring, struct audit_record *record, const struct bytes texts[static AUDIT_TEXTS])
{
	uint64_t at = atomic_load(&ring->page->put), size = sizeof(*record);
	int r;

	for (size_t i = 0; i < AUDIT_TEXTS; i++)
		size += texts[i].size;
	size = round_up(size, ALIGNMENT);
	/* A chunk is reserved as a whole. */
	if (size > AUDIT_RING_SIZE || round_up(at + size, CHUNK) - at > audit_ring_room(ring))
		return AUDIT_RING_E_FULL;
	r = reserve(ring, at + size);
	if (r)
		return r;
	record->size = (uint32_t)size;
	copy_in(ring, at, record, sizeof(*record));
	at += sizeof(*record);
	for (size_t i = 0; i < AUDIT_TEXTS; i++) {
		copy_in(ring, at, texts[i].data, texts[i].size);
		at += texts[i].size;
	}
	atomic_store(&ring->page->lines, atomic_load(&ring->page->lines) + 1);
	atomic_store(&ring->page->put, round_up(at, ALIGNMENT));
	return 0;
}

int audit_ring_put(struct audit_ring *ring, const struct audit_record *record,
		   const struct bytes texts[static AUDIT_TEXTS])
{
	struct audit_record whole = *record;
	int r;

	whole.missed = atomic_load(&ring->page->missed);
	for (size_t i = 0; i < AUDIT_TEXTS; i++)
		whole.sizes[i] = texts[i].data ? (uint32_t)texts[i].size : AUDIT_ABSENT;
	r = put(ring, &whole, texts);
	if (r)
		atomic_store(&ring->page->missed, whole.missed + 1);
	return r;
}

/* ---- the scribe ---- */

static void copy_out(const struct audit_ring *ring, uint64_t at, char *to, size_t size)
{
	uint64_t offset = at % AUDIT_RING_SIZE;
	size_t first = (size_t)MIN((uint64_t)size, AUDIT_RING_SIZE - offset);

	memcpy(to, ring->data + offset, first);
	memcpy(to + first, ring->data, size - first);
}

static bool is_whole(const struct audit_record *record)
{
	uint64_t size = sizeof(*record);

	for (size_t i = 0; i < AUDIT_TEXTS; i++)
		size += record->sizes[i] == AUDIT_ABSENT ? 0 : record->sizes[i];
	return record->event < _AUDIT_N && round_up(size, ALIGNMENT) == record->size;
}

int audit_ring_next(const struct audit_ring *ring, struct audit_record **recordp)
{
	uint64_t at = atomic_load(&ring->page->taken), there = atomic_load(&ring->page->put) - at;
	_cleanup_(freep) struct audit_record *record = NULL;
	uint32_t size;

	if (there == 0)
		return AUDIT_RING_E_EMPTY;
	if (there > AUDIT_RING_SIZE || there < sizeof(*record) || at % ALIGNMENT > 0)
		return -EBADMSG;
	copy_out(ring, at, (char *)&size, sizeof(size));
	if (size < sizeof(*record) || size > there)
		return -EBADMSG;
	record = malloc(size);
	if (!record)
		return -ENOMEM;
	copy_out(ring, at, (char *)record, size);
	if (record->size != size || !is_whole(record))
		return -EBADMSG;
	*recordp = steal_ptr(&record);
	return 0;
}

static void give_back(struct audit_ring *ring, uint64_t to)
{
	uint64_t from = atomic_load(&ring->page->freed);

	to = to / CHUNK * CHUNK;
	if (to - from > AUDIT_RING_SIZE)
		from = to - MIN(to, AUDIT_RING_SIZE);
	for (uint64_t at = from; at < to; at += CHUNK)
		(void)fallocate(ring->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				(off_t)(HEAD_SIZE + at % AUDIT_RING_SIZE), (off_t)CHUNK);
	if (to > from)
		atomic_store(&ring->page->freed, to);
}

static void taken(struct audit_ring *ring, uint64_t to)
{
	atomic_store(&ring->page->tried, 0);
	atomic_store(&ring->page->taken, to);
	give_back(ring, to);
}

void audit_ring_take(struct audit_ring *ring, const struct audit_record *record)
{
	atomic_store(&ring->page->written, atomic_load(&ring->page->written) + 1);
	taken(ring, atomic_load(&ring->page->taken) + record->size);
}

uint64_t audit_ring_give_up(struct audit_ring *ring)
{
	uint64_t lines = atomic_load(&ring->page->lines), lost = lines - atomic_load(&ring->page->written);

	atomic_store(&ring->page->written, lines);
	taken(ring, atomic_load(&ring->page->put));
	return lost;
}

uint64_t audit_ring_left(int fd)
{
	struct audit_page page = {0};

	if (pread(fd, &page, sizeof(page), 0) != (ssize_t)sizeof(page))
		return 0;
	return page.lines - page.written + page.missed - page.told;
}
