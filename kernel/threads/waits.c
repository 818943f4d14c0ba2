/* Functions of libc that wait, and end with EINTR when a signal was handled. For the signal that makes a thread
 * stand still they begin again, with the time that is left. This executable takes them over from libc, as numbers.c
 * does with others.
 *
 * Another signal that came at the same moment is not told to the caller. Callers that count on that have a time
 * limit, or are wrong anyway: the signal may come before the call. */
#include "threads.h"

#include "proto/clock.h"

#include <dlfcn.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000ULL

/* What fortified callers of poll call. */
// NOLINTNEXTLINE(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,readability-redundant-declaration)
int __poll_chk(struct pollfd *fds, nfds_t n, int ms, size_t size);

#define FUNCTIONS(F)                                                                                               \
	F(poll)                                                                                                    \
	F(__poll_chk)                                                                                              \
	F(ppoll)                                                                                                   \
	F(select)                                                                                                  \
	F(pselect)                                                                                                 \
	F(epoll_wait)                                                                                              \
	F(epoll_pwait)                                                                                             \
	F(nanosleep)                                                                                               \
	F(clock_nanosleep)                                                                                         \
	F(sem_wait)                                                                                                \
	F(sem_timedwait)

#define POINTER_OF(name) __typeof__(&name) name;
#define FIND(name) *(void **)&libc.name = dlsym(RTLD_NEXT, #name);

static struct {
	FUNCTIONS(POINTER_OF)
} libc;

void threads_waits(void)
{
	FUNCTIONS(FIND)
}

/* Libraries may call a function before threads_learn. */
#define LIBC(name) (libc.name ? (void)0 : threads_waits(), libc.name)

static bool begins_again(int epoch, bool interrupted)
{
	return interrupted && threads_epoch() != epoch;
}

/* The value of @call, which is made again as long as it is interrupted for a copy. */
#define AGAIN(call)                                                                                                \
	__extension__({                                                                                            \
		int epoch_, result_;                                                                               \
		do {                                                                                               \
			epoch_ = threads_epoch();                                                                  \
			result_ = (call);                                                                          \
		} while (begins_again(epoch_, result_ < 0 && errno == EINTR));                                     \
		result_;                                                                                           \
	})

/* ---- the time that is left ---- */

static uint64_t end_of_ms(int ms)
{
	return ms > 0 ? clock_ns(CLOCK_MONOTONIC) + (uint64_t)ms * 1000000 : 0;
}

static int ms_until(uint64_t end, int ms)
{
	uint64_t now = ms > 0 ? clock_ns(CLOCK_MONOTONIC) : 0;

	return ms <= 0 ? ms : (int)MIN(end > now ? (end - now + 999999) / 1000000 : 0, (uint64_t)ms);
}

/* 0: never, or at once, or an error. */
static uint64_t end_of(const struct timespec *time)
{
	uint64_t seconds = time && time->tv_sec > 0 ? (uint64_t)time->tv_sec : 0;

	if (!time || time->tv_sec < 0 || time->tv_nsec < 0 || seconds > UINT32_MAX)
		return 0;
	return clock_ns(CLOCK_MONOTONIC) + seconds * SECOND + (uint64_t)time->tv_nsec;
}

static const struct timespec *left_until(uint64_t end, const struct timespec *time, struct timespec *left)
{
	uint64_t now = end ? clock_ns(CLOCK_MONOTONIC) : 0, rest = end > now ? end - now : 0;

	*left = (struct timespec){.tv_sec = (time_t)(rest / SECOND), .tv_nsec = (long)(rest % SECOND)};
	return end ? left : time;
}

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): libc's are not for us to name
int poll(struct pollfd *fds, nfds_t n, int ms)
{
	uint64_t end = end_of_ms(ms);

	return AGAIN(LIBC(poll)(fds, n, ms_until(end, ms)));
}

// NOLINTNEXTLINE(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
int __poll_chk(struct pollfd *fds, nfds_t n, int ms, size_t size)
{
	uint64_t end = end_of_ms(ms);

	return AGAIN(LIBC(__poll_chk)(fds, n, ms_until(end, ms), size));
}

int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *time, const sigset_t *mask)
{
	uint64_t end = end_of(time);
	struct timespec left;

	return AGAIN(LIBC(ppoll)(fds, n, left_until(end, time, &left), mask));
}

/* It writes what is left into @time. */
int select(int n, fd_set *reads, fd_set *writes, fd_set *others, struct timeval *time)
{
	return AGAIN(LIBC(select)(n, reads, writes, others, time));
}

int pselect(int n, fd_set *reads, fd_set *writes, fd_set *others, const struct timespec *time, const sigset_t *mask)
{
	uint64_t end = end_of(time);
	struct timespec left;

	return AGAIN(LIBC(pselect)(n, reads, writes, others, left_until(end, time, &left), mask));
}

int epoll_wait(int fd, struct epoll_event *events, int n, int ms)
{
	uint64_t end = end_of_ms(ms);

	return AGAIN(LIBC(epoll_wait)(fd, events, n, ms_until(end, ms)));
}

int epoll_pwait(int fd, struct epoll_event *events, int n, int ms, const sigset_t *mask)
{
	uint64_t end = end_of_ms(ms);

	return AGAIN(LIBC(epoll_pwait)(fd, events, n, ms_until(end, ms), mask));
}

/* The rest is written where it comes from. */
int nanosleep(const struct timespec *time, struct timespec *rest)
{
	struct timespec left = *time;
	int r = AGAIN(LIBC(nanosleep)(&left, &left));

	if (r < 0 && errno == EINTR && rest)
		*rest = left;
	return r;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *rest)
{
	bool relative = !(flags & TIMER_ABSTIME);
	struct timespec left = *time;
	int epoch, r;

	do {
		epoch = threads_epoch();
		r = LIBC(clock_nanosleep)(clock, flags, &left, relative ? &left : NULL);
	} while (begins_again(epoch, r == EINTR));
	if (r == EINTR && relative && rest)
		*rest = left;
	return r;
}

int usleep(useconds_t us)
{
	const struct timespec time = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000L};

	return nanosleep(&time, NULL);
}

unsigned sleep(unsigned seconds)
{
	struct timespec left = {.tv_sec = seconds};
	int before = errno;

	if (nanosleep(&left, &left) < 0)
		return (unsigned)left.tv_sec;
	errno = before;
	return 0;
}

int sem_wait(sem_t *semaphore)
{
	return AGAIN(LIBC(sem_wait)(semaphore));
}

int sem_timedwait(sem_t *semaphore, const struct timespec *until)
{
	return AGAIN(LIBC(sem_timedwait)(semaphore, until));
}
// NOLINTEND(readability-inconsistent-declaration-parameter-name)
