/* The policy of the profile, as far as it can be explained. It never tells whether a path outside exists: all
 * are refused alike. */
#include "policy.h"

#include <stdio.h>
#include <sys/stat.h>

struct policy policy;

static char workspace_path[PATH_MAX];

/* Makes @path absolute and takes "." and ".." out of it, without looking at the disk. Returns its length, 0 if it
 * does not fit. */
static size_t path_normalise(char out[PATH_MAX], struct bytes path)
{
	size_t size = 0, i = 0;

	if (path.size == 0 || path.data[0] != '/') {
		if (!getcwd(out, PATH_MAX))
			return 0;
		size = strcmp(out, "/") == 0 ? 0 : strlen(out);
	}
	while (i < path.size) {
		size_t start, length;

		while (i < path.size && path.data[i] == '/')
			i++;
		start = i;
		while (i < path.size && path.data[i] != '/')
			i++;
		length = i - start;
		if (length == 0 || (length == 1 && path.data[start] == '.'))
			continue;
		if (length == 2 && path.data[start] == '.' && path.data[start + 1] == '.') {
			while (size > 0 && out[--size] != '/')
				;
			continue;
		}
		if (size + length + 2 > PATH_MAX)
			return 0;
		out[size++] = '/';
		memcpy(out + size, path.data + start, length);
		size += length;
	}
	if (size == 0)
		out[size++] = '/';
	out[size] = '\0';
	return size;
}

static bool leads_to_places(const char *path)
{
	for (size_t i = 0; i < policy.places.n; i++)
		if (path_within(policy.places.items[i].path, path))
			return true;
	return false;
}

/* NULL if the policy grants it, or may grant it. */
static const char *path_reason(const char *path, size_t size, enum want want)
{
	const struct place *place = places_find(&policy.places, path, size);

	if (!place && want == WANT_ENTER && policy.tree && leads_to_places(path))
		return NULL;
	if (!place)
		return want == WANT_CHANGE ? "write-outside-workspace" : "read-outside";
	switch (place->kind) {
	case PLACE_HIDE:
		return want == WANT_CHANGE ? "write-outside-workspace" : "hidden";
	case PLACE_READ:
	case PLACE_TEXT:
		return want == WANT_CHANGE ? "write-outside-workspace" : NULL;
	case PLACE_LINK: /* the kernel finds out where it leads */
	case PLACE_WRITE:
	case PLACE_DEVICES:
	case PLACE_PROC:
	case PLACE_SCRATCH:
	case PLACE_SHM:
	case PLACE_TERMINALS:
	case _PLACE_KIND_N:
		break;
	}
	return NULL;
}

/* Symbolic links may lead elsewhere, so the path is resolved. Its last component need not exist. */
static const char *path_reason_resolved(char path[PATH_MAX], size_t size, enum want want)
{
	char real[PATH_MAX], *slash;

	if (!realpath(path, real)) {
		slash = strrchr(path, '/');
		if (!slash || slash == path)
			return path_reason(path, size, want);
		*slash = '\0';
		if (!realpath(path, real) || strlen(real) + strlen(slash + 1) + 2 > sizeof(real)) {
			*slash = '/';
			return path_reason(path, size, want);
		}
		*slash = '/';
		strcat(strcat(real, "/"), slash + 1);
	}
	return path_reason(real, strlen(real), want);
}

static bool place_outside(const struct place *place)
{
	switch (place->kind) {
	case PLACE_WRITE:
		return strcmp(place->path, workspace_path) != 0;
	case PLACE_SCRATCH: /* without a mount namespace these are the host's */
	case PLACE_SHM:
		return !policy.tree;
	case PLACE_READ:
	case PLACE_HIDE:
	case PLACE_LINK:
	case PLACE_TEXT:
	case PLACE_DEVICES:
	case PLACE_PROC:
	case PLACE_TERMINALS:
	case _PLACE_KIND_N:
		break;
	}
	return false;
}

bool policy_path_outside(const char *path)
{
	const struct place *place = places_find(&policy.places, path, strlen(path));

	return place && place_outside(place);
}

bool policy_writes_outside(void)
{
	for (size_t i = 0; i < policy.places.n; i++)
		if (place_outside(&policy.places.items[i]))
			return true;
	return false;
}

