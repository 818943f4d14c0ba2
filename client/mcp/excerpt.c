/* The tail is a ring: byte n of the output, when it is past the head, is at (n - EXCERPT_HALF) % EXCERPT_HALF. */
#include "excerpt.h"

#include "json.h"
#include "text.h"

#include <inttypes.h>
#include <stdio.h>

void excerpt_add(struct excerpt *excerpt, struct lair_text text)
{
	while (text.size > 0) {
		bool begins = excerpt->size < EXCERPT_HALF;
		size_t at =
			begins ? (size_t)excerpt->size : (size_t)((excerpt->size - EXCERPT_HALF) % EXCERPT_HALF);
		size_t n = MIN(text.size, EXCERPT_HALF - at);

		memcpy((begins ? excerpt->head : excerpt->tail) + at, text.data, n);
		excerpt->size += n;
		text.data += n;
		text.size -= n;
	}
}

static bool continues(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* How many bytes at its beginning end one. */
static size_t cut_begin(const char *text, size_t size)
{
	size_t n = 0;

	while (n < 3 && n < size && continues(text[n]))
		n++;
	return n;
}

static json_t *two_ends(const struct excerpt *excerpt, const char *tail)
{
	size_t head = EXCERPT_HALF - text_cut_end(excerpt->head, EXCERPT_HALF);
	size_t skipped = cut_begin(tail, EXCERPT_HALF);
	char text[2 * EXCERPT_HALF + 64];
	int n;

	memcpy(text, excerpt->head, head);
	n = snprintf(text + head, 64, "\n[... %" PRIu64 " bytes left out ...]\n",
		     excerpt->size - head - (EXCERPT_HALF - skipped));
	memcpy(text + head + n, tail + skipped, EXCERPT_HALF - skipped);
	return json_text((struct lair_text){.data = text, .size = head + (size_t)n + EXCERPT_HALF - skipped});
}

json_t *excerpt_json(const struct excerpt *excerpt)
{
	size_t head = (size_t)MIN(excerpt->size, EXCERPT_HALF);
	size_t tail = (size_t)MIN(excerpt->size - head, EXCERPT_HALF);
	size_t oldest = tail == EXCERPT_HALF ? (size_t)(excerpt->size % EXCERPT_HALF) : 0;
	char text[2 * EXCERPT_HALF];

	memcpy(text, excerpt->head, head);
	memcpy(text + head, excerpt->tail + oldest, tail - oldest);
	memcpy(text + head + tail - oldest, excerpt->tail, oldest);
	if (excerpt->size > 2 * EXCERPT_HALF)
		return two_ends(excerpt, text + head);
	return json_text((struct lair_text){.data = text, .size = head + tail});
}

json_t *excerpt_of(struct lair_text text)
{
	struct excerpt excerpt;

	if (!text.data)
		return json_null();
	excerpt.size = 0;
	excerpt_add(&excerpt, text);
	return excerpt_json(&excerpt);
}
