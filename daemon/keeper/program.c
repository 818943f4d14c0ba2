/* A process can reach the file that it was executed from: /proc/self/exe leads there past all mounts. If a
 * session is the file's owner, it may change the mode, times and attributes, which Landlock does not see. So
 * sessions that run as the owner of lair-kernel get a copy of it, one for each template, removed as soon as it
 * runs. */
#include "program.h"

#include "base/log.h"
#include "base/spawn.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

struct copy {
	char directory[PATH_SIZE], path[PATH_SIZE + 64]; /* no path: there is none */
};

static int content_copy(int to, int from, off_t size)
{
	for (off_t at = 0; at < size;) {
		ssize_t n = sendfile(to, from, &at, (size_t)(size - at));

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
	}
	return 0;
}

/* Beside the socket, where nobody else may write. */
static int copy_make(struct copy *copy, const char *name, int from, off_t size, const char *socket)
{
	_cleanup_(fd_closep) int to = -1;
	const char *slash = strrchr(socket, '/');

	if (snprintf(copy->directory, sizeof(copy->directory), "%.*s/program-XXXXXX",
		     slash ? (int)(slash - socket) : 1, slash ? socket : ".") >= (int)sizeof(copy->directory))
		return -ENAMETOOLONG;
	if (!mkdtemp(copy->directory))
		return -errno;
	/* Under its own name, because rules of the host may name it. */
	snprintf(copy->path, sizeof(copy->path), "%s/%s", copy->directory, name);
	to = open(copy->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0500);
	return to < 0 ? -errno : content_copy(to, from, size);
}

static void copy_remove(struct copy *copy)
{
	if (!copy->path[0])
		return;
	(void)unlink(copy->path);
	(void)rmdir(copy->directory);
	copy->path[0] = '\0';
}

/* No copy if none is needed. */
static int copy_if_own(struct copy *copy, const char *path, const char *socket)
{
	_cleanup_(fd_closep) int from = open(path, O_RDONLY | O_CLOEXEC);
	struct stat status;
	int r;

	copy->path[0] = '\0';
	if (from < 0 || fstat(from, &status) < 0)
		return -errno;
	/* Root's sessions are other users. */
	if (geteuid() == 0 || status.st_uid != geteuid())
		return 0;
	r = copy_make(copy, strrchr(path, '/') + 1, from, status.st_size, socket);
	if (r)
		copy_remove(copy);
	return r;
}

static int start(pid_t *pidp, const char *path, const char *profile, const char *socket, int channel)
{
	const char *const argv[] = {"lair-kernel", profile, NULL};
	const char *const envp[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", NULL};
	const struct spawn_fds given = {.fds = {channel}, .n = 1};
	struct copy copy;
	int r = copy_if_own(&copy, path, socket);

	if (r)
		return r;
	r = spawn_program(pidp, copy.path[0] ? copy.path : path, argv, envp, &given);
	if (r == -EACCES && copy.path[0]) {
		log_warn(NULL, "nothing may be executed in %s, so sessions can change the mode of %s",
			 copy.directory, path);
		r = spawn_program(pidp, path, argv, envp, &given);
	}
	copy_remove(&copy);
	return r;
}

int program_path(char path[static PATH_SIZE], const char *language, unsigned python)
{
	char name[64];

	if (strcmp(language, LANGUAGE_OWN) != 0 || !python || python == PYTHON_OWN)
		return path_language(path, language);
	snprintf(name, sizeof(name), "lair-kernel-%u.%u", python >> 8, python & 0xff);
	return path_sibling(path, name);
}

int program_start(pid_t *pidp, const char *profile, const char *language, unsigned python, const char *socket,
		  int channel)
{
	char path[PATH_SIZE];
	int r = program_path(path, language, python);

	if (r == 0)
		r = start(pidp, path, profile, socket, channel);
	if (r < 0)
		log_error(NULL, "cannot start %s for profile %s: %s",
			  r == -ENAMETOOLONG || r == -EINVAL ? "lair-kernel" : path, profile, strerror(-r));
	return r;
}

int program_start_copier(int channel)
{
	static const char *const argv[] = {"laird", "--copier", NULL};
	const struct spawn_fds given = {.fds = {channel}, .n = 1};
	pid_t pid;
	int r = spawn_program(&pid, "/proc/self/exe", argv, (const char *const *)environ, &given);

	if (r < 0)
		log_error(NULL, "cannot start the copier of a saved state: %s", strerror(-r));
	return r;
}

/* No session runs it: uv does, in a cage that writes to nothing of ours. */
int program_start_builder(int channel)
{
	static const char *const argv[] = {"lair-kernel", "--builder", NULL};
	const struct spawn_fds given = {.fds = {channel}, .n = 1};
	char path[PATH_SIZE];
	pid_t pid;
	int r = program_path(path, LANGUAGE_OWN, 0);

	if (r == 0)
		r = spawn_program(&pid, path, argv, (const char *const *)environ, &given);
	if (r < 0)
		log_error(NULL, "cannot start a builder of packages: %s", strerror(-r));
	return r;
}
