/* The list of places. Invariant: it is sorted so that a place comes before everything in it, and no path is in
 * it twice. */
#include "places.h"

#include "proto/pin.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

/* Files and directories that Python, its packages and the system's programs need, if the host has them. Nothing in
 * them is secret: on every distribution everybody may read them. In a file system of its own, a session gets some
 * files of /etc in its own version. */
static const char *const system_places[] = {
	"/usr",
	"/bin",
	"/sbin",
	"/lib",
	"/lib32",
	"/lib64",
	"/libx32",
	"/etc/alternatives",
	"/etc/debian_version",
	"/etc/fonts",
	"/etc/group",
	"/etc/hosts",
	"/etc/ld.so.cache",
	"/etc/ld.so.conf",
	"/etc/ld.so.conf.d",
	"/etc/localtime",
	"/etc/matplotlibrc",
	"/etc/mime.types",
	"/etc/nsswitch.conf",
	"/etc/os-release",
	"/etc/passwd",
	"/etc/ssl/certs",
	"/etc/ssl/openssl.cnf",
	"/etc/pki/ca-trust",
	"/etc/pki/tls/certs",
	"/etc/pki/tls/openssl.cnf",
	"/etc/crypto-policies",
	"/etc/timezone",
};

/* Looking up names needs these files, so only sessions with a network get them. */
static const char *const network_places[] = {"/etc/gai.conf", "/etc/host.conf", "/etc/protocols",
					     "/etc/resolv.conf", "/etc/services"};

static const struct {
	const char *path;
	enum place_kind kind;
} own_places[] = {
	{"/dev", PLACE_DEVICES}, {"/dev/shm", PLACE_SHM}, {"/proc", PLACE_PROC},
	{"/tmp", PLACE_SCRATCH}, {"/sys", PLACE_HIDE},	  {"/run", PLACE_HIDE},
};

bool path_within(const char *inner, const char *outer)
{
	size_t size = strlen(outer);

	if (size == 1)
		return true;
	return strncmp(inner, outer, size) == 0 && (inner[size] == '/' || inner[size] == '\0');
}

/* Like strcmp, but '/' comes before every other character, so that a directory's contents follow it at once. */
static int path_compare(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	if (*a == *b)
		return 0;
	if (!*a || !*b)
		return *a ? 1 : -1;
	if (*a == '/' || *b == '/')
		return *a == '/' ? -1 : 1;
	return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
}

/* If one path is added with two kinds, the kind of the greater weight counts. */
static int weight(enum place_kind kind)
{
	static const int weights[_PLACE_KIND_N] = {
		[PLACE_READ] = 1,  [PLACE_LINK] = 2, [PLACE_TEXT] = 3, [PLACE_SCRATCH] = 4, [PLACE_SHM] = 4,
		[PLACE_WRITE] = 5, [PLACE_HIDE] = 6, [PLACE_PROC] = 7, [PLACE_DEVICES] = 7, [PLACE_TERMINALS] = 7,
	};

	return weights[kind];
}

int places_add(struct places *places, const char *path, enum place_kind kind, const char *text)
{
	struct place *items, place = {.kind = kind};
	size_t at = 0;
	int order = 1;

	while (at < places->n && (order = path_compare(places->items[at].path, path)) < 0)
		at++;
	if (at < places->n && order == 0) {
		if (weight(kind) <= weight(places->items[at].kind))
			return 0;
		place = places->items[at];
		place.kind = kind;
		place.text = text ? strdup(text) : NULL;
		if (text && !place.text)
			return -ENOMEM;
		free(places->items[at].text);
		places->items[at] = place;
		return 0;
	}
	items = realloc(places->items, (places->n + 1) * sizeof(*items));
	if (!items)
		return -ENOMEM;
	places->items = items;
	place.path = strdup(path);
	place.text = text ? strdup(text) : NULL;
	if (!place.path || (text && !place.text)) {
		free(place.path);
		free(place.text);
		return -ENOMEM;
	}
	memmove(items + at + 1, items + at, (places->n - at) * sizeof(*items));
	items[at] = place;
	places->n++;
	return 0;
}

