/* Large pages for the memory that every session shares. */
#pragma once

/* In the template, when its memory is as it will stay: a fork then copies fewer entries of page tables, and its end
 * removes fewer. What the host cannot do is left as it is. */
void gather_memory(void);
