/* sys.stdout and sys.stderr: text streams that append to the buffers of output.c, and their binary twins
 * (.buffer). For code that prints they behave as an io.TextIOWrapper. They cannot be closed: a cell's close()
 * would close the session's. */
#include "stream.h"

#include <structmember.h>

struct stream_object {
	PyObject_HEAD enum output_stream which;
	PyObject *twin; /* the binary stream of a text stream */
	PyObject *name, *mode, *encoding, *errors;
	PyObject *write; /* the bound method */
};

static const struct {
	const char *name, *errors;
} kinds[] = {
	[OUTPUT_OUT] = {.name = "<stdout>", .errors = "surrogateescape"},
	[OUTPUT_ERR] = {.name = "<stderr>", .errors = "backslashreplace"},
};

/* -EINTR means that a signal handler has to run, which may end the write. */
static int fail_or_resume(int r)
{
	if (r == -EINTR)
		return PyErr_CheckSignals();
	errno = -r;
	PyErr_SetFromErrno(PyExc_OSError);
	return -1;
}

static int put(enum output_stream which, const char *text, size_t size)
{
	if (output_try(which, text, size))
		return 0;
	while (size > 0) {
		PyThreadState *state = PyEval_SaveThread();
		ssize_t n = output_put(which, text, size);

		PyEval_RestoreThread(state);
		if (n >= 0) {
			text += n;
			size -= (size_t)n;
		}
		/* If only a part was written, a signal stopped the write, too. */
		if (size > 0 && fail_or_resume(n < 0 ? (int)n : -EINTR) < 0)
			return -1;
	}
	return 0;
}

static int put_text(enum output_stream which, PyObject *text)
{
	PyObject *bytes;
	int r;

	if (PyUnicode_READY(text) < 0)
		return -1;
	if (PyUnicode_IS_COMPACT_ASCII(text))
		return put(which, PyUnicode_DATA(text), (size_t)PyUnicode_GET_LENGTH(text));
	bytes = PyUnicode_AsEncodedString(text, "utf-8", kinds[which].errors);
	if (!bytes)
		return -1;
	r = put(which, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
	Py_DECREF(bytes);
	return r;
}

int stream_write(enum output_stream which, PyObject *text)
{
	if (PyBytes_Check(text))
		return put(which, PyBytes_AS_STRING(text), (size_t)PyBytes_GET_SIZE(text));
	return put_text(which, text);
}

static PyObject *none(void)
{
	Py_INCREF(Py_None);
	return Py_None;
}

static enum output_stream which_of(PyObject *self)
{
	return ((struct stream_object *)self)->which;
}

static PyObject *text_write(PyObject *self, PyObject *text)
{
	if (!PyUnicode_Check(text))
		return PyErr_Format(PyExc_TypeError, "write() argument must be str, not %.100s",
				    Py_TYPE(text)->tp_name);
	if (put_text(which_of(self), text) < 0)
		return NULL;
	return PyLong_FromSsize_t(PyUnicode_GET_LENGTH(text));
}

static PyObject *binary_write(PyObject *self, PyObject *data)
{
	Py_buffer view;
	int r;

	if (PyUnicode_Check(data))
		return PyErr_Format(PyExc_TypeError, "a bytes-like object is required, not 'str'");
	if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0)
		return NULL;
	r = put(which_of(self), view.buf, (size_t)view.len);
	data = r < 0 ? NULL : PyLong_FromSsize_t(view.len);
	PyBuffer_Release(&view);
	return data;
}

static PyObject *stream_writelines(PyObject *self, PyObject *lines)
{
	PyCFunction write_one = ((struct stream_object *)self)->twin ? text_write : binary_write;
	PyObject *iterator = PyObject_GetIter(lines), *line;

	if (!iterator)
		return NULL;
	while ((line = PyIter_Next(iterator))) {
		PyObject *n = write_one(self, line);

		Py_DECREF(line);
		if (!n)
			break;
		Py_DECREF(n);
	}
	Py_DECREF(iterator);
	if (PyErr_Occurred())
		return NULL;
	return none();
}

