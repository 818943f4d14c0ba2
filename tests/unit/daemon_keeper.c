/* The keeper with real processes: copies of this program play the router and the template, and say what they were
 * born with. However a daemon ends, nothing of it may be left. */
#include "keeper/instance.h"
#include "keeper/keeper.h"

#include "check.h"
#include "proto/channel.h"
#include "proto/paths.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define PATIENCE_MS 20000

static char directory[PATH_SIZE];

static const char *below(const char *name)
{
	static char paths[4][PATH_SIZE + 64];
	static unsigned next;
	char *path = paths[next++ % ARRAY_SIZE(paths)];

	snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
	return path;
}

/* ---- the template: what does it find? ---- */

struct report {
	pid_t template, parent, session, child, router;
	bool signals_clean, stdin_null, arguments, environment;
	int n_fds;
};

static bool signals_clean(void)
{
	struct sigaction action;
	sigset_t mask;

	if (sigprocmask(SIG_SETMASK, NULL, &mask) < 0)
		return false;
	for (int signal = 1; signal < NSIG; signal++) {
		if (sigismember(&mask, signal) == 1)
			return false;
		if (sigaction(signal, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
			return false;
	}
	return true;
}

static int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = -3; /* itself, . and .. */

	if (!dir)
		return -1;
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static int play_template(int argc, char *argv[])
{
	struct report report = {.template = getpid(),
				.parent = getppid(),
				.session = getsid(0),
				.signals_clean = signals_clean(),
				.arguments = argc == 2 && !strcmp(argv[1], "default"),
				.environment =
					getenv("PATH") && getenv("LANG") && environ[0] && environ[1] && !environ[2],
				.n_fds = count_fds()};
	char path[64] = "";

	report.stdin_null = readlink("/proc/self/fd/0", path, sizeof(path) - 1) > 0 && !strcmp(path, "/dev/null");
	report.child = fork();
	if (report.child == 0) {
		/* What is left behind tries to look like nobody's. */
		setsid();
		for (;;)
			pause();
	}
	if (channel_send(KEEPER_FD, (struct bytes){.data = (char *)&report, .size = sizeof(report)}, NULL, 0) != 0)
		return EXIT_FAILURE;
	for (;;)
		pause();
}

/* ---- the router ---- */

static void tell(struct keeper_message *message, const int *fds, size_t n_fds)
{
	struct bytes data = {.data = (char *)message, .size = keeper_message_size(message->op)};

	if (channel_send(KEEPER_FD, data, fds, n_fds) != 0)
		_exit(99);
}

static void hear(int fd, void *message, size_t size, int fds[CHANNEL_FDS_MAX])
{
	struct bytes data;
	size_t n_fds;

	if (channel_recv(fd, message, size, &data, fds, &n_fds) != 0 || data.size != size)
		_exit(98);
}

/* The keeper's answer, without what it tells every router at its start. */
static void hear_keeper(struct keeper_message *message, int fds[CHANNEL_FDS_MAX])
{
	do
		hear(KEEPER_FD, message, offsetof(struct keeper_message, path), fds);
	while (message->op == KEEPER_HELD || message->op == KEEPER_END);
}

static void save(const char *name, const void *data, size_t size)
{
	_cleanup_(fd_closep) int fd = open(below(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (write(fd, data, size) != (ssize_t)size)
		_exit(97);
}

/* Exits with 10 and more when the keeper does not do its part. */
static void start_template(void)
{
	struct keeper_message message = {.op = KEEPER_START_TEMPLATE, .serial = 7, .profile = "default"};
	int pair[2], fds[CHANNEL_FDS_MAX];
	struct report report;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		_exit(10);
	tell(&message, &pair[1], 1);
	close(pair[1]);
	hear_keeper(&message, fds);
	if (message.op != KEEPER_STARTED || message.serial != 7 || message.error != 0 || message.pid <= 0 ||
	    fds[0] < 0)
		_exit(11);
	hear(pair[0], &report, sizeof(report), fds);
	if (report.template != message.pid)
		_exit(12);
	report.router = getpid();
	save("report", &report, sizeof(report));
}

static void fail_to_start(void)
{
	struct keeper_message message = {.op = KEEPER_START_TEMPLATE, .serial = 8, .profile = "default"};
	int fds[CHANNEL_FDS_MAX], pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ||
	    rename(below("lair-kernel"), below("gone")) < 0)
		_exit(13);
	tell(&message, &pair[1], 1);
	hear_keeper(&message, fds);
	if (message.serial != 8 || message.error != -ENOENT || fds[0] >= 0 ||
	    rename(below("gone"), below("lair-kernel")) < 0)
		_exit(14);
}

/* Until told to stop. */
static int obey(void)
{
	sigset_t set;
	int signal;

	sigprocmask(SIG_BLOCK, NULL, &set);
	for (;;) {
		if (sigwait(&set, &signal) != 0)
			return 15;
		if (signal == SIGTERM)
			return EXIT_SUCCESS;
		save("hup", "", 0);
	}
}

static int ask_removal(void)
{
	struct keeper_message message = {.op = KEEPER_REMOVE_TREE};

	mkdir(below("trees"), 0700);
	for (int i = 0; i < 9; i++) {
		char inner[PATH_SIZE + 80];

		snprintf(message.path, sizeof(message.path), "%s/%d", below("trees"), i);
		mkdir(message.path, 0700);
		snprintf(inner, sizeof(inner), "%s/inner", message.path);
		mkdir(inner, 0700);
		tell(&message, NULL, 0);
	}
	return EXIT_SUCCESS;
}

/* What is held comes back: a number in a file, that each router adds one to. Returns which router this is. */
static char inherit(void)
{
	struct keeper_message message, store = {.op = KEEPER_STORE, .name = {.kind = 1, .family = 2, .number = 3}};
	int fds[CHANNEL_FDS_MAX], file = -1, listener = -1;
	char number = '0';

	for (;;) {
		hear(KEEPER_FD, &message, offsetof(struct keeper_message, path), fds);
		if (message.op == KEEPER_END)
			break;
		if (message.name.kind == STORE_LISTENER)
			listener = fds[0];
		else if (message.name.kind == 1 && message.name.family == 2 && message.name.number == 3)
			file = fds[0];
		else
			_exit(17);
	}
	if (listener < 0 || (file >= 0 && pread(file, &number, 1, 0) != 1))
		_exit(18);
	number++;
	if (file < 0)
		file = open(below("number"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (pwrite(file, &number, 1, 0) != 1)
		_exit(19);
	unlink(below("number"));
	tell(&store, &file, 1);
	return number;
}

static int play_router(const char *socket, const char *scenario)
{
	struct keeper_message ready = {.op = KEEPER_READY};
	sigset_t set;
	char number;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	(void)path_directory(directory, socket);
	if (!strcmp(scenario, "fail"))
		return 7;
	if (!strcmp(scenario, "remove"))
		return ask_removal();
	if (!strcmp(scenario, "missing")) {
		fail_to_start();
		return EXIT_SUCCESS;
	}
	if (!strcmp(scenario, "nonsense")) {
		if (channel_send(KEEPER_FD, BYTES("???"), NULL, 0) != 0)
			return 16;
		return obey();
	}
	number = inherit();
	start_template();
	save("which", &number, 1);
	tell(&ready, NULL, 0);
	return obey();
}

/* ---- the tests ---- */

static pid_t keeper_pid;
static int ready_fd;

static void keeper_start(const char *scenario)
{
	int pair[2];
	sigset_t set;

	if (pipe2(pair, O_CLOEXEC) < 0)
		abort();
	keeper_pid = fork();
	if (keeper_pid == 0) {
		/* Everything an untidy parent could hand down. */
		char number[16];

		sigemptyset(&set);
		sigaddset(&set, SIGUSR1);
		sigprocmask(SIG_BLOCK, &set, NULL);
		signal(SIGINT, SIG_IGN);
		signal(SIGCHLD, SIG_IGN);
		setenv("SECRET", "1", 1);
		snprintf(number, sizeof(number), "%d", fcntl(pair[1], F_DUPFD, 20));
		execl(below("laird"), "keeper", scenario, below("socket"), number, NULL);
		_exit(96);
	}
	close(pair[1]);
	ready_fd = pair[0];
}

static int play_keeper(char *argv[])
{
	struct keeper_options options = {
		.config = argv[1], .socket = argv[2], .ready_fd = atoi(argv[3]), .socket_mode = 0600};

	return keeper_run(&options);
}

/* Whether the byte came, rather than the end. */
static bool keeper_ready(void)
{
	struct pollfd ready = {.fd = ready_fd, .events = POLLIN};
	char byte;

	return poll(&ready, 1, PATIENCE_MS) == 1 && read(ready_fd, &byte, 1) == 1;
}

/* The status as a shell would say it; -1 if it did not end. */
static int keeper_end(void)
{
	int status;

	close(ready_fd);
	for (int i = 0; i < PATIENCE_MS / 10; i++) {
		if (waitpid(keeper_pid, &status, WNOHANG) == keeper_pid)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		usleep(10000);
	}
	kill(keeper_pid, SIGKILL);
	return -1;
}

static struct report report_read(void)
{
	_cleanup_(fd_closep) int fd = open(below("report"), O_RDONLY);
	struct report report = {0};

	CHECK(read(fd, &report, sizeof(report)) == sizeof(report));
	unlink(below("report"));
	return report;
}

/* Dead, whether or not somebody has taken notice. */
static bool dead(pid_t pid)
{
	char path[64], state = 'Z';
	FILE *stat;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	stat = fopen(path, "re");
	if (!stat)
		return true;
	if (fscanf(stat, "%*d %*s %c", &state) != 1)
		state = 'Z';
	fclose(stat);
	return state == 'Z' || state == 'X';
}

static bool gone(pid_t pid)
{
	for (int i = 0; i < PATIENCE_MS / 10; i++) {
		if (pid <= 0 || dead(pid))
			return pid > 0;
		usleep(10000);
	}
	return false;
}

static bool nothing_left(void)
{
	return access(below("socket"), F_OK) < 0 && access(below("socket.lock"), F_OK) < 0;
}

static void test_life(void)
{
	pid_t first;
	int first_ready;
	struct report report;

	keeper_start("serve");
	CHECK(keeper_ready());
	report = report_read();
	CHECK(report.parent == keeper_pid && report.session == report.template && report.arguments);
	CHECK(report.signals_clean && report.stdin_null && report.environment && report.n_fds == 4);

	/* A second one on the same socket leaves the first alone. */
	first = keeper_pid;
	first_ready = ready_fd;
	keeper_start("serve");
	CHECK(!keeper_ready() && keeper_end() == 3);
	keeper_pid = first;
	ready_fd = first_ready;

	kill(keeper_pid, SIGHUP);
	for (int i = 0; i < PATIENCE_MS / 10 && access(below("hup"), F_OK) < 0; i++)
		usleep(10000);
	CHECK(unlink(below("hup")) == 0);
	kill(keeper_pid, SIGTERM);
	CHECK(keeper_end() == 0 && nothing_left());
	CHECK(gone(report.router) && gone(report.template) && gone(report.child));
}

static bool router_is(char which)
{
	char number = 0;

	for (int i = 0; i < PATIENCE_MS / 10 && number != which; i++) {
		_cleanup_(fd_closep) int fd = open(below("which"), O_RDONLY);

		if (fd >= 0 && read(fd, &number, 1) == 1 && number == which)
			break;
		usleep(10000);
	}
	return number == which;
}

/* The next one has what the last one stored, however that ended. */
static void test_router_dies(void)
{
	static const int signals[] = {SIGABRT, SIGKILL, SIGSEGV};
	struct report report;
	pid_t last = 0;

	keeper_start("serve");
	CHECK(keeper_ready());
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		CHECK(router_is((char)('1' + i)));
		report = report_read();
		CHECK(report.router != last && kill(report.router, signals[i]) == 0);
		last = report.router;
	}
	CHECK(router_is((char)('1' + ARRAY_SIZE(signals))));
	report = report_read();
	kill(keeper_pid, SIGTERM);
	CHECK(keeper_end() == 0 && nothing_left());
	CHECK(gone(report.router) && gone(report.template) && gone(report.child));
	unlink(below("which"));
}

static void test_keeper_dies(void)
{
	struct report report;

	keeper_start("serve");
	CHECK(keeper_ready());
	report = report_read();
	kill(keeper_pid, SIGKILL);
	CHECK(keeper_end() == 128 + SIGKILL);
	CHECK(gone(report.router) && gone(report.template));
	kill(report.child, SIGKILL);
	/* What it could not take along is no hindrance to the next. */
	CHECK(access(below("socket.lock"), F_OK) == 0);
	keeper_start("missing");
	CHECK(!keeper_ready() && keeper_end() == 0 && nothing_left());
}

static void test_failures(void)
{
	keeper_start("fail");
	CHECK(!keeper_ready() && keeper_end() == 7 && nothing_left());
	keeper_start("nonsense");
	CHECK(!keeper_ready() && keeper_end() == 128 + SIGKILL && nothing_left());
}

static void test_removal(void)
{
	keeper_start("remove");
	CHECK(keeper_end() == 0 && nothing_left());
	CHECK(access(below("trees"), F_OK) < 0);
}

static void test_instance(void)
{
	struct instance first, second;

	CHECK(instance_init(&first, below("new/socket")) == 0);
	CHECK(instance_init(&second, below("new/socket")) == INSTANCE_E_RUNNING);
	instance_deinit(&second);
	CHECK(access(below("new/socket.lock"), F_OK) == 0);
	instance_deinit(&first);
	CHECK(access(below("new"), F_OK) < 0);
	CHECK(chmod(directory, 0777) == 0 && instance_init(&first, below("socket")) == -EPERM);
	CHECK(chmod(directory, 0700) == 0);
}

static void prepare(void)
{
	char buffer[65536];
	_cleanup_(fd_closep) int from = open("/proc/self/exe", O_RDONLY);
	int to;
	ssize_t n;

	if (path_sibling(directory, "keeper-XXXXXX") < 0 || !mkdtemp(directory))
		abort();
	to = open(below("laird"), O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	while ((n = read(from, buffer, sizeof(buffer))) > 0) {
		if (write(to, buffer, (size_t)n) != n)
			abort();
	}
	close(to);
	if (link(below("laird"), below("lair-kernel")) < 0)
		abort();
}

int main(int argc, char *argv[])
{
	if (!strcmp(argv[0], "lair-kernel"))
		return play_template(argc, argv);
	if (argc == 8 && !strcmp(argv[1], "--router"))
		return play_router(argv[3], argv[7]);
	if (!strcmp(argv[0], "keeper"))
		return play_keeper(argv);
	prepare();
	test_instance();
	test_life();
	test_router_dies();
	test_keeper_dies();
	test_failures();
	test_removal();
	unlink(below("which"));
	unlink(below("laird"));
	unlink(below("lair-kernel"));
	CHECK(rmdir(directory) == 0);
	return check_report();
}
