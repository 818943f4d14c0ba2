/* The audit hook. Its rule: it refuses only what the cage refuses anyway, so that the refusal comes with a name and
 * a reason; whatever it is not sure of it lets through to the kernel. It never tells whether a path outside exists:
 * all are refused alike. One table says for each event which of its arguments are tried, and how. */
#include <Python.h>

#include "audit.h"

#include "cage/places.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/socket.h>

#define BLOCKED_MAX 64
#define TARGET_MAX 512

static struct {
	bool armed;
	bool subprocess, network, network_tcp;
	uint64_t ports[32];
	size_t n_ports;
	struct places places;
	char workspace[PATH_MAX];
	size_t n_blocked;
	msgpack_sbuffer acts, blocked; /* the acts so far; the array made of them */
} audit;

/* ---- saying so ---- */

struct refusal {
	const char *event, *kind; /* kind: path, command, address */
	char target[TARGET_MAX], mode[16];
	const char *reason;
};

/* @text as something that fits on one line of valid UTF-8. */
static void target_put(struct refusal *refusal, struct bytes text)
{
	char *to = refusal->target, *end = refusal->target + sizeof(refusal->target) - 8;
	size_t i = 0;

	while (i < text.size && to < end) {
		size_t size = 1;

		while (size < 4 && i + size < text.size && ((unsigned char)text.data[i + size] & 0xc0) == 0x80)
			size++;
		if ((unsigned char)text.data[i] >= 0x20 && text.data[i] != 0x7f &&
		    utf8_valid((struct bytes){text.data + i, size})) {
			memcpy(to, text.data + i, size);
			to += size;
			i += size;
		} else {
			to += sprintf(to, "\\x%02x", (unsigned char)text.data[i++]);
		}
	}
	if (i < text.size)
		to = stpcpy(to, "...");
	*to = '\0';
}

static void blocked_note(const struct refusal *refusal, const char *line, size_t size)
{
	const struct blocked_act act = {.event = bytes_of(refusal->event),
					.target = bytes_of(refusal->target),
					.reason = bytes_of(refusal->reason)};
	char with_end[TARGET_MAX + 256];

	if (audit.n_blocked >= BLOCKED_MAX || wire_encode_body(&audit.acts, &blocked_act_schema, &act))
		return;
	audit.n_blocked++;
	size = (size_t)snprintf(with_end, sizeof(with_end), "%.*s\n", (int)size, line);
	/* Lost if it cannot be written: the exception says the same. */
	if (write(STDERR_FILENO, with_end, size) < 0)
		return;
}

/* Always -1, with the exception set. Its text is only this line, though it carries an errno as others of its kind
 * do. */
static int refuse(const struct refusal *refusal)
{
	char line[TARGET_MAX + 192];
	PyObject *error, *number;
	int size;

	size = snprintf(line, sizeof(line), "[AUDIT] blocked: event=%s %s=%s%s%s reason=%s", refusal->event,
			refusal->kind, refusal->target, refusal->mode[0] ? " mode=" : "", refusal->mode,
			refusal->reason);
	blocked_note(refusal, line, MIN((size_t)size, sizeof(line) - 1));
	error = PyObject_CallFunction(PyExc_PermissionError, "s", line);
	number = PyLong_FromLong(EPERM);
	if (error && number && PyObject_SetAttrString(error, "errno", number) == 0)
		PyErr_SetObject(PyExc_PermissionError, error);
	Py_XDECREF(number);
	Py_XDECREF(error);
	return -1;
}

/* ---- paths ---- */

/* What a str or bytes holds, borrowed; absent for anything else. @temp keeps an encoded str alive. */
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

/* Absolute and without "." and "..", by the letters alone. Returns its length, 0 if it does not fit. */
static size_t path_normalise(char out[PATH_MAX], struct bytes path)
{
	size_t size = 0, i = 0;

	if (path.size == 0 || path.data[0] != '/') {
		if (!getcwd(out, PATH_MAX))
			return 0;
		size = strcmp(out, "/") == 0 ? 0 : strlen(out);
	}
	while (i < path.size) {
		size_t start, length;

		while (i < path.size && path.data[i] == '/')
			i++;
		start = i;
		while (i < path.size && path.data[i] != '/')
			i++;
		length = i - start;
		if (length == 0 || (length == 1 && path.data[start] == '.'))
			continue;
		if (length == 2 && path.data[start] == '.' && path.data[start + 1] == '.') {
			while (size > 0 && out[--size] != '/')
				;
			continue;
		}
		if (size + length + 2 > PATH_MAX)
			return 0;
		out[size++] = '/';
		memcpy(out + size, path.data + start, length);
		size += length;
	}
	if (size == 0)
		out[size++] = '/';
	out[size] = '\0';
	return size;
}

