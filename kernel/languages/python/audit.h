/* The audit hook: it explains to the user of a session what the cage refuses, in terms of Python. It is not a
 * guard: one ctypes write removes it. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "refusal/policy.h"

/* Before Py_Initialize, so that Python can neither find the hook nor remove it. Until policy_arm the hook refuses
 * only files that a template must not open (changeable.h). */
int audit_install(void);

/* In a template, note the paths that are opened from now on. audit_opened ends that, and returns them: a new list
 * of bytes, or NULL if none are noted. */
void audit_note_opened(void);
PyObject *audit_opened(void);

/* ---- for explaining what the hook let through and the kernel refused ---- */

/* The last event in this thread that the hook has looked at. */
struct audit_event {
	const char *name;  /* NULL: there is no event */
	const char *alone; /* the reason for an error that names no path; NULL: it has another cause */
	const char *kind;  /* if `alone` is set: the kind of the target */
	enum want want;
	bool unnamed; /* its errors never name their path */
	size_t size;  /* of the path, or of the target */
	char path[256];
};

const struct audit_event *audit_last_event(void);
/* Replace the last event. @path is its path or target. NULL: there is none. */
void audit_set_event(const struct audit_event *event, struct bytes path);
bool audit_event_about(const struct audit_event *event, struct bytes path);

/* Whether a terminal may be opened, for a function that tells no event. Returns 0, or -1 with an exception. */
int audit_check_terminal(const char *event);

/* A cell begins. From then on audit_saw_change says whether it has tried, through Python, something that may change
 * a file. */
void audit_begin_cell(void);
bool audit_saw_change(void);
