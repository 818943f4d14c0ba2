/* Between two cells the session's event loop runs as long as anything waits in it. The router
 * takes an interpreter for dead that does not answer within PATIENCE_US, so a task that keeps the loop to itself is
 * interrupted before. A signal that no cell uses looks every LATE_S whether there is a message that is not taken.
 */
#include "idle.h"

#include "channel.h"
#include "language.h"

#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#define LATE_S 2

static struct {
	volatile sig_atomic_t looks; /* how many looks have found a message, in this run of the loop */
	timer_t timer;
	bool timed;
	struct sigaction before;
} self;

/* The first look may come right after the message, so only the second counts. */
static void look(int number)
{
	int kept = errno;

	(void)number;
	if (exec_channel_waits() && ++self.looks > 1)
		(void)kill(getpid(), SIGINT);
	errno = kept;
}

static void watch_begin(void)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMAX - 1};
	const struct itimerspec often = {.it_interval.tv_sec = LATE_S, .it_value.tv_sec = LATE_S};
	const struct sigaction action = {.sa_handler = look, .sa_flags = SA_RESTART};

	self.looks = 0;
	if (sigaction(event.sigev_signo, &action, &self.before) < 0)
		return;
	self.timed = timer_create(CLOCK_MONOTONIC, &event, &self.timer) == 0;
	if (self.timed)
		(void)timer_settime(self.timer, 0, &often, NULL);
}

static void watch_end(void)
{
	static const struct timespec now = {0};
	sigset_t ours;

	sigemptyset(&ours);
	sigaddset(&ours, SIGRTMAX - 1);
	sigprocmask(SIG_BLOCK, &ours, NULL);
	if (self.timed)
		(void)timer_delete(self.timer);
	self.timed = false;
	while (sigtimedwait(&ours, NULL, &now) > 0)
		;
	(void)sigaction(SIGRTMAX - 1, &self.before, NULL);
	sigprocmask(SIG_UNBLOCK, &ours, NULL);
}

bool idle_has_work(void)
{
	return language.waits && language.waits();
}

/* An interrupt may be meant for the cell in the message. So it is sent again, and waits for that cell. */
void idle(void)
{
	sigset_t interrupt;
	bool interrupted;

	if (!idle_has_work())
		return;
	sigemptyset(&interrupt);
	sigaddset(&interrupt, SIGINT);
	watch_begin();
	sigprocmask(SIG_UNBLOCK, &interrupt, NULL);
	interrupted = language.idle(exec_channel_descriptor());
	sigprocmask(SIG_BLOCK, &interrupt, NULL);
	watch_end();
	if (interrupted)
		(void)kill(getpid(), SIGINT);
}
