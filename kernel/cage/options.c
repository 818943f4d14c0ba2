/* Calls with options, of which a session needs few. libseccomp cannot set the error for all other options, so
 * this is a program of our own that runs before libseccomp's. Invariant: it only refuses. A call that it lets
 * pass goes on to the main filter, which knows architectures. An option is compared as the kernel reads it, by
 * the lower half of its argument.
 *
 * The errors are those of kernels that lack the option: libraries ask for many options that they can do without. */
#include "steps.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#ifdef SYS_arch_prctl
#include <asm/prctl.h>
#endif

/* Newer than the headers of old distributions. */
#define ADVICE_POPULATE_READ 22
#define ADVICE_POPULATE_WRITE 23
#define ADVICE_GUARD_INSTALL 102
#define ADVICE_GUARD_REMOVE 103
#define BARRIER_PRIVATE_RSEQ (1 << 7)
#define BARRIER_REGISTER_PRIVATE_RSEQ (1 << 8)
#define BARRIER_GET_REGISTRATIONS (1 << 9)
#define RECEIVE_TIMEOUT_NEW 66
#define SEND_TIMEOUT_NEW 67
#define KERNEL_FUTEX_FLAGS (FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME)

struct options {
	int call, arg, error;
	uint32_t ignored; /* bits to leave out of the comparison */
	bool of_level;	  /* only socket options of @level are meant */
	uint32_t level;
	bool strangers;	      /* only without a pid namespace, where the session could reach processes of others */
	const uint32_t *left; /* the options that are allowed */
	size_t n;
};

#define LEFT(...)                                                                                                  \
	.left = (const uint32_t[]){__VA_ARGS__}, .n = sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)
#define SOCKET_LEVEL(name, of) .call = SYS_##name, .arg = 2, .error = ENOPROTOOPT, .of_level = true, .level = (of)

#define CLOCK_OF_A_NUMBER (1U << 31)
#define CLOCK_OF_A_THREAD (1U << 2)
#define CLOCKS(name)                                                                                               \
	.strangers = true, .call = SYS_##name, .arg = 0, .error = EINVAL,                                          \
	.ignored = ~(CLOCK_OF_A_NUMBER | CLOCK_OF_A_THREAD),                                                       \
	LEFT(0, CLOCK_OF_A_THREAD, CLOCK_OF_A_NUMBER | CLOCK_OF_A_THREAD)

/* clang-format off */
#define SOCKET_OPTIONS                                                                                             \
	SO_REUSEADDR, SO_BROADCAST, SO_SNDBUF, SO_RCVBUF, SO_KEEPALIVE, SO_OOBINLINE, SO_LINGER, SO_REUSEPORT,     \
	SO_RCVLOWAT, SO_RCVTIMEO, SO_SNDTIMEO, RECEIVE_TIMEOUT_NEW, SEND_TIMEOUT_NEW
#define TCP_OPTIONS                                                                                                \
	TCP_NODELAY, TCP_MAXSEG, TCP_CORK, TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT, TCP_LINGER2,                  \
	TCP_DEFER_ACCEPT, TCP_WINDOW_CLAMP, TCP_QUICKACK, TCP_USER_TIMEOUT, TCP_NOTSENT_LOWAT
#define IP_OPTIONS_LEFT                                                                                            \
	IP_TOS, IP_TTL, IP_PKTINFO, IP_MTU_DISCOVER, IP_RECVERR, IP_RECVTTL, IP_RECVTOS,                           \
	IP_BIND_ADDRESS_NO_PORT, IP_MULTICAST_IF, IP_MULTICAST_TTL, IP_MULTICAST_LOOP, IP_MULTICAST_ALL
#define IPV6_OPTIONS                                                                                               \
	IPV6_V6ONLY, IPV6_UNICAST_HOPS, IPV6_MTU_DISCOVER, IPV6_RECVERR, IPV6_RECVPKTINFO, IPV6_RECVHOPLIMIT,      \
	IPV6_RECVTCLASS, IPV6_TCLASS, IPV6_MULTICAST_IF, IPV6_MULTICAST_HOPS, IPV6_MULTICAST_LOOP

