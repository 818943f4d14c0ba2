/* A profile is copied, changed as by more lines of its section, and checked like one from the file. Directories of
 * the profile itself stay those that they were when the settings were read. */
#include "asked.h"

#include "base/walk.h"
#include "keys.h"
#include "pins.h"

#include "proto/wire.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#define ASKED_MAX 64
#define OTHERS_LOOK (S_IROTH | S_IXOTH)
#define VALUE_SIZE 192 /* with its name it fits into a line of settings, which the next router reads */

/* One item. */
struct wanted {
	bool wish;
	const struct key *key;
	char value[VALUE_SIZE];
};

static int refuse(struct asked_refusal *refusal, const char *setting, const char *format, ...) _printf_(3, 4);

static int refuse(struct asked_refusal *refusal, const char *setting, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(refusal->text, sizeof(refusal->text), format, args);
	va_end(args);
	refusal->setting = setting;
	return -EINVAL;
}

static bool is_directory(const struct key *key)
{
	return key->type == VALUE_DIRECTORIES;
}

static int wanted_read(struct wanted *wanted, struct bytes item, struct asked_refusal *refusal)
{
	static const char *const names[] = {"read", "write", "memory", "cpu", "network"};
	size_t name;

	wanted->wish = item.size > 0 && *item.data == '?';
	if (wanted->wish)
		item = (struct bytes){.data = item.data + 1, .size = item.size - 1};
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		name = strlen(names[i]);
		if (item.size <= name || memcmp(item.data, names[i], name) != 0 || item.data[name] != '=')
			continue;
		wanted->key = key_find(&profile_keys, names[i]);
		if (item.size - name > VALUE_SIZE)
			return refuse(refusal, NULL, "%s: at most %d bytes", names[i], VALUE_SIZE - 1);
		snprintf(wanted->value, VALUE_SIZE, "%.*s", (int)(item.size - name - 1), item.data + name + 1);
		return 0;
	}
	return refuse(refusal, NULL, "settings: expected read, write, memory, cpu or network, =, and a value");
}

static struct string_list *list_of(struct profile *profile, const struct key *key)
{
	return (struct string_list *)((char *)profile + key->offset);
}

static bool list_has(const struct string_list *list, const char *item)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->items[i], item) == 0)
			return true;
	return false;
}

/* ---- directories ---- */

/* Whether everybody on this machine may read it, so that nobody sees by a session what was shut. */
static bool is_public(const char *path)
{
	_cleanup_(fd_closep) int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char name[NAME_MAX + 1];
	struct stat status;

	while (fd >= 0 && !fstat(fd, &status) && (status.st_mode & S_IXOTH)) {
		size_t size;
		int next;

		path += strspn(path, "/");
		size = strcspn(path, "/");
		if (size == 0)
			return status.st_mode & S_IROTH;
		if (size > NAME_MAX)
			return false;
		snprintf(name, sizeof(name), "%.*s", (int)size, path);
		next = openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		fd_close(fd);
		fd = next;
		path += size;
	}
	return false;
}

static bool within_dirs(const struct profile *base, const char *path)
{
	for (size_t i = 0; i < base->n_pinned; i++)
		if (base->pinned[i].kind == PINNED_DIRS && base->pinned[i].pin.path &&
		    walk_within(path, base->pinned[i].pin.path, true))
			return true;
	return false;
}

/* Its way has no links, so that it is the directory that was judged. */
static int directory_judge(const struct profile *base, const struct asked *asked, const struct wanted *wanted,
			   struct asked_refusal *refusal)
{
	const char *path = wanted->value;
	struct stat status;
	char real[PATH_MAX];

	/* A quote would end the item, and a control character the line. */
	if (*path != '/' || strpbrk(path, "\"\\") || !path[1])
		return refuse(refusal, NULL,
			      "%.150s cannot be shown: a directory has an absolute path, is not / and has "
			      "no quotes in its name",
			      path);
	for (const char *at = path; *at; at++)
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			return refuse(refusal, NULL, "a directory with a control character in its name");
	if (!asked->by_own_user && !within_dirs(base, path))
		return refuse(refusal, "dirs", "%.150s: this profile shows only directories in those of dirs",
			      path);
	if (walk_to(real, path) || strcmp(real, path) != 0)
		return refuse(refusal, NULL, "%.150s leads through a link, or . or ..; name its real path", path);
	snprintf(real, sizeof(real), "%s/.", path);
	if (asked->by_own_user && access(real, R_OK | X_OK) < 0)
		return refuse(refusal, NULL, "%.150s: %s", path, strerror(errno));
	if (!asked->by_own_user && !is_public(path))
		return refuse(refusal, "dirs", "%.150s: not everybody may read it", path);
	/* As root each session has a host user of its own, who needs no way to it, but must get in. */
	if (geteuid() == 0 && (stat(path, &status) < 0 || (status.st_mode & OTHERS_LOOK) != OTHERS_LOOK))
		return refuse(refusal, NULL, "%.150s: the host user of a session may not read it", path);
	return 0;
}

