/* Threads at work, through generations of copies: a live process, a frozen copy of it, two live copies of that one,
 * of which the second goes on. In each of them every thread must make progress, and find what belongs to it as it
 * was. It cannot run under the thread sanitizer, which has a thread of its own and does not know those of a copy.
 */
#include "threads/threads.h"

#include "check.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define GENERATIONS 25
#define PATIENCE_S 20
/* A busy machine does not get as far. */
#define ENOUGH_S 10

#define WRONG(what)                                                                                                \
	do {                                                                                                       \
		static const char text[] = "wrong: " what "\n";                                                    \
		(void)!write(STDERR_FILENO, text, sizeof(text) - 1);                                               \
		_exit(7);                                                                                          \
	} while (0)
#define MUST(condition)                                                                                            \
	do {                                                                                                       \
		if (!(condition))                                                                                  \
			WRONG(#condition);                                                                         \
	} while (0)

struct worker {
	const char *name;
	void (*step)(struct worker *);
	unsigned long steps;
	pthread_t thread;
	bool masked;
};

static __thread unsigned long own;
static pthread_key_t key;
static unsigned long destroyed;

/* ---- what they do ---- */

/* Code that keeps what it has in registers: the copy has all of them. */
static void in_registers(struct worker *worker)
{
	double sum = 0, more = 1;
	uint64_t a = 1, b = worker->steps;

	for (int i = 0; i < 20000; i++) {
		sum += more;
		more += 0.5;
		a = a * 6364136223846793005ULL + b;
		b ^= a >> 33;
		__asm__ volatile("" : "+x"(sum), "+x"(more), "+r"(a), "+r"(b));
	}
	MUST(sum == 20000 + 0.25 * 20000 * 19999.0);
}

#ifdef __x86_64__
/* A wide register is filled and read again in the middle of a loop of some microseconds, in which it is
 * interrupted. */
__attribute__((target("avx"))) static void in_wide_registers(struct worker *worker)
{
	uint64_t in[4] = {worker->steps, ~worker->steps, 3 * worker->steps, 5}, out[4] = {0};
	long rounds = 30000;

	__asm__ volatile("vmovdqu %2, %%ymm7\n"
			 "vmovdqu %2, %%ymm15\n"
			 "1: dec %1\n"
			 "jnz 1b\n"
			 "vxorps %%ymm7, %%ymm15, %%ymm15\n"
			 "vorps %%ymm7, %%ymm15, %%ymm15\n"
			 "vmovdqu %%ymm15, %0\n"
			 "vzeroupper\n"
			 : "=m"(out), "+r"(rounds)
			 : "m"(in)
			 : "xmm7", "xmm15", "cc");
	MUST(memcmp(in, out, sizeof(in)) == 0);
}

__attribute__((target("avx512f"))) static void in_widest_registers(struct worker *worker)
{
	uint64_t in[8] = {worker->steps, 2, 3, 4, 5, 6, 7, ~worker->steps}, out[8] = {0};
	unsigned mask = (unsigned)worker->steps & 0xffff, found = 0;
	long rounds = 30000;

	__asm__ volatile("vmovdqu64 %3, %%zmm30\n"
			 "kmovw %4, %%k5\n"
			 "1: dec %2\n"
			 "jnz 1b\n"
			 "vmovdqu64 %%zmm30, %0\n"
			 "kmovw %%k5, %1\n"
			 "vzeroupper\n"
			 : "=m"(out), "=r"(found), "+r"(rounds)
			 : "m"(in), "r"(mask)
			 : "xmm30", "k5", "cc");
	MUST(memcmp(in, out, sizeof(in)) == 0 && found == mask);
}
#endif

static struct {
	pthread_mutex_t plain, recursive, checked;
	pthread_rwlock_t shared;
	long pair[2];
} locks = {.plain = PTHREAD_MUTEX_INITIALIZER,
	   .recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
	   .checked = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP,
	   .shared = PTHREAD_RWLOCK_INITIALIZER};

static void burn(int rounds)
{
	for (volatile int i = 0; i < rounds; i++)
		;
}

static void with_plain_lock(struct worker *worker)
{
	(void)worker;
	MUST(pthread_mutex_lock(&locks.plain) == 0);
	MUST(locks.pair[0] == locks.pair[1]);
	locks.pair[0]++;
	burn(1000);
	locks.pair[1]++;
	MUST(pthread_mutex_unlock(&locks.plain) == 0);
}

/* These two know their holder by the number of its thread. */
static void with_recursive_lock(struct worker *worker)
{
	(void)worker;
	MUST(pthread_mutex_lock(&locks.recursive) == 0);
	burn(5000);
	MUST(pthread_mutex_lock(&locks.recursive) == 0);
	burn(5000);
	MUST(pthread_mutex_unlock(&locks.recursive) == 0);
	MUST(pthread_mutex_unlock(&locks.recursive) == 0);
}

static void with_checked_lock(struct worker *worker)
{
	(void)worker;
	MUST(pthread_mutex_lock(&locks.checked) == 0);
	burn(5000);
	MUST(pthread_mutex_lock(&locks.checked) == EDEADLK);
	MUST(pthread_mutex_unlock(&locks.checked) == 0);
}

static void with_shared_lock(struct worker *worker)
{
	if (worker->steps % 3)
		MUST(pthread_rwlock_rdlock(&locks.shared) == 0);
	else
		MUST(pthread_rwlock_wrlock(&locks.shared) == 0);
	burn(3000);
	MUST(pthread_rwlock_unlock(&locks.shared) == 0);
}

static struct {
	pthread_mutex_t lock;
	pthread_cond_t some, room;
	int n;
} queue = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, 0};

