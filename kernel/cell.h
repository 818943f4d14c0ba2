/* Running one cell in __main__. */
#pragma once

#include <Python.h>

#include "proto/message.h"

struct cell_result {
	int returncode;
	const char *cause; /* static; NULL if it simply ended */
	PyObject *text;	   /* bytes: the last expression's repr; NULL if there is none */
	PyObject *data;	   /* dict: what else it can be shown as, by MIME type; NULL if nothing */
	PyObject *error;   /* dict, as cell_error; NULL if there is none */
};

/* In the template, once, after helpers_load. Returns 0, or -1 with an exception. */
int cell_init(size_t text_max);

/* Run the code of @run, as <cell NUMBER>. Whatever happens is in @result, and no exception is left; its
 * traceback has been written to stderr. SIGINT may arrive at any time. */
void cell_run(struct cell_result *result, const struct run_message *run);
/* As if it had not been run: neither _ nor its source. */
void cell_forget(uint64_t number);
void cell_result_deinit(struct cell_result *result);

/* New reference to a bytes object: @text, a str, as valid UTF-8 whatever it holds. NULL with an exception. */
PyObject *utf8_of(PyObject *text);
