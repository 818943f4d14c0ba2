/* The files of a control group file system. Paths are relative to a directory that is open, or AT_FDCWD. */
#pragma once

#include "home.h"

#include "proto/base.h"
#include "proto/paths.h"

#include <fcntl.h>
#include <sys/types.h>

/* "@directory/@name". Returns 0 or -ENAMETOOLONG. */
int cgroup_path(char path[static PATH_SIZE], const char *directory, const char *name);

/* Write a file of a group. Returns 0 or -errno. */
int cgroup_write(int fd, const char *group, const char *file, const char *text);

/* Whether @word is one of the blank-separated words of a file. */
bool cgroup_lists(const char *group, const char *file, const char *word);

/* Let the groups in this one have those controllers (version 2). Returns 0 or -errno. */
int cgroup_pass_down(int fd, const char *group, unsigned controllers);

int cgroup_move_in(int fd, const char *group, pid_t pid);

/* Send SIGKILL to all processes in the group; or move them to the group @to. */
void cgroup_kill_all(int fd, const char *group);
void cgroup_move_all(const char *group, const char *to);
