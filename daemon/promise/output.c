/* Head and tail of a cell's output. Both grow as they are needed and never past half the limit each. */
#include "output.h"

#include <inttypes.h>
#include <stdio.h>

#define GROWTH 16

void output_init(struct output *output, size_t limit)
{
	*output = (struct output){.limit = limit, .most = limit, .known = limit};
}

/* What the user has paid for. */
static uint64_t paid_for(const struct output *output)
{
	return output->user ? 2 * (uint64_t)(output->limit - MIN(output->most, OUTPUT_FREE)) : 0;
}

void output_deinit(struct output *output)
{
	free(output->head);
	free(output->tail);
	user_give_back(output->user, paid_for(output));
	output_init(output, output->most);
}

void output_paid_by(struct output *output, struct user *user)
{
	output->user = user;
	output->limit = MIN(output->most, OUTPUT_FREE);
}

/* The head is full. Room that the user does not get now, it never gets: head and tail must keep their places. */
static void limit_raise(struct output *output, size_t wanted)
{
	size_t limit = MAX(output->limit, (size_t)1);

	while (limit - limit / 2 < wanted && limit < output->most)
		limit = MIN(2 * limit, output->most);
	if (limit > output->limit && !user_take(output->user, 2 * (uint64_t)(limit - output->limit)))
		output->most = limit = output->limit;
	output->limit = limit;
}

/* Make room for @wanted bytes, at most @limit. What is allocated grows in few large steps, up to @most: memory that
 * is not written to costs nothing, but to move what is there takes time. Returns how many bytes there is room for
 * now. */
static size_t room_make(char **datap, size_t *allocatedp, size_t wanted, size_t limit, size_t most)
{
	size_t allocated = MAX(*allocatedp, (size_t)256);
	char *grown;

	wanted = MIN(wanted, limit);
	if (wanted <= *allocatedp)
		return wanted;
	while (allocated < wanted)
		allocated *= GROWTH;
	allocated = MIN(allocated, most);
	grown = realloc(*datap, allocated);
	if (grown) {
		*datap = grown;
		*allocatedp = allocated;
	}
	return MIN(wanted, *allocatedp);
}

static struct bytes head_add(struct output *output, struct bytes data)
{
	size_t room, taken;

	if (output->tail_size > 0)
		return data;
	if (output->head_size + data.size > output->limit - output->limit / 2 && output->limit < output->most)
		limit_raise(output, output->head_size + data.size);
	room = room_make(&output->head, &output->head_allocated, output->head_size + data.size,
			 output->limit - output->limit / 2, output->most - output->most / 2);
	taken = room - output->head_size;
	if (taken > 0)
		memcpy(output->head + output->head_size, data.data, taken);
	output->head_size += taken;
	return (struct bytes){.data = data.data + taken, .size = data.size - taken};
}

static void tail_add(struct output *output, struct bytes data)
{
	size_t limit = output->limit / 2;
	size_t room =
		room_make(&output->tail, &output->tail_allocated, output->tail_size + data.size, limit, limit);
	size_t grown = MIN(room - output->tail_size, data.size);

	/* Once it has turned, the ring keeps its size, or its order would be lost. */
	if (grown > 0 && output->tail_at == 0) {
		memcpy(output->tail + output->tail_size, data.data, grown);
		output->tail_size += grown;
		data = (struct bytes){.data = data.data + grown, .size = data.size - grown};
	}
	if (data.size > output->tail_size)
		data = (struct bytes){.data = data.data + data.size - output->tail_size, .size = output->tail_size};
	while (data.size > 0) {
		size_t n = MIN(data.size, output->tail_size - output->tail_at);

		memcpy(output->tail + output->tail_at, data.data, n);
		output->tail_at = (output->tail_at + n) % output->tail_size;
		data = (struct bytes){.data = data.data + n, .size = data.size - n};
	}
}

void output_add(struct output *output, struct bytes data)
{
	struct bytes rest;

	output->total += data.size;
	rest = head_add(output, data);
	if (rest.size > 0)
		tail_add(output, rest);
}

void output_last_words(struct output *output, size_t size)
{
	if (output->tail_size > 0)
		return; /* a ring keeps the last ones anyway */
	output->most = MIN(output->most, 2 * output->head_size + size);
	output->limit = MIN(output->limit, output->most);
}

void output_skip(struct output *output, uint64_t size)
{
	output->total += size;
}

uint64_t output_dropped(const struct output *output)
{
	return output->total - output->head_size - output->tail_size;
}

/* Between head and tail. Returns its length. */
static size_t note_write(char note[static 80], uint64_t dropped)
{
	if (dropped == 0)
		return 0;
	return (size_t)snprintf(note, 80, "\n[... %" PRIu64 " bytes left out ...]\n", dropped);
}