static PyObject *stream_flush(PyObject *self, PyObject *unused)
{
	int r;

	do {
		PyThreadState *state = PyEval_SaveThread();

		r = output_flush(which_of(self));
		PyEval_RestoreThread(state);
		if (r && fail_or_resume(r) < 0)
			return NULL;
	} while (r);
	return none();
}

static PyObject *stream_fileno(PyObject *self, PyObject *unused)
{
	return PyLong_FromLong(which_of(self) == OUTPUT_OUT ? STDOUT_FILENO : STDERR_FILENO);
}

static PyObject *stream_true(PyObject *self, PyObject *unused)
{
	return PyBool_FromLong(1);
}

static PyObject *stream_false(PyObject *self, PyObject *unused)
{
	return PyBool_FromLong(0);
}

static PyObject *stream_self(PyObject *self, PyObject *unused)
{
	Py_INCREF(self);
	return self;
}

/* close(), reconfigure() and leaving a with statement change nothing. */
static PyObject *stream_ignore(PyObject *self, PyObject *args, PyObject *kwargs)
{
	return stream_flush(self, NULL);
}

static PyObject *stream_unsupported(PyObject *self, PyObject *args)
{
	PyObject *io = PyImport_ImportModule("io"),
		 *error = io ? PyObject_GetAttrString(io, "UnsupportedOperation") : NULL;

	if (error)
		PyErr_Format(error, "%U can only be written to", ((struct stream_object *)self)->name);
	Py_XDECREF(error);
	Py_XDECREF(io);
	return NULL;
}

#define COMMON_METHODS                                                                                             \
	{"writelines", stream_writelines, METH_O, NULL}, {"flush", stream_flush, METH_NOARGS, NULL},               \
		{"fileno", stream_fileno, METH_NOARGS, NULL}, {"isatty", stream_false, METH_NOARGS, NULL},         \
		{"writable", stream_true, METH_NOARGS, NULL}, {"readable", stream_false, METH_NOARGS, NULL},       \
		{"seekable", stream_false, METH_NOARGS, NULL}, {"seek", stream_unsupported, METH_VARARGS, NULL},   \
		{"tell", stream_unsupported, METH_VARARGS, NULL},                                                  \
		{"truncate", stream_unsupported, METH_VARARGS, NULL},                                              \
		{"read", stream_unsupported, METH_VARARGS, NULL},                                                  \
		{"readline", stream_unsupported, METH_VARARGS, NULL},                                              \
		{"readlines", stream_unsupported, METH_VARARGS, NULL},                                             \
		{"detach", stream_unsupported, METH_VARARGS, NULL}, {"__enter__", stream_self, METH_NOARGS, NULL}, \
		{"__exit__", (PyCFunction)(void (*)(void))stream_ignore, METH_VARARGS | METH_KEYWORDS, NULL},      \
	{                                                                                                          \
		"close", (PyCFunction)(void (*)(void))stream_ignore, METH_VARARGS | METH_KEYWORDS, NULL            \
	}

static PyMethodDef text_methods[] = {
	{"write", text_write, METH_O, NULL},
	{"reconfigure", (PyCFunction)(void (*)(void))stream_ignore, METH_VARARGS | METH_KEYWORDS, NULL},
	COMMON_METHODS,
	{0},
};

static PyMethodDef binary_methods[] = {
	{"write", binary_write, METH_O, NULL},
	COMMON_METHODS,
	{0},
};

static PyObject *get_false(PyObject *self, void *closure)
{
	return PyBool_FromLong(0);
}

static PyObject *get_none(PyObject *self, void *closure)
{
	return none();
}

static PyGetSetDef text_getset[] = {
	{.name = "closed", .get = get_false},
	{.name = "newlines", .get = get_none},
	{.name = "line_buffering", .get = get_false},
	{.name = "write_through", .get = get_false},
	{0},
};

static PyGetSetDef binary_getset[] = {{.name = "closed", .get = get_false}, {0}};

