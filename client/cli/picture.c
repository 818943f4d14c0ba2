/* kitty's protocol, which other terminals have as well: PNG in base 64, in pieces. No byte of the picture can be a
 * command to the terminal, and the terminal is asked to be silent: an answer would be typed into our input. */
#include "picture.h"

#include "text.h"

#include <sys/ioctl.h>

#define PIECE 4096 /* of base 64 */
#define SIDE_MAX 20000

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
	width = number_at(data, size);
	height = number_at(data, size + 4);
	return width > 0 && height > 0 && width <= SIDE_MAX && height <= SIDE_MAX;
}

/* How many columns it is to be scaled down to; 0: it fits, or nobody knows. */
static unsigned columns_of(struct lair_text data)
{
	struct winsize size = {0};

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_xpixel == 0)
		return 0;
	return number_at(data, 16) > size.ws_xpixel ? size.ws_col : 0;
}

void picture_show(struct lair_text data, FILE *out)
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
	putc_unlocked('\n', out);
}
