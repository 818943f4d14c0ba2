/* Where one input of the prompt ends. */
#include "check.h"

#include "cli/block.h"

static const char *const complete[] = {
	"x = 1\n",
	"x = 1",
	"\n",
	"",
	"print('a:')\n",
	"# for x in y:\n",
	"x = (1 +\n 2)\n",
	"x = [\n\n1]\n",
	"'unterminated\n",
	"s = \"\"\"a\nb\"\"\"\n",
	"s = '''it's\n\n'''\n",
	"s = 'a\\\nb'\n",
	"x = 1 + \\\n2\n",
	"if x:\n\tprint(1)\n\n",
	"if x:\n\tprint(1)\n   \n",
	"for i in x: print(i)\n",
	"def f():\n    return '''\n\n'''\n\n",
	"@d\ndef f():\n  pass\n\n",
	"d = {'a': 1}\n",
	"x[1:]\n",
	"f(lambda:\n0)\n",
	")\n",
	"s = r'\\'\n'",
	"s = '\\''\n",
	"\"\"\"\"\"\"\n",
};

static const char *const unfinished[] = {
	"x = (1 +\n",
	"x = [\n\n",
	"x = {'a': (\n",
	"s = \"\"\"a\n",
	"s = \"\"\"a\n\n",
	"s = '''it's\n",
	"s = \"\"\"a\\\"\"\"\n",
	"x = 1 + \\\n",
	"x = 1 + \\",
	"if x:\n",
	"if x:",
	"if x: # why\n",
	"if x:\n\tprint(1)\n",
	"if x:\n\tprint(1)\nelse:\n",
	"def f(\n\na):\n",
	"def f(a: int) -> str:\n",
	"@d\n",
	"@d(\n1)\n",
	"@d\ndef f():\n  pass\n",
	"class A:\n  # empty\n",
	"if x:\n  s = '''\n\n",
};

static void test_indent(void)
{
	static const struct {
		const char *text;
		unsigned indent;
	} lines[] = {
		{"", 0},
		{"x = 1\n", 0},
		{"if x:\n", 4},
		{"if x: # why\n", 4},
		{"if x: y\n", 0},
		{"@d\n", 0},
		{"@d\ndef f():\n", 4},
		{"if x:\n    y\n", 4},
		{"if x:\n    if y:\n", 8},
		{"if x:\n    if y:\n        return\n", 4},
		{"if x:\n    if y:\n        return (1, 2)\n", 4},
		{"if x:\n    returned = 1\n", 4},
		{"if x:\n  pass\n", 0},
		{"x = {\n", 4},
		{"x = f(\n    1,\n", 4},
		{"x = f(\n    break\n", 4},
		{"s = '''a:\n", 0},
		{"if x:\n    y\n\n", 4},
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		CHECK(block_indent(lair_text(lines[i].text)) == lines[i].indent);
}

/* What was pasted or recalled: no empty line has to say that it is all. */
static void test_whole(void)
{
	CHECK(block_complete(lair_text("if x:\n\tprint(1)\n"), true));
	CHECK(block_complete(lair_text("class A:\n\tx = 1\n\n\ty = 2\n"), true));
	CHECK(block_complete(lair_text("@d\ndef f(): pass # why\n"), true));
	CHECK(!block_complete(lair_text("x = 1\nif x:\n"), true));
	CHECK(!block_complete(lair_text("%%bash\n"), false) && !block_complete(lair_text("%%bash\n"), true));
	CHECK(!block_complete(lair_text("%%bash\necho 'it\n"), false));
	CHECK(block_complete(lair_text("%%bash\necho 'it\n"), true));
	CHECK(block_complete(lair_text("%%bash\necho 'it\n(\n\n"), false));
	CHECK(!block_complete(lair_text("if x:\n\n\tif y: # why\n# so\n"), true));
	CHECK(!block_complete(lair_text("if x:\n\tprint(\n"), true));
	CHECK(!block_complete(lair_text("x = 1\n@d\n"), true));
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(complete); i++) {
		CHECK(block_complete(lair_text(complete[i]), false));
		if (!block_complete(lair_text(complete[i]), false))
			fprintf(stderr, "complete, but not thought so:\n%s", complete[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(unfinished); i++) {
		CHECK(!block_complete(lair_text(unfinished[i]), false));
		if (block_complete(lair_text(unfinished[i]), false))
			fprintf(stderr, "unfinished, but thought complete:\n%s", unfinished[i]);
	}
	test_whole();
	test_indent();
	return check_report();
}
