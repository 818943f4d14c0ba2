/* A tree of files, made by somebody else who is dead by now, becomes read-only and ours. */
#pragma once

#include "proto/base.h"

/* What a file takes at least, empty or not. */
#define SEAL_UNIT 4096

/* The tree @name in @directory: only directories and files, each with one name, that take no more than @limit bytes
 * together. All of them become readable to everybody and writable to nobody, and as root they become root's.
 * Returns 0 with *@sizep; or -errno with @culprit: -ELOOP for what is neither, -EMLINK for a file of two names,
 * -EFBIG. */
int seal_tree(int directory, const char *name, uint64_t limit, uint64_t *sizep, char culprit[static 256]);