enum want { WANT_READ, WANT_CHANGE };

/* NULL if it may be, or may well be. */
static const char *path_reason(const char *path, size_t size, enum want want)
{
	const struct place *place = places_find(&audit.places, path, size);

	if (!place)
		return want == WANT_READ ? "read-outside" : "write-outside-workspace";
	switch (place->kind) {
	case PLACE_HIDE:
		return want == WANT_READ ? "hidden" : "write-outside-workspace";
	case PLACE_READ:
	case PLACE_TEXT:
		return want == WANT_READ ? NULL : "write-outside-workspace";
	case PLACE_LINK: /* where it leads is for the kernel to see */
	case PLACE_WRITE:
	case PLACE_DEVICES:
	case PLACE_PROC:
	case PLACE_SCRATCH:
	case PLACE_SHM:
	case _PLACE_KIND_N:
		break;
	}
	return NULL;
}

/* A name may lead elsewhere by symbolic links in it; the last component need not exist. */
static const char *path_reason_resolved(char path[PATH_MAX], size_t size, enum want want)
{
	char real[PATH_MAX], *slash;

	if (!realpath(path, real)) {
		slash = strrchr(path, '/');
		if (!slash || slash == path)
			return path_reason(path, size, want);
		*slash = '\0';
		if (!realpath(path, real) || strlen(real) + strlen(slash + 1) + 2 > sizeof(real)) {
			*slash = '/';
			return path_reason(path, size, want);
		}
		*slash = '/';
		strcat(strcat(real, "/"), slash + 1);
	}
	return path_reason(real, strlen(real), want);
}

static int check_path(const char *event, PyObject *object, enum want want, const char *mode)
{
	struct refusal refusal = {.event = event, .kind = "path"};
	char path[PATH_MAX];
	struct bytes text;
	PyObject *temp;
	size_t size;

	text = text_of(object, &temp);
	size = text.data && text.size && !memchr(text.data, 0, text.size) ? path_normalise(path, text) : 0;
	if (size && path_reason(path, size, want)) {
		refusal.reason = path_reason_resolved(path, size, want);
		/* A link of ours that leads out is refused by the name that was tried. */
		if (refusal.reason)
			target_put(&refusal, text);
	}
	Py_XDECREF(temp);
	if (!refusal.reason)
		return 0;
	snprintf(refusal.mode, sizeof(refusal.mode), "%s", mode);
	return refuse(&refusal);
}

/* ---- the ways to try an argument ---- */

struct attempt {
	const char *event;
	int (*check)(const struct attempt *attempt, PyObject *args);
	int first, second; /* which arguments; -1: none */
};

static PyObject *argument(PyObject *args, int i)
{
	return i >= 0 && i < PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, i) : NULL;
}

static int check_read(const struct attempt *attempt, PyObject *args)
{
	PyObject *path = argument(args, attempt->first);

	return path ? check_path(attempt->event, path, WANT_READ, "") : 0;
}

/* Relative to a directory that somebody opened: the path says nothing. */
static bool is_relative_to_fd(PyObject *directory)
{
	return directory && PyLong_Check(directory) && PyLong_AsLong(directory) >= 0;
}

/* first: the path; second: a directory's descriptor, or -1. */
static int check_change(const struct attempt *attempt, PyObject *args)
{
	PyObject *path = argument(args, attempt->first);

	if (!path || is_relative_to_fd(argument(args, attempt->second)))
		return 0;
	return check_path(attempt->event, path, WANT_CHANGE, "");
}

static int check_change_both(const struct attempt *attempt, PyObject *args)
{
	PyObject *source = argument(args, 0), *target = argument(args, 1);

	if (!source || !target || is_relative_to_fd(argument(args, 2)) || is_relative_to_fd(argument(args, 3)))
		return 0;
	if (attempt->first >= 0 && check_path(attempt->event, source, WANT_CHANGE, "") < 0)
		return -1;
	return check_path(attempt->event, target, WANT_CHANGE, "");
}

static int check_copy(const struct attempt *attempt, PyObject *args)
{
	PyObject *source = argument(args, 0), *target = argument(args, 1);

	if (!source || !target)
		return 0;
	if (check_path(attempt->event, source, WANT_READ, "") < 0)
		return -1;
	return check_path(attempt->event, target, WANT_CHANGE, "");
}