static const struct options table[] = {
	/* Calls are sorted, the most frequent one first. Futexes that lend priorities are left out. */
	{.call = SYS_futex, .arg = 1, .error = ENOSYS, .ignored = KERNEL_FUTEX_FLAGS,
	 LEFT(FUTEX_WAIT, FUTEX_WAKE, FUTEX_REQUEUE, FUTEX_CMP_REQUEUE, FUTEX_WAKE_OP, FUTEX_WAIT_BITSET,
	      FUTEX_WAKE_BITSET)},
	/* Left out: advice that affects other users of the same file in memory, and advice that reveals which pages
	 * are equal. */
	{.call = SYS_madvise, .arg = 2, .error = EINVAL,
	 LEFT(MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED, MADV_DONTNEED, MADV_FREE, MADV_DONTFORK,
	      MADV_DOFORK, MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_DONTDUMP, MADV_DODUMP, MADV_WIPEONFORK,
	      MADV_KEEPONFORK, ADVICE_POPULATE_READ, ADVICE_POPULATE_WRITE, ADVICE_GUARD_INSTALL,
	      ADVICE_GUARD_REMOVE)},
	{.call = SYS_preadv2, .arg = 5, .error = EOPNOTSUPP, LEFT(0)},
	{.call = SYS_pwritev2, .arg = 5, .error = EOPNOTSUPP, LEFT(0)},
	/* Left out: barriers for all processes, which interrupt every processor. */
	{.call = SYS_membarrier, .arg = 0, .error = EINVAL,
	 LEFT(MEMBARRIER_CMD_QUERY, MEMBARRIER_CMD_PRIVATE_EXPEDITED, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED,
	      MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE,
	      BARRIER_PRIVATE_RSEQ, BARRIER_REGISTER_PRIVATE_RSEQ, BARRIER_GET_REGISTRATIONS)},
#ifdef SYS_arch_prctl
	{.call = SYS_arch_prctl, .arg = 0, .error = EINVAL, LEFT(ARCH_SET_GS, ARCH_SET_FS, ARCH_GET_FS, ARCH_GET_GS)},
#endif
	/* Left out: options that tell of the process at the other end, which may be laird, and options that give a
	 * program to the kernel. */
	{SOCKET_LEVEL(setsockopt, SOL_SOCKET), LEFT(SOCKET_OPTIONS)},
	{SOCKET_LEVEL(setsockopt, IPPROTO_TCP), LEFT(TCP_OPTIONS)},
	{SOCKET_LEVEL(setsockopt, IPPROTO_IP), LEFT(IP_OPTIONS_LEFT, IP_ADD_MEMBERSHIP, IP_DROP_MEMBERSHIP)},
	{SOCKET_LEVEL(setsockopt, IPPROTO_IPV6), LEFT(IPV6_OPTIONS, IPV6_JOIN_GROUP, IPV6_LEAVE_GROUP)},
	{.call = SYS_setsockopt, .arg = 1, .error = ENOPROTOOPT,
	 LEFT(SOL_SOCKET, IPPROTO_TCP, IPPROTO_IP, IPPROTO_IPV6)},
	{SOCKET_LEVEL(getsockopt, SOL_SOCKET),
	 LEFT(SOCKET_OPTIONS, SO_TYPE, SO_ERROR, SO_ACCEPTCONN, SO_PROTOCOL, SO_DOMAIN)},
	{SOCKET_LEVEL(getsockopt, IPPROTO_TCP), LEFT(TCP_OPTIONS, TCP_INFO, TCP_CONGESTION)},
	{SOCKET_LEVEL(getsockopt, IPPROTO_IP), LEFT(IP_OPTIONS_LEFT, IP_MTU)},
	{SOCKET_LEVEL(getsockopt, IPPROTO_IPV6), LEFT(IPV6_OPTIONS, IPV6_MTU)},
	{.call = SYS_getsockopt, .arg = 1, .error = ENOPROTOOPT,
	 LEFT(SOL_SOCKET, IPPROTO_TCP, IPPROTO_IP, IPPROTO_IPV6)},
	/* A process may ask only about itself, by the number 0. But libc asks about a thread by its number. It can
	 * do without pidfd_open and sched_getaffinity. sched_getparam and sched_getscheduler return 0 for any
	 * number: an ordinary thread of priority 0. */
	{.strangers = true, .call = SYS_pidfd_open, .arg = 0, .error = ENOSYS},
	{.strangers = true, .call = SYS_sched_getaffinity, .arg = 0, .error = ENOSYS, LEFT(0)},
	{.strangers = true, .call = SYS_sched_getparam, .arg = 0, .error = 0, LEFT(0)},
	{.strangers = true, .call = SYS_sched_getscheduler, .arg = 0, .error = 0, LEFT(0)},
	{.strangers = true, .call = SYS_sched_rr_get_interval, .arg = 0, .error = EPERM, LEFT(0)},
	{.strangers = true, .call = SYS_sched_getattr, .arg = 0, .error = EPERM, LEFT(0)},
	{.strangers = true, .call = SYS_getpgid, .arg = 0, .error = EPERM, LEFT(0)},
	{.strangers = true, .call = SYS_getsid, .arg = 0, .error = EPERM, LEFT(0)},
	{.strangers = true, .call = SYS_getpriority, .arg = 0, .error = EPERM, LEFT(PRIO_PROCESS)},
	{.strangers = true, .call = SYS_getpriority, .arg = 1, .error = EPERM, LEFT(0)},
	/* The clock of a process is a negative number, made from the number of the process. The clock of a thread
	 * is negative, too, but the kernel gives only the clocks of threads of the same process. */
	{CLOCKS(clock_gettime)},
	{CLOCKS(clock_getres)},
	{CLOCKS(clock_nanosleep)},
	{CLOCKS(timer_create)},
};
/* clang-format on */

