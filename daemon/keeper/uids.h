/* The host users that a laird of root gives to its sessions. Two daemons must not give the same one, or a session
 * could signal another's and read its memory. So each locks its numbers, in a file that all of them use. */
#pragma once

#include "proto/base.h"

struct uids {
	uint64_t first, last;
};

/* The default of earlier builds. */
#define UIDS_BEFORE ((struct uids){1900000000, 1900065535})

enum {
	_UIDS_E_SUCCESS,
	UIDS_E_TAKEN, /* another laird has some of them */
};

/* Until *@fdp is closed, @uids are this process's. If they are 0, they are set to some that nobody has. Returns 0,
 * UIDS_E_TAKEN or -errno; then *@fdp is unchanged, and @uids are set all the same. */
int uids_claim(struct uids *uids, int *fdp);

/* Both ways of a range as text; false if @text is none. */
#define UIDS_TEXT_SIZE 48
void uids_print(char text[static UIDS_TEXT_SIZE], const struct uids *uids);
bool uids_parse(struct uids *uids, const char *text);
