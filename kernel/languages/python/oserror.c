/* Refusals of the kernel. All its errors are made by one call, that of the type OSError with an errno, its text
 * and a path. We look at them there; if the policy explains one, a refusal replaces it. An error without a path
 * belongs to the event just before, if that can be told, or to one of a few functions without an event.
 *
 * A call of a type goes by its tp_vectorcall, which nothing inherits. So the types derived from OSError do not
 * change, and neither do its own __new__ and __init__, by which Python tells what a derived type has redefined.
 *
 * The rule is the hook's: if the cage is not surely the reason, the error stays as it is. Modes and owners of
 * files work as on any host. */
#include <Python.h>

#include "oserror.h"

#include "audit.h"
#include "owned.h"
#include "refusal.h"

#include <limits.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/statvfs.h>

/* ---- whether the cage is the reason ---- */

static bool may_be_ours(int number)
{
	return number == EPERM || number == EACCES || number == EROFS || number == ENOSYS;
}

/* A profile may let sessions write to a disk that the kernel has made read-only because of its errors. */
static bool disk_is_to_blame(struct bytes path)
{
	char directory[PATH_MAX];
	struct statvfs status;
	int n = snprintf(directory, sizeof(directory), "%.*s", (int)path.size, path.data);
	char *slash = strrchr(directory, '/');

	if (n < 0 || (size_t)n >= sizeof(directory) || !policy_path_granted(path) ||
	    policy_path_reason(path, WANT_CHANGE))
		return false;
	if (slash && slash > directory)
		*slash = '\0';
	return statvfs(slash ? directory : ".", &status) == 0 && (status.f_flag & ST_RDONLY);
}

/* NULL if the cage has nothing to do with the error. */
static const char *reason_of(int number, struct bytes path, enum want want)
{
	const char *reason = policy_path_reason(path, want);

	if (reason)
		return reason;
	if (number == EROFS)
		return disk_is_to_blame(path) ? NULL : "write-outside-workspace";
	return number == EPERM || number == ENOSYS || !policy_path_granted(path) ? "not-permitted" : NULL;
}

/* New reference: bytes. */
static PyObject *path_bytes(PyObject *path)
{
	PyObject *bytes = NULL;

	if (PyUnicode_Check(path))
		bytes = PyUnicode_EncodeFSDefault(path);
	else if (PyBytes_Check(path))
		Py_INCREF(bytes = path);
	if (!bytes)
		PyErr_Clear();
	return bytes;
}

/* ---- errors when they are made ---- */

/* New reference; NULL if the cage is not the reason. */
static PyObject *explain_path(int number, struct bytes path, const PyOSErrorObject *error)
{
	const struct audit_event *event = audit_last_event();
	struct refusal refusal = {.event = "os", .kind = "path"};
	enum want want = WANT_READ;

	if (audit_event_about(event, path)) {
		refusal.event = event->name;
		want = event->want;
	}
	refusal.reason = reason_of(number, path, want);
	if (!refusal.reason)
		return NULL;
	refusal_target(&refusal, path);
	return refusal_error(&refusal, number, error->filename, error->filename2);
}

static PyObject *explain_filename(int number, const PyOSErrorObject *error)
{
	PyObject *bytes = path_bytes(error->filename), *told = NULL;

	if (bytes)
		told = explain_path(
			number, (struct bytes){PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes)}, error);
	Py_XDECREF(bytes);
	return told;
}

/* For an error that names no path. */
static PyObject *explain_event(int number, const PyOSErrorObject *error)
{
	const struct audit_event *event = audit_last_event();
	struct refusal refusal = {.event = event->name, .kind = event->kind, .reason = event->alone};
	struct bytes target = {event->path, MIN(event->size, sizeof(event->path))};

	if (!event->name || (!event->alone && !event->unnamed))
		return NULL;
	if (!event->alone)
		return explain_path(number, target, error);
	refusal_target(&refusal, target);
	return refusal_error(&refusal, number, NULL, NULL);
}

/* Whether the kernel has made this error. If code makes one up, errno has another value or the text differs. */
static bool is_of_the_kernel(const PyOSErrorObject *error, int number)
{
	return may_be_ours(number) && error->myerrno && PyLong_Check(error->myerrno) &&
	       PyLong_AsLong(error->myerrno) == number && error->strerror && PyUnicode_Check(error->strerror) &&
	       PyUnicode_CompareWithASCIIString(error->strerror, strerror(number)) == 0;
}

