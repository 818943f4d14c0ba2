/* uv, in the builder's cage: which versions, and then their files. */
#pragma once

#include "order.h"

/* In the cage, in its first process: has uv do it, and tells each step over @control. It ends when the other end of
 * that closes, and with it all that it has started. */
_Noreturn void uv_run(const struct order *order, int control);