static void put(struct worker *worker)
{
	(void)worker;
	pthread_mutex_lock(&queue.lock);
	while (queue.n == 4)
		pthread_cond_wait(&queue.room, &queue.lock);
	queue.n++;
	pthread_cond_signal(&queue.some);
	pthread_mutex_unlock(&queue.lock);
}

static void take(struct worker *worker)
{
	(void)worker;
	pthread_mutex_lock(&queue.lock);
	while (queue.n == 0)
		pthread_cond_wait(&queue.some, &queue.lock);
	MUST(queue.n-- > 0);
	pthread_cond_signal(&queue.room);
	pthread_mutex_unlock(&queue.lock);
}

static void with_malloc(struct worker *worker)
{
	char *blocks[16];

	for (size_t i = 0; i < ARRAY_SIZE(blocks); i++) {
		size_t size = (worker->steps * 7919 + i * 131) % 70000 + 1;

		blocks[i] = malloc(size);
		MUST(blocks[i]);
		blocks[i][0] = blocks[i][size - 1] = (char)i;
	}
	for (size_t i = 0; i < ARRAY_SIZE(blocks); i++) {
		MUST(blocks[i][0] == (char)i);
		free(blocks[i]);
	}
}

static void with_mappings(struct worker *worker)
{
	char *memory = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)worker;
	MUST(memory != MAP_FAILED);
	memory[5000] = 1;
	MUST(munmap(memory, 1 << 16) == 0);
}

/* It is answered when somebody looks whether it makes progress. */
static int questions[2], answers[2];

static void in_read(struct worker *worker)
{
	char letter;

	(void)worker;
	MUST(read(questions[0], &letter, 1) == 1 && letter == 'q');
	MUST(write(answers[1], "a", 1) == 1);
}

static void in_sleep(struct worker *worker)
{
	const struct timespec moment = {.tv_nsec = 3000000};

	(void)worker;
	MUST(nanosleep(&moment, NULL) == 0 || errno == EINTR);
}

static sem_t never;

static void in_timed_wait(struct worker *worker)
{
	struct timespec until;

	(void)worker;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 2000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	while (sem_timedwait(&never, &until) < 0 && errno == EINTR)
		;
	MUST(errno == ETIMEDOUT);
}

static void *leaf(void *argument)
{
	pthread_setspecific(key, argument);
	return argument;
}

static void with_threads(struct worker *worker)
{
	pthread_t threads[2];
	void *result;

	for (size_t i = 0; i < 2; i++)
		MUST(pthread_create(&threads[i], NULL, leaf, worker) == 0);
	for (size_t i = 0; i < 2; i++)
		MUST(pthread_join(threads[i], &result) == 0 && result == worker);
}

static void with_errno(struct worker *worker)
{
	errno = (int)(worker->steps % 100) + 1;
	burn(5000);
	MUST(errno == (int)(worker->steps % 100) + 1);
}

