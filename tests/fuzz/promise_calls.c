/* Whatever a client offers and a cell calls: what is found in the offer lies in it, a call in words is text that
 * can be shown, and the order of keys does not change its digest. The input is a value in msgpack, and then another
 * one. */
#include "promise/call_text.h"
#include "promise/calls.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_for_each(struct bytes functions)
{
	struct calls calls = {.n = 0};
	const struct function *found;
	struct function function;
	struct wire_fault fault;
	struct bytes item;
	size_t cursor = 0;

	list_init(&calls.list);
	while (wire_next(functions, &cursor, &item)) {
		if (wire_decode_known(&function, &function_schema, item, &fault))
			continue;
		found = calls_function(&calls, functions, function.name);
		if (found && (!bytes_equal(found->name, function.name) || found->name.data < functions.data ||
			      found->name.data + found->name.size > functions.data + functions.size))
			abort();
	}
	calls_deinit(&calls);
}

static void check_text(struct bytes function, struct bytes arguments)
{
	char text[CALL_TEXT_SIZE];
	struct bytes told;

	memset(text, 0x7f, sizeof(text));
	call_text(text, function, arguments);
	if (!memchr(text, '\0', sizeof(text)))
		abort();
	told = bytes_of(text);
	if (!utf8_valid(told) || told.data[told.size - 1] != ')')
		abort();
	for (size_t i = 0; i < told.size; i++)
		if ((uint8_t)told.data[i] < ' ' || told.data[i] == 0x7f)
			abort();
}

/* @map with its pairs in the opposite order. False if it is none. */
static bool reverse(msgpack_sbuffer *buffer, struct bytes map)
{
	struct bytes keys[16], values[16], key, value;
	size_t cursor = 0, whole = 0, n = 0;

	while (wire_next_pair(map, &cursor, &key, &value)) {
		if (n == ARRAY_SIZE(keys))
			return false;
		keys[n] = key;
		values[n++] = value;
		whole = cursor;
	}
	/* A pair with another key is not among them. */
	if (n == 0 || whole != map.size)
		return false;
	/* The same key twice is no map. */
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++)
			if (bytes_equal(keys[i], keys[j]))
				return false;
	(void)msgpack_sbuffer_write(buffer, (char[]){(char)0xde, 0, (char)n}, 3);
	while (n-- > 0) {
		(void)wire_put_string(buffer, keys[n]);
		(void)msgpack_sbuffer_write(buffer, values[n].data, values[n].size);
	}
	return true;
}

static void check_digest(struct bytes function, struct bytes arguments)
{
	uint8_t one[SHA256_SIZE], other[SHA256_SIZE];
	msgpack_sbuffer reversed;

	if (call_digest(one, function, arguments))
		abort();
	msgpack_sbuffer_init(&reversed);
	if (reverse(&reversed, arguments) &&
	    (call_digest(other, function, wire_bytes(&reversed)) || memcmp(one, other, sizeof(one)) != 0))
		abort();
	msgpack_sbuffer_destroy(&reversed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes all = {.data = (const char *)data, .size = size}, offer, rest;
	size_t first = size > 0 ? wire_scan(all, WIRE_DEPTH_MAX, size) : 0;

	if (first == 0)
		return 0;
	offer = (struct bytes){.data = all.data, .size = first};
	if (functions_valid(offer))
		look_for_each(offer);
	check_text(BYTES("pay"), offer);
	check_digest(BYTES("pay"), offer);
	rest = (struct bytes){.data = all.data + first, .size = size - first};
	check_text(rest.size > 0 ? rest : BYTES("x"), offer);
	return 0;
}
