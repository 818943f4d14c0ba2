/* kitty's protocol, which other terminals have as well: PNG in base 64, in pieces. Or sixel, which far more have:
 * we decode the PNG, and write colours. Either way no byte of the picture can be a command to the terminal. kitty's
 * is asked to be silent: an answer would be typed into our input. */
#include "picture.h"

#include "sixel.h"
#include "text.h"

#include <sys/ioctl.h>

#define PIECE 4096 /* of base 64 */
#define SIDE_MAX 20000
/* In a PNG. */
#define WIDTH_AT 16
#define HEIGHT_AT 20

static bool is_set(const char *name)
{
	const char *value = getenv(name);

	return value && *value;
}

bool picture_multiplexed(void)
{
	return is_set("TMUX") || is_set("STY");
}

enum graphics picture_graphics(void)
{
	const char *terminal = getenv("TERM");

	if (picture_multiplexed() || !terminal)
		return GRAPHICS_NONE;
	if (is_set("KITTY_WINDOW_ID") || strcmp(terminal, "xterm-kitty") == 0 ||
	    strcmp(terminal, "xterm-ghostty") == 0)
		return GRAPHICS_KITTY;
	return GRAPHICS_NONE;
}

static uint32_t number_at(struct lair_text data, size_t at)
{
	const unsigned char *bytes = (const unsigned char *)data.data + at;

	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* The signature, then a chunk of 13 bytes that begins with width and height. */
bool picture_is_png(struct lair_text data)
{
	static const char head[] = "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR";
	size_t size = sizeof(head) - 1;
	uint32_t width, height;

	if (data.size < size + 8 || memcmp(data.data, head, size) != 0)
		return false;
	width = number_at(data, WIDTH_AT);
	height = number_at(data, HEIGHT_AT);
	return width > 0 && height > 0 && width <= SIDE_MAX && height <= SIDE_MAX;
}

static struct winsize window(void)
{
	struct winsize size = {0};

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0)
		size = (struct winsize){0};
	return size;
}

/* ---- kitty ---- */

/* To how many columns it must be scaled down; 0: it fits, or the size is not known. */
static unsigned columns_of(struct lair_text data)
{
	struct winsize size = window();

	return size.ws_xpixel > 0 && number_at(data, WIDTH_AT) > size.ws_xpixel ? size.ws_col : 0;
}

static void kitty_show(struct lair_text data, FILE *out)
{
	size_t step = PIECE / 4 * 3;
	unsigned columns = columns_of(data);

	(void)fputs("\033_Ga=T,f=100,q=2,", out);
	if (columns > 0)
		(void)fprintf(out, "c=%u,", columns);
	for (size_t i = 0; i < data.size; i += step) {
		struct lair_text piece = {.data = data.data + i, .size = MIN(step, data.size - i)};
		_cleanup_(freep) char *encoded = text_base64(piece);

		(void)fprintf(out, "%sm=%d;%s\033\\", i > 0 ? "\033_Gq=2," : "", i + step < data.size,
			      encoded ? encoded : "");
	}
}

/* ---- sixel ---- */

static bool sixel_show(struct lair_text data, FILE *out)
{
	_cleanup_(pixels_deinit) struct pixels pixels;

	if (pixels_read(&pixels, data, number_at(data, WIDTH_AT), number_at(data, HEIGHT_AT)) != 0)
		return false;
	pixels_fit(&pixels, window().ws_xpixel);
	return sixel_put(&pixels, out) == 0;
}

bool picture_show(enum graphics graphics, struct lair_text data, FILE *out)
{
	bool shown = graphics != GRAPHICS_NONE;

	if (graphics == GRAPHICS_KITTY)
		kitty_show(data, out);
	if (graphics == GRAPHICS_SIXEL)
		shown = sixel_show(data, out);
	if (shown)
		putc_unlocked('\n', out);
	return shown;
}
