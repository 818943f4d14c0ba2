/* laird: reads the command line, and finds out which of its processes this is. It finds every error of the
 * settings, before there is a daemon. */
#include "cgroup/cgroup.h"
#include "config/config.h"
#include "config/paths.h"
#include "files/copier.h"
#include "keeper/keeper.h"
#include "router/router.h"
#include "vault/fault.h"

#include "proto/paths.h"
#include "proto/uv.h"

#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <sys/stat.h>

#define EXIT_USAGE 2

struct arguments {
	const char *config, *socket, *ready_fd, *uids;
	bool check, defaults, groups, router, copier, at_once, faults, version, help;
};

/* Options that take an argument have a place for it, the others for a flag. No @help: not for people. */
struct option_row {
	char letter;
	const char *name, *argument;
	size_t offset;
	const char *help;
};

#define PLACE(member) offsetof(struct arguments, member)

static const struct option_row rows[] = {
	{'c', "config", "FILE", PLACE(config), "settings, instead of those of sessions.conf(5)'s usual places"},
	{'s', "socket", "PATH", PLACE(socket), "where clients connect"},
	{'n', "check", NULL, PLACE(check), "check the settings, print all that are in force, and exit"},
	{'d', "defaults", NULL, PLACE(defaults), "print the sessions.conf inside laird, and exit"},
	{'r', "ready-fd", "N", PLACE(ready_fd), "write a byte to this descriptor once the socket answers"},
	{'G', "groups", NULL, PLACE(groups), NULL},
	{'U', "uids", "RANGE", PLACE(uids), NULL},
	{'R', "router", NULL, PLACE(router), NULL},
	{'C', "copier", NULL, PLACE(copier), NULL},
	{'A', "restart-at-once", NULL, PLACE(at_once), NULL},
	{'F', "faults", NULL, PLACE(faults), NULL},
	{'V', "version", NULL, PLACE(version), "print the version, and exit"},
	{'h', "help", NULL, PLACE(help), "print this, and exit"},
};

static void print_help(FILE *out)
{
	fputs("laird keeps Python sessions, for clients that connect to its socket.\n\nusage: laird [OPTION]...\n",
	      out);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct option_row *row = &rows[i];

		if (row->help)
			fprintf(out, "  -%c, --%s%s%-*s %s\n", row->letter, row->name, row->argument ? " " : "",
				(int)(14 - strlen(row->name) - (row->argument != NULL)),
				row->argument ? row->argument : "", row->help);
	}
}

static int arguments_parse(struct arguments *arguments, int argc, char *argv[])
{
	struct option options[ARRAY_SIZE(rows) + 1] = {0};
	char letters[2 * ARRAY_SIZE(rows) + 1] = "";
	size_t size = 0;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		options[i] = (struct option){
			.name = rows[i].name, .has_arg = rows[i].argument != NULL, .val = rows[i].letter};
		size += (size_t)snprintf(letters + size, sizeof(letters) - size, "%c%s", rows[i].letter,
					 rows[i].argument ? ":" : "");
	}
	for (int letter; (letter = getopt_long(argc, argv, letters, options, NULL)) != -1;) {
		const struct option_row *row = rows;

		while (row < rows + ARRAY_SIZE(rows) && row->letter != letter)
			row++;
		if (row == rows + ARRAY_SIZE(rows))
			return -EINVAL; /* getopt has said why */
		if (row->argument)
			*(const char **)((char *)arguments + row->offset) = optarg;
		else
			*(bool *)((char *)arguments + row->offset) = true;
	}
	if (optind == argc)
		return 0;
	fprintf(stderr, "laird: %s: there are only options\n", argv[optind]);
	return -EINVAL;
}

static int fail(const char *what, const char *why)
{
	fprintf(stderr, "laird: %s: %s\n", what, why);
	return EXIT_USAGE;
}

/* A daemon leaves the directory it was started in. */
static int absolute_path(char path[static PATH_SIZE], const char *given)
{
	char directory[PATH_SIZE] = "";
	int n;

	if (*given != '/' && !getcwd(directory, sizeof(directory)))
		return -errno;
	n = snprintf(path, PATH_SIZE, "%s%s%s", directory, *directory ? "/" : "", given);
	return n >= PATH_SIZE ? -ENAMETOOLONG : 0;
}

/* "" when there is no file: the embedded settings. */
static int find_config(char path[static PATH_SIZE], const char *given)
{
	const char *named = getenv("LAIR_CONFIG");

	if (!given && named && *named)
		given = named;
	return given ? absolute_path(path, given) : config_usual(path);
}

/* The command line, then LAIR_SOCKET, then the settings, then the usual place. */
static int find_socket(char path[static PATH_SIZE], const char *given, const char *configured)
{
	const char *named = getenv("LAIR_SOCKET");
	char usual[PATH_SIZE];
	int r;

	if (!given && !(named && *named))
		given = configured;
	if (!given) {
		r = path_default_socket(usual);
		if (r < 0)
			return r;
		given = usual;
	}
	r = absolute_path(path, given);
	return r == 0 && strlen(path) > SOCKET_PATH_MAX ? -ENAMETOOLONG : r;
}

static int parse_ready_fd(int *fdp, const char *text)
{
	char *end;
	long fd = strtol(text, &end, 10);

	if (end == text || *end || fd < 0 || fd > INT_MAX || fcntl((int)fd, F_GETFD) < 0)
		return -EBADF;
	*fdp = (int)fd;
	return 0;
}

