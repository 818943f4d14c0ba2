/* Outlets: descriptors of a state whose closing others notice: ends of pipes, and network sockets. */
#pragma once

/* In a copy: give up its outlets, so that only the original holds them. If the other end of a pipe is not here,
 * this end becomes a dead one (it reads the end of file, and breaks when written to). A network socket becomes a
 * new one of its kind, not connected. Without outlets this costs a few system calls. Of a pipe with both ends here
 * it keeps only the one that is read from, so that whoever reads from it elsewhere finds its end. */
void outlets_cut(void);
/* In a fork of the copy: have the other ends of such pipes again. */
void outlets_restore(void);
