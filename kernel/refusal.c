/* How a refusal is told. The list of a cell is bounded, in number and in size: a cell that is refused in a loop
 * fills neither it nor the terminal. The exception is of a type of its own, so no other type's text changes. */
#include "refusal.h"

#include "proto/message.h"

#include <stdio.h>

#define REFUSALS_MAX 64

static struct {
	size_t n;
	msgpack_sbuffer acts, list; /* the acts so far; the array made of them */
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

static void note(const struct refusal *refusal, const char *line, size_t size)
{
	const struct blocked_act act = {.event = bytes_of(refusal->event),
					.target = bytes_of(refusal->target),
					.reason = bytes_of(refusal->reason)};
	char with_end[sizeof(refusal->target) + 256];

	if (told.n >= REFUSALS_MAX || wire_encode_body(&told.acts, &blocked_act_schema, &act))
		return;
	told.n++;
	size = (size_t)snprintf(with_end, sizeof(with_end), "%.*s\n", (int)size, line);
	/* Lost if it cannot be written: the exception says the same. */
	if (write(STDERR_FILENO, with_end, size) < 0)
		return;
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

/* Copied and pickled it is an ordinary PermissionError, which whoever unpickles it has. */
static PyObject *reduce(PyObject *self, PyObject *unused)
{
	PyObject *reduced = PyObject_CallMethod(PyExc_PermissionError, "__reduce__", "O", self);

	(void)unused;
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
	PyObject *bases = PyTuple_Pack(1, PyExc_PermissionError);

#ifdef Py_TPFLAGS_IMMUTABLETYPE
	spec.flags |= Py_TPFLAGS_IMMUTABLETYPE;
#endif
	refusal_type = bases ? PyType_FromSpecWithBases(&spec, bases) : NULL;
	Py_XDECREF(bases);
	return refusal_type ? 0 : -1;
}

PyObject *refusal_error(const struct refusal *refusal, int number, PyObject *filename, PyObject *filename2)
{
	char line[sizeof(refusal->target) + 192];
	int size;

	size = snprintf(line, sizeof(line), "[AUDIT] blocked: event=%s %s=%s%s%s reason=%s", refusal->event,
			refusal->kind, refusal->target, refusal->mode[0] ? " mode=" : "", refusal->mode,
			refusal->reason);
	note(refusal, line, MIN((size_t)size, sizeof(line) - 1));
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
	told.list.size = 0;
	wire_put_array(&told.list, told.n);
	msgpack_sbuffer_write(&told.list, told.acts.data, told.acts.size);
	return wire_bytes(&told.list);
}
