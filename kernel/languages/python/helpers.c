/* The embedded Python modules, and which function of which module C calls: two tables. */
#include "helpers.h"

#include "embedded.h" /* made by CMakeLists.txt */

#include "proto/base.h"

#include <endian.h>
#include <marshal.h>
#include <stdio.h>

/* name_source points to the text of python/name.py, which ends with a NUL. From name_code to name_code_end is what
 * compile.py has made of it. */
#define EMBED(name)                                                                                                \
	__asm__(".pushsection .rodata\n" #name "_source:\n.incbin \"" PYTHON_SOURCES "/" #name                     \
		".py\"\n.byte 0\n" #name "_code:\n.incbin \"" PYTHON_CODE "/" #name ".code\"\n" #name              \
		"_code_end:\n.popsection");                                                                        \
	extern const char name##_source[] __attribute__((visibility("hidden")));                                   \
	extern const char name##_code[] __attribute__((visibility("hidden")));                                     \
	extern const char name##_code_end[] __attribute__((visibility("hidden")))

EMBED(source);
EMBED(awaiting);
EMBED(seeds);
EMBED(branching);
EMBED(saving);
EMBED(errors);
EMBED(objects);
EMBED(variables);
EMBED(describing);
EMBED(magics);
EMBED(notebook);
EMBED(checking);
EMBED(completion);
EMBED(inspection);
EMBED(questions);
EMBED(reloading);
EMBED(stdin);
EMBED(functions);
EMBED(servers);
EMBED(packages);
EMBED(setup);
EMBED(display);
EMBED(tables);
EMBED(charts);
EMBED(figures);
EMBED(libraries);
EMBED(fifos);
EMBED(surroundings);

enum module {
	SOURCE,
	AWAITING,
	STDIN,
	FUNCTIONS,
	SERVERS,
	PACKAGES,
	ERRORS,
	SETUP,
	SEEDS,
	DISPLAY,
	TABLES,
	CHARTS,
	FIGURES,
	LIBRARIES,
	FIFOS,
	MAGICS,
	NOTEBOOK,
	OBJECTS,
	VARIABLES,
	DESCRIBING,
	CHECKING,
	COMPLETION,
	INSPECTION,
	QUESTIONS,
	SURROUNDINGS,
	RELOADING,
	BRANCHING,
	SAVING,
	N_MODULES
};

#define MODULE(name_, ...)                                                                                         \
	{                                                                                                          \
		.name = #name_, .file = "<lair>/" #name_ ".py", .text = name_##_source, .code = name_##_code,      \
		.code_end = name_##_code_end, __VA_ARGS__                                                          \
	}

/* .in: an earlier module, whose namespace this one shares. */
static const struct {
	const char *name, *file, *text, *code, *code_end;
	enum module in;
} modules[N_MODULES] = {
	[SOURCE] = MODULE(source),
	[AWAITING] = MODULE(awaiting),
	[ERRORS] = MODULE(errors),
	[STDIN] = MODULE(stdin),
	[FUNCTIONS] = MODULE(functions),
	[SERVERS] = MODULE(servers, .in = FUNCTIONS),
	[PACKAGES] = MODULE(packages),
	[SETUP] = MODULE(setup),
	[SEEDS] = MODULE(seeds),
	[DISPLAY] = MODULE(display),
	[TABLES] = MODULE(tables, .in = DISPLAY),
	[CHARTS] = MODULE(charts, .in = DISPLAY),
	[FIGURES] = MODULE(figures, .in = DISPLAY),
	[LIBRARIES] = MODULE(libraries, .in = DISPLAY),
	[FIFOS] = MODULE(fifos),
	[OBJECTS] = MODULE(objects),
	[VARIABLES] = MODULE(variables),
	[DESCRIBING] = MODULE(describing),
	[MAGICS] = MODULE(magics),
	[NOTEBOOK] = MODULE(notebook),
	[CHECKING] = MODULE(checking),
	[COMPLETION] = MODULE(completion),
	[INSPECTION] = MODULE(inspection),
	[QUESTIONS] = MODULE(questions),
	[SURROUNDINGS] = MODULE(surroundings, .in = DISPLAY),
	[RELOADING] = MODULE(reloading),
	[BRANCHING] = MODULE(branching),
	[SAVING] = MODULE(saving),
};

