/* If sessions have no pid namespace, processes that their wardens could not end become the keeper's children.
 * Wardens are its children, too; templates make them at any moment. The number of system call filters tells them
 * apart, and no process can undo or fake that: a warden has one more than the keeper, a descendant of an
 * interpreter two or more. */
#include "orphan.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define OF_A_SESSION 2

/* -1: not known. */
static long filters_of(pid_t pid)
{
	static const char key[] = "\nSeccomp_filters:";
	char path[32], text[4096];
	_cleanup_(fd_closep) int fd = -1;
	const char *found;
	ssize_t size;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	size = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	text[MAX(size, 0)] = '\0';
	found = strstr(text, key);
	return found ? strtol(found + strlen(key), NULL, 10) : -1;
}

bool orphan_is(pid_t pid)
{
	long own = filters_of(getpid()), filters = own < 0 ? -1 : filters_of(pid);

	return filters >= own + OF_A_SESSION && own >= 0;
}
