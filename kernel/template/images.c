/* Templates write their images when nobody waits for them, in a process of their own. The file's name tells what
 * was loaded and for whom; all else that must be the same is in its header, so that an image that is of no use any
 * more is replaced. */
#include "images.h"

#include "base/fork.h"
#include "language.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define IMAGES_MAX 8 /* the least recently used go first */
#define WRITER_NICE 10

/* ---- which image ---- */

/* What the language reads before it is ready. */
static int subject_find(uint8_t subject[static SHA256_SIZE], const struct configure_message *configure)
{
	const struct configure_message loaded = {
		.profile = configure->profile,
		.python = configure->python,
		.preload = configure->preload,
		.env = configure->env,
		.changeable = configure->changeable,
		.text_max = configure->text_max,
		.forbid = configure->forbid,
		.forbid_exec = configure->forbid_exec,
		.packages = configure->packages,
		.requirements = configure->requirements,
		.packages_allow = configure->packages_allow,
		.packages_deny = configure->packages_deny,
		.processes = geteuid(),
	};
	msgpack_sbuffer encoded = {0};
	int r = wire_encode(&encoded, &configure_message_schema, &loaded);

	sha256(subject, wire_bytes(&encoded));
	msgpack_sbuffer_destroy(&encoded);
	return r;
}

static void name_find(struct images *images, const struct configure_message *configure)
{
	uint8_t subject[SHA256_SIZE];

	images->unused = language.sources ? image_impossible() : "this language has no images";
	if (!images->unused && subject_find(subject, configure))
		images->unused = "out of memory";
	if (images->unused)
		return;
	image_identify(&images->identity, subject);
	(void)sha256_hex(images->name, (struct bytes){(const char *)subject, sizeof(subject)});
	snprintf(images->aside, sizeof(images->aside), "%s.tried", images->name);
}

void images_wake(struct images *images, int channel, char *buffer)
{
	struct configure_message configure;
	int fds[CHANNEL_FDS_MAX];
	struct wire_frame frame;
	struct wire_fault fault;
	struct bytes data;
	size_t n_fds;

	*images = (struct images){.directory = -1, .report = -1};
	if (channel_peek(channel, buffer, CHANNEL_SIZE_MAX, &data, fds, &n_fds))
		return;
	if (fds[0] >= 0 && !wire_open(&frame, data) && bytes_is(frame.type, configure_message_schema.type) &&
	    !wire_decode(&configure, &configure_message_schema, frame.body, &fault)) {
		name_find(images, &configure);
		if (!images->unused)
			images->unused = image_wake(fds[0], images->name, images->aside, &images->identity);
	}
	for (size_t i = 0; i < n_fds; i++)
		fd_close(fds[i]);
}

void images_begin(struct images *images, int directory)
{
	images->directory = images->name[0] ? directory : fd_close(directory);
}

void images_find_sources(struct images *images)
{
	if (images->directory >= 0 && !images->woken)
		images->sources = language.sources();
}

/* ---- writing one ---- */

bool images_is_due(const struct images *images)
{
	return images->directory >= 0 && images->report < 0 && !images->woken;
}

/* Removes the file that has been there longest, if there are too many. */
static void make_room(int directory)
{
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), n = 0;
	DIR *list = fd < 0 ? NULL : fdopendir(fd);
	char oldest[NAME_MAX + 1];
	struct dirent *entry;
	struct stat status;
	time_t since = 0;

	while (list && (entry = readdir(list)))
		if (fstatat(directory, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(status.st_mode) && (n++ == 0 || status.st_mtime < since)) {
			since = status.st_mtime;
			snprintf(oldest, sizeof(oldest), "%s", entry->d_name);
		}
	if (n >= IMAGES_MAX)
		(void)unlinkat(directory, oldest, 0);
	if (list)
		(void)closedir(list);
	else
		fd_close(fd);
}

/* In the writer. Returns in the process that wakes, and only there. */
static void write_image(const struct images *images, int report)
{
	bool woken;
	const char *why;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)setpriority(PRIO_PROCESS, 0, WRITER_NICE);
	make_room(images->directory);
	why = image_write(images->directory, images->name, &images->identity, images->sources, &woken);
	if (woken)
		return;
	if (why)
		(void)!write(report, why, strlen(why));
	_exit(why ? EXIT_FAILURE : EXIT_SUCCESS);
}

const char *images_keep(struct images *images, int channel, void (*forget)(void *data), void *data, bool *wokenp)
{
	const char *why = images->sources ? image_lacks(channel + 1, images->directory) : "out of memory";
	int ends[2];

	*wokenp = false;
	if (!why && pipe2(ends, O_CLOEXEC) < 0)
		why = strerror(errno);
	if (why) {
		fd_closep(&images->directory);
		return why;
	}
	images->writer = fork_child();
	if (images->writer == 0) {
		(void)close(channel);
		(void)close(ends[0]);
		forget(data);
		write_image(images, ends[1]);
		images->directory = images->report = -1;
		images->woken = *wokenp = true;
		return NULL;
	}
	fd_close(ends[1]);
	images->report = ends[0];
	return NULL;
}

const char *images_finish(struct images *images)
{
	static char why[256];
	ssize_t n = read(images->report, why, sizeof(why) - 1);
	int status = -1;

	why[MAX(n, 0)] = '\0';
	if (images->writer > 0)
		(void)waitpid(images->writer, &status, __WALL);
	fd_closep(&images->report);
	fd_closep(&images->directory);
	return status == 0 ? NULL : n > 0 ? why : "the process that wrote it died";
}

void images_prove(struct images *images)
{
	if (!images->woken || images->directory < 0)
		return;
	if (renameat(images->directory, images->aside, images->directory, images->name) == 0)
		(void)utimensat(images->directory, images->name, NULL, 0);
	fd_closep(&images->directory);
}
