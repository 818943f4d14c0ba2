/* Refusals of the kernel. An OSError comes into being in one place, OSError.__new__, with its errno and its path:
 * there it is looked at, and if the policy explains it, something else comes into being. Errors that name no path
 * are those of the event just before, where that can be told, or of one of a few functions of which Python tells no
 * event.
 *
 * Its rule is the hook's: what the cage is not surely the reason for is left as it is. Modes and owners of files go
 * on being what they are on any host. */
#include <Python.h>

#include "doors.h"

#include "audit.h"
#include "refusal.h"

#include <limits.h>
#include <stdio.h>
#include <sys/statvfs.h>

static newfunc error_new;

/* ---- why ---- */

static bool may_be_ours(int number)
{
	return number == EPERM || number == EACCES || number == EROFS || number == ENOSYS;
}

/* What the profile lets be changed may lie on a disk that has errors. */
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

/* NULL: the cage has nothing to do with it. */
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

/* ---- errors as they come into being ---- */

/* New reference, or NULL. */
static PyObject *explain_path(int number, struct bytes path)
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
	return refusal_error(&refusal, number);
}

static PyObject *explain_filename(int number, PyObject *filename)
{
	PyObject *bytes = path_bytes(filename), *error = NULL;

	if (bytes)
		error = explain_path(number,
				     (struct bytes){PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes)});
	Py_XDECREF(bytes);
	return error;
}

/* The error names nothing. */
static PyObject *explain_event(int number)
{
	const struct audit_event *event = audit_last_event();
	struct refusal refusal = {.event = event->name, .kind = event->kind, .reason = event->alone};
	struct bytes target = {event->path, MIN(event->size, sizeof(event->path))};

	if (!event->name || (!event->alone && !event->unnamed))
		return NULL;
	if (!event->alone)
		return explain_path(number, target);
	refusal_target(&refusal, target);
	return refusal_error(&refusal, number);
}

/* The kernel's: whoever makes one up has another errno at hand than the one he gives it. */
static PyObject *new_error(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
	int number = errno;
	PyObject *error = error_new(type, args, keywords), *told;
	const PyOSErrorObject *members = (const PyOSErrorObject *)error;

	if (!error || !policy.armed || !may_be_ours(number) || (type->tp_flags & Py_TPFLAGS_HEAPTYPE) ||
	    !members->myerrno || !PyLong_Check(members->myerrno) || PyLong_AsLong(members->myerrno) != number)
		return error;
	told = members->filename ? explain_filename(number, members->filename) : explain_event(number);
	if (!told) {
		PyErr_Clear();
		return error;
	}
	Py_DECREF(error);
	return told;
}

/* ---- sqlite ---- */

static initproc database_error_init;

/* ATTACH and VACUUM INTO open what is named in their text. The error stays one of sqlite's. */
static int init_database_error(PyObject *self, PyObject *args, PyObject *keywords)
{
	static const char begin[] = "unable to open database: ";
	struct refusal refusal = {.event = "sqlite3", .kind = "path"};
	PyObject *message = PyTuple_GET_SIZE(args) == 1 ? PyTuple_GET_ITEM(args, 0) : Py_None, *told = NULL;
	const char *text = PyUnicode_Check(message) ? PyUnicode_AsUTF8(message) : NULL;
	struct bytes path =
		bytes_of(text && strncmp(text, begin, strlen(begin)) == 0 ? text + strlen(begin) : NULL);
	int r;

	PyErr_Clear();
	if (path.size > 0)
		refusal.reason = policy_path_reason(path, WANT_CHANGE);
	if (refusal.reason) {
		refusal_target(&refusal, path);
		told = refusal_error(&refusal, EPERM);
	}
	if (!told) {
		PyErr_Clear();
		return database_error_init(self, args, keywords);
	}
	r = database_error_init(self, ((PyBaseExceptionObject *)told)->args, NULL);
	Py_DECREF(told);
	return r;
}

void doors_watch_sqlite(void)
{
	PyObject *modules = PyImport_GetModuleDict(), *module, *error = NULL;

	module = database_error_init ? NULL : PyDict_GetItemString(modules, "_sqlite3"); /* borrowed */
	if (module)
		error = PyObject_GetAttrString(module, "OperationalError");
	if (error && PyType_Check(error)) {
		database_error_init = ((PyTypeObject *)error)->tp_init;
		((PyTypeObject *)error)->tp_init = init_database_error;
	}
	Py_XDECREF(error);
	PyErr_Clear();
}

/* ---- functions without an event ---- */

