/* The system calls a session may make. Invariant: a call that is not listed does not exist (ENOSYS, so libraries
 * do what they do on older kernels), and neither does any call by another architecture's numbers. A dangerous
 * call that a program would ask for by name is EPERM. The filter is compiled once, in the template; a warden
 * only loads it.
 *
 * An argument is compared as the kernel reads it: if the kernel looks at 32 bits, a rule that refuses must, too.
 * A rule that allows may compare all 64, since stray upper bits then only lead to a refusal. */
#include "steps.h"

#include <asm/termbits.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "syscalls.h"

#define INT32 0xffffffffULL
#define NAMESPACE_FLAGS                                                                                            \
	(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWCGROUP)

#define EQ(arg, value) SCMP_CMP64(arg, SCMP_CMP_EQ, (scmp_datum_t)(value))
#define BITS(arg, mask, value) SCMP_CMP64(arg, SCMP_CMP_MASKED_EQ, (scmp_datum_t)(mask), (scmp_datum_t)(value))
#define INT(arg, value) BITS(arg, INT32, (uint32_t)(value))

struct rule {
	int call;
	unsigned n;
	struct scmp_arg_cmp args[3];
};

#define RULE1(name, a)                                                                                             \
	{                                                                                                          \
		SCMP_SYS(name), 1,                                                                                 \
		{                                                                                                  \
			a                                                                                          \
		}                                                                                                  \
	}
#define RULE2(name, a, b)                                                                                          \
	{                                                                                                          \
		SCMP_SYS(name), 2,                                                                                 \
		{                                                                                                  \
			a, b                                                                                       \
		}                                                                                                  \
	}

#define RULE3(name, a, b, c)                                                                                       \
	{                                                                                                          \
		SCMP_SYS(name), 3,                                                                                 \
		{                                                                                                  \
			a, b, c                                                                                    \
		}                                                                                                  \
	}

/* Allowed with these arguments only. */
static const struct rule allowed_with[] = {
	RULE1(clone, BITS(0, NAMESPACE_FLAGS | CLONE_PTRACE | CLONE_UNTRACED, 0)),
	/* This changes nothing. It fails if there are other threads, which threads.c wants to know. */
	RULE1(unshare, SCMP_CMP64(0, SCMP_CMP_EQ, CLONE_THREAD)),
	RULE1(mmap, BITS(3, MAP_HUGETLB, 0)),
	RULE1(mmap2, BITS(3, MAP_HUGETLB, 0)),
	RULE1(memfd_create, BITS(1, MFD_HUGETLB, 0)),
	RULE1(fadvise64, INT(3, POSIX_FADV_NORMAL)),
	RULE1(fadvise64, INT(3, POSIX_FADV_RANDOM)),
	RULE1(fadvise64, INT(3, POSIX_FADV_SEQUENTIAL)),
	RULE1(fadvise64, INT(3, POSIX_FADV_WILLNEED)),
	RULE1(fadvise64, INT(3, POSIX_FADV_NOREUSE)),
	/* A pair of datagram sockets could send to any socket that has a name. */
	RULE2(socketpair, INT(0, AF_UNIX), BITS(1, INT32 & ~(SOCK_NONBLOCK | SOCK_CLOEXEC), SOCK_STREAM)),
	RULE2(socketpair, INT(0, AF_UNIX), BITS(1, INT32 & ~(SOCK_NONBLOCK | SOCK_CLOEXEC), SOCK_SEQPACKET)),
	RULE1(ioctl, INT(1, TCGETS)),
	RULE1(ioctl, INT(1, TIOCGWINSZ)),
	RULE1(ioctl, INT(1, FIONREAD)),
	RULE1(ioctl, INT(1, TIOCOUTQ)),
	RULE1(ioctl, INT(1, FIONBIO)),
	RULE1(ioctl, INT(1, FIOCLEX)),
	RULE1(ioctl, INT(1, FIONCLEX)),
	RULE1(fcntl, INT(1, F_DUPFD)),
	RULE1(fcntl, INT(1, F_DUPFD_CLOEXEC)),
	RULE1(fcntl, INT(1, F_GETFD)),
	RULE1(fcntl, INT(1, F_SETFD)),
	RULE1(fcntl, INT(1, F_GETFL)),
	RULE2(fcntl, INT(1, F_SETFL), BITS(2, O_ASYNC, 0)),
	RULE1(fcntl, INT(1, F_GETLK)),
	RULE1(fcntl, INT(1, F_SETLK)),
	RULE1(fcntl, INT(1, F_SETLKW)),
	RULE1(fcntl, INT(1, F_OFD_GETLK)),
	RULE1(fcntl, INT(1, F_OFD_SETLK)),
	RULE1(fcntl, INT(1, F_OFD_SETLKW)),
	RULE1(fcntl, INT(1, F_GETPIPE_SZ)),
	RULE1(fcntl, INT(1, F_ADD_SEALS)),
	RULE1(fcntl, INT(1, F_GET_SEALS)),
	RULE1(prctl, INT(0, PR_SET_NAME)),
	RULE1(prctl, INT(0, PR_GET_NAME)),
	RULE1(prctl, INT(0, PR_SET_PDEATHSIG)),
	RULE1(prctl, INT(0, PR_GET_PDEATHSIG)),
	RULE1(prctl, INT(0, PR_GET_DUMPABLE)),
	RULE1(prctl, INT(0, PR_GET_NO_NEW_PRIVS)),
	RULE1(prctl, INT(0, PR_GET_SECCOMP)),
	RULE1(prctl, INT(0, PR_GET_TID_ADDRESS)),
	RULE1(prctl, INT(0, PR_CAPBSET_READ)),
	RULE1(prctl, INT(0, 0x53564d41 /* PR_SET_VMA */)),
	/* Only the limits of the process itself, which it can only lower. */
	RULE1(prlimit64, INT(0, 0)),
	RULE1(sched_setaffinity, INT(0, 0)),
	RULE2(setpriority, INT(0, PRIO_PROCESS), INT(1, 0)),
	RULE1(fallocate, BITS(1, FALLOC_FL_PUNCH_HOLE, FALLOC_FL_PUNCH_HOLE)),
};

