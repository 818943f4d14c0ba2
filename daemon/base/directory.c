/* The places are as the XDG Base Directory Specification has them, but for root. */
#include "directory.h"

#include "proto/paths.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

int directory_make_parents(const char *path)
{
	char partial[PATH_MAX];
	char *slash;

	if ((size_t)snprintf(partial, sizeof(partial), "%s", path) >= sizeof(partial))
		return -ENAMETOOLONG;
	for (slash = strchr(partial + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(partial, 0755) < 0 && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	return 0;
}

int directory_make(const char *path)
{
	int r = directory_make_parents(path);

	return r || mkdir(path, 0700) == 0 || errno == EEXIST ? r : -errno;
}

int directory_of_state(char path[PATH_MAX], const char *kind, const char *configured, const char *socket)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	uint64_t name = path_hash(socket);
	int n;

	if (configured)
		n = snprintf(path, PATH_MAX, "%s/%016" PRIx64, configured, name);
	else if (geteuid() == 0)
		n = snprintf(path, PATH_MAX, "/var/lib/lair/%s/%016" PRIx64, kind, name);
	else if (state && state[0] == '/')
		n = snprintf(path, PATH_MAX, "%s/lair/%s/%016" PRIx64, state, kind, name);
	else if (home && home[0] == '/')
		n = snprintf(path, PATH_MAX, "%s/.local/state/lair/%s/%016" PRIx64, home, kind, name);
	else
		return -ENOENT;
	return n < PATH_MAX - 64 ? 0 : -ENAMETOOLONG;
}

DIR *directory_read(int directory)
{
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir)
		fd_close(fd);
	return dir;
}

struct dirent *directory_next(DIR *dir)
{
	struct dirent *entry;

	do {
		errno = 0;
		entry = readdir(dir);
	} while (entry && (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")));
	return entry;
}
