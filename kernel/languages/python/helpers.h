/* The part of the kernel that is written in Python: python/, embedded in the executable.
 *
 * Its modules are not in sys.modules and have their own copy of builtins, and C holds the functions that it
 * calls. So a cell cannot reach or break them by accident. Among each other the modules use their names. */
#pragma once

#include <Python.h>

/* What C calls: its name here, the module, and its name there. */
/* clang-format off */
#define HELPERS(H) \
	H(SPLIT, source, split) \
	H(STREAM, streams, stream) \
	H(REMEMBER, source, remember) \
	H(FORGET, source, forget) \
	H(DEDENTED, source, dedented) \
	H(EXPLAIN, errors, explain) \
	H(SHOW_VALUES, errors, set_values) \
	H(ENTER, surroundings, enter) \
	H(LEAVE, surroundings, leave) \
	H(LAST, display, last) \
	H(OPEN_FIGURES, figures, opened) /* a list */ \
	H(END_FIGURES, figures, end_cell) \
	H(FIGURE_FORMAT, figures, set_format) \
	H(ANSWER, questions, answer) \
	H(DESCRIBE, describing, describe) /* a list of maps, and how many more there are */ \
	H(RELOAD_EDITED, reloading, edited) \
	H(FILES_BACK, reloading, files_back) \
	H(MAGIC_CELL, magics, cell) \
	H(MEET_IPYTHON, magics, meet) \
	H(IPYTHONS, magics, shells) /* a list */ \
	H(ANNOUNCE, magics, announce) \
	H(NOTEBOOK_ENTER, notebook, enter) \
	H(NOTEBOOK_LEAVE, notebook, leave) \
	H(NOTEBOOK_SHOWN, notebook, shown) \
	H(NOTEBOOK_RECEIVE, notebook, receive) \
	H(SET_RULES, checking, configure) \
	H(FORBIDDEN, checking, forbidden) \
	H(AWAIT, awaiting, run) \
	H(TOGETHER, awaiting, together) \
	H(LOOP_WAITS, awaiting, waits) \
	H(IDLE, awaiting, idle) \
	H(UNFORKABLE_TASKS, awaiting, unforkable) \
	H(RENEW_LOOP, awaiting, renew) \
	H(FORGET_ANSWERS, stdin, forget) \
	H(PACKAGES, packages, configure) \
	H(PACKAGES_DUE, packages, due) /* a list */ \
	H(PACKAGES_NOTE, packages, note) \
	H(PREPARE, packages, prepare) \
	H(INSTALL, packages, begin) \
	H(OFFER, functions, offer) \
	H(TAKE_BACK, functions, take_back) \
	H(PASS_ON, functions, pass_on) \
	H(HALT, functions, halt) \
	H(RESUME, functions, resume) \
	H(SAVE, saving, save) \
	H(LOAD, saving, load) \
	H(RESEED, seeds, renew) \
	H(GENERATOR, seeds, generator) /* an address, or 0 */ \
	H(BRANCH_FILES, branching, files) \
	H(BRANCH_FILLED, branching, filled) \
	H(BRANCH_HOME, branching, home) \
	H(CHECK_ENVIRONMENT, setup, check_environment) \
	H(PRELOAD, setup, preload) \
	H(WARM, setup, warm) \
	H(BORROW_CACHE, setup, borrow_cache) \
	H(RETURN_CACHE, setup, return_cache) \
	H(PLACES, setup, places) \
	H(SOURCES, setup, sources) \
	H(THREADS, setup, threads) \
	H(ALLOW_THREADS, setup, allow_threads) \
	H(SETTLE, setup, settle) \
	H(MOVE_IN, setup, move_in) \
	H(VERSION, setup, version)
/* clang-format on */

#define HELPER_NUMBER(helper, module, function) HELPER_##helper,

enum helper { HELPERS(HELPER_NUMBER) _HELPER_N };

/* Run the modules, in the template. @given: a dict of the functions in C that they call. Returns 0, or -1 with an
 * exception. */
int helpers_load(PyObject *given);

/* Borrowed, never NULL after helpers_load. */
PyObject *helper(enum helper which);

/* The text of the pending exception, which is cleared; "" if the exception has none. */
void helper_error(char *text, size_t size);
