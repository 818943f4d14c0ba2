/* What the client of MCP servers is made of: names, and texts with references to the environment. */
#include "check.h"

#include "servers/upstream.h"

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

static json_t *offers(size_t n, size_t schema, size_t doc)
{
	_cleanup_(freep) char *text = calloc(1, MAX(schema, doc) + 1);
	json_t *functions = json_array();

	CHECK(text);
	for (size_t i = 0; i < n; i++) {
		json_t *function = json_pack("{s:s, s:b}", "name", "a", "caution", 1);

		memset(text, 'x', MAX(schema, doc));
		json_object_set_new(function, "doc", json_stringn(text, doc));
		json_object_set_new(function, "schema", json_pack("{s:o}", "title", json_stringn(text, schema)));
		json_object_set_new(function, "returns", json_object());
		json_array_append_new(functions, function);
	}
	return functions;
}

static void check_shorter(void)
{
	json_t *functions = offers(10, 100, 10), *whole = json_deep_copy(functions), *first;

	tools_shorten(functions, 100000);
	CHECK(json_equal(functions, whole));
	first = offers(20, 8000, 10);
	json_array_extend(functions, first);
	json_decref(first);
	tools_shorten(functions, 65536);
	CHECK(json_array_size(functions) == 30 && tools_size(functions) <= 65536);
	for (size_t i = 0; i < 10; i++)
		CHECK(json_equal(json_array_get(functions, i), json_array_get(whole, i)));
	first = json_array_get(functions, 10);
	CHECK(json_is_true(json_object_get(json_object_get(first, "schema"), "additionalProperties")));
	CHECK(json_object_get(first, "doc") && json_object_get(first, "caution") &&
	      !json_object_get(first, "returns"));
	json_decref(functions);
	json_decref(whole);
	/* If nothing else helps, the last ones go. */
	functions = offers(200, 10, 8000);
	tools_shorten(functions, 8192);
	CHECK(json_array_size(functions) > 10 && json_array_size(functions) < 200 && tools_size(functions) <= 8192);
	json_decref(functions);
}

int main(void)
{
	check_shorter();
	check_aliases();
	check_next();
	check_references();
	return check_report();
}
