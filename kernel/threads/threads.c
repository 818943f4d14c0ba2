/* The signal is the one that glibc keeps for setuid() in all threads. So glibc itself never lets code block it or
 * handle it, and setuid() is refused in a session. Code can do both by bare system calls: then it is not used to
 * copy threads, and the reason names the thread that does not stand still.
 *
 * A thread keeps in the copy the number that libc remembers, though the kernel gives it another: recursive mutexes,
 * and locks that are held for writing, know their holder by it. threads_number tells the kernel's.
 *
 * A handler touches its member only as long as nobody else does: the states say who. It makes its system calls
 * itself, since libc's would set errno and may be a session's own. */
#include "threads.h"

#include "machine.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifndef PR_GET_TID_ADDRESS
#define PR_GET_TID_ADDRESS 40
#endif

#define MEMBERS_MAX 1024
/* How long a thread may take to stand still: on a busy machine even one that blocks all signals, as libc does for a
 * moment when a thread begins or ends. One whose signal is still on its way from the last time has had its time. */
#define PATIENCE_NS 300000000
#define LATE_NS 2000000
#define LOOK_NS 1000000

int threads_size(void)
{
	struct stat status;

	/* the entries "." and ".." count as links, too, and the process itself */
	return stat("/proc/self/task", &status) < 0 ? -1 : (int)status.st_nlink - 3;
}

/* The kernel lets a process of one thread "unshare" the others, which changes nothing, and refuses it to one of
 * several. */
bool threads_alone(void)
{
	if (syscall(SYS_unshare, CLONE_THREAD) == 0)
		return true;
	return errno != EINVAL && threads_size() == 0;
}

#if CROWD_MACHINE

#define SIGNAL 33
#define SIGNAL_BIT (1ULL << (SIGNAL - 1))
#define AFFINITY_SIZE 128

extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

enum state {
	FREE,
	ASKED,	   /* a signal is on its way */
	DESCRIBES, /* in the handler: the thread fills the member in */
	STANDS,	   /* in the handler, until the epoch changes */
	STRANGE,   /* the same, but the thread was not made by libc */
	LATE,	   /* a signal is still on its way, and nobody waits for it */
	GIVEN_UP   /* the thread still fills the member in, and nobody waits for it */
};

struct member {
	pid_t number; /* the kernel's */
	int state;
	bool seen;
	bool again; /* the signal was sent before, and is still on its way */
	char name[16];
	ucontext_t *context;
	char *pointer; /* to its thread-local memory */
	int *address;  /* of the number that libc remembers, which the kernel clears at the end of the thread */
	uintptr_t segment;
	long affinity_size;
	char affinity[AFFINITY_SIZE];
};

/* A thread that has another number than libc remembers. */
struct renamed {
	pthread_t thread;
	int *address, kept; /* where libc remembers which */
	pid_t number;
};

static struct {
	const char *never;		/* why it cannot be done; NULL: it can */
	ptrdiff_t address, robust, own; /* where they, and what pthread_self() says, lie, relative to the pointer */
	size_t robust_size;
	struct action before; /* who else handles the signal */
	struct member members[MEMBERS_MAX];
	int n;		      /* members after these have never been used */
	int epoch;	      /* changes when all are to run on */
	int standing, wanted; /* how many stand still; at which number somebody is waked */
	int back;	      /* how many of a copy have come back */
	int gate;	      /* open: those that came back run on */
	int fresh;	      /* how many the last look has found that were not asked before */
	int held;	      /* how many stood still the last time; -1: not all did */
	char why[128];
	struct renamed renamed[MEMBERS_MAX]; /* does not change while others run */
	int n_renamed;
} self = {.never = "", .held = -1};

/* ---- system calls ---- */

