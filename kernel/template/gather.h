/* The layout of the memory that every session shares. */
#pragma once

/* Before Python starts: its objects are to lie together. */
void gather_arenas(void);

/* In the template, when nearly everything is there: what comes from now on, and hence is written to, lies behind
 * all that, and together. */
void gather_room(void);

/* In the template, when its memory is as it will stay: into fewer mappings and large pages. A fork then copies
 * less, and its end removes less. So it is with what sessions add from here on, in large blocks or much of it. What
 * the host cannot do is left as it is. */
void gather_memory(void);
