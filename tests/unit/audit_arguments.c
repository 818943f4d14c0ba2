/* The arguments of calls as JSON: what JSON has no value for, and what is no msgpack. A session may say anything.
 */
#include "audit/arguments.h"

#include "check.h"
#include "proto/wire.h"

static const struct {
	struct bytes arguments;
	const char *json;
} rows[] = {
	{BYTES("\x80"), "{}"},
	{BYTES("\x82\xa1\x61\x05\xa1\x62\xc0"), "{\"a\":5,\"b\":null}"},
	{BYTES("\x81\xa1\x61\x93\xc2\xff\xa2\xc3\x9f"), "{\"a\":[false,-1,\"\xc3\x9f\"]}"},
	{BYTES("\x81\xa1\x61\xcf\xff\xff\xff\xff\xff\xff\xff\xff"), "{\"a\":\"18446744073709551615\"}"},
	{BYTES("\x81\xa1\x61\xcb\x3f\xf8\0\0\0\0\0\0"), "{\"a\":1.5}"},
	{BYTES("\x81\xa1\x61\xcb\x7f\xf8\0\0\0\0\0\0"), "{\"a\":\"<no number>\"}"},
	{BYTES("\x81\xa1\x61\xc4\x02\0\0"), "{\"a\":\"<2 bytes>\"}"},
	{BYTES("\x81\xa1\x61\xa1\xff"), "{\"a\":\"<text that is not UTF-8>\"}"},
	{BYTES("\x81\xa1\xff\x05"), "{\"<a key that is not UTF-8>\":true}"},
	{BYTES("\x81\x05\x05"), "{\"<key 0>\":5}"},
	{BYTES("\x05"), "5"},
	/* Not whole, or nothing. */
	{BYTES("\x81\xa1\x61"), "null"},
	{BYTES("\x81\xa1\x61\xdd\xff\xff\xff\xff"), "null"},
	{BYTES("\x92\x05"), "null"},
	{BYTES("\x05\x05"), "null"},
	{BYTES("\xc1"), "null"},
	{BYTES(""), "null"},
};

static void test_values(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		json_t *json = arguments_as_json(rows[i].arguments);
		char *text = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);

		if (!text || strcmp(text, rows[i].json) != 0)
			fprintf(stderr, "%zu: %s\n", i, text ? text : "nothing");
		CHECK(text && !strcmp(text, rows[i].json));
		free(text);
		json_decref(json);
	}
}

/* Deeper than anybody reads, and larger than a line. */
static void test_bounds(void)
{
	static char deep[40000], large[(64 << 10) + 1];
	json_t *json;

	memset(deep, '\x91', sizeof(deep));
	deep[WIRE_DEPTH_MAX] = '\x05';
	json = arguments_as_json((struct bytes){.data = deep, .size = WIRE_DEPTH_MAX + 1});
	CHECK(json_is_null(json));
	json_decref(json);
	json = arguments_as_json((struct bytes){.data = deep + 1, .size = WIRE_DEPTH_MAX});
	CHECK(json_is_array(json));
	json_decref(json);
	deep[WIRE_DEPTH_MAX] = '\x91';
	json = arguments_as_json((struct bytes){.data = deep, .size = sizeof(deep)});
	CHECK(json_is_null(json));
	json_decref(json);
	large[0] = '\xdc';
	large[1] = large[2] = '\xff';
	json = arguments_as_json((struct bytes){.data = large, .size = sizeof(large)});
	CHECK(json_is_null(json));
	json_decref(json);
	json = arguments_as_json((struct bytes){.data = large, .size = sizeof(large) - 1});
	CHECK(json_is_null(json));
	json_decref(json);
}

/* What is like arguments, but for some bytes. */
static void test_nonsense(void)
{
	char text[64];
	unsigned state = 1;

	for (unsigned i = 0; i < 200000; i++) {
		const struct bytes some = rows[i % ARRAY_SIZE(rows)].arguments;
		json_t *json;

		memcpy(text, some.data, some.size);
		for (unsigned k = 0; k < 3 && some.size > 0; k++) {
			state = state * 1103515245 + 12345;
			text[(state >> 8) % some.size] = (char)(state >> 20);
		}
		json = arguments_as_json((struct bytes){.data = text, .size = some.size});
		if (!json)
			CHECK(!"there is always a value");
		json_decref(json);
	}
}

int main(void)
{
	test_values();
	test_bounds();
	test_nonsense();
	return check_report();
}