/* (path, mode, flags): open() gives the mode, os.open() only the flags. */
static int check_open(const struct attempt *attempt, PyObject *args)
{
	PyObject *path = argument(args, 0), *mode = argument(args, 1), *flags = argument(args, 2);
	const char *name = "r";
	long bits;

	if (!path || !flags || !PyLong_Check(flags) || !(PyUnicode_Check(path) || PyBytes_Check(path)))
		return 0;
	bits = PyLong_AsLong(flags);
	if (bits & O_PATH)
		return 0;
	if (mode && PyUnicode_Check(mode) && PyUnicode_GET_LENGTH(mode) > 0)
		name = PyUnicode_AsUTF8(mode);
	else if ((bits & O_ACCMODE) != O_RDONLY)
		name = bits & O_APPEND ? "a" : bits & O_EXCL ? "x" : bits & (O_TRUNC | O_CREAT) ? "w" : "r+";
	if (!name) {
		PyErr_Clear();
		name = "?";
	}
	return check_path(attempt->event, path,
			  (bits & O_ACCMODE) == O_RDONLY && !(bits & (O_CREAT | O_TRUNC)) ? WANT_READ : WANT_CHANGE,
			  name);
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
		target_put(refusal, text_of(command, &temp));
	else
		return;
	Py_XDECREF(temp);
	Py_XDECREF(joined);
}

/* first: the command line; second: the program, for when that says nothing. */
static int check_command(const struct attempt *attempt, PyObject *args)
{
	struct refusal refusal = {.event = attempt->event, .kind = "command", .reason = "subprocess-not-granted"};
	PyObject *command = argument(args, attempt->first), *program = argument(args, attempt->second);

	if (audit.subprocess)
		return 0;
	if (command)
		command_put(&refusal, command);
	if (!refusal.target[0] && program)
		command_put(&refusal, program);
	return refuse(&refusal);
}

/* host:port of a tuple, or of two arguments; a path or a name as it is. */
static void address_put(struct refusal *refusal, PyObject *host, PyObject *port)
{
	PyObject *text = port ? PyUnicode_FromFormat("%S:%S", host, port) : PyObject_Str(host), *temp;

	if (text) {
		target_put(refusal, text_of(text, &temp));
		Py_XDECREF(temp);
		Py_DECREF(text);
	}
	PyErr_Clear();
}

static bool port_granted(PyObject *port)
{
	long number = port && PyLong_Check(port) ? PyLong_AsLong(port) : -1;

	for (size_t i = 0; i < audit.n_ports; i++)
		if (number == (long)audit.ports[i])
			return true;
	return false;
}

static int refuse_address(const struct attempt *attempt, PyObject *host, PyObject *port, const char *reason)
{
	struct refusal refusal = {.event = attempt->event, .kind = "address", .reason = reason};

	address_put(&refusal, host, port);
	return refuse(&refusal);
}

