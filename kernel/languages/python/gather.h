/* The layout of the memory that every session shares. */
#pragma once

/* Before Python starts: its objects will lie together. */
void gather_arenas(void);

/* In the template, when nearly everything is loaded: objects made from now on, which will be written to, lie
 * behind all others, and together. Both this and the next may be done again, after more has been loaded. */
void gather_room(void);

/* In the template, when its memory is final: put it into fewer mappings and large pages. Then a fork copies
 * less, and its end removes less. The same holds for what sessions add from here on, in large blocks or in large
 * amounts. If the host cannot do something, it is left out. */
void gather_memory(void);
