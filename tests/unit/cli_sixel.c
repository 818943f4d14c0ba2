/* Pixels as sixel and back: a small terminal reads what is written. */
#include "check.h"

#include "sixel.h"

struct screenful {
	unsigned width, height;
	uint8_t palette[256][3], *rgb; /* of three bytes a pixel, in hundredths */
	bool *drawn;
};

static unsigned number(const char **at)
{
	char *end;
	unsigned n = (unsigned)strtoul(*at, &end, 10);

	*at = end;
	return n;
}

static bool skip(const char **at, const char *text)
{
	bool there = strncmp(*at, text, strlen(text)) == 0;

	*at += there ? strlen(text) : 0;
	return there;
}

static void columns_draw(struct screenful *seen, unsigned x, unsigned n, unsigned top, unsigned bits,
			 unsigned colour)
{
	for (unsigned i = x; i < x + n; i++)
		for (unsigned y = 0; y < 6; y++) {
			size_t at = (size_t)(top + y) * seen->width + i;

			if (!(bits >> y & 1))
				continue;
			CHECK(i < seen->width && top + y < seen->height && !seen->drawn[at]);
			seen->drawn[at] = true;
			memcpy(seen->rgb + 3 * at, seen->palette[colour], 3);
		}
}

static unsigned colour_read(struct screenful *seen, const char **at)
{
	unsigned colour = number(at);

	CHECK(colour < 256);
	if (skip(at, ";2;"))
		for (size_t c = 0; c < 3; c++) {
			unsigned level = number(at);

			CHECK(level <= 100 && (c == 2 || skip(at, ";")));
			seen->palette[colour][c] = (uint8_t)level;
		}
	return colour;
}

static void picture_read(struct screenful *seen, const char *at)
{
	unsigned x = 0, top = 0, colour = 0, n;

	CHECK(skip(&at, "\033P0;1q\"1;1;"));
	seen->width = number(&at);
	CHECK(skip(&at, ";"));
	seen->height = number(&at);
	seen->rgb = calloc((size_t)seen->width * seen->height, 3);
	seen->drawn = calloc((size_t)seen->width * seen->height, 1);
	while (*at && *at != '\033') {
		if (skip(&at, "#")) {
			colour = colour_read(seen, &at);
		} else if (skip(&at, "$")) {
			x = 0;
		} else if (skip(&at, "-")) {
			x = 0;
			top += 6;
		} else {
			n = skip(&at, "!") ? number(&at) : 1;
			CHECK(*at >= '?' && *at <= '~');
			columns_draw(seen, x, n, top, (unsigned)(*at++ - '?'), colour);
			x += n;
		}
	}
	CHECK(strcmp(at, "\033\\") == 0);
}

/* By how much a colour differs at most, in hundredths. */
static unsigned distance(const struct pixels *pixels)
{
	struct screenful seen = {.width = 0};
	unsigned most = 0;
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	CHECK(sixel_put(pixels, out) == 0);
	(void)fclose(out);
	picture_read(&seen, text);
	CHECK(seen.width == pixels->width && seen.height == pixels->height);
	for (size_t i = 0; i < (size_t)seen.width * seen.height; i++) {
		CHECK(seen.drawn[i]);
		for (size_t c = 0; c < 3; c++) {
			unsigned level = (pixels->rgb[3 * i + c] * 100U + 127) / 255;

			most = MAX(most, (unsigned)abs((int)level - (int)seen.rgb[3 * i + c]));
		}
	}
	free(seen.rgb);
	free(seen.drawn);
	free(text);
	return most;
}

static struct pixels pixels_of(unsigned width, unsigned height)
{
	return (struct pixels){.rgb = calloc((size_t)width * height, 3), .width = width, .height = height};
}

static void check_few_colours(void)
{
	static const unsigned sizes[][2] = {{1, 1}, {1, 6}, {7, 7}, {100, 13}, {640, 5}};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct pixels pixels = pixels_of(sizes[i][0], sizes[i][1]);

		for (size_t j = 0; j < (size_t)pixels.width * pixels.height; j++) {
			pixels.rgb[3 * j] = j % 7 ? 0xff : 0;
			pixels.rgb[3 * j + 1] = (uint8_t)(j / 9 % 3 * 80);
		}
		CHECK(distance(&pixels) == 0);
		free(pixels.rgb);
	}
}

static void check_many_colours(void)
{
	struct pixels pixels = pixels_of(300, 200);
	uint32_t state = 1;

	for (size_t i = 0; i < (size_t)3 * 300 * 200; i++) {
		state = state * 1664525 + 1013904223;
		pixels.rgb[i] = (uint8_t)(state >> 24);
	}
	CHECK(distance(&pixels) <= 14); /* half of one of four levels, as the mean of what is there */
	free(pixels.rgb);
}

static void check_scaled(void)
{
	struct pixels pixels = pixels_of(9, 6);

	for (size_t i = 0; i < 9UL * 6; i++)
		pixels.rgb[3 * i] = i % 9 < 3 ? 30 : i % 3 == 0 ? 90 : 0;
	pixels_fit(&pixels, 20);
	CHECK(pixels.width == 9 && pixels.height == 6);
	pixels_fit(&pixels, 0);
	CHECK(pixels.width == 9);
	pixels_fit(&pixels, 3);
	CHECK(pixels.width == 3 && pixels.height == 2);
	for (size_t i = 0; i < 3UL * 2; i++)
		CHECK(pixels.rgb[3 * i] == 30 && pixels.rgb[3 * i + 1] == 0);
	pixels_fit(&pixels, 1);
	CHECK(pixels.width == 1 && pixels.height == 1 && pixels.rgb[0] == 30);
	free(pixels.rgb);
}

int main(void)
{
	check_few_colours();
	check_many_colours();
	check_scaled();
	return check_report();
}
