/* Most cells have no options, and pay nothing. After a cell, everything that its options changed is as before. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "options.h"

#include "artifacts.h"
#include "base/helpers.h"
#include "base/pack.h"

bool options_wanted(const struct run_message *run)
{
	return run->figure.data || run->values || run->env.data || run->directory.data;
}

/* Takes over @argument, which may be NULL with an exception. */
static int call_with(enum helper which, PyObject *argument)
{
	PyObject *done = argument ? PyObject_CallOneArg(helper(which), argument) : NULL;

	Py_XDECREF(argument);
	Py_XDECREF(done);
	return done ? 0 : -1;
}

static PyObject *directory_of(const struct run_message *run)
{
	PyObject *relative, *directory;

	if (!run->directory.data)
		return Py_BuildValue("");
	relative = PyUnicode_DecodeUTF8(run->directory.data, (Py_ssize_t)run->directory.size, NULL);
	directory = relative ? PyUnicode_FromFormat("%s/%U", artifacts_root(), relative) : NULL;
	Py_XDECREF(relative);
	return directory;
}

int options_set(const struct run_message *run)
{
	PyObject *env, *directory, *done = NULL;

	if (call_with(HELPER_FIGURE_FORMAT, Py_BuildValue("s#", run->figure.data, (Py_ssize_t)run->figure.size)) <
		    0 ||
	    call_with(HELPER_SHOW_VALUES, PyBool_FromLong(run->values)) < 0)
		return -1;
	env = unpack_strings(run->env);
	directory = env ? directory_of(run) : NULL;
	if (directory)
		done = PyObject_CallFunctionObjArgs(helper(HELPER_ENTER), env, directory, NULL);
	Py_XDECREF(env);
	Py_XDECREF(directory);
	Py_XDECREF(done);
	return done ? 0 : -1;
}

void options_reset(void)
{
	PyObject *done = PyObject_CallNoArgs(helper(HELPER_LEAVE));

	Py_XDECREF(done);
	if (!done || call_with(HELPER_FIGURE_FORMAT, Py_BuildValue("")) < 0 ||
	    call_with(HELPER_SHOW_VALUES, PyBool_FromLong(0)) < 0)
		PyErr_Clear();
}
