/* The usual places. Nothing is trusted because of its name: a directory counts only if its open descriptor says
 * that it is ours and that nobody else may write to it. */
#include "proto/paths.h"

#include <dirent.h>
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

#define KERNEL "lair-kernel"

/* A version of Python begins with a digit. */
static bool is_language(const char *name)
{
	size_t size = strspn(name, "abcdefghijklmnopqrstuvwxyz");

	return size > 0 && size <= LANGUAGE_MAX && !name[size];
}

int path_language(char path[static PATH_SIZE], const char *language)
{
	char name[sizeof(KERNEL) + 1 + LANGUAGE_MAX];

	if (!is_language(language))
		return -EINVAL;
	if (strcmp(language, LANGUAGE_OWN) == 0)
		return path_sibling(path, KERNEL);
	snprintf(name, sizeof(name), KERNEL "-%s", language);
	return path_sibling(path, name);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_kernel(const struct dirent *entry)
{
	return strncmp(entry->d_name, KERNEL "-", strlen(KERNEL "-")) == 0 &&
	       is_language(entry->d_name + strlen(KERNEL "-"));
}

void path_languages(char *text, size_t size)
{
	char beside[PATH_SIZE], directory[PATH_SIZE];
	struct dirent **found = NULL;
	int n = -1;

	snprintf(text, size, LANGUAGE_OWN);
	if (path_sibling(beside, KERNEL) == 0 && path_directory(directory, beside) == 0)
		n = scandir(directory, &found, is_kernel, by_name);
	for (int i = 0; i < n; i++) {
		size_t used = strlen(text);

		snprintf(text + used, size - used, ", %s", found[i]->d_name + strlen(KERNEL "-"));
		free(found[i]);
	}
	free(found);
}

uint64_t path_hash(const char *path)
{
	uint64_t hash = 14695981039346656037ULL;

	for (; *path; path++)
		hash = (hash ^ (uint8_t)*path) * 1099511628211ULL;
	return hash;
}
