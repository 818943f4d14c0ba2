/* Where open files stood at a checkpoint. Descriptors are shared between a frozen copy and the interpreters that
 * are forked from it, and their offsets with them. */
#pragma once

/* Before a copy is made: note where each open file of the workspace's file system stands. */
void positions_note(void);
/* In a fork of the copy, when its files are as they were: set them back. A file that was removed since, and made
 * again, is opened anew under the same descriptor. */
void positions_set(void);
