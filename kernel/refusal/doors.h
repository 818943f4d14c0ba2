/* What the audit hook let through and only the kernel refused, told in the same words as what the hook refuses. */
#pragma once

/* In the template, after Python is up: from then on an OSError of the kernel's that the cage is the reason for is
 * made a refusal, and functions that raise no event of their own are watched. Returns 0, or -1 with an exception.
 */
int doors_install(void);

/* sqlite's errors, which are not the kernel's: once that module is there. */
void doors_watch_sqlite(void);
