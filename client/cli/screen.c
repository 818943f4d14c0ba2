/* A state machine over bytes, as in a terminal: a sequence may be cut anywhere between two pieces. A list of
 * harmless sequences decides, so nothing unknown passes. */
#include "screen.h"

#include "base/text.h"

#define ESC '\033'
#define CAN '\030'
#define SUB '\032'

/* ---- sequences ---- */

static bool is_number(const char *text, size_t size)
{
	size_t digits = 0;

	while (digits < size && text[digits] >= '0' && text[digits] <= '9')
		digits++;
	return digits == size && size <= 4;
}

static bool is_style(const char *text, size_t size)
{
	size_t n = 0;

	while (n < size && ((text[n] >= '0' && text[n] <= '9') || text[n] == ';' || text[n] == ':'))
		n++;
	return n == size;
}

/* Whether the cursor may go up: no further than the cell itself has written. */
static bool climb(struct screen *screen, const char *number, size_t size)
{
	uint64_t lines = 0;

	for (size_t i = 0; i < size; i++)
		lines = 10 * lines + (uint64_t)(number[i] - '0');
	lines = MAX(lines, (uint64_t)1);
	if (lines > screen->below)
		return false;
	screen->below -= lines;
	return true;
}

static bool is_cursor_switch(const char *text, size_t size, char last)
{
	return size == 3 && memcmp(text, "?25", 3) == 0 && (last == 'h' || last == 'l');
}

/* @text: the characters between ESC [ and @last. */
static bool passes(struct screen *screen, const char *text, size_t size, char last)
{
	if (is_cursor_switch(text, size, last)) {
		screen->blinded = last == 'l';
		return true;
	}
	switch (last) {
	case 'm':
		if (!is_style(text, size))
			return false;
		screen->styled = size > 0 && !(size == 1 && text[0] == '0');
		return true;
	case 'C': /* right, left, to a column, erase in the line */
	case 'D':
	case 'G':
	case 'K':
		return is_number(text, size);
	case 'A':
		return is_number(text, size) && climb(screen, text, size);
	case 'J': /* erase what is below */
		return size == 0 || (size == 1 && text[0] == '0');
	}
	return false;
}

static void csi_end(struct screen *screen, enum lair_stream stream, char last, FILE *out)
{
	const char *text = screen->streams[stream].sequence;
	size_t size = screen->streams[stream].size;

	screen->streams[stream].state = SCREEN_TEXT;
	if (size <= SCREEN_SEQUENCE && passes(screen, text, size, last))
		(void)fprintf(out, "\033[%.*s%c", (int)size, text, last);
	else
		screen->dropped++;
}

/* ---- states ---- */

static void drop(struct screen *screen, enum lair_stream stream)
{
	screen->dropped++;
	screen->streams[stream].state = SCREEN_TEXT;
}

static void on_escape(struct screen *screen, enum lair_stream stream, char c)
{
	screen->streams[stream].size = 0;
	if (c == '[')
		screen->streams[stream].state = SCREEN_CSI;
	else if (c && strchr("]PX^_", c))
		screen->streams[stream].state = SCREEN_STRING;
	else if (c >= ' ' && c < '0')
		screen->streams[stream].state = SCREEN_INTERMEDIATE;
	else
		drop(screen, stream);
}

static void on_csi(struct screen *screen, enum lair_stream stream, char c, FILE *out)
{
	size_t size = screen->streams[stream].size;

	if (c >= '@' && c <= '~') {
		csi_end(screen, stream, c, out);
		return;
	}
	if (size < SCREEN_SEQUENCE)
		screen->streams[stream].sequence[size] = c;
	screen->streams[stream].size = MIN(size + 1, (size_t)SCREEN_SEQUENCE + 1);
}

