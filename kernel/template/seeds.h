/* The random numbers of a new session: the global generators of Python and numpy. */
#pragma once

/* In the template, at the end: find numpy's generator, if there is one. */
void seeds_find(void);
/* In a fork of the template: the generators start anew. */
void seeds_renew(void);
/* The same after user code, which may have changed anything. */
void seeds_renew_any(void);
