/* The embedded Python modules, and which function of which module C calls: two tables. */
#include "helpers.h"

#include "embedded.h" /* made by CMakeLists.txt */

#include "owned.h"
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

/* The modules in the order in which they run, and the one whose namespace each has: its own, or that of an earlier
 * one. */
/* clang-format off */
#define MODULES(M) \
	M(source, source) \
	M(streams, streams) \
	M(awaiting, awaiting) \
	M(stdin, stdin) \
	M(functions, functions) \
	M(servers, functions) \
	M(packages, packages) \
	M(errors, errors) \
	M(setup, setup) \
	M(seeds, seeds) \
	M(display, display) \
	M(tables, display) \
	M(charts, display) \
	M(figures, display) \
	M(libraries, display) \
	M(fifos, fifos) \
	M(magics, magics) \
	M(notebook, notebook) \
	M(objects, objects) \
	M(variables, variables) \
	M(describing, describing) \
	M(checking, checking) \
	M(completion, completion) \
	M(inspection, inspection) \
	M(questions, questions) \
	M(surroundings, display) \
	M(reloading, reloading) \
	M(branching, branching) \
	M(saving, saving)
/* clang-format on */

#define MODULE_EMBED(name, in) EMBED(name);
#define MODULE_NUMBER(name, in) MODULE_##name,
#define MODULE_ROW(name, in)                                                                                       \
	{#name, "<lair>/" #name ".py", name##_source, name##_code, name##_code_end, MODULE_##in},
#define HELPER_ROW(helper, module, function) {MODULE_##module, #function},

MODULES(MODULE_EMBED)

enum module { MODULES(MODULE_NUMBER) N_MODULES };

static const struct {
	const char *name, *file, *text, *code, *code_end;
	enum module in;
} modules[N_MODULES] = {MODULES(MODULE_ROW)};

static const struct {
	enum module module;
	const char *function;
} functions[_HELPER_N] = {HELPERS(HELPER_ROW)};

static PyObject *helpers[_HELPER_N]; /* owned for ever */

/* The namespace of @module, with all of @given in it. @given gets the module under its name, so that later modules
 * know it. Borrowed, and lives for ever. */
static PyObject *namespace_new(enum module module, PyObject *given)
{
	PyObject *object = PyModule_New("lair"), *globals = object ? PyModule_GetDict(object) : NULL;
	OWNED *builtins = PyDict_Copy(PyEval_GetBuiltins());

	if (!globals || !builtins || PyDict_Update(globals, given) < 0 ||
	    PyDict_SetItemString(globals, "__builtins__", builtins) < 0 ||
	    PyDict_SetItemString(given, modules[module].name, object) < 0)
		globals = NULL;
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
	OWNED *code = module_code(module);
	OWNED *done = code ? PyEval_EvalCode(code, globals, globals) : NULL;

	return done ? 0 : -1;
}

int helpers_load(PyObject *given)
{
	PyObject *namespaces[N_MODULES] = {NULL};

	for (size_t i = 0; i < N_MODULES; i++) {
		namespaces[i] =
			modules[i].in < i ? namespaces[modules[i].in] : namespace_new((enum module)i, given);
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
	OWNED *type = NULL, *error = NULL, *trace = NULL, *said = NULL;
	const char *why;

	PyErr_Fetch(&type, &error, &trace);
	PyErr_NormalizeException(&type, &error, &trace);
	said = error ? PyObject_Str(error) : NULL;
	why = said ? PyUnicode_AsUTF8(said) : NULL;
	snprintf(text, size, "%s", why ? why : "");
	PyErr_Clear();
}