static int directory_add(struct profile *profile, const struct wanted *wanted, struct asked_refusal *refusal)
{
	char quoted[VALUE_SIZE + 2], reason[VALUE_REASON_SIZE];
	int r = 0;

	snprintf(quoted, sizeof(quoted), "\"%s\"", wanted->value);
	if (!list_has(list_of(profile, wanted->key), wanted->value))
		r = value_parse(profile, wanted->key, quoted, reason);
	if (!r)
		r = value_look(profile, wanted->key, reason);
	if (r == -EINVAL)
		return refuse(refusal, NULL, "%s: expected %s", wanted->key->name, reason);
	if (!r && !profile->directory)
		r = (profile->directory = strdup(wanted->value)) ? 0 : -ENOMEM;
	/* The workspace would cover it, or could not be made in it. */
	if (!r && profile->home &&
	    (walk_within(wanted->value, profile->home, true) || walk_within(profile->home, wanted->value, true)))
		freep(&profile->home);
	return r;
}

/* ---- limits ---- */

static bool network_within(const char *wanted, const char *allowed)
{
	return strcmp(wanted, "off") == 0 || strcmp(allowed, "host") == 0 || strcmp(wanted, allowed) == 0;
}

static int limit_judge(const struct profile *base, const struct profile *profile, const struct key *key,
		       struct asked_refusal *refusal)
{
	const uint64_t *most = (const void *)((const char *)base + key->offset);
	const uint64_t *wanted = (const void *)((const char *)profile + key->offset);
	bool within = key->type == VALUE_NETWORK ? network_within(profile->network, base->network)
						 : !*most || (*wanted && *wanted <= *most);
	_cleanup_(freep) char *text = NULL;

	if (within)
		return 0;
	(void)value_text(&text, base, key);
	return refuse(refusal, key->name, "%s: %s = %s is the limit", key->name, key->name, text ? text : "?");
}

static int limit_set(struct profile *profile, const struct profile *base, const struct asked *asked,
		     const struct wanted *wanted, struct asked_refusal *refusal)
{
	char reason[VALUE_REASON_SIZE];
	int r;

	value_free(profile, wanted->key);
	r = value_parse(profile, wanted->key, wanted->value, reason);
	if (r == -EINVAL)
		return refuse(refusal, NULL, "%s=%.80s: expected %s", wanted->key->name, wanted->value, reason);
	return r || asked->by_own_user ? r : limit_judge(base, profile, wanted->key, refusal);
}

/* ---- all of it ---- */

static int apply(struct profile *profile, const struct profile *base, const struct asked *asked,
		 const struct wanted *wanted, struct asked_refusal *refusal)
{
	int r;

	if (!is_directory(wanted->key))
		return limit_set(profile, base, asked, wanted, refusal);
	r = directory_judge(base, asked, wanted, refusal);
	return r ? r : directory_add(profile, wanted, refusal);
}

/* The directories of @base are no others than those that it has pinned. */
static int pins_compare(const struct profile *profile, const struct profile *base, struct asked_refusal *refusal)
{
	for (size_t i = 0; i < profile->n_pinned; i++)
		for (size_t j = 0; j < base->n_pinned; j++) {
			const struct pinned *now = &profile->pinned[i], *then = &base->pinned[j];

			if (now->kind == then->kind && strcmp(now->path, then->path) == 0 &&
			    (now->pin.device != then->pin.device || now->pin.inode != then->pin.inode))
				return refuse(
					refusal, pinned_name(now->kind),
					"a directory of the profile was replaced after the settings were read");
		}
	return 0;
}