/* first: a host, a URL, or an address of any shape; second: its port, if that is apart. */
static int check_host(const struct attempt *attempt, PyObject *args)
{
	PyObject *host = argument(args, attempt->first);

	if (audit.network || !host || host == Py_None)
		return 0;
	return refuse_address(attempt, host, argument(args, attempt->second), "network-not-granted");
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

/* (socket, address), where an address of the internet is a tuple. */
static int check_address(const struct attempt *attempt, PyObject *args)
{
	PyObject *address = argument(args, 1), *host, *port;

	if (!address)
		return 0;
	if (!PyTuple_Check(address) || PyTuple_GET_SIZE(address) < 2)
		return refuse_address(attempt, address, NULL, "local-sockets-not-granted");
	host = PyTuple_GET_ITEM(address, 0);
	port = PyTuple_GET_ITEM(address, 1);
	if (!audit.network)
		return refuse_address(attempt, host, port, "network-not-granted");
	if (audit.network_tcp && (attempt->first || !port_granted(port)))
		return refuse_address(attempt, host, port, "port-not-granted");
	return 0;
}

/* (socket, family, type, protocol). A socket pair's ends come by here too. */
static int check_socket(const struct attempt *attempt, PyObject *args)
{
	struct refusal refusal = {.event = attempt->event, .kind = "address", .reason = "network-not-granted"};
	PyObject *family = argument(args, 1);

	if (audit.network || !family || !PyLong_Check(family) || PyLong_AsLong(family) == AF_UNIX)
		return 0;
	snprintf(refusal.target, sizeof(refusal.target), "family-%ld", PyLong_AsLong(family));
	return refuse(&refusal);
}

/* A database is opened for writing and, failing that, for reading. */
static int check_database(const struct attempt *attempt, PyObject *args)
{
	PyObject *database = argument(args, 0), *temp;
	struct bytes text = text_of(database ? database : Py_None, &temp);
	bool file = text.size > 0 && text.data[0] != ':' && (text.size < 5 || memcmp(text.data, "file:", 5) != 0);

	Py_XDECREF(temp);
	return file ? check_path(attempt->event, database, WANT_READ, "") : 0;
}

/* A library by its path; by its bare name the linker finds it or not. */
static int check_library(const struct attempt *attempt, PyObject *args)
{
	PyObject *name = argument(args, 0), *temp;
	struct bytes text = text_of(name ? name : Py_None, &temp);
	bool path = text.size > 0 && memchr(text.data, '/', text.size);

	Py_XDECREF(temp);
	return path ? check_path(attempt->event, name, WANT_READ, "") : 0;
}

static int check_kill(const struct attempt *attempt, PyObject *args)
{
	struct refusal refusal = {
		.event = attempt->event, .kind = "pid", .target = "-1", .reason = "kill-everything"};
	PyObject *pid = argument(args, 0);

	return pid && PyLong_Check(pid) && PyLong_AsLong(pid) == -1 ? refuse(&refusal) : 0;
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
	{"os.chdir", check_read, 0, -1},
	{"os.chmod", check_change, 0, 2},
	{"os.chown", check_change, 0, 3},
	{"os.exec", check_command, 1, 0},
	{"os.kill", check_kill, 0, -1},
	{"os.link", check_change_both, 0, 1},
	{"os.listdir", check_read, 0, -1},
	{"os.mkdir", check_change, 0, 2},
	{"os.posix_spawn", check_command, 1, 0},
	{"os.remove", check_change, 0, 1},
	{"os.removexattr", check_change, 0, -1},
	{"os.rename", check_change_both, 0, 1},
	{"os.rmdir", check_change, 0, 1},
	{"os.scandir", check_read, 0, -1},
	{"os.setxattr", check_change, 0, -1},
	{"os.symlink", check_change_both, -1, 1},
	{"os.system", check_command, 0, -1},
	{"os.truncate", check_change, 0, -1},
	{"os.utime", check_change, 0, 3},
	{"poplib.connect", check_host, 1, 2},
	{"pty.spawn", check_command, 0, -1},
	{"shutil.chown", check_change, 0, -1},
	{"shutil.copyfile", check_copy, 0, 1},
	{"shutil.copymode", check_copy, 0, 1},
	{"shutil.copystat", check_copy, 0, 1},
	{"shutil.copytree", check_copy, 0, 1},
	{"shutil.make_archive", check_change, 0, -1},
	{"shutil.move", check_change_both, 0, 1},
	{"shutil.rmtree", check_change, 0, 1},
	{"shutil.unpack_archive", check_copy, 0, 1},
	{"smtplib.connect", check_host, 1, 2},
	{"socket.__new__", check_socket, 0, -1},
	{"socket.bind", check_address, 1, -1},
	{"socket.connect", check_address, 0, -1},
	{"socket.getaddrinfo", check_host, 0, 1},
	{"socket.gethostbyaddr", check_host, 0, -1},
	{"socket.gethostbyname", check_host, 0, -1},
	{"socket.sendto", check_address, 1, -1},
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

static int hook(const char *event, PyObject *args, void *data)
{
	const struct attempt *attempt;

	(void)data;
	if (!audit.armed)
		return 0;
	attempt = bsearch(event, attempts, ARRAY_SIZE(attempts), sizeof(attempts[0]), event_compare);
	return attempt ? attempt->check(attempt, args) : 0;
}

/* ---- its life ---- */

int audit_install(void)
{
	return PySys_AddAuditHook(hook, NULL) < 0 ? -EPERM : 0;
}

static void ports_parse(struct bytes text)
{
	uint64_t port = 0;

	for (size_t i = 4; i <= text.size; i++) {
		if (i < text.size && text.data[i] != ',') {
			port = port * 10 + (uint64_t)(text.data[i] - '0');
		} else if (audit.n_ports < ARRAY_SIZE(audit.ports)) {
			audit.ports[audit.n_ports++] = port;
			port = 0;
		}
	}
}

int audit_configure(const struct configure_message *configure, char *const python_dirs[])
{
	char culprit[128];
	int r = places_init(&audit.places, configure, python_dirs, culprit, sizeof(culprit));

	audit.subprocess = configure->subprocess;
	audit.network = configure->network.size && !bytes_is(configure->network, "off");
	audit.network_tcp = audit.network && !bytes_is(configure->network, "host");
	if (audit.network_tcp)
		ports_parse(configure->network);
	return r;
}

int audit_arm(const char *workspace)
{
	int r = places_add(&audit.places, workspace, PLACE_WRITE, NULL);

	if (!r)
		audit.armed = true;
	return r;
}

void audit_begin_cell(void)
{
	audit.n_blocked = 0;
	audit.acts.size = 0;
}

struct bytes audit_blocked(void)
{
	if (audit.n_blocked == 0)
		return (struct bytes){0};
	audit.blocked.size = 0;
	wire_put_array(&audit.blocked, audit.n_blocked);
	msgpack_sbuffer_write(&audit.blocked, audit.acts.data, audit.acts.size);
	return wire_bytes(&audit.blocked);
}
