/* The verbs about the daemon: start, stop, status; and version, which needs none. */
#include "cli.h"

#include "base/json.h"
#include "base/text.h"
#include "name.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

/* The daemon gives its sessions ten seconds to end. */
#define STOP_TIMEOUT 20.0
/* While it saves them, a notice says so this often, in seconds. */
#define SAVING_NOTICE 1.0

int verb_version(struct cli *cli)
{
	if (cli->json)
		return json_print(json_pack("{s:s}", "version", LAIR_VERSION));
	puts("lair " LAIR_VERSION);
	return 0;
}

static int counters_get(struct cli *cli, struct lair_call **callp)
{
	return cli_wait(cli, lair_stats(cli->lair, callp), callp);
}

/* Return how many are still loading. */
static size_t loading_print(const struct lair_counters *counters, const char *before)
{
	struct lair_text profile;
	size_t cursor = 0, n = 0;
	char name[128];

	for (; lair_next_text(counters->loading, &cursor, &profile); n++)
		printf("%s %s", n ? "," : before, text_tamed(name, sizeof(name), profile));
	return n;
}

int verb_start(struct cli *cli)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	bool started;
	int r;

	r = counters_get(cli, &call);
	if (r)
		return cli_trouble(cli, r);
	started = lair_started(cli->lair);
	if (lair_counters(call)->saving)
		return cli_fail(cli, "gone", "laird is stopping");
	if (cli->json)
		return json_print(json_pack("{s:b, s:s, s:I, s:o}", "started", (int)started, "socket",
					    lair_socket(cli->lair), "pid",
					    (json_int_t)lair_counters(call)->keeper_pid, "loading",
					    json_texts(lair_counters(call)->loading)));
	printf("laird %s, pid %" PRIu64 ", on %s", started ? "started" : "was running already",
	       lair_counters(call)->keeper_pid, lair_socket(cli->lair));
	(void)loading_print(lair_counters(call), "; what profiles preload is still loading:");
	putchar('\n');
	return 0;
}

/* ---- status ---- */

static int say_not_running(const struct cli *cli, int status)
{
	if (cli->json)
		(void)json_print(json_pack("{s:b, s:s}", "running", 0, "socket", lair_socket(cli->lair)));
	else
		printf("not running (no laird answers on %s)\n", lair_socket(cli->lair));
	return status;
}

static int status_json(const struct cli *cli, const struct lair_counters *counters)
{
	json_t *document = json_pack("{s:b, s:s}", "running", 1, "socket", lair_socket(cli->lair)),
	       *rest = json_counters(counters);

	json_object_update(document, rest);
	json_decref(rest);
	return json_print(document);
}

static int status_print(const struct cli *cli, const struct lair_counters *counters)
{
	char uptime[HUMAN_SIZE], memory[HUMAN_SIZE], name[128];
	struct lair_text profile;
	size_t cursor = 0;

	printf("running on %s, pid %" PRIu64 "; its router, pid %" PRIu64 ", for %s\n", lair_socket(cli->lair),
	       counters->keeper_pid, counters->pid, human_seconds(uptime, counters->uptime));
	if (counters->saving)
		printf("stopping, %" PRIu64 " session%s still to be saved\n", counters->saving,
		       counters->saving == 1 ? "" : "s");
	printf("sessions %" PRIu64 " now, %" PRIu64 " opened, %" PRIu64 " ended; %" PRIu64 " spare, of %" PRIu64
	       " template%s\n",
	       counters->sessions, counters->opened, counters->ended, counters->spares, counters->templates,
	       counters->templates == 1 ? "" : "s");
	printf("cells    %" PRIu64 "; %" PRIu64 " timed out, %" PRIu64 " out of memory, %" PRIu64
	       " crashed; %" PRIu64 " roll-back%s\n",
	       counters->cells, counters->timed_out, counters->out_of_memory, counters->crashed,
	       counters->rolled_back, counters->rolled_back == 1 ? "" : "s");
	printf("requests %" PRIu64 ", %" PRIu64 " refused\n", counters->requests, counters->refused);
	if (counters->audit_missed)
		printf("audit    the audit log misses %" PRIu64 " line%s\n", counters->audit_missed,
		       counters->audit_missed == 1 ? "" : "s");
	printf("memory   %s, of the daemon alone\n", human_bytes(memory, counters->memory));
	printf("profiles");
	while (lair_next_text(counters->profiles, &cursor, &profile))
		printf(" %s", text_tamed(name, sizeof(name), profile));
	putchar('\n');
	if (loading_print(counters, "loading "))
		putchar('\n');
	return 0;
}