/* One call could fill a disk before anybody measures it. Without it libc writes the bytes instead. A hole gives
 * room back. */
static const struct rule reserving_with[] = {
	RULE1(fallocate, BITS(1, FALLOC_FL_PUNCH_HOLE, 0)),
};

/* Only for the warden: seccomp_enter_interpreter forbids them. With a filter of its own a session could only refuse
 * more calls, but each refusal may be a line in the host's log. inotify would tell it of others, and it has no use
 * for sync_file_range. */
static const struct rule allowed_to_warden[] = {
	RULE1(prctl, INT(0, PR_SET_SECCOMP)),
	{SCMP_SYS(inotify_init1), 0, {}},
	{SCMP_SYS(inotify_add_watch), 0, {}},
	RULE1(sync_file_range, INT(3, SYNC_FILE_RANGE_WRITE)),
};

/* It would drop a file from memory that other processes still use. */
static const struct rule idle_with[] = {
	RULE1(fadvise64, INT(3, POSIX_FADV_DONTNEED)),
};

/* No control group counts huge pages, and all processes of the host share them. */
static const struct rule refused_with[] = {
	RULE1(unshare, SCMP_CMP64(0, SCMP_CMP_NE, CLONE_THREAD)),
	RULE1(mmap, BITS(3, MAP_HUGETLB, MAP_HUGETLB)),
	RULE1(memfd_create, BITS(1, MFD_HUGETLB, MFD_HUGETLB)),
};

/* With a mount namespace only files of the session are writable. No file may get the setuid or setgid bit. */
static const struct rule allowed_in_own_tree[] = {
	RULE1(chmod, BITS(1, S_ISUID | S_ISGID, 0)),
	RULE1(fchmod, BITS(1, S_ISUID | S_ISGID, 0)),
	RULE1(fchmodat, BITS(2, S_ISUID | S_ISGID, 0)),
};

static const struct rule refused_in_own_tree[] = {
	RULE1(chmod, BITS(1, S_ISUID, S_ISUID)),    RULE1(chmod, BITS(1, S_ISGID, S_ISGID)),
	RULE1(fchmod, BITS(1, S_ISUID, S_ISUID)),   RULE1(fchmod, BITS(1, S_ISGID, S_ISGID)),
	RULE1(fchmodat, BITS(2, S_ISUID, S_ISUID)), RULE1(fchmodat, BITS(2, S_ISGID, S_ISGID)),
};

/* libc's __O_TMPFILE has O_DIRECTORY in it, which is harmless. */
#define TMPFILE (__O_TMPFILE & ~O_DIRECTORY)

/* A new file must not have the setuid or setgid bit. Without O_CREAT and O_TMPFILE the kernel ignores the mode that
 * is given to open, so it may be anything. */
