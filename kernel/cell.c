/* Running one cell: compile, evaluate, show the last expression, explain what went wrong. Everything it uses at run
 * time was looked up in the template: whatever a cell does to sys, builtins or sys.modules, the next one is
 * answered. */
#include "cell.h"

#include "helpers.h"
#include "stream.h"

#define NOTE_MAX 48

static struct {
	PyObject *globals;  /* of __main__ */
	PyObject *builtins; /* where _ is */
	PyObject *underscore, *warning_registry, *code_name;
	int future; /* what earlier cells imported from __future__ */
	size_t text_max;
} cells;

int cell_init(size_t text_max)
{
	PyObject *main = PyImport_AddModule("__main__"); /* borrowed */

	if (!main)
		return -1;
	cells.globals = PyModule_GetDict(main);
	cells.builtins = PyEval_GetBuiltins();
	cells.underscore = PyUnicode_InternFromString("_");
	cells.warning_registry = PyUnicode_InternFromString("__warningregistry__");
	cells.code_name = PyUnicode_InternFromString("code");
	cells.text_max = MAX(text_max, (size_t)(2 * NOTE_MAX));
	Py_INCREF(cells.globals);
	Py_INCREF(cells.builtins);
	return cells.underscore && cells.warning_registry && cells.code_name ? 0 : -1;
}

PyObject *utf8_of(PyObject *text)
{
	return PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
}

/* A cell's `from __future__ import` holds for those that follow, as it does at a prompt. */
static void future_remember(PyObject *code)
{
	if (code != Py_None)
		cells.future |= ((PyCodeObject *)code)->co_flags & PyCF_MASK & ~PyCF_MASK_OBSOLETE;
}

static PyObject *evaluate(PyObject *code)
{
	int flags = ((PyCodeObject *)code)->co_flags;
	PyObject *value;

	future_remember(code);
	value = PyEval_EvalCode(code, cells.globals, cells.globals);
	if (value && (flags & CO_COROUTINE))
		Py_SETREF(value, PyObject_CallOneArg(helper(HELPER_AWAIT), value));
	return value;
}

static PyObject *compile_as(PyObject *source, PyObject *filename, int start)
{
	PyCompilerFlags flags = {.cf_flags = cells.future | PyCF_ALLOW_TOP_LEVEL_AWAIT,
				 .cf_feature_version = PY_MINOR_VERSION};
	const char *text = PyUnicode_AsUTF8(source);

	return text ? Py_CompileStringObject(text, filename, start, &flags, -1) : NULL;
}

/* Whether @source is one line of one statement. A backslash may be a warning, which must not come twice; a NUL
 * would end the source for the compiler. */
static bool one_statement(PyObject *source)
{
	static const char others[] = "\n\r\f\\;";
	Py_ssize_t size;
	const char *text = PyUnicode_AsUTF8AndSize(source, &size);

	if (!text)
		PyErr_Clear();
	return text && strlen(text) == (size_t)size && !strpbrk(text, others) && text[0] != '*';
}

/* Such a cell is an expression, or has none to show: no need to take it apart. New reference. */
static PyObject *compile_statement(PyObject *source, PyObject *filename)
{
	PyObject *code = compile_as(source, filename, Py_eval_input);

	if (code || !PyErr_ExceptionMatches(PyExc_SyntaxError))
		return code;
	PyErr_Clear();
	return compile_as(source, filename, Py_file_input);
}

static bool awaits(PyObject *code)
{
	return code != Py_None && (((PyCodeObject *)code)->co_flags & CO_COROUTINE);
}

static PyObject *await_together(PyObject *codes)
{
	PyObject *value = PyObject_CallFunctionObjArgs(helper(HELPER_TOGETHER), codes, cells.globals, NULL);

	future_remember(PyTuple_GET_ITEM(codes, 0));
	if (value)
		Py_SETREF(value, PyObject_CallOneArg(helper(HELPER_AWAIT), value));
	return value;
}

/* New reference: the value of the last expression, None if there is none. */
static PyObject *run_statements(PyObject *source, PyObject *filename)
{
	PyObject *codes, *value = Py_None;

	codes = PyObject_CallFunction(helper(HELPER_SPLIT), "OOi", source, filename,
				      cells.future | PyCF_ALLOW_TOP_LEVEL_AWAIT);
	if (!codes)
		return NULL;
	Py_INCREF(value);
	if (awaits(PyTuple_GET_ITEM(codes, 0)) || awaits(PyTuple_GET_ITEM(codes, 1))) {
		Py_SETREF(value, await_together(codes));
	} else {
		for (Py_ssize_t i = 0; value && i < 2; i++)
			if (PyTuple_GET_ITEM(codes, i) != Py_None)
				Py_SETREF(value, evaluate(PyTuple_GET_ITEM(codes, i)));
	}
	Py_DECREF(codes);
	return value;
}

static PyObject *run_source(PyObject *source, PyObject *filename)
{
	PyObject *code, *value;

	if (!one_statement(source))
		return run_statements(source, filename);
	code = compile_statement(source, filename);
	if (!code)
		return NULL;
	value = evaluate(code);
	Py_DECREF(code);
	return value;
}

/* Cut at a character's first byte, with a note. New reference. */
static PyObject *text_cut(PyObject *text)
{
	const char *data = PyBytes_AS_STRING(text);
	size_t size = (size_t)PyBytes_GET_SIZE(text), kept = cells.text_max - NOTE_MAX;
	char note[NOTE_MAX];
	PyObject *cut;
	int n;

	while (kept > 0 && (data[kept] & 0xc0) == 0x80)
		kept--;
	n = snprintf(note, sizeof(note), "... (%zu bytes more)", size - kept);
	cut = PyBytes_FromStringAndSize(data, (Py_ssize_t)kept + n);
	if (cut)
		memcpy(PyBytes_AS_STRING(cut) + kept, note, (size_t)n);
	return cut;
}

