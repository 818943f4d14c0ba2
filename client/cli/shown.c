/* A picture is written under the first free name figure-N: no file is overwritten, and of everything a session
 * sends only the bytes get there. A chart that is a program for a browser counts as a picture. */
#include "shown.h"

#include "base/result.h"
#include "base/text.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define FIGURES_MAX 100000

/* HTML with a script, as plotly and altair draw by; tables have none. */
static bool is_chart(const struct lair_data *item)
{
	static const char script[] = "<script";

	return text_is(item->type, "text/html") && item->data.size &&
	       memmem(item->data.data, item->data.size, script, sizeof(script) - 1);
}

static const char *suffix_of(const struct lair_data *item)
{
	static const struct {
		const char *type, *suffix;
	} suffixes[] = {
		{"image/png", "png"},
		{"image/jpeg", "jpg"},
		{"image/svg+xml", "svg"},
		{"application/pdf", "pdf"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
		if (text_is(item->type, suffixes[i].type))
			return suffixes[i].suffix;
	return is_chart(item) ? "html" : NULL;
}

/* Returns a descriptor, with its path in @path, or -errno. */
static int figure_open(char path[4096], const char *directory, const char *suffix)
{
	static unsigned last;
	int fd = -1;

	if (mkdir(directory, 0777) < 0 && errno != EEXIST)
		return -errno;
	do {
		last++;
		if (snprintf(path, 4096, "%s/figure-%u.%s", directory, last, suffix) >= 4096)
			return -ENAMETOOLONG;
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	} while (fd < 0 && errno == EEXIST && last < FIGURES_MAX);
	return fd < 0 ? -errno : fd;
}

static void figure_save(const char *directory, const char *suffix, const struct lair_data *item)
{
	char path[4096] = "";
	_cleanup_(fd_closep) int fd = figure_open(path, directory, suffix);
	int r = fd < 0 ? fd : 0;

	if (!r && is_chart(item)) /* a part of a page, in UTF-8 */
		r = write_all(fd, lair_text("<!DOCTYPE html><meta charset=\"utf-8\">\n"));
	if (!r)
		r = write_all(fd, item->data);
	if (r)
		cli_notice("%s: the figure could not be saved: %s", path[0] ? path : directory, strerror(-r));
	else
		cli_notice("%s", path);
}

void figures_place(struct cli *cli, struct lair_items data)
{
	static char path[4096];
	const char *directory = getenv("TMPDIR");
	struct lair_data item;
	bool any = false;
	size_t cursor = 0;

	while (lair_next_data(data, &cursor, &item))
		any |= suffix_of(&item) != NULL;
	if (!any || cli->figures || !cli->figures_place)
		return;
	cli->figures_place = false;
	snprintf(path, sizeof(path), "%s/lair-figures-XXXXXX", directory && *directory == '/' ? directory : "/tmp");
	if (!mkdtemp(path)) {
		cli_notice("%s: no directory for figures: %s; --figures DIR names one", path, strerror(errno));
		return;
	}
	cli_notice("figures go into %s, since this terminal is not known to show them; --figures DIR names another "
		   "place",
		   path);
	cli->figures = path;
	cli->figures_placed = true;
}

void shown_save(const struct cli *cli, struct lair_items data)
{
	struct lair_data item;
	size_t cursor = 0;

	while (cli->figures && lair_next_data(data, &cursor, &item))
		if (suffix_of(&item))
			figure_save(cli->figures, suffix_of(&item), &item);
}

static void notice(void *userdata, enum note note, const char *sentence)
{
	cli_notice("%s", sentence);
}

void result_notice(const struct lair_result *result, int flags)
{
	struct note_style style = {.hints = {[CAUSE_TIMEOUT] = "; -t TIME sets another"}};

	style.skip[NOTE_ARTIFACTS] = !(flags & NOTICE_PROMPT);
	style.skip[NOTE_STRAY] = flags & NOTICE_PROMPT;
	style.skip[NOTE_BLOCKED] = flags & NOTICE_SCRIPTED;
	result_notes(result, &style, notice, NULL);
	cli_setting_notice(result->setting);
}

json_t *result_told(const struct lair_result *result)
{
	json_t *document = json_result(result);

	if (result->setting.data)
		json_object_set_new(document, "setting", json_text(result->setting));
	return document;
}

void artifacts_notice(const struct lair_result *result)
{
	struct lair_artifact artifact;
	char path[512], size[HUMAN_SIZE];
	size_t cursor = 0;

	while (lair_next_artifact(result->artifacts, &cursor, &artifact))
		cli_notice("%s %s, %s", text_is(artifact.change, "created") ? "created" : "modified",
			   text_tamed(path, sizeof(path), artifact.path), human_bytes(size, artifact.size));
}
