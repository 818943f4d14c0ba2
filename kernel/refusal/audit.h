/* The audit hook: it explains to the user of a session what the cage refuses, in terms of Python. It is not a
 * guard: one ctypes write removes it. */
#pragma once

#include "policy.h"

/* Before Py_Initialize, so that Python can neither find nor remove it. Until policy_arm it refuses only what a
 * template must not open, see changeable.h. */
int audit_install(void);

/* ---- for explaining what the hook let through and the kernel refused ---- */

/* What the hook has last looked at in this thread. */
struct audit_event {
	const char *name;  /* NULL: nothing */
	const char *alone; /* the reason if an error names no path; NULL: it is not this event's, then */
	const char *kind;  /* with that: of what is the target */
	enum want want;
	bool unnamed; /* its errors never name their path */
	size_t size;  /* of the path, or of the target */
	char path[256];
};

const struct audit_event *audit_last_event(void);
/* Replace the event, with that path or target. NULL: none. */
void audit_set_event(const struct audit_event *event, struct bytes path);
bool audit_event_about(const struct audit_event *event, struct bytes path);

/* Whether a cell that has begun has tried anything through Python that may change a file. */
void audit_begin_cell(void);
bool audit_saw_change(void);
