/* Files that sessions may write to could hold hostile code. A template is in no cage, so it takes no code from
 * there: neither as a module, nor because an environment looks for modules there. */
#pragma once

#include "proto/base.h"

/* From now on until changeable_end nothing in @directories is opened. @directories is an array of str, of which a
 * copy is kept that no fork gets: a warden that is made meanwhile ends it first. Returns 0 or -errno. */
int changeable_begin(struct bytes directories);
void changeable_end(void);

/* A sentence about the file that was refused; NULL if none was. Static. */
const char *changeable_found(void);

/* Whether @path lies there, so that nothing may be taken from it. */
bool changeable_is(const char *path);
