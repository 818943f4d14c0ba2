/* lair doctor, about all but cages: uv and its index, Pythons, and what laird keeps on the disk. */
#include "host.h"

#include "base/text.h"

#include "proto/paths.h"
#include "proto/uv.h"

#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define PATIENCE 10 /* seconds, of each program that is asked */
#define INSTALL_UV                                                                                                 \
	"pipx install uv    (or python3 -m venv ~/uv && ~/uv/bin/pip install uv, and uv = ~/uv/bin/uv in "         \
	"sessions.conf)"

static const char *const words[] = {[HOST_OK] = "ok", [HOST_WARN] = "warn", [HOST_FAIL] = "fail"};

const char *host_word(enum host_state state)
{
	return words[state];
}

static void add(struct host *host, enum host_state state, const char *command, const char *format, ...)
	_printf_(4, 5);

static void add(struct host *host, enum host_state state, const char *command, const char *format, ...)
{
	struct host_line *line = &host->lines[host->n];
	va_list args;

	if (host->n == HOST_LINES)
		return;
	host->n++;
	line->state = state;
	line->command = command;
	va_start(args, format);
	(void)vsnprintf(line->text, sizeof(line->text), format, args);
	va_end(args);
	text_tame(line->text);
}

/* The output of the program, stdout and stderr. Returns whether it succeeded in time. */
static bool asked(char *out, size_t size, const char *const argv[])
{
	int ends[2], status = 1;
	size_t n = 0;
	ssize_t got;
	pid_t pid;

	out[0] = '\0';
	if (pipe(ends) < 0)
		return false;
	pid = fork();
	if (pid == 0) {
		int nothing = open("/dev/null", O_RDONLY);

		(void)alarm(PATIENCE); /* it stays for the program */
		if (dup2(nothing, STDIN_FILENO) >= 0 && dup2(ends[1], STDOUT_FILENO) >= 0 &&
		    dup2(ends[1], STDERR_FILENO) >= 0)
			execv(argv[0], (char *const *)argv);
		_exit(127);
	}
	fd_close(ends[1]);
	while (pid > 0 && n < size - 1 && (got = read(ends[0], out + n, size - 1 - n)) > 0)
		n += (size_t)got;
	out[n] = '\0';
	out[strcspn(out, "\n")] = '\0';
	fd_close(ends[0]);
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- uv ---- */

static const char *index_named(void)
{
	static const char *const names[] = {"UV_DEFAULT_INDEX", "UV_INDEX_URL"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return names[i];
	}
	return NULL;
}

/* By uv itself, which knows the operator's settings, proxy, CA and credentials. Addresses may have credentials in
 * them, so they are not shown. */
static void index_check(struct host *host, const char *uv)
{
	char list[] = "/tmp/lair-doctor-XXXXXX", out[512];
	const char *const argv[] = {uv,		  "pip",	 "compile",	  list, "--quiet", "--no-deps",
				    "--no-cache", "--no-header", "--no-annotate", NULL};
	const char *name = index_named();
	_cleanup_(fd_closep) int fd = mkstemp(list);

	if (fd < 0 || write(fd, "pip\n", 4) != 4)
		return;
	if (asked(out, sizeof(out), argv))
		add(host, HOST_OK, NULL, "index: that of %s is reachable", name ? name : "uv's settings");
	else
		add(host, HOST_WARN, "UV_DEFAULT_INDEX=https://... laird    (or an index in uv.toml)",
		    "index: that of %s is not reachable, so nothing new can be installed: %.200s",
		    name ? name : "uv's settings", name ? "uv cannot read it" : out);
	(void)unlink(list);
}

static void uv_check(struct host *host)
{
	char uv[PATH_SIZE], out[128];
	const char *const argv[] = {uv, "--version", NULL};

	if (uv_find(uv, (struct bytes){.data = NULL})) {
		add(host, HOST_WARN, INSTALL_UV,
		    "uv: there is none in PATH, so sessions get packages only if sessions.conf names one");
		return;
	}
	if (!asked(out, sizeof(out), argv)) {
		add(host, HOST_WARN, INSTALL_UV, "uv: %.200s does not run", uv);
		return;
	}
	add(host, HOST_OK, NULL, "uv: %s, %.200s", out, uv);
	index_check(host, uv);
}

/* ---- the rest ---- */

static void namespaces_check(struct host *host)
{
	pid_t pid = fork();
	int status = 1;

	if (pid == 0)
		_exit(unshare(CLONE_NEWUSER) == 0 ? 0 : 1);
	if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		add(host, HOST_OK, NULL, "user namespaces: they can be made");
	else
		add(host, geteuid() == 0 ? HOST_OK : HOST_WARN, NULL, "user namespaces: %s cannot make any",
		    geteuid() == 0 ? "root" : "this user");
}

static void pythons_check(struct host *host)
{
	char kernel[PATH_SIZE], path[PATH_SIZE + 16], found[256] = "";
	size_t at = 0;

	if (path_sibling(kernel, "lair-kernel") < 0)
		return;
	for (unsigned minor = 8; minor < 30 && at < sizeof(found); minor++) {
		snprintf(path, sizeof(path), "%.4000s-3.%u", kernel, minor);
		if (access(path, X_OK) == 0)
			at += (size_t)snprintf(found + at, sizeof(found) - at, ", 3.%u", minor);
	}
	add(host, HOST_OK, NULL, "Python: that of lair-kernel%s", found);
	path_languages(found, sizeof(found));
	add(host, HOST_OK, NULL, "languages: %s", found);
}

static uint64_t counted;

static int count(const char *path, const struct stat *meta, int type, struct FTW *walk)
{
	counted += (uint64_t)meta->st_blocks * 512;
	return 0;
}

static void disk_check(struct host *host)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	char path[PATH_SIZE], size[HUMAN_SIZE];

	if (geteuid() == 0)
		snprintf(path, sizeof(path), "/var/lib/lair");
	else if (state && *state == '/')
		snprintf(path, sizeof(path), "%.4000s/lair", state);
	else
		snprintf(path, sizeof(path), "%.4000s/.local/state/lair", home ? home : "");
	counted = 0;
	if (nftw(path, count, 16, FTW_PHYS | FTW_MOUNT) == 0)
		add(host, HOST_OK, NULL, "disk: %s in %.200s", human_bytes(size, counted), path);
	else
		add(host, HOST_OK, NULL, "disk: nothing in %.200s", path);
}

void host_look(struct host *host)
{
	host->n = 0;
	uv_check(host);
	namespaces_check(host);
	pythons_check(host);
	disk_check(host);
}
