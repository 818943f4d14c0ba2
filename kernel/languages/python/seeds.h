/* The random numbers of a new session: the global generators of Python and numpy. */
#pragma once

#include <stdbool.h>

/* In the template, at the end: find numpy's generator, if there is one. */
void seeds_find(void);
/* In a fork of the template: the generators start anew. */
void seeds_renew(void);
/* The same after user code, which may have changed anything: in a branch @every one, and after going back those
 * that code has not seeded. */
void seeds_renew_any(bool every);
