/* A language asks before it opens a file or loads a library. Nothing hostile runs while a template starts, so that
 * is a guard there. If some code swallows the error, this is found out afterwards. */
#include "changeable.h"

#include "proto/wire.h"

#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>

/* In memory that no fork has: sessions are made while it is in use. */
static struct bytes watched;
static char found[512];

int changeable_begin(struct bytes directories)
{
	void *copy;

	if (!directories.data)
		return 0;
	copy = mmap(NULL, directories.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy == MAP_FAILED || madvise(copy, directories.size, MADV_DONTFORK) < 0)
		return -errno;
	memcpy(copy, directories.data, directories.size);
	watched = (struct bytes){copy, directories.size};
	return 0;
}

void changeable_end(void)
{
	watched = (struct bytes){0};
}

const char *changeable_found(void)
{
	return found[0] ? found : NULL;
}

/* Compares without a copy of @outer: a copy would stay on the stack, where sessions could read the names of others'
 * directories. */
static bool lies_in(const char *real, struct bytes outer)
{
	return strncmp(real, outer.data, outer.size) == 0 && (real[outer.size] == '/' || real[outer.size] == '\0');
}

bool changeable_is(const char *path)
{
	char real[PATH_MAX];
	struct bytes item;
	size_t cursor = 0;

	if (!watched.data || !realpath(path, real))
		return false; /* there is no file that could be opened */
	while (wire_next_string(watched, &cursor, &item)) {
		if (!lies_in(real, item))
			continue;
		snprintf(found, sizeof(found),
			 "%.150s would be loaded from %.*s, which sessions may write to: have it look elsewhere",
			 path, (int)MIN(item.size, 150), item.data);
		return true;
	}
	return false;
}
