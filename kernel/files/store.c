/* Packs. Invariant: the extents of a pack's blobs do not overlap, and all lie before its end. A content is written
 * behind the last one of a pack. What is dropped leaves a hole that is not used again; but a pack of which nothing
 * is left begins anew, and one of which little is left is moved into another. A content that is larger than a pack
 * has one of its own. */
#include "store.h"

#include <fcntl.h>
#include <sys/resource.h>

#define PACK_SIZE (8ULL << 20)
#define ALIGNMENT 4096
#define PIECE (256U << 10)
/* Less is copied as fast as it is shared. */
#define SHARE_MIN (64U << 10)

struct pack {
	struct pack *next;
	struct blob *blobs;
	int fd;
	uint64_t end, live; /* where the next one begins; bytes of contents in use */
};

void store_init(struct store *store, int root, uint64_t max)
{
	*store = (struct store){.root = root, .max = max};
}

static void pack_free(struct store *store, struct pack *pack)
{
	struct pack **slot = &store->packs;

	while (*slot != pack)
		slot = &(*slot)->next;
	*slot = pack->next;
	fd_close(pack->fd);
	free(pack);
}

void store_deinit(struct store *store)
{
	while (store->packs)
		pack_free(store, store->packs);
}

void store_leave(struct store *store)
{
	for (struct pack *pack = store->packs; pack; pack = pack->next)
		fd_closep(&pack->fd);
}

/* ---- making room ---- */

/* A longer file is a way to be killed by a signal. */
static uint64_t file_limit(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY ? INT64_MAX
										      : (uint64_t)limit.rlim_cur;
}

