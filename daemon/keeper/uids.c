/* A lock of the byte with the number of a user: the kernel finds ranges that overlap. */
#include "uids.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#define UIDS_FILE "/run/lair-uids.lock"
/* Where ranges are looked for, and how many. */
#define UIDS_FIRST 1900000000ULL
#define UIDS_EACH 65536
#define UIDS_BLOCKS 1000

static int uids_lock(int fd, const struct uids *uids)
{
	struct flock lock = {.l_type = F_WRLCK,
			     .l_whence = SEEK_SET,
			     .l_start = (off_t)uids->first,
			     .l_len = (off_t)(uids->last - uids->first + 1)};

	if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
		return 0;
	return errno == EAGAIN || errno == EACCES ? UIDS_E_TAKEN : -errno;
}

static int uids_find(int fd, struct uids *uids)
{
	int r = UIDS_E_TAKEN;

	for (unsigned i = 0; i < UIDS_BLOCKS && r == UIDS_E_TAKEN; i++) {
		uids->first = UIDS_FIRST + (uint64_t)i * UIDS_EACH;
		uids->last = uids->first + UIDS_EACH - 1;
		r = fd < 0 ? -EBADF : uids_lock(fd, uids);
	}
	return r;
}

int uids_claim(struct uids *uids, int *fdp)
{
	_cleanup_(fd_closep) int fd = open(UIDS_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	int error = fd < 0 ? -errno : 0, r;

	r = uids->last ? (fd < 0 ? 0 : uids_lock(fd, uids)) : uids_find(fd, uids);
	if (error || r)
		return error ? error : r;
	*fdp = steal_fd(&fd);
	return 0;
}

void uids_print(char text[static UIDS_TEXT_SIZE], const struct uids *uids)
{
	snprintf(text, UIDS_TEXT_SIZE, "%" PRIu64 "-%" PRIu64, uids->first, uids->last);
}

bool uids_parse(struct uids *uids, const char *text)
{
	return sscanf(text, "%" SCNu64 "-%" SCNu64, &uids->first, &uids->last) == 2 && uids->first > 0 &&
	       uids->first <= uids->last && uids->last < UINT32_MAX - 1;
}
