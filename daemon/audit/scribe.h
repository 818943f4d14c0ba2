/* The scribe: the process that writes the audit log. It has only three things: the router's ring, the file, and
 * a channel. The channel wakes it, and is closed when nobody has anything more to write. If a scribe dies,
 * another one is started, which goes on at the same record. */
#pragma once

/* The descriptors that it finds. */
#define SCRIBE_CHANNEL_FD 3
#define SCRIBE_RING_FD 4
#define SCRIBE_FILE_FD 5

/* When its channel is closed, it has so long to write the rest. */
#define SCRIBE_LAST_MS 4000

/* The whole life of the process. Returns its exit status: not 0 if it has not come to its end. */
int scribe_run(void);
