/* The way to a path is looked up name by name as the kernel does, so each directory and each link on it is seen.
 */
#include "walk.h"

#include <stdio.h>

#define LINKS_MAX 40

/* @real: the present directory, "" for the root; @at: what was looked up last; @rest: what is still to come. */
struct walk {
	char real[PATH_MAX], at[PATH_MAX], rest[PATH_MAX];
	unsigned links;
};

static void walk_begin(struct walk *walk, const char *path)
{
	*walk = (struct walk){0};
	snprintf(walk->rest, sizeof(walk->rest), "%s", path);
}

static int walk_follow(struct walk *walk, const char *target, size_t size)
{
	char rest[PATH_MAX];

	memcpy(rest, walk->rest, sizeof(rest));
	if (++walk->links > LINKS_MAX)
		return -ELOOP;
	if (size > 0 && *target == '/')
		walk->real[0] = '\0';
	if ((size_t)snprintf(walk->rest, sizeof(walk->rest), "%.*s/%s", (int)size, target, rest) >=
	    sizeof(walk->rest))
		return -ENAMETOOLONG;
	return 0;
}

/* Look up the next name: walk->at. A missing one is taken for a directory. Returns 1; 0 at the end, when
 * walk->real is the real path; or -errno. */
static int walk_next(struct walk *walk)
{
	char target[PATH_MAX], *name, *slash;
	size_t size;
	ssize_t n;

	for (;;) {
		name = walk->rest + strspn(walk->rest, "/");
		size = strcspn(name, "/");
		if (size == 0)
			return 0;
		if (size == 2 && memcmp(name, "..", 2) == 0 && (slash = strrchr(walk->real, '/')))
			*slash = '\0';
		else if (!(size == 1 && *name == '.') && !(size == 2 && memcmp(name, "..", 2) == 0))
			break;
		memmove(walk->rest, name + size, strlen(name + size) + 1);
	}
	if ((size_t)snprintf(walk->at, sizeof(walk->at), "%s/%.*s", walk->real, (int)size, name) >=
	    sizeof(walk->at))
		return -ENAMETOOLONG;
	memmove(walk->rest, name + size, strlen(name + size) + 1);
	n = readlink(walk->at, target, sizeof(target));
	if (n < 0)
		memcpy(walk->real, walk->at, sizeof(walk->real));
	else if (walk_follow(walk, target, (size_t)n) < 0)
		return -ELOOP;
	return 1;
}

int walk_to(char real[PATH_MAX], const char *path)
{
	struct walk walk;
	int r;

	walk_begin(&walk, path);
	while ((r = walk_next(&walk)) > 0)
		;
	snprintf(real, PATH_MAX, "%s", walk.real[0] ? walk.real : "/");
	return r;
}

bool walk_within(const char *inner, const char *outer, bool or_same)
{
	size_t size = strcmp(outer, "/") ? strlen(outer) : 0;

	if (strcmp(inner, outer) == 0)
		return or_same;
	return strncmp(inner, outer, size) == 0 && inner[size] == '/';
}

bool walk_through(char at[PATH_MAX], const char *path, const char *outer, bool or_same)
{
	struct walk walk;
	int r;

	walk_begin(&walk, path);
	while ((r = walk_next(&walk)) > 0 && !walk_within(walk.at, outer, false))
		;
	snprintf(at, PATH_MAX, "%s", r > 0 ? walk.at : path);
	if (r > 0 && !walk_to(walk.real, path) && walk_within(walk.real, outer, false))
		snprintf(at, PATH_MAX, "%s", walk.real);
	return r || (or_same && strcmp(walk.real[0] ? walk.real : "/", outer) == 0);
}
