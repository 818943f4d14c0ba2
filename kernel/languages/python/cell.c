/* Runs one cell: compile, evaluate, show the last expression, explain errors. Everything that it uses was looked
 * up in the template. So whatever a cell does to sys, builtins or sys.modules, the next one is answered. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "cell.h"

#include "helpers.h"
#include "interpreter/process.h"
#include "observe/artifacts.h"
#include "options.h"
#include "owned.h"
#include "pack.h"
#include "refusal/policy.h"
#include "stream.h"

#include <signal.h>

#define NOTE_MAX 48
#define RETURNCODE_INTERRUPT 130
/* Cells of a notebook: one that it shows, one whose value is only told, and one that is a message. And one of a
 * prompt whose session has IPython. */
enum { KIND_CELL = 1, KIND_SILENT, KIND_MESSAGE, KIND_PROMPT };
/* The value of the cell is not shown: it ends with a semicolon. */
#define KIND_QUIET 16
/* A longer list is left to python/display.py, which may shorten it. */
#define FEW 100

static struct {
	PyObject *globals;  /* of __main__ */
	PyObject *builtins; /* where _ is */
	PyObject *underscore, *warning_registry, *code_name;
	int future; /* what earlier cells imported from __future__ */
	size_t text_max;
	bool heed_rules;
	bool of_session; /* a cell of the session runs, not a rehearsal; its error is the session's last */
	bool surrounded; /* the cell has an environment of its own, which may say how wide its terminal is */
	long kind;	 /* of a cell of a notebook, as python/notebook.py has it; 0: of any other */
	bool quiet;
	uint64_t number;
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

void cell_heed_rules(bool heed)
{
	cells.heed_rules = heed;
}

/* `from __future__ import` in one cell also holds for later ones, as at a prompt. */
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
	PyCompilerFlags flags = {.cf_flags = cells.future | PyCF_ALLOW_TOP_LEVEL_AWAIT | PyCF_IGNORE_COOKIE,
				 .cf_feature_version = PY_MINOR_VERSION};
	const char *text = PyUnicode_AsUTF8(source);

	return text ? Py_CompileStringObject(text, filename, start, &flags, -1) : NULL;
}

static bool number_meets_word(const char *text)
{
	while (*text && !(Py_ISDIGIT(text[0]) && Py_ISALPHA(text[1])))
		text++;
	return *text;
}

/* Whether @source is one line with one statement. Such a source may be compiled twice, so none that may cause a
 * warning counts: a backslash, or `1if`. A NUL would end the source for the compiler. */
static bool one_statement(PyObject *source)
{
	static const char others[] = "\n\r\f\\;";
	Py_ssize_t size;
	const char *text = PyUnicode_AsUTF8AndSize(source, &size);

	if (!text)
		PyErr_Clear();
	return text && strlen(text) == (size_t)size && !strpbrk(text, others) && text[0] != '*' &&
	       !number_meets_word(text);
}

/* Whether the first line that is not blank may be indented. */
static bool maybe_indented(PyObject *source)
{
	const char *text = PyUnicode_AsUTF8(source);

	if (!text)
		PyErr_Clear();
	return text && strchr(" \t\n#", *text);
}

/* One statement is either an expression or has nothing to show, so it need not be split. New reference. */
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

/* Whether the rules allow to run @source. If not, the reason has been written to stderr. */
static bool permitted(struct cell_result *result, PyObject *source)
{
	PyObject *why = PyObject_CallFunction(helper(HELPER_FORBIDDEN), "OiO", source,
					      cells.future | PyCF_ALLOW_TOP_LEVEL_AWAIT, cells.globals);

	if (why == Py_None) {
		Py_DECREF(why);
		return true;
	}
	if (why) {
		result->cause = "forbidden";
		result->returncode = 2;
		if (stream_write(OUTPUT_ERR, why) < 0 || output_put(OUTPUT_ERR, "\n", 1) < 0)
			PyErr_Clear();
		Py_DECREF(why);
	}
	return false;
}

/* Takes the pending exception. New reference, NULL if there is none. */
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

