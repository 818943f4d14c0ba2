/* Most cells have no options, and pay nothing. After a cell, everything that its options changed is as before. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "options.h"

#include "helpers.h"
#include "observe/artifacts.h"
#include "owned.h"
#include "pack.h"

bool options_wanted(const struct cell_options *options)
{
	return options->figure.data || options->values || options->env.data || options->directory.data ||
	       options->argv.data;
}

/* Takes over @argument, which may be NULL with an exception. */
static int call_with(enum helper which, PyObject *argument)
{
	OWNED *done = argument ? PyObject_CallOneArg(helper(which), argument) : NULL;

	Py_XDECREF(argument);
	return done ? 0 : -1;
}

static PyObject *directory_of(const struct cell_options *options)
{
	PyObject *relative, *directory;

	if (!options->directory.data)
		return Py_BuildValue("");
	relative = PyUnicode_DecodeUTF8(options->directory.data, (Py_ssize_t)options->directory.size, NULL);
	directory = relative ? PyUnicode_FromFormat("%s/%U", artifacts_root(), relative) : NULL;
	Py_XDECREF(relative);
	return directory;
}

int options_set(const struct cell_options *options)
{
	OWNED *env = NULL, *directory = NULL, *argv = NULL, *done = NULL;

	if (call_with(HELPER_FIGURE_FORMAT,
		      Py_BuildValue("s#", options->figure.data, (Py_ssize_t)options->figure.size)) < 0 ||
	    call_with(HELPER_SHOW_VALUES, PyBool_FromLong(options->values)) < 0)
		return -1;
	env = unpack_strings(options->env);
	directory = env ? directory_of(options) : NULL;
	argv = directory ? unpack_strings(options->argv) : NULL;
	if (argv)
		done = PyObject_CallFunctionObjArgs(helper(HELPER_ENTER), env, directory, argv, NULL);
	return done ? 0 : -1;
}

void options_reset(void)
{
	OWNED *done = PyObject_CallNoArgs(helper(HELPER_LEAVE));

	if (!done || call_with(HELPER_FIGURE_FORMAT, Py_BuildValue("")) < 0 ||
	    call_with(HELPER_SHOW_VALUES, PyBool_FromLong(0)) < 0)
		PyErr_Clear();
}
