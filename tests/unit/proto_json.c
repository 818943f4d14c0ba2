/* Values as JSON: what JSON has no value for, and where text is cut. */
#include "check.h"

#include "proto/json.h"

#include <string.h>

static const struct {
	struct bytes raw;
	const char *json;
} rows[] = {
	{BYTES("\x80"), "{}"},
	{BYTES("\x82\xa1\x61\x05\xa1\x62\xc0"), "{\"a\": 5, \"b\": null}"},
	{BYTES("\x81\xa1\x61\x93\xc2\xff\xa2\xc3\x9f"), "{\"a\": [false, -1, \"\xc3\x9f\"]}"},
	{BYTES("\xcf\xff\xff\xff\xff\xff\xff\xff\xff"), "18446744073709551615"},
	{BYTES("\xd3\x80\0\0\0\0\0\0\0"), "-9223372036854775808"},
	{BYTES("\xcb\x3f\xf8\0\0\0\0\0\0"), "1.5"},
	{BYTES("\xcb\x40\0\0\0\0\0\0\0"), "2.0"},
	{BYTES("\xcb\x3f\xb9\x99\x99\x99\x99\x99\x9a"), "0.1"},
	{BYTES("\xca\x3f\0\0\0"), "0.5"},
	{BYTES("\xcb\x7f\xf8\0\0\0\0\0\0"), "null"},
	{BYTES("\xc4\x02\0\0"), "\"AAA=\""},
	{BYTES("\xa1\xff"), "\"\xef\xbf\xbd\""},
	{BYTES("\xa4\x1b\"\\\n"), "\"\\u001b\\\"\\\\\\n\""},
	{BYTES("\x83\x05\x05\xc3\x01\x90\x02"), "{\"5\": 5, \"true\": 1, \"?\": 2}"},
	{BYTES(""), "null"},
};

static void test_values(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		bool cut = true;
		_cleanup_(freep) char *text = json_written(rows[i].raw, SIZE_MAX, &cut);

		if (!text || strcmp(text, rows[i].json) != 0)
			fprintf(stderr, "%zu: %s\n", i, text ? text : "nothing");
		CHECK(text && !strcmp(text, rows[i].json) && !cut);
	}
}

static void test_cut(void)
{
	const struct bytes raw = BYTES("\x93\x01\x02\x03"); /* [1, 2, 3] */

	for (size_t max = 0; max < 12; max++) {
		bool cut;
		_cleanup_(freep) char *text = json_written(raw, max, &cut);

		CHECK(text && cut == (max < 9) && strlen(text) <= max && !strncmp("[1, 2, 3]", text, strlen(text)));
	}
}

int main(void)
{
	test_values();
	test_cut();
	return check_report();
}