/* Connect, if a daemon runs; if none does, *statusp is the exit status. */
static bool running(struct cli *cli, int status_if_not, int *statusp)
{
	int r;

	r = lair_connect(cli->lair);
	*statusp = r == LAIR_E_NO_DAEMON ? say_not_running(cli, status_if_not) : cli_trouble(cli, r);
	return r == 0;
}

int verb_status(struct cli *cli)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	int r, status;

	if (!running(cli, EXIT_NOT_RUNNING, &status))
		return status;
	r = counters_get(cli, &call);
	if (r)
		return cli_trouble(cli, r);
	return cli->json ? status_json(cli, lair_counters(call)) : status_print(cli, lair_counters(call));
}

/* ---- logs ---- */

/* The log of a daemon that lair has started lies beside its socket (lib/start.c). Others log to stderr, which is
 * somebody else's to keep. */
int verb_logs(struct cli *cli)
{
	char path[PATH_MAX];
	const char *slash;
	int r = cli_connect(cli, NEED_NOTHING);

	if (r)
		return r;
	slash = strrchr(lair_socket(cli->lair), '/');
	snprintf(path, sizeof(path), "%.*s/laird.log", slash ? (int)(slash - lair_socket(cli->lair)) : 1,
		 slash ? lair_socket(cli->lair) : ".");
	if (access(path, R_OK) < 0)
		return cli_fail(
			cli, "gone",
			"%s: %s; a laird that systemd has started logs to the journal: journalctl -u laird%s", path,
			strerror(errno), cli->follow ? " -f" : "");
	(void)execlp("tail", "tail", "-n", "+1", cli->follow ? "-F" : "--", path, NULL);
	return cli_fail(cli, "error", "tail: %s", strerror(errno));
}

/* ---- stop ---- */

static bool gone_by_polling(pid_t pid, double timeout)
{
	static const struct timespec nap = {.tv_nsec = 10000000};

	for (int left = (int)(timeout * 100); left > 0; left--) {
		if (kill(pid, 0) < 0)
			return true;
		(void)nanosleep(&nap, NULL);
	}
	return false;
}

/* Wait until the process is gone. A descriptor is better than the number, which another process may have by then;
 * not every kernel has them. */
static int gone_wait(pid_t pid, int fd, double timeout)
{
	struct pollfd gone = {.fd = fd, .events = POLLIN};

	if (fd < 0)
		return gone_by_polling(pid, timeout) ? 0 : -ETIMEDOUT;
	return poll(&gone, 1, (int)(timeout * 1e3)) > 0 ? 0 : -ETIMEDOUT;
}

/* For a person who waits: how many sessions are still to be saved. */
static void saving_notice(struct cli *cli)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;

	if (!cli->json && !counters_get(cli, &call) && lair_counters(call)->saving)
		cli_notice("laird saves its sessions: %" PRIu64 " left; another lair stop ends that",
			   lair_counters(call)->saving);
}

/* Ask the daemon to stop, and hear what it could save. A daemon that does not know the request gets a signal. */
static int stop_ask(struct cli *cli, pid_t pid, struct lair_call **callp)
{
	double left = cli->timeout > 0 ? cli->timeout : INFINITY;
	int r = lair_stop(cli->lair, callp);

	while (!r && (r = lair_wait(*callp, fmin(left, SAVING_NOTICE))) == -ETIMEDOUT && left > SAVING_NOTICE) {
		left -= SAVING_NOTICE;
		saving_notice(cli);
		r = 0;
	}
	if (!r || r == LAIR_E_LOST)
		return 0;
	if (r != LAIR_E_UNSUPPORTED && r != LAIR_E_GONE)
		return r;
	return kill(pid, SIGTERM) < 0 && errno != ESRCH ? -errno : 0;
}

static int stopped_json(pid_t pid, const struct lair_stopped *stopped)
{
	static const struct lair_stopped nothing;

	stopped = stopped ? stopped : &nothing;
	return json_print(json_pack("{s:b, s:i, s:I, s:o}", "stopped", 1, "pid", (int)pid, "saved",
				    (json_int_t)stopped->saved, "not_saved", json_refused(stopped->refused)));
}

static void stopped_print(pid_t pid, uint64_t sessions, const struct lair_stopped *stopped)
{
	char name[CLI_NAME_SIZE], reason[256];
	struct lair_refused refused;
	size_t cursor = 0;

	printf("laird, pid %d, stopped; %" PRIu64 " session%s ended with it\n", (int)pid, sessions,
	       sessions == 1 ? "" : "s");
	if (!stopped)
		return;
	if (stopped->saved)
		printf("%" PRIu64 " session%s saved\n", stopped->saved, stopped->saved == 1 ? "" : "s");
	while (lair_next_refused(stopped->refused, &cursor, &refused))
		cli_notice("session \"%s\" was not saved: %s", name_shown(name, refused.name),
			   text_tamed(reason, sizeof(reason), refused.reason));
}