static struct worker workers[] = {
	{.name = "registers", .step = in_registers},
	{.name = "registers too", .step = in_registers, .masked = true},
	{.name = "plain", .step = with_plain_lock},
	{.name = "plain too", .step = with_plain_lock},
	{.name = "recursive", .step = with_recursive_lock},
	{.name = "recursive too", .step = with_recursive_lock},
	{.name = "checked", .step = with_checked_lock},
	{.name = "checked too", .step = with_checked_lock},
	{.name = "shared", .step = with_shared_lock},
	{.name = "shared too", .step = with_shared_lock},
	{.name = "puts", .step = put},
	{.name = "takes", .step = take},
	{.name = "malloc", .step = with_malloc},
	{.name = "malloc too", .step = with_malloc, .masked = true},
	{.name = "mappings", .step = with_mappings},
	{.name = "reads", .step = in_read},
	{.name = "sleeps", .step = in_sleep},
	{.name = "waits", .step = in_timed_wait},
	{.name = "makes threads", .step = with_threads},
	{.name = "errno", .step = with_errno},
#ifdef __x86_64__
	{.name = "wide", .step = in_wide_registers},
	{.name = "widest", .step = in_widest_registers},
#endif
};

static void check_own(const struct worker *worker, const stack_t *stack)
{
	char name[16];
	stack_t now;
	sigset_t mask;

	MUST(pthread_equal(pthread_self(), worker->thread));
	MUST(own == worker->steps && pthread_getspecific(key) == worker);
	MUST(prctl(PR_GET_NAME, name) == 0 && strncmp(name, worker->name, 15) == 0);
	MUST(sigaltstack(NULL, &now) == 0 && now.ss_sp == stack->ss_sp && now.ss_flags == stack->ss_flags);
	MUST(pthread_sigmask(SIG_SETMASK, NULL, &mask) == 0);
	MUST(sigismember(&mask, SIGUSR1) == worker->masked);
}

