/* Text that people are to tell apart by looking at it. */
#pragma once

#include "proto/base.h"

/* Whether @text is UTF-8 in which every character leaves a mark: no control, no space of any kind, nothing that
 * only changes how the text around it is shown. */
bool printable(struct bytes text);