/* New reference: the code, or a tuple of the code to run and the code to show. */
static PyObject *compile_cell(PyObject *source, PyObject *filename)
{
	if (one_statement(source))
		return compile_statement(source, filename);
	return PyObject_CallFunction(helper(HELPER_SPLIT), "OOi", source, filename,
				     cells.future | PyCF_ALLOW_TOP_LEVEL_AWAIT);
}

/* A source that is not Python may be a command of IPython. Then the Python that does the same is compiled. New
 * reference. NULL with an exception: what is wrong, or what to write instead. NULL without one: a rule forbids it,
 * and the reason has been written. */
static PyObject *compile_foreign(struct cell_result *result, PyObject *source, PyObject *filename)
{
	OWNED *error = error_take();
	OWNED *plain = PyObject_CallFunctionObjArgs(helper(HELPER_MAGIC_CELL), source, filename, error, NULL);
	PyObject *code = NULL;

	if (plain == Py_None)
		PyErr_SetObject((PyObject *)Py_TYPE(error), error);
	else if (plain && (!cells.heed_rules || permitted(result, plain)))
		code = compile_cell(plain, filename);
	return code;
}

static PyObject *evaluate_both(PyObject *codes)
{
	PyObject *value = Py_None;

	if (awaits(PyTuple_GET_ITEM(codes, 0)) || awaits(PyTuple_GET_ITEM(codes, 1)))
		return await_together(codes);
	Py_INCREF(value);
	for (Py_ssize_t i = 0; value && i < 2; i++)
		if (PyTuple_GET_ITEM(codes, i) != Py_None)
			Py_SETREF(value, evaluate(PyTuple_GET_ITEM(codes, i)));
	return value;
}

/* New reference: the value of the last expression, None if there is none. */
static PyObject *run_source(struct cell_result *result, PyObject *source, PyObject *filename)
{
	PyObject *code = compile_cell(source, filename), *value;

	if (!code && PyErr_ExceptionMatches(PyExc_SyntaxError))
		code = compile_foreign(result, source, filename);
	if (!code)
		return NULL;
	value = PyTuple_CheckExact(code) ? evaluate_both(code) : evaluate(code);
	Py_DECREF(code);
	return value;
}

/* Scripts that were notebooks call get_ipython(). Returns false with an exception. */
static bool ipython_met(PyObject *source)
{
	const char *text = PyUnicode_AsUTF8(source);
	PyObject *done = NULL;

	if (!text)
		PyErr_Clear();
	if (!text || !strstr(text, "get_ipython"))
		return true;
	done = PyObject_CallNoArgs(helper(HELPER_MEET_IPYTHON));
	Py_XDECREF(done);
	return done;
}

/* Extensions of IPython's, such as autoreload, hear of the session's cells once there is one. @done: Py_None if it
 * begins. Returns false with an exception. */
static bool announced(PyObject *source, PyObject *done)
{
	PyObject *told;

	if (!cells.of_session || PyList_GET_SIZE(helper(HELPER_IPYTHONS)) == 0)
		return true;
	told = PyObject_CallFunctionObjArgs(helper(HELPER_ANNOUNCE), source, done, NULL);
	Py_XDECREF(told);
	return told;
}

/* Cuts the text between two characters, and adds a note. New reference. */
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

/* Values of these types have a repr and no other form, and their repr runs no code of a session. */
static bool is_plain(PyObject *value)
{
	return PyLong_CheckExact(value) || PyUnicode_CheckExact(value) || PyFloat_CheckExact(value) ||
	       PyBool_Check(value) || PyBytes_CheckExact(value) || PyComplex_CheckExact(value);
}

/* The same holds for small lists and tuples of them. */
static bool is_plain_or_few(PyObject *value)
{
	if (PyUnicode_CheckExact(value) || PyBytes_CheckExact(value))
		return PyObject_Size(value) <= (Py_ssize_t)cells.text_max;
	if (!PyList_CheckExact(value) && !PyTuple_CheckExact(value))
		return is_plain(value);
	if (cells.surrounded || cells.kind)
		return false;
	if (PySequence_Fast_GET_SIZE(value) > FEW)
		return false;
	for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); i++) {
		PyObject *item = PySequence_Fast_GET_ITEM(value, i);

		if (!is_plain(item) ||
		    ((PyUnicode_CheckExact(item) || PyBytes_CheckExact(item)) && PyObject_Size(item) > FEW))
			return false;
	}
	return true;
}

