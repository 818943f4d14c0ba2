/* The doctor uses the code that makes the cages of sessions. For each level, from the strongest, it finds out
 * whether one can be prepared, which includes building it in a throw-away child. For the first one that can, it
 * says which guards hold in it. */
#include "doctor.h"

#include "cage/cage.h"
#include "language.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#define DOCTOR_UID 65534

static const char *const levels[] = {"strong", "strong-nomem", "landlock", "uid", "readonly", "audit-only"};

static void fact(int out, const char *name, const char *value)
{
	dprintf(out, "%s\t%s\n", name, value);
}

/* Runs in a child, since a cage is entered for good. @out is a copy of stdout, because the cage closes stdout. */
static _Noreturn void guards_print(struct cage *cage, const char *workspace, int out, int held)
{
	struct cage_report report = {0};

	if (cage_enter(cage, workspace, (const int[]){out, held, -1}, &report) < 0)
		fact(out, "failed", report.reason);
	else
		fact(out, "reached", report.level);
	if (language.blocked)
		cage_guard(&report, "audit");
	for (size_t i = 0; i < report.n_guards; i++)
		fact(out, "guard", report.guards[i]);
	_exit(EXIT_SUCCESS);
}

/* The clone is a child of our parent, so we cannot wait for it. But it holds one end of the pair, which closes when
 * the clone ends. */
static int guards_find(struct cage *cage)
{
	char workspace[] = "/tmp/lair-doctor-XXXXXX", end;
	uid_t uid = geteuid() == 0 ? DOCTOR_UID : 0;
	int pair[2], out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3), r = 0;
	pid_t pid;

	if (!mkdtemp(workspace) || (uid && chown(workspace, uid, uid) < 0) ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	pid = cage_clone(cage, uid, NULL, NULL);
	if (pid == 0)
		guards_print(cage, workspace, out, pair[1]);
	fd_close(pair[1]);
	if (pid < 0)
		r = pid;
	else if (read(pair[0], &end, 1) != 0)
		r = -EIO;
	fd_close(pair[0]);
	fd_close(out);
	(void)rmdir(workspace);
	return r;
}

static bool among(char *const names[], const char *name)
{
	while (*names && strcmp(*names, name) != 0)
		names++;
	return *names;
}

int doctor_run(char *const groups[])
{
	char *const nothing[] = {NULL};
	struct utsname host;
	int r;

	if (uname(&host) == 0)
		fact(STDOUT_FILENO, "linux", host.release);
	for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
		struct configure_message configure = {
			.profile = BYTES("doctor"),
			.text_max = 1,
			.level = bytes_of(levels[i]),
			.memory = 1 << 30,
			.memory_group = among(groups, "memory"),
			.processes_group = among(groups, "pids"),
			.cpu_group = among(groups, "cpu"),
		};
		struct cage_report report = {0};
		struct cage *cage;

		r = cage_prepare(&cage, &configure, nothing, &report);
		if (!r)
			r = guards_find(cage);
		if (!r)
			return EXIT_SUCCESS;
		dprintf(STDOUT_FILENO, "lacking\t%s\t%s\n", levels[i],
			report.reason[0] ? report.reason : strerror(-r));
	}
	return EXIT_FAILURE;
}