static const struct rule allowed_making[] = {
	RULE1(mknod, BITS(1, S_IFMT | S_ISUID | S_ISGID, S_IFIFO)),
	RULE1(mknodat, BITS(2, S_IFMT | S_ISUID | S_ISGID, S_IFIFO)),
	RULE1(mkdir, BITS(1, S_ISUID | S_ISGID, 0)),
	RULE1(mkdirat, BITS(2, S_ISUID | S_ISGID, 0)),
	RULE1(open, BITS(1, O_CREAT | TMPFILE, 0)),
	RULE1(open, BITS(2, S_ISUID | S_ISGID, 0)),
	RULE1(openat, BITS(2, O_CREAT | TMPFILE, 0)),
	RULE1(openat, BITS(3, S_ISUID | S_ISGID, 0)),
	RULE1(creat, BITS(1, S_ISUID | S_ISGID, 0)),
};

/* The level `readonly`: files are opened only for reading. */
#define OPEN_WRITES (O_ACCMODE | O_CREAT | O_TRUNC | TMPFILE)
static const struct rule allowed_open_to_read[] = {
	RULE1(open, BITS(1, OPEN_WRITES, O_RDONLY)),
	RULE1(openat, BITS(2, OPEN_WRITES, O_RDONLY)),
};

/* No grant gives named sockets of this machine, and `tcp:` gives no datagrams. The protocol must be the family's
 * usual one: Landlock does not see connections by multipath TCP. */
#define SOCKET(family, type, protocol)                                                                             \
	RULE3(socket, INT(0, family), BITS(1, INT32 & ~(SOCK_NONBLOCK | SOCK_CLOEXEC), type), INT(2, protocol))

static const struct rule allowed_network_tcp[] = {
	SOCKET(AF_INET, SOCK_STREAM, 0),
	SOCKET(AF_INET, SOCK_STREAM, IPPROTO_TCP),
	SOCKET(AF_INET6, SOCK_STREAM, 0),
	SOCKET(AF_INET6, SOCK_STREAM, IPPROTO_TCP),
};

static const struct rule allowed_network_host[] = {
	SOCKET(AF_INET, SOCK_DGRAM, 0),	 SOCKET(AF_INET, SOCK_DGRAM, IPPROTO_UDP),
	SOCKET(AF_INET6, SOCK_DGRAM, 0), SOCKET(AF_INET6, SOCK_DGRAM, IPPROTO_UDP),
	{SCMP_SYS(bind), 0, {}},	 {SCMP_SYS(listen), 0, {}},
	{SCMP_SYS(accept), 0, {}},	 {SCMP_SYS(accept4), 0, {}},
};

/* What terminals take, of which a session has only its own. Left out are all requests that type into one (TIOCSTI),
 * take its line discipline from a module of the kernel (TIOCSETD), or are about the host's console (TIOCLINUX,
 * TIOCCONS). */
static const struct rule allowed_terminals[] = {
	RULE1(ioctl, INT(1, TCSETS)),	  RULE1(ioctl, INT(1, TCSETSW)),    RULE1(ioctl, INT(1, TCSETSF)),
	RULE1(ioctl, INT(1, TCGETS2)),	  RULE1(ioctl, INT(1, TCSETS2)),    RULE1(ioctl, INT(1, TCSETSW2)),
	RULE1(ioctl, INT(1, TCSETSF2)),	  RULE1(ioctl, INT(1, TCSBRK)),	    RULE1(ioctl, INT(1, TCXONC)),
	RULE1(ioctl, INT(1, TCFLSH)),	  RULE1(ioctl, INT(1, TIOCSWINSZ)), RULE1(ioctl, INT(1, TIOCGPTN)),
	RULE1(ioctl, INT(1, TIOCSPTLCK)), RULE1(ioctl, INT(1, TIOCGPTLCK)), RULE1(ioctl, INT(1, TIOCGPTPEER)),
	RULE1(ioctl, INT(1, TIOCSCTTY)),  RULE1(ioctl, INT(1, TIOCNOTTY)),  RULE1(ioctl, INT(1, TIOCGPGRP)),
	RULE1(ioctl, INT(1, TIOCSPGRP)),  RULE1(ioctl, INT(1, TIOCGSID)),
};

/* ---- making the filter ---- */

static int add_calls(scmp_filter_ctx ctx, uint32_t action, const int *calls, size_t n)
{
	int r = 0;

	for (size_t i = 0; !r && i < n; i++)
		r = seccomp_rule_add(ctx, action, calls[i], 0);
	return r;
}

static int add_rules(scmp_filter_ctx ctx, uint32_t action, const struct rule *rules, size_t n)
{
	int r = 0;

	for (size_t i = 0; !r && i < n; i++)
		r = seccomp_rule_add_array(ctx, action, rules[i].call, rules[i].n, rules[i].args);
	return r;
}

