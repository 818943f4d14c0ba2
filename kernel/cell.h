/* Running one cell in __main__. */
#pragma once

#include <Python.h>

#include "proto/base.h"

struct cell_result {
	int returncode;
	const char *cause;  /* static; NULL if it simply ended */
	PyObject *text;	    /* bytes: the last expression's repr; NULL if there is none */
	PyObject *error[3]; /* bytes: name, value, traceback; all NULL if there is none */
};

/* In the template, once, after helpers_load. Returns 0, or -1 with an exception. */
int cell_init(size_t text_max);

/* Run @code, valid UTF-8, as <cell @number>. Whatever happens is in @result, and no exception is left; its
 * traceback has been written to stderr. SIGINT may arrive at any time. */
void cell_run(struct cell_result *result, uint64_t number, struct bytes code);
/* As if it had not been run: neither _ nor its source. */
void cell_forget(uint64_t number);
void cell_result_deinit(struct cell_result *result);

/* New reference to a bytes object: @text, a str, as valid UTF-8 whatever it holds. NULL with an exception. */
PyObject *utf8_of(PyObject *text);
