/* The keeper's store. Each cell may change an item, so items are found by their family without looking at most
 * others. While items are handed out, others may be stored or forgotten; the position stays right. */
#include "store.h"

void store_init(struct store *store)
{
	for (size_t i = 0; i < STORE_BUCKETS; i++)
		list_init(&store->buckets[i]);
	store_rewind(store);
}

static struct list *bucket_of(struct store *store, uint64_t family)
{
	return &store->buckets[family % STORE_BUCKETS];
}

static void item_free(struct store *store, struct store_item *item)
{
	if (store->after == &item->node)
		store->after = item->node.previous;
	for (size_t i = 0; i < item->n_fds; i++)
		fd_close(item->fds[i]);
	list_remove(&item->node);
	free(item);
}

void store_deinit(struct store *store)
{
	struct store_item *item;

	for (size_t i = 0; i < STORE_BUCKETS; i++)
		list_for_each (item, &store->buckets[i], node)
			item_free(store, item);
}

static bool matches(const struct store_item *item, const struct store_name *name)
{
	if (item->name.family != name->family)
		return false;
	return name->kind == 0 || (item->name.kind == name->kind && item->name.number == name->number);
}

int store_put(struct store *store, const struct store_name *name, const int *fds, size_t n_fds)
{
	struct store_item *item = calloc(1, sizeof(*item));

	if (!item) {
		for (size_t i = 0; i < n_fds; i++)
			fd_close(fds[i]);
		return -ENOMEM;
	}
	store_forget(store, name);
	item->name = *name;
	item->n_fds = MIN(n_fds, (size_t)STORE_FDS_MAX);
	memcpy(item->fds, fds, item->n_fds * sizeof(*fds));
	list_init(&item->node);
	list_append(bucket_of(store, name->family), &item->node);
	return 0;
}

void store_forget(struct store *store, const struct store_name *name)
{
	struct store_item *item;

	list_for_each (item, bucket_of(store, name->family), node)
		if (matches(item, name))
			item_free(store, item);
}

void store_rewind(struct store *store)
{
	store->bucket = 0;
	store->after = &store->buckets[0];
}

struct store_item *store_next(struct store *store)
{
	while (store->after->next == &store->buckets[store->bucket]) {
		if (store->bucket + 1 == STORE_BUCKETS)
			return NULL;
		store->after = &store->buckets[++store->bucket];
	}
	store->after = store->after->next;
	return container_of(store->after, struct store_item, node);
}

void store_again(struct store *store)
{
	store->after = store->after->previous;
}
