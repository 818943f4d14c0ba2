/* Text that people can tell apart by sight. */
#pragma once

#include "proto/base.h"

/* Whether @text is UTF-8 of visible characters only: no control character, no space of any kind, none that only
 * changes how the text around it is shown. */
bool printable(struct bytes text);