/* New reference. */
static PyObject *tuple_of(PyObject *const *items, Py_ssize_t n)
{
	PyObject *tuple = PyTuple_New(n);

	for (Py_ssize_t i = 0; tuple && i < n; i++) {
		Py_INCREF(items[i]);
		PyTuple_SET_ITEM(tuple, i, items[i]);
	}
	return tuple;
}

/* Calls @type as if it had no tp_vectorcall. New reference. */
static PyObject *call_plainly(PyObject *type, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
	PyObject *values = tuple_of(args, n), *keywords = names ? PyDict_New() : NULL, *result = NULL;
	int r = values && (keywords || !names) ? 0 : -1;

	for (Py_ssize_t i = 0; !r && names && i < PyTuple_GET_SIZE(names); i++)
		r = PyDict_SetItem(keywords, PyTuple_GET_ITEM(names, i), args[n + i]);
	if (!r)
		result = PyType_Type.tp_call(type, values, keywords);
	Py_XDECREF(values);
	Py_XDECREF(keywords);
	return result;
}

static PyObject *call_error(PyObject *type, PyObject *const *args, size_t n, PyObject *names)
{
	int number = errno;
	PyObject *error = call_plainly(type, args, PyVectorcall_NARGS(n), names), *told;
	const PyOSErrorObject *members = (const PyOSErrorObject *)error;

	/* This flag says that Python code makes the error, at least code that is not called often. C code that
	 * makes an error from errno does not set it. */
	if (!error || !policy.armed || (n & PY_VECTORCALL_ARGUMENTS_OFFSET) || !is_of_the_kernel(members, number))
		return error;
	told = members->filename ? explain_filename(number, members) : explain_event(number, members);
	if (!told) {
		PyErr_Clear();
		return error;
	}
	Py_DECREF(error);
	return told;
}

/* The text of a refusal, for errors that stay of another type. New reference, or NULL. */
static PyObject *refused_line(struct refusal *refusal, struct bytes target)
{
	OWNED *told = NULL;
	PyObject *line;

	refusal_target(refusal, target);
	told = refusal_error(refusal, EPERM, NULL, NULL);
	line = told ? PyObject_Str(told) : NULL;
	PyErr_Clear();
	return line;
}

/* ---- sqlite ---- */

/* If @message says that a database cannot be opened, and the policy is the reason: the line to say instead, a new
 * reference. Else NULL. */
static PyObject *explain_database(PyObject *message)
{
	static const char begin[] = "unable to open database: ";
	struct refusal refusal = {.event = "sqlite3", .kind = "path"};
	const char *text = PyUnicode_Check(message) ? PyUnicode_AsUTF8(message) : NULL;
	struct bytes path =
		bytes_of(text && strncmp(text, begin, strlen(begin)) == 0 ? text + strlen(begin) : NULL);

	PyErr_Clear();
	if (path.size > 0)
		refusal.reason = policy_path_reason(path, WANT_CHANGE);
	return refusal.reason ? refused_line(&refusal, path) : NULL;
}

/* ATTACH and VACUUM INTO name a file in their text, so no event names it. The error stays one of sqlite's. */
static PyObject *call_database_error(PyObject *type, PyObject *const *args, size_t n, PyObject *names)
{
	PyObject *line = PyVectorcall_NARGS(n) == 1 && !names ? explain_database(args[0]) : NULL, *error;

	error = call_plainly(type, line ? &line : args, PyVectorcall_NARGS(n), names);
	Py_XDECREF(line);
	return error;
}

void oserror_watch_sqlite(void)
{
	PyObject *modules = PyImport_GetModuleDict(), *module, *error = NULL;

	module = PyDict_GetItemString(modules, "_sqlite3"); /* borrowed */
	if (module)
		error = PyObject_GetAttrString(module, "OperationalError");
	if (error && PyType_Check(error))
		((PyTypeObject *)error)->tp_vectorcall = call_database_error;
	Py_XDECREF(error);
	PyErr_Clear();
}

/* ---- lookups of names ---- */

/* Names are looked up over TCP, if connections to the port of name servers are granted. There is no other way:
 * neither Landlock nor seccomp can tell a datagram to a name server from any other. */
