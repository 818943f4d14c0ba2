/* Running one cell in __main__. */
#pragma once

#include <Python.h>

#include "proto/message.h"

struct cell_result {
	int returncode;
	const char *cause; /* static; NULL if it simply ended */
	PyObject *text;	   /* bytes: the last expression's repr; NULL if there is none */
	PyObject *data;	   /* dict: other forms of the value, by MIME type; NULL if there are none */
	PyObject *report;  /* dict, as task_report; NULL if it was no task */
	PyObject *error;   /* dict, as cell_error; NULL if there is none */
};

/* In the template, once, after helpers_load. Returns 0, or -1 with an exception. */
int cell_init(size_t text_max);

/* Whether cells that break a rule of the profile are refused. */
void cell_heed_rules(bool heed);

/* Run the code of @options, as <cell @number>; 0: a rehearsal. @result has the outcome in any case, and no
 * exception is left. If the cell failed, its traceback has been written to stderr. SIGINT may arrive at any time.
 */
void cell_run(struct cell_result *result, uint64_t number, const struct cell_options *options);
/* The same for a task, which reads or writes @fd. */
void cell_task(struct cell_result *result, const struct task_message *task, int fd);
/* The value of _. New reference; NULL, without an exception, if there is none. */
PyObject *cell_last(void);
/* Forget the cell as if it had not run: drop its source, and make @last, which may be NULL, _ again. */
void cell_forget(uint64_t number, PyObject *last);
void cell_result_deinit(struct cell_result *result);

/* Answer a question about the session's objects. New reference: a tuple of the answer (a dict or None) and of what
 * is wrong with the question (a str or None). NULL with an exception. SIGINT may arrive at any time. */
PyObject *cell_answer(const struct question_message *question);
/* New reference: the variables of the session in short, and how many more there are; NULL with an exception. */
PyObject *cell_describe(void);
