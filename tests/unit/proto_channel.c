/* What a channel says of descriptors that there is no room for: that is no fault of the sender's. */
#include "channel.h"

#include "check.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>

static void limit(rlim_t n)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = n;
	setrlimit(RLIMIT_NOFILE, &limit);
}

int main(void)
{
	int ours, theirs, fds[CHANNEL_FDS_MAX], again[] = {STDERR_FILENO, STDERR_FILENO};
	struct rlimit before;
	struct bytes data;
	char buffer[8];
	size_t n_fds;

	CHECK(channel_pair(&ours, &theirs) == 0);
	getrlimit(RLIMIT_NOFILE, &before);
	CHECK(channel_send(ours, BYTES("none"), again, 2) == 0 && channel_send(ours, BYTES("one"), again, 2) == 0);
	CHECK(channel_send(ours, BYTES("too long a datagram"), again, 1) == 0);
	CHECK(channel_send(ours, BYTES("all"), again, 2) == 0);

	limit((rlim_t)theirs + 1);
	CHECK(channel_recv(theirs, buffer, sizeof(buffer), &data, fds, &n_fds) == -EMFILE);
	CHECK(bytes_is(data, "none") && n_fds == 0 && fds[0] == -1);
	limit((rlim_t)theirs + 2);
	CHECK(channel_recv(theirs, buffer, sizeof(buffer), &data, fds, &n_fds) == -EMFILE);
	CHECK(bytes_is(data, "one") && n_fds == 0 && fds[0] == -1);
	CHECK(channel_recv(theirs, buffer, sizeof(buffer), &data, fds, &n_fds) == -EMSGSIZE);
	CHECK(fcntl(theirs, F_DUPFD_CLOEXEC, 0) == theirs + 1);
	limit(before.rlim_cur);
	CHECK(channel_recv(theirs, buffer, sizeof(buffer), &data, fds, &n_fds) == 0);
	CHECK(bytes_is(data, "all") && n_fds == 2);
	return check_report();
}
