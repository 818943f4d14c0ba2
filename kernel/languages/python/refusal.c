/* How a refusal is told. The list of a cell is bounded, in number and in size: a cell that is refused in a loop
 * fills neither the list nor the terminal. The exception has a type of its own, so the text of no other type
 * changes. */
#include "refusal.h"

#include "owned.h"

#include "proto/message.h"

#include <regex.h>
#include <stdio.h>

#define REFUSALS_MAX 64
#define TEXT_SIZE 320

/* The head of an array has room for the largest number of acts. The number is filled in last, so the end takes no
 * memory. */
#define HEAD_SIZE 3

static struct {
	size_t n;
	msgpack_sbuffer acts; /* the head, then the acts so far */
} told;

void refusal_target(struct refusal *refusal, struct bytes text)
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

/* What libraries try when they are imported, and do without: matplotlib, ctypes.util, platform, joblib. Only the
 * exception tells of these. */
static bool is_probe(const struct refusal *refusal)
{
	static const char *const probes[] = {"fc-list --help", "/sbin/ldconfig -p", "uname -p",
					     "lscpu --parse=core"};

	for (size_t i = 0; i < ARRAY_SIZE(probes); i++)
		if (strcmp(refusal->event, "subprocess.Popen") == 0 && strcmp(refusal->target, probes[i]) == 0)
			return true;
	return false;
}

static void note(const struct refusal *refusal)
{
	const struct blocked_act act = {.event = bytes_of(refusal->event),
					.target = bytes_of(refusal->target),
					.reason = bytes_of(refusal->reason)};

	static const char head[HEAD_SIZE] = {'\xdc'};

	if (is_probe(refusal))
		return;
	if (told.acts.size == 0 && msgpack_sbuffer_write(&told.acts, head, HEAD_SIZE))
		return;
	if (told.n < REFUSALS_MAX && !wire_encode_body(&told.acts, &blocked_act_schema, &act))
		told.n++;
}

/* ---- the text ---- */

/* The one table of what is refused and what to do instead. */
static const struct refused {
	const char *reason, *what, *instead;
} refused[] = {
	{"write-outside-workspace", "write only below the session's directory", NULL},
	{"read-outside", "read only below the session's directory", NULL},
	{"hidden", "no files of this directory here", NULL},
	{"subprocess-not-granted", "no programs here", "do it in Python"},
	{"terminals-not-granted", "no terminals here", NULL},
	{"terminals-not-possible", "no terminals here", "this host gives sessions no file system for them"},
	{"network-not-granted", "no network here", "do without, or ask the user for the data"},
	{"port-not-granted", "not this port", "the network here has only some"},
	{"names-not-granted", "no names of hosts here", "connect to an address"},
	{"socket-not-granted", "no sockets of this kind here", NULL},
	{"local-sockets-not-granted", "no sockets of other programs here", NULL},
	{"", "not possible here", NULL},
};

static char packages_sentence[192];
static regex_t installer;

void refusals_set_packages(struct bytes sentence)
{
	bytes_copy(packages_sentence, sizeof(packages_sentence), sentence);
}

static bool installs(const char *command)
{
	return regexec(&installer, command, 0, NULL, 0) == 0;
}

/* What is refused, what to do instead, and the reason in brackets. */
static void text_put(char *text, size_t size, const char *reason, const char *target)
{
	const struct refused *row = refused;
	const char *instead;

	while (row->reason[0] && strcmp(row->reason, reason) != 0)
		row++;
	instead = row->instead && packages_sentence[0] && installs(target) ? packages_sentence : row->instead;
	snprintf(text, size, "%s%s%s (%s)", row->what, instead ? ": " : "", instead ? instead : "", reason);
}

static PyObject *method_refused(PyObject *self, PyObject *args)
{
	char text[TEXT_SIZE];
	const char *reason, *command;

	if (!PyArg_ParseTuple(args, "ss", &reason, &command))
		return NULL;
	text_put(text, sizeof(text), reason, command);
	return PyUnicode_FromString(text);
}

