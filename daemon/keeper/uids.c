/* A lock of the byte with the number of a user: the kernel finds ranges that overlap. */
#include "uids.h"

#include <fcntl.h>

#define UIDS_FILE "/run/lair-uids.lock"

int uids_claim(int *fdp, uint64_t first, uint64_t last)
{
	struct flock lock = {.l_type = F_WRLCK,
			     .l_whence = SEEK_SET,
			     .l_start = (off_t)first,
			     .l_len = (off_t)(last - first + 1)};
	_cleanup_(fd_closep) int fd = open(UIDS_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	if (fcntl(fd, F_OFD_SETLK, &lock) < 0)
		return errno == EAGAIN || errno == EACCES ? UIDS_E_TAKEN : -errno;
	*fdp = steal_fd(&fd);
	return 0;
}
