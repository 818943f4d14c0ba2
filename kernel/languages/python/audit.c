/* The audit hook. Its rule: it refuses only what the cage refuses anyway, so that the refusal has a name and a
 * reason. If it is not sure, it leaves the decision to the kernel. It never tells whether a path outside exists:
 * all are refused alike. Where the session may read, a missing file gets the error of a plain Python. One table
 * says for each event which of its arguments are checked, and how. */
#include <Python.h>

#include "audit.h"

#include "oserror.h"
#include "owned.h"
#include "refusal.h"
#include "refusal/changeable.h"
#include "refusal/policy.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/socket.h>

static _Thread_local struct audit_event last;
static bool changed; /* whether a file may have been changed since the cell began */

/* Always -1, with the exception set. @path: for the exception, or NULL. */
static int refuse_path(const struct refusal *refusal, PyObject *path)
{
	OWNED *error = refusal_error(refusal, EPERM, path, NULL);

	if (error)
		PyErr_SetObject((PyObject *)Py_TYPE(error), error);
	return -1;
}

static int refuse(const struct refusal *refusal)
{
	return refuse_path(refusal, NULL);
}

/* ---- paths ---- */

/* The content of a str or bytes, borrowed; absent for anything else. @temp keeps an encoded str alive. */
static struct bytes text_of(PyObject *object, PyObject **temp)
{
	*temp = NULL;
	if (PyUnicode_Check(object)) {
		Py_ssize_t size;
		const char *text = PyUnicode_IS_READY(object) && PyUnicode_IS_COMPACT_ASCII(object)
					   ? PyUnicode_AsUTF8AndSize(object, &size)
					   : NULL;

		if (text)
			return (struct bytes){text, (size_t)size};
		*temp = PyUnicode_EncodeFSDefault(object);
		object = *temp;
		if (!object) {
			PyErr_Clear();
			return (struct bytes){0};
		}
	}
	if (PyBytes_Check(object))
		return (struct bytes){PyBytes_AS_STRING(object), (size_t)PyBytes_GET_SIZE(object)};
	return (struct bytes){0};
}

/* ---- what is remembered, to explain a later error of the kernel ---- */

static void target_remember(struct bytes text)
{
	last.size = text.size;
	if (text.size > 0)
		memcpy(last.path, text.data, MIN(text.size, sizeof(last.path)));
}

static void path_remember(struct bytes path, enum want want)
{
	last.want = want;
	target_remember(path);
}

static void alone_remember(const char *kind, struct bytes target, const char *reason)
{
	last.kind = kind;
	last.alone = reason;
	target_remember(target);
}

const struct audit_event *audit_last_event(void)
{
	return &last;
}

void audit_set_event(const struct audit_event *event, struct bytes path)
{
	last.name = NULL;
	if (!event)
		return;
	last = *event;
	target_remember(path);
}

bool audit_event_about(const struct audit_event *event, struct bytes path)
{
	return event->name && !event->alone && event->size == path.size &&
	       memcmp(event->path, path.data, MIN(path.size, sizeof(event->path))) == 0;
}

/* One path that an event names. */
struct trial {
	const char *event;
	PyObject *path;
	enum want want;
	enum target target;
	PyObject *moved;	  /* another path that must exist, too; or NULL */
	PyObject *first, *second; /* the names in the error of a plain Python; the second may be NULL */
};

/* Functions of shutil tell other events before they act, and know what to do if a file is missing. So they get no
 * error here. */
static int fail_plainly(const struct trial *trial, int number)
{
	if (strncmp(trial->event, "shutil.", 7) == 0)
		return 0;
	errno = number;
	PyErr_SetFromErrnoWithFilenameObjects(PyExc_OSError, trial->first, trial->second);
	return -1;
}

/* The error of a plain Python, if the session may know it; else 0. */
static int plain_error(const struct trial *trial, struct bytes path)
{
	OWNED *temp = NULL;
	int number = trial->moved ? policy_path_error(text_of(trial->moved, &temp), TARGET_THERE) : 0;

	return number ? number : policy_path_error(path, trial->target);
}

