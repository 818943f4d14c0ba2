/* An intrusive, circular, doubly linked list. A head and a node are the same thing; an unlinked node points to
 * itself, so removing twice is harmless. */
#pragma once

#include "proto/base.h"

#define container_of(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

struct list {
	struct list *next, *previous;
};

static inline void list_init(struct list *list)
{
	list->next = list->previous = list;
}

static inline bool list_empty(const struct list *list)
{
	return list->next == list;
}

static inline size_t list_size(const struct list *head)
{
	size_t n = 0;

	for (const struct list *at = head->next; at != head; at = at->next)
		n++;
	return n;
}

static inline void list_append(struct list *head, struct list *node)
{
	node->previous = head->previous;
	node->next = head;
	head->previous->next = node;
	head->previous = node;
}

static inline void list_remove(struct list *node)
{
	node->previous->next = node->next;
	node->next->previous = node->previous;
	list_init(node);
}

static inline struct list *list_first(struct list *head)
{
	return list_empty(head) ? NULL : head->next;
}

/* Safe against the removal of the entry at hand, and of no other. */
#define list_for_each(entry, head, member)                                                                         \
	for (struct list *entry##_at = (head)->next, *entry##_next = entry##_at->next;                             \
	     entry##_at != (head) && ((entry) = container_of(entry##_at, __typeof__(*(entry)), member), true);     \
	     entry##_at = entry##_next, entry##_next = entry##_at->next)
