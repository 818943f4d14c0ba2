/* Two files of /proc, put together: one has the name of our group in each hierarchy, the other says where
 * hierarchies are mounted, perhaps not from their root. */
#include "home.h"

const char *const controller_names[_CONTROLLER_N] = {
	[CONTROLLER_MEMORY] = "memory", [CONTROLLER_PIDS] = "pids", [CONTROLLER_CPU] = "cpu"};

struct mount {
	char *root, *point, *type, *options;
};

static bool list_has(const char *list, const char *word)
{
	size_t size = strlen(word);

	for (; *list; list += strcspn(list, ","), list += *list == ',')
		if (strcspn(list, ",") == size && memcmp(list, word, size) == 0)
			return true;
	return false;
}

/* Blanks in paths are written \040. */
static void unescape(char *path)
{
	char *to = path;

	for (; *path; path++, to++) {
		*to = *path;
		if (path[0] == '\\' && path[1] && path[2] && path[3]) {
			*to = (char)((path[1] - '0') << 6 | (path[2] - '0') << 3 | (path[3] - '0'));
			path += 3;
		}
	}
	*to = '\0';
}

/* "ID PARENT DEVICE ROOT POINT OPTIONS [TAG...] - TYPE SOURCE OPTIONS", taken apart in place. */
static bool mount_parse(struct mount *mount, char *line)
{
	char *field[6] = {NULL}, *word = NULL;

	line[strcspn(line, "\n")] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(field); i++)
		field[i] = strsep(&line, " ");
	while ((word = strsep(&line, " ")) && strcmp(word, "-") != 0)
		;
	*mount = (struct mount){.root = field[3], .point = field[4], .type = strsep(&line, " ")};
	(void)strsep(&line, " ");
	mount->options = strsep(&line, " ");
	if (!mount->options)
		return false;
	unescape(mount->root);
	unescape(mount->point);
	return true;
}

/* The part of @group below the @root of a mount; NULL if it lies elsewhere. */
static const char *below(const char *root, const char *group)
{
	size_t size = strcmp(root, "/") ? strlen(root) : 0;

	if (strncmp(group, root, size) != 0 || (group[size] && group[size] != '/'))
		return NULL;
	/* A group outside the view of a namespace begins with one of these for each level above it. */
	if (strncmp(group, "/..", 3) == 0)
		return NULL;
	return strcmp(group + size, "/") ? group + size : "";
}

/* Returns 0, -ENOENT if no mounted hierarchy shows the group, or -ENOMEM. @controller: NULL for version 2. */
static int path_find(char **pathp, const char *controller, const char *group, FILE *mountinfo)
{
	_cleanup_(freep) char *line = NULL;
	size_t allocated = 0;

	rewind(mountinfo);
	while (getline(&line, &allocated, mountinfo) > 0) {
		struct mount mount;
		const char *rest;

		if (!mount_parse(&mount, line) || strcmp(mount.type, controller ? "cgroup" : "cgroup2") != 0 ||
		    (controller && !list_has(mount.options, controller)))
			continue;
		rest = below(mount.root, group);
		if (rest)
			return asprintf(pathp, "%s%s", mount.point, rest) < 0 ? -ENOMEM : 0;
	}
	return -ENOENT;
}

/* One line of /proc/self/cgroup: "NUMBER:CONTROLLERS:GROUP", without controllers for version 2. */
static int line_take(struct cgroup_home *places, char *line, FILE *mountinfo)
{
	char *group = line, *number = strsep(&group, ":"), *controllers = strsep(&group, ":");

	if (!group)
		return 0;
	group[strcspn(group, "\n")] = '\0';
	for (int i = 0; i < _CONTROLLER_N; i++) {
		struct cgroup_home *place = &places[i];
		bool first = list_has(controllers, controller_names[i]);
		char *path;
		int r;

		if (!first && (place->version == 1 || *controllers || strcmp(number, "0") != 0))
			continue;
		r = path_find(&path, first ? controller_names[i] : NULL, group, mountinfo);
		if (r == -ENOMEM)
			return r;
		if (r)
			continue;
		free(place->path);
		*place = (struct cgroup_home){.version = first ? 1 : 2, .path = path};
	}
	return 0;
}

int cgroup_homes_read(struct cgroup_home places[static _CONTROLLER_N], FILE *cgroup, FILE *mountinfo)
{
	_cleanup_(freep) char *line = NULL;
	size_t allocated = 0;
	int r = 0;

	memset(places, 0, _CONTROLLER_N * sizeof(*places));
	while (!r && getline(&line, &allocated, cgroup) > 0)
		r = line_take(places, line, mountinfo);
	if (r)
		cgroup_homes_deinit(places);
	return r;
}

void cgroup_homes_deinit(struct cgroup_home places[static _CONTROLLER_N])
{
	for (int i = 0; i < _CONTROLLER_N; i++) {
		free(places[i].path);
		places[i] = (struct cgroup_home){0};
	}
}