static int check(const struct trial *trial)
{
	struct refusal refusal = {.event = trial->event, .kind = "path"};
	OWNED *temp = NULL;
	struct bytes text = text_of(trial->path, &temp);
	int number = 0;

	path_remember(text, trial->want);
	refusal.reason = policy_path_reason(text, trial->want);
	if (refusal.reason)
		number = plain_error(trial, text);
	/* If a link of the session's leads outside, the refusal names the link. */
	if (refusal.reason && !number)
		refusal_target(&refusal, text);
	if (!refusal.reason)
		return 0;
	return number ? fail_plainly(trial, number) : refuse_path(&refusal, trial->path);
}

static int check_path(const char *event, PyObject *path, enum want want, enum target target)
{
	return check(&(struct trial){.event = event, .path = path, .want = want, .target = target, .first = path});
}

/* ---- the ways to check an argument ---- */

struct attempt {
	const char *event;
	int (*check)(const struct attempt *attempt, PyObject *args);
	int first, second; /* the positions of these arguments; -1: none */
};

static PyObject *argument(PyObject *args, int i)
{
	return i >= 0 && i < PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, i) : NULL;
}

static int check_read(const struct attempt *attempt, PyObject *args)
{
	PyObject *path = argument(args, attempt->first);

	return path ? check_path(attempt->event, path, WANT_READ, TARGET_THERE) : 0;
}

static int check_enter(const struct attempt *attempt, PyObject *args)
{
	PyObject *path = argument(args, attempt->first);

	return path ? check_path(attempt->event, path, WANT_ENTER, TARGET_THERE) : 0;
}

/* Whether the path is relative to an open directory. Then the path alone does not say where it leads. */
static bool is_relative_to_fd(PyObject *directory)
{
	return directory && PyLong_Check(directory) && PyLong_AsLong(directory) >= 0;
}

static int change(const struct attempt *attempt, PyObject *args, enum target target)
{
	PyObject *path = argument(args, attempt->first), *temp;
	char descriptor[32];

	if (!path)
		return 0;
	if (is_relative_to_fd(argument(args, attempt->second))) {
		path_remember(text_of(path, &temp), WANT_CHANGE);
		Py_XDECREF(temp);
		return 0;
	}
	if (PyLong_Check(path)) {
		snprintf(descriptor, sizeof(descriptor), "descriptor-%ld", PyLong_AsLong(path));
		alone_remember("path", bytes_of(descriptor), "write-outside-workspace");
		return 0;
	}
	return check_path(attempt->event, path, WANT_CHANGE, target);
}

/* first: the path; second: the descriptor of a directory, or -1. */
static int check_change(const struct attempt *attempt, PyObject *args)
{
	return change(attempt, args, TARGET_THERE);
}

static int check_make(const struct attempt *attempt, PyObject *args)
{
	return change(attempt, args, TARGET_NEW);
}

/* (from, to, two directories' descriptors). @moves: the file at `from` is changed, too. */
static int change_both(const struct attempt *attempt, PyObject *args, bool moves, enum target target)
{
	PyObject *from = argument(args, 0), *to = argument(args, 1);
	struct trial trial = {.event = attempt->event, .want = WANT_CHANGE, .first = from, .second = to};

	if (!from || !to || is_relative_to_fd(argument(args, 2)) || is_relative_to_fd(argument(args, 3)))
		return 0;
	if (moves) {
		trial.path = from;
		if (check(&trial) < 0)
			return -1;
		trial.moved = from;
	}
	trial.path = to;
	trial.target = target;
	return check(&trial);
}

static int check_move(const struct attempt *attempt, PyObject *args)
{
	return change_both(attempt, args, true, TARGET_ANY);
}

static int check_link(const struct attempt *attempt, PyObject *args)
{
	return change_both(attempt, args, true, TARGET_NEW);
}

static int check_symlink(const struct attempt *attempt, PyObject *args)
{
	return change_both(attempt, args, false, TARGET_NEW);
}

