/* A kernelspec: a directory with kernel.json and logos, where Jupyter looks for kernels. */
#include "jupyter.h"

#include "sockets.h"

#include "base/text.h"

#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#define NAME "lair"

static const char logo[] =
	"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 64 64\">"
	"<path fill=\"#3b4a5a\" d=\"M4 58V34C4 17 16 6 32 6s28 11 28 28v24H46V38c0-9-6-15-14-15s-14 6-14 15v20z\"/>"
	"<circle cx=\"27\" cy=\"40\" r=\"3\" fill=\"#e8a33d\"/><circle cx=\"37\" cy=\"40\" r=\"3\" "
	"fill=\"#e8a33d\"/>"
	"</svg>\n";

/* Where Jupyter looks first. */
static int directory_of(char path[static PATH_MAX], const struct jupyter_spec *spec)
{
	const char *data = getenv("JUPYTER_DATA_DIR"), *home = getenv("HOME"),
		   *name = spec->name ? spec->name : NAME;
	const char *xdg = getenv("XDG_DATA_HOME");
	int n;

	if (spec->prefix)
		n = snprintf(path, PATH_MAX, "%s/share/jupyter/kernels/%s", spec->prefix, name);
	else if (data && *data)
		n = snprintf(path, PATH_MAX, "%s/kernels/%s", data, name);
	else if (xdg && *xdg)
		n = snprintf(path, PATH_MAX, "%s/jupyter/kernels/%s", xdg, name);
	else
		n = snprintf(path, PATH_MAX, "%s/.local/share/jupyter/kernels/%s", home ? home : "", name);
	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int directories_make(const char *path)
{
	char part[PATH_MAX];

	snprintf(part, sizeof(part), "%s", path);
	for (char *at = part + 1;; at++) {
		char end = *at;

		if (end && end != '/')
			continue;
		*at = '\0';
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return -errno;
		*at = end;
		if (!end)
			return 0;
	}
}

static int file_write(const char *directory, const char *name, const char *content)
{
	char path[PATH_MAX];
	int fd, r;

	if (snprintf(path, sizeof(path), "%s/%s", directory, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	r = write_all(fd, lair_text(content));
	return close(fd) < 0 && !r ? -errno : r;
}

static json_t *command(const struct jupyter_spec *spec)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	json_t *argv;

	path[MAX(n, (ssize_t)0)] = '\0';
	argv = json_pack("[s, s, s, s, s]", n > 0 ? path : "lair", "jupyter", "run", "-f", "{connection_file}");
	for (size_t i = 0; spec->arguments && spec->arguments[i]; i++)
		json_array_append_new(argv, json_string(spec->arguments[i]));
	return argv;
}

int jupyter_install(const struct jupyter_spec *spec, char *path)
{
	_cleanup_(freep) char *text = NULL;
	json_t *document;
	int r = directory_of(path, spec);

	if (r)
		return r;
	document = json_pack("{s:o, s:s, s:s, s:s, s:{s:b, s:o}}", "argv", command(spec), "display_name",
			     spec->display ? spec->display : "Python (Lair)", "language", "python",
			     "interrupt_mode", "message", "metadata", "debugger", 0, "supported_encryption",
			     sockets_have_curve() ? json_pack("[s]", "curve") : json_array());
	text = document ? json_dumps(document, JSON_INDENT(1)) : NULL;
	json_decref(document);
	if (!text)
		return -ENOMEM;
	r = directories_make(path);
	if (!r)
		r = file_write(path, "kernel.json", text);
	return r ? r : file_write(path, "logo-svg.svg", logo);
}
