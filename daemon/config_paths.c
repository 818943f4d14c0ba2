/* Paths are compared as the kernel will see them, with all links resolved: two names of one directory are one. */
#include "config_paths.h"

#include <limits.h>
#include <sys/stat.h>

/* What is not there yet: as the directory has it in which it would be. */
static bool resolve(char real[PATH_MAX], const char *path)
{
	const char *slash = strrchr(path, '/');
	char above[PATH_MAX];
	size_t size;

	if (realpath(path, real))
		return true;
	if (errno != ENOENT || !slash || slash[1] == '\0' ||
	    snprintf(above, sizeof(above), "%.*s/", (int)(slash - path), path) >= (int)sizeof(above) ||
	    !realpath(above, real))
		return false;
	size = strlen(real);
	return (size_t)snprintf(real + size, PATH_MAX - size, "%s%s", size > 1 ? "/" : "", slash + 1) <
	       PATH_MAX - size;
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
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		if (rule_broken(&rules[i], profile, reason))
			return rules[i].inner;
	return hidden_has_other_names(profile, reason) ? "hide" : NULL;
}

bool profile_may_change(const struct profile *profile, const char *path, const char **writep)
{
	for (size_t i = 0; path && i < profile->hide.n; i++)
		if (within(path, profile->hide.items[i], true))
			return false;
	for (size_t i = 0; path && i < profile->write.n; i++) {
		if (!within(path, profile->write.items[i], true))
			continue;
		*writep = profile->write.items[i];
		return true;
	}
	return false;
}
