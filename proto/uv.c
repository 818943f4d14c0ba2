/* As a shell would find it, or where its own installers put it. */
#include "proto/uv.h"

#include <stdio.h>
#include <sys/stat.h>

static bool is_program(const char *path)
{
	struct stat meta;

	return path[0] == '/' && stat(path, &meta) == 0 && S_ISREG(meta.st_mode) && access(path, X_OK) == 0;
}

static bool take(char path[static PATH_SIZE], const char *directory, size_t size, const char *rest)
{
	char at[PATH_SIZE];

	if (snprintf(at, sizeof(at), "%.*s%s", (int)size, directory, rest) >= (int)sizeof(at) || !is_program(at))
		return false;
	snprintf(path, PATH_SIZE, "%s", at);
	return true;
}

int uv_find(char path[static PATH_SIZE], struct bytes wanted)
{
	const char *places = getenv("PATH"), *home = getenv("HOME");

	if (wanted.size > 0)
		return take(path, wanted.data, wanted.size, "") ? 0 : -ENOENT;
	for (; places && *places; places += strcspn(places, ":"), places += *places == ':')
		if (take(path, places, strcspn(places, ":"), "/uv"))
			return 0;
	if (home &&
	    (take(path, home, strlen(home), "/.local/bin/uv") || take(path, home, strlen(home), "/.cargo/bin/uv")))
		return 0;
	return take(path, "/usr/local/bin/uv", strlen("/usr/local/bin/uv"), "") ||
			       take(path, "/usr/bin/uv", strlen("/usr/bin/uv"), "")
		       ? 0
		       : -ENOENT;
}
