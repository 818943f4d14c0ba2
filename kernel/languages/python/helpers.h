/* The part of the kernel that is written in Python: python/, embedded in the executable.
 *
 * Its modules are not in sys.modules and have their own copy of builtins, and C holds the functions that it
 * calls. So a cell cannot reach or break them by accident. Among each other the modules use their names. */
#pragma once

#include <Python.h>

enum helper {
	HELPER_SPLIT,
	HELPER_REMEMBER,
	HELPER_FORGET,
	HELPER_DEDENTED,
	HELPER_EXPLAIN,
	HELPER_SHOW_VALUES,
	HELPER_ENTER,
	HELPER_LEAVE,
	HELPER_LAST,
	HELPER_OPEN_FIGURES, /* a list */
	HELPER_END_FIGURES,
	HELPER_FIGURE_FORMAT,
	HELPER_ANSWER,
	HELPER_DESCRIBE, /* a list of maps, and how many more there are */
	HELPER_RELOAD_EDITED,
	HELPER_FILES_BACK,
	HELPER_MAGIC_CELL,
	HELPER_MEET_IPYTHON,
	HELPER_IPYTHONS, /* a list */
	HELPER_ANNOUNCE,
	HELPER_NOTEBOOK_ENTER,
	HELPER_NOTEBOOK_LEAVE,
	HELPER_NOTEBOOK_SHOWN,
	HELPER_NOTEBOOK_RECEIVE,
	HELPER_SET_RULES,
	HELPER_FORBIDDEN,
	HELPER_AWAIT,
	HELPER_TOGETHER,
	HELPER_LOOP_WAITS,
	HELPER_IDLE,
	HELPER_UNFORKABLE_TASKS,
	HELPER_RENEW_LOOP,
	HELPER_FORGET_ANSWERS,
	HELPER_PACKAGES,
	HELPER_PACKAGES_DUE, /* a list */
	HELPER_PACKAGES_NOTE,
	HELPER_PREPARE,
	HELPER_INSTALL,
	HELPER_OFFER,
	HELPER_TAKE_BACK,
	HELPER_PASS_ON,
	HELPER_HALT,
	HELPER_GO_ON,
	HELPER_SAVE,
	HELPER_LOAD,
	HELPER_RESEED,
	HELPER_GENERATOR, /* an address, or 0 */
	HELPER_BRANCH_FILES,
	HELPER_BRANCH_FILLED,
	HELPER_BRANCH_HOME,
	HELPER_CHECK_ENVIRONMENT,
	HELPER_PRELOAD,
	HELPER_WARM,
	HELPER_BORROW_CACHE,
	HELPER_RETURN_CACHE,
	HELPER_PLACES,
	HELPER_THREADS,
	HELPER_ALLOW_THREADS,
	HELPER_SETTLE,
	HELPER_MOVE_IN,
	HELPER_VERSION,
	_HELPER_N,
};

/* Run the modules, in the template. @given: a dict of the functions in C that they call. Returns 0, or -1 with an
 * exception. */
int helpers_load(PyObject *given);

/* Borrowed, never NULL after helpers_load. */
PyObject *helper(enum helper which);

/* The text of the pending exception, which is cleared; "" if the exception has none. */
void helper_error(char *text, size_t size);
