/* Descriptors of a state through which others notice that it has closed them: ends of pipes, and network sockets.
 */
#pragma once

/* In a copy: what it has of them is its own from now on, and nobody's at the other end. An end of a pipe whose
 * other end is not here becomes a dead one (it reads the end of file, and breaks when written to), a network socket
 * one of its kind that is not connected. Where there is none of these it costs a few system calls. */
void outlets_cut(void);
