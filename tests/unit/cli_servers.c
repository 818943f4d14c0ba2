/* What the client of MCP servers is made of: names, and texts with references to the environment. */
#include "check.h"

#include "upstream.h"

static bool alias_is(const char *name, const char *expected)
{
	char alias[ALIAS_SIZE];

	alias_make(alias, name, true);
	return strcmp(alias, expected) == 0;
}

static void check_aliases(void)
{
	char alias[ALIAS_SIZE], longest[4 * ALIAS_SIZE];

	CHECK(alias_is("fs", "fs"));
	CHECK(alias_is("My Server", "my_server"));
	CHECK(alias_is("a--b..c", "a_b_c"));
	CHECK(alias_is("a__b", "a__b"));
	CHECK(alias_is("2nd", "_2nd"));
	CHECK(alias_is("getTinyImage", "gettinyimage"));
	CHECK(alias_is("class", "class_"));
	CHECK(alias_is("\xc3\xa9", "_"));
	CHECK(alias_is("!", "_"));
	CHECK(alias_is("", "_"));
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	alias_make(alias, longest, true);
	for (unsigned n = 2; n < 1000; n++)
		alias_next(alias, n);
	CHECK(strlen(alias) < ALIAS_SIZE && strstr(alias, "x_999"));
}

static void check_next(void)
{
	char alias[ALIAS_SIZE] = "a_b";

	alias_next(alias, 2);
	CHECK(strcmp(alias, "a_b_2") == 0);
	alias_next(alias, 3);
	CHECK(strcmp(alias, "a_b_3") == 0);
}

static bool expands_to(const char *text, const char *expected)
{
	char *out = NULL, *why = NULL;
	bool is = config_expand(&out, text, &why) == 0 && strcmp(out, expected) == 0;

	free(out);
	free(why);
	return is;
}

static void check_references(void)
{
	char *out = NULL, *why = NULL;

	(void)setenv("HERE", "there", 1);
	(void)setenv("BLANK", "", 1);
	(void)unsetenv("NOWHERE");
	CHECK(expands_to("", ""));
	CHECK(expands_to("plain $HERE", "plain $HERE"));
	CHECK(expands_to("a ${HERE} b${HERE}", "a there bthere"));
	CHECK(expands_to("${NOWHERE:-x y}", "x y"));
	CHECK(expands_to("${NOWHERE:-}", ""));
	CHECK(expands_to("${BLANK:-x}", "x"));
	CHECK(expands_to("${BLANK}", ""));
	CHECK(expands_to("${input:key}", "${input:key}"));
	CHECK(expands_to("${", "${"));
	CHECK(expands_to("${HERE", "${HERE"));
	CHECK(config_expand(&out, "a ${NOWHERE}", &why) == -ENOENT);
	CHECK(!out && why && strcmp(why, "the environment has no NOWHERE") == 0);
	free(why);
}

int main(void)
{
	check_aliases();
	check_next();
	check_references();
	return check_report();
}