static void rest(void)
{
	const struct timespec moment = {.tv_nsec = 500000};

	(void)nanosleep(&moment, NULL);
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	stack_t stack;
	sigset_t mask;

	if (worker->masked) {
		stack = (stack_t){.ss_size = 65536, .ss_sp = malloc(65536)};
		MUST(sigaltstack(&stack, NULL) == 0);
		sigfillset(&mask); /* glibc leaves its own out */
		pthread_sigmask(SIG_SETMASK, &mask, NULL);
	}
	MUST(sigaltstack(NULL, &stack) == 0);
	worker->thread = pthread_self();
	pthread_setspecific(key, worker);
	prctl(PR_SET_NAME, worker->name);
	for (;;) {
		worker->step(worker);
		check_own(worker, &stack);
		if (++own % 4 == 0)
			rest();
		__atomic_add_fetch(&worker->steps, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

/* ---- generations ---- */

static double seconds(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static unsigned long steps_of(struct worker *worker)
{
	return __atomic_load_n(&worker->steps, __ATOMIC_SEQ_CST);
}

/* Two steps each: the first may have begun before. */
static void check_progress(void)
{
	double until = seconds() + PATIENCE_S;
	char letter;

	for (int i = 0; i < 2; i++) {
		struct pollfd answer = {.fd = answers[0], .events = POLLIN};

		MUST(write(questions[1], "q", 1) == 1);
		MUST(poll(&answer, 1, PATIENCE_S * 1000) == 1);
		MUST(read(answers[0], &letter, 1) == 1 && letter == 'a');
	}
	for (size_t i = 0; i < ARRAY_SIZE(workers); i++) {
		unsigned long before = steps_of(&workers[i]);

		while (workers[i].step && workers[i].step != in_read && steps_of(&workers[i]) < before + 2) {
			if (seconds() > until) {
				fprintf(stderr, "%s makes no progress\n", workers[i].name);
				_exit(8);
			}
			rest();
		}
	}
}

static pid_t copy(void)
{
	int *number = NULL;

	prctl(40 /* PR_GET_TID_ADDRESS */, &number);
#ifdef __x86_64__
	return (pid_t)syscall(SYS_clone, CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD, NULL, NULL, number,
			      0);
#else
	return (pid_t)syscall(SYS_clone, CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD, NULL, NULL, 0,
			      number);
#endif
}

/* A copy shares pipes with its origin, whose threads would read what is meant for its own. */
static void pipe_renew(int ends[2])
{
	int fresh[2];

	MUST(pipe2(fresh, O_CLOEXEC) == 0);
	for (int i = 0; i < 2; i++) {
		MUST(dup3(fresh[i], ends[i], O_CLOEXEC) == ends[i]);
		close(fresh[i]);
	}
}

static int status_of(pid_t pid)
{
	int status = -1;

	if (waitpid(pid, &status, 0) == pid && WIFSIGNALED(status))
		fprintf(stderr, "signal %d\n", WTERMSIG(status));
	return status;
}

static int generations = GENERATIONS;

/* On a busy machine not all may stand still in time; but they do at last. */
static void hold(void)
{
	double until = seconds() + PATIENCE_S;

	while (threads_hold())
		MUST(seconds() < until);
}

/* In a live process, which the copy takes over from. Returns in the next live one. */
static void next_generation(void)
{
	pid_t pid;

	hold();
	pid = copy();
	if (pid != 0) {
		threads_release();
		MUST(pid > 0);
		check_progress();
		(void)threads_hold(); /* the processor is for the others */
		_exit(status_of(pid) == 0 ? 0 : 1);
	}
	for (int i = 0; i < 2; i++) {
		pid = copy();
		if (pid == 0) {
			pipe_renew(questions);
			pipe_renew(answers);
			MUST(threads_revive() == 0);
			check_progress();
			if (i == 1)
				return;
			_exit(0);
		}
		MUST(pid > 0 && status_of(pid) == 0);
	}
	_exit(0);
}

static void count_destroyed(void *unused)
{
	(void)unused;
	__atomic_add_fetch(&destroyed, 1, __ATOMIC_RELAXED);
}

static void workers_start(void)
{
	pthread_t thread;

	MUST(pthread_key_create(&key, count_destroyed) == 0 && sem_init(&never, 0, 0) == 0);
	MUST(pipe2(questions, O_CLOEXEC) == 0 && pipe2(answers, O_CLOEXEC) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(workers); i++) {
#ifdef __x86_64__
		if ((workers[i].step == in_wide_registers && !__builtin_cpu_supports("avx")) ||
		    (workers[i].step == in_widest_registers && !__builtin_cpu_supports("avx512f"))) {
			workers[i].step = NULL;
			continue;
		}
#endif
		MUST(!workers[i].step || pthread_create(&thread, NULL, work, &workers[i]) == 0);
	}
}

static void run_generations(void)
{
	double until = seconds() + ENOUGH_S;

	workers_start();
	check_progress();
	for (int i = 0; i < generations && (generations > GENERATIONS || seconds() < until); i++)
		next_generation();
	_exit(destroyed > 0 ? 0 : 9);
}

static void in_child(void (*run)(void))
{
	pid_t pid = fork();

	if (pid == 0) {
		run();
		_exit(0);
	}
	pid = status_of(pid);
	CHECK(pid == 0);
	if (pid)
		fprintf(stderr, "its status: %#x\n", (unsigned)pid);
}

/* ---- a few threads, one at a time ---- */

static sem_t turn;

static void *ends_when_told(void *argument)
{
	MUST(sem_wait(&turn) == 0);
	own = 5;
	return argument;
}

static void *never_ends(void *unused)
{
	(void)sem_wait(&never);
	return unused;
}

/* By the number that libc remembers none of these would find it. */
static void check_named(pthread_t thread)
{
	pthread_attr_t attributes;
	struct timespec time;
	char name[16] = "";
	clockid_t clock;
	cpu_set_t set;

	MUST(pthread_kill(thread, 0) == 0);
	MUST(pthread_setname_np(thread, "named") == 0 && pthread_getname_np(thread, name, sizeof(name)) == 0);
	MUST(strcmp(name, "named") == 0);
	MUST(pthread_getcpuclockid(thread, &clock) == 0 && clock_gettime(clock, &time) == 0);
	MUST(pthread_getaffinity_np(thread, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0);
	MUST(pthread_setaffinity_np(thread, sizeof(set), &set) == 0);
	MUST(pthread_getattr_np(thread, &attributes) == 0 && pthread_attr_destroy(&attributes) == 0);
}

/* A thread of the copy can be named, joined, gives its result, and is gone. */
static void run_join(void)
{
	pthread_t thread, stuck;
	int *remembered;
	void *result;
	pid_t pid;

	MUST(sem_init(&turn, 0, 0) == 0 && sem_init(&never, 0, 0) == 0 && threads_size() == 0);
	hold();
	threads_release();
	MUST(pthread_create(&thread, NULL, ends_when_told, &turn) == 0 && threads_size() == 1);
	MUST(pthread_create(&stuck, NULL, never_ends, NULL) == 0);
	hold();
	pid = copy();
	if (pid) {
		threads_release();
		MUST(status_of(pid) == 0 && threads_number(thread, &remembered) == 0);
		MUST(sem_post(&turn) == 0 && pthread_join(thread, &result) == 0 && result == &turn);
		return;
	}
	MUST(threads_size() == 0 && threads_revive() == 0 && threads_size() == 2);
	MUST(threads_number(thread, &remembered) > 0 && *remembered > 0);
	check_named(thread);
	MUST(pthread_cancel(stuck) == 0 && pthread_join(stuck, &result) == 0 && result == PTHREAD_CANCELED);
	MUST(sem_post(&turn) == 0 && pthread_join(thread, &result) == 0 && result == &turn);
	while (threads_size() > 0) /* its last steps */
		sched_yield();
	MUST(pthread_create(&thread, NULL, ends_when_told, NULL) == 0);
	check_named(thread);
	MUST(sem_post(&turn) == 0 && pthread_join(thread, &result) == 0 && !result);
}

/* Calls that never end. A signal that is handled would end each with EINTR. */
static void *in_poll(void *pipe)
{
	struct pollfd readable = {.fd = *(int *)pipe, .events = POLLIN};

	(void)poll(&readable, 1, -1);
	WRONG("poll has ended");
}

static void *in_epoll(void *pipe)
{
	struct epoll_event event = {.events = EPOLLIN};
	int fd = epoll_create1(EPOLL_CLOEXEC);

	(void)epoll_ctl(fd, EPOLL_CTL_ADD, *(int *)pipe, &event);
	(void)epoll_wait(fd, &event, 1, -1);
	WRONG("epoll_wait has ended");
}

static void *in_select(void *pipe)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(*(int *)pipe, &set);
	(void)select(*(int *)pipe + 1, &set, NULL, NULL, NULL);
	WRONG("select has ended");
}

static void *in_long_sleep(void *unused)
{
	struct timespec until;

	(void)unused;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += 1000;
	(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	WRONG("clock_nanosleep has ended");
}

static void *in_recv(void *pipe)
{
	int ends[2];
	char letter;

	(void)pipe;
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
	(void)recv(ends[0], &letter, 1, 0);
	WRONG("recv has ended");
}

static void run_endless(void)
{
	void *(*const calls[])(void *) = {in_poll, in_epoll, in_select, in_long_sleep, in_recv};
	pthread_t thread;
	int ends[2];
	pid_t pid;

	MUST(pipe2(ends, O_CLOEXEC) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		MUST(pthread_create(&thread, NULL, calls[i], &ends[0]) == 0);
	for (int i = 0; i < 100; i++) {
		const struct timespec moment = {.tv_nsec = 1000000};

		nanosleep(&moment, NULL);
		hold();
		pid = i % 10 == 0 ? copy() : -1;
		if (pid == 0) {
			MUST(threads_revive() == 0);
			nanosleep(&moment, NULL);
			MUST(threads_size() == (int)ARRAY_SIZE(calls));
			_exit(0);
		}
		threads_release();
		MUST(pid < 0 || status_of(pid) == 0);
	}
	MUST(threads_size() == (int)ARRAY_SIZE(calls));
}

/* Calls with a limit: both copies wait for as long as was said, and none ends with EINTR. */
#define LIMIT_MS 400

static int wait_poll(int fd)
{
	struct pollfd readable = {.fd = fd, .events = POLLIN};

	return poll(&readable, 1, LIMIT_MS);
}

static int wait_ppoll(int fd)
{
	const struct timespec limit = {.tv_nsec = LIMIT_MS * 1000000L};
	struct pollfd readable = {.fd = fd, .events = POLLIN};

	return ppoll(&readable, 1, &limit, NULL);
}

static int wait_epoll(int fd)
{
	struct epoll_event event = {.events = EPOLLIN};
	int epoll = epoll_create1(EPOLL_CLOEXEC), r;

	(void)epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
	r = epoll_wait(epoll, &event, 1, LIMIT_MS);
	(void)close(epoll);
	return r;
}

static int wait_select(int fd)
{
	struct timeval limit = {.tv_usec = LIMIT_MS * 1000L};
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	return select(fd + 1, &set, NULL, NULL, &limit);
}

static int wait_pselect(int fd)
{
	const struct timespec limit = {.tv_nsec = LIMIT_MS * 1000000L};
	fd_set set;

	FD_ZERO(&set);
	FD_SET(fd, &set);
	return pselect(fd + 1, &set, NULL, NULL, &limit, NULL);
}

static int wait_nanosleep(int fd)
{
	const struct timespec limit = {.tv_nsec = LIMIT_MS * 1000000L};

	(void)fd;
	return nanosleep(&limit, NULL);
}

static int wait_clock(int fd)
{
	const struct timespec limit = {.tv_nsec = LIMIT_MS * 1000000L};

	(void)fd;
	return clock_nanosleep(CLOCK_MONOTONIC, 0, &limit, NULL);
}

static int wait_usleep(int fd)
{
	(void)fd;
	return usleep(LIMIT_MS * 1000);
}

static int wait_semaphore(int fd)
{
	struct timespec until;
	sem_t semaphore;
	int r;

	(void)fd;
	(void)sem_init(&semaphore, 0, 0);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += LIMIT_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	r = sem_timedwait(&semaphore, &until);
	return r < 0 && errno == ETIMEDOUT ? 0 : r;
}

static int (*const limited[])(int) = {wait_poll,      wait_ppoll, wait_epoll,  wait_select,   wait_pselect,
				      wait_nanosleep, wait_clock, wait_usleep, wait_semaphore};
static int never_readable, n_waited;

static void *waits_with_limit(void *call)
{
	double begin = seconds(), took;

	MUST((*(int (*const *)(int))call)(never_readable) == 0);
	took = seconds() - begin;
	/* A process that is not run for a while is no mistake of ours, nor is a clock of another rhythm. */
	MUST(took > LIMIT_MS * 0.9e-3);
	__atomic_add_fetch(&n_waited, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void all_have_waited(double begin)
{
	while (__atomic_load_n(&n_waited, __ATOMIC_SEQ_CST) < (int)ARRAY_SIZE(limited))
		sched_yield();
	MUST(seconds() - begin < ENOUGH_S);
}

static void run_limited(void)
{
	double begin = seconds();
	pid_t copies[3] = {0};
	pthread_t thread;
	int ends[2];

	MUST(pipe2(ends, O_CLOEXEC) == 0);
	never_readable = ends[0];
	for (size_t i = 0; i < ARRAY_SIZE(limited); i++)
		MUST(pthread_create(&thread, NULL, waits_with_limit, (void *)(uintptr_t)&limited[i]) == 0);
	for (size_t i = 0; i < ARRAY_SIZE(copies); i++) {
		const struct timespec moment = {.tv_nsec = 50000000};

		nanosleep(&moment, NULL);
		hold();
		copies[i] = copy();
		if (copies[i] == 0) {
			MUST(threads_revive() == 0);
			all_have_waited(begin);
			_exit(0);
		}
		threads_release();
	}
	all_have_waited(begin);
	for (size_t i = 0; i < ARRAY_SIZE(copies); i++)
		MUST(status_of(copies[i]) == 0);
}

/* A robust mutex goes on to belong to the thread that holds it, in the copy, too. */
static pthread_mutex_t robust;

static void *holds_robust(void *unused)
{
	MUST(pthread_mutex_lock(&robust) == 0);
	MUST(sem_post(&never) == 0);
	while (sem_wait(&turn) < 0)
		;
	MUST(pthread_mutex_unlock(&robust) == 0);
	return unused;
}

static void let_go_of_robust(pthread_t thread)
{
	MUST(pthread_mutex_trylock(&robust) == EBUSY);
	MUST(sem_post(&turn) == 0 && pthread_join(thread, NULL) == 0);
	MUST(pthread_mutex_lock(&robust) == 0 && pthread_mutex_unlock(&robust) == 0);
}

static void run_robust(void)
{
	pthread_mutexattr_t attributes;
	pthread_t thread;
	pid_t pid;

	MUST(pthread_mutexattr_init(&attributes) == 0);
	MUST(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0);
	MUST(pthread_mutex_init(&robust, &attributes) == 0);
	MUST(sem_init(&turn, 0, 0) == 0 && sem_init(&never, 0, 0) == 0);
	MUST(pthread_create(&thread, NULL, holds_robust, NULL) == 0 && sem_wait(&never) == 0);
	hold();
	pid = copy();
	if (pid == 0) {
		MUST(threads_revive() == 0);
		let_go_of_robust(thread);
		_exit(0);
	}
	threads_release();
	let_go_of_robust(thread);
	MUST(status_of(pid) == 0);
}

static volatile int let_in;
static int deaf_number;

/* By bare system calls, since glibc would leave the signal out. */
static void *deaf(void *unused)
{
	uint64_t mask = UINT64_MAX;

	prctl(PR_SET_NAME, "deaf\n");
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, 8);
	deaf_number = (int)syscall(SYS_gettid);
	let_in = 1;
	while (let_in != 2)
		sched_yield();
	mask = 0;
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, 8);
	let_in = 3;
	for (;;)
		pause();
	return unused;
}

static void run_deaf(void)
{
	const char *why = NULL;
	pthread_t thread;
	double begin;

	MUST(pthread_create(&thread, NULL, deaf, NULL) == 0);
	while (!let_in)
		sched_yield();
	begin = seconds();
	for (int i = 0; i < 20; i++) {
		why = threads_hold();
		MUST(why && strcmp(why, "thread deaf? blocks all signals, so it cannot be copied") == 0);
		MUST(threads_why_no_copy());
	}
	MUST(seconds() - begin < 4); /* it has 0.3 s only once */
	let_in = 2;
	while (let_in != 3)
		sched_yield();
	hold(); /* the one signal that was on its way did nothing */
	threads_release();
	MUST(!threads_why_no_copy());
}

static int bare_thread(void *unused)
{
	(void)unused;
	let_in = 1;
	for (;;)
		pause();
	return 0;
}

/* A thread that libc does not know: what belongs to it cannot be told. */
static void run_strange(void)
{
	static char stack[65536], memory[65536];
	int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS;
	const char *why;

	memcpy(memory + 4096 - 64, (char *)pthread_self() - 64, 64 + 1024);
	*(void **)(memory + 4096) = memory + 4096;
	MUST(clone(bare_thread, stack + sizeof(stack), flags, NULL, NULL, memory + 4096) > 0);
	while (!let_in)
		sched_yield();
	why = threads_hold();
	MUST(why && strstr(why, "is not one of libc's"));
}

/* Threads that come and go while all are to stand still. */
static void *child_of_churn(void *argument)
{
	return argument;
}

static void *churn(void *argument)
{
	pthread_t thread;

	for (;;) {
		MUST(pthread_create(&thread, NULL, child_of_churn, NULL) == 0);
		MUST(pthread_join(thread, NULL) == 0);
		__atomic_add_fetch((unsigned long *)argument, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void run_churn(void)
{
	unsigned long counts[4] = {0}, before[4];
	double until = seconds() + ENOUGH_S;
	pthread_t thread;

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		MUST(pthread_create(&thread, NULL, churn, &counts[i]) == 0);
	for (int round = 0; round < 100; round++) {
		hold();
		memcpy(before, counts, sizeof(counts));
		for (int i = 0; i < 20; i++)
			sched_yield();
		MUST(memcmp(before, counts, sizeof(counts)) == 0);
		threads_release();
		if (seconds() > until)
			break;
	}
}

int main(int argc, char **argv)
{
	if (argc > 1)
		generations = atoi(argv[1]);
	threads_learn();
#ifndef __x86_64__
	CHECK(threads_hold() && threads_why_no_copy() && threads_revive() == -ENOSYS);
	return check_report();
#endif
	in_child(run_join);
	in_child(run_limited);
	in_child(run_robust);
	in_child(run_deaf);
	in_child(run_strange);
	in_child(run_churn);
	in_child(run_endless);
	in_child(run_generations);
	return check_report();
}