/* Descriptors 0 to 2 have a meaning everywhere: nothing else may get these numbers. */
static int standard_descriptors(void)
{
	for (;;) {
		int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

		if (fd < 0)
			return -errno;
		if (fd > STDERR_FILENO)
			return close(fd);
		if (fcntl(fd, F_SETFD, 0) < 0)
			return -errno;
	}
}

/* Of the settings what the daemon itself needs. */
static int start(const struct arguments *arguments, struct keeper_options *options)
{
	options->ready_fd = -1;
	options->restart_at_once = arguments->at_once;
	if (arguments->ready_fd && parse_ready_fd(&options->ready_fd, arguments->ready_fd) < 0)
		return fail(arguments->ready_fd, "expected the number of an open descriptor");
	if (chdir("/") < 0)
		return fail("/", strerror(errno));
	return keeper_run(options);
}

/* Returns 0, or the exit status with all said. */
static int check(char socket[static PATH_SIZE], const struct arguments *arguments, const struct config *config)
{
	const struct in_use in_use = {.socket = socket};
	struct config_error error;

	if (find_socket(socket, arguments->socket, config->socket) < 0)
		return fail(arguments->socket ? arguments->socket : "the socket's path",
			    "longer than a socket's address can be");
	if (config_check_paths(config, config_name(config), &in_use, &error) == 0)
		return 0;
	fprintf(stderr, "laird: %s\n", error.text);
	return EXIT_USAGE;
}

/* It may be installed later, so it is no error. */
static void warn_of_uv(const struct config *config)
{
	char path[PATH_SIZE];

	for (size_t i = 0; i < config->n_profiles; i++) {
		const struct profile *profile = config->profiles[i];

		if (profile->packages == PACKAGES_OFF || !uv_find(path, bytes_of(config->uv)))
			continue;
		fprintf(stderr,
			"laird: profile %s allows packages, and there is no uv to install them%s%s: lair doctor "
			"says more\n",
			profile->name, config->uv ? "; it is not " : "", config->uv ? config->uv : "");
		return;
	}
}

static int print_config(const struct config *config)
{
	printf("# %s\n", config->path ? config->path : "no file: these are laird's own");
	config_print(config, stdout);
	return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* The daemon itself does without the settings, and the directories that they hold open: its router has them. */
static int load_and_start(const struct arguments *arguments)
{
	struct config *config;
	struct config_error error;
	char path[PATH_SIZE] = "", socket[PATH_SIZE];
	_cleanup_(freep) char *log = NULL;
	struct keeper_options options;
	int status;

	if (find_config(path, arguments->config) < 0)
		return fail("the settings", "longer than a path can be");
	if (config_load(&config, *path ? path : NULL, &error) != 0) {
		fprintf(stderr, "laird: %s\n", error.text);
		return EXIT_USAGE;
	}
	status = check(socket, arguments, config);
	warn_of_uv(config);
	if (!status && arguments->check)
		status = print_config(config);
	log = strdup(config->log);
	options = (struct keeper_options){
		.config = *path ? path : NULL,
		.socket = socket,
		.socket_mode = (mode_t)config->socket_mode,
		.socket_group = config->socket_group ? (gid_t)strtoul(config->socket_group, NULL, 10) : (gid_t)-1,
		.uids = {.first = config->uid_first, .last = config->uid_last},
		.log = log && strcmp(log, "stderr") ? log : NULL,
	};
	config_free(config);
	if (status || arguments->check)
		return status;
	return log ? start(arguments, &options) : fail("the settings", strerror(ENOMEM));
}

/* For lair doctor: which control groups a laird could have that is started where we are. */
static void print_groups(void)
{
	struct cgroups cgroups;
	char name[32];

	/* Not the name of any daemon, whose groups would be swept. */
	snprintf(name, sizeof(name), "doctor %d", (int)getpid());
	cgroups_open(&cgroups, name, NULL);
	for (int i = 0; i < _CONTROLLER_N; i++) {
		if (cgroups_find(&cgroups, (enum controller)i))
			printf("group\t%s\n", controller_names[i]);
		else
			printf("no-group\t%s\t%s\n", controller_names[i], cgroups.lacking[i]);
	}
	cgroups_close(&cgroups);
	cgroups_erase(name);
}

int main(int argc, char *argv[])
{
	struct arguments arguments = {0};

	if (standard_descriptors() < 0)
		return EXIT_FAILURE;
	if (arguments_parse(&arguments, argc, argv) < 0) {
		fputs("laird: --help lists the options\n", stderr);
		return EXIT_USAGE;
	}
	/* What is for laird alone is made so by name; workspaces must be passable to the users sessions run as. */
	umask(022);
	if (arguments.router)
		return router_run(arguments.config, arguments.socket, arguments.uids);
	if (arguments.copier)
		return copier_run();
	if (arguments.help)
		print_help(stdout);
	else if (arguments.version)
		puts("laird " LAIR_VERSION);
	else if (arguments.groups)
		print_groups();
	else if (arguments.faults)
		fault_print_points();
	else if (arguments.defaults)
		(void)fwrite(config_embedded().data, config_embedded().size, 1, stdout);
	else
		return load_and_start(&arguments);
	return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
