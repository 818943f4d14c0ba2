/* Who may have how many of the descriptors that this process is allowed. The keeper holds whatever routers store,
 * so its limit is the larger one: a router is short of descriptors before its keeper is. The router has ranks: what
 * needs a descriptor only to grow leaves some to what keeps sessions alive. */
#pragma once

#include "proto/base.h"

/* Raise our limit to the hard limit, or to what of it is for routers. A descriptor above it stays. */
void descriptors_limit(bool all);

/* Highest last. A session that has lost its interpreter may have all that are left. */
enum descriptors_rank {
	DESCRIPTORS_SESSION, /* a new session, or a spare for one */
	DESCRIPTORS_CHECKPOINT,
	DESCRIPTORS_CONNECTION,
};

/* Whether one more of its rank leaves enough to the higher ones. */
bool descriptors_left(enum descriptors_rank rank);

#define DESCRIPTORS_TEXT_SIZE 256

/* Why there is none: the limit, and how to have another. Returns @text. */
const char *descriptors_explain(char text[static DESCRIPTORS_TEXT_SIZE]);