static int pack_new(struct pack **packp, struct store *store)
{
	struct pack *pack = calloc(1, sizeof(*pack));

	if (!pack)
		return -ENOMEM;
	pack->fd = openat(store->root, ".", O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
	if (pack->fd < 0) {
		int r = -errno;

		free(pack);
		return r == -EISDIR || r == -EINVAL ? -EOPNOTSUPP : r;
	}
	pack->next = store->packs;
	store->packs = pack;
	*packp = pack;
	return 0;
}

static int pack_with_room(struct pack **packp, struct store *store, uint64_t size)
{
	uint64_t most = MIN((uint64_t)PACK_SIZE, file_limit());

	for (*packp = store->packs; *packp; *packp = (*packp)->next)
		if ((*packp)->end + size <= most)
			return 0;
	return pack_new(packp, store);
}

static void blob_enter(struct blob *blob, struct pack *pack)
{
	blob->pack = pack;
	blob->offset = pack->end;
	blob->next = pack->blobs;
	blob->slot = &pack->blobs;
	if (blob->next)
		blob->next->slot = &blob->next;
	pack->blobs = blob;
	pack->live += blob->size;
	pack->end += (blob->size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void blob_leave(struct blob *blob)
{
	*blob->slot = blob->next;
	if (blob->next)
		blob->next->slot = blob->slot;
	blob->pack->live -= blob->size;
}

int store_begin(struct blob **blobp, struct store *store, uint64_t size)
{
	struct blob *blob;
	struct pack *pack;
	int r;

	if (size > file_limit())
		return -EFBIG;
	r = pack_with_room(&pack, store, size);
	if (r)
		return r;
	blob = calloc(1, sizeof(*blob));
	if (!blob)
		return -ENOMEM;
	blob->uses = 1;
	blob->size = size;
	blob_enter(blob, pack);
	*blobp = blob;
	return 0;
}

/* ---- writing and reading ---- */

static ssize_t piece_write(int fd, const char *data, size_t size, uint64_t at)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = pwrite(fd, data + done, size - done, (off_t)(at + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ENOSPC;
		done += (size_t)n;
	}
	return (ssize_t)size;
}

static ssize_t piece_read(int fd, char *data, size_t size, uint64_t at)
{
	ssize_t n;

	do
		n = pread(fd, data, size, (off_t)at);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* How many bytes from @at on are a hole, at most @most. */
static uint64_t hole_at(int fd, uint64_t at, uint64_t most)
{
	off_t data = lseek(fd, (off_t)at, SEEK_DATA);

	if (data < 0)
		return errno == ENXIO ? most : 0;
	return MIN(most, (uint64_t)data - at);
}

/* Where the kernel cannot, it is not asked again. Returns how many bytes, perhaps 0, or -errno. */
static ssize_t share(int to, uint64_t where, int from, uint64_t at, uint64_t size)
{
	static bool cannot;
	loff_t in = (loff_t)at, out = (loff_t)where;
	ssize_t n;

	if (cannot || size < SHARE_MIN)
		return 0;
	do
		n = copy_file_range(from, &in, to, &out, size, 0);
	while (n < 0 && errno == EINTR);
	if (n >= 0 || errno == ENOSPC || errno == EDQUOT || errno == EIO)
		return n < 0 ? -errno : n;
	cannot = true;
	return 0;
}

/* What is written from @at on, up to a hole or the end. */
static uint64_t data_at(int fd, uint64_t at, uint64_t end)
{
	off_t hole = lseek(fd, (off_t)at, SEEK_HOLE);

	return hole < 0 ? end - at : MIN(end, (uint64_t)hole) - MIN(at, (uint64_t)hole);
}

static ssize_t data_append(struct store *store, struct blob *blob, int fd, uint64_t at, uint64_t end)
{
	uint64_t size = data_at(fd, at, end);
	static char piece[PIECE];
	ssize_t n;

	if (store->held + MIN(size, (uint64_t)PIECE) > store->max)
		return -ENOBUFS;
	if (store->held + size <= store->max) {
		n = share(blob->pack->fd, blob->offset + at, fd, at, size);
		if (n)
			return n;
	}
	n = piece_read(fd, piece, (size_t)MIN((uint64_t)PIECE, end - at), at);
	if (n <= 0)
		return n ? n : -EAGAIN;
	if (store->held + (uint64_t)n > store->max)
		return -ENOBUFS;
	return piece_write(blob->pack->fd, piece, (size_t)n, blob->offset + at);
}

ssize_t store_append(struct store *store, struct blob *blob, int fd, uint64_t at, uint64_t most)
{
	uint64_t end = MIN(at + most, blob->size), begin = at;

	while (at < end) {
		uint64_t hole = hole_at(fd, at, end - at);
		ssize_t n;

		if (hole == end - at || hole >= ALIGNMENT) {
			at += hole;
			continue;
		}
		n = data_append(store, blob, fd, at, end);
		if (n < 0)
			return n;
		store->held += (uint64_t)n;
		blob->stored += (uint64_t)n;
		at += (uint64_t)n;
	}
	return (ssize_t)(at - begin);
}

/* What nobody has written is a hole, also behind the end of the pack. */
ssize_t blob_read(const struct blob *blob, char *data, size_t size, uint64_t at)
{
	ssize_t n;

	if (at >= blob->size)
		return 0;
	size = (size_t)MIN((uint64_t)size, blob->size - at);
	n = piece_read(blob->pack->fd, data, size, blob->offset + at);
	if (n >= 0 && (size_t)n < size)
		memset(data + n, 0, size - (size_t)n);
	return n < 0 ? n : (ssize_t)size;
}

ssize_t blob_put(const struct blob *blob, int fd, uint64_t at, uint64_t most)
{
	uint64_t end = MIN(at + most, blob->size), hole = hole_at(blob->pack->fd, blob->offset + at, end - at);

	if (hole >= ALIGNMENT || hole == end - at)
		return (ssize_t)hole; /* nothing is written there either */
	return share(fd, at, blob->pack->fd, blob->offset + at,
		     data_at(blob->pack->fd, blob->offset + at, blob->offset + end));
}

/* ---- letting go ---- */

struct blob *blob_use(struct blob *blob)
{
	if (blob)
		blob->uses++;
	return blob;
}

/* Move @blob behind the contents of @to. What is a hole stays one. */
static int blob_move(struct blob *blob, struct pack *to)
{
	struct pack *from = blob->pack;
	uint64_t old = blob->offset, new = to->end;
	static char piece[PIECE];

	for (uint64_t at = 0; at < blob->size;) {
		uint64_t left = blob->size - at, hole = hole_at(from->fd, old + at, left);
		ssize_t n;

		if (hole) {
			at += hole;
			continue;
		}
		n = piece_read(from->fd, piece, (size_t)MIN((uint64_t)PIECE, left), old + at);
		if (n > 0)
			n = piece_write(to->fd, piece, (size_t)n, new + at);
		if (n <= 0)
			return n ? (int)n : -EIO;
		at += (uint64_t)n;
	}
	blob_leave(blob);
	blob_enter(blob, to);
	return 0;
}

/* If most of a pack is of no use any more, the rest goes elsewhere. If it cannot, it stays. */
static void pack_clear(struct store *store, struct pack *pack)
{
	struct pack *to;

	while (pack->blobs) {
		for (to = store->packs; to; to = to->next)
			if (to != pack && to->end + pack->blobs->size <= PACK_SIZE)
				break;
		if (!to || blob_move(pack->blobs, to))
			return;
	}
	pack_free(store, pack);
}

static void pack_judge(struct store *store, struct pack *pack)
{
	if (!pack->blobs)
		pack_free(store, pack);
	else if (pack->end > PACK_SIZE / 2 && pack->live < pack->end / 4)
		pack_clear(store, pack);
}

struct blob *blob_drop(struct store *store, struct blob *blob)
{
	struct pack *pack = blob ? blob->pack : NULL;

	if (!blob || --blob->uses > 0)
		return NULL;
	store->held -= blob->stored;
	blob_leave(blob);
	free(blob);
	pack_judge(store, pack);
	return NULL;
}