static int check_copy(const struct attempt *attempt, PyObject *args)
{
	PyObject *source = argument(args, 0), *target = argument(args, 1);

	if (!source || !target)
		return 0;
	if (check_path(attempt->event, source, WANT_READ, TARGET_THERE) < 0)
		return -1;
	return check_path(attempt->event, target, WANT_CHANGE, TARGET_ANY);
}

/* (path, mode, flags) */
static int check_open(const struct attempt *attempt, PyObject *args)
{
	PyObject *path = argument(args, 0), *flags = argument(args, 2);
	enum want want;
	long bits;

	if (!path || !flags || !PyLong_Check(flags) || !(PyUnicode_Check(path) || PyBytes_Check(path)))
		return 0;
	bits = PyLong_AsLong(flags);
	if (bits & O_PATH)
		return 0;
	want = (bits & O_ACCMODE) == O_RDONLY && !(bits & (O_CREAT | O_TRUNC)) ? WANT_READ : WANT_CHANGE;
	changed |= want == WANT_CHANGE;
	return check_path(attempt->event, path, want,
			  !(bits & O_CREAT) ? TARGET_THERE
			  : bits & O_EXCL   ? TARGET_NEW
					    : TARGET_ANY);
}

/* A shell command without the words that start the shell, so that `!ls`, os.system("ls") and shell=True are told
 * alike. */
static struct bytes without_shell(struct bytes command)
{
	const struct bytes shell = BYTES("/bin/sh -c ");

	if (command.size > shell.size && !memcmp(command.data, shell.data, shell.size))
		return (struct bytes){.data = command.data + shell.size, .size = command.size - shell.size};
	return command;
}

/* A list of arguments as a shell would show it. */
static void command_put(struct refusal *refusal, PyObject *command)
{
	PyObject *joined = NULL, *blank = NULL, *temp;

	if (PyList_Check(command) || PyTuple_Check(command)) {
		PyObject *parts = PySequence_List(command);

		blank = PyUnicode_FromString(" ");
		for (Py_ssize_t i = 0; parts && i < PyList_GET_SIZE(parts); i++) {
			PyObject *part = PyList_GET_ITEM(parts, i), *text;

			if (PyUnicode_Check(part))
				continue;
			text = PyBytes_Check(part) ? PyUnicode_DecodeFSDefaultAndSize(PyBytes_AS_STRING(part),
										      PyBytes_GET_SIZE(part))
						   : PyUnicode_FromString("?");
			if (text)
				PyList_SetItem(parts, i, text);
		}
		joined = parts && blank ? PyUnicode_Join(blank, parts) : NULL;
		Py_XDECREF(parts);
		Py_XDECREF(blank);
		command = joined;
	}
	PyErr_Clear();
	if (command)
		refusal_target(refusal, without_shell(text_of(command, &temp)));
	else
		return;
	Py_XDECREF(temp);
	Py_XDECREF(joined);
}

/* first: the command line; second: the program, which is told if there is no command line. */
static int check_command(const struct attempt *attempt, PyObject *args)
{
	struct refusal refusal = {.event = attempt->event, .kind = "command", .reason = "subprocess-not-granted"};
	PyObject *command = argument(args, attempt->first), *program = argument(args, attempt->second);

	if (policy.subprocess)
		return 0;
	if (command)
		command_put(&refusal, command);
	if (!refusal.target[0] && program)
		command_put(&refusal, program);
	return refuse(&refusal);
}

int audit_check_terminal(const char *event)
{
	struct refusal refusal = {
		.event = event, .kind = "path", .target = "/dev/ptmx", .reason = policy.no_terminals};

	return policy.armed && policy.no_terminals ? refuse(&refusal) : 0;
}

static int check_terminal(const struct attempt *attempt, PyObject *args)
{
	int r = attempt->first >= 0 ? check_command(attempt, args) : 0;

	return r ? r : audit_check_terminal(attempt->event);
}