/* The value as text and in its other forms. Returns 0, or -1 with an exception. */
static int represent(struct cell_result *result, PyObject *value)
{
	PyObject *shown, *text, *data = Py_None;

	shown = is_plain_or_few(value) ? PyObject_Repr(value) : PyObject_CallOneArg(helper(HELPER_LAST), value);
	if (!shown)
		return -1;
	text = PyTuple_Check(shown) ? PyTuple_GET_ITEM(shown, 0) : shown;
	if (PyTuple_Check(shown))
		data = PyTuple_GET_ITEM(shown, 1);
	if (data != Py_None) {
		Py_INCREF(data);
		result->data = data;
	}
	if (text != Py_None)
		result->text = utf8_of(text);
	if (result->text && (size_t)PyBytes_GET_SIZE(result->text) > cells.text_max)
		Py_SETREF(result->text, text_cut(result->text));
	Py_DECREF(shown);
	return result->text || text == Py_None ? 0 : -1;
}

/* Out of a notebook. */
static int notebook_shown(PyObject *value)
{
	OWNED *done =
		PyObject_CallFunction(helper(HELPER_NOTEBOOK_SHOWN), "OK", value, (unsigned long long)cells.number);

	return done ? 0 : -1;
}

/* As sys.displayhook: None shows nothing. Any other value is shown and becomes _. */
static int display(struct cell_result *result, PyObject *value)
{
	if (value == Py_None || cells.quiet)
		return 0;
	if (represent(result, value) < 0)
		return -1;
	if (cells.kind == KIND_SILENT)
		return 0;
	if ((cells.kind == KIND_CELL || cells.kind == KIND_PROMPT) && notebook_shown(value) < 0)
		return -1;
	return PyDict_SetItem(cells.builtins, cells.underscore, value);
}

/* As when the interpreter ends a script: None is 0, a number is itself, anything else is printed and is 1. */
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

/* Tells the error without running any Python. New reference, NULL without memory for it. */
static PyObject *explain_bare(PyObject *error)
{
	const char *name = Py_TYPE(error)->tp_name;
	OWNED *trace = PyUnicode_FromFormat("%.200s: (its traceback could not be made)\n", name);
	PyObject *told = NULL;

	if (trace)
		told = Py_BuildValue("{s:s,s:s,s:O}", "name", name, "value", "", "traceback", trace);
	PyErr_Clear();
	return told;
}

static PyObject *explain(PyObject *error)
{
	PyObject *told =
		PyObject_CallFunction(helper(HELPER_EXPLAIN), "OKO", error, (unsigned long long)policy.memory,
				      cells.of_session ? Py_True : Py_False);

	if (told)
		return told;
	PyErr_Clear();
	return explain_bare(error);
}

/* An interrupt goes to the cell and to all that it has forked. One of them tells it: a fork ends of it like any
 * program, so that a thousand forks do not print a thousand tracebacks. */
static void end_if_interrupted_child(PyObject *error)
{
	if (process_is_interpreter() || !PyErr_GivenExceptionMatches(error, PyExc_KeyboardInterrupt))
		return;
	(void)signal(SIGINT, SIG_DFL);
	(void)raise(SIGINT);
	_exit(RETURNCODE_INTERRUPT);
}

static void fail(struct cell_result *result)
{
	PyObject *error = error_take(), *trace;

	Py_CLEAR(result->text);
	Py_CLEAR(result->data);
	if (!error)
		return;
	end_if_interrupted_child(error);
	if (PyErr_GivenExceptionMatches(error, PyExc_SystemExit)) {
		result->cause = "exit";
		result->returncode = exit_status(error);
	} else {
		bool interrupt = PyErr_GivenExceptionMatches(error, PyExc_KeyboardInterrupt);

		result->cause = interrupt ? "interrupt" : "error";
		result->returncode = interrupt ? RETURNCODE_INTERRUPT : 1;
		result->error = explain(error);
		trace = result->error ? PyDict_GetItemString(result->error, "traceback") : NULL; /* borrowed */
		/* A notebook shows it in its own way. */
		if (trace && (!cells.kind || cells.kind == KIND_PROMPT) && stream_write(OUTPUT_ERR, trace) < 0)
			PyErr_Clear();
	}
	Py_DECREF(error);
}

