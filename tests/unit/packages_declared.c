/* What a block of PEP 723 declares. */
#include "packages/declared.h"

#include "check.h"

#include <stdio.h>

static const struct {
	const char *code, *items;
} cases[] = {
	{"", ""},
	{"1 + 1", ""},
	{"# /// script\n# dependencies = ['a']\n# ///\n", "a;"},
	{"x = 1\n# /// script  \n# requires-python = '>=3.9'\n# dependencies=[\"a>=1,<2\", 'b']\n# ///",
	 "a>=1,<2;b;"},
	{"# /// script\n# dependencies = [\n#   \"a\", # one\n#\n#   'b; x',\n# ]\n# ///\n", "a;b; x;"},
	{"# /// script\n# dependencies = []\n# ///\n", ""},
	{"# /// script\n# dependencies = [\n", ""},
	{"# /// script\n# dependencies = [", ""},
	{"# /// script\n# dependencies = ['a\n# ', 'b']\n", ""},
	{"# /// script\n# dependencies = ['a'", "a;"},
	{"# /// script\n# dependencies = ['a', b, 'c']\n", "a;"},
	{"# /// script\n# dependencies = ['a',\n'b']\n", "a;"},
	{"# /// script\n# ///\n# dependencies = ['a']\n", ""},
	{"# /// script\n\n# dependencies = ['a']\n", ""},
	{"# /// other\n# dependencies = ['a']\n# ///\n", ""},
	{"# /// script\n# dependencies-x = ['a']\n# ///\n", ""},
	{"# /// script", ""},
	{"#", ""},
};

int main(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char items[256] = "";
		struct bytes item;
		size_t cursor = 0;

		while (declared_next(bytes_of(cases[i].code), &cursor, &item))
			snprintf(items + strlen(items), sizeof(items) - strlen(items), "%.*s;", (int)item.size,
				 item.data);
		CHECK(strcmp(items, cases[i].items) == 0);
	}
	return 0;
}
