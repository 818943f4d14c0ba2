/* Calls as text and as digests. */
#include "call_text.h"

#include "base/printable.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* Of a text in the arguments, of the elements of an array or a map, and of how deep they lie. */
#define STRING_SHOWN 60
#define ELEMENTS_SHOWN 8
#define DEPTH_SHOWN 3

/* ---- values ---- */

static uint8_t head_of(struct bytes value)
{
	return value.size > 0 ? (uint8_t)value.data[0] : 0xc0;
}

static bool is_map(struct bytes value)
{
	uint8_t head = head_of(value);

	return (head & 0xf0) == 0x80 || head == 0xde || head == 0xdf;
}

/* Of a map: how many pairs its head announces. */
static size_t pairs_of(struct bytes map)
{
	size_t width = head_of(map) == 0xdf ? 4 : 2, n = 0;

	if ((head_of(map) & 0xf0) == 0x80)
		return head_of(map) & 0x0f;
	for (size_t i = 1; i <= width && i < map.size; i++)
		n = n << 8 | (uint8_t)map.data[i];
	return n;
}

static bool is_array(struct bytes value)
{
	uint8_t head = head_of(value);

	return (head & 0xf0) == 0x90 || head == 0xdc || head == 0xdd;
}

static bool is_text(struct bytes value)
{
	uint8_t head = head_of(value);

	return (head & 0xe0) == 0xa0 || (head >= 0xd9 && head <= 0xdb);
}

/* What follows the head of a number. */
static uint64_t number_of(struct bytes value)
{
	uint64_t number = 0;

	for (size_t i = 1; i < value.size && i <= sizeof(number); i++)
		number = number << 8 | (uint8_t)value.data[i];
	return number;
}

static double real_of(struct bytes value)
{
	uint64_t bits = number_of(value);
	uint32_t half = (uint32_t)bits;
	double real;
	float single;

	if (head_of(value) == 0xca) {
		memcpy(&single, &half, sizeof(single));
		return (double)single;
	}
	memcpy(&real, &bits, sizeof(real));
	return real;
}

static int64_t signed_of(struct bytes value)
{
	static const unsigned unused[] = {56, 48, 32, 0};

	return (int64_t)(number_of(value) << unused[head_of(value) & 3]) >> unused[head_of(value) & 3];
}

/* ---- words ---- */

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

	if (character.data[0] == '"' || character.data[0] == '\\')
		put(pen, (char[]){'\\', character.data[0]}, 2);
	else if (character.data[0] == ' ' || printable(character))
		put(pen, character.data, character.size);
	else if (character.data[0] == '\n')
		put(pen, "\\n", 2);
	else
		for (size_t i = 0; i < character.size; i++)
			put(pen, escaped,
			    (size_t)snprintf(escaped, sizeof(escaped), "\\x%02x", (uint8_t)character.data[i]));
}

/* @max: bytes of it. */
static void put_characters(struct pen *pen, struct bytes text, size_t max)
{
	size_t at = 0;

	while (at < text.size && at < max && !pen->full) {
		size_t n = MAX(character_size(text, at), (size_t)1);

		put_character(pen, (struct bytes){.data = text.data + at, .size = n});
		at += n;
	}
	if (at < text.size)
		put_text(pen, "...");
}

static void put_real(struct pen *pen, double real)
{
	char text[40];

	for (int precision = 15; precision <= 17; precision++) {
		snprintf(text, sizeof(text), "%.*g", precision, real);
		if (strtod(text, NULL) == real)
			break;
	}
	put_text(pen, text);
	if (isfinite(real) && !strpbrk(text, ".e"))
		put_text(pen, ".0");
}

static void put_scalar(struct pen *pen, struct bytes value)
{
	uint8_t head = head_of(value);
	struct bytes span;
	char text[40];
	bool binary;

	if (head == 0xc2 || head == 0xc3) {
		put_text(pen, head == 0xc3 ? "True" : "False");
	} else if (head <= 0x7f || head >= 0xe0) {
		snprintf(text, sizeof(text), "%d", (int8_t)head);
		put_text(pen, text);
	} else if (head >= 0xcc && head <= 0xcf) {
		snprintf(text, sizeof(text), "%" PRIu64, number_of(value));
		put_text(pen, text);
	} else if (head >= 0xd0 && head <= 0xd3) {
		snprintf(text, sizeof(text), "%" PRId64, signed_of(value));
		put_text(pen, text);
	} else if (head == 0xca || head == 0xcb) {
		put_real(pen, real_of(value));
	} else if (!wire_read_span(value, &span, &binary)) {
		put_text(pen, head == 0xc0 ? "None" : "?");
	} else if (binary) {
		snprintf(text, sizeof(text), "<%zu bytes>", span.size);
		put_text(pen, text);
	} else {
		put_text(pen, "\"");
		put_characters(pen, span, STRING_SHOWN);
		put_text(pen, "\"");
	}
}

static void put_value(struct pen *pen, struct bytes value, unsigned depth);

