/* Texts. The head of a bin is made when its bulk is loaded: all bulks are so large that it has five bytes. */
#include "text.h"

#include <stdlib.h>

/* An empty bin: its head alone. */
#define EMPTY_SIZE 2
_Static_assert(BULK_MIN > UINT16_MAX, "the head of a bulk's bin has another length");

struct bulk *bulk_new(void)
{
	struct bulk *bulk = calloc(1, sizeof(*bulk));

	if (bulk)
		bulk->refs = 1;
	return bulk;
}

struct bulk *bulk_ref(struct bulk *bulk)
{
	bulk->refs++;
	return bulk;
}

struct bulk *bulk_unref(struct bulk *bulk)
{
	if (!bulk || --bulk->refs > 0)
		return NULL;
	for (size_t i = 0; i < BULK_BINS; i++)
		for (size_t k = 0; k < ARRAY_SIZE(bulk->bins[i].memory); k++)
			free(bulk->bins[i].memory[k]);
	free(bulk);
	return NULL;
}

size_t bulk_size(const struct bulk *bulk)
{
	size_t size = 0;

	for (size_t i = 0; bulk && i < BULK_BINS; i++)
		size += bulk->bins[i].size;
	return size;
}

struct text text_take(msgpack_sbuffer *buffer)
{
	struct text text = {.encoded = *buffer};

	msgpack_sbuffer_init(buffer);
	return text;
}

static void head_put(char head[static 5], size_t size)
{
	head[0] = (char)0xc6;
	for (int i = 0; i < 4; i++)
		head[1 + i] = (char)(size >> (24 - 8 * i));
}

int text_load(struct text *text, struct bulk *bulk, const struct bytes names[BULK_BINS])
{
	struct wire_frame frame;

	if (wire_open_answer(&frame, wire_bytes(&text->encoded)))
		return -EINVAL;
	for (size_t i = 0; i < BULK_BINS; i++) {
		struct bytes value = wire_find(frame.body, names[i]);

		if (bulk->bins[i].size == 0)
			continue;
		if (value.size != EMPTY_SIZE || memcmp(value.data, "\xc4", EMPTY_SIZE) != 0)
			return -EINVAL;
		text->at[i] = (size_t)(value.data - text->encoded.data);
		head_put(text->heads[i], bulk->bins[i].size);
	}
	text->bulk = bulk_ref(bulk);
	return 0;
}

void text_free(struct text *text)
{
	msgpack_sbuffer_destroy(&text->encoded);
	text->bulk = bulk_unref(text->bulk);
}

size_t text_size(const struct text *text)
{
	size_t size = text->encoded.size;

	for (size_t i = 0; text->bulk && i < BULK_BINS; i++)
		if (text->bulk->bins[i].size > 0)
			size += text->bulk->bins[i].size + sizeof(text->heads[i]) - EMPTY_SIZE;
	return size;
}

static void part_put(struct iovec *parts, size_t *n, const char *data, size_t size)
{
	if (size > 0)
		parts[(*n)++] = (struct iovec){.iov_base = (char *)data, .iov_len = size};
}

size_t text_parts(const struct text *text, struct iovec parts[TEXT_PARTS_MAX])
{
	size_t n = 0, at = 0;

	for (size_t i = 0; text->bulk && i < BULK_BINS; i++) {
		const struct bulk_bin *bin = &text->bulk->bins[i];

		if (bin->size == 0)
			continue;
		part_put(parts, &n, text->encoded.data + at, text->at[i] - at);
		part_put(parts, &n, text->heads[i], sizeof(text->heads[i]));
		for (size_t k = 0; k < BULK_PIECES; k++)
			part_put(parts, &n, bin->pieces[k].data, bin->pieces[k].size);
		at = text->at[i] + EMPTY_SIZE;
	}
	part_put(parts, &n, text->encoded.data + at, text->encoded.size - at);
	return n;
}
