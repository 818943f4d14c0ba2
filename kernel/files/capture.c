/* The capture. A file that changes while it is copied is copied again, some times. What cannot be kept is told, and
 * the rest is kept. */
#include "capture.h"

#include <fcntl.h>
#include <stdio.h>

#define ENTRIES 2000
#define COPY_STEP (4ULL << 20)
#define TRIES_MAX 3
#define PIECE (256U << 10)

int capture_begin(struct capture *capture, struct store *store, int root, struct manifest *before)
{
	*capture = (struct capture){.store = store, .root = root, .before = manifest_use(before), .fd = -1};
	return scan_begin(&capture->scan, store, root);
}

static void file_end(struct capture *capture)
{
	capture->fd = fd_close(capture->fd);
	capture->done = 0;
	capture->tries = 0;
	capture->likely = blob_drop(capture->store, capture->likely);
}

void capture_deinit(struct capture *capture)
{
	file_end(capture);
	scan_deinit(&capture->scan);
	free(capture->inodes_before);
	free(capture->inodes);
	capture->inodes_before = capture->inodes = NULL;
	capture->before = manifest_drop(capture->store, capture->before);
	capture->found = manifest_drop(capture->store, capture->found);
	fd_closep(&capture->root);
}

/* ---- which files, and what they may still have ---- */

static bool is_mapped(const struct capture *capture, uint64_t inode)
{
	for (size_t i = 0; i < capture->n_mapped; i++)
		if (capture->mapped[i] == inode)
			return true;
	return false;
}

/* The file before of the same path, or else of the same inode. */
static const struct file *file_before(const struct capture *capture, const struct file *file)
{
	const struct manifest *before = capture->before;
	const struct file *found = before ? manifest_find(before, file->path) : NULL;
	size_t at;

	if (!before || (found && found->content))
		return found;
	at = inodes_place(capture->inodes_before, before->n, file->inode);
	return at < before->n && file_same(capture->inodes_before[at], file) ? capture->inodes_before[at] : NULL;
}

/* Another name of it that has been copied already. */
static const struct file *file_linked(const struct capture *capture, const struct file *file)
{
	size_t at = inodes_place(capture->inodes, capture->found->n, file->inode);

	for (; at < capture->found->n && capture->inodes[at]->inode == file->inode; at++)
		if (capture->inodes[at] != file && capture->inodes[at]->content &&
		    file_untouched(capture->inodes[at], file))
			return capture->inodes[at];
	return NULL;
}

static const char *reason(int r)
{
	if (r == -ENOBUFS || r == -EFBIG)
		return "it is too large to be kept";
	if (r == -EAGAIN)
		return "it was written to all the time";
	if (r == -ELOOP || r == -ENOTDIR)
		return "it was replaced meanwhile";
	return strerror(-r);
}

static void lack(struct capture *capture, struct file *file, int r)
{
	file->content = blob_drop(capture->store, file->content);
	file->unkept = true;
	manifest_lacks(capture->found, file->path, reason(r));
	file_end(capture);
}

/* ---- copying one ---- */

static int file_open(struct capture *capture, struct file *file)
{
	int fd = reach_file(&capture->scan.walk.reach, file->path, O_RDONLY), r;

	if (fd < 0)
		return fd;
	r = file_look_again(file, fd);
	if (r) {
		fd_close(fd);
		return r;
	}
	/* The next write through a map then sets the file's time, as the first one did: pages that are to be
	 * written back are protected. */
	if (file_is_held(fd))
		(void)sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
	capture->fd = fd;
	return 0;
}

static int copy_begin(struct capture *capture, struct file *file)
{
	const struct file *other;
	int r = file_open(capture, file);

	if (r || file->size == 0)
		return r;
	if (MIN(file->stored, file->size) > capture->store->max)
		return -EFBIG;
	other = file->links > 1 ? file_linked(capture, file) : NULL;
	if (other) {
		file->content = blob_use(other->content);
		capture->done = file->size;
		return 0;
	}
	other = file_before(capture, file);
	if (other && other->content && other->content->size == file->size)
		capture->likely = blob_use(other->content);
	return capture->likely ? 0 : store_begin(&file->content, capture->store, file->size);
}

