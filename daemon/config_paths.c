/* Paths are compared as the kernel will see them, with all links resolved: two names of one directory are one. */
#include "config_paths.h"

#include "directory.h"

#include <limits.h>
#include <sys/stat.h>

/* What is not there yet: as the nearest directory above has it that is. */
static bool resolve(char real[PATH_MAX], const char *path)
{
	char above[PATH_MAX];
	const char *rest;
	size_t size;

	if ((size_t)snprintf(above, sizeof(above), "%s", path) >= sizeof(above))
		return false;
	while (!realpath(above, real)) {
		char *slash = strrchr(above, '/');

		if (errno != ENOENT || !slash || slash == above)
			return false;
		*slash = '\0';
	}
	rest = path + strlen(above);
	size = *rest && strcmp(real, "/") == 0 ? 0 : strlen(real);
	return (size_t)snprintf(real + size, PATH_MAX - size, "%s", rest) < PATH_MAX - size;
}

static bool within(const char *inner, const char *outer, bool or_same)
{
	char real_inner[PATH_MAX], real_outer[PATH_MAX];
	size_t size;

	if (!resolve(real_inner, inner) || !resolve(real_outer, outer))
		return false;
	if (strcmp(real_inner, real_outer) == 0)
		return or_same;
	size = strcmp(real_outer, "/") ? strlen(real_outer) : 0;
	return strncmp(real_inner, real_outer, size) == 0 && real_inner[size] == '/';
}

static bool same(const char *a, const char *b)
{
	char real_a[PATH_MAX], real_b[PATH_MAX];

	return resolve(real_a, a) && resolve(real_b, b) && strcmp(real_a, real_b) == 0;
}

static const struct rule {
	const char *inner, *outer;
	size_t inner_offset, outer_offset;
	bool or_same;
	const char *so;
} rules[] = {
	/* Landlock only ever adds rights. */
	{"read", "write", offsetof(struct profile, read), offsetof(struct profile, write), false,
	 "so it could be written to"},
	{"read", "hide", offsetof(struct profile, read), offsetof(struct profile, hide), true,
	 "so it could not be seen"},
	{"write", "hide", offsetof(struct profile, write), offsetof(struct profile, hide), true,
	 "so it could not be seen"},
};

static const struct string_list *list_of(const struct profile *profile, size_t offset)
{
	return (const struct string_list *)((const char *)profile + offset);
}

static bool rule_broken(const struct rule *rule, const struct profile *profile, char reason[PATHS_REASON_SIZE])
{
	const struct string_list *inner = list_of(profile, rule->inner_offset),
				 *outer = list_of(profile, rule->outer_offset);

	for (size_t i = 0; i < inner->n; i++) {
		for (size_t j = 0; j < outer->n; j++) {
			if (!within(inner->items[i], outer->items[j], rule->or_same))
				continue;
			(void)snprintf(reason, PATHS_REASON_SIZE, "%s = %.150s lies in %s = %.150s, %s",
				       rule->inner, inner->items[i], rule->outer, outer->items[j], rule->so);
			return true;
		}
	}
	return false;
}

/* What every session has of its own: what is granted in there appears in it, it itself cannot be. */
static const char *is_sessions_own(const struct profile *profile, char reason[PATHS_REASON_SIZE])
{
	static const char *const own[] = {"/tmp", "/run", "/proc", "/sys", "/dev", "/dev/shm"};
	static const struct {
		const char *name;
		size_t offset;
	} lists[] = {{"read", offsetof(struct profile, read)}, {"write", offsetof(struct profile, write)}};

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		const struct string_list *list = list_of(profile, lists[i].offset);

		for (size_t j = 0; j < list->n * ARRAY_SIZE(own); j++) {
			const char *item = list->items[j / ARRAY_SIZE(own)], *mine = own[j % ARRAY_SIZE(own)];

			if (!same(item, mine))
				continue;
			(void)snprintf(reason, PATHS_REASON_SIZE,
				       "%s = %.150s: a session has a %s of its own; name a directory in it",
				       lists[i].name, item, mine);
			return lists[i].name;
		}
	}
	return NULL;
}

/* A cover hides a name, not what has it. */
static bool hidden_has_other_names(const struct profile *profile, char reason[PATHS_REASON_SIZE])
{
	struct stat status;

	for (size_t i = 0; i < profile->hide.n; i++) {
		if (stat(profile->hide.items[i], &status) < 0 || S_ISDIR(status.st_mode) || status.st_nlink < 2)
			continue;
		(void)snprintf(
			reason, PATHS_REASON_SIZE,
			"hide = %.150s is a file of %lu names (hard links), and would be seen under the others; "
			"remove them or hide a directory",
			profile->hide.items[i], (unsigned long)status.st_nlink);
		return true;
	}
	return false;
}

const char *profile_paths_check(const struct profile *profile, char reason[PATHS_REASON_SIZE])
{
	const char *name = is_sessions_own(profile, reason);

	for (size_t i = 0; !name && i < ARRAY_SIZE(rules); i++)
		if (rule_broken(&rules[i], profile, reason))
			name = rules[i].inner;
	if (name)
		return name;
	return hidden_has_other_names(profile, reason) ? "hide" : NULL;
}

/* Whether @path, which need not exist, lies in what its sessions may change. */
static bool may_change(const struct profile *profile, const char *path, const char **writep)
{
	for (size_t i = 0; i < profile->hide.n; i++)
		if (within(path, profile->hide.items[i], true))
			return false;
	for (size_t i = 0; i < profile->write.n; i++) {
		if (!within(path, profile->write.items[i], true))
			continue;
		*writep = profile->write.items[i];
		return true;
	}
	return false;
}

int config_keep_out(const struct config *config, const char *name, const char *path, struct config_error *error)
{
	const char *write;

	for (size_t i = 0; path && *path == '/' && i < config->n_profiles; i++) {
		const struct profile *profile = config->profiles[i];

		if (!may_change(profile, path, &write))
			continue;
		(void)snprintf(error->text, sizeof(error->text),
			       "%.150s:%u: profile %s: write = %.100s holds %.150s, which no session may change; "
			       "write to less, or hide it",
			       name, profile->write_line, profile->name, write, path);
		return -EINVAL;
	}
	return 0;
}

int config_check_places(const struct config *config, const char *socket, struct config_error *error)
{
	const char *name = config->path ? config->path : "the embedded sessions.conf";
	char saves[PATH_MAX];
	int r = config_keep_out(config, name, socket, error);

	/* Where nobody can say where they are, there are none. */
	if (r || directory_of_state(saves, "saves", config->saves, socket))
		return r;
	return config_keep_out(config, name, saves, error);
}
