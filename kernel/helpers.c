/* The embedded Python modules, and which function of which module C calls: two tables. */
#include "helpers.h"

#include "proto/base.h"

/* name_source points to the text of python/name.py, which ends with a NUL. */
#define EMBED(name)                                                                                                \
	__asm__(".pushsection .rodata\n" #name "_source:\n.incbin \"" PYTHON_SOURCES "/" #name ".py\"\n.byte 0\n"  \
		".popsection");                                                                                    \
	extern const char name##_source[] __attribute__((visibility("hidden")))

EMBED(source);
EMBED(awaiting);
EMBED(branching);
EMBED(errors);
EMBED(stdin);
EMBED(setup);
EMBED(display);
EMBED(tables);
EMBED(figures);

enum module { SOURCE, AWAITING, BRANCHING, ERRORS, STDIN, SETUP, DISPLAY, TABLES, FIGURES, N_MODULES };

/* @in: whose namespace it shares, one before it. */
static const struct {
	const char *name, *text;
	enum module in;
} modules[N_MODULES] = {
	[SOURCE] = {"<lair>/source.py", source_source},
	[AWAITING] = {"<lair>/awaiting.py", awaiting_source},
	[ERRORS] = {"<lair>/errors.py", errors_source},
	[STDIN] = {"<lair>/stdin.py", stdin_source},
	[TABLES] = {"<lair>/tables.py", tables_source, DISPLAY},
	[FIGURES] = {"<lair>/figures.py", figures_source, DISPLAY},
	[DISPLAY] = {"<lair>/display.py", display_source},
	[SETUP] = {"<lair>/setup.py", setup_source},
	[BRANCHING] = {"<lair>/branching.py", branching_source},
};

static const struct {
	enum module module;
	const char *function;
} functions[_HELPER_N] = {
	[HELPER_SPLIT] = {SOURCE, "split"},
	[HELPER_REMEMBER] = {SOURCE, "remember"},
	[HELPER_FORGET] = {SOURCE, "forget"},
	[HELPER_EXPLAIN] = {ERRORS, "explain"},
	[HELPER_LAST] = {DISPLAY, "last"},
	[HELPER_OPEN_FIGURES] = {FIGURES, "opened"},
	[HELPER_END_FIGURES] = {FIGURES, "end_cell"},
	[HELPER_FIGURE_FORMAT] = {FIGURES, "set_format"},
	[HELPER_AWAIT] = {AWAITING, "run"},
	[HELPER_TOGETHER] = {AWAITING, "together"},
	[HELPER_PENDING_TASKS] = {AWAITING, "pending"},
	[HELPER_RESEED] = {BRANCHING, "reseed"},
	[HELPER_BRANCH_FILES] = {BRANCHING, "files"},
	[HELPER_CHECK_ENVIRONMENT] = {SETUP, "check_environment"},
	[HELPER_PRELOAD] = {SETUP, "preload"},
	[HELPER_WARM] = {SETUP, "warm"},
	[HELPER_BORROW_CACHE] = {SETUP, "borrow_cache"},
	[HELPER_RETURN_CACHE] = {SETUP, "return_cache"},
	[HELPER_PLACES] = {SETUP, "places"},
	[HELPER_THREADS] = {SETUP, "threads"},
	[HELPER_SETTLE] = {SETUP, "settle"},
	[HELPER_MOVE_IN] = {SETUP, "move_in"},
	[HELPER_VERSION] = {SETUP, "version"},
};

static PyObject *helpers[_HELPER_N]; /* owned for ever */

/* New reference: what a module begins with. */
static PyObject *namespace_new(PyObject *given)
{
	PyObject *globals = PyDict_Copy(given), *builtins = PyDict_Copy(PyEval_GetBuiltins());
	PyObject *name = PyUnicode_FromString("lair");

	if (!globals || !builtins || !name || PyDict_SetItemString(globals, "__builtins__", builtins) < 0 ||
	    PyDict_SetItemString(globals, "__name__", name) < 0)
		Py_CLEAR(globals);
	Py_XDECREF(name);
	Py_XDECREF(builtins);
	return globals;
}

static int module_run(enum module module, PyObject *globals)
{
	PyObject *code = Py_CompileString(modules[module].text, modules[module].name, Py_file_input);
	PyObject *done = code ? PyEval_EvalCode(code, globals, globals) : NULL;

	Py_XDECREF(code);
	Py_XDECREF(done);
	return done ? 0 : -1;
}

int helpers_load(PyObject *given)
{
	PyObject *namespaces[N_MODULES];

	for (size_t i = 0; i < N_MODULES; i++) {
		namespaces[i] = modules[i].in ? namespaces[modules[i].in] : namespace_new(given);
		if (!namespaces[i] || module_run((enum module)i, namespaces[i]) < 0)
			return -1;
	}
	for (size_t i = 0; i < _HELPER_N; i++) {
		helpers[i] = PyDict_GetItemString(namespaces[functions[i].module], functions[i].function);
		if (!helpers[i])
			return -1;
		Py_INCREF(helpers[i]);
	}
	return 0; /* the namespaces live on in their functions */
}

PyObject *helper(enum helper which)
{
	return helpers[which];
}
