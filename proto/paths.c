/* The usual places. Nothing is trusted because of its name: a directory counts only if its open descriptor says
 * that it is ours and that nobody else may write to it. */
#include "proto/paths.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

static int path_format(char path[static PATH_SIZE], size_t max, const char *format, ...) _printf_(3, 4);

static int path_format(char path[static PATH_SIZE], size_t max, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(path, PATH_SIZE, format, args);
	va_end(args);
	if (n < 0)
		return -EINVAL;
	return (size_t)n > max ? -ENAMETOOLONG : 0;
}

static const char *environment(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

int path_default_socket(char path[static PATH_SIZE])
{
	const char *named = environment("LAIR_SOCKET"), *runtime = environment("XDG_RUNTIME_DIR");
	uid_t uid = geteuid();

	if (named)
		return path_format(path, SOCKET_PATH_MAX, "%s", named);
	if (uid == 0)
		return path_format(path, SOCKET_PATH_MAX, "/run/lair/socket");
	if (runtime)
		return path_format(path, SOCKET_PATH_MAX, "%s/lair/socket", runtime);
	return path_format(path, SOCKET_PATH_MAX, "/tmp/lair-%u/socket", (unsigned)uid);
}

int path_directory(char directory[static PATH_SIZE], const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return path_format(directory, PATH_SIZE - 1, ".");
	return path_format(directory, PATH_SIZE - 1, "%.*s", slash == path ? 1 : (int)(slash - path), path);
}

int path_make_socket_dir(const char *socket)
{
	_cleanup_(fd_closep) int fd = -1;
	char directory[PATH_SIZE];
	struct stat st;
	int r;

	r = path_directory(directory, socket);
	if (r < 0)
		return r;
	if (mkdir(directory, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ELOOP || errno == ENOTDIR ? -EPERM : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	return st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)) ? -EPERM : 0;
}

int path_sibling(char path[static PATH_SIZE], const char *name)
{
	char self[PATH_SIZE], directory[PATH_SIZE];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int r;

	if (n < 0)
		return -errno;
	self[n] = '\0';
	r = path_directory(directory, self);
	if (r < 0)
		return r;
	return path_format(path, PATH_SIZE - 1, "%s/%s", strcmp(directory, "/") ? directory : "", name);
}

uint64_t path_hash(const char *path)
{
	uint64_t hash = 14695981039346656037ULL;

	for (; *path; path++)
		hash = (hash ^ (uint8_t)*path) * 1099511628211ULL;
	return hash;
}
