/* Whatever a session writes to a terminal: what gets there holds only the sequences that are listed here again,
 * climbs no further than the cell has written since somebody else wrote, and does not depend on how it was cut; and
 * paint changes no text. The first byte names a stream and says how it is cut. OTHER goes on with the other stream,
 * and NOTICE is somebody else who writes. Stdout ends with a value. */
#include "cli/terminal.h"

#include "proto/wire.h"

#define OTHER '\xff'
#define NOTICE '\xfe' /* no output has this byte, since it is no text */

static void check(bool holds)
{
	if (!holds)
		abort();
}

/* ---- what gets there ---- */

static void put(FILE *out, struct lair_text text, char *owned)
{
	if (text.size > 0)
		(void)fwrite(text.data, 1, text.size, out);
	free(owned);
}

static void pass(struct terminal *terminal, enum lair_stream stream, struct lair_text text, size_t step, FILE *out)
{
	for (size_t i = 0; i < text.size; i += step) {
		struct lair_text piece = {.data = text.data + i, .size = MIN(step, text.size - i)};
		char *owned;

		put(out, terminal_text(terminal, stream, piece, &owned), owned);
	}
}

/* @text cut after every @step bytes. */
static char *shown(struct lair_text text, enum lair_stream stream, bool painted, size_t step, size_t *sizep)
{
	struct terminal terminal = {.is = {true, true}, .colour = {painted, painted}};
	struct terminal_rest rests[2];
	char *all = NULL, *owned;
	FILE *out = open_memstream(&all, sizep);
	uint64_t dropped;
	size_t size;

	for (size_t i = 0; i < text.size; i += size) {
		const char *at = text.data + i;

		for (size = 0; i + size < text.size && at[size] != OTHER && at[size] != NOTICE;)
			size++;
		pass(&terminal, stream, (struct lair_text){.data = at, .size = size}, step, out);
		if (i + size == text.size)
			break;
		if (at[size] == NOTICE) {
			screen_mark(&terminal.screen);
			(void)putc((unsigned char)NOTICE, out);
		} else {
			stream = stream == LAIR_STDOUT ? LAIR_STDERR : LAIR_STDOUT;
		}
		size++;
	}
	if (stream == LAIR_STDOUT)
		put(out, terminal_value(&terminal, text, &owned), owned);
	terminal_end(&terminal, rests, &dropped);
	put(out, rests[0].text, rests[0].owned);
	put(out, rests[1].text, rests[1].owned);
	check(fclose(out) == 0);
	return all;
}

/* ---- what may get there ---- */

static size_t span(const char *at, const char *set)
{
	return strspn(at, set);
}

/* Past the sequence that begins with the ESC at @at. */
static size_t sequence_check(const char *at, uint64_t *lines)
{
	size_t size;

	check(at[1] == '[');
	if (strncmp(at + 2, "?25h", 4) == 0 || strncmp(at + 2, "?25l", 4) == 0)
		return 6;
	size = 2 + span(at + 2, "0123456789;:");
	check(at[size] && strchr("mACDGJK", at[size]));
	if (at[size] != 'm')
		check(size <= 6 && span(at + 2, "0123456789") == size - 2);
	if (at[size] == 'J')
		check(size == 2 || (size == 3 && at[2] == '0'));
	if (at[size] == 'A') {
		uint64_t up = MAX(strtoul(at + 2, NULL, 10), 1UL);

		check(up <= *lines);
		*lines -= up;
	}
	return size + 1;
}

static void text_check(const char *at, size_t size)
{
	const unsigned char *c = (const unsigned char *)at;

	check(size > 0);
	if (size == 1)
		check((*c >= ' ' && *c != 0x7f) || (*c && strchr("\a\b\t\n\r", *c)));
	check(size != 2 || c[0] != 0xc2 || c[1] >= 0xa0);
}

/* @all ends with a NUL. */
static void harmless(const char *all, size_t size)
{
	uint64_t lines = 0;
	size_t step;

	for (size_t i = 0; i < size; i += step) {
		if (all[i] == '\033') {
			step = sequence_check(all + i, &lines);
			continue;
		}
		step = 1;
		if (all[i] == NOTICE) {
			lines = 0;
			continue;
		}
		while (step < 4 && !utf8_valid((struct bytes){.data = all + i, .size = step}))
			step++;
		check(utf8_valid((struct bytes){.data = all + i, .size = step}));
		text_check(all + i, step);
		lines += all[i] == '\n';
	}
}

/* Nobody else writes, and nothing is for the terminal. */
static bool one_stream(struct lair_text text)
{
	for (size_t i = 0; i < text.size; i++)
		if (text.data[i] == OTHER || text.data[i] == NOTICE || text.data[i] == '\033')
			return false;
	return true;
}

/* All but styles; returns the size. */
static size_t unstyled(char *all, size_t size)
{
	bool style = false;
	size_t n = 0;

	for (size_t i = 0; i < size; i++) {
		style |= all[i] == '\033';
		if (!style)
			all[n++] = all[i];
		style &= all[i] != 'm';
	}
	return n;
}

static void same_text(char *one, size_t one_size, char *other, size_t other_size)
{
	one_size = unstyled(one, one_size);
	check(one_size == unstyled(other, other_size) && memcmp(one, other, one_size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum lair_stream first;
	size_t sizes[3];
	struct lair_text text;
	char *painted, *cut, *plain;

	if (size == 0)
		return 0;
	text = (struct lair_text){.data = (const char *)data + 1, .size = size - 1};
	first = *data & 1 ? LAIR_STDERR : LAIR_STDOUT;
	painted = shown(text, first, true, MAX(text.size, (size_t)1), &sizes[0]);
	cut = shown(text, first, true, 1 + *data / 2U % 16, &sizes[1]);
	plain = shown(text, first, false, MAX(text.size, (size_t)1), &sizes[2]);
	harmless(painted, sizes[0]);
	harmless(plain, sizes[2]);
	check(sizes[0] == sizes[1] && memcmp(painted, cut, sizes[0]) == 0);
	if (one_stream(text))
		same_text(painted, sizes[0], plain, sizes[2]);
	free(painted);
	free(cut);
	free(plain);
	return 0;
}