#define MEMBER(name_, field)                                                                                       \
	{                                                                                                          \
		.name = (name_), .type = T_OBJECT, .offset = offsetof(struct stream_object, field),                \
		.flags = READONLY                                                                                  \
	}

static PyMemberDef text_members[] = {
	MEMBER("name", name),	  MEMBER("mode", mode),	  MEMBER("encoding", encoding),
	MEMBER("errors", errors), MEMBER("buffer", twin), {0},
};

static PyMemberDef binary_members[] = {MEMBER("name", name), MEMBER("mode", mode), {0}};

static PyObject *stream_repr(PyObject *self)
{
	struct stream_object *stream = (struct stream_object *)self;

	return PyUnicode_FromFormat("<%s name=%R mode=%R>", Py_TYPE(self)->tp_name, stream->name, stream->mode);
}

static PyObject *write_name;

/* print() asks for "write" twice a line. To make a method object each time would be a third of its cost. */
static PyObject *text_getattr(PyObject *self, PyObject *name)
{
	PyObject *write = ((struct stream_object *)self)->write;

	if (name != write_name)
		return PyObject_GenericGetAttr(self, name);
	Py_INCREF(write);
	return write;
}

static PyTypeObject text_type = {
	PyVarObject_HEAD_INIT(NULL, 0) /* */
		.tp_name = "lair.TextStream",
	.tp_basicsize = sizeof(struct stream_object),
	.tp_flags = Py_TPFLAGS_DEFAULT,
	.tp_repr = stream_repr,
	.tp_getattro = text_getattr,
	.tp_methods = text_methods,
	.tp_getset = text_getset,
	.tp_members = text_members,
};

static PyTypeObject binary_type = {
	PyVarObject_HEAD_INIT(NULL, 0) /* */
		.tp_name = "lair.BinaryStream",
	.tp_basicsize = sizeof(struct stream_object),
	.tp_flags = Py_TPFLAGS_DEFAULT,
	.tp_repr = stream_repr,
	.tp_methods = binary_methods,
	.tp_getset = binary_getset,
	.tp_members = binary_members,
};

/* Programs that choose between text and bytes ask isinstance(sys.stdout, io.TextIOBase). */
static int register_as(PyTypeObject *type, const char *base_name)
{
	PyObject *io = PyImport_ImportModule("io"), *base = io ? PyObject_GetAttrString(io, base_name) : NULL;
	PyObject *done = base ? PyObject_CallMethod(base, "register", "O", type) : NULL;

	Py_XDECREF(io);
	Py_XDECREF(base);
	Py_XDECREF(done);
	return done ? 0 : -1;
}

static int type_ready(PyTypeObject *type, const char *base_name)
{
	if (PyType_HasFeature(type, Py_TPFLAGS_READY))
		return 0;
	if (PyType_Ready(type) < 0)
		return -1;
	return register_as(type, base_name);
}

static struct stream_object *object_new(PyTypeObject *type, enum output_stream which, const char *mode)
{
	struct stream_object *stream = PyObject_New(struct stream_object, type);

	if (!stream)
		return NULL;
	stream->which = which;
	stream->name = PyUnicode_InternFromString(kinds[which].name);
	stream->mode = PyUnicode_InternFromString(mode);
	stream->twin = stream->encoding = stream->errors = stream->write = NULL;
	return stream;
}

/* The streams live as long as the process; types without a tp_dealloc of their own are never freed. */
PyObject *stream_new(enum output_stream which)
{
	struct stream_object *text, *binary;

	if (type_ready(&text_type, "TextIOBase") < 0 || type_ready(&binary_type, "BufferedIOBase") < 0)
		return NULL;
	text = object_new(&text_type, which, "w");
	binary = object_new(&binary_type, which, "wb");
	if (!text || !binary)
		return NULL;
	text->twin = (PyObject *)binary;
	text->encoding = PyUnicode_InternFromString("utf-8");
	text->errors = PyUnicode_InternFromString(kinds[which].errors);
	text->write = PyCFunction_New(&text_methods[0], (PyObject *)text);
	write_name = PyUnicode_InternFromString("write");
	return text->write && write_name ? (PyObject *)text : NULL;
}
