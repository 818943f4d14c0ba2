/* The tree of checkpoints. */
#include "history.h"

#include "proto/event.h"

#include <stdio.h>

void history_init(struct history *history)
{
	*history = (struct history){.saved = true};
	list_init(&history->checkpoints);
}

void history_rebase(struct history *history, struct checkpoint *base)
{
	history->base = base;
	history->saved = true;
	history->severed = false;
	history->unkept[0] = '\0';
}

bool checkpoint_name_valid(struct bytes name)
{
	if (name.size == 0 || name.size > CHECKPOINT_NAME_MAX)
		return false;
	for (size_t i = 0; i < name.size; i++)
		if (name.data[i] <= ' ' || name.data[i] > '~')
			return false;
	return true;
}

static size_t *counter_of(struct history *history, const struct checkpoint *checkpoint)
{
	return checkpoint->name[0] ? &history->n_named : &history->n_automatic;
}

void history_name(struct history *history, struct checkpoint *checkpoint, struct bytes name)
{
	--*counter_of(history, checkpoint);
	snprintf(checkpoint->name, sizeof(checkpoint->name), "%.*s", (int)name.size, name.size ? name.data : "");
	++*counter_of(history, checkpoint);
}

struct checkpoint *history_add(struct history *history, struct interpreter *interpreter, uint64_t cell)
{
	struct checkpoint *checkpoint = calloc(1, sizeof(*checkpoint));

	if (!checkpoint)
		return NULL;
	checkpoint->cell = cell;
	checkpoint->born = event_now();
	checkpoint->parent = history->base;
	checkpoint->severed = history->severed;
	checkpoint->interpreter = interpreter;
	++*counter_of(history, checkpoint);
	list_init(&checkpoint->node);
	list_append(&history->checkpoints, &checkpoint->node);
	history_rebase(history, checkpoint);
	return checkpoint;
}

void history_remove(struct history *history, struct checkpoint *checkpoint)
{
	struct checkpoint *other;

	list_remove(&checkpoint->node);
	--*counter_of(history, checkpoint);
	list_for_each (other, &history->checkpoints, node) {
		if (other->parent != checkpoint)
			continue;
		other->parent = checkpoint->parent;
		other->severed = true;
	}
	if (history->base == checkpoint) {
		history->severed |= checkpoint->severed || !history->saved;
		history->base = checkpoint->parent;
		history->saved = false;
	}
	free(checkpoint);
}

void history_deinit(struct history *history)
{
	struct checkpoint *checkpoint;

	list_for_each (checkpoint, &history->checkpoints, node)
		history_remove(history, checkpoint);
}

static bool number_of(struct bytes text, uint64_t *number)
{
	*number = 0;
	for (size_t i = 0; i < text.size; i++) {
		if (text.data[i] < '0' || text.data[i] > '9' || *number > UINT32_MAX)
			return false;
		*number = 10 * *number + (uint64_t)(text.data[i] - '0');
	}
	return text.size > 0;
}

struct checkpoint *history_find(struct history *history, struct bytes name)
{
	struct checkpoint *checkpoint, *found = NULL;
	uint64_t cell;

	list_for_each (checkpoint, &history->checkpoints, node)
		if (checkpoint->name[0] && bytes_is(name, checkpoint->name))
			return checkpoint;
	if (number_of(name, &cell))
		list_for_each (checkpoint, &history->checkpoints, node)
			if (checkpoint->cell == cell)
				found = checkpoint;
	return found;
}

struct checkpoint *history_of(struct history *history, const struct interpreter *interpreter)
{
	struct checkpoint *checkpoint;

	list_for_each (checkpoint, &history->checkpoints, node)
		if (checkpoint->interpreter == interpreter)
			return checkpoint;
	return NULL;
}

bool history_back(const struct history *history, uint64_t n, struct checkpoint **target)
{
	struct checkpoint *checkpoint = history->base;

	if (!history->saved && n > 0) {
		if (history->severed)
			return false;
		n--;
	}
	for (; n > 0; n--) {
		if (!checkpoint || checkpoint->severed)
			return false;
		checkpoint = checkpoint->parent;
	}
	*target = checkpoint;
	return true;
}

static bool on_path(const struct history *history, const struct checkpoint *checkpoint)
{
	const struct checkpoint *at;

	for (at = history->base; at && at != checkpoint; at = at->parent)
		;
	return at == checkpoint;
}

uint64_t history_memory(const struct history *history)
{
	const struct checkpoint *checkpoint;
	uint64_t sum = 0;

	list_for_each (checkpoint, &history->checkpoints, node)
		sum += checkpoint->memory;
	return sum;
}

double history_age(const struct history *history)
{
	const struct checkpoint *oldest = container_of(history->checkpoints.next, struct checkpoint, node);

	return list_empty(&history->checkpoints) ? 0 : event_seconds(event_now() - oldest->born);
}

struct checkpoint *history_excess(struct history *history, uint64_t automatic, uint64_t memory)
{
	bool too_many = history->n_automatic > automatic, too_much = memory && history_memory(history) > memory;
	struct checkpoint *checkpoint, *oldest = NULL;

	if (!too_many && !too_much)
		return NULL;
	list_for_each (checkpoint, &history->checkpoints, node) {
		if (checkpoint == history->base || (checkpoint->name[0] && !too_much))
			continue;
		if (!on_path(history, checkpoint))
			return checkpoint;
		if (!oldest)
			oldest = checkpoint;
	}
	return oldest;
}
