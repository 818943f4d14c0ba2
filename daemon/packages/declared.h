/* The packages that code itself declares, in a block of PEP 723. */
#pragma once

#include "proto/base.h"

/* The next of the dependencies that @code declares, from *@cursorp, which is 0 at first; false: no more. What
 * cannot be read as a list of plain strings ends it. The interpreter reads the block by itself: this one only says
 * early what it will ask for. */
bool declared_next(struct bytes code, size_t *cursorp, struct bytes *itemp);
