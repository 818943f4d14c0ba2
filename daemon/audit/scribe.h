/* The scribe: the process that opens the audit log and writes it. It has only two things: the router's ring, which
 * names the file, and a channel. The channel wakes it, and is closed when nobody has anything more to write. If a
 * scribe dies, another one is started, which goes on at the same record.
 *
 * To open a file may take for ever, so nobody else does it. The first scribe of a ring says on the channel what
 * came of it, in one datagram. If it could not open the file, it is done. */
#pragma once

#include <stdint.h>

/* The descriptors that it finds. */
#define SCRIBE_CHANNEL_FD 3
#define SCRIBE_RING_FD 4

/* When its channel is closed, it has so long to write the rest. */
#define SCRIBE_LAST_MS 4000
/* It dies of SIGALRM if the file takes longer to open. */
#define SCRIBE_OPEN_MS 5000

/* What a first scribe says. */
struct scribe_report {
	int32_t error; /* -errno; -EINVAL: no regular file; 0: device and inode are in the ring's page */
};

/* The whole life of the process. Returns its exit status: not 0 if it has not come to its end. */
int scribe_run(void);
