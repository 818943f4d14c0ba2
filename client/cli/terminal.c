/* If it is no terminal, it gets every byte unchanged. */
#include "terminal.h"

#include "base/text.h"

#include <sys/ioctl.h>

static bool colours_wanted(const char *when, bool is_terminal)
{
	const char *kind = getenv("TERM"), *no = getenv("NO_COLOR");

	if (when && strcmp(when, "auto") != 0)
		return strcmp(when, "always") == 0;
	return is_terminal && !(no && *no) && kind && strcmp(kind, "dumb") != 0;
}

void terminal_init(struct terminal *terminal, const char *when)
{
	static const int fds[] = {[LAIR_STDOUT] = STDOUT_FILENO, [LAIR_STDERR] = STDERR_FILENO};

	*terminal = (struct terminal){.is = {false}};
	for (enum lair_stream stream = LAIR_STDOUT; stream <= LAIR_STDERR; stream++) {
		terminal->is[stream] = isatty(fds[stream]);
		terminal->colour[stream] = colours_wanted(when, terminal->is[stream]);
	}
	if (terminal->is[LAIR_STDOUT])
		terminal->graphics = picture_graphics();
}

/* ---- text through filters: the screen's is the last, and nothing comes between it and the terminal ---- */

struct filtered {
	FILE *out;
	char *text;
	size_t size;
};

/* Returns whether there is memory. */
static bool filter_begin(struct filtered *filtered)
{
	filtered->text = NULL;
	filtered->out = open_memstream(&filtered->text, &filtered->size);
	return filtered->out;
}

/* Puts the text in the place of *ownedp. */
static struct lair_text filter_end(struct filtered *filtered, char **ownedp)
{
	free(*ownedp);
	*ownedp = NULL;
	if (!filtered->out || fclose(filtered->out) != 0 || !filtered->text)
		return (struct lair_text){.data = NULL};
	*ownedp = filtered->text;
	return (struct lair_text){.data = filtered->text, .size = filtered->size};
}

static struct lair_text tamed(struct terminal *terminal, enum lair_stream stream, struct lair_text text,
			      char **ownedp)
{
	struct filtered filtered;

	if (!terminal->is[stream] || text.size == 0)
		return text;
	if (filter_begin(&filtered))
		screen_pass(&terminal->screen, stream, text, filtered.out);
	return filter_end(&filtered, ownedp);
}

struct lair_text terminal_text(struct terminal *terminal, enum lair_stream stream, struct lair_text text,
			       char **ownedp)
{
	struct filtered filtered;

	*ownedp = NULL;
	if (stream == LAIR_STDERR && terminal->colour[stream]) {
		if (filter_begin(&filtered))
			paint_pass(&terminal->paint, text, filtered.out);
		text = filter_end(&filtered, ownedp);
	}
	return tamed(terminal, stream, text, ownedp);
}

struct lair_text terminal_value(struct terminal *terminal, struct lair_text text, char **ownedp)
{
	struct filtered filtered;

	*ownedp = NULL;
	if (terminal->colour[LAIR_STDOUT]) {
		if (filter_begin(&filtered))
			paint_value(text, filtered.out);
		text = filter_end(&filtered, ownedp);
	}
	return tamed(terminal, LAIR_STDOUT, text, ownedp);
}

struct lair_text terminal_picture(const struct terminal *terminal, struct lair_text data, char **ownedp)
{
	struct filtered filtered;
	struct lair_text text;
	bool picture;

	*ownedp = NULL;
	if (terminal->graphics == GRAPHICS_NONE || !picture_is_png(data) || !filter_begin(&filtered))
		return (struct lair_text){.data = NULL};
	picture = picture_show(terminal->graphics, data, filtered.out);
	text = filter_end(&filtered, ownedp);
	return picture ? text : (struct lair_text){.data = NULL};
}

void terminal_end(struct terminal *terminal, struct terminal_rest rests[static 2], uint64_t *droppedp)
{
	enum lair_stream last = terminal->is[LAIR_STDOUT] ? LAIR_STDOUT : LAIR_STDERR;
	struct terminal_rest *held = &rests[0], *end = &rests[1];
	struct filtered filtered;

	*held = (struct terminal_rest){.stream = LAIR_STDERR};
	*end = (struct terminal_rest){.stream = last};
	*droppedp = 0;
	if (filter_begin(&filtered))
		paint_end(&terminal->paint, filtered.out);
	held->text = filter_end(&filtered, &held->owned);
	held->text = tamed(terminal, LAIR_STDERR, held->text, &held->owned);
	if (!terminal->is[last])
		return;
	if (filter_begin(&filtered))
		*droppedp = screen_end(&terminal->screen, filtered.out);
	end->text = filter_end(&filtered, &end->owned);
}

void terminal_size(unsigned *columns, unsigned *rows)
{
	struct winsize size = {0};

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0)
		size = (struct winsize){0};
	*columns = size.ws_col;
	*rows = size.ws_row;
}