/* Handles a byte that belongs to a sequence. */
static void on_sequence(struct screen *screen, enum lair_stream stream, char c, FILE *out)
{
	switch (screen->streams[stream].state) {
	case SCREEN_TEXT:
		break;
	case SCREEN_ESCAPE:
		on_escape(screen, stream, c);
		break;
	case SCREEN_INTERMEDIATE:
		if (c >= '0')
			drop(screen, stream);
		break;
	case SCREEN_CSI:
		on_csi(screen, stream, c, out);
		break;
	case SCREEN_STRING:
		if (c == '\a')
			drop(screen, stream);
		else if (c == ESC)
			screen->streams[stream].state = SCREEN_STRING_ESCAPE;
		break;
	case SCREEN_STRING_ESCAPE:
		drop(screen, stream);
		if (c != '\\')
			on_escape(screen, stream, c);
		break;
	}
}

/* Whether @c breaks a sequence off. Some characters break off any sequence. Control characters do what they always
 * do, except in strings. */
static bool breaks(enum screen_state state, char c)
{
	if (c == CAN || c == SUB)
		return true;
	return state != SCREEN_STRING && state != SCREEN_STRING_ESCAPE && c >= 0 && c < ' ';
}

static void on_control(struct screen *screen, enum lair_stream stream, char c, FILE *out)
{
	if (c == ESC) {
		screen->streams[stream].state = SCREEN_ESCAPE;
		return;
	}
	screen->below += c == '\n';
	putc_unlocked(c && strchr("\a\b\t\n\r", c) ? c : '?', out);
}

static void on_text(struct screen *screen, enum lair_stream stream, const char *at, size_t size, FILE *out)
{
	const unsigned char *c = (const unsigned char *)at;

	if (size == 0)
		(void)fputs("\ufffd", out);
	else if (size == 1 && (*c < ' ' || *c == 0x7f))
		on_control(screen, stream, *at, out);
	else if (size == 2 && c[0] == 0xc2 && c[1] < 0xa0) /* a control character of two bytes */
		putc_unlocked('?', out);
	else
		(void)fwrite_unlocked(at, 1, size, out);
}

static void take(struct screen *screen, enum lair_stream stream, struct lair_text text, FILE *out)
{
	size_t size;

	for (size_t i = 0; i < text.size; i += MAX(size, (size_t)1)) {
		enum screen_state *state = &screen->streams[stream].state;

		size = text_character_size(text.data + i, text.size - i);
		if (*state != SCREEN_TEXT && breaks(*state, text.data[i]))
			drop(screen, stream);
		if (*state == SCREEN_TEXT)
			on_text(screen, stream, text.data + i, size, out);
		else if (size <= 1)
			on_sequence(screen, stream, text.data[i], out);
	}
}

/* ---- pieces ---- */

/* The beginning of a character that was cut off before comes in front of the next piece. One that is cut off at the
 * end of this piece waits. */
void screen_pass(struct screen *screen, enum lair_stream stream, struct lair_text text, FILE *out)
{
	size_t before = screen->streams[stream].n_cut, cut;
	_cleanup_(freep) char *whole = before > 0 ? malloc(before + text.size) : NULL;

	if (whole) {
		memcpy(whole, screen->streams[stream].cut, before);
		memcpy(whole + before, text.data, text.size);
		text = (struct lair_text){.data = whole, .size = before + text.size};
	}
	cut = text_cut_end(text.data, text.size);
	take(screen, stream, (struct lair_text){.data = text.data, .size = text.size - cut}, out);
	if (cut > 0)
		memcpy(screen->streams[stream].cut, text.data + text.size - cut, cut);
	screen->streams[stream].n_cut = cut;
}

void screen_mark(struct screen *screen)
{
	screen->below = 0;
}

uint64_t screen_end(struct screen *screen, FILE *out)
{
	uint64_t dropped = screen->dropped;

	for (enum lair_stream stream = LAIR_STDOUT; stream <= LAIR_STDERR; stream++) {
		dropped += screen->streams[stream].state != SCREEN_TEXT;
		for (size_t i = 0; i < screen->streams[stream].n_cut; i++)
			(void)fputs("\ufffd", out);
	}
	if (screen->styled)
		(void)fputs("\033[0m", out);
	if (screen->blinded)
		(void)fputs("\033[?25h", out);
	*screen = (struct screen){.below = 0};
	return dropped;
}