static bool nobody_to_ask(PyObject *number)
{
	long r = PyLong_Check(number) ? PyLong_AsLong(number) : 0;

	return policy.armed && policy.network_tcp && !policy_port(NAMESERVER_PORT) &&
	       (r == EAI_AGAIN || r == EAI_NONAME);
}

/* The line names the host if Python has told which. New reference, or NULL. */
static PyObject *explain_lookup(void)
{
	const struct audit_event *event = audit_last_event();
	struct refusal refusal = {.event = "socket.getaddrinfo", .kind = "address", .reason = "names-not-granted"};
	struct bytes host = bytes_of("a name");

	if (event->name && strncmp(event->name, "socket.get", strlen("socket.get")) == 0)
		host = (struct bytes){event->path, MIN(event->size, sizeof(event->path))};
	return refused_line(&refusal, host);
}

/* The error stays one of socket's, with its number, because code that asks whether a name is known must be able to
 * go on. */
static PyObject *call_lookup_error(PyObject *type, PyObject *const *args, size_t n, PyObject *names)
{
	OWNED *line = PyVectorcall_NARGS(n) == 2 && !names && nobody_to_ask(args[0]) ? explain_lookup() : NULL;
	PyObject *error;

	if (line)
		error = call_plainly(type, (PyObject *[]){args[0], line}, 2, NULL);
	else
		error = call_plainly(type, args, PyVectorcall_NARGS(n), names);
	return error;
}

static int watch_lookups(void)
{
	OWNED *module = PyImport_ImportModule("_socket");
	OWNED *error = module ? PyObject_GetAttrString(module, "gaierror") : NULL;

	if (error && PyType_Check(error))
		((PyTypeObject *)error)->tp_vectorcall = call_lookup_error;
	return error ? 0 : -1;
}

/* ---- functions without an event ---- */

/* Module, its name in events, function; whether the first argument is a path that is changed. */
/* clang-format off */
#define ALL_WATCHED(WATCHED) \
	WATCHED(posix, os, mkfifo, true) \
	WATCHED(posix, os, mknod, true) \
	WATCHED(posix, os, chroot, true) \
	WATCHED(posix, os, killpg, false) \
	WATCHED(posix, os, setuid, false) \
	WATCHED(posix, os, setgid, false) \
	WATCHED(posix, os, seteuid, false) \
	WATCHED(posix, os, setegid, false) \
	WATCHED(posix, os, setreuid, false) \
	WATCHED(posix, os, setregid, false) \
	WATCHED(posix, os, setresuid, false) \
	WATCHED(posix, os, setresgid, false) \
	WATCHED(posix, os, setgroups, false) \
	WATCHED(posix, os, nice, false) \
	WATCHED(posix, os, setpriority, false) \
	WATCHED(posix, os, sched_setaffinity, false) \
	WATCHED(posix, os, sched_setscheduler, false) \
	WATCHED(posix, os, sched_setparam, false) \
	WATCHED(posix, os, splice, false) \
	WATCHED(posix, os, openpty, false) \
	WATCHED(posix, os, getpgid, false) \
	WATCHED(posix, os, getsid, false) \
	WATCHED(posix, os, getpriority, false) \
	WATCHED(posix, os, sched_getaffinity, false) \
	WATCHED(posix, os, sched_rr_get_interval, false) \
	WATCHED(_socket, socket, socketpair, false) \
	WATCHED(time, time, clock_settime, false)

#define WATCHED_NUMBER(module, event, function, path) WATCHED_##function,
#define WATCHED_ROW(module, event, function, path) {#module, #function, #event "." #function, path},
/* clang-format on */

enum { ALL_WATCHED(WATCHED_NUMBER) WATCHED_N };

static const struct watched {
	const char *module, *function, *event;
	bool path;
} watched[] = {ALL_WATCHED(WATCHED_ROW)};

/* The functions as they were. */
static PyObject *originals[WATCHED_N];

