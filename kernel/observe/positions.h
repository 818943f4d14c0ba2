/* Where open files stood at a checkpoint. Descriptors are shared between a frozen copy and the interpreters that
 * are forked from it, and their offsets with them. */
#pragma once

#include <stdbool.h>
#include <time.h>

/* Before a copy is made: note where each open file of the workspace's file system stands. */
void positions_note(void);
/* In a fork of the copy, when its files are as they were: set them back. A file that was removed since, and made
 * again, is opened anew under the same descriptor. */
void positions_set(void);

/* How many descriptors are open for writing on files of the workspace's file system. @changedp: whether one of
 * these files has changed since @then, by whatever name or map, or nobody knows: then there may be any number. */
unsigned positions_held(struct timespec then, bool *changedp);
