/* How routers begin, are watched, and end. One that dies by itself is replaced. */
#include "state.h"

#include "base/log.h"
#include "base/spawn.h"
#include "notify.h"

#include "proto/channel.h"
#include "proto/clock.h"

#include <stdio.h>
#include <sys/wait.h>

/* ---- the beginning ---- */

/* Execute the file of our name, which may be of another build by now. If that fails, execute the build that we
 * are, which always exists: it can read what is stored, because a router of another layout would not have begun. */
static int router_execute(struct keeper *keeper, const char *const argv[], int channel)
{
	const struct spawn_fds given = {.fds = {channel}, .n = 1};
	int r = keeper->our_own ? -EPROTONOSUPPORT
				: spawn_program(&keeper->router, keeper->program, argv,
						(const char *const *)environ, &given);

	if (r == 0)
		return 0;
	if (!keeper->our_own)
		log_error(NULL, "cannot start %s: %s; the router is of this same build", keeper->program,
			  strerror(-r));
	return spawn_program(&keeper->router, "/proc/self/exe", argv, (const char *const *)environ, &given);
}

int keeper_start_router(struct keeper *keeper)
{
	const struct keeper_options *options = keeper->options;
	const char *argv[10] = {"laird", "--router", "--socket", keeper->instance.socket, "--uids", keeper->uids};
	_cleanup_(fd_closep) int theirs = -1;
	int r;

	if (options->config) {
		argv[6] = "--config";
		argv[7] = options->config;
	}
	r = channel_pair(&keeper->channel, &theirs);
	if (r == 0)
		r = router_execute(keeper, argv, theirs);
	if (r < 0) {
		log_error(NULL, "cannot start the router: %s", strerror(-r));
		keeper->channel = fd_close(keeper->channel);
		keeper->start_at = clock_ms() + THROTTLE_PAUSE_MAX_MS;
		return r;
	}
	keeper->is_ready = false;
	keeper->killed_for = ROUTER_END_WELL;
	keeper->handing = true;
	pulse_heard(&keeper->pulse, clock_ms());
	store_rewind(&keeper->store);
	return 0;
}

/* ---- while it runs ---- */

void keeper_pay(struct keeper *keeper)
{
	if (keeper->router == 0 || !keeper->is_ready)
		return;
	for (int signal = 1; signal < NSIG; signal++)
		if (sigismember(&keeper->owed, signal) == 1)
			(void)kill(keeper->router, signal);
	sigemptyset(&keeper->owed);
}

void keeper_kill_router(struct keeper *keeper, enum router_end why)
{
	keeper->killed_for = why;
	(void)kill(keeper->router, SIGKILL);
}

void keeper_stop(struct keeper *keeper)
{
	if (keeper_stops(keeper)) {
		/* Not the same signal again: whoever signals all processes of a host means one order. */
		sigaddset(&keeper->owed, SIGUSR1);
		keeper_pay(keeper);
		return;
	}
	keeper->stop_deadline = clock_ms() + STOP_LIMIT_MS;
	keeper->over = keeper->router == 0;
	notify_manager("STOPPING=1");
	if (keeper->router > 0)
		(void)kill(keeper->router, SIGTERM);
}

static void on_stop_limit(struct keeper *keeper)
{
	log_error(NULL, "the router did not end in time and is killed");
	(void)kill(keeper->router, SIGKILL);
	keeper->stop_deadline = UINT64_MAX;
}

void keeper_look_after_router(struct keeper *keeper)
{
	uint64_t now = clock_ms();

	if (keeper->router > 0 && keeper_stops(keeper) && now >= keeper->stop_deadline)
		on_stop_limit(keeper);
	if (keeper->router > 0 && !keeper_stops(keeper) && pulse_silent(&keeper->pulse, now)) {
		log_error(NULL, "the router has not stirred for %d seconds and is killed", PULSE_SILENCE_MS / 1000);
		keeper_kill_router(keeper, ROUTER_END_STOOD);
		pulse_heard(&keeper->pulse, now);
	}
	if (keeper->was_ready && now - keeper->told_manager >= PULSE_BEAT_MS) {
		keeper->told_manager = now;
		notify_alive();
	}
}

/* ---- the end ---- */

/* The router ended because it was told to, or none could ever run. */
static bool is_last(const struct keeper *keeper)
{
	return keeper_stops(keeper) || !keeper->was_ready ||
	       (WIFEXITED(keeper->status) && WEXITSTATUS(keeper->status) == EXIT_SUCCESS);
}

static void explain_end(const struct keeper *keeper, uint64_t pause)
{
	char what[64], wait[64] = "";

	if (WIFSIGNALED(keeper->status))
		snprintf(what, sizeof(what), "was killed by signal %d (%s)", WTERMSIG(keeper->status),
			 strsignal(WTERMSIG(keeper->status)));
	else
		snprintf(what, sizeof(what), "ended with status %d", WEXITSTATUS(keeper->status));
	if (pause > 0)
		snprintf(wait, sizeof(wait), " in %.3g s", (double)pause / 1e3);
	log_error(NULL, "the router %s: another one starts%s, and sessions wait for it", what, wait);
}

static void router_replace_later(struct keeper *keeper)
{
	uint64_t now = clock_ms(), pause;

	if (WIFEXITED(keeper->status) && WEXITSTATUS(keeper->status) == ROUTER_EXIT_REPLACE) {
		keeper->start_at = now;
		return;
	}
	if (WIFEXITED(keeper->status) && WEXITSTATUS(keeper->status) == ROUTER_EXIT_LAYOUT && !keeper->our_own) {
		log_error(NULL, "the laird that is installed cannot go on with these sessions: one of the build "
				"that was started does");
		keeper->our_own = true;
		keeper->start_at = now;
		return;
	}
	pause = throttle_died(&keeper->throttle, now, keeper->is_ready);
	if (keeper->options->restart_at_once && keeper->is_ready)
		pause = 0;
	keeper->start_at = now + pause;
	explain_end(keeper, pause);
}

/* If another process kills it, nothing in the router is to blame. */
static enum router_end router_end(const struct keeper *keeper)
{
	int status = WIFEXITED(keeper->status) ? WEXITSTATUS(keeper->status) : 0;

	if (WIFSIGNALED(keeper->status) && WTERMSIG(keeper->status) == SIGKILL)
		return keeper->killed_for;
	if (WIFEXITED(keeper->status) &&
	    (status == EXIT_SUCCESS || status == ROUTER_EXIT_REPLACE || status == ROUTER_EXIT_LAYOUT))
		return ROUTER_END_WELL;
	return ROUTER_END_DIED;
}

void keeper_lost_router(struct keeper *keeper, int status)
{
	keeper->router = 0;
	keeper->status = status;
	keeper->last_end = router_end(keeper);
	/* It may have stored something in its last messages. */
	while (keeper->channel >= 0 && keeper_hear(keeper) == 0)
		;
	keeper->channel = fd_close(keeper->channel);
	keeper->handing = false;
	if (is_last(keeper))
		keeper->over = true;
	else
		router_replace_later(keeper);
}