/* As sys.displayhook: nothing for None, else _ and the repr. */
static int display(struct cell_result *result, PyObject *value)
{
	PyObject *shown;

	if (value == Py_None)
		return 0;
	shown = PyObject_Repr(value);
	if (!shown)
		return -1;
	result->text = utf8_of(shown);
	Py_DECREF(shown);
	if (!result->text)
		return -1;
	if ((size_t)PyBytes_GET_SIZE(result->text) > cells.text_max)
		Py_SETREF(result->text, text_cut(result->text));
	return result->text ? PyDict_SetItem(cells.builtins, cells.underscore, value) : -1;
}

/* New reference, NULL if there is none. */
static PyObject *error_take(void)
{
#if PY_VERSION_HEX >= 0x030c0000
	return PyErr_GetRaisedException();
#else
	PyObject *type, *error, *trace;

	PyErr_Fetch(&type, &error, &trace);
	PyErr_NormalizeException(&type, &error, &trace);
	if (error && trace)
		PyException_SetTraceback(error, trace);
	Py_XDECREF(type);
	Py_XDECREF(trace);
	return error;
#endif
}

/* As the interpreter ends a script: nothing is 0, a number is itself, anything else is printed and 1. */
static int exit_status(PyObject *error)
{
	PyObject *code = PyObject_GetAttr(error, cells.code_name), *text;
	int status = 1;

	if (code == Py_None) {
		status = 0;
	} else if (code && PyLong_Check(code)) {
		status = (int)(PyLong_AsUnsignedLongMask(code) & 0xff);
	} else if (code) {
		text = PyObject_Str(code);
		if (text && stream_write(OUTPUT_ERR, text) == 0)
			(void)output_put(OUTPUT_ERR, "\n", 1);
		Py_XDECREF(text);
	}
	Py_XDECREF(code);
	PyErr_Clear();
	return status;
}

/* What can be said without running any Python. */
static void explain_bare(struct cell_result *result, PyObject *error)
{
	const char *name = Py_TYPE(error)->tp_name;

	PyErr_Clear();
	for (size_t i = 0; i < ARRAY_SIZE(result->error); i++)
		Py_CLEAR(result->error[i]);
	result->error[0] = PyBytes_FromString(name);
	result->error[1] = PyBytes_FromString("");
	result->error[2] = PyBytes_FromFormat("%.200s: (its traceback could not be made)\n", name);
	PyErr_Clear();
}

static int explain(struct cell_result *result, PyObject *error)
{
	PyObject *told = PyObject_CallOneArg(helper(HELPER_EXPLAIN), error);

	for (size_t i = 0; told && i < ARRAY_SIZE(result->error); i++) {
		result->error[i] = utf8_of(PyTuple_GET_ITEM(told, (Py_ssize_t)i));
		if (!result->error[i])
			Py_CLEAR(told);
	}
	Py_XDECREF(told);
	return told ? 0 : -1;
}

static void fail(struct cell_result *result)
{
	PyObject *error = error_take();

	Py_CLEAR(result->text);
	if (!error)
		return;
	if (PyErr_GivenExceptionMatches(error, PyExc_SystemExit)) {
		result->cause = "exit";
		result->returncode = exit_status(error);
	} else {
		bool interrupt = PyErr_GivenExceptionMatches(error, PyExc_KeyboardInterrupt);

		result->cause = interrupt ? "interrupt" : "error";
		result->returncode = interrupt ? 130 : 1;
		if (explain(result, error) < 0)
			explain_bare(result, error);
		if (result->error[2] && stream_write(OUTPUT_ERR, result->error[2]) < 0)
			PyErr_Clear();
	}
	Py_DECREF(error);
}

void cell_run(struct cell_result *result, uint64_t number, struct bytes code)
{
	PyObject *filename = PyUnicode_FromFormat("<cell %llu>", (unsigned long long)number);
	PyObject *source = PyUnicode_DecodeUTF8(code.data, (Py_ssize_t)code.size, "replace");
	PyObject *done = NULL, *value = NULL;

	*result = (struct cell_result){0};
	if (filename && source)
		done = PyObject_CallFunctionObjArgs(helper(HELPER_REMEMBER), source, filename, NULL);
	/* A warning is shown once a line of code; the first line of each cell is another one. */
	if (done && PyDict_DelItem(cells.globals, cells.warning_registry) < 0)
		PyErr_Clear();
	if (done)
		value = run_source(source, filename);
	if (!value || display(result, value) < 0)
		fail(result);
	Py_XDECREF(value);
	Py_XDECREF(done);
	Py_XDECREF(source);
	Py_XDECREF(filename);
}

void cell_forget(uint64_t number)
{
	PyObject *filename = PyUnicode_FromFormat("<cell %llu>", (unsigned long long)number);

	if (filename)
		Py_XDECREF(PyObject_CallOneArg(helper(HELPER_FORGET), filename));
	Py_XDECREF(filename);
	(void)PyDict_DelItem(cells.builtins, cells.underscore);
	PyErr_Clear();
}

void cell_result_deinit(struct cell_result *result)
{
	Py_CLEAR(result->text);
	for (size_t i = 0; i < ARRAY_SIZE(result->error); i++)
		Py_CLEAR(result->error[i]);
}
