/* Index, proxy, CA and credentials are the operator's, as uv has them: in the environment, or in files of uv's own.
 * The cage has neither the operator's home nor, as root, the rights of the operator, so the files are copied. */
#include "config.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#define FILE_MAX ((off_t)1 << 20)
#define PLACES_MAX 16

/* @variable, or else @directory below HOME, then @rest. */
static const struct {
	const char *variable, *directory, *rest, *to;
} files[] = {
	{"NETRC", "/.netrc", "", ".netrc"},
	{"UV_CONFIG_FILE", NULL, "", "named.toml"},
	{"XDG_CONFIG_HOME", "/.config", "/uv/uv.toml", ".config/uv/uv.toml"},
	{"UV_CREDENTIALS_DIR", "/.local/share/uv/credentials", "/credentials.toml",
	 ".local/share/uv/credentials/credentials.toml"},
	{NULL, NULL, "/etc/uv/uv.toml", "system/uv/uv.toml"},
};

static const char *const directories[] = {".config",	  ".config/uv",	     ".local",
					  ".local/share", ".local/share/uv", ".local/share/uv/credentials",
					  "system",	  "system/uv"};

/* What uv reads by name: files and directories of the host. */
static const char *const named[] = {"SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "SSL_CLIENT_CERT",
				    "UV_FIND_LINKS"};

static bool path_of(char path[static PATH_SIZE], size_t i)
{
	const char *value = files[i].variable ? getenv(files[i].variable) : "", *home = getenv("HOME");
	int n;

	if (value && (value[0] == '/' || !files[i].variable))
		n = snprintf(path, PATH_SIZE, "%s%s", value, files[i].rest);
	else if (files[i].directory && home && home[0] == '/')
		n = snprintf(path, PATH_SIZE, "%s%s%s", home, files[i].directory, files[i].rest);
	else
		return false;
	return n < PATH_SIZE;
}

static int copy(int home, const char *path, const char *to, uid_t uid)
{
	_cleanup_(fd_closep) int from = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	_cleanup_(fd_closep) int out = -1;
	struct stat meta;
	off_t at = 0;

	if (from < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? 0 : -errno;
	if (fstat(from, &meta) < 0 || !S_ISREG(meta.st_mode) || meta.st_size > FILE_MAX)
		return 0;
	out = openat(home, to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (out < 0 || (uid && fchown(out, uid, uid) < 0))
		return -errno;
	while (at < meta.st_size)
		if (sendfile(out, from, &at, (size_t)(meta.st_size - at)) <= 0)
			return -EIO;
	return 0;
}

int config_copy(int home, uid_t uid)
{
	char path[PATH_SIZE];
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(directories); i++)
		if (mkdirat(home, directories[i], 0700) < 0 ||
		    (uid && fchownat(home, directories[i], uid, uid, AT_SYMLINK_NOFOLLOW) < 0))
			return -errno;
	for (size_t i = 0; !r && i < ARRAY_SIZE(files); i++)
		if (path_of(path, i))
			r = copy(home, path, files[i].to, uid);
	return r;
}

/* The directory @levels above what @path leads to. */
static char *above(const char *path, unsigned levels)
{
	char *real = realpath(path, NULL), *slash;

	while (real && levels-- > 0 && (slash = strrchr(real, '/')))
		*slash = '\0';
	if (real && !real[0])
		return NULL; /* everything would be shown */
	return real;
}

char *const *config_places(const struct order *order)
{
	static char *places[PLACES_MAX];
	char program[PATH_SIZE + 16];
	struct stat meta;
	size_t n = 0;

	places[n++] = strdup(order->uv);
	snprintf(program, sizeof(program), "%s", order->python);
	if (stat(order->python, &meta) == 0 && S_ISDIR(meta.st_mode)) {
		places[n++] = strdup(order->python);
		snprintf(program, sizeof(program), "%s/bin/python", order->python);
	} else {
		char *slash;

		/* That of an environment is a link; its own directory has what is installed. */
		snprintf(program, sizeof(program), "%s", order->python);
		for (unsigned i = 0; i < 2 && (slash = strrchr(program, '/')); i++)
			*slash = '\0';
		if (program[0])
			places[n++] = strdup(program);
		snprintf(program, sizeof(program), "%s", order->python);
	}
	places[n] = above(program, 2);
	n += places[n] != NULL;
	for (size_t i = 0; i < ARRAY_SIZE(named); i++) {
		const char *value = getenv(named[i]);

		if (value && value[0] == '/' && value[1])
			places[n++] = strdup(value);
	}
	return places;
}