/* Each has a name of its own after the dot. */
static const struct door {
	const char *module, *event;
	bool path; /* its first argument is one, to be changed */
} doors[] = {
	{"posix", "os.mkfifo", true},
	{"posix", "os.mknod", true},
	{"posix", "os.chroot", true},
	{"posix", "os.killpg", false},
	{"posix", "os.setuid", false},
	{"posix", "os.setgid", false},
	{"posix", "os.seteuid", false},
	{"posix", "os.setegid", false},
	{"posix", "os.setreuid", false},
	{"posix", "os.setregid", false},
	{"posix", "os.setresuid", false},
	{"posix", "os.setresgid", false},
	{"posix", "os.setgroups", false},
	{"posix", "os.nice", false},
	{"posix", "os.setpriority", false},
	{"posix", "os.sched_setaffinity", false},
	{"posix", "os.sched_setscheduler", false},
	{"posix", "os.sched_setparam", false},
	{"_socket", "socket.socketpair", false},
	{"time", "time.clock_settime", false},
};

static PyMethodDef methods[ARRAY_SIZE(doors)];

static const char *door_name(const struct door *door)
{
	return strchr(door->event, '.') + 1;
}

static const struct door *door_of(PyObject *function)
{
	const char *name = ((PyCFunctionObject *)function)->m_ml->ml_name;
	size_t i = 0;

	while (strcmp(door_name(&doors[i]), name) != 0)
		i++;
	return &doors[i];
}

/* As the event would be, if there were one. */
static void event_set(const struct door *door, PyObject *args)
{
	struct audit_event event = {.name = door->event, .want = WANT_CHANGE, .unnamed = true};
	PyObject *text;
	const char *data;
	Py_ssize_t size;

	text = door->path && PyTuple_GET_SIZE(args) > 0 ? path_bytes(PyTuple_GET_ITEM(args, 0)) : NULL;
	if (text) {
		audit_set_event(&event, (struct bytes){PyBytes_AS_STRING(text), (size_t)PyBytes_GET_SIZE(text)});
	} else {
		event.alone = "not-permitted";
		event.kind = "arguments";
		text = PyObject_Repr(args);
		data = text ? PyUnicode_AsUTF8AndSize(text, &size) : NULL;
		/* Without a tuple's parentheses, and the comma of a tuple of one. */
		if (data && size > 2)
			audit_set_event(&event,
					(struct bytes){data + 1, (size_t)size - (data[size - 2] == ',' ? 3 : 2)});
	}
	Py_XDECREF(text);
	PyErr_Clear();
}

/* Called in place of the function @self. */
static PyObject *door_call(PyObject *self, PyObject *args, PyObject *keywords)
{
	PyObject *result;

	event_set(door_of(self), args);
	result = PyObject_Call(self, args, keywords);
	audit_set_event(NULL, (struct bytes){0});
	return result;
}

/* os has taken over what it is made of, and keeps sets of functions that can do this or that. */
static int replace_in_os(const char *name, PyObject *original, PyObject *door)
{
	static const char *const sets[] = {"supports_dir_fd", "supports_fd", "supports_follow_symlinks"};
	PyObject *os = PyImport_ImportModule("os");
	int r = os && PyObject_HasAttrString(os, name) ? PyObject_SetAttrString(os, name, door) : os ? 0 : -1;

	for (size_t i = 0; !r && i < ARRAY_SIZE(sets); i++) {
		PyObject *set = PyObject_GetAttrString(os, sets[i]);

		if (!set || !PySet_Check(set))
			PyErr_Clear();
		else if (PySet_Contains(set, original) == 1)
			r = PySet_Add(set, door);
		Py_XDECREF(set);
	}
	Py_XDECREF(os);
	return r;
}

static int door_install(size_t i)
{
	PyObject *module = PyImport_ImportModule(doors[i].module), *original, *name, *door = NULL;
	int r = -1;

	original = module ? PyObject_GetAttrString(module, door_name(&doors[i])) : NULL;
	if (module && !original) {
		PyErr_Clear(); /* not every host has every function */
		Py_DECREF(module);
		return 0;
	}
	name = PyUnicode_FromString(doors[i].module);
	if (original && name && PyCFunction_Check(original)) {
		const PyMethodDef *method = ((PyCFunctionObject *)original)->m_ml;

		methods[i] = (PyMethodDef){.ml_name = method->ml_name,
					   .ml_meth = (PyCFunction)(void (*)(void))door_call,
					   .ml_flags = METH_VARARGS | METH_KEYWORDS,
					   .ml_doc = method->ml_doc};
		door = PyCFunction_NewEx(&methods[i], original, name);
	}
	if (door)
		r = PyObject_SetAttrString(module, door_name(&doors[i]), door);
	if (!r && strcmp(doors[i].module, "posix") == 0)
		r = replace_in_os(door_name(&doors[i]), original, door);
	Py_XDECREF(door);
	Py_XDECREF(name);
	Py_XDECREF(original);
	Py_XDECREF(module);
	return r;
}

/* The kernel's errors are all made as OSError, which chooses among the types derived from it. */
int doors_install(void)
{
	int r = 0;

	error_new = ((PyTypeObject *)PyExc_OSError)->tp_new;
	((PyTypeObject *)PyExc_OSError)->tp_new = new_error;
	for (size_t i = 0; !r && i < ARRAY_SIZE(doors); i++)
		r = door_install(i);
	return r;
}
