/* An intrusive, circular, doubly linked list. A head and a node are the same thing; an unlinked node points to
 * itself, so removing twice is harmless. Every node is initialised before it is appended. A linked node is never
 * appended: that would fuse two lists, so it ends the process, in every build. */
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

/* The invariant @why is broken: log it and abort. */
_Noreturn void list_broken(const char *why);

static inline void list_append(struct list *head, struct list *node)
{
	if (!list_empty(node))
		list_broken("a node was appended that is linked, or was never initialised");
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

/* Remove @node from its list, and append it to @head. */
static inline void list_move(struct list *head, struct list *node)
{
	list_remove(node);
	list_append(head, node);
}

static inline struct list *list_first(struct list *head)
{
	return list_empty(head) ? NULL : head->next;
}

/* For list_for_each: a walk that went on from a removed node would never end. */
static inline struct list *list_go_on(struct list *next, const struct list *head)
{
	if (next != head && list_empty(next))
		list_broken("the next entry was removed during a walk");
	return next;
}

/* The body may remove the current entry, and no other: the removal of the next one ends the process. If it may
 * remove others, take the first entry again and again instead. */
#define list_for_each(entry, head, member)                                                                         \
	for (struct list *entry##_at = (head)->next, *entry##_next = entry##_at->next;                             \
	     entry##_at != (head) && ((entry) = container_of(entry##_at, __typeof__(*(entry)), member), true);     \
	     entry##_at = list_go_on(entry##_next, head), entry##_next = entry##_at->next)
