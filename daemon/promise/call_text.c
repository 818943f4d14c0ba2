/* Calls as text and as digests. */
#include "call_text.h"

#include "base/printable.h"

#include "proto/json.h"

#include <ctype.h>
#include <stdio.h>

/* Bytes of a name, and of a value. */
#define SHOWN 80

/* ---- text ---- */

struct pen {
	char *out;
	size_t used;
	bool full;
};

/* There is always room for the end of it. */
static void put(struct pen *pen, const char *text, size_t size)
{
	static const char end[] = "...)";

	if (pen->full)
		return;
	if (pen->used + size + sizeof(end) > CALL_TEXT_SIZE) {
		pen->full = true;
		text = end;
		size = sizeof(end) - 1;
	}
	memcpy(pen->out + pen->used, text, size);
	pen->used += size;
}

static void put_text(struct pen *pen, const char *text)
{
	put(pen, text, strlen(text));
}

static size_t character_size(struct bytes text, size_t at)
{
	for (size_t n = 1; n <= 4 && at + n <= text.size; n++)
		if (utf8_valid((struct bytes){.data = text.data + at, .size = n}))
			return n;
	return 0;
}

static void put_character(struct pen *pen, struct bytes character)
{
	char escaped[8];

	if (character.data[0] == ' ' || printable(character))
		put(pen, character.data, character.size);
	else
		for (size_t i = 0; i < character.size; i++)
			put(pen, escaped,
			    (size_t)snprintf(escaped, sizeof(escaped), "\\x%02x", (uint8_t)character.data[i]));
}

static void put_characters(struct pen *pen, struct bytes text)
{
	size_t at = 0;

	while (at < text.size && at < SHOWN && !pen->full) {
		size_t n = MAX(character_size(text, at), (size_t)1);

		put_character(pen, (struct bytes){.data = text.data + at, .size = n});
		at += n;
	}
	if (at < text.size)
		put_text(pen, "...");
}

static void put_value(struct pen *pen, struct bytes raw)
{
	bool cut = false;
	_cleanup_(freep) char *text = json_written(raw, SHOWN, &cut);

	put_characters(pen, bytes_of(text ? text : "?"));
	/* Close the quotes: the rest is not a part of the text. */
	if (text && cut)
		put_text(pen, *text == '"' ? "...\"" : "...");
}

/* One that is not a word could look like several arguments. */
static void put_name(struct pen *pen, struct bytes raw)
{
	struct wire_value name = wire_value_of(raw);
	size_t n = 0;

	while (name.kind == WIRE_KIND_STR && n < name.inside.size &&
	       (isalnum((unsigned char)name.inside.data[n]) || name.inside.data[n] == '_'))
		n++;
	if (name.kind == WIRE_KIND_STR && n == name.inside.size)
		put_characters(pen, name.inside);
	else
		put_value(pen, raw);
}

const char *call_text(char out[static CALL_TEXT_SIZE], struct bytes function, struct bytes arguments)
{
	struct wire_value map = wire_value_of(arguments);
	struct pen pen = {.out = out};

	put_characters(&pen, function);
	put_text(&pen, "(");
	for (uint64_t i = 0; map.kind == WIRE_KIND_MAP && i < map.number && !pen.full; i++) {
		struct bytes key = wire_take(&map.inside), value = wire_take(&map.inside);

		put_text(&pen, i ? ", " : "");
		put_name(&pen, key);
		put_text(&pen, "=");
		put_value(&pen, value);
	}
	put_text(&pen, ")");
	out[pen.used] = '\0';
	return out;
}

/* ---- the pairs of a map ---- */

struct pair {
	struct wire_value key;
	struct bytes raw, value; /* the key, and its value, as they came */
};

static int bytes_compare(struct bytes left, struct bytes right)
{
	int r = memcmp(left.data, right.data, MIN(left.size, right.size));

	return r ? r : (left.size > right.size) - (left.size < right.size);
}

/* Equal keys are equal in meaning: numbers and text of any encoding. An int that is not negative has the kind of a
 * uint. */
static int pair_compare(const void *a, const void *b)
{
	const struct wire_value *left = &((const struct pair *)a)->key, *right = &((const struct pair *)b)->key;

	if (left->kind != right->kind)
		return left->kind < right->kind ? -1 : 1;
	if (left->kind == WIRE_KIND_STR)
		return bytes_compare(left->inside, right->inside);
	return (left->number > right->number) - (left->number < right->number);
}

