/* What a session writes on its way to a terminal: the same in one piece and byte by byte. */
#include "check.h"

#include "cli/screen.h"

struct passed {
	char *text;
	size_t size;
	uint64_t dropped;
};

static struct passed pass(const char *text, size_t size, size_t step)
{
	struct screen screen = {.below = 0};
	struct passed passed;
	FILE *out = open_memstream(&passed.text, &passed.size);

	for (size_t i = 0; i < size; i += step)
		screen_pass(&screen, LAIR_STDOUT, (struct lair_text){.data = text + i, .size = MIN(step, size - i)},
			    out);
	passed.dropped = screen_end(&screen, out);
	(void)fclose(out);
	return passed;
}

static bool becomes(const char *text, const char *expected, uint64_t dropped)
{
	bool yes = true;

	for (size_t step = 1; step <= strlen(text); step++) {
		struct passed passed = pass(text, strlen(text), step);

		yes = yes && passed.dropped == dropped && strcmp(passed.text, expected) == 0;
		if (!yes)
			fprintf(stderr, "%zu bytes at a time: \"%s\", %llu dropped\n", step, passed.text,
				(unsigned long long)passed.dropped);
		free(passed.text);
	}
	return yes;
}

static void check_harmless(void)
{
	static const char *const texts[] = {
		"a\tb\n",
		"gr\u00fc\u00df\u3042\U0001f40d",
		"\a\b",
		"\r 40%|####   | 8/20",
		"\r\033[K",
		"a\033[2Kb\033[3Dc\033[4Cd\033[10Ge\033[0K",
		"a\nb\n\033[2Ac\033[J",
		"\033[?25lx\033[?25h",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		CHECK(becomes(texts[i], texts[i], 0));
	CHECK(becomes("\033[31mred", "\033[31mred\033[0m", 0));
	CHECK(becomes("\033[1;38;5;129mx\033[38:2::1:2:3my", "\033[1;38;5;129mx\033[38:2::1:2:3my\033[0m", 0));
	CHECK(becomes("\033[31mred\033[mx", "\033[31mred\033[mx", 0));
	CHECK(becomes("\033[31mred\033[0mx", "\033[31mred\033[0mx", 0));
	CHECK(becomes("\033[31mred\033[0;1mx", "\033[31mred\033[0;1mx\033[0m", 0));
	CHECK(becomes("\033[?25l", "\033[?25l\033[?25h", 0));
}

static void check_harmful(void)
{
	static const struct {
		const char *name, *text;
	} acts[] = {
		{"the title", "\033]0;title\a"},
		{"the title, another end", "\033]2;title\033\\"},
		{"the title, no end", "\033]0;title"},
		{"the clipboard", "\033]52;c;aGFybQ==\a"},
		{"a link", "\033]8;;http://harm\033\\"},
		{"a notification", "\033]777;notify;a;b\a"},
		{"the palette", "\033]4;1;?\a"},
		{"what terminal", "\033[c"},
		{"what terminal, secondary", "\033[>c"},
		{"where the cursor is", "\033[6n"},
		{"its state", "\033[5n"},
		{"the title back", "\033[21t"},
		{"a mode", "\033[?1$p"},
		{"a setting", "\033P$qm\033\\"},
		{"a terminfo entry", "\033P+q544e\033\\"},
		{"kitty's graphics", "\033_Gi=1,a=q;AAAA\033\\"},
		{"a private message", "\033^x\033\\"},
		{"SOS", "\033Xx\033\\"},
		{"mouse reports", "\033[?1003h"},
		{"marked pastes", "\033[?2004h"},
		{"another screen", "\033[?1049h"},
		{"keys told otherwise", "\033[>4;2m"},
		{"kitty's keys", "\033[>1u"},
		{"anywhere", "\033[1;1H"},
		{"anywhere, another way", "\033[1;1f"},
		{"all erased", "\033[2J"},
		{"what has scrolled away erased", "\033[3J"},
		{"what is above erased", "\033[1J"},
		{"above what it has written", "\033[A"},
		{"a region", "\033[2;5r"},
		{"scrolled", "\033[3S"},
		{"saved, restored", "\033[s"},
		{"reset", "\033c"},
		{"another charset", "\033(0"},
		{"printing", "\033[5i"},
		{"a soft reset", "\033[!p"},
		{"lines inserted", "\033[3L"},
		{"repeated", "\033[99999b"},
		{"too long", "\033[0000000000000000000000000000000000000000000000000000000000000000000000000m"},
		{"a number too large", "\033[99999C"},
		{"nothing more", "\033"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(acts); i++)
		if (!becomes(acts[i].text, "", 1)) {
			fprintf(stderr, "%s\n", acts[i].name);
			CHECK(false);
		}
	CHECK(becomes("a\033]0;b\nc\ad", "ad", 1));
	CHECK(becomes("\033[3\nm", "\nm", 1));
	CHECK(becomes("\033[3\033[31mx", "\033[31mx\033[0m", 1));
	CHECK(becomes("\033]0;a\033[31mx", "\033[31mx\033[0m", 1));
	CHECK(becomes("\033]0;a\030x", "?x", 1));
	CHECK(becomes("\016\017\013\014\177", "?????", 0));
	CHECK(becomes("\xc2\x9b"
		      "31mx\xc2\x9d"
		      "0;t\xc2\x9c",
		      "?31mx?0;t?", 0));
	CHECK(becomes("caf\xe9 \x9b\xff", "caf\ufffd \ufffd\ufffd", 0));
	CHECK(becomes("\xe2\x82", "\ufffd\ufffd", 0));
	/* Not above where the cell has begun, and not twice over the same lines. */
	CHECK(becomes("a\nb\n\033[3Ac", "a\nb\nc", 1));
	CHECK(becomes("a\n\033[A\033[Ab", "a\n\033[Ab", 1));
}

static void check_marks(void)
{
	struct screen screen = {.below = 0};
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	screen_pass(&screen, LAIR_STDOUT, lair_text("a\nb\n"), out);
	screen_mark(&screen);
	screen_pass(&screen, LAIR_STDOUT, lair_text("c\n"), out);
	screen_pass(&screen, LAIR_STDERR, lair_text("\033[2A\033[A"), out);
	CHECK(screen_end(&screen, out) == 1);
	(void)fclose(out);
	CHECK(strcmp(text, "a\nb\nc\n\033[A") == 0);
	free(text);
}

int main(void)
{
	check_harmless();
	check_harmful();
	check_marks();
	return check_report();
}