/* The target is host:port if there is a port, else @host as text. */
static void address_put(struct refusal *refusal, PyObject *host, PyObject *port)
{
	PyObject *text = port ? PyUnicode_FromFormat("%S:%S", host, port) : PyObject_Str(host), *temp;

	if (text) {
		refusal_target(refusal, text_of(text, &temp));
		Py_XDECREF(temp);
		Py_DECREF(text);
	}
	PyErr_Clear();
}

static bool port_granted(PyObject *port)
{
	long number = port && PyLong_Check(port) ? PyLong_AsLong(port) : -1;

	return number > 0 && policy_port((uint64_t)number);
}

static int refuse_address(const struct attempt *attempt, PyObject *host, PyObject *port, const char *reason)
{
	struct refusal refusal = {.event = attempt->event, .kind = "address", .reason = reason};

	address_put(&refusal, host, port);
	return refuse(&refusal);
}

/* first: a host, a URL, or an address of any shape; second: its port, if it is an argument of its own. */
static int check_host(const struct attempt *attempt, PyObject *args)
{
	PyObject *host = argument(args, attempt->first);

	if (policy.network || !host || host == Py_None)
		return 0;
	return refuse_address(attempt, host, argument(args, attempt->second), "network-not-granted");
}

/* The lookup itself finds out whether a name server can be reached. If not, oserror.c explains its error. */
static int check_lookup(const struct attempt *attempt, PyObject *args)
{
	PyObject *host = argument(args, attempt->first), *temp;
	int r = check_host(attempt, args);

	if (r || !host)
		return r;
	target_remember(text_of(host, &temp));
	Py_XDECREF(temp);
	return 0;
}

static int check_url(const struct attempt *attempt, PyObject *args)
{
	PyObject *url = argument(args, 0);
	const char *text = url && PyUnicode_Check(url) ? PyUnicode_AsUTF8(url) : NULL;

	PyErr_Clear();
	if (!text || strncmp(text, "file:", 5) == 0 || strncmp(text, "data:", 5) == 0)
		return 0;
	return check_host(attempt, args);
}

/* (socket, address). An address of the internet is a tuple. */
static int check_address(const struct attempt *attempt, PyObject *args)
{
	PyObject *address = argument(args, 1), *host, *port;

	if (!address)
		return 0;
	if (!PyTuple_Check(address) || PyTuple_GET_SIZE(address) < 2)
		return refuse_address(attempt, address, NULL, "local-sockets-not-granted");
	host = PyTuple_GET_ITEM(address, 0);
	port = PyTuple_GET_ITEM(address, 1);
	if (!policy.network)
		return refuse_address(attempt, host, port, "network-not-granted");
	if (policy.network_tcp && (attempt->first || !port_granted(port)))
		return refuse_address(attempt, host, port, "port-not-granted");
	return 0;
}

/* (socket, family, type, protocol). Also for both ends of a socket pair. */
static int check_socket(const struct attempt *attempt, PyObject *args)
{
	struct refusal refusal = {.event = attempt->event, .kind = "address", .reason = "network-not-granted"};
	PyObject *family = argument(args, 1);

	/* -1: the socket is made of a descriptor that is open already. */
	if (!family || !PyLong_Check(family) || PyLong_AsLong(family) < 0)
		return 0;
	snprintf(refusal.target, sizeof(refusal.target), "family-%ld", PyLong_AsLong(family));
	if (!policy.network && PyLong_AsLong(family) != AF_UNIX)
		return refuse(&refusal);
	alone_remember("address", bytes_of(refusal.target),
		       PyLong_AsLong(family) == AF_UNIX ? "local-sockets-not-granted" : "socket-not-granted");
	return 0;
}

/* For settings that a session may not change. The kernel will refuse; this remembers how to explain that. */
static int check_setting(const struct attempt *attempt, PyObject *args)
{
	PyObject *value = argument(args, attempt->first), *text = value ? PyObject_Str(value) : NULL, *temp;

	alone_remember("value", text_of(text ? text : Py_None, &temp), "not-permitted");
	Py_XDECREF(temp);
	Py_XDECREF(text);
	PyErr_Clear();
	return 0;
}

/* "file:PATH?options". If there are escapes in it, the kernel decides. */
static struct bytes uri_path(struct bytes uri)
{
	const char *end = memchr(uri.data, '?', uri.size);