/* Those of @map, sorted by their keys, for the caller to free; NULL without memory. */
static struct pair *pairs_of(struct wire_value map)
{
	struct pair *pairs = calloc(map.number + 1, sizeof(*pairs));

	for (uint64_t i = 0; pairs && i < map.number; i++) {
		pairs[i].raw = wire_take(&map.inside);
		pairs[i].key = wire_value_of(pairs[i].raw);
		pairs[i].value = wire_take(&map.inside);
	}
	if (pairs)
		qsort(pairs, map.number, sizeof(*pairs), pair_compare);
	return pairs;
}

/* ---- digests ---- */

/* Each part begins with its length, so that no two are the same by chance. */
static int write_part(msgpack_sbuffer *buffer, char kind, struct bytes part)
{
	char head[1 + sizeof(part.size)] = {kind};

	memcpy(head + 1, &part.size, sizeof(part.size));
	if (msgpack_sbuffer_write(buffer, head, sizeof(head)) ||
	    (part.data && part.size > 0 && msgpack_sbuffer_write(buffer, part.data, part.size)))
		return -ENOMEM;
	return 0;
}

static int canonical(msgpack_sbuffer *buffer, struct bytes raw);

static int canonical_map(msgpack_sbuffer *buffer, struct wire_value map)
{
	_cleanup_(freep) struct pair *pairs = pairs_of(map);
	int r = pairs ? write_part(buffer, 'm', (struct bytes){.size = map.number}) : -ENOMEM;

	for (uint64_t i = 0; i < map.number && !r; i++) {
		bool text = pairs[i].key.kind == WIRE_KIND_STR;

		r = write_part(buffer, 'k', text ? pairs[i].key.inside : pairs[i].raw);
		r = r ? r : canonical(buffer, pairs[i].value);
	}
	return r;
}

static int canonical_array(msgpack_sbuffer *buffer, struct wire_value array)
{
	int r = write_part(buffer, 'a', (struct bytes){.size = array.number});

	for (uint64_t i = 0; i < array.number && !r; i++)
		r = canonical(buffer, wire_take(&array.inside));
	return r;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as a frame may be */
static int canonical(msgpack_sbuffer *buffer, struct bytes raw)
{
	struct wire_value value = wire_value_of(raw);

	if (value.kind == WIRE_KIND_MAP)
		return canonical_map(buffer, value);
	if (value.kind == WIRE_KIND_ARRAY)
		return canonical_array(buffer, value);
	return write_part(buffer, 'v', raw);
}

int call_digest(uint8_t out[static SHA256_SIZE], struct bytes function, struct bytes arguments)
{
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer buffer = {0};
	int r;

	r = write_part(&buffer, 'f', function);
	r = r ? r : canonical(&buffer, arguments);
	if (!r)
		sha256(out, wire_bytes(&buffer));
	return r;
}

/* ---- arguments that have one meaning ---- */

static bool value_is_plain(struct bytes raw);

static bool map_is_plain(struct wire_value map, bool names)
{
	_cleanup_(freep) struct pair *pairs = pairs_of(map);
	bool plain = pairs;

	for (uint64_t i = 0; i < map.number && plain; i++) {
		const struct wire_value *key = &pairs[i].key;

		if (key->kind == WIRE_KIND_STR)
			plain = utf8_valid(key->inside);
		else
			plain = !names && (key->kind == WIRE_KIND_UINT || key->kind == WIRE_KIND_INT);
		plain = plain && (i == 0 || pair_compare(&pairs[i - 1], &pairs[i]) != 0) &&
			value_is_plain(pairs[i].value);
	}
	return plain;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as a frame may be */
static bool value_is_plain(struct bytes raw)
{
	struct wire_value value = wire_value_of(raw);
	bool plain = true;

	if (value.kind == WIRE_KIND_MAP)
		return map_is_plain(value, false);
	for (uint64_t i = 0; value.kind == WIRE_KIND_ARRAY && i < value.number && plain; i++)
		plain = value_is_plain(wire_take(&value.inside));
	return plain && (value.kind != WIRE_KIND_STR || utf8_valid(value.inside));
}

bool call_arguments_plain(struct bytes arguments)
{
	struct wire_value map = wire_value_of(arguments);

	return map.kind == WIRE_KIND_MAP && map_is_plain(map, true);
}
