/* Packs. Invariant: the extents of a pack's blobs do not overlap, all lie before its end, and each begins with a
 * block of its own; nothing is written behind the end. A content is written behind the last one of a pack. What is
 * dropped is punched out, a row of neighbours at once, and its place is not used again; but a pack of which nothing
 * is left is closed, and one of which little is left is moved into another. A content that is larger than a pack
 * has one of its own. Contents are counted in blocks, as the disk counts them. */
#include "store.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

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
	uint64_t stuck;	    /* bytes that are not in use, but could not be given back to the disk */
};

static uint64_t blocks(uint64_t size)
{
	return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

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
	if (store->loose.pack == pack)
		store->loose = (struct loose){.pack = NULL};
	store->held -= pack->stuck;
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

void store_settle(struct store *store)
{
	struct loose loose = store->loose;

	store->loose = (struct loose){.pack = NULL};
	if (!loose.pack || fallocate(loose.pack->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)loose.from,
				     (off_t)(loose.to - loose.from)) == 0)
		return;
	loose.pack->stuck += loose.stored;
	store->held += loose.stored;
}

/* Its place is free from now on. */
static void loosen(struct store *store, const struct blob *blob)
{
	uint64_t from = blob->offset, to = from + blocks(blob->size);
	struct loose *loose = &store->loose;

	store->held -= blob->stored;
	if (loose->pack != blob->pack || (loose->to != from && loose->from != to)) {
		store_settle(store);
		*loose = (struct loose){.pack = blob->pack, .from = from, .to = to};
	}
	loose->from = MIN(loose->from, from);
	loose->to = MAX(loose->to, to);
	loose->stored += blob->stored;
}

/* A longer file is a way to be killed by a signal. */
static uint64_t file_limit(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY ? INT64_MAX
										      : (uint64_t)limit.rlim_cur;
}

