/* In a directory that a session may write to, it may replace anything. So nothing that laird or another session
 * is given by name may be found through such a directory; each name is walked, see walk.c. Two names of one
 * directory are one. */
#include "paths.h"

#include "base/directory.h"
#include "base/walk.h"
#include "keeper/program.h"
#include "pins.h"
#include "python.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

/* ---- one profile ---- */

static const struct rule {
	enum pinned_kind inner, outer;
	bool or_same;
	const char *so;
} rules[] = {
	/* Landlock only ever adds rights. */
	{PINNED_READ, PINNED_WRITE, false, "so it could be written to"},
	{PINNED_READ, PINNED_HIDE, true, "so it could not be seen"},
	{PINNED_WRITE, PINNED_HIDE, true, "so it could not be seen"},
};

static bool rule_broken(const struct rule *rule, const struct pinned *inner, const struct pinned *outer,
			char reason[PATHS_REASON_SIZE])
{
	if (inner->kind != rule->inner || outer->kind != rule->outer ||
	    !walk_within(inner->pin.path, outer->pin.path, rule->or_same))
		return false;
	(void)snprintf(reason, PATHS_REASON_SIZE, "%s = %.150s lies in %s = %.150s, %s", pinned_name(inner->kind),
		       inner->path, pinned_name(outer->kind), outer->path, rule->so);
	return true;
}

/* Every session has its own of these: a directory in one can be granted and appears there, the whole cannot. */
static const char *const sessions_own[] = {"/tmp", "/run", "/proc", "/sys", "/dev", "/dev/shm"};

static bool is_sessions_own(const struct pinned *pinned, char reason[PATHS_REASON_SIZE])
{
	char real[PATH_MAX];

	if (pinned->kind != PINNED_READ && pinned->kind != PINNED_WRITE)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(sessions_own); i++) {
		if (walk_to(real, sessions_own[i]) || strcmp(real, pinned->pin.path) != 0)
			continue;
		(void)snprintf(reason, PATHS_REASON_SIZE,
			       "%s = %.150s: a session has a %s of its own; name a directory in it",
			       pinned_name(pinned->kind), pinned->path, sessions_own[i]);
		return true;
	}
	return false;
}

/* Only a lair-kernel with a Python of that version has the modules of an environment. */
static bool has_program(const struct profile *profile, char reason[PATHS_REASON_SIZE])
{
	unsigned version = python_version(profile->python);
	char program[PATH_SIZE], real[PATH_MAX];

	if (!version || program_path(program, LANGUAGE_OWN, version) || access(program, X_OK) == 0)
		return true;
	(void)snprintf(
		reason, PATHS_REASON_SIZE,
		"python = %.120s is Python %u.%u, and Lair is built without it: build it with that one, too, by "
		"LAIR_PYTHONS=%.120s ./dev install, or make an environment with %s -m venv",
		profile->python, version >> 8, version & 0xff,
		python_program(real, profile->python) ? "PYTHON" : real, PYTHON_DEFAULT);
	return false;
}