	if (memchr(uri.data, '%', uri.size) || (uri.size > 7 && memcmp(uri.data, "file://", 7) == 0))
		return (struct bytes){0};
	return (struct bytes){uri.data + 5, (end ? (size_t)(end - uri.data) : uri.size) - 5};
}

/* sqlite opens a database for writing; if that fails, for reading. If there is no such file, it makes one. */
static int check_database(const struct attempt *attempt, PyObject *args)
{
	PyObject *database = argument(args, 0), *temp, *path = NULL;
	struct bytes text = text_of(database ? database : Py_None, &temp);
	int r = 0;

	oserror_watch_sqlite();
	if (text.size > 5 && memcmp(text.data, "file:", 5) == 0)
		text = uri_path(text);
	if (text.size > 0 && text.data[0] != ':')
		path = PyBytes_FromStringAndSize(text.data, (Py_ssize_t)text.size);
	Py_XDECREF(temp);
	if (path) {
		bool there = access(PyBytes_AS_STRING(path), F_OK) == 0;

		r = check_path(attempt->event, path, WANT_READ, TARGET_THERE);
		if (!r && !there)
			r = check_path(attempt->event, path, WANT_CHANGE, TARGET_ANY);
	} else {
		PyErr_Clear();
	}
	Py_XDECREF(path);
	return r;
}

/* Only a library that is named by a path is checked. A bare name is left to the linker. */
static int check_library(const struct attempt *attempt, PyObject *args)
{
	PyObject *name = argument(args, 0), *temp;
	struct bytes text = text_of(name ? name : Py_None, &temp);
	bool path = text.size > 0 && memchr(text.data, '/', text.size);

	Py_XDECREF(temp);
	return path ? check_path(attempt->event, name, WANT_READ, TARGET_THERE) : 0;
}

static int check_kill(const struct attempt *attempt, PyObject *args)
{
	struct refusal refusal = {
		.event = attempt->event, .kind = "pid", .target = "-1", .reason = "kill-everything"};
	PyObject *pid = argument(args, 0);

	if (!pid || !PyLong_Check(pid))
		return 0;
	if (PyLong_AsLong(pid) == -1)
		return refuse(&refusal);
	snprintf(refusal.target, sizeof(refusal.target), "%ld", PyLong_AsLong(pid));
	alone_remember("pid", bytes_of(refusal.target), "not-permitted");
	return 0;
}

/* Sorted by name, for bsearch. */
/* clang-format off */
static const struct attempt attempts[] = {
	{"ctypes.dlopen", check_library, 0, -1},
	{"ftplib.connect", check_host, 1, 2},
	{"http.client.connect", check_host, 1, 2},
	{"imaplib.open", check_host, 1, 2},
	{"nntplib.connect", check_host, 1, 2},
	{"open", check_open, 0, -1},
	{"os.chdir", check_enter, 0, -1},
	{"os.chmod", check_change, 0, 2},
	{"os.chown", check_change, 0, 3},
	{"os.exec", check_command, 1, 0},
	{"os.forkpty", check_terminal, -1, -1},
	{"os.kill", check_kill, 0, -1},
	{"os.link", check_link, 0, 1},
	{"os.listdir", check_read, 0, -1},
	{"os.mkdir", check_make, 0, 2},
	{"os.posix_spawn", check_command, 1, 0},
	{"os.remove", check_change, 0, 1},
	{"os.removexattr", check_change, 0, -1},
	{"os.rename", check_move, 0, 1},
	{"os.rmdir", check_change, 0, 1},
	{"os.scandir", check_read, 0, -1},
	{"os.setxattr", check_change, 0, -1},
	{"os.symlink", check_symlink, 0, 1},
	{"os.system", check_command, 0, -1},
	{"os.truncate", check_change, 0, -1},
	{"os.utime", check_change, 0, 3},
	{"poplib.connect", check_host, 1, 2},
	{"pty.spawn", check_terminal, 0, -1},
	{"resource.prlimit", check_setting, 0, -1},
	{"resource.setrlimit", check_setting, 0, -1},
	{"shutil.chown", check_change, 0, -1},
	{"shutil.copyfile", check_copy, 0, 1},
	{"shutil.copymode", check_copy, 0, 1},
	{"shutil.copystat", check_copy, 0, 1},
	{"shutil.copytree", check_copy, 0, 1},
	{"shutil.make_archive", check_change, 0, -1},
	{"shutil.move", check_move, 0, 1},
	{"shutil.rmtree", check_change, 0, 1},
	{"shutil.unpack_archive", check_copy, 0, 1},
	{"smtplib.connect", check_host, 1, 2},
	{"socket.__new__", check_socket, 0, -1},
	{"socket.bind", check_address, 1, -1},
	{"socket.connect", check_address, 0, -1},
	{"socket.getaddrinfo", check_lookup, 0, 1},
	{"socket.gethostbyaddr", check_host, 0, -1},
	{"socket.gethostbyname", check_lookup, 0, -1},
	{"socket.sendto", check_address, 1, -1},
	{"socket.sethostname", check_setting, 0, -1},
	{"sqlite3.connect", check_database, 0, -1},
	{"subprocess.Popen", check_command, 1, 0},
	{"telnetlib.Telnet.open", check_host, 1, 2},
	{"urllib.Request", check_url, 0, -1},
};
/* clang-format on */