/* The session may have taken the right to write there away: it is there again for a moment. */
static int pack_open(int root)
{
	int fd = openat(root, ".", O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
	struct stat status;

	if (fd >= 0)
		return fd;
	if (errno == EISDIR || errno == EINVAL)
		return -EOPNOTSUPP;
	if (errno != EACCES || fstat(root, &status) < 0 || fchmod(root, (status.st_mode & 07777) | S_IRWXU) < 0)
		return -errno;
	fd = openat(root, ".", O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		fd = -errno;
	(void)fchmod(root, status.st_mode & 07777);
	return fd;
}

static int pack_new(struct pack **packp, struct store *store)
{
	struct pack *pack = calloc(1, sizeof(*pack));
	int r = 0;

	if (!pack)
		return -ENOMEM;
	pack->fd = pack_open(store->root);
	if (pack->fd < 0) {
		r = pack->fd;
		free(pack);
		return r;
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
	pack->end += blocks(blob->size);
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
	store_settle(store);
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

/* What is alike from @at on, before @end: all hole, or all data. */
struct extent {
	uint64_t size;
	bool hole;
};

static struct extent extent_at(int fd, uint64_t at, uint64_t end)
{
	off_t data = lseek(fd, (off_t)at, SEEK_DATA), hole = 0;

	if (data < 0)
		return (struct extent){.size = end - at, .hole = errno == ENXIO};
	if ((uint64_t)data > at)
		return (struct extent){.size = MIN(end, (uint64_t)data) - at, .hole = true};
	hole = lseek(fd, (off_t)at, SEEK_HOLE);
	return (struct extent){.size = hole <= (off_t)at ? end - at : MIN(end, (uint64_t)hole) - at};
}

static struct extent blob_extent(const struct blob *blob, uint64_t at)
{
	if (blob->stored >= blob->size)
		return (struct extent){.size = blob->size - at};
	return extent_at(blob->pack->fd, blob->offset + at, blob->offset + blob->size);
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

static ssize_t data_append(struct store *store, struct blob *blob, int fd, uint64_t at, uint64_t size)
{
	static char piece[PIECE];
	ssize_t n;

	if (store->held + blocks(MIN(size, (uint64_t)PIECE)) > store->max)
		return -ENOBUFS;
	if (store->held + blocks(size) <= store->max) {
		n = share(blob->pack->fd, blob->offset + at, fd, at, size);
		if (n)
			return n;
	}
	n = piece_read(fd, piece, (size_t)MIN((uint64_t)PIECE, size), at);
	if (n <= 0)
		return n ? n : -EAGAIN;
	return piece_write(blob->pack->fd, piece, (size_t)n, blob->offset + at);
}

ssize_t store_append(struct store *store, struct blob *blob, int fd, uint64_t at, uint64_t most)
{
	uint64_t begin = at, end = at + MIN(most, blob->size - at);

	while (at < end) {
		struct extent extent = extent_at(fd, at, blob->size);
		ssize_t n;

		for (uint64_t until = MIN(end, at + extent.size); !extent.hole && at < until; at += (uint64_t)n) {
			uint64_t taken;

			n = data_append(store, blob, fd, at, until - at);
			if (n < 0)
				return at > begin ? (ssize_t)(at - begin) : n;
			taken = blocks(at + (uint64_t)n) - blocks(at);
			store->held += taken;
			blob->stored += taken;
		}
		at += extent.hole ? extent.size : 0;
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

/* What is alike in a content and in a file from @at on. */
struct run {
	uint64_t size;
	bool hole, empty; /* in the content; in the file */
};

static struct run run_at(const struct blob *blob, int fd, uint64_t at, uint64_t most)
{
	struct extent content = blob_extent(blob, at), file = extent_at(fd, at, at + content.size);
	struct run run = {.size = file.size, .hole = content.hole, .empty = file.hole};

	if (!run.hole || !run.empty)
		run.size = MIN(run.size, most);
	return run;
}

uint64_t blob_lacks(const struct blob *blob, int fd, uint64_t at, uint64_t most, bool *lacksp)
{
	struct run run = run_at(blob, fd, at, most);

	*lacksp = run.empty && !run.hole;
	return run.size;
}

/* Returns how many bytes there are, at most @size; 0 if they differ or -errno. */
static ssize_t piece_same(char then[static PIECE], const struct blob *blob, int fd, uint64_t at, uint64_t size)
{
	static char now[PIECE];
	ssize_t n = blob_read(blob, then, (size_t)MIN((uint64_t)PIECE, size), at);

	if (n <= 0)
		return n ? n : -EIO;
	return piece_read(fd, now, (size_t)n, at) == n && memcmp(now, then, (size_t)n) == 0 ? n : 0;
}

ssize_t blob_same(const struct blob *blob, int fd, uint64_t at, uint64_t most)
{
	static char then[PIECE];
	struct run run = run_at(blob, fd, at, most);
	ssize_t n = (ssize_t)run.size;

	if (run.hole && run.empty)
		return n;
	for (uint64_t done = 0; done < run.size; done += (uint64_t)n) {
		n = piece_same(then, blob, fd, at + done, run.size - done);
		if (n <= 0)
			return n;
	}
	return (ssize_t)run.size;
}

static ssize_t piece_put(const struct blob *blob, int fd, uint64_t at, uint64_t size)
{
	static char then[PIECE];
	ssize_t n = piece_same(then, blob, fd, at, size);

	return n ? n : piece_write(fd, then, (size_t)MIN((uint64_t)PIECE, size), at);
}

ssize_t blob_put(const struct blob *blob, int fd, uint64_t at, uint64_t most)
{
	struct run run = run_at(blob, fd, at, most);

	if (run.hole && (run.empty || fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at,
						(off_t)run.size) == 0))
		return (ssize_t)run.size;
	for (uint64_t done = 0; done < run.size;) {
		uint64_t left = run.size - done, where = at + done;
		ssize_t n = run.empty ? share(fd, where, blob->pack->fd, blob->offset + where, left) : 0;

		if (n == 0)
			n = piece_put(blob, fd, where, left);
		if (n < 0)
			return n;
		done += (uint64_t)n;
	}
	return (ssize_t)run.size;
}

/* ---- letting go ---- */

struct blob *blob_use(struct blob *blob)
{
	if (blob)
		blob->uses++;
	return blob;
}

/* Copy @blob to @where in @to. What is a hole stays one. */
static int blob_copy(const struct blob *blob, const struct pack *to, uint64_t where)
{
	static char piece[PIECE];

	for (uint64_t at = 0; at < blob->size;) {
		struct extent extent = blob_extent(blob, at);
		ssize_t n = (ssize_t)extent.size;

		if (!extent.hole) {
			n = blob_read(blob, piece, (size_t)MIN((uint64_t)PIECE, extent.size), at);
			n = n <= 0 ? n : piece_write(to->fd, piece, (size_t)n, where + at);
		}
		if (n <= 0)
			return n ? (int)n : -EIO;
		at += (uint64_t)n;
	}
	return 0;
}

/* Move @blob behind the contents of @to. */
static int blob_move(struct store *store, struct blob *blob, struct pack *to)
{
	int r = blob_copy(blob, to, to->end);
	struct blob old = *blob;

	if (r)
		return ftruncate(to->fd, (off_t)to->end) < 0 ? -errno : r;
	blob_leave(blob);
	blob_enter(blob, to);
	store->held += blob->stored;
	loosen(store, &old);
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
		if (!to || blob_move(store, pack->blobs, to))
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
	loosen(store, blob);
	blob_leave(blob);
	free(blob);
	pack_judge(store, pack);
	return NULL;
}
