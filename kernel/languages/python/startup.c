/* From an empty process to a template: start Python isolated from laird's environment, import the profile's
 * modules, walk once through the code that a session will run, and make sure that exactly one thread is left,
 * since a fork copies only one. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "startup.h"

#include "audit.h"
#include "cell.h"
#include "embedded.h" /* made by CMakeLists.txt */
#include "fatal.h"
#include "gather.h"
#include "helpers.h"
#include "interpreter/interpreter.h"
#include "observe/output.h"
#include "oserror.h"
#include "owned.h"
#include "pack.h"
#include "python.h"
#include "refusal.h"
#include "seeds.h"
#include "threads.h"

#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

static int fail(struct language_report *report, const char *what, const char *why)
{
	snprintf(report->reason, sizeof(report->reason), "%s%s%s", what, why ? ": " : "", why ? why : "");
	return -1;
}

/* Adds the message of the pending exception. */
static int fail_python(struct language_report *report, const char *what)
{
	size_t used = (size_t)snprintf(report->reason, sizeof(report->reason), "%s: ", what);

	helper_error(report->reason + used, sizeof(report->reason) - used);
	if (!report->reason[used])
		return fail(report, what, NULL);
	return -1;
}

/* ---- before Python ---- */

/* Libraries read these when they are imported. A profile may set other values. */
static const struct {
	const char *name, *value;
} defaults[] = {
	{"PATH", "/usr/local/bin:/usr/bin:/bin"},
	{"LANG", "C.UTF-8"},
	{"MPLBACKEND", "Agg"},
};

static void environment_set(const struct configure_message *configure)
{
	struct bytes item;
	size_t cursor = 0;

	for (size_t i = 0; i < ARRAY_SIZE(defaults); i++)
		setenv(defaults[i].name, defaults[i].value, 0);
	while (wire_next_string(configure->env, &cursor, &item)) {
		_cleanup_(freep) char *entry = strndup(item.data, item.size);
		char *equals = entry ? strchr(entry, '=') : NULL;

		if (!equals)
			continue;
		*equals = '\0';
		setenv(entry, equals + 1, 1);
	}
	threads_begin();
	setlocale(LC_CTYPE, "C.UTF-8");
}

/* A virtual environment comes first in PATH, as its script `activate` does it. */
static void environment_activate(const char *directory)
{
	char path[4096];

	setenv("VIRTUAL_ENV", directory, 1);
	if (snprintf(path, sizeof(path), "%s/bin:%s", directory, getenv("PATH")) < (int)sizeof(path))
		setenv("PATH", path, 1);
}

/* @wanted: the directory of a virtual environment, or a Python; if it is absent, the Python that Lair was built
 * with. */
static int executable_choose(char *path, size_t size, struct bytes wanted)
{
	struct stat status;

	if (!wanted.data)
		snprintf(path, size, "%s", PYTHON_DEFAULT);
	else
		bytes_copy(path, size, wanted);
	if (stat(path, &status) < 0)
		return -errno;
	if (S_ISDIR(status.st_mode)) {
		size_t used = strlen(path);

		environment_activate(path);
		if (snprintf(path + used, size - used, "/bin/python") >= (int)(size - used))
			return -ENAMETOOLONG;
	}
	return access(path, X_OK) < 0 ? -errno : 0;
}

/* ---- Python ---- */

static PyStatus initialize(const char *executable)
{
	PyPreConfig before;
	PyConfig config;
	PyStatus status;

	PyPreConfig_InitIsolatedConfig(&before);
	before.utf8_mode = 1;
	status = Py_PreInitialize(&before);
	if (PyStatus_Exception(status))
		return status;
	PyConfig_InitIsolatedConfig(&config);
	config.install_signal_handlers = 1;	/* SIGINT becomes KeyboardInterrupt */
	config.faulthandler = !fatal_install(); /* a crash shows where it was */
	config.write_bytecode = 0;		/* else a module that is edited within a second seems unchanged */
	status = PyConfig_SetBytesString(&config, &config.executable, executable);
	if (!PyStatus_Exception(status))
		status = PyConfig_SetBytesString(&config, &config.program_name, executable);
	if (!PyStatus_Exception(status))
		status = Py_InitializeFromConfig(&config);
	PyConfig_Clear(&config);
	return status;
}

