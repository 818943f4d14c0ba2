/* Refusals of the kernel that the audit hook let through, told in the same words as those of the hook. */
#pragma once

/* In the template, after Python is up. From then on, if the cage is the reason for an OSError of the kernel, it
 * is turned into a refusal. Functions without an event of their own are watched. Returns 0, or -1 with an
 * exception. */
int oserror_install(void);

/* For sqlite's errors, which do not come from the kernel. Call it when sqlite's module is loaded. */
void oserror_watch_sqlite(void);
