/* Ledgers. The file is mapped: a record costs no system call, and the kernel keeps what was stored in it, no
 * matter how the router dies. The record is stored first, then its length in a single store. So lengths are
 * aligned, and the file is all zeroes where nothing has been written. Pages are allocated before they are
 * written to, so that a lack of memory is an error and not a signal.
 *
 * The file begins with a number: the place of the records in force. Memory before that place is given back to
 * the kernel, and the file keeps its length. Its end moves on each time; a file offset is large enough for
 * longer than any machine runs. */
#include "ledger.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Below this much it is not worth the while. */
#define STALE_SIZE (128U << 10)
#define GROWTH (16U << 10)
/* Of what is mapped, with pages of any size. */
#define ALIGNMENT (64U << 10)
#define LENGTH sizeof(uint64_t)

void ledger_init(struct ledger *ledger)
{
	*ledger = (struct ledger){.fd = -1};
}

static uint64_t round_up(uint64_t size, uint64_t unit)
{
	return (size + unit - 1) / unit * unit;
}

static void unmap(struct ledger *ledger)
{
	if (ledger->map)
		munmap(ledger->map, ledger->room);
	ledger->map = NULL;
	ledger->room = ledger->size = 0;
}

void ledger_deinit(struct ledger *ledger)
{
	unmap(ledger);
	fd_close(ledger->fd);
	ledger_init(ledger);
}

int ledger_renew(struct ledger *ledger)
{
	if (ledger->fd < 0) {
		ledger->fd = memfd_create("lair-ledger", MFD_CLOEXEC);
		ledger->vacant = ALIGNMENT;
	} else if (ledger->in_force) {
		/* Behind a length that is zero, so that the version in force has an end. */
		ledger->vacant = round_up(ledger->begin + ledger->room + LENGTH, ALIGNMENT);
	}
	unmap(ledger);
	ledger->begin = ledger->vacant;
	ledger->in_force = false;
	/* Zeroes from there on, even if another attempt has left something there. */
	return ledger->fd < 0 || ftruncate(ledger->fd, (off_t)ledger->begin) < 0 ? -errno : 0;
}

int ledger_put_in_force(struct ledger *ledger)
{
	if (pwrite(ledger->fd, &ledger->begin, sizeof(ledger->begin), 0) < 0)
		return -errno;
	ledger->in_force = true;
	/* If this fails, the rest takes memory and does no harm; the next time it is tried again. */
	(void)fallocate(ledger->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, ALIGNMENT,
			(off_t)(ledger->begin - ALIGNMENT));
	return 0;
}

static uint64_t after(uint64_t at, uint64_t length)
{
	return at + LENGTH + (length + LENGTH - 1) / LENGTH * LENGTH;
}

/* The length of the record at @at; 0 if there is none. */
static uint64_t length_at(const char *text, uint64_t size, uint64_t at)
{
	uint64_t length;

	if (at > size || size - at < LENGTH)
		return 0;
	memcpy(&length, text + at, LENGTH);
	return length <= size - at - LENGTH && after(at, length) <= size ? length : 0;
}

static int map(struct ledger *ledger, uint64_t room)
{
	char *fresh = ledger->map ? mremap(ledger->map, ledger->room, room, MREMAP_MAYMOVE)
				  : mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED, ledger->fd,
					 (off_t)ledger->begin);

	if (fresh == MAP_FAILED)
		return -errno;
	ledger->map = fresh;
	ledger->room = room;
	return 0;
}

int ledger_open(struct ledger *ledger, int fd)
{
	struct stat status;
	uint64_t length;
	int r = 0;

	ledger->fd = fd;
	ledger->vacant = ALIGNMENT;
	ledger->stored = true;
	if (fstat(fd, &status) < 0 || pread(fd, &ledger->begin, sizeof(ledger->begin), 0) < 0)
		return -errno;
	if (ledger->begin == 0)
		return 0;
	if (ledger->begin % ALIGNMENT || ledger->begin > (uint64_t)status.st_size)
		return -EBADMSG;
	ledger->in_force = true;
	if ((uint64_t)status.st_size > ledger->begin)
		r = map(ledger, (uint64_t)status.st_size - ledger->begin);
	if (r)
		return r;
	while ((length = length_at(ledger->map, ledger->room, ledger->size)))
		ledger->size = after(ledger->size, length);
	return ledger_cut(ledger, ledger->size);
}

int ledger_cut(struct ledger *ledger, uint64_t size)
{
	uint64_t room = MIN(round_up(size, GROWTH), ledger->room);

	if (room > size)
		memset(ledger->map + size, 0, room - size);
	if (ledger->in_force && ftruncate(ledger->fd, (off_t)(ledger->begin + room)) < 0)
		return -errno;
	if (room == 0)
		unmap(ledger);
	ledger->size = size;
	return room > 0 ? map(ledger, room) : 0;
}

static int make_room(struct ledger *ledger, uint64_t wanted)
{
	uint64_t room = round_up(wanted, GROWTH);
	int r;

	if (wanted <= ledger->room)
		return 0;
	do
		r = fallocate(ledger->fd, 0, (off_t)(ledger->begin + ledger->room), (off_t)(room - ledger->room)) <
				    0
			    ? -errno
			    : 0;
	while (r == -EINTR);
	return r ? r : map(ledger, room);
}

/* The record that has been stored behind the last one happens now. */
static void happen(struct ledger *ledger, uint64_t length)
{
	atomic_store_explicit((_Atomic uint64_t *)(void *)(ledger->map + ledger->size), length,
			      memory_order_release);
	ledger->size = after(ledger->size, length);
}

int ledger_append_long(struct ledger *ledger, const struct text *text)
{
	struct iovec parts[TEXT_PARTS_MAX];
	size_t n = text_parts(text, parts), size = text_size(text);
	int r = make_room(ledger, after(ledger->size, size));
	char *at;

	if (r)
		return r;
	at = ledger->map + ledger->size + LENGTH;
	for (size_t i = 0; i < n; i++) {
		memcpy(at, parts[i].iov_base, parts[i].iov_len);
		at += parts[i].iov_len;
	}
	happen(ledger, size);
	return 0;
}

int ledger_append(struct ledger *ledger, const struct wire_schema *schema, const void *record)
{
	size_t bound = wire_bound(schema, record);
	msgpack_sbuffer place = {.alloc = bound};
	int r = make_room(ledger, after(ledger->size, bound));

	if (r)
		return r;
	place.data = ledger->map + ledger->size + LENGTH;
	r = wire_encode(&place, schema, record);
	if (r)
		return r;
	happen(ledger, place.size);
	return 0;
}

bool ledger_is_stale(const struct ledger *ledger, uint64_t alive)
{
	uint64_t dead = ledger->size - MIN(alive, ledger->size);

	return !ledger->in_force || (dead > STALE_SIZE && dead > ledger->size / 2);
}

int ledger_read(const struct ledger *ledger, char **textp)
{
	char *text = malloc(ledger->size + 1);

	if (!text)
		return -ENOMEM;
	if (ledger->size > 0)
		memcpy(text, ledger->map, ledger->size);
	*textp = text;
	return 0;
}

bool ledger_next(const struct ledger *ledger, const char *text, uint64_t *at, struct wire_frame *record)
{
	uint64_t length = length_at(text, ledger->size, *at);

	if (length == 0 || wire_open(record, (struct bytes){.data = text + *at + LENGTH, .size = length}))
		return false;
	*at = after(*at, length);
	return true;
}