int verb_stop(struct cli *cli)
{
	_cleanup_(call_freep) struct lair_call *call = NULL, *stop = NULL;
	_cleanup_(fd_closep) int fd = -1;
	uint64_t sessions;
	int r, status;
	pid_t pid;

	if (!running(cli, 0, &status))
		return status;
	r = counters_get(cli, &call);
	if (r)
		return cli_trouble(cli, r);
	pid = (pid_t)lair_counters(call)->keeper_pid;
	sessions = lair_counters(call)->sessions;
	if (pid <= 1)
		return cli_fail(cli, "internal", "the daemon does not know its own pid");
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	r = stop_ask(cli, pid, &stop);
	if (r > 0)
		return cli_trouble(cli, r);
	if (!r)
		r = gone_wait(pid, fd, cli->timeout > 0 ? cli->timeout : STOP_TIMEOUT);
	if (r)
		return cli_fail(cli, lair_code(r), "laird, pid %d, has not stopped: %s", (int)pid, strerror(-r));
	if (cli->json)
		return stopped_json(pid, stop ? lair_stopped(stop) : NULL);
	stopped_print(pid, sessions, stop ? lair_stopped(stop) : NULL);
	return 0;
}

/* ---- upgrade ---- */

/* Wait until another router than @before answers. The library finds it by itself. */
static int replaced(struct cli *cli, uint64_t before, pid_t *routerp, double timeout)
{
	static const struct timespec nap = {.tv_nsec = 20000000};

	for (int left = (int)(timeout * 50); left > 0; left--) {
		struct lair_call *call = NULL;
		int r = counters_get(cli, &call);
		bool another = !r && lair_counters(call)->pid != before;

		if (another)
			*routerp = (pid_t)lair_counters(call)->pid;
		lair_call_free(call);
		if (r || another)
			return r;
		(void)nanosleep(&nap, NULL);
	}
	return -ETIMEDOUT;
}

/* Whether the router runs the program that is installed now where the keeper's program was; true if nobody can
 * tell. */
static bool is_installed(pid_t keeper, pid_t router)
{
	static const char deleted[] = " (deleted)";
	struct stat installed, running;
	char link[64], path[PATH_MAX];
	ssize_t size;

	snprintf(link, sizeof(link), "/proc/%d/exe", (int)keeper);
	size = readlink(link, path, sizeof(path) - 1);
	path[MAX(size, 0)] = '\0';
	if (size > (ssize_t)strlen(deleted) && !strcmp(path + size - strlen(deleted), deleted))
		path[size - (ssize_t)strlen(deleted)] = '\0';
	snprintf(link, sizeof(link), "/proc/%d/exe", (int)router);
	if (size < 0 || stat(path, &installed) < 0 || stat(link, &running) < 0)
		return true;
	return installed.st_dev == running.st_dev && installed.st_ino == running.st_ino;
}

int verb_upgrade(struct cli *cli)
{
	_cleanup_(call_freep) struct lair_call *call = NULL;
	int r, status;
	pid_t pid, router;

	if (!running(cli, EXIT_NOT_RUNNING, &status))
		return status;
	r = counters_get(cli, &call);
	if (r)
		return cli_trouble(cli, r);
	pid = (pid_t)lair_counters(call)->keeper_pid;
	if (pid <= 1)
		return cli_fail(cli, "internal", "the daemon does not know its own pid");
	if (kill(pid, SIGUSR2) < 0)
		return cli_fail(cli, "denied", "laird, pid %d: %s", (int)pid, strerror(errno));
	r = replaced(cli, lair_counters(call)->pid, &router, cli->timeout > 0 ? cli->timeout : STOP_TIMEOUT);
	if (r)
		return cli_fail(cli, lair_code(r), "laird, pid %d, has no other router yet: %s", (int)pid,
				strerror(-r));
	if (!is_installed(pid, router))
		return cli_fail(
			cli, "internal",
			"laird, pid %d, goes on with the build it was started with: the one that is installed "
			"cannot go on with its sessions; lair stop ends them",
			(int)pid);
	if (cli->json)
		return json_print(json_pack("{s:b, s:i}", "upgraded", 1, "pid", (int)pid));
	printf("laird, pid %d, goes on with the build that is installed; %" PRIu64 " session%s with it\n", (int)pid,
	       lair_counters(call)->sessions, lair_counters(call)->sessions == 1 ? "" : "s");
	return 0;
}