static void announce_end(struct cell_result *result, PyObject *source)
{
	if (!announced(source, result->cause ? Py_False : Py_True) && !result->cause)
		fail(result);
	PyErr_Clear();
}

/* Figures that the cell has left open are shown and closed. */
static void end_figures(struct cell_result *result)
{
	PyObject *list = helper(HELPER_OPEN_FIGURES), *figures, *done;
	bool interrupted = result->returncode == RETURNCODE_INTERRUPT;

	figures = PyList_GET_SIZE(list) > 0 ? PyList_GET_ITEM(list, 0) : NULL;
	if (!figures || !PyDict_Check(figures) || PyDict_GET_SIZE(figures) == 0)
		return;
	done = PyObject_CallOneArg(helper(HELPER_END_FIGURES), interrupted ? Py_True : Py_False);
	Py_XDECREF(done);
	if (!done && !result->cause)
		fail(result);
	PyErr_Clear();
}

/* Reloads modules whose files were edited. Returns false with an exception. */
static bool edited_reloaded(void)
{
	OWNED *done = PyObject_CallFunction(helper(HELPER_RELOAD_EDITED), "Os", cells.globals, artifacts_root());

	return done != NULL;
}

/* New reference: the source of a cell, which is remembered under @filename. */
static PyObject *source_of(struct bytes code, PyObject *filename)
{
	PyObject *source = PyUnicode_DecodeUTF8(code.data, (Py_ssize_t)code.size, "replace"), *done;

	if (source && maybe_indented(source))
		Py_SETREF(source, PyObject_CallOneArg(helper(HELPER_DEDENTED), source));
	if (!source)
		return NULL;
	done = PyObject_CallFunctionObjArgs(helper(HELPER_REMEMBER), source, filename, NULL);
	if (!done)
		Py_CLEAR(source);
	Py_XDECREF(done);
	return source;
}

/* What the cell needs is installed before it runs: what is asked for with it, what it says itself in a block of PEP
 * 723, and what its profile has for all. Returns false with an exception. */
static bool packages_there(uint64_t number, struct bytes wanted, PyObject *source)
{
	const char *text = PyUnicode_AsUTF8(source);
	PyObject *packages, *done = NULL;

	if (!text)
		PyErr_Clear();
	done = PyObject_CallFunction(helper(HELPER_PACKAGES_NOTE), "K", (unsigned long long)number);
	if (!done)
		return false;
	Py_CLEAR(done);
	if (!wanted.data && PyList_GET_SIZE(helper(HELPER_PACKAGES_DUE)) == 0 &&
	    (!text || !strstr(text, "# /// script")))
		return true;
	packages = unpack_strings(wanted);
	if (packages)
		done = PyObject_CallFunctionObjArgs(helper(HELPER_INSTALL), packages, source, NULL);
	Py_XDECREF(packages);
	Py_XDECREF(done);
	return done;
}

/* Returns false with an exception. */
static bool notebook_entered(uint64_t number, struct bytes note, PyObject *source)
{
	OWNED *kind = NULL;

	cells.kind = 0;
	cells.quiet = false;
	cells.number = number;
	if (!note.data)
		return true;
	cells.kind = KIND_CELL;
	kind = PyObject_CallFunction(helper(HELPER_NOTEBOOK_ENTER), "s#KO", note.data, (Py_ssize_t)note.size,
				     (unsigned long long)number, source);
	if (kind) {
		cells.kind = PyLong_AsLong(kind);
		cells.quiet = cells.kind > 0 && (cells.kind & KIND_QUIET);
		cells.kind -= cells.quiet ? KIND_QUIET : 0;
	}
	return kind && !PyErr_Occurred();
}

