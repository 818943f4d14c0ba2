/* Which system calls, for seccomp.c alone. A name that an architecture lacks is skipped by libseccomp. */
#pragma once

#define C(name) SCMP_SYS(name)

/* clang-format off */
static const int calls_allowed[] = {
	/* descriptors, and reading and writing open files */
	C(read), C(write), C(readv), C(writev), C(pread64), C(pwrite64), C(preadv), C(pwritev), C(preadv2), C(pwritev2),
	C(close), C(close_range), C(lseek), C(_llseek), C(dup), C(dup2), C(dup3), C(pipe), C(pipe2),
	C(poll), C(ppoll), C(select), C(pselect6), C(epoll_create), C(epoll_create1), C(epoll_ctl), C(epoll_wait),
	C(epoll_pwait), C(epoll_pwait2), C(eventfd), C(eventfd2), C(signalfd), C(signalfd4), C(timerfd_create),
	C(timerfd_settime), C(timerfd_gettime), C(flock), C(fsync), C(fdatasync), C(sendfile), C(copy_file_range),
	C(ftruncate),
	/* looking at files */
	C(stat), C(fstat), C(lstat), C(newfstatat), C(statx), C(statfs), C(fstatfs), C(access), C(faccessat),
	C(faccessat2), C(readlink), C(readlinkat), C(getdents), C(getdents64), C(getcwd), C(chdir), C(fchdir), C(umask),
	/* memory */
	C(brk), C(munmap), C(mremap), C(mprotect), C(madvise), C(msync), C(mlock), C(mlock2),
	C(munlock), C(munlockall), C(membarrier), C(get_mempolicy), C(pkey_alloc), C(pkey_free),
	C(pkey_mprotect),
	/* processes and threads; calls that start programs have a list of their own below */
	C(fork), C(vfork), C(exit), C(exit_group), C(wait4), C(waitid), C(getpid), C(gettid), C(getppid), C(getpgid),
	C(getpgrp), C(setpgid), C(getsid), C(setsid), C(pidfd_open), C(set_tid_address), C(set_robust_list), C(rseq),
	C(futex), C(futex_waitv), C(arch_prctl), C(sched_yield), C(sched_getaffinity), C(sched_getparam),
	C(sched_getscheduler), C(sched_get_priority_max), C(sched_get_priority_min), C(sched_rr_get_interval),
	C(sched_getattr), C(getpriority), C(getcpu), C(getrlimit), C(setrlimit), C(getrusage), C(times),
	/* identity: there is one user, who has no powers */
	C(getuid), C(geteuid), C(getgid), C(getegid), C(getresuid), C(getresgid), C(getgroups), C(capget), C(uname),
	C(sysinfo),
	/* signals: seccomp_enter_interpreter may refuse to send them */
	C(kill), C(tkill), C(tgkill),
	C(rt_sigaction), C(rt_sigprocmask), C(rt_sigpending), C(rt_sigreturn), C(rt_sigsuspend), C(rt_sigtimedwait),
	C(sigaltstack), C(sigreturn), C(pause), C(restart_syscall),
	/* time */
	C(clock_gettime), C(clock_getres), C(clock_nanosleep), C(nanosleep), C(gettimeofday), C(time), C(alarm),
	C(getitimer), C(setitimer), C(timer_create), C(timer_settime), C(timer_gettime), C(timer_getoverrun),
	C(timer_delete),
	/* connected sockets: without a network only socketpair makes them */
	C(sendto), C(sendmsg), C(sendmmsg), C(recvfrom), C(recvmsg), C(recvmmsg), C(shutdown), C(getsockname),
	C(getpeername), C(getsockopt), C(setsockopt),
	C(getrandom),
	/* more Landlock rules, besides those in force */
	C(landlock_create_ruleset), C(landlock_add_rule), C(landlock_restrict_self),
};

