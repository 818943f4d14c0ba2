/* Two protocols, both with the PNG in base 64, so no byte of the picture can be a command to the terminal: kitty's,
 * which other terminals have as well, and iTerm's. kitty is asked to be silent: an answer would be typed into our
 * input. */
#include "picture.h"

#include "base/text.h"

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

static bool is_value(const char *name, const char *value)
{
	const char *set = getenv(name);

	return set && strcmp(set, value) == 0;
}

bool picture_multiplexed(void)
{
	return is_set("TMUX") || is_set("STY");
}

enum graphics picture_graphics(void)
{
	if (picture_multiplexed() || !getenv("TERM"))
		return GRAPHICS_NONE;
	if (is_set("KITTY_WINDOW_ID") || is_value("TERM", "xterm-kitty") || is_value("TERM", "xterm-ghostty"))
		return GRAPHICS_KITTY;
	if (is_value("TERM_PROGRAM", "iTerm.app") || is_value("LC_TERMINAL", "iTerm2"))
		return GRAPHICS_ITERM;
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

/* The number of columns to scale it down to; 0: it fits, or the size is not known. */
static unsigned columns_of(struct lair_text data)
{
	struct winsize size = {0};

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0)
		return 0;
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

/* ---- iTerm, which scales wide pictures down ---- */

static bool iterm_show(struct lair_text data, FILE *out)
{
	_cleanup_(freep) char *encoded = text_base64(data);

	if (encoded)
		(void)fprintf(out, "\033]1337;File=inline=1;size=%zu:%s\a", data.size, encoded);
	return encoded;
}

bool picture_show(enum graphics graphics, struct lair_text data, FILE *out)
{
	bool shown = graphics == GRAPHICS_KITTY;

	if (graphics == GRAPHICS_KITTY)
		kitty_show(data, out);
	if (graphics == GRAPHICS_ITERM)
		shown = iterm_show(data, out);
	if (shown)
		putc_unlocked('\n', out);
	return shown;
}
