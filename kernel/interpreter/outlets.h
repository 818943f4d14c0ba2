/* Outlets: descriptors of a state whose closing others notice: ends of pipes, and network sockets. */
#pragma once

/* In a copy: cut its outlets, so that nobody at the other end shares them. If the other end of a pipe is not
 * here, the end becomes a dead one (it reads the end of file, and breaks when written to). A network socket
 * becomes a new one of its kind, not connected. Without outlets it costs a few system calls. */
void outlets_cut(void);