#define CALL(...) CALL_(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)
#define CALL_(n, a, b, c, d, e, f, ...)                                                                            \
	raw(SYS_##n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

static void wait_on(int *word, int value, long ns)
{
	const struct timespec limit = {.tv_nsec = ns};

	CALL(futex, word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, value, ns ? &limit : NULL);
}

static void wake(int *word)
{
	CALL(futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT32_MAX);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the builtin writes to it */
static bool change(int *state, int from, int to)
{
	return __atomic_compare_exchange_n(state, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static int get(const int *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

int threads_epoch(void)
{
	return get(&self.epoch);
}

/* ---- in the others ---- */

static struct member *member_of(pid_t number)
{
	int n = get(&self.n);

	for (int i = 0; i < n; i++)
		if (self.members[i].number == number && get(&self.members[i].state) != FREE)
			return &self.members[i];
	return NULL;
}

static void segment_get(struct member *member)
{
	CALL(arch_prctl, 0x1004 /* ARCH_GET_GS */, &member->segment);
}

static void segment_set(const struct member *member)
{
	if (member->segment)
		CALL(arch_prctl, 0x1001 /* ARCH_SET_GS */, member->segment);
}

static void member_describe(struct member *member, void *context)
{
	member->context = context;
	member->pointer = thread_pointer();
	segment_get(member);
	CALL(prctl, PR_GET_TID_ADDRESS, &member->address);
	CALL(prctl, PR_GET_NAME, member->name);
	member->affinity_size = CALL(sched_getaffinity, 0, AFFINITY_SIZE, member->affinity);
}

/* Calls that end with EINTR after any handled signal, and would wait without a limit, or for a fixed moment, if
 * they began again. */
static bool is_endless(long call, const gregset_t registers)
{
	switch (call) {
	case SYS_poll:
		return (int)registers[REG_RDX] < 0;
	case SYS_ppoll:
		return registers[REG_RDX] == 0;
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
		return (int)registers[REG_R10] < 0;
	case SYS_select:
	case SYS_pselect6:
		return registers[REG_R8] == 0;
	case SYS_clock_nanosleep:
		return registers[REG_RSI] & TIMER_ABSTIME;
	case SYS_futex:
		return (registers[REG_RSI] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
	default:
		return call == SYS_pause;
	}
}

/* If the thread was in such a call, it begins again. Which one it was is told by the instructions before, of the
 * form that libc has: mov $call, %eax; syscall. Otherwise it ends with EINTR. */
static void begin_again(ucontext_t *context)
{
	greg_t *registers = context->uc_mcontext.gregs;
	const unsigned char *code = (const unsigned char *)registers[REG_RIP] - 7;
	int32_t call;

	/* Before the page there may be none. */
	if (registers[REG_RAX] != -EINTR || (registers[REG_RIP] & 4095) < 7 || code[0] != 0xb8 || code[5] != 0x0f ||
	    code[6] != 0x05)
		return;
	memcpy(&call, code + 1, sizeof(call));
	if (!is_endless(call, registers))
		return;
	registers[REG_RAX] = call;
	registers[REG_RIP] -= 2;
}

/* The epoch is that of the one who waits: who has given the member up before it ends cannot be mistaken. */
static void stand_still(struct member *member, void *context)
{
	bool strange;
	int epoch;

	if (!change(&member->state, ASKED, DESCRIBES)) {
		(void)change(&member->state, LATE, FREE);
		return;
	}
	epoch = get(&self.epoch);
	member_describe(member, context);
	begin_again(context);
	strange = (char *)member->address != member->pointer + self.address;
	if (!change(&member->state, DESCRIBES, strange ? STRANGE : STANDS)) {
		(void)change(&member->state, GIVEN_UP, FREE);
		return;
	}
	if (__atomic_add_fetch(&self.standing, 1, __ATOMIC_ACQ_REL) >= get(&self.wanted))
		wake(&self.standing);
	while (get(&self.epoch) == epoch)
		wait_on(&self.epoch, epoch, 0);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
	struct member *member = member_of((pid_t)CALL(gettid));

	if (member)
		stand_still(member, context);
}

/* ---- in the one that waits for them ---- */

static void *handler(void)
{
	void (*function)(int, siginfo_t *, void *) = on_signal;

	return *(void **)&function;
}

static void handler_install(void)
{
	struct action ours = {.handler = handler(),
			      .flags = SA_RESTORER | SA_SIGINFO | SA_RESTART | SA_ONSTACK,
			      .restorer = *(void *[]){(void *)(uintptr_t)threads_restorer},
			      .mask = UINT64_MAX};
	struct action before = {0};

	CALL(rt_sigaction, SIGNAL, &ours, &before, sizeof(before.mask));
	if (before.handler != ours.handler)
		self.before = before;
}

/* Only if no signal is on its way: glibc's own handler would not survive it. */
static void handler_remove(void)
{
	CALL(rt_sigaction, SIGNAL, &self.before, NULL, sizeof(self.before.mask));
}

void threads_learn(void)
{
	char *pointer = thread_pointer(), *robust = NULL, *address = NULL;
	unsigned long features = 0;

	threads_numbers();
	threads_waits();
	if (CALL(get_robust_list, 0, &robust, &self.robust_size) < 0 || !robust ||
	    CALL(prctl, PR_GET_TID_ADDRESS, &address) < 0)
		self.never = "this kernel does not tell what belongs to a thread";
	else
		self.never = NULL;
	if (CALL(arch_prctl, 0x5005 /* ARCH_SHSTK_STATUS */, &features) == 0 && features)
		self.never = "threads with shadow stacks cannot be copied";
	self.robust = robust - pointer;
	self.address = address - pointer;
	self.own = (char *)pthread_self() - pointer;
}

static long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Returns how much of the file of a thread was read, as a string. */
static size_t file_of(pid_t thread, const char *name, char *text, size_t size)
{
	char path[64];
	long fd, n;

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", (int)thread, name);
	fd = CALL(openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : CALL(read, fd, text, size - 1);
	if (fd >= 0)
		CALL(close, fd);
	text[MAX(n, 0)] = '\0';
	return (size_t)MAX(n, 0);
}

/* Whether the signal is in a set of signals of the thread. */
static bool has_signal(pid_t thread, const char *set)
{
	static char text[4096];
	const char *found;

	(void)file_of(thread, "status", text, sizeof(text));
	found = strstr(text, set);
	return found && (strtoull(found + strlen(set), NULL, 16) & SIGNAL_BIT);
}

/* Members that a signal is on its way to are not sent another one. */
static void members_recall(void)
{
	for (int i = 0; i < self.n; i++) {
		struct member *member = &self.members[i];

		if (get(&member->state) == GIVEN_UP)
			continue;
		if (get(&member->state) == LATE && has_signal(member->number, "SigPnd:"))
			member->again = change(&member->state, LATE, ASKED);
		else
			__atomic_store_n(&member->state, FREE, __ATOMIC_RELEASE);
	}
	self.standing = self.wanted = 0;
}

static struct member *member_add(pid_t number)
{
	int i = 0;

	while (i < self.n && get(&self.members[i].state) != FREE)
		i++;
	if (i == MEMBERS_MAX)
		return NULL;
	self.members[i].number = number;
	self.members[i].again = false;
	__atomic_store_n(&self.members[i].state, ASKED, __ATOMIC_RELEASE);
	if (i == self.n)
		__atomic_store_n(&self.n, i + 1, __ATOMIC_RELEASE);
	return &self.members[i];
}

static const char *ask(pid_t number)
{
	struct member *member = member_add(number);
	long r;

	if (!member)
		return "there are too many threads to copy them";
	member->seen = true;
	self.fresh++;
	r = CALL(tgkill, CALL(getpid), number, SIGNAL);
	if (r == 0)
		return NULL;
	__atomic_store_n(&member->state, FREE, __ATOMIC_RELEASE);
	self.fresh -= r == -ESRCH; /* it has ended; in any other case it is asked again */
	return r == -EPERM ? "threads cannot be copied where a session may not send signals" : NULL;
}

struct entry {
	uint64_t inode, offset;
	unsigned short size;
	unsigned char type;
	char name[];
};

/* Asks every thread that has not been asked. */
static const char *ask_all(void)
{
	_Alignas(struct entry) static char entries[8192];
	long fd = CALL(openat, AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC), n = 0;
	pid_t me = (pid_t)CALL(gettid);
	const char *why = NULL;

	if (fd < 0)
		return "threads cannot be copied where a session may not read /proc";
	self.fresh = 0;
	for (int i = 0; i < self.n; i++)
		self.members[i].seen = false;
	while (!why && (n = CALL(getdents64, fd, entries, sizeof(entries))) > 0)
		for (long at = 0; !why && at < n; at += ((struct entry *)(entries + at))->size) {
			pid_t number = (pid_t)strtol(((struct entry *)(entries + at))->name, NULL, 10);
			struct member *member = number > 0 ? member_of(number) : NULL;

			if (member)
				member->seen = true;
			else if (number > 0 && number != me)
				why = ask(number);
		}
	CALL(close, fd);
	return why;
}

static int members_that(int state)
{
	int n = 0;

	for (int i = 0; i < self.n; i++)
		n += get(&self.members[i].state) == state;
	return n;
}

static int members_moving(void)
{
	return members_that(ASKED) + members_that(DESCRIBES) + members_that(GIVEN_UP);
}

static void members_bury(void)
{
	for (int i = 0; i < self.n; i++)
		if (!self.members[i].seen)
			(void)change(&self.members[i].state, ASKED, FREE);
}

static const char *refuse(const struct member *member, const char *what)
{
	char name[32];
	size_t size = file_of(member->number, "comm", name, sizeof(name));

	if (size > 0)
		name[size - 1] = '\0';
	for (char *at = name; *at; at++)
		if (*at < ' ' || *at > '~')
			*at = '?';
	snprintf(self.why, sizeof(self.why), "thread %s %s, so it cannot be copied", name, what);
	return self.why;
}

static const char *who_is(int state, const char *what)
{
	for (int i = 0; i < self.n; i++)
		if (get(&self.members[i].state) == state)
			return refuse(&self.members[i], what);
	return NULL;
}

/* Why it is given up after @since, or NULL. */
static const char *who_moves(long since)
{
	for (int i = 0; i < self.n; i++) {
		struct member *member = &self.members[i];

		if (get(&member->state) == ASKED && (member->again || since > PATIENCE_NS))
			return refuse(member, has_signal(member->number, "SigBlk:") ? "blocks all signals"
										    : "does not stand still");
	}
	return since > PATIENCE_NS ? "threads come and go, so they cannot be copied" : NULL;
}

/* One more look: if all stood still before it, and the list of threads has no others, then these are all. Returns
 * whether it is known how it ends. */
static bool look(const char **why)
{
	bool settled = members_moving() == 0;
	int standing = get(&self.standing), moving;

	*why = ask_all();
	members_bury();
	if (*why || (settled && self.fresh == 0))
		return true;
	moving = members_moving();
	__atomic_store_n(&self.wanted, standing + moving, __ATOMIC_RELEASE);
	if (moving > 0)
		wait_on(&self.standing, standing, LOOK_NS);
	return false;
}

static const char *gather(void)
{
	long begin = now();
	const char *why = NULL;

	while (!look(&why)) {
		long since = now() - begin;

		why = since > LATE_NS ? who_moves(since) : NULL;
		if (why)
			return why;
	}
	return why ? why : who_is(STRANGE, "is not one of libc's");
}

void threads_release(void)
{
	for (int i = 0; i < self.n; i++) {
		(void)change(&self.members[i].state, ASKED, LATE);
		(void)change(&self.members[i].state, DESCRIBES, GIVEN_UP);
	}
	__atomic_add_fetch(&self.epoch, 1, __ATOMIC_ACQ_REL);
	wake(&self.epoch);
	if (members_that(LATE) == 0)
		handler_remove();
}

const char *threads_hold(void)
{
	const char *why = self.never;

	if (!why) {
		handler_install();
		members_recall();
		why = gather();
		if (why)
			threads_release();
	}
	self.held = why ? -1 : members_that(STANDS);
	return why;
}

int threads_held(void)
{
	return self.held;
}

const char *threads_why_no_copy(void)
{
	const char *why;

	if (self.held >= threads_size())
		return NULL;
	why = threads_hold();
	if (!why)
		threads_release();
	return why;
}

/* When the thread has ended, what libc remembered is cleared, and then another thread's. While numbers.c lends libc
 * the kernel's number, it is that one. */
pid_t threads_number(pthread_t thread, int **remembered)
{
	for (int i = 0; i < self.n_renamed; i++) {
		const struct renamed *renamed = &self.renamed[i];
		int number;

		if (renamed->thread != thread)
			continue;
		*remembered = renamed->address;
		number = get(renamed->address);
		return number == renamed->kept || number == renamed->number ? renamed->number : 0;
	}
	return 0;
}

/* ---- in a copy ---- */

void threads_come_back(struct member *member)
{
	CALL(set_robust_list, member->pointer + self.robust, self.robust_size);
	if (&__rseq_size && __rseq_size)
		CALL(rseq, member->pointer + __rseq_offset, MAX(__rseq_size, 32U), 0, RSEQ_SIGNATURE);
	CALL(prctl, PR_SET_NAME, member->name);
	segment_set(member);
	if (member->affinity_size > 0)
		CALL(sched_setaffinity, 0, member->affinity_size, member->affinity);
	__atomic_add_fetch(&self.back, 1, __ATOMIC_ACQ_REL);
	wake(&self.back);
	while (!get(&self.gate))
		wait_on(&self.gate, 0, 0);
	threads_return(member->context);
}

static long come_back(struct member *member)
{
	unsigned long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_SIGHAND | CLONE_THREAD |
			      CLONE_SETTLS | CLONE_CHILD_CLEARTID;
	uintptr_t stack = ((uintptr_t)member->context - 512) & ~(uintptr_t)15;
	long number = threads_clone(flags, (void *)stack, NULL, member->address, member->pointer, member);

	if (number <= 0)
		return number;
	member->number = (pid_t)number;
	if (*member->address != member->number)
		self.renamed[self.n_renamed++] = (struct renamed){
			(pthread_t)(member->pointer + self.own), member->address, *member->address, member->number};
	return 0;
}

/* Signals are blocked until each thread has its own mask again, by the return from its signal. */
static long recreate_threads(void)
{
	uint64_t all = UINT64_MAX, before = 0;
	long r = 0;

	CALL(rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof(all));
	for (int i = 0; !r && i < self.n; i++)
		if (self.members[i].state == STANDS)
			r = come_back(&self.members[i]);
		else
			self.members[i].state = FREE;
	CALL(rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
	return r;
}

/* Nobody runs on before each thread has its own name and processors again: a thread would undo it if another one
 * had changed them meanwhile. */
int threads_revive(void)
{
	long r;
	int back;

	self.gate = self.back = self.n_renamed = 0;
	self.epoch++;
	r = recreate_threads();
	if (r)
		return (int)r;
	while ((back = get(&self.back)) < members_that(STANDS))
		wait_on(&self.back, back, 0);
	handler_remove();
	__atomic_store_n(&self.gate, 1, __ATOMIC_RELEASE);
	wake(&self.gate);
	return 0;
}

#else

void threads_learn(void)
{
	threads_numbers();
	threads_waits();
}

const char *threads_hold(void)
{
	return "threads cannot be copied on this kind of processor";
}

const char *threads_why_no_copy(void)
{
	return "threads cannot be copied on this kind of processor";
}

int threads_held(void)
{
	return 0;
}

int threads_epoch(void)
{
	return 0;
}

void threads_release(void)
{
}

int threads_revive(void)
{
	return -ENOSYS;
}

pid_t threads_number(pthread_t thread, int **remembered)
{
	return 0;
}

#endif
