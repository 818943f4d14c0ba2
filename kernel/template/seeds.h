/* The random numbers of a new session: the generators that Python and numpy keep for everybody. */
#pragma once

/* In the template, at the end: where numpy keeps its generator, if it has one. */
void seeds_find(void);
/* In a fork of it: they start anew. */
void seeds_renew(void);
/* The same after user code, which may have changed anything. */
void seeds_renew_any(void);
