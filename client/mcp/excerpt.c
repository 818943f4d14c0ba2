/* The tail is a ring: byte n behind the head is at n % EXCERPT_HALF. */
#include "excerpt.h"

#include "base/json.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>

void excerpt_begin(struct excerpt *excerpt)
{
	excerpt->size = excerpt->n_head = excerpt->n_tail = 0;
	excerpt->skipped = false;
}

void excerpt_add(struct excerpt *excerpt, struct lair_text text)
{
	while (text.size > 0) {
		bool begins = !excerpt->skipped && excerpt->n_head < EXCERPT_HALF;
		size_t at = begins ? excerpt->n_head : (size_t)(excerpt->n_tail % EXCERPT_HALF);
		size_t n = MIN(text.size, EXCERPT_HALF - at);

		memcpy((begins ? excerpt->head : excerpt->tail) + at, text.data, n);
		if (begins)
			excerpt->n_head += n;
		else
			excerpt->n_tail += n;
		excerpt->size += n;
		text.data += n;
		text.size -= n;
	}
}

void excerpt_skip(struct excerpt *excerpt, uint64_t size)
{
	excerpt->size += size;
	excerpt->n_tail = 0;
	excerpt->skipped = true;
}

static size_t tail_size(const struct excerpt *excerpt)
{
	return (size_t)MIN(excerpt->n_tail, EXCERPT_HALF);
}

bool excerpt_cut(const struct excerpt *excerpt)
{
	return excerpt->size > excerpt->n_head + tail_size(excerpt);
}

static bool continues(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* How many bytes at the beginning of @text are the end of a character that was cut. */
static size_t cut_begin(const char *text, size_t size)
{
	size_t n = 0;

	while (n < 3 && n < size && continues(text[n]))
		n++;
	return n;
}

static json_t *two_ends(const struct excerpt *excerpt, const char *tail)
{
	size_t head = excerpt->n_head - text_cut_end(excerpt->head, excerpt->n_head);
	size_t skipped = cut_begin(tail, tail_size(excerpt)), rest = tail_size(excerpt) - skipped;
	char text[2 * EXCERPT_HALF + 64];
	int n;

	memcpy(text, excerpt->head, head);
	n = snprintf(text + head, 64, "\n[... %" PRIu64 " bytes left out ...]\n", excerpt->size - head - rest);
	memcpy(text + head + n, tail + skipped, rest);
	return json_text((struct lair_text){.data = text, .size = head + (size_t)n + rest});
}

json_t *excerpt_json(const struct excerpt *excerpt)
{
	size_t head = excerpt->n_head, tail = tail_size(excerpt);
	size_t oldest = excerpt->n_tail > tail ? (size_t)(excerpt->n_tail % EXCERPT_HALF) : 0;
	char text[2 * EXCERPT_HALF];

	memcpy(text, excerpt->head, head);
	memcpy(text + head, excerpt->tail + oldest, tail - oldest);
	memcpy(text + head + tail - oldest, excerpt->tail, oldest);
	if (excerpt_cut(excerpt))
		return two_ends(excerpt, text + head);
	return json_text((struct lair_text){.data = text, .size = head + tail});
}

json_t *excerpt_of(struct lair_text text)
{
	struct excerpt excerpt;

	if (!text.data)
		return json_null();
	excerpt_begin(&excerpt);
	excerpt_add(&excerpt, text);
	return excerpt_json(&excerpt);
}