static size_t path_prepare(char path[PATH_MAX], struct bytes text)
{
	return text.data && text.size && !memchr(text.data, 0, text.size) ? path_normalise(path, text) : 0;
}

const char *policy_path_reason(struct bytes path, enum want want)
{
	char normal[PATH_MAX];
	size_t size = path_prepare(normal, path);

	return size && path_reason(normal, size, want) ? path_reason_resolved(normal, size, want) : NULL;
}

static void path_cut(char *path)
{
	char *slash = strrchr(path, '/');

	slash[slash == path] = '\0';
}

/* Links on the way are followed, since they may lead outside. If a link leads to a missing file, nobody can say
 * whether that lies outside. */
static bool way_is_readable(const char *path)
{
	char way[PATH_MAX], real[PATH_MAX];
	const struct place *place;

	snprintf(way, sizeof(way), "%s", path);
	while (!realpath(way, real)) {
		if (readlink(way, real, sizeof(real)) >= 0)
			return false;
		path_cut(way);
	}
	place = places_find(&policy.places, real, strlen(real));
	return place && place->kind != PLACE_HIDE;
}

/* EEXIST, ENOENT or ENOTDIR, if the session may know it; else 0. */
static int path_known(const char *path)
{
	struct stat status;
	int number = lstat(path, &status) == 0 ? EEXIST : errno;
	bool known = number == EEXIST || number == ENOENT || number == ENOTDIR;

	return known && way_is_readable(path) ? number : 0;
}

int policy_path_error(struct bytes path, enum target target)
{
	char normal[PATH_MAX];
	int number = path_prepare(normal, path) ? path_known(normal) : 0;

	if (number == EEXIST)
		return target == TARGET_NEW ? EEXIST : 0;
	if (number != ENOENT || target == TARGET_THERE)
		return number;
	path_cut(normal);
	return path_known(normal) == ENOENT ? ENOENT : 0;
}

bool policy_path_granted(struct bytes path)
{
	char normal[PATH_MAX];
	size_t size = path_prepare(normal, path);
	const struct place *place = size ? places_find(&policy.places, normal, size) : NULL;

	return !place || place->kind == PLACE_READ || place->kind == PLACE_WRITE || place->kind == PLACE_SCRATCH ||
	       place->kind == PLACE_SHM;
}

static void ports_parse(struct bytes text)
{
	uint64_t port = 0;

	for (size_t i = 4; i <= text.size; i++) {
		if (i < text.size && text.data[i] != ',') {
			port = port * 10 + (uint64_t)(text.data[i] - '0');
		} else if (policy.n_ports < ARRAY_SIZE(policy.ports)) {
			policy.ports[policy.n_ports++] = port;
			port = 0;
		}
	}
}

bool policy_port(uint64_t port)
{
	for (size_t i = 0; i < policy.n_ports; i++)
		if (policy.ports[i] == port)
			return true;
	return false;
}

int policy_differ(const struct configure_message *configure, char *const language_dirs[])
{
	char culprit[PATH_MAX];
	int r;

	places_deinit(&policy.places);
	r = places_init(&policy.places, configure, language_dirs, culprit, sizeof(culprit));
	policy.memory = configure->memory;
	return r > 0 ? -ESTALE : r;
}

int policy_configure(const struct configure_message *configure, char *const language_dirs[])
{
	int r = policy_differ(configure, language_dirs);

	policy.subprocess = configure->subprocess;
	policy.no_terminals = configure->terminals ? NULL : "terminals-not-granted";
	policy.network = configure->network.size && !bytes_is(configure->network, "off");
	policy.network_tcp = policy.network && !bytes_is(configure->network, "host");
	if (policy.network_tcp)
		ports_parse(configure->network);
	return r;
}

int policy_arm(const char *workspace, bool tree, bool terminals)
{
	int r = places_add(&policy.places, workspace, PLACE_WRITE, NULL);

	if (!r)
		policy.armed = true;
	policy.tree = tree;
	if (!terminals && !policy.no_terminals)
		policy.no_terminals = "terminals-not-possible";
	snprintf(workspace_path, sizeof(workspace_path), "%s", workspace);
	return r;
}