/* New programs are also started by vfork, which calls no handlers. But Python announces each of them. */
static int before_program(const char *event, PyObject *args, void *data)
{
	static const char *const events[] = {"subprocess.Popen", "os.system", "os.posix_spawn", "os.exec",
					     "os.spawn"};

	if (event[0] != 'o' && event[0] != 's')
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		if (strcmp(event, events[i]) == 0)
			output_flush_all();
	return 0;
}

static int python_initialize(const struct configure_message *configure, struct language_report *report)
{
	char executable[4096];
	PyStatus status;
	int r;

	r = executable_choose(executable, sizeof(executable), configure->python);
	if (r)
		return fail(report, executable, strerror(-r));
	if (PySys_AddAuditHook(before_program, NULL) < 0 || audit_install())
		return fail(report, "out of memory", NULL);
	gather_arenas();
	signal(SIGINT, SIG_DFL); /* if laird's parent ignores SIGINT, it is ignored here, too */
	status = initialize(executable);
	if (PyStatus_Exception(status))
		return fail(report, executable, status.err_msg);
	return 0;
}

static void missing_keep(struct language_report *report, PyObject *names)
{
	if (PyList_GET_SIZE(names) == 0)
		return;
	wire_put_array(&report->missing, (size_t)PyList_GET_SIZE(names));
	for (Py_ssize_t i = 0; i < PyList_GET_SIZE(names); i++)
		wire_put_string(&report->missing, bytes_of(PyUnicode_AsUTF8(PyList_GET_ITEM(names, i))));
}

/* The message of the exception says which module and why. */
static int preload(const struct configure_message *configure, struct language_report *report)
{
	OWNED *names = unpack_strings(configure->preload);
	OWNED *missing = names ? PyObject_CallOneArg(helper(HELPER_PRELOAD), names) : NULL;

	if (missing)
		missing_keep(report, missing);
	return missing ? 0 : -1;
}

static int call(enum helper which)
{
	OWNED *done = PyObject_CallNoArgs(helper(which));

	return done ? 0 : -1;
}

static void rehearse(void)
{
	static const char *const cells[] = {
		"1 + 1",
		"x = [n * n for n in range(9)]\nprint(x)\nx",
		"import sys\ndef f(n):\n    return 1 / n\nf(0)",
		"print('one', 'two', file=sys.stderr)\nraise ValueError('x') from KeyError('y')",
		"import asyncio\nawait asyncio.sleep(0)",
		"asyncio.get_event_loop().close()\nasyncio.set_event_loop_policy(None)",
		"1 +",
		"del x, f, sys, asyncio",
	};

	interpreter_rehearse(cells, ARRAY_SIZE(cells));
	/* The closed loop is forgotten here, and not anew in each interpreter. */
	if (call(HELPER_LOOP_WAITS) < 0)
		PyErr_Clear();
}

/* With @configure: import what it names; else warm that up. */
static int import_or_warm(const struct configure_message *configure, struct language_report *report)
{
	OWNED *cache = PyObject_CallNoArgs(helper(HELPER_BORROW_CACHE)), *returned = NULL;
	int r;

	if (!cache)
		return -1;
	r = configure ? preload(configure, report) : call(HELPER_WARM);
	if (r)
		return r; /* the caller tells the exception */
	returned = PyObject_CallOneArg(helper(HELPER_RETURN_CACHE), cache);
	return returned ? 0 : -1;
}

static int threads_check(struct language_report *report)
{
	OWNED *count = PyObject_CallNoArgs(helper(HELPER_THREADS));
	long n = count ? PyLong_AsLong(count) : -1;

	if (n < 0)
		return fail_python(report, "the template's threads cannot be counted");
	if (n > 1)
		return fail(report, "a preloaded module has started threads, which no session would have", NULL);
	return 0;
}

