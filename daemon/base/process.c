/* From /proc: a process in another pid namespace is known there by all its numbers. */
#include "process.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

static ssize_t file_read(char *buffer, size_t size, const char *name, pid_t pid)
{
	_cleanup_(fd_closep) int fd = -1;
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, buffer, size - 1);
	buffer[MAX(n, 0)] = '\0';
	return n;
}

/* The last of its numbers is the one in the innermost namespace. */
static bool calls_itself(pid_t process, uint64_t pid)
{
	char text[4096], *at, *end;

	if (file_read(text, sizeof(text), "status", process) <= 0)
		return false;
	at = strstr(text, "\nNSpid:");
	if (!at)
		return (uint64_t)process == pid;
	end = at + 1 + strcspn(at + 1, "\n");
	*end = '\0';
	at = strrchr(at, '\t');
	return at && strtoull(at + 1, NULL, 10) == pid;
}

/* The youngest children stand last, and callers ask for these. */
pid_t process_find(pid_t warden, uint64_t pid)
{
	char text[8192], file[64], *space;
	ssize_t size;

	snprintf(file, sizeof(file), "task/%d/children", (int)warden);
	size = warden > 0 ? file_read(text, sizeof(text), file, warden) : 0;
	/* "PID PID PID ", without a number that was cut off. */
	for (space = memrchr(text, ' ', (size_t)MAX(size, 0)); space;) {
		pid_t child;

		*space = '\0';
		space = strrchr(text, ' ');
		child = (pid_t)strtol(space ? space + 1 : text, NULL, 10);
		if (child > 0 && calls_itself(child, pid))
			return child;
	}
	return 0;
}

void process_expose(pid_t pid, int score)
{
	_cleanup_(fd_closep) int fd = -1;
	char path[64], text[16];

	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)pid);
	snprintf(text, sizeof(text), "%d", score);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0)
		(void)!write(fd, text, strlen(text));
}