#define LOWER_HALF (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0)
#define STATEMENTS_MAX 7 /* for an entry without allowed options */

static struct sock_filter load(size_t offset)
{
	return (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset);
}

static struct sock_filter load_argument(int arg)
{
	return load(offsetof(struct seccomp_data, args) + (size_t)arg * sizeof(uint64_t) + LOWER_HALF);
}

static struct sock_filter jump_equal(uint32_t value, size_t yes, size_t no)
{
	return (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, (uint8_t)yes, (uint8_t)no);
}

/* The statements for one entry begin and end with the call's number loaded, so that all other calls pass them in
 * one step. If an option is allowed, they jump to the statement that loads the number again. */
static size_t compile(struct sock_filter *out, const struct options *options)
{
	size_t end = STATEMENTS_MAX - (options->of_level ? 0 : 2) - (options->ignored ? 0 : 1) + options->n, at = 0;
	size_t again = end - 1;

	out[at] = jump_equal((uint32_t)options->call, 0, end - at - 1);
	at++;
	if (options->of_level) {
		out[at++] = load_argument(1);
		out[at] = jump_equal(options->level, 0, again - at - 1);
		at++;
	}
	out[at++] = load_argument(options->arg);
	if (options->ignored)
		out[at++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~options->ignored);
	for (size_t i = 0; i < options->n; i++, at++)
		out[at] = jump_equal(options->left[i], again - at - 1, 0);
	out[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)options->error);
	out[at++] = load(offsetof(struct seccomp_data, nr));
	return at;
}

size_t options_size(void)
{
	size_t size = 1;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		size += STATEMENTS_MAX + table[i].n;
	return size;
}

size_t options_compile(struct sock_filter *out, const struct cage *cage)
{
	bool strangers = !(cage->namespaces & CLONE_NEWPID);
	size_t size = 0;

	out[size++] = load(offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (strangers || !table[i].strangers)
			size += compile(out + size, &table[i]);
	return size;
}
