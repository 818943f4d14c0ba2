/* Two commands of uv. What the environment has already is asked first: it is kept to if that is possible, so that
 * what is imported and what is installed fit together. uv gets the operator's own environment: index, proxy, CA and
 * credentials are there. It builds nothing: only wheels are taken, so no code of a package runs here. */
#include "uv.h"

#include <ctype.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define ARGS_MAX 32
#define ENV_MAX 1024
#define LOOK_MS 20
#define HAS "has.in"
#define HAS_ALL "has.all"
#define LINE_SIZE 1024
#define LOG_SIZE 65536
/* How often pins are left out: each time at least one. */
#define TRIES_MAX 16

struct command {
	const char *program, *argv[ARGS_MAX];
	size_t n;
};

/* ---- its environment ---- */

/* What would lead uv elsewhere, or have other code run. */
static const char *const dropped[] = {
	"HOME=",	"TMPDIR=",	    "VIRTUAL_ENV=",	   "CONDA_PREFIX=",
	"LD_PRELOAD=",	"LD_LIBRARY_PATH=", "LD_AUDIT=",	   "PYTHON",
	"XDG_",		"NETRC=",	    "UV_PYTHON",	   "UV_CACHE_DIR=",
	"UV_NO_CACHE=", "UV_TARGET=",	    "UV_PREFIX=",	   "UV_LINK_MODE=",
	"UV_NO_BUILD",	"UV_NO_BINARY",	    "UV_BREAK_",	   "UV_SYSTEM_",
	"UV_PROJECT",	"UV_WORKING_DIR",   "UV_REQUIRE_",	   "UV_CONFIG_FILE=",
	"UV_COMPILE_",	"UV_NO_PROGRESS=",  "UV_CREDENTIALS_DIR=", "UV_KEYRING_",
	"UV_LOCK",	"UV_OFFLINE=",	    "RUST_LOG=",	   "NO_COLOR=",
	"FORCE_COLOR=", "LISTEN_",	    "NOTIFY_SOCKET=",
};

static bool is_dropped(const char *entry)
{
	for (size_t i = 0; i < ARRAY_SIZE(dropped); i++)
		if (strncmp(entry, dropped[i], strlen(dropped[i])) == 0)
			return true;
	return false;
}

static void set(const char *name, const char *directory, const char *rest)
{
	char value[PATH_SIZE + 64];

	if (snprintf(value, sizeof(value), "%s%s", directory, rest) < (int)sizeof(value))
		(void)setenv(name, value, 1);
}

static void environment_enter(const struct order *order)
{
	static char *kept[ENV_MAX + 1];
	size_t n = 0;

	for (size_t i = 0; environ[i] && n < ENV_MAX; i++)
		if (!is_dropped(environ[i]))
			kept[n++] = environ[i];
	environ = kept;
	set("HOME", order->work, "/" WORK_HOME);
	set("XDG_CONFIG_HOME", order->work, "/" WORK_HOME "/.config");
	set("XDG_CONFIG_DIRS", order->work, "/" WORK_HOME "/system");
	set("XDG_DATA_HOME", order->work, "/" WORK_HOME "/.local/share");
	set("TMPDIR", order->work, "/" WORK_HOME);
	set("UV_CACHE_DIR", order->packages, "/cache");
	(void)setenv("UV_PYTHON_DOWNLOADS", "never", 1);
	(void)setenv("UV_LINK_MODE", "copy", 1);
	(void)setenv("UV_NO_BUILD", "1", 1);
	(void)setenv("NO_COLOR", "1", 1);
	if (access(WORK_HOME "/named.toml", R_OK) == 0)
		set("UV_CONFIG_FILE", order->work, "/" WORK_HOME "/named.toml");
}

/* ---- one command ---- */

static void add(struct command *command, const char *word)
{
	if (command->n < ARGS_MAX - 1)
		command->argv[command->n++] = word;
}