static const struct {
	enum module module;
	const char *function;
} functions[_HELPER_N] = {
	[HELPER_SPLIT] = {SOURCE, "split"},
	[HELPER_REMEMBER] = {SOURCE, "remember"},
	[HELPER_FORGET] = {SOURCE, "forget"},
	[HELPER_DEDENTED] = {SOURCE, "dedented"},
	[HELPER_RELOAD_EDITED] = {RELOADING, "edited"},
	[HELPER_FILES_BACK] = {RELOADING, "files_back"},
	[HELPER_ANSWER] = {QUESTIONS, "answer"},
	[HELPER_DESCRIBE] = {DESCRIBING, "describe"},
	[HELPER_MAGIC_CELL] = {MAGICS, "cell"},
	[HELPER_MEET_IPYTHON] = {MAGICS, "meet"},
	[HELPER_IPYTHONS] = {MAGICS, "shells"},
	[HELPER_ANNOUNCE] = {MAGICS, "announce"},
	[HELPER_NOTEBOOK_ENTER] = {NOTEBOOK, "enter"},
	[HELPER_NOTEBOOK_LEAVE] = {NOTEBOOK, "leave"},
	[HELPER_NOTEBOOK_SHOWN] = {NOTEBOOK, "shown"},
	[HELPER_NOTEBOOK_RECEIVE] = {NOTEBOOK, "receive"},
	[HELPER_SET_RULES] = {CHECKING, "configure"},
	[HELPER_FORBIDDEN] = {CHECKING, "forbidden"},
	[HELPER_EXPLAIN] = {ERRORS, "explain"},
	[HELPER_SHOW_VALUES] = {ERRORS, "set_values"},
	[HELPER_ENTER] = {SURROUNDINGS, "enter"},
	[HELPER_LEAVE] = {SURROUNDINGS, "leave"},
	[HELPER_LAST] = {DISPLAY, "last"},
	[HELPER_OPEN_FIGURES] = {FIGURES, "opened"},
	[HELPER_END_FIGURES] = {FIGURES, "end_cell"},
	[HELPER_FIGURE_FORMAT] = {FIGURES, "set_format"},
	[HELPER_AWAIT] = {AWAITING, "run"},
	[HELPER_TOGETHER] = {AWAITING, "together"},
	[HELPER_LOOP_WAITS] = {AWAITING, "waits"},
	[HELPER_IDLE] = {AWAITING, "idle"},
	[HELPER_UNFORKABLE_TASKS] = {AWAITING, "unforkable"},
	[HELPER_RENEW_LOOP] = {AWAITING, "renew"},
	[HELPER_FORGET_ANSWERS] = {STDIN, "forget"},
	[HELPER_PACKAGES] = {PACKAGES, "configure"},
	[HELPER_PACKAGES_DUE] = {PACKAGES, "due"},
	[HELPER_PACKAGES_NOTE] = {PACKAGES, "note"},
	[HELPER_PREPARE] = {PACKAGES, "prepare"},
	[HELPER_INSTALL] = {PACKAGES, "begin"},
	[HELPER_OFFER] = {FUNCTIONS, "offer"},
	[HELPER_TAKE_BACK] = {FUNCTIONS, "take_back"},
	[HELPER_PASS_ON] = {FUNCTIONS, "pass_on"},
	[HELPER_HALT] = {FUNCTIONS, "halt"},
	[HELPER_GO_ON] = {FUNCTIONS, "go_on"},
	[HELPER_SAVE] = {SAVING, "save"},
	[HELPER_LOAD] = {SAVING, "load"},
	[HELPER_RESEED] = {SEEDS, "renew"},
	[HELPER_GENERATOR] = {SEEDS, "generator"},
	[HELPER_BRANCH_FILES] = {BRANCHING, "files"},
	[HELPER_BRANCH_FILLED] = {BRANCHING, "filled"},
	[HELPER_BRANCH_HOME] = {BRANCHING, "home"},
	[HELPER_CHECK_ENVIRONMENT] = {SETUP, "check_environment"},
	[HELPER_PRELOAD] = {SETUP, "preload"},
	[HELPER_WARM] = {SETUP, "warm"},
	[HELPER_BORROW_CACHE] = {SETUP, "borrow_cache"},
	[HELPER_RETURN_CACHE] = {SETUP, "return_cache"},
	[HELPER_PLACES] = {SETUP, "places"},
	[HELPER_THREADS] = {SETUP, "threads"},
	[HELPER_ALLOW_THREADS] = {SETUP, "allow_threads"},
	[HELPER_SETTLE] = {SETUP, "settle"},
	[HELPER_MOVE_IN] = {SETUP, "move_in"},
	[HELPER_VERSION] = {SETUP, "version"},
};

