/* Colours: tracebacks, however they are cut, and values. Styles are written as letters here. */
#include "check.h"

#include "base/paint.h"

/* So that one can read it: M is a place, N the name of an exception, h and H marks, S a string, C a constant. */
static char *lettered(const char *text)
{
	static const struct {
		const char *style;
		char letter;
	} styles[] = {{"\033[35m", 'M'}, {"\033[1;35m", 'N'}, {"\033[31m", 'h'}, {"\033[1;31m", 'H'},
		      {"\033[32m", 'S'}, {"\033[36m", 'C'},   {"\033[0m", ']'}};
	char *out = calloc(1, 2 * strlen(text) + 1), *to = out;

	while (*text) {
		size_t size = 0;

		for (size_t i = 0; i < ARRAY_SIZE(styles) && !size; i++)
			if (strncmp(text, styles[i].style, strlen(styles[i].style)) == 0) {
				size = strlen(styles[i].style);
				*to++ = '[';
				*to++ = styles[i].letter;
			}
		if (!size)
			*to++ = *text;
		text += MAX(size, (size_t)1);
	}
	return out;
}

static bool painted_is(const char *text, const char *expected)
{
	bool yes = true;

	for (size_t step = 1; step <= strlen(text); step++) {
		struct paint paint = {.line = NULL};
		char *painted, *read;
		size_t size;
		FILE *out = open_memstream(&painted, &size);

		for (size_t i = 0; i < strlen(text); i += step)
			paint_pass(&paint,
				   (struct lair_text){.data = text + i, .size = MIN(step, strlen(text) - i)}, out);
		paint_end(&paint, out);
		(void)fclose(out);
		read = lettered(painted);
		if (yes && strcmp(read, expected) != 0)
			fprintf(stderr, "%zu at a time: %s\n", step, read);
		yes = yes && strcmp(read, expected) == 0;
		free(read);
		free(painted);
	}
	return yes;
}

static void check_traces(void)
{
	CHECK(painted_is("Traceback (most recent call last):\n"
			 "  File \"<cell 8>\", line 1, in <module>\n"
			 "    f([1, 0])\n"
			 "  File \"/a b.py\", line 12, in f\n"
			 "    return gr\u00fcn / x\n"
			 "           ~~~~~^~~\n"
			 "ZeroDivisionError: division by zero\n"
			 "after\n",
			 "Traceback (most recent call last):\n"
			 "  File [M\"<cell 8>\"[], line [M1[], in [M<module>[]\n"
			 "    f([1, 0])\n"
			 "  File [M\"/a b.py\"[], line [M12[], in [Mf[]\n"
			 "    return [hgr\u00fcn [H/[h x[]\n"
			 "           [h~~~~~[H^[h~~[]\n"
			 "[NZeroDivisionError[]:[M division by zero[]\n"
			 "after\n"));
	CHECK(painted_is("  File \"<cell 6>\", line 2\n"
			 "    1 +\n"
			 "       ^\n"
			 "SyntaxError: invalid syntax\n",
			 "  File [M\"<cell 6>\"[], line [M2[]\n"
			 "    1 +\n"
			 "       [H^[]\n"
			 "[NSyntaxError[]:[M invalid syntax[]\n"));
	CHECK(painted_is(
		"Traceback (most recent call last):\n  [Previous line repeated 9 times]\nKeyboardInterrupt\n"
		"\nDuring handling:\n\nTraceback (most recent call last):\na.B\n",
		"Traceback (most recent call last):\n  [Previous line repeated 9 times]\n"
		"[NKeyboardInterrupt[]\n\nDuring handling:\n\nTraceback (most recent call last):\n[Na.B[]\n"));
}

static void check_others(void)
{
	static const char *const texts[] = {
		"warning: x\n",
		"  File upload\n",
		"\r 10%|#   |\r 20%|##  |",
		"no newline",
		"Traceback (most recent call last):\nnot this one, no\n  File x\n",
		"Traceback (most recent call last):\n    held back",
		"  File \"",
		/* Nothing comes into a sequence of the session's own, and none waits. */
		"Traceback (most recent call last):\n    \033[33mred\n    ^^^\nE: x\n",
		"Traceback (most recent call last):\n    source\n  File \"\033[2A\", line 1, in x\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		CHECK(painted_is(texts[i], texts[i]));
}

/* What is no traceback goes on at once. */
static void check_prompt(void)
{
	struct paint paint = {.line = NULL};
	char *painted;
	size_t size;
	FILE *out = open_memstream(&painted, &size);

	paint_pass(&paint, lair_text("half"), out);
	(void)fflush(out);
	CHECK(size == 4);
	paint_pass(&paint, lair_text("\n  Fi"), out);
	(void)fflush(out);
	CHECK(size == 5);
	paint_pass(&paint, lair_text("ne"), out);
	(void)fflush(out);
	CHECK(size == 11);
	paint_end(&paint, out);
	(void)fclose(out);
	free(painted);
}

static bool value_is(const char *text, const char *expected)
{
	char *painted, *read;
	size_t size;
	FILE *out = open_memstream(&painted, &size);
	bool yes;

	paint_value(lair_text(text), out);
	(void)fclose(out);
	read = lettered(painted);
	yes = strcmp(read, expected) == 0;
	if (!yes)
		fprintf(stderr, "%s\n", read);
	free(read);
	free(painted);
	return yes;
}

static void check_values(void)
{
	CHECK(value_is("41", "[C41[]") && value_is("-1.5e-05", "-[C1.5e[]-[C05[]") && value_is("True", "[CTrue[]"));
	CHECK(value_is("'it\\'s'", "[S'it\\'s'[]") && value_is("b'x'", "b[S'x'[]"));
	CHECK(value_is("{'a': [1, None], \"b\": x}", "{[S'a'[]: [[C1[], [CNone[]], [S\"b\"[]: x}"));
	CHECK(value_is("array([1., nan])", "array([[C1.[], [Cnan[]])"));
	CHECK(value_is("<Figure 1>", "<Figure 1>") && value_is("it's 5", "it's 5") && value_is("", ""));
	CHECK(value_is("'open\n1", "[S'open\n[][C1[]") && value_is("'\\", "[S'\\[]") && value_is("b", "b"));
}

int main(void)
{
	check_traces();
	check_others();
	check_prompt();
	check_values();
	return check_report();
}