static _Noreturn void execute(const struct command *command, const char *out)
{
	int log = open(WORK_LOG, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600), to = log;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	(void)signal(SIGXFSZ, SIG_IGN); /* then it says what is too large */
	if (out)
		to = open(out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (log >= 0 && to >= 0 && dup2(to, STDOUT_FILENO) >= 0 && dup2(log, STDERR_FILENO) >= 0) {
		(void)execv(command->program, (char *const *)command->argv);
		dprintf(STDERR_FILENO, "%s: %s\n", command->program, strerror(errno));
	}
	_exit(127);
}

/* Whether it succeeded. */
static bool run(const struct command *command, const char *out, int control)
{
	struct pollfd gone = {.fd = control, .events = POLLRDHUP};
	pid_t pid = fork();
	int status = 0;

	if (pid == 0)
		execute(command, out);
	while (pid > 0 && waitpid(pid, &status, WNOHANG) == 0)
		if (poll(&gone, 1, LOOK_MS) > 0 && (gone.revents & (POLLHUP | POLLRDHUP | POLLERR)))
			_exit(EXIT_FAILURE);
	return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- all of them ---- */

static bool is_plain(const char *line)
{
	const char *equals = strstr(line, "==");

	if (!equals || equals == line)
		return false;
	for (const char *at = line; *at && *at != '\n'; at++)
		if (!((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9') ||
		      strchr("._-=+!", *at)))
			return false;
	return true;
}

/* What comes from a place of its own, or has a version that uv cannot read, is left out. */
static void note_plain(void)
{
	FILE *from = fopen(HAS_ALL, "re"), *to = fopen(HAS, "we");
	char line[LINE_SIZE];

	while (from && to && fgets(line, sizeof(line), from))
		if (is_plain(line))
			(void)fputs(line, to);
	if (from)
		(void)fclose(from);
	if (to)
		(void)fclose(to);
}

static bool python_run(const struct order *order, const char *code, const char *out, int control)
{
	char program[PATH_SIZE + 16];
	struct command command = {.program = program, .argv = {"python", "-I", "-c", code}, .n = 4};
	struct stat meta;

	snprintf(program, sizeof(program), "%s%s", order->python,
		 stat(order->python, &meta) == 0 && S_ISDIR(meta.st_mode) ? "/bin/python" : "");
	return run(&command, out, control);
}

static void look(const struct order *order, int control)
{
	static const char names[] = "import importlib.metadata as m\n"
				    "for d in m.distributions(): print(d.metadata['Name'], d.version, sep='==')";

	(void)python_run(order, names, HAS_ALL, control);
	note_plain();
}

static bool resolve(const struct order *order, bool as_it_is, int control)
{
	struct command compile = {.program = order->uv,
				  .argv = {"uv", "pip", "compile", WORK_WANTED, "--python", order->python,
					   "--only-binary", ":all:", "--generate-hashes", "--no-header",
					   "--no-annotate", "--no-strip-markers", "--output-file", WORK_LOCK,
					   "--quiet", "--constraints", WORK_PINS},
				  .n = 17};

	if (as_it_is) {
		add(&compile, "--constraints");
		add(&compile, HAS);
	}
	if (order->newer[0]) {
		add(&compile, "--exclude-newer");
		add(&compile, order->newer);
	}
	(void)unlink(WORK_LOCK);
	(void)unlink(WORK_LOG);
	return run(&compile, NULL, control);
}

/* uv's words, in lines of any width, as one line. Returns false without memory or a log. */
static bool log_read(char **textp)
{
	_cleanup_(fd_closep) int fd = open(WORK_LOG, O_RDONLY | O_CLOEXEC);
	char *text = fd < 0 ? NULL : malloc(LOG_SIZE), *to = text;
	ssize_t size = text ? read(fd, text, LOG_SIZE - 1) : -1;

	for (ssize_t i = 0; i < size; i++)
		if (!strchr(" \t\r\n", text[i]))
			*to++ = text[i];
		else if (to > text && to[-1] != ' ')
			*to++ = ' ';
	if (text)
		*to = '\0';
	*textp = text;
	return text;
}

/* NAME==VERSION with the name as uv writes it. */
static void pin_normalise(char out[static LINE_SIZE], const char *line)
{
	bool name = true;
	char *to = out;

	for (const char *at = line; *at && *at != '\n'; at++) {
		name &= *at != '=';
		if (!name)
			*to++ = *at;
		else if (!strchr("-_.", *at))
			*to++ = (char)(*at >= 'A' && *at <= 'Z' ? *at | 0x20 : *at);
		else if (to > out && to[-1] != '-')
			*to++ = '-';
	}
	*to = '\0';
}

static bool is_part(char c)
{
	return c && (isalnum((unsigned char)c) || strchr("-_.+!", c));
}

/* Whether @log names @pin, and no longer one. A full stop may end the sentence. */
static bool is_named(const char *log, const char *pin)
{
	size_t size = strlen(pin);

	for (const char *at = log; (at = strstr(at, pin)); at++) {
		const char *end = at + size + (at[size] == '.');

		if ((at == log || !is_part(at[-1])) && !is_part(*end))
			return true;
	}
	return false;
}

/* Leave out the pins that uv names as the cause of its failure. A distribution may have packages whose metadata has
 * a version that never was; that is no reason to let go of all others. Whether there was one. */
static bool drop_named(void)
{
	char line[LINE_SIZE], pin[LINE_SIZE], *log;
	FILE *from, *to;
	bool any = false;

	if (rename(HAS, HAS_ALL) < 0 || !log_read(&log))
		return false;
	from = fopen(HAS_ALL, "re");
	to = fopen(HAS, "we");
	while (from && to && fgets(line, sizeof(line), from)) {
		pin_normalise(pin, line);
		if (is_named(log, pin))
			any = true;
		else
			(void)fputs(line, to);
	}
	if (from)
		(void)fclose(from);
	if (to)
		(void)fclose(to);
	free(log);
	return any;
}

/* As much of what there is stays as it is as can be. */
static bool resolve_best(const struct order *order, int control)
{
	bool done = resolve(order, true, control);

	for (unsigned tries = 0; !done && tries < TRIES_MAX && drop_named(); tries++)
		done = resolve(order, true, control);
	return done || resolve(order, false, control);
}

/* Most of the time of a large set goes into this. The tests of packages are nearly half of that, and hardly anybody
 * imports them: then they are compiled in the session. No code of a package runs. */
static bool compile(const struct order *order, int control)
{
	static const char code[] = "import os, py_compile\n"
				   "files = []\n"
				   "for place, inner, names in os.walk('" WORK_TARGET "'):\n"
				   "    inner[:] = [it for it in inner if it not in ('test', 'tests')]\n"
				   "    files += [os.path.join(place, it) for it in names if it.endswith('.py')]\n"
				   "n = min(len(os.sched_getaffinity(0)), 8)\n"
				   "for i in range(n):\n"
				   "    if os.fork() == 0:\n"
				   "        for file in files[i::n]:\n"
				   "            try: py_compile.compile(file, doraise=True)\n"
				   "            except BaseException: pass\n"
				   "        os._exit(0)\n"
				   "for i in range(n): os.wait()";

	return python_run(order, code, NULL, control);
}

static bool install(const struct order *order, int control)
{
	static const char *const words[] = {
		"uv",	     "pip",	  "install",	      "--requirements", WORK_LOCK, "--target",
		WORK_TARGET, "--no-deps", "--require-hashes", "--only-binary",	":all:",   "--no-compile-bytecode",
		"--python"};
	struct command command = {.program = order->uv};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		add(&command, words[i]);
	add(&command, order->python);
	return run(&command, NULL, control) && compile(order, control);
}

static void say(int control, char what)
{
	if (write(control, &what, 1) != 1)
		_exit(EXIT_FAILURE);
}

_Noreturn void uv_run(const struct order *order, int control)
{
	char answer = 0;

	umask(022);
	(void)signal(SIGCHLD, SIG_DFL);
	environment_enter(order);
	look(order, control);
	if (!resolve_best(order, control))
		say(control, UV_FAILED);
	else
		say(control, UV_RESOLVED);
	while (read(control, &answer, 1) < 0 && errno == EINTR)
		;
	if (answer == UV_GO_ON)
		say(control, install(order, control) ? UV_DONE : UV_FAILED);
	_exit(EXIT_SUCCESS);
}
