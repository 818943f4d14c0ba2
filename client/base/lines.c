/* Lines of a descriptor. */
#include "lines.h"

void lines_init(struct lines *lines, int fd)
{
	*lines = (struct lines){.fd = fd};
}

void lines_deinit(struct lines *lines)
{
	free(lines->data);
	lines_init(lines, lines->fd);
}

static int room_make(struct lines *lines)
{
	size_t size = lines->end - lines->start;
	char *grown;

	if (lines->start > 0) {
		memmove(lines->data, lines->data + lines->start, size);
		lines->start = 0;
		lines->end = size;
	}
	if (lines->end < lines->allocated)
		return 0;
	grown = realloc(lines->data, lines->allocated ? 2 * lines->allocated : 4096);
	if (!grown)
		return -ENOMEM;
	lines->allocated = lines->allocated ? 2 * lines->allocated : 4096;
	lines->data = grown;
	return 0;
}

int lines_fill(struct lines *lines)
{
	ssize_t n;
	int r;

	r = room_make(lines);
	if (r)
		return r;
	n = read(lines->fd, lines->data + lines->end, lines->allocated - lines->end);
	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : -errno;
	lines->eof = n == 0;
	lines->end += (size_t)n;
	return 0;
}

/* Drops the bytes so far of a line that is too long, or the rest of such a line. */
static void line_skip(struct lines *lines)
{
	char *at = lines->data + lines->start, *newline;
	size_t size = lines->end - lines->start;

	newline = size > 0 ? memchr(at, '\n', size) : NULL;
	lines->start = newline ? (size_t)(newline - lines->data) + 1 : lines->end;
	lines->skipping = !newline;
}

int lines_next(struct lines *lines, struct lair_text *line)
{
	char *at, *newline;
	size_t size;

	if (lines->skipping)
		line_skip(lines);
	at = lines->data + lines->start;
	size = lines->end - lines->start;
	newline = size > 0 ? memchr(at, '\n', size) : NULL;
	if (lines->size_max && (newline ? (size_t)(newline - at) : size) > lines->size_max) {
		line_skip(lines);
		return LINES_E_TOO_LONG;
	}
	if (newline) {
		*line = (struct lair_text){.data = at, .size = (size_t)(newline - at)};
		lines->start += line->size + 1;
		return 0;
	}
	if (!lines->eof)
		return LINES_E_EMPTY;
	if (size > 0) {
		*line = (struct lair_text){.data = at, .size = size};
		lines->start = lines->end;
		return 0;
	}
	lines->eof = false;
	return LINES_E_EOF;
}
