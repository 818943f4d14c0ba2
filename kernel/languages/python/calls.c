/* Calls of the functions that the client of a cell offers. A call is a message to the router, and its answer is
 * another one. Whoever waits for an answer reads the channel, the main thread or another, one at a time. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "calls.h"

#include "helpers.h"
#include "interpreter/channel.h"
#include "interpreter/interpreter.h"
#include "interpreter/process.h"
#include "observe/output.h"
#include "owned.h"
#include "pack.h"
#include "proto/message.h"
#include "python.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>

/* Of the arguments: the router reads no message with more than WIRE_OBJECTS_MAX, and there are some around them. */
#define PARTS_MAX (WIRE_OBJECTS_MAX - 36)

#define OTHER_WAITS "another thread than the main one waits for a call, and a copy would not have it"

/* How long a thread that reads for the main one does so before it looks whether the cell still runs. */
#define LOOK_MS 50

static struct {
	uint64_t cell;	 /* the last one that was offered functions */
	uint64_t number; /* of its last call */
} last;

static void nobody_waits(void)
{
	PyErr_SetString(PyExc_RuntimeError, "the session is ending");
}

/* Tells the call, with @waiter among those that wait: an interrupt, which may come between any two steps of
 * python/, finds both or none. Returns 0, or -1 with an exception. */
static int tell_for(PyObject *out, PyObject *waiter, const struct call_message *message)
{
	PyObject *number = PyLong_FromUnsignedLongLong(message->number), *type, *value, *traceback;
	int r = number ? PyObject_SetAttrString(waiter, "number", number) : -1;

	if (!r)
		r = PyDict_SetItem(out, number, waiter);
	if (!r && python_told(interpreter_tell(&call_message_schema, message))) {
		r = -1;
		PyErr_Fetch(&type, &value, &traceback);
		(void)PyDict_DelItem(out, number);
		PyErr_Restore(type, value, traceback);
	}
	Py_XDECREF(number);
	return r;
}

static PyObject *call(PyObject *module, PyObject *args)
{
	struct call_message message = {.number = last.number + 1};
	PyObject *arguments, *out, *waiter;
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer packed = {0};
	const char *name;
	Py_ssize_t size;
	int again, r;

	if (!PyArg_ParseTuple(args, "s#O!pO!O", &name, &size, &PyDict_Type, &arguments, &again, &PyDict_Type, &out,
			      &waiter))
		return NULL;
	message.again = again;
	message.function = (struct bytes){.data = name, .size = (size_t)size};
	r = pack_object(&packed, arguments, PACK_DEPTH_CALL);
	message.arguments = wire_bytes(&packed);
	if (!r && wire_scan(message.arguments, WIRE_DEPTH_MAX, PARTS_MAX) == 0) {
		PyErr_Format(PyExc_ValueError,
			     "arguments of more than %d parts cannot be sent: text and bytes are one each",
			     PARTS_MAX);
		r = -1;
	}
	if (!r) {
		last.number++;
		r = tell_for(out, waiter, &message);
	}
	return r ? NULL : Py_NewRef(Py_None);
}

static PyObject *drop(PyObject *module, PyObject *number)
{
	struct abandon_message message = {.number = PyLong_AsUnsignedLongLong(number)};

	if (PyErr_Occurred() || python_told(interpreter_tell(&abandon_message_schema, &message)))
		return NULL;
	return Py_NewRef(Py_None);
}

/* New reference: (number, value, error, text). */
static PyObject *returned(const struct wire_frame *message)
{
	struct returned_message answer;
	PyObject *value;

	if (exec_channel_decode(&answer, &returned_message_schema, message)) {
		nobody_waits();
		return NULL;
	}
	value = answer.value.data ? unpack_object(answer.value) : Py_NewRef(Py_None);
	/* It is for the one that called, and who reads it may be another. */
	if (!value) {
		PyErr_Clear();
		return Py_BuildValue("KOss", (unsigned long long)answer.number, Py_None, "FunctionError",
				     "the answer is no value of Python");
	}
	return Py_BuildValue("KNs#s#", (unsigned long long)answer.number, value, answer.error.data,
			     (Py_ssize_t)answer.error.size, answer.text.data, (Py_ssize_t)answer.text.size);
}

/* The cell is to be copied as it is now, see process_freeze. In a fork of the copy its loops and its channel are
 * other ones. Returns 0, or -1 with an exception. */