/* Calls that change a file, if Landlock or the mounts allow it. open has rules of its own. */
static const int calls_changing_files[] = {
	C(truncate), C(unlink), C(unlinkat), C(rmdir), C(rename), C(renameat), C(renameat2), C(link), C(linkat),
	C(symlink), C(symlinkat),
};

static const int calls_in_own_tree[] = {
	C(chown), C(fchown), C(lchown), C(fchownat), C(utime), C(utimes), C(futimesat), C(utimensat), C(getxattr),
	C(lgetxattr), C(fgetxattr), C(listxattr), C(llistxattr), C(flistxattr), C(removexattr), C(lremovexattr),
	C(fremovexattr),
};

/* A file may have any number of attributes, and not every file system counts them in its size. */
static const int calls_setting_attributes[] = {C(setxattr), C(lsetxattr), C(fsetxattr)};

static const int calls_to_pretend[] = {
	C(chmod), C(fchmod), C(fchmodat), C(chown), C(fchown), C(lchown), C(fchownat), C(utime), C(utimes),
	C(futimesat), C(utimensat),
};

static const int calls_unsupported[] = {
	C(getxattr), C(lgetxattr), C(fgetxattr), C(listxattr), C(llistxattr), C(flistxattr), C(removexattr),
	C(lremovexattr), C(fremovexattr),
};

/* These calls would keep everybody's disk busy. A session cannot notice that they do nothing. */
static const int calls_idle[] = {C(sync), C(syncfs)};

static const int calls_starting_programs[] = {C(execve), C(execveat)};

static const int calls_network[] = {
	C(socket), C(connect), C(bind), C(listen), C(accept), C(accept4),
};

/* Refused with EPERM. Calls that are listed nowhere fail with ENOSYS. Among those are clone3 and openat2, because a
 * filter cannot see their arguments. */
static const int calls_refused[] = {
	C(mount), C(umount), C(umount2), C(pivot_root), C(chroot), C(mount_setattr), C(move_mount), C(open_tree),
	C(fsopen), C(fsconfig), C(fsmount), C(fspick), C(setns), C(ptrace), C(process_vm_readv),
	C(process_vm_writev), C(process_madvise), C(process_mrelease), C(kcmp), C(pidfd_getfd), C(pidfd_send_signal),
	C(rt_sigqueueinfo), C(rt_tgsigqueueinfo), C(bpf), C(perf_event_open), C(userfaultfd), C(io_uring_setup),
	C(io_uring_enter), C(io_uring_register), C(keyctl), C(add_key), C(request_key), C(seccomp), C(init_module),
	C(finit_module), C(delete_module), C(kexec_load), C(kexec_file_load), C(reboot), C(swapon), C(swapoff), C(acct),
	C(syslog), C(quotactl), C(quotactl_fd), C(settimeofday), C(clock_settime), C(adjtimex), C(clock_adjtime),
	C(sethostname), C(setdomainname), C(iopl), C(ioperm), C(modify_ldt), C(personality), C(vhangup),
	C(open_by_handle_at), C(name_to_handle_at), C(lookup_dcookie), C(inotify_init),
	C(fanotify_init), C(fanotify_mark), C(migrate_pages), C(move_pages), C(mbind),
	C(set_mempolicy), C(sched_setscheduler), C(sched_setparam), C(sched_setattr), C(ioprio_set), C(shmget),
	C(shmat), C(shmctl), C(semget), C(semop), C(semctl), C(semtimedop), C(msgget), C(msgsnd), C(msgrcv), C(msgctl),
	C(mq_open), C(mq_unlink), C(mq_timedsend), C(mq_timedreceive), C(mq_notify), C(setuid), C(setgid), C(setreuid),
	C(setregid), C(setresuid), C(setresgid), C(setfsuid), C(setfsgid), C(setgroups), C(capset), C(memfd_secret),
	C(vmsplice), C(nfsservctl), C(remap_file_pages),
};
/* clang-format on */