const struct place *places_find(const struct places *places, const char *path, size_t size)
{
	for (size_t i = places->n; i-- > 0;) {
		const char *outer = places->items[i].path;
		size_t length = strlen(outer);

		if (length == 1 ||
		    (length <= size && memcmp(path, outer, length) == 0 && (length == size || path[length] == '/')))
			return &places->items[i];
	}
	return NULL;
}

void places_deinit(struct places *places)
{
	for (size_t i = 0; i < places->n; i++) {
		free(places->items[i].path);
		free(places->items[i].text);
	}
	free(places->items);
	*places = (struct places){0};
}

/* @path leads to @real. If @path is a symbolic link, the link is added. */
static int add_link(struct places *places, const char *path, const char *real)
{
	char text[PATH_MAX];
	struct stat meta;
	ssize_t size;

	if (strcmp(real, path) == 0 || lstat(path, &meta) < 0 || !S_ISLNK(meta.st_mode))
		return 0;
	size = readlink(path, text, sizeof(text) - 1);
	if (size < 0)
		return -errno;
	text[size] = '\0';
	/* The target of the link may lead through further links. Then the link that is added leads to @real
	 * directly. */
	return places_add(places, path, PLACE_LINK, text[0] == '/' ? real : text);
}

/* Adds @path and, if it is a link, what it leads to on the host now. */
static int add_existing(struct places *places, const char *path, enum place_kind kind)
{
	char real[PATH_MAX];
	int r;

	if (!realpath(path, real))
		return -errno;
	r = add_link(places, path, real);
	return r ? r : places_add(places, real, kind, NULL);
}

static int add_those_there(struct places *places, const char *const paths[], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int r = add_existing(places, paths[i], PLACE_READ);

		if (r && r != -ENOENT && r != -ENOTDIR && r != -EACCES)
			return r;
	}
	return 0;
}

/* ---- what the profile lists ---- */

int place_open(int *fdp, const struct place *place)
{
	int r;

	if (!place->pinned) {
		*fdp = open(place->path, O_PATH | O_CLOEXEC);
		return *fdp < 0 ? -errno : 0;
	}
	r = pin_open(fdp, place->path, place->device, place->inode);
	return r == PIN_E_CHANGED ? PLACE_E_CHANGED : r;
}

static struct place *find_exactly(struct places *places, const char *path)
{
	for (size_t i = 0; i < places->n; i++)
		if (strcmp(places->items[i].path, path) == 0)
			return &places->items[i];
	return NULL;
}

/* Adds @path, which has no links in it. It must still be the directory that it was when the settings were read. */
static int add_pinned(struct places *places, const char *path, enum place_kind kind,
		      const struct place_record *record)
{
	_cleanup_(fd_closep) int fd = -1;
	struct place *place;
	int r = places_add(places, path, kind, NULL);

	place = r ? NULL : find_exactly(places, path);
	if (!place)
		return r;
	place->pinned = true;
	place->device = record->device;
	place->inode = record->inode;
	return place_open(&fd, place);
}

/* Hides @path, a directory with laird's own files, if it lies in a place that is shown. If it is such a place
 * itself, that is an error: no place of the system's or Python's is given up for it. */
static int add_own(struct places *places, const char *path, const struct place_record *record)
{
	const struct place *outer = places_find(places, path, strlen(path));

	if (!outer || (outer->kind != PLACE_READ && outer->kind != PLACE_WRITE))
		return 0; /* it is not shown */
	if (strcmp(outer->path, path) == 0)
		return PLACE_E_OWN;
	return add_pinned(places, path, PLACE_HIDE, record);
}

static int add_record(struct places *places, const struct place_record *record)
{
	static const struct {
		const char *name;
		enum place_kind kind;
	} kinds[] = {{"read", PLACE_READ}, {"write", PLACE_WRITE}, {"hide", PLACE_HIDE}};
	char path[PATH_MAX], real[PATH_MAX];
	int r;

	if (record->path.size >= sizeof(path) || record->real.size >= sizeof(real))
		return -ENAMETOOLONG;
	bytes_copy(path, sizeof(path), record->path);
	bytes_copy(real, sizeof(real), record->real);
	if (path[0] != '/')
		return -EINVAL;
	if (real[0] != '/')
		return -ENOENT;
	if (bytes_is(record->kind, "own"))
		return add_own(places, real, record);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!bytes_is(record->kind, kinds[i].name))
			continue;
		r = add_link(places, path, real);
		return r ? r : add_pinned(places, real, kinds[i].kind, record);
	}
	return 0;
}