static int halt(const struct wire_frame *message, const char *why)
{
	OWNED *others = why ? NULL : PyObject_CallNoArgs(helper(HELPER_HALT));
	bool forked = false, halted = !why;
	int r;

	if (others == Py_True)
		why = OTHER_WAITS;
	r = process_freeze(message, last.cell, why, &forked);
	if (halted)
		Py_XDECREF(PyObject_CallOneArg(helper(HELPER_RESUME), forked ? Py_True : Py_False));
	PyErr_Clear();
	if (r)
		nobody_waits();
	return r ? -1 : 0;
}

/* The same in one step, as far as signals can tell. */
static int answer_freeze(const struct wire_frame *message, const char *why)
{
	PyObject *type, *value, *traceback;
	sigset_t all, before;
	int r;

	if (!interpreter_is_main())
		why = OTHER_WAITS;
	output_flush_all();
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (!why && PyErr_CheckSignals() < 0)
		why = "it is being interrupted";
	PyErr_Fetch(&type, &value, &traceback);
	r = halt(message, why);
	if (type)
		PyErr_Restore(type, value, traceback);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return type ? -1 : r;
}

bool calls_heard(const struct wire_frame *message)
{
	OWNED *answer = NULL;

	if (bytes_is(message->type, freeze_message_schema.type)) {
		(void)answer_freeze(message, "it waits for input");
		PyErr_Clear();
		return true;
	}
	if (!bytes_is(message->type, returned_message_schema.type))
		return false;
	answer = returned(message);
	if (answer)
		Py_XDECREF(PyObject_CallObject(helper(HELPER_PASS_ON), answer));
	PyErr_Clear();
	return true;
}

void calls_begin(uint64_t cell)
{
	last.cell = cell;
	last.number = 0;
}

/* Whether there is a message. Only the main thread is interrupted by signals, and may wait without end. */
static int wait_for_message(bool wait)
{
	struct pollfd readable = {.fd = exec_channel_descriptor(), .events = POLLIN};
	int n;

	if (wait && interpreter_is_main())
		return exec_channel_wait() < 0 ? -1 : 1;
	Py_BEGIN_ALLOW_THREADS;
	n = poll(&readable, 1, wait ? LOOK_MS : 0);
	Py_END_ALLOW_THREADS;
	return n > 0 && !interpreter_is_asking();
}

/* Returns 1 with the next message; 0 if there is none yet; or -1 with an exception. */
static int next_message(struct wire_frame *message, bool wait)
{
	int r = wait_for_message(wait);

	if (r <= 0)
		return r;
	(void)exec_channel_cramped();
	if (!exec_channel_receive(message))
		return 1;
	nobody_waits();
	return -1;
}

/* New reference: the next answer, or None if there is none yet. */
static PyObject *hear(PyObject *module, PyObject *wait)
{
	struct wire_frame message;
	int r;

	if (!process_is_interpreter() || !exec_channel_there()) {
		PyErr_SetString(PyExc_RuntimeError, "a child process cannot call the client's functions");
		return NULL;
	}
	do
		r = next_message(&message, wait == Py_True);
	while (r > 0 && bytes_is(message.type, freeze_message_schema.type) && !(r = answer_freeze(&message, NULL)));
	if (r < 0)
		return NULL;
	if (r == 0)
		return Py_NewRef(Py_None);
	/* An answer to a question that was interrupted. */
	if (bytes_is(message.type, answer_message_schema.type))
		return Py_NewRef(Py_None);
	return returned(&message);
}

static PyObject *descriptor(PyObject *module, PyObject *unused)
{
	return PyLong_FromLong(exec_channel_descriptor());
}

static PyMethodDef methods[] = {
	{"call", call, METH_VARARGS, NULL},
	{"drop", drop, METH_O, NULL},
	{"hear", hear, METH_O, NULL},
	{"descriptor", descriptor, METH_NOARGS, NULL},
};

PyObject *calls_methods(void)
{
	PyObject *dict = PyDict_New();

	for (size_t i = 0; dict && i < ARRAY_SIZE(methods); i++) {
		PyObject *function = PyCFunction_New(&methods[i], NULL);

		if (!function || PyDict_SetItemString(dict, methods[i].ml_name, function) < 0)
			Py_CLEAR(dict);
		Py_XDECREF(function);
	}
	return dict;
}
