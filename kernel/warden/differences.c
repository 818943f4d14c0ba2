/* Nothing is read from the disk: a content that was kept twice is the same in the store. A time alone is no
 * difference, and a directory has none but its mode. A file that is there under another name has been renamed. */
#include "differences.h"

#include "files/revert.h"

#include "proto/message.h"

#define TOLD_MAX 256
#define TOLD_SIZE_MAX (64U << 10)

struct pair {
	const struct file *before, *after; /* either may be NULL */
	bool taken;			   /* told with the other half */
};

struct differences {
	struct pair *pairs;
	size_t n;
	const struct pair **gone; /* those without @after, in the order of their inodes */
	size_t n_gone;
	struct wire_list *list;
	uint64_t more;
};

static const char *kind_of(const struct file *file)
{
	switch (file->mode & S_IFMT) {
	case S_IFREG:
		return "file";
	case S_IFDIR:
		return "directory";
	case S_IFLNK:
		return "link";
	default:
		return "other";
	}
}

static bool same_content(const struct file *before, const struct file *after)
{
	if ((before->mode & S_IFMT) != (after->mode & S_IFMT))
		return false;
	if (S_ISLNK(before->mode))
		return strcmp(before->target, after->target) == 0;
	if (!S_ISREG(before->mode))
		return true;
	if (before->unkept || after->unkept)
		return file_untouched(after, before);
	return before->size == after->size && before->content == after->content;
}

static bool is_listed(const struct file *before, const struct file *after)
{
	return !before || !after || before->mode != after->mode || !same_content(before, after);
}

static void count(void *userdata, struct file *after, struct file *before)
{
	*(size_t *)userdata += is_listed(before, after);
}

static void add(void *userdata, struct file *after, struct file *before)
{
	struct differences *all = userdata;

	if (is_listed(before, after))
		all->pairs[all->n++] = (struct pair){.before = before, .after = after};
}

/* ---- what was renamed ---- */

static int compare_inodes(const void *a, const void *b)
{
	const struct pair *const *left = a, *const *right = b;
	uint64_t x = (*left)->before->inode, y = (*right)->before->inode;

	return x < y ? -1 : x > y;
}

static int gone_list(struct differences *all)
{
	all->gone = malloc((all->n + 1) * sizeof(struct pair *));
	if (!all->gone)
		return -ENOMEM;
	for (size_t i = 0; i < all->n; i++)
		if (!all->pairs[i].after)
			all->gone[all->n_gone++] = &all->pairs[i];
	qsort(all->gone, all->n_gone, sizeof(struct pair *), compare_inodes);
	return 0;
}

/* The one that is under another name now, if it is the same file. */
static struct pair *gone_find(const struct differences *all, const struct file *after)
{
	size_t low = 0, high = all->n_gone;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (all->gone[middle]->before->inode < after->inode)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < all->n_gone && all->gone[low]->before->inode == after->inode; low++)
		if (!all->gone[low]->taken && file_same(all->gone[low]->before, after))
			return (struct pair *)all->gone[low];
	return NULL;
}

static void find_renamed(struct differences *all)
{
	for (size_t i = 0; i < all->n; i++) {
		struct pair *made = &all->pairs[i];
		struct pair *old = made->before ? NULL : gone_find(all, made->after);

		if (!old)
			continue;
		made->before = old->before;
		old->taken = true;
	}
}

/* ---- what is told ---- */

static const char *change_of(const struct pair *pair)
{
	if (!pair->before)
		return "created";
	if (!pair->after)
		return "deleted";
	if (strcmp(pair->before->path, pair->after->path) != 0)
		return "renamed";
	return same_content(pair->before, pair->after) ? "mode" : "changed";
}

static int put(struct differences *all, const struct pair *pair)
{
	const struct file *before = pair->before, *after = pair->after, *shown = after ? after : before;
	struct file_difference record = {
		.path = bytes_of(shown->path[0] ? shown->path : "."),
		.change = bytes_of(change_of(pair)),
		.kind = bytes_of(kind_of(shown)),
		.size = after ? after->size : 0,
		.size_before = before ? before->size : 0,
	};

	if (before && after && strcmp(before->path, after->path) != 0)
		record.was = bytes_of(before->path);
	if (before && after && before->mode != after->mode) {
		record.mode = after->mode & 07777;
		record.mode_before = before->mode & 07777;
	}
	if (all->list->n == TOLD_MAX || all->list->buffer.size > TOLD_SIZE_MAX) {
		all->more++;
		return 0;
	}
	return wire_list_add(all->list, &file_difference_schema, &record);
}

static int put_all(struct differences *all)
{
	int r = gone_list(all);

	if (!r)
		find_renamed(all);
	for (size_t i = 0; !r && i < all->n; i++)
		if (!all->pairs[i].taken)
			r = put(all, &all->pairs[i]);
	return r;
}

int differences_put(struct wire_list *list, uint64_t *morep, const struct manifest *since,
		    const struct manifest *until)
{
	struct differences all = {.list = list};
	size_t n = 0;
	int r;

	revert_compare(until, since, count, &n);
	all.pairs = calloc(n + 1, sizeof(*all.pairs));
	if (!all.pairs)
		return -ENOMEM;
	revert_compare(until, since, add, &all);
	r = put_all(&all);
	*morep = all.more;
	free(all.gone);
	free(all.pairs);
	return r;
}