/* NULL-terminated. A name that is not text ends it. */
static char **strings_of(PyObject *list)
{
	Py_ssize_t n = PyList_GET_SIZE(list);
	char **strings = calloc((size_t)n + 1, sizeof(*strings));

	for (Py_ssize_t i = 0; strings && i < n; i++) {
		const char *string = PyUnicode_AsUTF8(PyList_GET_ITEM(list, i));

		strings[i] = string ? strdup(string) : NULL;
	}
	PyErr_Clear();
	return strings;
}

static int directories_find(struct language_report *report)
{
	OWNED *list = PyObject_CallNoArgs(helper(HELPER_PLACES));

	if (!list)
		return fail_python(report, "Python's own directories cannot be told");
	report->places = strings_of(list);
	return report->places ? 0 : fail(report, "out of memory", NULL);
}

char **python_sources(void)
{
	OWNED *opened = audit_opened();
	OWNED *list = opened ? PyObject_CallOneArg(helper(HELPER_SOURCES), opened) : NULL;
	char **sources = list ? strings_of(list) : NULL;

	PyErr_Clear();
	return sources;
}

const char *python_version(void)
{
	static char version[32];

	if (!version[0])
		snprintf(version, sizeof(version), "%.*s", (int)strcspn(Py_GetVersion(), " "), Py_GetVersion());
	return version;
}

static int rules_set(const struct configure_message *configure)
{
	OWNED *rules = unpack_strings(configure->forbid);
	OWNED *done = rules ? PyObject_CallOneArg(helper(HELPER_SET_RULES), rules) : NULL;

	if (done)
		cell_heed_rules(configure->forbid_exec);
	return done ? 0 : -1;
}

/* What may be installed, and what each session has from its first cell on. */
static int packages_set(const struct configure_message *configure)
{
	OWNED *requirements = unpack_strings(configure->requirements);
	OWNED *allow = unpack_strings(configure->packages_allow);
	OWNED *deny = unpack_strings(configure->packages_deny), *done = NULL;
	const char *sentence;

	if (requirements && allow && deny)
		done = PyObject_CallFunction(helper(HELPER_PACKAGES), "s#OOO", configure->packages.data,
					     (Py_ssize_t)configure->packages.size, requirements, allow, deny);
	sentence = done ? PyUnicode_AsUTF8(done) : NULL;
	if (sentence)
		refusals_set_packages(bytes_of(sentence));
	return sentence ? 0 : -1;
}

/* The garbage collector does not look at frozen objects. It runs a few times before the first fork. */
static void settle(void)
{
	if (call(HELPER_SETTLE) < 0)
		PyErr_Clear();
}

int python_start(const struct configure_message *configure, struct language_report *report)
{
	environment_set(configure);
	if (python_initialize(configure, report) < 0)
		return -1;
	if (python_prepare(configure->text_max) < 0 || refusals_prepare() < 0 || oserror_install() < 0 ||
	    rules_set(configure) < 0 || packages_set(configure) < 0)
		return fail_python(report, "the kernel's own modules");
	audit_note_opened();
	/* The objects that every cell needs lie together, before those of the libraries. */
	if (call(HELPER_CHECK_ENVIRONMENT) < 0)
		return fail_python(report, "the profile cannot be loaded");
	rehearse();
	if (import_or_warm(configure, report) < 0)
		return fail_python(report, "the profile cannot be loaded");
	return threads_check(report) < 0 || directories_find(report) < 0 ? -1 : 0;
}

void python_make_room(void)
{
	settle();
	gather_room();
}

int python_warm(struct language_report *report)
{
	if (import_or_warm(NULL, report) < 0)
		return fail_python(report, "what the profile preloads cannot be used");
	(void)PyType_ClearCache(); /* it has names that were looked up meanwhile and lie anywhere */
	rehearse();
	if (threads_check(report) < 0)
		return -1;
	python_make_room();
	return 0;
}

void python_settle(void)
{
	/* Each cell makes some objects anew. A rehearsal now makes them in the room that was just prepared. */
	rehearse();
	seeds_find();
	settle();
	output_flush_all();
	gather_memory();
}