#define ALLOW(set) add_rules(ctx, SCMP_ACT_ALLOW, set, ARRAY_SIZE(set))
#define CALLS(action, set) add_calls(ctx, action, set, ARRAY_SIZE(set))

static int add_files(scmp_filter_ctx ctx, const struct cage *cage, bool readonly)
{
	bool own_tree = cage->namespaces & CLONE_NEWNS;
	int r = readonly ? ALLOW(allowed_open_to_read) : ALLOW(allowed_making);

	if (!r && !readonly)
		r = CALLS(SCMP_ACT_ALLOW, calls_changing_files);
	if (!r && own_tree)
		r = ALLOW(allowed_in_own_tree);
	if (!r && own_tree)
		r = add_rules(ctx, SCMP_ACT_ERRNO(EPERM), refused_in_own_tree, ARRAY_SIZE(refused_in_own_tree));
	if (!r && own_tree)
		r = CALLS(SCMP_ACT_ALLOW, calls_in_own_tree);
	/* Landlock does not see these calls, and they could change a file that the session may only read. They
	 * report success and do nothing, because programs that copy files use them. */
	if (!r && !own_tree)
		r = CALLS(SCMP_ACT_ERRNO(0), calls_to_pretend);
	if (!r && !own_tree)
		r = CALLS(SCMP_ACT_ERRNO(EOPNOTSUPP), calls_unsupported);
	return r;
}

static int add_network(scmp_filter_ctx ctx, const struct cage *cage)
{
	int r;

	if (cage->network == NETWORK_OFF)
		return CALLS(SCMP_ACT_ERRNO(EPERM), calls_network);
	r = ALLOW(allowed_network_tcp);
	if (!r)
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(connect), 0);
	return r || cage->network == NETWORK_TCP ? r : ALLOW(allowed_network_host);
}

static int filter_build(scmp_filter_ctx ctx, const struct cage *cage, bool readonly)
{
	/* The default is to kill the process, and the kernel would log each death. */
	int r = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));

	if (!r)
		r = CALLS(SCMP_ACT_ALLOW, calls_allowed);
	if (!r)
		r = CALLS(SCMP_ACT_ERRNO(EPERM), calls_refused);
	if (!r)
		r = CALLS(SCMP_ACT_ERRNO(0), calls_idle);
	if (!r)
		r = add_rules(ctx, SCMP_ACT_ERRNO(EOPNOTSUPP), reserving_with, ARRAY_SIZE(reserving_with));
	if (!r)
		r = CALLS(SCMP_ACT_ERRNO(EOPNOTSUPP), calls_setting_attributes);
	if (!r)
		r = ALLOW(allowed_with);
	if (!r)
		r = add_rules(ctx, SCMP_ACT_ERRNO(EPERM), refused_with, ARRAY_SIZE(refused_with));
	if (!r)
		r = add_rules(ctx, SCMP_ACT_ERRNO(0), idle_with, ARRAY_SIZE(idle_with));
	if (!r)
		r = ALLOW(allowed_to_warden);
	if (!r)
		r = add_files(ctx, cage, readonly);
	if (!r)
		r = add_network(ctx, cage);
	if (!r && cage->terminals)
		r = ALLOW(allowed_terminals);
	if (!r)
		r = CALLS(cage->subprocess ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO(EPERM), calls_starting_programs);
	/* 2 makes the filter a tree instead of a list. Older libraries can only make a list. */
	if (!r)
		(void)seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	return r;
}

/* libseccomp cannot compare only the lower half of an argument. So these statements do, and come before
 * libseccomp's own. */
#define LOWER(arg) (offsetof(struct seccomp_data, args[arg]) + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0))
#define REFUSE_INT(name, arg, value)                                                                               \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),                                     \
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 3),                                             \
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, LOWER(arg)),                                                    \
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), 0, 1),                                      \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
#define REFUSE_BITS(name, arg, bits)                                                                               \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),                                     \
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 3),                                             \
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, LOWER(arg)),                                                    \
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (uint32_t)(bits), 0, 1),                                      \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

