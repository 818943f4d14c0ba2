/* Colours that differ only in their last bits count as one, of as few bits as it takes to have no more than a
 * terminal keeps. A figure's lines and its text have few; a photograph loses some. */
#include "sixel.h"

#define COLOURS 256
#define ROWS 6
/* The last bits that are left out at first: what sixel can say is one of a hundred. With six there are 64 colours.
 */
#define SHIFT_MIN 2

struct colour {
	uint32_t n, sums[3];
	uint32_t number;
};

struct sixel {
	const struct pixels *pixels;
	struct colour *colours; /* by the first bits of red, green and blue */
	unsigned shift, n;
	FILE *out;
};

static struct colour *colour_of(const struct sixel *sixel, unsigned x, unsigned y)
{
	const uint8_t *rgb = sixel->pixels->rgb + ((size_t)y * sixel->pixels->width + x) * 3;
	unsigned bits = 8 - sixel->shift;

	return sixel->colours + ((unsigned)(rgb[0] >> sixel->shift) << 2 * bits |
				 (unsigned)(rgb[1] >> sixel->shift) << bits | rgb[2] >> sixel->shift);
}

static size_t colours_size(unsigned shift)
{
	return sizeof(struct colour) << 3 * (8 - shift);
}

/* Returns whether they are few enough. */
static bool colours_count(struct sixel *sixel)
{
	memset(sixel->colours, 0, colours_size(sixel->shift));
	sixel->n = 0;
	for (unsigned y = 0; y < sixel->pixels->height; y++)
		for (unsigned x = 0; x < sixel->pixels->width; x++) {
			const uint8_t *rgb = sixel->pixels->rgb + ((size_t)y * sixel->pixels->width + x) * 3;
			struct colour *colour = colour_of(sixel, x, y);

			if (colour->n++ == 0)
				colour->number = sixel->n++;
			if (sixel->n > COLOURS)
				return false;
			for (size_t c = 0; c < 3; c++)
				colour->sums[c] += rgb[c];
		}
	return true;
}

/* In hundredths. */
static unsigned level(const struct colour *colour, size_t c)
{
	return (unsigned)((colour->sums[c] * 100ULL / colour->n + 127) / 255);
}

static void colours_put(const struct sixel *sixel)
{
	for (size_t i = 0; i < colours_size(sixel->shift) / sizeof(struct colour); i++) {
		const struct colour *colour = &sixel->colours[i];

		if (colour->n > 0)
			(void)fprintf(sixel->out, "#%u;2;%u;%u;%u", colour->number, level(colour, 0),
				      level(colour, 1), level(colour, 2));
	}
}

static void run_put(const struct sixel *sixel, unsigned n, unsigned bits)
{
	if (n > 3)
		(void)fprintf(sixel->out, "!%u%c", n, (int)('?' + bits));
	else
		while (n-- > 0)
			(void)putc_unlocked((int)('?' + bits), sixel->out);
}

/* The columns of one colour: for each a bit for every row that has it. What is behind the last one is left out. */
static void row_put(const struct sixel *sixel, unsigned number, const uint8_t *bits)
{
	unsigned n = 0;

	(void)fprintf(sixel->out, "#%u", number);
	for (unsigned x = 0; x < sixel->pixels->width; x++) {
		if (n > 0 && bits[x] != bits[x - 1]) {
			run_put(sixel, n, bits[x - 1]);
			n = 0;
		}
		n++;
	}
	if (n > 0 && bits[sixel->pixels->width - 1])
		run_put(sixel, n, bits[sixel->pixels->width - 1]);
	(void)putc_unlocked('$', sixel->out);
}

/* @bits: a row of columns for each colour. */
static void band_put(const struct sixel *sixel, unsigned top, uint8_t *bits)
{
	unsigned width = sixel->pixels->width, rows = MIN(sixel->pixels->height - top, (unsigned)ROWS);
	bool used[COLOURS] = {false};

	for (unsigned y = 0; y < rows; y++)
		for (unsigned x = 0; x < width; x++) {
			unsigned number = colour_of(sixel, x, top + y)->number;

			if (!used[number])
				memset(bits + (size_t)number * width, 0, width);
			used[number] = true;
			bits[(size_t)number * width + x] |= (uint8_t)(1 << y);
		}
	for (unsigned number = 0; number < sixel->n; number++)
		if (used[number])
			row_put(sixel, number, bits + (size_t)number * width);
	(void)putc_unlocked('-', sixel->out);
}

int sixel_put(const struct pixels *pixels, FILE *out)
{
	struct sixel sixel = {.pixels = pixels, .shift = SHIFT_MIN, .out = out};
	_cleanup_(freep) char *colours = malloc(colours_size(SHIFT_MIN));
	_cleanup_(freep) char *bits = malloc((size_t)COLOURS * pixels->width);

	sixel.colours = (struct colour *)(void *)colours;
	if (!colours || !bits)
		return -ENOMEM;
	while (!colours_count(&sixel))
		sixel.shift++;
	(void)fprintf(out, "\033P0;1q\"1;1;%u;%u", pixels->width, pixels->height);
	colours_put(&sixel);
	for (unsigned top = 0; top < pixels->height; top += ROWS)
		band_put(&sixel, top, (uint8_t *)bits);
	(void)fputs("\033\\", out);
	return 0;
}