static void put_array(struct pen *pen, struct bytes array, unsigned depth)
{
	struct bytes item;
	size_t cursor = 0;

	put_text(pen, "[");
	for (size_t n = 0; !pen->full && wire_next(array, &cursor, &item); n++) {
		put_text(pen, n ? ", " : "");
		if (n == ELEMENTS_SHOWN || depth == 0) {
			put_text(pen, "...");
			break;
		}
		put_value(pen, item, depth - 1);
	}
	put_text(pen, "]");
}

static void put_map(struct pen *pen, struct bytes map, unsigned depth)
{
	struct bytes key, value;
	size_t cursor = 0, all = pairs_of(map);

	put_text(pen, "{");
	for (size_t n = 0; !pen->full && n < all; n++) {
		put_text(pen, n ? ", " : "");
		/* What has another key is not shown either. */
		if (n == ELEMENTS_SHOWN || depth == 0 || !wire_next_pair(map, &cursor, &key, &value)) {
			put_text(pen, "...");
			break;
		}
		put_text(pen, "\"");
		put_characters(pen, key, STRING_SHOWN);
		put_text(pen, "\": ");
		put_value(pen, value, depth - 1);
	}
	put_text(pen, "}");
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as is shown */
static void put_value(struct pen *pen, struct bytes value, unsigned depth)
{
	if (is_map(value))
		put_map(pen, value, depth);
	else if (is_array(value))
		put_array(pen, value, depth);
	else
		put_scalar(pen, value);
}

/* One that is no word could look like several arguments. */
static void put_name(struct pen *pen, struct bytes name)
{
	size_t n = 0;

	while (n < name.size && (isalnum((unsigned char)name.data[n]) || name.data[n] == '_'))
		n++;
	put_text(pen, n < name.size ? "\"" : "");
	put_characters(pen, name, STRING_SHOWN);
	put_text(pen, n < name.size ? "\"" : "");
}

const char *call_text(char out[static CALL_TEXT_SIZE], struct bytes function, struct bytes arguments)
{
	struct pen pen = {.out = out};
	struct bytes key, value;
	size_t cursor = 0;

	put_characters(&pen, function, 2 * STRING_SHOWN);
	put_text(&pen, "(");
	for (size_t n = 0; !pen.full && wire_next_pair(arguments, &cursor, &key, &value); n++) {
		put_text(&pen, n ? ", " : "");
		put_name(&pen, key);
		put_text(&pen, "=");
		put_value(&pen, value, DEPTH_SHOWN);
	}
	put_text(&pen, ")");
	out[pen.used] = '\0';
	return out;
}

/* ---- digests ---- */

struct pair {
	struct bytes key, value;
};

static int bytes_compare(struct bytes left, struct bytes right)
{
	int r = memcmp(left.data, right.data, MIN(left.size, right.size));

	return r ? r : (left.size > right.size) - (left.size < right.size);
}

static int pair_compare(const void *a, const void *b)
{
	const struct pair *left = a, *right = b;

	return bytes_compare(left->key, right->key);
}

static int write_bytes(msgpack_sbuffer *buffer, struct bytes bytes)
{
	return bytes.size > 0 && msgpack_sbuffer_write(buffer, bytes.data, bytes.size) ? -ENOMEM : 0;
}

/* Each part of it says how long it is, so that no two are the same by chance. */
static int write_size(msgpack_sbuffer *buffer, char kind, uint64_t size)
{
	char head[1 + sizeof(size)] = {kind};

	memcpy(head + 1, &size, sizeof(size));
	return write_bytes(buffer, (struct bytes){.data = head, .size = sizeof(head)});
}

static int write_value(msgpack_sbuffer *buffer, struct bytes value)
{
	int r = write_size(buffer, 'v', value.size);

	return r ? r : write_bytes(buffer, value);
}

static int canonical(msgpack_sbuffer *buffer, struct bytes value);

/* The pairs of @map by their keys, but for those whose keys are no text. Returns 0 or -ENOMEM; *@pairsp is to be
 * freed. */
static int pairs_sorted(struct pair **pairsp, size_t *np, struct bytes map)
{
	struct bytes key, value;
	size_t cursor = 0, n = 0;
	struct pair *pairs;

	while (wire_next_pair(map, &cursor, &key, &value))
		n++;
	pairs = calloc(n + 1, sizeof(*pairs));
	if (!pairs)
		return -ENOMEM;
	cursor = 0;
	for (size_t i = 0; i < n && wire_next_pair(map, &cursor, &pairs[i].key, &pairs[i].value); i++)
		;
	if (n > 0)
		qsort(pairs, n, sizeof(*pairs), pair_compare);
	*pairsp = pairs;
	*np = n;
	return 0;
}

static int canonical_map(msgpack_sbuffer *buffer, struct bytes map)
{
	struct pair *pairs;
	size_t n;
	int r = pairs_sorted(&pairs, &n, map);

	if (r)
		return r;
	if (n < pairs_of(map)) {
		free(pairs);
		return write_value(buffer, map);
	}
	r = write_size(buffer, 'm', n);
	for (size_t i = 0; i < n && !r; i++) {
		r = write_size(buffer, 'k', pairs[i].key.size);
		r = r ? r : write_bytes(buffer, pairs[i].key);
		r = r ? r : canonical(buffer, pairs[i].value);
	}
	free(pairs);
	return r;
}

static int canonical_array(msgpack_sbuffer *buffer, struct bytes array)
{
	struct bytes item;
	size_t cursor = 0;
	int r = write_size(buffer, 'a', wire_count(array));

	while (!r && wire_next(array, &cursor, &item))
		r = canonical(buffer, item);
	return r;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as a frame may be */
static int canonical(msgpack_sbuffer *buffer, struct bytes value)
{
	if (is_map(value))
		return canonical_map(buffer, value);
	if (is_array(value))
		return canonical_array(buffer, value);
	return write_value(buffer, value);
}

int call_digest(uint8_t out[static SHA256_SIZE], struct bytes function, struct bytes arguments)
{
	msgpack_sbuffer buffer;
	int r;

	msgpack_sbuffer_init(&buffer);
	r = write_size(&buffer, 'f', function.size);
	r = r ? r : write_bytes(&buffer, function);
	r = r ? r : canonical(&buffer, arguments);
	if (!r)
		sha256(out, wire_bytes(&buffer));
	msgpack_sbuffer_destroy(&buffer);
	return r;
}

/* ---- what all who read it read in the same way ---- */

struct key {
	struct bytes text; /* or an integer, as two's complement */
	uint64_t number;
	bool negative;
	struct bytes value; /* of the pair */
};

static bool key_read(struct key *key, struct bytes raw)
{
	uint8_t head = head_of(raw);
	bool binary;

	*key = (struct key){.text = {.data = NULL}};
	if (wire_read_span(raw, &key->text, &binary))
		return !binary;
	if (head <= 0x7f)
		key->number = head;
	else if (head >= 0xcc && head <= 0xcf)
		key->number = number_of(raw);
	else if (head >= 0xd0 && head <= 0xd3)
		key->number = (uint64_t)signed_of(raw);
	else if (head >= 0xe0)
		key->number = (uint64_t)(int8_t)head;
	else
		return false;
	key->negative = (head >= 0xe0 || (head >= 0xd0 && head <= 0xd3)) && (int64_t)key->number < 0;
	return true;
}

static int key_compare(const void *a, const void *b)
{
	const struct key *left = a, *right = b;

	if (!left->text.data || !right->text.data) {
		if (!left->text.data != !right->text.data)
			return left->text.data ? 1 : -1;
		if (left->negative != right->negative)
			return left->negative ? -1 : 1;
		return (left->number > right->number) - (left->number < right->number);
	}
	return bytes_compare(left->text, right->text);
}

/* The first of the values in @rest, which loses it. */
static struct bytes value_take(struct bytes *rest)
{
	struct bytes value = {.data = rest->data, .size = wire_scan(*rest, WIRE_DEPTH_MAX, rest->size)};

	rest->data += value.size;
	rest->size -= value.size;
	return value;
}

static struct bytes inside(struct bytes map)
{
	size_t head = (head_of(map) & 0xf0) == 0x80 ? 1 : head_of(map) == 0xde ? 3 : 5;

	return (struct bytes){.data = map.data + head, .size = map.size - head};
}

static bool value_is_plain(struct bytes value);

static bool keys_are_plain(struct key *keys, size_t n, struct bytes map, bool names)
{
	struct bytes rest = inside(map);

	for (size_t i = 0; i < n; i++) {
		if (!key_read(&keys[i], value_take(&rest)) || (names && !keys[i].text.data))
			return false;
		keys[i].value = value_take(&rest);
	}
	if (n > 1)
		qsort(keys, n, sizeof(*keys), key_compare);
	for (size_t i = 1; i < n; i++)
		if (key_compare(&keys[i - 1], &keys[i]) == 0)
			return false;
	return true;
}

static bool map_is_plain(struct bytes map, bool names)
{
	size_t n = pairs_of(map);
	struct key *keys = calloc(n + 1, sizeof(*keys));
	bool plain = keys && keys_are_plain(keys, n, map, names);

	for (size_t i = 0; i < n && plain; i++)
		plain = value_is_plain(keys[i].value);
	free(keys);
	return plain;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as a frame may be */
static bool value_is_plain(struct bytes value)
{
	struct bytes item;
	size_t cursor = 0;
	bool binary, plain = true;

	if (is_map(value))
		return map_is_plain(value, false);
	while (is_array(value) && plain && wire_next(value, &cursor, &item))
		plain = value_is_plain(item);
	return plain && (!is_text(value) || wire_read_span(value, &item, &binary));
}

bool call_arguments_plain(struct bytes arguments)
{
	return is_map(arguments) && map_is_plain(arguments, true);
}
