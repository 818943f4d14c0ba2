/* What people and programs read: times and sizes, tamed text, lines of stdin, and bytes as JSON. */
#include "check.h"

#include "base/json.h"
#include "base/lines.h"
#include "base/text.h"

#include <fcntl.h>

/* U+202E and U+2066, which turn the direction of text: no string of a source may have them. */
static const char turned[] = {'a', '\xe2', '\x80', '\xae', 'b', '\xe2', '\x81', '\xa6', 'c', '\0'};

static void check_human(void)
{
	static const struct {
		double seconds;
		const char *text;
	} times[] = {{0, "0s"},	      {-1, "0s"},      {59.9, "59s"},	 {60, "1m"},
		     {3600, "1h 0m"}, {7500, "2h 5m"}, {90000, "1d 1h"}, {1e300, "0s"}};
	static const struct {
		uint64_t bytes;
		const char *text;
	} sizes[] = {{0, "0 B"},
		     {1023, "1023 B"},
		     {1024, "1.0 KiB"},
		     {1536 * 1024, "1.5 MiB"},
		     {UINT64_MAX, "16777216.0 TiB"}};
	char text[HUMAN_SIZE], tamed[8];

	for (size_t i = 0; i < ARRAY_SIZE(times); i++)
		CHECK(strcmp(human_seconds(text, times[i].seconds), times[i].text) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		CHECK(strcmp(human_bytes(text, sizes[i].bytes), sizes[i].text) == 0);
	CHECK(strcmp(human_state(text, 0), "the state before the first cell") == 0);
	CHECK(strcmp(human_state(text, UINT64_MAX), "the state after cell 18446744073709551615") == 0);
	CHECK(strcmp(text_tamed(tamed, sizeof(tamed), lair_text("a\033[2Jbcdefg")), "a?[2Jbc") == 0);
	CHECK(strcmp(text_tamed(tamed, sizeof(tamed), (struct lair_text){.data = NULL}), "") == 0);
	CHECK(strcmp(text_tamed(text, sizeof(text),
				lair_text("\u00e9\xc2\x9b"
					  "2J\u2028"
					  "txt\xff\u2009.")),
		     "\u00e9?2J?txt?\u2009.") == 0);
	CHECK(strcmp(text_tamed(tamed, 4, lair_text("ab\u00e9")), "ab?") == 0);
	CHECK(strcmp(text_tamed(text, sizeof(text),
				lair_text("a\u200bb\ufeffc\u00add\u2060e\u3164f\ufe0fg\u061ch"
					  "\ufffbi\u115fj")),
		     "a?b?c?d?e?f?g?h?i?j") == 0);
	CHECK(strcmp(text_tamed(text, sizeof(text), lair_text(turned)), "a?b?c") == 0);
	CHECK(strcmp(text_tamed(text, sizeof(text), lair_text("\u200a\u2010\u2027\u205f\ufe10\ufffd\U0001f600")),
		     "\u200a\u2010\u2027\u205f\ufe10\ufffd\U0001f600") == 0);
	for (size_t i = 1; i < n_text_unseen; i++)
		CHECK(text_unseen[i].first > text_unseen[i - 1].last);
	CHECK(strcmp(text_cut(tamed, 6, "abcde"), "abcde") == 0);
	CHECK(strcmp(text_cut(tamed, 6, "abcdef"), "ab...") == 0);
	CHECK(strcmp(text_cut(tamed, 6, "a\u00e9def"), "a...") == 0);
	CHECK(text_is(lair_text("a"), "a") && !text_is(lair_text("ab"), "a") && !text_is(lair_text(NULL), ""));
}

static bool mended_is(const char *text, const char *expected)
{
	struct lair_text mended = lair_text(text);
	char *owned;
	bool yes;

	CHECK(text_mend(&mended, &owned) == 0);
	yes = text_is(mended, expected);
	free(owned);
	return yes;
}

static void check_mended(void)
{
	CHECK(mended_is("", "") && mended_is("a\u00e9", "a\u00e9"));
	CHECK(mended_is("caf\xe9", "caf\ufffd") && mended_is("\xe2\x82 \u00e9", "\ufffd\ufffd \u00e9"));
}

static void check_cut(void)
{
	static const struct {
		const char *text;
		size_t cut;
	} ends[] = {{"", 0},
		    {"a", 0},
		    {"a\u00e9", 0},
		    {"\xc3", 1},
		    {"a\xe2\x82", 2},
		    {"a\xf0\x9f\x98", 3},
		    {"\xf0\x9f\x98\x80", 0},
		    {"a\x98", 0},
		    {"\x80\x80", 0},
		    {"\xf0\x80\x80\x80", 0}};

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		CHECK(text_cut_end(ends[i].text, strlen(ends[i].text)) == ends[i].cut);
}

static bool line_is(struct lines *lines, const char *expected)
{
	struct lair_text line;

	return lines_next(lines, &line) == 0 && text_is(line, expected);
}

static void check_lines(void)
{
	struct lair_text line;
	struct lines lines;
	int fds[2];

	CHECK(pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0);
	lines_init(&lines, fds[0]);
	CHECK(lines_next(&lines, &line) == LINES_E_EMPTY && lines_fill(&lines) == 0);
	CHECK(write(fds[1], "one\n\ntw", 7) == 7 && lines_fill(&lines) == 0);
	CHECK(line_is(&lines, "one") && line_is(&lines, "") && lines_next(&lines, &line) == LINES_E_EMPTY);
	CHECK(write(fds[1], "o\nrest", 6) == 6 && lines_fill(&lines) == 0 && line_is(&lines, "two"));
	close(fds[1]);
	CHECK(lines_fill(&lines) == 0 && line_is(&lines, "rest") && lines_next(&lines, &line) == LINES_E_EOF);
	CHECK(lines_next(&lines, &line) == LINES_E_EMPTY);
	lines_deinit(&lines);
	close(fds[0]);
}

static void check_long_line(void)
{
	enum { LENGTH = 30000 };
	char *text = malloc(LENGTH + 1);
	struct lair_text line;
	struct lines lines;
	int fds[2];

	memset(text, 'x', LENGTH);
	text[LENGTH] = '\n';
	CHECK(pipe2(fds, O_CLOEXEC) == 0 && write(fds[1], text, LENGTH + 1) == LENGTH + 1);
	lines_init(&lines, fds[0]);
	while (lines_next(&lines, &line) == LINES_E_EMPTY && lines_fill(&lines) == 0)
		;
	CHECK(line.size == LENGTH && memcmp(line.data, text, LENGTH) == 0);
	lines_deinit(&lines);
	close(fds[0]);
	close(fds[1]);
	free(text);
}

static bool output_is(struct lair_text output, const char *text, const char *base64)
{
	json_t *object = json_object();
	const char *raw;
	bool yes;

	json_add_output(object, "x", output);
	raw = json_string_value(json_object_get(object, "x_base64"));
	yes = strcmp(json_string_value(json_object_get(object, "x")), text) == 0 &&
	      (base64 ? raw && strcmp(raw, base64) == 0 : !raw);
	json_decref(object);
	return yes;
}

static void check_json(void)
{
	json_t *absent = json_text((struct lair_text){.data = NULL});

	CHECK(json_is_null(absent));
	json_decref(absent);
	CHECK(output_is(lair_text(""), "", NULL) && output_is(lair_text("a\xc3\xa4"), "a\xc3\xa4", NULL));
	CHECK(output_is(lair_text("\xff"), "\xef\xbf\xbd", "/w=="));
	CHECK(output_is(lair_text("a\xfe"), "a\xef\xbf\xbd", "Yf4="));
	CHECK(output_is(lair_text("a\xfe\xc3\xa4"), "a\xef\xbf\xbd\xc3\xa4", "Yf7DpA=="));
	CHECK(output_is(lair_text("\xf0\x9f\x98"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", "8J+Y"));
}

static bool compact_is(const char *text, const char *expected)
{
	json_t *document = json_loads(text, JSON_DECODE_ANY, NULL);
	char *compact = json_compact(document);
	bool yes = strcmp(compact, expected) == 0;

	json_decref(document);
	free(compact);
	return yes;
}

/* Whether @value is written in a few digits, which are read as the same number. */
static bool is_short(double value)
{
	json_t *document = json_real(value);
	char *text = json_compact(document);
	bool yes = strtod(text, NULL) == value && strlen(text) <= 12 && strchr(text, '.');

	json_decref(document);
	free(text);
	return yes;
}

static void check_numbers(void)
{
	static const char *const same[] = {
		"0",
		"12345678901234567",
		"1.0",
		"-0.0",
		"0.1",
		"0.30000000000000004",
		"1.7976931348623157e308",
		"-2.2250738585072014e-308",
		"1e22",
		"12345678901234568.0",
		"0.209122",
		"0.000001",
		"1234.5",
		"-1234.5",
		"99999999.123456",
		"100000000.1",
		"0.1234567",
		"[0.1,[-0.2,7]]",
		"{\"0.10000000000000001\":0.7,\"\\\"\":\"\\\\\",\"\":null}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(same); i++)
		CHECK(compact_is(same[i], same[i]));
	CHECK(compact_is("0.10000000000000001", "0.1") && !json_compact(NULL));
	for (unsigned n = 1; n < 20000000; n += 7919)
		CHECK(is_short(n / 1e6) && is_short(n / 1e3) && is_short(n * 5.0));
}

int main(void)
{
	check_human();
	check_mended();
	check_cut();
	check_lines();
	check_long_line();
	check_json();
	check_numbers();
	return check_report();
}