static PyObject *helpers[_HELPER_N]; /* owned for ever */

/* The namespace of @module, with all of @given in it. @given gets the module under its name, so that later modules
 * know it. Borrowed, and lives for ever. */
static PyObject *namespace_new(enum module module, PyObject *given)
{
	PyObject *object = PyModule_New("lair"), *globals = object ? PyModule_GetDict(object) : NULL;
	PyObject *builtins = PyDict_Copy(PyEval_GetBuiltins());

	if (!globals || !builtins || PyDict_Update(globals, given) < 0 ||
	    PyDict_SetItemString(globals, "__builtins__", builtins) < 0 ||
	    PyDict_SetItemString(given, modules[module].name, object) < 0)
		globals = NULL;
	Py_XDECREF(builtins);
	return globals;
}

/* What was compiled when lair-kernel was built holds for Pythons of the same magic number. For any other it is
 * compiled now, which takes longer than all of Python's own start. */
static PyObject *module_code(enum module module)
{
	const char *code = modules[module].code;
	Py_ssize_t size = modules[module].code_end - code;
	uint32_t magic = 0;

	if (size > (Py_ssize_t)sizeof(magic))
		memcpy(&magic, code, sizeof(magic));
	if (magic && le32toh(magic) == (uint32_t)PyImport_GetMagicNumber())
		return PyMarshal_ReadObjectFromString(code + sizeof(magic), size - (Py_ssize_t)sizeof(magic));
	return Py_CompileString(modules[module].text, modules[module].file, Py_file_input);
}

static int module_run(enum module module, PyObject *globals)
{
	PyObject *code = module_code(module);
	PyObject *done = code ? PyEval_EvalCode(code, globals, globals) : NULL;

	Py_XDECREF(code);
	Py_XDECREF(done);
	return done ? 0 : -1;
}

int helpers_load(PyObject *given)
{
	PyObject *namespaces[N_MODULES] = {NULL};

	for (size_t i = 0; i < N_MODULES; i++) {
		namespaces[i] = modules[i].in ? namespaces[modules[i].in] : namespace_new((enum module)i, given);
		if (!namespaces[i] || module_run((enum module)i, namespaces[i]) < 0)
			return -1;
	}
	for (size_t i = 0; i < _HELPER_N; i++) {
		helpers[i] = PyDict_GetItemString(namespaces[functions[i].module], functions[i].function);
		if (!helpers[i])
			return -1;
		Py_INCREF(helpers[i]);
	}
	return 0; /* the modules live on */
}

PyObject *helper(enum helper which)
{
	return helpers[which];
}

void helper_error(char *text, size_t size)
{
	PyObject *type, *error, *trace, *said;
	const char *why;

	PyErr_Fetch(&type, &error, &trace);
	PyErr_NormalizeException(&type, &error, &trace);
	said = error ? PyObject_Str(error) : NULL;
	why = said ? PyUnicode_AsUTF8(said) : NULL;
	snprintf(text, size, "%s", why ? why : "");
	Py_XDECREF(type);
	Py_XDECREF(error);
	Py_XDECREF(trace);
	Py_XDECREF(said);
	PyErr_Clear();
}
