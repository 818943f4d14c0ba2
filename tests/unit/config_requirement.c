/* What a session may ask for: one form for all that mean the same, and nothing but names, versions and markers. */
#include "config/requirement.h"

#include "check.h"

#include <string.h>

static bool becomes(const char *text, const char *form)
{
	char out[REQUIREMENT_SIZE];
	size_t name;

	return requirement_normalize(out, &name, bytes_of(text)) == 0 && strcmp(out, form) == 0;
}

static bool is_refused(const char *text)
{
	char out[REQUIREMENT_SIZE];
	size_t name;

	return requirement_normalize(out, &name, bytes_of(text)) != 0;
}

static void check_forms(void)
{
	CHECK(becomes("polars", "polars"));
	CHECK(becomes("Zope.Interface", "zope-interface"));
	CHECK(becomes("a_-._b", "a-b"));
	CHECK(becomes("  duckdb == 1.* ", "duckdb==1.*"));
	CHECK(becomes("a>=1,<2", "a>=1,<2"));
	CHECK(becomes("7zip", "7zip"));
}

static void check_refused(void)
{
	static const char *const refused[] = {
		"",
		" ",
		"-",
		"--index-url=x",
		"-r x",
		"-e .",
		"./here",
		"/etc/passwd",
		"a/b",
		"git+https://x",
		"https://x/y",
		"a @ https://x/y",
		"a@file:///",
		"a --hash=sha256",
		"a\nb",
		"a\rb",
		"a;\nb",
		"a #c",
		"a-",
		"_a",
		".a",
		"a==1\\",
		"a==$(x)",
		"a==`x`",
		"a b",
		"a\x80",
		"\xff",
		"${HOME}",
		"a[b",
		"a]",
	};

	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		CHECK(is_refused(refused[i]));
		if (!is_refused(refused[i]))
			fprintf(stderr, "not refused: %s\n", refused[i]);
	}
}

static void check_bounds(void)
{
	char text[2 * REQUIREMENT_SIZE];

	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	CHECK(is_refused(text));
	text[REQUIREMENT_SIZE] = '\0';
	CHECK(is_refused(text));
	text[REQUIREMENT_SIZE - 1] = '\0';
	CHECK(becomes(text, text));
	CHECK(requirement_normalize(text, &(size_t){0}, (struct bytes){.data = "a\0b", .size = 3}) != 0);
}

int main(void)
{
	check_forms();
	check_refused();
	check_bounds();
	return check_report();
}