static int event_compare(const void *name, const void *attempt)
{
	return strcmp(name, ((const struct attempt *)attempt)->event);
}

/* Whether the event may change a file. Programs and libraries may do anything. */
static bool may_change(const struct attempt *attempt)
{
	int (*const changing[])(const struct attempt *, PyObject *) = {
		check_change,  check_make, check_move,	  check_link,	  check_symlink,
		check_command, check_copy, check_library, check_database, check_terminal};

	for (size_t i = 0; i < ARRAY_SIZE(changing); i++)
		if (attempt->check == changing[i])
			return true;
	return false;
}

static PyObject *opened; /* a list of bytes; NULL: nobody wants to know any more */

/* While a template starts, nothing is opened that sessions may write to. */
static int check_changeable(const char *event, PyObject *args)
{
	bool import = strcmp(event, "import") == 0;
	PyObject *path, *encoded = NULL;
	bool refused;

	if ((!import && strcmp(event, "open") != 0) || PyTuple_GET_SIZE(args) < 2)
		return 0;
	path = PyTuple_GET_ITEM(args, import ? 1 : 0); /* borrowed; None and descriptors are not names */
	if (!PyUnicode_Check(path) && !PyBytes_Check(path))
		return 0;
	if (!PyUnicode_FSConverter(path, &encoded))
		return -1;
	refused = changeable_is(PyBytes_AS_STRING(encoded));
	if (opened && PyList_Append(opened, encoded) < 0)
		PyErr_Clear();
	Py_DECREF(encoded);
	if (refused)
		PyErr_SetString(PyExc_ImportError, changeable_found());
	return refused ? -1 : 0;
}

static int hook(const char *event, PyObject *args, void *data)
{
	const struct attempt *attempt;

	if (!policy.armed)
		return check_changeable(event, args);
	attempt = bsearch(event, attempts, ARRAY_SIZE(attempts), sizeof(attempts[0]), event_compare);
	if (!attempt) {
		last.name = NULL; /* so the event before this one explains no later error */
		return 0;
	}
	changed |= may_change(attempt);
	last.name = attempt->event;
	last.alone = NULL;
	last.unnamed = false;
	last.size = 0;
	return attempt->check(attempt, args);
}

/* ---- the hook ---- */

PyObject *audit_opened(void)
{
	return steal_ptr(&opened);
}

void audit_note_opened(void)
{
	opened = PyList_New(0);
	PyErr_Clear();
}

int audit_install(void)
{
	return PySys_AddAuditHook(hook, NULL) < 0 ? -EPERM : 0;
}

void audit_begin_cell(void)
{
	changed = false;
}

bool audit_saw_change(void)
{
	return changed;
}
