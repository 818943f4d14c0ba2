/* Graveyards: a queue, linked forward. The free function of one object may bury another. */
#include "graveyard.h"

void graveyard_init(struct graveyard *yard, void (*free)(struct grave *grave))
{
	*yard = (struct graveyard){.end = &yard->first, .free = free};
}

bool graveyard_bury(struct graveyard *yard, struct grave *grave)
{
	if (grave->buried)
		return false;
	grave->buried = true;
	grave->next = NULL;
	*yard->end = grave;
	yard->end = &grave->next;
	return true;
}

void graveyard_empty(struct graveyard *yard)
{
	struct grave *grave;

	while ((grave = yard->first)) {
		yard->first = grave->next;
		if (!yard->first)
			yard->end = &yard->first;
		yard->free(grave);
	}
}