static void notebook_left(PyObject *filename)
{
	if (cells.kind)
		Py_XDECREF(PyObject_CallNoArgs(helper(HELPER_NOTEBOOK_LEAVE)));
	if (cells.kind == KIND_MESSAGE && filename)
		Py_XDECREF(PyObject_CallOneArg(helper(HELPER_FORGET), filename));
	cells.kind = 0;
	PyErr_Clear();
}

/* New reference. */
static PyObject *run_as_wanted(struct cell_result *result, PyObject *source, PyObject *filename)
{
	if (cells.kind == KIND_MESSAGE)
		return PyObject_CallOneArg(helper(HELPER_NOTEBOOK_RECEIVE), source);
	if ((cells.heed_rules && !permitted(result, source)) || !announced(source, Py_None) || !ipython_met(source))
		return NULL;
	return run_source(result, source, filename);
}

void cell_run(struct cell_result *result, uint64_t number, const struct cell_options *options)
{
	OWNED *filename = PyUnicode_FromFormat("<cell %llu>", (unsigned long long)number);
	OWNED *source = filename ? source_of(options->code, filename) : NULL, *value = NULL;

	*result = (struct cell_result){0};
	cells.of_session = number != 0;
	cells.surrounded = options->env.data;
	/* Python shows a warning once for each line of code, and each cell has another first line. So the record of
	 * the last cell is dropped. */
	if (source && PyDict_DelItem(cells.globals, cells.warning_registry) < 0)
		PyErr_Clear();
	if (source && notebook_entered(number, options->notebook, source) &&
	    (!options->reload || edited_reloaded()) && (!options_wanted(options) || options_set(options) == 0) &&
	    (!cells.of_session || packages_there(number, options->packages, source)))
		value = run_as_wanted(result, source, filename);
	if (!value || display(result, value) < 0)
		fail(result);
	if (source && cells.kind != KIND_MESSAGE)
		announce_end(result, source);
	end_figures(result);
	if (options_wanted(options))
		options_reset();
	notebook_left(filename);
}

PyObject *cell_answer(const struct question_message *question)
{
	PyObject *names = unpack_strings(question->names), *told;

	if (!names)
		return NULL;
	told = PyObject_CallFunction(
		helper(HELPER_ANSWER), "s#s#KOOOOis", question->kind.data, (Py_ssize_t)question->kind.size,
		question->code.data ? question->code.data : "", (Py_ssize_t)question->code.size,
		(unsigned long long)question->cursor, question->source ? Py_True : Py_False, names, cells.globals,
		cells.builtins, cells.future | PyCF_ALLOW_TOP_LEVEL_AWAIT, artifacts_root());
	Py_DECREF(names);
	return told;
}

PyObject *cell_describe(void)
{
	return PyObject_CallOneArg(helper(HELPER_DESCRIBE), cells.globals);
}

PyObject *cell_last(void)
{
	PyObject *last = PyDict_GetItemWithError(cells.builtins, cells.underscore); /* borrowed */

	PyErr_Clear();
	Py_XINCREF(last);
	return last;
}

void cell_task(struct cell_result *result, const struct task_message *task, int fd)
{
	*result = (struct cell_result){0};
	cells.of_session = false;
	if (bytes_is(task->task, "save"))
		result->report = PyObject_CallFunction(helper(HELPER_SAVE), "iKd", fd,
						       (unsigned long long)task->size, task->budget);
	else
		result->report =
			PyObject_CallFunction(helper(HELPER_LOAD), "iK", fd, (unsigned long long)task->offset);
	if (!result->report)
		fail(result);
}

void cell_forget(uint64_t number, PyObject *last)
{
	OWNED *filename = PyUnicode_FromFormat("<cell %llu>", (unsigned long long)number);

	if (filename)
		Py_XDECREF(PyObject_CallOneArg(helper(HELPER_FORGET), filename));
	if (last)
		(void)PyDict_SetItem(cells.builtins, cells.underscore, last);
	else
		(void)PyDict_DelItem(cells.builtins, cells.underscore);
	PyErr_Clear();
}

void cell_result_deinit(struct cell_result *result)
{
	Py_CLEAR(result->text);
	Py_CLEAR(result->data);
	Py_CLEAR(result->report);
	Py_CLEAR(result->error);
}
