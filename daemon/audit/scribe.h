/* The scribe: the process that writes the audit log. It has nothing but what it needs for that: the router's ring,
 * the file, and a channel on which it is woken and which ends when nobody has anything more to write. One that dies
 * is started again, and goes on where it was. */
#pragma once

/* What it finds where. */
#define SCRIBE_CHANNEL_FD 3
#define SCRIBE_RING_FD 4
#define SCRIBE_FILE_FD 5

/* How long what is left may take when its channel has ended. */
#define SCRIBE_LAST_MS 4000

/* The whole of the process. Returns its exit status: not 0 when it has not come to its end. */
int scribe_run(void);