static int compare_some(struct capture *capture, struct file *file)
{
	uint64_t until = MIN(file->size, capture->done + COPY_STEP);
	ssize_t n = 1;

	for (; n > 0 && capture->done < until; capture->done += (uint64_t)MAX(n, 0))
		n = blob_same(capture->likely, capture->fd, capture->done, until - capture->done);
	if (n < 0)
		return (int)n;
	if (capture->done == file->size)
		file->content = steal_ptr(&capture->likely);
	if (n > 0)
		return 0;
	capture->likely = blob_drop(capture->store, capture->likely);
	capture->done = 0;
	return store_begin(&file->content, capture->store, file->size);
}

static int copy_some(struct capture *capture, struct file *file)
{
	ssize_t n;

	if (capture->likely)
		return compare_some(capture, file);
	do
		n = store_append(capture->store, file->content, capture->fd, capture->done, COPY_STEP);
	while (n == -ENOBUFS && capture->make_room && capture->make_room(capture->userdata));
	if (n < 0)
		return (int)n;
	capture->done += (uint64_t)n;
	return 0;
}

/* The content must be that of one moment. */
static int copy_verify(struct capture *capture, struct file *file)
{
	struct file then = *file;
	int r = file_look_again(file, capture->fd);

	if (r)
		return r;
	file->changing |= is_mapped(capture, file->inode);
	capture->found->changing |= file->changing;
	return file_untouched(file, &then) ? 0 : -EAGAIN;
}

static void copy_again(struct capture *capture, struct file *file)
{
	unsigned tries = capture->tries + 1;

	file->content = blob_drop(capture->store, file->content);
	file_end(capture);
	capture->tries = tries;
}

/* Returns 1 if there is more to do for it, or 0. */
static int file_copy(struct capture *capture, struct file *file)
{
	int r = 0;

	if (capture->fd < 0)
		r = copy_begin(capture, file);
	if (!r && capture->done < file->size) {
		r = copy_some(capture, file);
		if (!r && capture->done < file->size)
			return 1;
	}
	if (!r)
		r = copy_verify(capture, file);
	if (r == -EAGAIN && capture->tries < TRIES_MAX) {
		copy_again(capture, file);
		return 1;
	}
	if (r)
		lack(capture, file, r);
	else if (file->content && file->content->uses == 1)
		capture->kept += file->content->stored;
	file_end(capture);
	return 0;
}

/* ---- all of them ---- */

static bool is_due(const struct file *file)
{
	return S_ISREG(file->mode) && !file->content && !file->unkept && file->size > 0;
}

static int scan_take(struct capture *capture)
{
	capture->found = steal_ptr(&capture->scan.found);
	scan_share(capture->store, capture->found, capture->before);
	capture->inodes = manifest_inodes(capture->found);
	capture->inodes_before = capture->before ? manifest_inodes(capture->before) : NULL;
	return capture->inodes && (!capture->before || capture->inodes_before) ? 1 : -ENOMEM;
}

int capture_step(struct capture *capture)
{
	uint64_t spent = 0;
	int r;

	if (!capture->found) {
		r = scan_step(&capture->scan, ENTRIES);
		return r ? r : scan_take(capture);
	}
	while (capture->at < capture->found->n && spent < COPY_STEP) {
		struct file *file = capture->found->files[capture->at];

		if (capture->fd < 0 && !is_due(file)) {
			capture->at++;
			continue;
		}
		spent += MIN(file->size, COPY_STEP) + PIECE / 16;
		if (file_copy(capture, file) == 0)
			capture->at++;
	}
	return capture->at < capture->found->n;
}