size_t output_pieces(const struct output *output, struct piece pieces[PIECES_MAX])
{
	size_t older = output->tail_size - output->tail_at;
	uint64_t tail = output->total - output->tail_size;

	pieces[0] = (struct piece){.data = {.data = output->head, .size = output->head_size}};
	pieces[1] = (struct piece){.at = tail, .data = {.data = output->tail, .size = older}};
	pieces[2] = (struct piece){.at = tail + older, .data = {.data = output->tail, .size = output->tail_at}};
	if (older > 0)
		pieces[1].data.data += output->tail_at;
	return output->tail_size > 0 ? 3 : 1;
}

size_t output_split(struct piece pieces[PIECES_MAX], struct bytes joined, size_t head_size, uint64_t dropped)
{
	size_t head = dropped > 0 ? MIN(head_size, joined.size) : joined.size, tail;
	char note[80];

	pieces[0] = (struct piece){.data = {.data = joined.data, .size = head}};
	tail = MIN(head + note_write(note, dropped), joined.size);
	pieces[1] = (struct piece){.at = head + dropped,
				   .data = {.data = joined.data + tail, .size = joined.size - tail}};
	return 2;
}

int output_bring_back(struct bulk_bin *bin, struct bytes joined, size_t head_size, uint64_t dropped)
{
	struct piece pieces[PIECES_MAX];
	char *copy = malloc(joined.size + 1);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, joined.data, joined.size);
	bin->memory[0] = copy;
	bin->size = joined.size;
	output_split(pieces, (struct bytes){.data = copy, .size = joined.size}, head_size, dropped);
	bin->pieces[0] = pieces[0].data;
	bin->pieces[1] = (struct bytes){.data = copy + pieces[0].data.size,
					.size = joined.size - pieces[0].data.size - pieces[1].data.size};
	bin->pieces[2] = pieces[1].data;
	return 0;
}

size_t output_given(struct piece pieces[PIECES_MAX], const struct bulk_bin *bin, uint64_t dropped)
{
	uint64_t tail = bin->pieces[0].size + dropped;

	pieces[0] = (struct piece){.data = bin->pieces[0]};
	pieces[1] = (struct piece){.at = tail, .data = bin->pieces[2]};
	pieces[2] = (struct piece){.at = tail + bin->pieces[2].size, .data = bin->pieces[3]};
	return 3;
}

static void tail_give_up(struct output *output)
{
	free(output->tail);
	output->tail = NULL;
	output->tail_size = output->tail_allocated = output->tail_at = 0;
}

void output_give_up(struct output *output)
{
	tail_give_up(output);
	free(output->head);
	output->head = NULL;
	output->head_size = output->head_allocated = 0;
}

/* In the memory that the head has: if there is no more, the line overwrites the end of the head. */
static struct bytes head_alone(struct output *output)
{
	char note[80];
	size_t size, room;

	tail_give_up(output);
	room = MIN(output->head_allocated - output->head_size, sizeof(note));
	output->head_size -= MIN(sizeof(note) - room, output->head_size);
	size = note_write(note, output_dropped(output));
	size = MIN(size, output->head_allocated - output->head_size);
	if (size > 0)
		memcpy(output->head + output->head_size, note, size);
	return (struct bytes){.data = output->head ? output->head : "", .size = output->head_size + size};
}

/* What is kept in it has room for more. */
static char *shrink(char *data, size_t size)
{
	char *exact = data ? realloc(data, MAX(size, (size_t)1)) : NULL;

	return exact ? exact : data;
}

bool output_is_long(const struct output *output)
{
	return output->head_size + output->tail_size >= BULK_MIN;
}

void output_give(struct output *output, struct bulk_bin *bin)
{
	uint64_t dropped = output_dropped(output);
	struct piece pieces[PIECES_MAX];
	size_t note = note_write(bin->note, dropped), n;

	output->head = shrink(output->head, output->head_size);
	output->tail = shrink(output->tail, output->tail_size);
	n = output_pieces(output, pieces);
	bin->pieces[0] = pieces[0].data;
	bin->pieces[1] = (struct bytes){.data = bin->note, .size = note};
	for (size_t i = 1; i < n; i++)
		bin->pieces[1 + i] = pieces[i].data;
	for (size_t i = 0; i < BULK_PIECES; i++)
		bin->size += bin->pieces[i].size;
	bin->memory[0] = steal_ptr(&output->head);
	bin->memory[1] = steal_ptr(&output->tail);
	output_give_up(output);
}

struct bytes output_join(struct output *output)
{
	size_t size, note_size, older = output->tail_size - output->tail_at;
	char note[80], *grown;

	note_size = note_write(note, output_dropped(output));
	size = output->head_size + note_size + output->tail_size;
	if (size == output->head_size)
		return (struct bytes){.data = output->head ? output->head : "", .size = size};
	grown = realloc(output->head, size);
	if (!grown)
		return head_alone(output);
	memcpy(grown + output->head_size, note, note_size);
	if (output->tail) {
		memcpy(grown + output->head_size + note_size, output->tail + output->tail_at, older);
		memcpy(grown + output->head_size + note_size + older, output->tail, output->tail_at);
	}
	output->head = grown;
	output->head_allocated = size;
	return (struct bytes){.data = grown, .size = size};
}