/* Adds the records of laird's own directories if @own, else the others. */
static int add_listed(struct places *places, struct bytes list, bool own, char *culprit, size_t size)
{
	struct place_record record;
	struct wire_fault fault;
	struct bytes item;
	size_t cursor = 0;
	int r = 0;

	while (!r && wire_next(list, &cursor, &item)) {
		if (wire_decode(&record, &place_record_schema, item, &fault))
			return -EINVAL;
		bytes_copy(culprit, size, record.path);
		if (bytes_is(record.kind, "own") == own)
			r = add_record(places, &record);
	}
	return r;
}

void places_explain(char *text, size_t size, int r, const char *culprit)
{
	if (r == PLACE_E_CHANGED)
		snprintf(
			text, size,
			"%.120s was replaced after the settings were read; lair reload makes laird use the new one",
			culprit);
	else if (r == PLACE_E_OWN)
		snprintf(text, size,
			 "%.120s holds files of laird's own, which sessions may not see; keep one elsewhere",
			 culprit);
	else
		snprintf(text, size, "%.120s: %s", culprit, strerror(-r));
}

/* A place inside another of the same kind adds nothing. A cover over nothing adds nothing either. */
static bool says_nothing_new(enum place_kind kind, const struct place *outer)
{
	bool shown = outer && (outer->kind == PLACE_READ || outer->kind == PLACE_WRITE);

	if (kind == PLACE_HIDE)
		return !shown;
	if (kind == PLACE_LINK)
		return shown;
	return shown && (kind == PLACE_READ || kind == PLACE_WRITE) && kind == outer->kind;
}

static void places_drop(struct places *places, bool (*gone)(const struct place *place, const struct places *before))
{
	struct places kept = {.items = places->items};

	for (size_t i = 0; i < places->n; i++) {
		struct place place = places->items[i];

		if (gone(&place, &kept)) {
			/* A session must not find in its memory the name of a place that it cannot see. */
			explicit_bzero(place.path, strlen(place.path));
			free(place.path);
			free(place.text);
		} else {
			kept.items[kept.n++] = place;
		}
	}
	*places = kept;
}

static bool is_hidden(const struct place *place, const struct places *before)
{
	for (size_t i = 0; i < before->n; i++)
		if (before->items[i].kind == PLACE_HIDE && path_within(place->path, before->items[i].path))
			return true;
	return false;
}

static bool is_idle(const struct place *place, const struct places *before)
{
	return says_nothing_new(place->kind, places_find(before, place->path, strlen(place->path)));
}

int places_init(struct places *places, const struct configure_message *configure, char *const language_dirs[],
		char *culprit, size_t size)
{
	bool network = configure->network.data && !bytes_is(configure->network, "off") && configure->network.size;
	int r;

	*places = (struct places){0};
	snprintf(culprit, size, "the system's directories");
	r = add_those_there(places, system_places, ARRAY_SIZE(system_places));
	if (!r && network)
		r = add_those_there(places, network_places, ARRAY_SIZE(network_places));
	if (!r)
		r = add_listed(places, configure->places, false, culprit, size);
	/* What the profile hides is hidden, with everything in it. But Python's places are added after that,
	 * because no session can do without them. */
	if (!r)
		places_drop(places, is_hidden);
	for (size_t i = 0; !r && language_dirs && language_dirs[i]; i++)
		r = add_those_there(places, (const char *const *)&language_dirs[i], 1);
	if (!r)
		r = add_listed(places, configure->places, true, culprit, size);
	for (size_t i = 0; !r && i < ARRAY_SIZE(own_places); i++)
		r = places_add(places, own_places[i].path, own_places[i].kind, NULL);
	if (!r && configure->terminals)
		r = places_add(places, "/dev/pts", PLACE_TERMINALS, NULL);
	if (r)
		places_deinit(places);
	else
		places_drop(places, is_idle);
	return r;
}
