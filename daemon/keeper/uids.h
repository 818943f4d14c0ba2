/* The host users that a laird of root gives to its sessions. Two daemons must not give the same one, or a session
 * could signal and read another's. So each locks its numbers, in a file that all of them use. */
#pragma once

#include "proto/base.h"

enum {
	_UIDS_E_SUCCESS,
	UIDS_E_TAKEN, /* another laird has some of them */
};

/* Until *@fdp is closed, @first to @last are this process's. Returns 0, UIDS_E_TAKEN or -errno. */
int uids_claim(int *fdp, uint64_t first, uint64_t last);
