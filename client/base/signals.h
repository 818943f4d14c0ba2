/* Signals that end a program which has more to do than to end. */
#pragma once

#include "proto/base.h"

#include <signal.h>
#include <sys/signalfd.h>

/* From now on they come through the descriptor, which is the caller's; or -errno. Output that nobody reads ends
 * nothing. */
static inline int signals_take(void)
{
	sigset_t set;
	int fd;

	(void)signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}
