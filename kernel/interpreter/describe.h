/* What the variables of a state are, in short, so that two states can be compared. */
#pragma once

#include "proto/wire.h"

/* Serve `describe`, in a live interpreter or a frozen copy: a child looks, so this process stays as it is. Returns
 * 0 or -errno. */
int describe_serve(const struct wire_frame *message);