/* Sets the event that Python would tell if it told any. */
static void event_set(const struct watched *function, PyObject *const *args, Py_ssize_t n)
{
	struct audit_event event = {.name = function->event, .want = WANT_CHANGE, .unnamed = true};
	PyObject *text, *all;
	const char *data;
	Py_ssize_t size;

	text = function->path && n > 0 ? path_bytes(args[0]) : NULL;
	if (text) {
		audit_set_event(&event, (struct bytes){PyBytes_AS_STRING(text), (size_t)PyBytes_GET_SIZE(text)});
	} else {
		event.alone = "not-permitted";
		event.kind = "arguments";
		all = tuple_of(args, n);
		text = all ? PyObject_Repr(all) : NULL;
		Py_XDECREF(all);
		data = text ? PyUnicode_AsUTF8AndSize(text, &size) : NULL;
		/* Without the parentheses of the tuple, and without the comma of a tuple of one. */
		if (data && size > 2)
			audit_set_event(&event,
					(struct bytes){data + 1, (size_t)size - (data[size - 2] == ',' ? 3 : 2)});
	}
	Py_XDECREF(text);
	PyErr_Clear();
}

static PyObject *watched_call(int number, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
	PyObject *result;

	if (number == WATCHED_openpty && audit_check_terminal(watched[number].event) < 0)
		return NULL;
	event_set(&watched[number], args, n);
	result = PyObject_Vectorcall(originals[number], args, (size_t)n, names);
	audit_set_event(NULL, (struct bytes){0});
	return result;
}

/* clang-format off */
#define WATCHED_CALL(module, event, function, path) \
	static PyObject *call_##function(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) \
	{ \
		(void)self; \
		return watched_call(WATCHED_##function, args, n, names); \
	}
#define WATCHED_METHOD(module, event, function, path) \
	{.ml_meth = (PyCFunction)(void (*)(void))call_##function, .ml_flags = METH_FASTCALL | METH_KEYWORDS},
/* clang-format on */

ALL_WATCHED(WATCHED_CALL)

static PyMethodDef methods[] = {ALL_WATCHED(WATCHED_METHOD)};

/* Others hold the function object already, so it stays. It exchanges its content with a new function object. */
static int watched_make(size_t i, PyCFunctionObject *function)
{
	PyMethodDef *method = function->m_ml;
	vectorcallfunc call = function->vectorcall;
	PyCFunctionObject *other;

	methods[i].ml_name = method->ml_name;
	methods[i].ml_doc = method->ml_doc;
	originals[i] = PyCFunction_NewEx(&methods[i], function->m_self, function->m_module);
	other = (PyCFunctionObject *)originals[i];
	if (!other)
		return -1;
	function->m_ml = other->m_ml;
	function->vectorcall = other->vectorcall;
	other->m_ml = method;
	other->vectorcall = call;
	return 0;
}

static int watched_install(size_t i)
{
	OWNED *module = PyImport_ImportModule(watched[i].module), *function = NULL;
	int r = module ? 0 : -1;

	function = module ? PyObject_GetAttrString(module, watched[i].function) : NULL;
	if (function && PyCFunction_CheckExact(function))
		r = watched_make(i, (PyCFunctionObject *)function);
	else if (module)
		PyErr_Clear(); /* not every host has every function */
	return r;
}

static int set_renew(PyObject *set)
{
	OWNED *items = PySequence_List(set);
	int r = items ? PySet_Clear(set) : -1;

	for (Py_ssize_t i = 0; !r && i < PyList_GET_SIZE(items); i++)
		r = PySet_Add(set, PyList_GET_ITEM(items, i));
	return r;
}

/* os keeps sets of functions. The hash of a function has changed with its content, so the sets are filled anew. */
static int sets_renew(void)
{
	static const char *const sets[] = {"supports_dir_fd", "supports_fd", "supports_follow_symlinks",
					   "supports_effective_ids"};
	OWNED *os = PyImport_ImportModule("os");
	int r = os ? 0 : -1;

	for (size_t i = 0; !r && i < ARRAY_SIZE(sets); i++) {
		PyObject *set = PyObject_GetAttrString(os, sets[i]);

		if (set && PySet_Check(set))
			r = set_renew(set);
		else
			PyErr_Clear();
		Py_XDECREF(set);
	}
	return r;
}

int oserror_install(void)
{
	int r = 0;

	((PyTypeObject *)PyExc_OSError)->tp_vectorcall = call_error;
	for (size_t i = 0; !r && i < ARRAY_SIZE(watched); i++)
		r = watched_install(i);
	if (!r)
		r = watch_lookups();
	return r ? r : sets_renew();
}
