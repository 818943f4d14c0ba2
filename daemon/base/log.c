/* The log. A line is built in one buffer and leaves in one write; what does not fit is cut and marked, never split.
 */
#include "log.h"

#include "proto/wire.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#define TEXT_SIZE 2048
#define SESSION_SIZE 140
#define LINE_SIZE (4 * (TEXT_SIZE + SESSION_SIZE) + 64)

struct line {
	char data[LINE_SIZE];
	size_t size;
};

static const char *const level_names[] = {[LOG_INFO] = "info ", [LOG_WARN] = "warn ", [LOG_ERROR] = "error"};

static void line_put_time(struct line *line)
{
	struct timespec now;
	struct tm tm;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)gmtime_r(&now.tv_sec, &tm);
	line->size += strftime(line->data + line->size, 32, "%Y-%m-%dT%H:%M:%S", &tm);
	line->size += (size_t)snprintf(line->data + line->size, 16, ".%03ldZ ", now.tv_nsec / 1000000);
}

/* How many bytes at @at are something a terminal acts on: C0, DEL or, in UTF-8, C1. */
static size_t control_size(const unsigned char *at, size_t left)
{
	if (at[0] < 0x20 || at[0] == 0x7f)
		return 1;
	return at[0] == 0xc2 && left > 1 && at[1] < 0xa0 ? 2 : 0;
}

static void line_put_text(struct line *line, const char *text, size_t size)
{
	const unsigned char *bytes = (const unsigned char *)text;
	bool utf8 = utf8_valid((struct bytes){.data = text, .size = size});
	size_t escaped = 0;

	for (size_t i = 0; i < size; i++) {
		escaped = MAX(escaped, control_size(bytes + i, size - i));
		if (escaped > 0 || (bytes[i] >= 0x80 && !utf8))
			line->size += (size_t)snprintf(line->data + line->size, 5, "\\x%02x", bytes[i]);
		else
			line->data[line->size++] = text[i];
		escaped -= escaped > 0;
	}
}

void log_write(enum log_level level, const char *session, const char *format, ...)
{
	int saved = errno;
	struct line line = {.size = 0};
	char text[TEXT_SIZE];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	line_put_time(&line);
	line.size += (size_t)snprintf(line.data + line.size, 16, "%s ", level_names[level]);
	if (session) {
		line.data[line.size++] = '[';
		line_put_text(&line, session, strnlen(session, SESSION_SIZE));
		line.data[line.size++] = ']';
		line.data[line.size++] = ' ';
	}
	line_put_text(&line, text, strlen(text));
	if ((size_t)n >= sizeof(text))
		line.size += (size_t)snprintf(line.data + line.size, 5, " ...");
	line.data[line.size++] = '\n';
	/* If the log cannot be written, we go on; there is no other place to say so. */
	while (write(STDERR_FILENO, line.data, line.size) < 0 && errno == EINTR)
		;
	errno = saved;
}

int log_open(const char *path)
{
	_cleanup_(fd_closep) int fd = -1;
	struct stat st;

	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	return dup2(fd, STDERR_FILENO) < 0 ? -errno : 0;
}