/* What was judged by its name is pinned by it: a link that has come meanwhile would make another path of it. */
static int pins_take(struct profile *profile, const struct profile *base, struct asked_refusal *refusal)
{
	const struct pinned *culprit = NULL;
	int error = 0, r;

	profile_unpin(profile);
	r = profile_pin(profile, &culprit, &error);
	if (culprit)
		return refuse(refusal, NULL, "%s = %.150s: %s", pinned_name(culprit->kind), culprit->path,
			      error < 0 ? strerror(-error) : "it changes while it is looked at");
	for (size_t i = 0; !r && i < profile->n_pinned; i++) {
		const struct pinned *pinned = &profile->pinned[i];

		if ((pinned->kind == PINNED_READ && !list_has(&base->read, pinned->path) &&
		     strcmp(pinned->path, pinned->pin.path) != 0) ||
		    (pinned->kind == PINNED_WRITE && !list_has(&base->write, pinned->path) &&
		     strcmp(pinned->path, pinned->pin.path) != 0))
			return refuse(refusal, NULL, "%.150s leads through a link", pinned->path);
	}
	return r ? r : pins_compare(profile, base, refusal);
}

static int check(struct profile *profile, const struct profile *base, const struct asked *asked,
		 struct asked_refusal *refusal)
{
	int r = pins_take(profile, base, refusal);
	struct config_error error;

	if (r)
		return r;
	if (profile_paths_check(profile, refusal->text)) {
		refusal->setting = NULL;
		return -EINVAL;
	}
	if (!config_check_one(asked->config, asked->in_use, profile, &error))
		return 0;
	return refuse(refusal, asked->by_own_user ? NULL : "dirs", "%s",
		      asked->by_own_user ? error.text : "it holds what no session may see or change");
}

/* A wish that fails leaves @profile as it was: it is made anew without it. */
static int try(struct profile **profilep, const struct profile *base, const struct asked *asked,
	       const struct wanted *wanted, size_t n, struct asked_refusal *refusal)
{
	struct profile *profile = profile_copy(base);
	int r = profile ? 0 : -ENOMEM;

	for (size_t i = 0; !r && i < n; i++)
		if (is_directory(wanted[i].key))
			freep(&profile->directory);
	for (size_t i = 0; !r && i < n; i++)
		r = apply(profile, base, asked, &wanted[i], refusal);
	if (!r)
		r = check(profile, base, asked, refusal);
	if (r)
		profile_unref(profile);
	else
		*profilep = profile;
	return r;
}

static size_t without_wishes(struct wanted *wanted, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (!wanted[i].wish)
			wanted[kept++] = wanted[i];
	return kept;
}

int profile_ask(struct profile **profilep, struct profile *base, const struct asked *asked,
		struct asked_refusal *refusal)
{
	_cleanup_(freep) struct wanted *wanted = calloc(ASKED_MAX, sizeof(*wanted));
	size_t cursor = 0, n = 0, firm;
	struct bytes item;
	int r = wanted ? 0 : -ENOMEM;

	while (!r && n < ASKED_MAX && wire_next_string(asked->settings, &cursor, &item))
		r = wanted_read(&wanted[n++], item, refusal);
	if (!r && n < wire_count(asked->settings))
		r = refuse(refusal, NULL, "settings: at most %d texts", ASKED_MAX);
	if (r)
		return r;
	r = n ? try(profilep, base, asked, wanted, n, refusal) : 1;
	firm = without_wishes(wanted, n);
	if (r == -EINVAL && firm < n)
		r = firm ? try(profilep, base, asked, wanted, firm, refusal) : 1;
	if (r == 1) {
		*profilep = profile_ref(base);
		r = 0;
	}
	return r;
}

static bool value_is(const struct profile *profile, const struct wanted *wanted)
{
	_cleanup_(freep) char *has = NULL, *asked = NULL;
	char reason[VALUE_REASON_SIZE];
	struct profile other = {.name = NULL};
	int r = value_parse(&other, wanted->key, wanted->value, reason);

	if (!r)
		r = value_text(&has, profile, wanted->key);
	if (!r)
		r = value_text(&asked, &other, wanted->key);
	value_free(&other, wanted->key);
	return !r && strcmp(has, asked) == 0;
}

int profile_has(const struct profile *profile, struct bytes settings, struct asked_refusal *refusal)
{
	struct wanted wanted;
	struct bytes item;
	size_t cursor = 0;

	while (wire_next_string(settings, &cursor, &item)) {
		int r = wanted_read(&wanted, item, refusal);
		bool has;

		if (r)
			return r;
		has = is_directory(wanted.key)
			      ? list_has(list_of((struct profile *)profile, wanted.key), wanted.value)
			      : value_is(profile, &wanted);
		if (!has && !wanted.wish)
			return refuse(refusal, NULL, "%s=%.150s", wanted.key->name, wanted.value);
	}
	return 0;
}