static PyObject *method_installs(PyObject *self, PyObject *command)
{
	const char *text = PyUnicode_Check(command) ? PyUnicode_AsUTF8(command) : NULL;

	PyErr_Clear();
	return PyBool_FromLong(text && installs(text));
}

PyObject *refusals_methods(void)
{
	static PyMethodDef methods[] = {{"refused", method_refused, METH_VARARGS, NULL},
					{"installs", method_installs, METH_O, NULL}};

	return Py_BuildValue("{s:N,s:N}", methods[0].ml_name, PyCFunction_New(&methods[0], NULL),
			     methods[1].ml_name, PyCFunction_New(&methods[1], NULL));
}

/* ---- the exception ---- */

static PyObject *refusal_type;

static PyObject *text_of_error(PyObject *self)
{
	PyObject *text = ((PyOSErrorObject *)self)->strerror;

	if (!text || !PyUnicode_Check(text))
		return ((PyTypeObject *)PyExc_PermissionError)->tp_str(self);
	Py_INCREF(text);
	return text;
}

/* A copied or pickled refusal becomes an ordinary PermissionError, which every Python can unpickle. */
static PyObject *reduce(PyObject *self, PyObject *unused)
{
	PyObject *reduced = PyObject_CallMethod(PyExc_PermissionError, "__reduce__", "O", self);

	if (reduced) {
		Py_INCREF(PyExc_PermissionError);
		PyTuple_SetItem(reduced, 0, PyExc_PermissionError);
	}
	return reduced;
}

int refusals_prepare(void)
{
	static PyMethodDef methods[] = {{.ml_name = "__reduce__", .ml_meth = reduce, .ml_flags = METH_NOARGS}, {0}};
	static PyType_Slot slots[] = {{Py_tp_str, (void *)text_of_error},
				      {Py_tp_methods, methods},
				      {Py_tp_doc, (void *)"Not permitted."},
				      {0}};
	static PyType_Spec spec = {.name = "builtins.PermissionError",
				   .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
				   .slots = slots};
	OWNED *bases = PyTuple_Pack(1, PyExc_PermissionError);

	if (regcomp(&installer, "^([^ ]*python[0-9.]* +-m +|[^ ]*/)?(pip3?|conda|mamba|uv)( |$)",
		    REG_EXTENDED | REG_NOSUB) != 0)
		return -1;
#ifdef Py_TPFLAGS_IMMUTABLETYPE
	spec.flags |= Py_TPFLAGS_IMMUTABLETYPE;
#endif
	refusal_type = bases ? PyType_FromSpecWithBases(&spec, bases) : NULL;
	return refusal_type ? 0 : -1;
}

PyObject *refusal_error(const struct refusal *refusal, int number, PyObject *filename, PyObject *filename2)
{
	static const char *const telling[] = {"path", "command", "address"};
	char text[TEXT_SIZE], line[sizeof(refusal->target) + TEXT_SIZE + 64];
	const char *event = refusal->event;

	/* These targets speak for themselves. For others the event is told. */
	for (size_t i = 0; i < ARRAY_SIZE(telling); i++)
		if (refusal->kind && strcmp(refusal->kind, telling[i]) == 0)
			event = NULL;
	text_put(text, sizeof(text), refusal->reason, refusal->target);
	snprintf(line, sizeof(line), "%s%s%s: %s", event ? event : "", event ? " " : "", refusal->target, text);
	note(refusal);
	if (!filename)
		return PyObject_CallFunction(refusal_type, "is", number, line);
	return PyObject_CallFunction(refusal_type, "isOOO", number, line, filename, Py_None,
				     filename2 ? filename2 : Py_None);
}

/* ---- the list ---- */

void refusals_forget(void)
{
	told.n = 0;
	told.acts.size = 0;
}

struct bytes refusals_list(void)
{
	if (told.n == 0)
		return (struct bytes){0};
	told.acts.data[HEAD_SIZE - 1] = (char)told.n;
	return wire_bytes(&told.acts);
}
