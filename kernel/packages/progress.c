/* uv says "Downloading NAME (33.7MiB)" of each large file, " Downloaded NAME" when it has it, and "Prepared" when
 * it has all. Small ones it does not mention. */
#include "progress.h"

#include <stdio.h>
#include <stdlib.h>

#define NAMES_SHOWN 3

struct download {
	struct bytes name;
	double size;
};

struct progress {
	double all, done;
	unsigned n; /* of files that are being downloaded */
	char names[PROGRESS_SIZE / 2];
};

/* "33.7MiB" */
static double size_of(const char *text)
{
	static const char units[] = "KMGT";
	char *end;
	double size = strtod(text, &end);
	const char *unit = *end ? strchr(units, *end) : NULL;

	for (long n = unit ? unit - units + 1 : 0; n > 0; n--)
		size *= 1024;
	return size > 0 && size < 1e18 ? size : 0;
}

/* Whether @line, which ends with a newline or the text, begins with @word; then @rest is what follows. */
static bool is_about(const char *line, const char *word, struct bytes *rest)
{
	size_t size = strlen(word);

	while (*line == ' ')
		line++;
	if (strncmp(line, word, size) != 0)
		return false;
	*rest = (struct bytes){line + size, strcspn(line + size, "\n")};
	return true;
}

static const char *line_after(const char *line)
{
	line += strcspn(line, "\n");
	return *line ? line + 1 : NULL;
}

static bool read_download(struct download *download, const char *line)
{
	struct bytes rest;
	const char *paren;

	if (!is_about(line, "Downloading ", &rest) || !(paren = memmem(rest.data, rest.size, " (", 2)))
		return false;
	download->name = (struct bytes){rest.data, (size_t)(paren - rest.data)};
	download->size = size_of(paren + 2);
	return true;
}

static bool is_downloaded(const char *log, struct bytes name)
{
	struct bytes rest;

	for (const char *line = log; line; line = line_after(line))
		if (is_about(line, "Downloaded ", &rest) && bytes_equal(rest, name))
			return true;
	return false;
}

static void add(struct progress *progress, const struct download *download)
{
	size_t at = strlen(progress->names);

	if (++progress->n <= NAMES_SHOWN)
		(void)snprintf(progress->names + at, sizeof(progress->names) - at, "%s%.*s", at ? ", " : "",
			       (int)MIN(download->name.size, (size_t)32), download->name.data);
}

static void tame(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || (unsigned char)*text >= 0x7f)
			*text = '?';
}

const char *progress_of(char out[static PROGRESS_SIZE], const char *log)
{
	struct progress progress = {.all = 0};
	struct download download;
	char more[32] = "";
	struct bytes rest;

	for (const char *line = log; line; line = line_after(line)) {
		if (is_about(line, "Prepared ", &rest)) {
			(void)snprintf(out, PROGRESS_SIZE, "installing");
			return out;
		}
		if (!read_download(&download, line))
			continue;
		progress.all += download.size;
		if (is_downloaded(log, download.name))
			progress.done += download.size;
		else
			add(&progress, &download);
	}
	if (progress.n > NAMES_SHOWN)
		(void)snprintf(more, sizeof(more), " and %u more", progress.n - NAMES_SHOWN);
	if (progress.n > 0)
		(void)snprintf(out, PROGRESS_SIZE, "downloading %s%s, %.1f of %.1f MB", progress.names, more,
			       progress.done / 1e6, progress.all / 1e6);
	else
		(void)snprintf(out, PROGRESS_SIZE, "downloading");
	tame(out);
	return out;
}