/* Refuse if @arg is @value and @pointer is not NULL. */
#define UPPER(arg) (offsetof(struct seccomp_data, args[arg]) + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 0 : 4))
#define REFUSE_INT_AND_POINTER(name, arg, value, pointer)                                                          \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),                                     \
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 7),                                             \
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, LOWER(arg)),                                                    \
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), 0, 5),                                      \
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, LOWER(pointer)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2),  \
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, UPPER(pointer)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),  \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
/* If one or two arguments have these values, do nothing and report success. */
#define PRETEND_INT(name, arg, value)                                                                              \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),                                     \
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 3),                                             \
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, LOWER(arg)),                                                    \
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), 0, 1),                                      \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO)
#define PRETEND_INTS(name, arg, value, other_arg, other_value)                                                     \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),                                     \
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 5),                                             \
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, LOWER(arg)),                                                    \
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), 0, 3),                                      \
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, LOWER(other_arg)),                                              \
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(other_value), 0, 1),                                \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO)

static const struct sock_filter refusals[] = {
	/* With this flag a socket connects without the calls that rules about connections see. */
	REFUSE_BITS(sendto, 3, MSG_FASTOPEN),
	REFUSE_BITS(sendmsg, 2, MSG_FASTOPEN),
	REFUSE_BITS(sendmmsg, 3, MSG_FASTOPEN),
	/* The limit for core files must stay as limits.c sets it. A program may ask for it. */
	REFUSE_INT(setrlimit, 0, RLIMIT_CORE),
	REFUSE_INT_AND_POINTER(prlimit64, 1, RLIMIT_CORE, 2),
	/* If a socket lingers, the last process that closes it waits for the other end. laird would wait if a
	 * session sent it such a socket. */
	PRETEND_INTS(setsockopt, 1, SOL_SOCKET, 2, SO_LINGER),
	/* This changes nothing. Each thread of libzmq asks for it, and libzmq ends the process if it is refused. */
	PRETEND_INT(sched_setscheduler, 1, SCHED_OTHER),
};

static int filter_export(struct sock_fprog *filter, scmp_filter_ctx ctx, const struct cage *cage)
{
	_cleanup_(fd_closep) int fd = memfd_create("filter", MFD_CLOEXEC);
	size_t head = ARRAY_SIZE(refusals);
	off_t size;
	int r;

	if (fd < 0)
		return -errno;
	r = seccomp_export_bpf(ctx, fd);
	if (r)
		return r;
	size = lseek(fd, 0, SEEK_END);
	filter->filter = malloc(sizeof(refusals) + options_size() * sizeof(refusals[0]) + (size_t)size);
	if (!filter->filter)
		return -ENOMEM;
	memcpy(filter->filter, refusals, sizeof(refusals));
	head += options_compile(filter->filter + head, cage);
	filter->len = (unsigned short)(head + (size_t)size / sizeof(refusals[0]));
	return pread(fd, filter->filter + head, (size_t)size, 0) == size ? 0 : -EIO;
}

int seccomp_prepare(struct cage *cage, struct cage_report *report)
{
	bool readonly = !cage->namespaces && cage->landlock_abi < 3 && !cage->uid_alone;
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	int r = ctx ? filter_build(ctx, cage, readonly) : -ENOMEM;

	free(cage->filter.filter);
	cage->filter = (struct sock_fprog){0};
	if (!r)
		r = filter_export(&cage->filter, ctx, cage);
	if (ctx)
		seccomp_release(ctx);
	return r ? cage_fail(report, -r, "cannot compile the system call filter") : 0;
}

int seccomp_enter(struct cage *cage, struct cage_report *report)
{
	if (!cage->seccomp)
		return 0;
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &cage->filter, 0, 0) < 0)
		return cage_fail(report, errno, "cannot load the system call filter");
	cage_guard(report, "seccomp");
	return 0;
}

/* Whoever is under it can load no other. */
#define CLOSING                                                                                                    \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sync_file_range, 0, 1),                                            \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),                                             \
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_inotify_init1, 4, 0),                                      \
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_inotify_add_watch, 3, 0),                                  \
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),                                              \
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, LOWER(0)),                                                      \
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_SECCOMP, 0, 1),                                         \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

int seccomp_enter_interpreter(const struct cage *cage, bool signals)
{
	static const struct sock_filter closed[] = {
		/* A signal to everything in the cage would reach frozen interpreters. The warden halts all by it.
		 */
		REFUSE_INT(kill, 0, -1),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		CLOSING,
	};
	static const struct sock_filter closed_without_signals[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kill, 9, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tkill, 8, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 7, 0),
		CLOSING,
	};
	const struct sock_fprog filters[] = {
		{ARRAY_SIZE(closed_without_signals), (struct sock_filter *)closed_without_signals},
		{ARRAY_SIZE(closed), (struct sock_filter *)closed},
	};

	if (!cage->seccomp)
		return 0;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filters[signals], 0, 0) < 0 ? -errno : 0;
}