/* The granted directory in which @path would be made; NULL if that is the session's own. */
static const struct pinned *innermost(const struct profile *profile, const char *path)
{
	const struct pinned *found = NULL;
	size_t most = 0;

	for (size_t i = 0; i < profile->n_pinned; i++) {
		const struct pinned *pinned = &profile->pinned[i];

		if ((pinned->kind == PINNED_READ || pinned->kind == PINNED_WRITE || pinned->kind == PINNED_HIDE) &&
		    walk_within(path, pinned->pin.path, true) && strlen(pinned->pin.path) > most) {
			most = strlen(pinned->pin.path);
			found = pinned;
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(sessions_own); i++)
		if (walk_within(path, sessions_own[i], true) && strlen(sessions_own[i]) > most)
			return NULL;
	return found && found->kind != PINNED_HIDE ? found : NULL;
}

/* The workspace is mounted at home. Nothing can be made in what a session may only read, and what lies in home
 * would be covered. */
static bool home_broken(const struct profile *profile, char reason[PATHS_REASON_SIZE])
{
	const char *home = profile->home;
	const struct pinned *outer = home ? innermost(profile, home) : NULL;
	struct stat meta;

	for (size_t i = 0; home && i < profile->n_pinned; i++) {
		const struct pinned *pinned = &profile->pinned[i];

		if ((pinned->kind != PINNED_READ && pinned->kind != PINNED_WRITE) ||
		    !walk_within(pinned->pin.path, home, true))
			continue;
		(void)snprintf(reason, PATHS_REASON_SIZE, "home = %.150s: %s = %.150s lies in it", home,
			       pinned_name(pinned->kind), pinned->path);
		return true;
	}
	if (!outer || (outer->kind == PINNED_READ && lstat(home, &meta) == 0 && S_ISDIR(meta.st_mode)))
		return false;
	(void)snprintf(reason, PATHS_REASON_SIZE, "home = %.150s lies in %s = %.150s, %s", home,
		       pinned_name(outer->kind), outer->path,
		       outer->kind == PINNED_WRITE
			       ? "which the session may write to"
			       : "where there is no such directory; make it, and the workspace covers it");
	return true;
}

const char *profile_paths_check(const struct profile *profile, char reason[PATHS_REASON_SIZE])
{
	const struct pinned *all = profile->pinned;
	size_t n = profile->n_pinned;

	if (!has_program(profile, reason))
		return "python";
	if (home_broken(profile, reason))
		return "home";
	for (size_t i = 0; i < n; i++)
		if (is_sessions_own(&all[i], reason))
			return pinned_name(all[i].kind);
	for (size_t i = 0; i < ARRAY_SIZE(rules) * n * n; i++) {
		const struct pinned *inner = &all[i / n % n];

		if (rule_broken(&rules[i / n / n], inner, &all[i % n], reason))
			return pinned_name(inner->kind);
	}
	return NULL;
}

/* ---- what laird lives on ---- */

/* @path: a directory of laird's own, or one that holds a @file of it, which is real. */
struct own {
	char path[PATH_MAX];
	const char *name; /* what it is found by */
	const char *what;
	bool file;
};

struct owns {
	struct own items[7];
	size_t n;
	char saves[PATH_MAX], workspaces[PATH_MAX], packages[PATH_MAX], images[PATH_MAX];
};

static void own_add(struct owns *owns, const char *name, const char *what, bool file)
{
	struct own *own = &owns->items[owns->n];
	char *slash;

	if (!name || *name != '/' || walk_to(own->path, name))
		return;
	slash = strrchr(own->path, '/');
	slash[slash == own->path] = '\0';
	own->name = name;
	own->what = what;
	own->file = file;
	owns->n++;
}

static void owns_find(struct owns *owns, const struct config *config, const char *name, const struct in_use *in_use)
{
	owns->n = 0;
	own_add(owns, name, "the settings", true);
	own_add(owns, config->log, "the log", true);
	own_add(owns, config->audit_log, "the audit log", true);
	if (!in_use->socket)
		return;
	/* The directories of all daemons lie side by side. If nobody can say where, there are none. */
	if (!directory_of_state(owns->saves, "saves", config->saves, in_use->socket))
		own_add(owns, owns->saves, "the saved states", false);
	if (!directory_of_state(owns->packages, "packages", config->packages_store, in_use->socket))
		own_add(owns, owns->packages, "the packages", false);
	if (!directory_of_state(owns->images, "images", NULL, in_use->socket))
		own_add(owns, owns->images, "the images of templates", false);
	if (in_use->workspaces)
		snprintf(owns->workspaces, PATH_MAX, "%s", in_use->workspaces);
	if (in_use->workspaces ||
	    !directory_of_state(owns->workspaces, "workspaces", config->workspaces, in_use->socket))
		own_add(owns, owns->workspaces, "the workspaces", false);
}

int config_pin_own(struct config *config, const struct in_use *in_use)
{
	struct owns owns;

	owns_find(&owns, config, config->path, in_use);
	config->own = calloc(owns.n + 1, sizeof(*config->own));
	if (!config->own)
		return -ENOMEM;
	for (size_t i = 0; i < owns.n; i++) {
		/* What is not there yet could be seen later. */
		if (!owns.items[i].file)
			(void)directory_make_parents(owns.items[i].name);
		config->n_own += pin_take(&config->own[config->n_own], owns.items[i].path, true) == 0;
	}
	return 0;
}

/* ---- all of it ---- */

struct check {
	const struct config *config;
	const char *name;
	const struct in_use *in_use;
	struct owns owns;
	struct config_error *error;
};

/* Directories that sessions may change: @write of @profile. If it @goes_on, the profile is not in the settings
 * any more. */
struct writable {
	const struct profile *profile;
	const struct pinned *write;
	bool goes_on;
};

static int refuse(const struct check *check, const struct writable *writable, const char *format, ...)
	_printf_(3, 4);

static int refuse(const struct check *check, const struct writable *writable, const char *format, ...)
{
	char *text = check->error->text;
	size_t size = sizeof(check->error->text);
	va_list args;
	int n;

	if (writable->goes_on)
		n = snprintf(text, size, "%.150s: profile %s, of which sessions still run: write = %.100s ",
			     check->name, writable->profile->name, writable->write->path);
	else
		n = snprintf(text, size, "%.150s:%u: profile %s: write = %.100s ", check->name,
			     writable->profile->write_line, writable->profile->name, writable->write->path);
	va_start(args, format);
	(void)vsnprintf(text + n, size - (size_t)n, format, args);
	va_end(args);
	return -EINVAL;
}

/* Nobody else may name a directory there. */
static int keep_out(const struct check *check, const struct writable *writable, const char *path)
{
	char at[PATH_MAX];

	if (!path || *path != '/' || !walk_through(at, path, writable->write->pin.path, true))
		return 0;
	return refuse(check, writable, "holds %.150s, which no session may change; write to less", at);
}

static int keep_out_own(const struct check *check, const struct writable *writable)
{
	char program[PATH_SIZE];
	int r = 0;

	for (size_t i = 0; !r && i < check->owns.n; i++)
		r = keep_out(check, writable, check->owns.items[i].name);
	if (!r)
		r = keep_out(check, writable, check->config->socket);
	if (!r)
		r = keep_out(check, writable, check->in_use->socket);
	if (!r && !path_sibling(program, "lair-kernel"))
		r = keep_out(check, writable, program);
	return r;
}

/* Another profile may name the same directory, and it stays the same directory; but nobody runs code that
 * sessions can change. */
static int keep_from(const struct check *check, const struct writable *writable, const struct profile *profile,
		     const struct pinned *place, const char *path)
{
	char at[PATH_MAX];

	if (!walk_through(at, path, writable->write->pin.path, place->kind == PINNED_PYTHON))
		return 0;
	return refuse(
		check, writable,
		"holds %.120s, %s = %.120s of profile %s, so its sessions could put something else there; write "
		"to less, or have that elsewhere",
		at, pinned_name(place->kind), place->path, profile->name);
}

/* The program in it may be a link, too, and all files in it are run. */
static int keep_from_python(const struct check *check, const struct writable *writable,
			    const struct profile *profile, const struct pinned *python)
{
	char environment[PATH_MAX], program[PATH_MAX + 16], real[PATH_MAX];
	int r;

	python_environment(environment, python->path);
	if (!environment[0])
		return 0;
	snprintf(program, sizeof(program), "%s/bin/python", environment);
	r = keep_from(check, writable, profile, python, program);
	if (r || walk_to(real, environment) || !walk_within(writable->write->pin.path, real, true))
		return r;
	return refuse(
		check, writable,
		"lies in python = %.120s of profile %s, so its sessions could change what laird runs; write to "
		"something else",
		python->path, profile->name);
}

static int keep_profile_out(const struct check *check, const struct writable *writable,
			    const struct profile *profile)
{
	int r = 0;

	for (size_t i = 0; !r && i < profile->n_pinned; i++) {
		const struct pinned *place = &profile->pinned[i];

		r = place == writable->write ? 0 : keep_from(check, writable, profile, place, place->path);
		if (!r && place->kind == PINNED_PYTHON)
			r = keep_from_python(check, writable, profile, place);
	}
	return r;
}

static int check_writable(const struct check *check, const struct writable *writable)
{
	const struct in_use *in_use = check->in_use;
	int r = keep_out_own(check, writable);

	for (size_t i = 0; !r && i < check->config->n_profiles; i++)
		r = keep_profile_out(check, writable, check->config->profiles[i]);
	for (size_t i = 0; !r && i < in_use->n_profiles; i++)
		r = keep_profile_out(check, writable, in_use->profiles[i]);
	return r;
}

/* A directory cannot be shown without the files in it; and a session's files are not shown to all. */
static int check_shown(const struct check *check, const struct profile *profile)
{
	for (size_t i = 0; i < profile->n_pinned * check->owns.n; i++) {
		const struct pinned *place = &profile->pinned[i / check->owns.n];
		const struct own *own = &check->owns.items[i % check->owns.n];

		if (place->kind == PINNED_HIDE || place->kind == PINNED_PYTHON || place->kind == PINNED_DIRS ||
		    !place->pin.path || (place->kind == PINNED_WRITE && own->file))
			continue;
		if (own->file ? strcmp(place->pin.path, own->path) != 0
			      : !walk_within(place->pin.path, own->path, true))
			continue;
		(void)snprintf(
			check->error->text, sizeof(check->error->text),
			"%.150s: profile %s: %s = %.120s: %s %s in %.120s; no session may see that: have one or "
			"the other elsewhere",
			check->name, profile->name, pinned_name(place->kind), place->path, own->what,
			strchr(own->what, '\0')[-1] == 's' ? "are" : "is", own->path);
		return -EINVAL;
	}
	return 0;
}

static int check_profile(const struct check *check, const struct profile *profile, bool goes_on)
{
	int r = goes_on ? 0 : check_shown(check, profile);

	for (size_t i = 0; !r && i < profile->n_pinned; i++) {
		const struct writable writable = {profile, &profile->pinned[i], goes_on};

		if (writable.write->kind == PINNED_WRITE && writable.write->pin.path)
			r = check_writable(check, &writable);
	}
	return r;
}

int config_check_paths(const struct config *config, const char *name, const struct in_use *in_use,
		       struct config_error *error)
{
	struct check check = {.config = config, .name = name, .in_use = in_use, .error = error};
	int r = 0;

	owns_find(&check.owns, config, name, in_use);
	for (size_t i = 0; !r && i < config->n_profiles; i++)
		r = check_profile(&check, config->profiles[i], false);
	for (size_t i = 0; !r && i < in_use->n_profiles; i++)
		r = check_profile(&check, in_use->profiles[i], true);
	return r;
}

int config_check_one(const struct config *config, const struct in_use *in_use, const struct profile *profile,
		     struct config_error *error)
{
	struct check check = {.config = config, .name = config_name(config), .in_use = in_use, .error = error};

	owns_find(&check.owns, config, config->path, in_use);
	return check_profile(&check, profile, false);
}
