/* The settings in force: where they are read from, how they are shown, and how long a profile lives. */
#include "config.h"

#include "keys.h"
#include "pins.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define FILE_SIZE_MAX (1 << 20)

int config_usual(char path[static PATH_SIZE])
{
	const char *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	struct stat status;
	int n = 0;

	*path = '\0';
	if (geteuid() == 0)
		n = snprintf(path, PATH_SIZE, "/etc/lair/sessions.conf");
	else if (base && *base == '/')
		n = snprintf(path, PATH_SIZE, "%s/lair/sessions.conf", base);
	else if (home && *home == '/')
		n = snprintf(path, PATH_SIZE, "%s/.config/lair/sessions.conf", home);
	if (n >= PATH_SIZE)
		return -ENAMETOOLONG;
	/* If it cannot be looked at, or is a link to nowhere, it counts as there: reading it will say what is
	 * wrong. */
	if (lstat(path, &status) < 0 && (errno == ENOENT || errno == ENOTDIR))
		*path = '\0';
	return 0;
}

static int text_read(char **textp, size_t *sizep, int fd)
{
	_cleanup_(freep) char *text = NULL;
	size_t size = 0;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	if (st.st_size > FILE_SIZE_MAX)
		return -EFBIG;
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return -ENOMEM;
	while (size < (size_t)st.st_size) {
		ssize_t n = pread(fd, text + size, (size_t)st.st_size - size, (off_t)size);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			break;
		size += n > 0 ? (size_t)n : 0;
	}
	*textp = steal_ptr(&text);
	*sizep = size;
	return 0;
}

static int file_read(char **textp, size_t *sizep, const char *path)
{
	_cleanup_(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	return fd < 0 ? -errno : text_read(textp, sizep, fd);
}

int config_load(struct config **configp, const char *path, struct config_error *error)
{
	_cleanup_(freep) char *text = NULL;
	struct config *config;
	size_t size = 0;
	int r;

	if (!path)
		return config_parse(configp, config_embedded(), "the embedded sessions.conf", error);
	r = file_read(&text, &size, path);
	if (r < 0) {
		(void)snprintf(error->text, sizeof(error->text), "%.250s: %s", path,
			       r == -EINVAL ? "not a regular file" : strerror(-r));
		return r;
	}
	r = config_parse(&config, (struct bytes){.data = text, .size = size}, path, error);
	if (r != 0)
		return r;
	config->path = strdup(path);
	if (!config->path) {
		config_free(config);
		(void)snprintf(error->text, sizeof(error->text), "%.250s: %s", path, strerror(ENOMEM));
		return -ENOMEM;
	}
	*configp = config;
	return 0;
}

int config_leave(int *fdp, const struct config *config)
{
	_cleanup_(fd_closep) int fd = memfd_create("lair-settings", MFD_CLOEXEC);
	const char *path = config->path ? config->path : "";

	if (fd < 0)
		return -errno;
	if (dprintf(fd, "%s%c%s", path, '\0', config->text) < 0)
		return -ENOSPC;
	*fdp = steal_fd(&fd);
	return 0;
}

int config_recall(struct config **configp, int fd, struct config_error *error)
{
	_cleanup_(freep) char *text = NULL;
	size_t size = 0, skip;
	const char *end;
	int r = text_read(&text, &size, fd);

	/* A laird of before has left no path. */
	end = text ? memchr(text, '\0', size) : NULL;
	skip = end ? (size_t)(end - text) + 1 : 0;
	if (text)
		r = config_parse_in_force(configp, (struct bytes){.data = text + skip, .size = size - skip},
					  "the settings in force", error);
	else
		(void)snprintf(error->text, sizeof(error->text), "the settings in force: %s", strerror(-r));
	if (r == 0 && end && end > text)
		(*configp)->path = strdup(text);
	return r;
}

static void section_free(void *section, const struct key_table *table)
{
	for (size_t i = 0; i < table->n; i++)
		value_free(section, &table->keys[i]);
}

const char *config_name(const struct config *config)
{
	return config->path ? config->path : "the embedded sessions.conf";
}

struct config *config_free(struct config *config)
{
	if (!config)
		return NULL;
	for (size_t i = 0; i < config->n_profiles; i++)
		profile_unref(config->profiles[i]);
	free(config->profiles);
	for (size_t i = 0; i < config->n_own; i++)
		pin_drop(&config->own[i]);
	free(config->own);
	pin_drop(&config->sets);
	section_free(config, &daemon_keys);
	free(config->path);
	free(config->text);
	free(config);
	return NULL;
}

static void section_print(const void *section, const struct key_table *table, FILE *out)
{
	for (size_t i = 0; i < table->n; i++) {
		fprintf(out, "# %s\n", table->keys[i].doc);
		value_print(section, &table->keys[i], out);
		fputc('\n', out);
	}
}

void profile_print(const struct profile *profile, FILE *out)
{
	fprintf(out, "[profile %s]\n", profile->name);
	section_print(profile, &profile_keys, out);
}

void config_print(const struct config *config, FILE *out)
{
	fputs("[daemon]\n", out);
	section_print(config, &daemon_keys, out);
	for (size_t i = 0; i < config->n_profiles; i++) {
		fputc('\n', out);
		profile_print(config->profiles[i], out);
	}
}

struct profile *config_profile(const struct config *config, struct bytes name)
{
	if (name.size == 0)
		name = BYTES("default");
	for (size_t i = 0; i < config->n_profiles; i++) {
		if (bytes_is(name, config->profiles[i]->name))
			return config->profiles[i];
	}
	return NULL;
}

struct profile *profile_ref(struct profile *profile)
{
	profile->refs++;
	return profile;
}

static void profile_clear(struct profile *profile, const char *name)
{
	for (size_t i = 0; i < profile_keys.n; i++)
		if (!strcmp(profile_keys.keys[i].name, name))
			value_free(profile, &profile_keys.keys[i]);
}

struct profile *profile_copy(const struct profile *profile)
{
	_cleanup_(freep) char *text = NULL;
	struct profile *copy = NULL;
	struct config_error error;
	struct config *config;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	profile_print(profile, out);
	if (fclose(out) != 0 || config_parse_in_force(&config, bytes_of(text), "a profile in force", &error))
		return NULL;
	for (size_t i = 0; i < config->n_profiles; i++)
		if (!strcmp(config->profiles[i]->name, profile->name))
			copy = profile_ref(config->profiles[i]);
	config_free(config);
	return copy;
}

struct profile *profile_bare(const struct profile *profile)
{
	struct profile *bare = profile_copy(profile);

	if (bare) {
		profile_clear(bare, "preload");
		profile_clear(bare, "spares");
	}
	return bare;
}

struct profile *profile_unref(struct profile *profile)
{
	if (profile && --profile->refs == 0) {
		profile_unpin(profile);
		section_free(profile, &profile_keys);
		free(profile->name);
		free(profile);
	}
	return NULL;
}
