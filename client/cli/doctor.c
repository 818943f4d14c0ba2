/* lair doctor: what cage this host gives, why not a stronger one, and what would raise it. laird finds out, by
 * making control groups, and lair-kernel, by building cages; this explains. It needs no daemon and changes nothing.
 */
#include "cli.h"

#include "base/json.h"
#include "host.h"

#include "proto/paths.h"

#include <sys/wait.h>

#define LINES_MAX 64

struct finding {
	const char *name, *value, *reason; /* reason: why this level is not reached */
};

struct findings {
	char groups[4096], cages[16384]; /* the output of laird and of lair-kernel */
	struct finding items[LINES_MAX];
	size_t n;
};

struct remedy {
	const char *because, *command;
	bool root; /* only root can do it */
};

#define REMEDIES_MAX 8

/* Settings that an administrator can change, and the file that shows each. */
static const struct {
	const char *path, *value;
	struct remedy remedy;
} switches[] = {
	{"/proc/sys/kernel/unprivileged_userns_clone",
	 "0",
	 {"user namespaces are reserved for root", "sysctl -w kernel.unprivileged_userns_clone=1", true}},
	{"/proc/sys/user/max_user_namespaces",
	 "0",
	 {"no user namespaces may be made", "sysctl -w user.max_user_namespaces=15000", true}},
	{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
	 "1",
	 {"AppArmor allows user namespaces to named programs only",
	  "printf 'abi <abi/4.0>,\\nprofile lair-kernel /**/lair-kernel flags=(unconfined) {\\n  userns,\\n}\\n' "
	  "> /etc/apparmor.d/lair-kernel && apparmor_parser -r /etc/apparmor.d/lair-kernel",
	  true}},
};

/* ---- asking ---- */

/* The output of the program, which lies beside this one. */
static int program_ask(const char *program, const char *const argv[], char *text, size_t size)
{
	char path[PATH_SIZE];
	int out[2], status;
	size_t n = 0;
	ssize_t got;
	pid_t pid;

	if (path_sibling(path, program) < 0 || pipe(out) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		if (dup2(out[1], STDOUT_FILENO) >= 0)
			execv(path, (char *const *)argv);
		_exit(127);
	}
	fd_close(out[1]);
	while (pid > 0 && n < size - 1 && (got = read(out[0], text + n, size - 1 - n)) > 0)
		n += (size_t)got;
	text[n] = '\0';
	fd_close(out[0]);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -ECHILD;
	return WIFEXITED(status) && WEXITSTATUS(status) != 127 ? 0 : -ENOENT;
}

static void findings_add(struct findings *findings, char *text)
{
	char *line;

	while ((line = strsep(&text, "\n")) && findings->n < LINES_MAX) {
		struct finding *item = &findings->items[findings->n];

		item->name = strsep(&line, "\t");
		item->value = strsep(&line, "\t");
		item->reason = line;
		findings->n += item->value != NULL;
	}
}

static const char *value_of(const struct findings *findings, const char *name)
{
	for (size_t i = 0; i < findings->n; i++)
		if (strcmp(findings->items[i].name, name) == 0)
			return findings->items[i].value;
	return NULL;
}

/* ---- what would help ---- */

static const struct remedy landlock_remedy = {
	"Landlock is not in this kernel or not switched on",
	"boot with lsm=landlock,... on the kernel's command line (Linux 5.13 or later)",
	false,
};

static const struct remedy name_remedy = {
	"Sessions read the name of this host, because a system call filter lets lair-kernel set no other",
	"for a container of podman or Docker: --security-opt seccomp=unconfined",
	false,
};

static bool there(const char *path)
{
	return access(path, F_OK) == 0;
}

/* Permission to make control groups. With systemd: every user, by delegation of version 2. Without systemd: root,
 * in a group where laird is alone. With version 1 also a user, beneath directories of the user's own: the process
 * that will start laird, our parent, must be in these. */
static struct remedy groups_remedy(void)
{
	static char command[640];
	unsigned uid = geteuid();
	struct remedy remedy = {"No control group limits the memory of a session as a whole", command, true};

	if (there("/run/systemd/system") && there("/sys/fs/cgroup/cgroup.controllers")) {
		snprintf(command, sizeof(command),
			 "systemd-run %s-p Delegate=yes laird    (in a unit: Delegate=yes in its [Service])",
			 uid ? "--user " : "");
		remedy.root = uid == 0;
	} else if (uid && there("/sys/fs/cgroup/memory/cgroup.procs")) {
		snprintf(
			command, sizeof(command),
			"for c in memory pids cpu; do "
			"d=/sys/fs/cgroup/$c$(grep -E \":([a-z_]+,)*$c(,[a-z_]+)*:\" /proc/%d/cgroup | cut -d: -f3)"
			"/lair-%u; mkdir -p $d && chown %u $d $d/cgroup.procs && echo %d > $d/cgroup.procs; done",
			(int)getppid(), uid, uid, (int)getppid());
	} else if (access("/sys/fs/cgroup", W_OK) == 0 && there("/sys/fs/cgroup/cgroup.controllers")) {
		snprintf(command, sizeof(command),
			 "cd /sys/fs/cgroup && mkdir -p others laird && "
			 "for p in $(cat cgroup.procs); do echo $p > others/cgroup.procs; done; "
			 "echo +memory +pids +cpu > cgroup.subtree_control && "
			 "(echo 0 > laird/cgroup.procs && exec laird)");
	} else {
		snprintf(command, sizeof(command), "mount -o remount,rw /sys/fs/cgroup");
	}
	return remedy;
}

static bool file_says(const char *path, const char *value)
{
	char line[64] = "";
	FILE *file = fopen(path, "re");
	bool says = file && fgets(line, sizeof(line), file);

	if (file)
		(void)fclose(file);
	line[strcspn(line, "\n")] = '\0';
	return says && strcmp(line, value) == 0;
}

static bool guarded_by(const struct findings *findings, const char *guard)
{
	for (size_t i = 0; i < findings->n; i++)
		if (strncmp(findings->items[i].value, guard, strlen(guard)) == 0)
			return true;
	return false;
}

static size_t remedies_find(struct remedy remedies[static REMEDIES_MAX], const struct findings *findings)
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(switches); i++)
		if (file_says(switches[i].path, switches[i].value))
			remedies[n++] = switches[i].remedy;
	if (!guarded_by(findings, "landlock:"))
		remedies[n++] = landlock_remedy;
	if (guarded_by(findings, "mountns") && !guarded_by(findings, "utsns"))
		remedies[n++] = name_remedy;
	if (!guarded_by(findings, "memory-cgroup"))
		remedies[n++] = groups_remedy();
	return n;
}

/* ---- telling ---- */

/* Of "the profile demands level X and this host gives Y: why" only the last part is new. */
static const char *short_reason(const char *reason)
{
	const char *why = reason ? strstr(reason, " gives ") : NULL;

	why = why ? strstr(why, ": ") : NULL;
	return why ? why + 2 : reason ? reason : "";
}

/* The level is a line like the others. */
static enum host_state level_state(const struct findings *findings)
{
	const char *level = value_of(findings, "reached");

	if (!level)
		return HOST_FAIL;
	return strcmp(level, "strong") == 0 ? HOST_OK : HOST_WARN;
}

static json_t *host_json(const struct host *host)
{
	json_t *list = json_array();

	for (size_t i = 0; i < host->n; i++)
		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:s*}", "state", host_word(host->lines[i].state),
						"text", host->lines[i].text, "command", host->lines[i].command));
	return list;
}

static void host_tell(const struct host *host, const struct findings *findings)
{
	const char *level = value_of(findings, "reached");

	printf("\n%-4s  cage: level %s%s\n", host_word(level_state(findings)), level ? level : "none",
	       guarded_by(findings, "landlock:") ? "" : ", without Landlock");
	for (size_t i = 0; i < host->n; i++) {
		printf("%-4s  %s\n", host_word(host->lines[i].state), host->lines[i].text);
		if (host->lines[i].command)
			printf("      %s\n", host->lines[i].command);
	}
}

static int tell_json(const struct findings *findings, const struct host *host)
{
	json_t *guards = json_array(), *lacking = json_array(), *groups = json_array(), *list = json_array();
	const char *linux_version = value_of(findings, "linux");
	struct remedy remedies[REMEDIES_MAX];
	size_t n = remedies_find(remedies, findings);

	for (size_t i = 0; i < findings->n; i++) {
		const struct finding *item = &findings->items[i];

		if (strcmp(item->name, "guard") == 0)
			json_array_append_new(guards, json_string(item->value));
		else if (strcmp(item->name, "lacking") == 0)
			json_array_append_new(lacking, json_pack("{s:s, s:s}", "level", item->value, "reason",
								 short_reason(item->reason)));
		else if (strcmp(item->name, "no-group") == 0)
			json_array_append_new(
				groups, json_pack("{s:s, s:s?}", "group", item->value, "reason", item->reason));
	}
	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_pack("{s:s, s:s}", "because", remedies[i].because, "command",
						      remedies[i].command));
	return json_print(json_pack("{s:s?, s:s?, s:o, s:o, s:o, s:o, s:o}", "level", value_of(findings, "reached"),
				    "linux", linux_version, "guards", guards, "lacking", lacking, "groups_lacking",
				    groups, "remedies", list, "host", host_json(host)));
}

static void tell(const struct findings *findings)
{
	const char *level = value_of(findings, "reached"), *separator = "guards   ";
	struct remedy remedies[REMEDIES_MAX];
	size_t n = remedies_find(remedies, findings);

	printf("level    %s\n", level ? level : "none: no session can be caged here");
	for (size_t i = 0; i < findings->n; i++) {
		if (strcmp(findings->items[i].name, "guard") != 0)
			continue;
		printf("%s%s", separator, findings->items[i].value);
		separator = ", ";
	}
	printf("%slinux    %s\n", level ? "\n" : "", value_of(findings, "linux"));
	for (size_t i = 0; i < findings->n; i++) {
		const struct finding *item = &findings->items[i];

		if (strcmp(item->name, "lacking") == 0)
			printf("not %s: %s\n", item->value, short_reason(item->reason));
		else if (strcmp(item->name, "no-group") == 0)
			printf("no control groups for %s: %s\n", item->value, item->reason ? item->reason : "");
	}
	for (size_t i = 0; i < n; i++)
		printf("\n%s%s:\n    %s\n", remedies[i].because, remedies[i].root ? ". As root" : "",
		       remedies[i].command);
}

/* The groups come first, because lair-kernel needs them to tell the level. */
static int ask(struct findings *findings)
{
	const char *const laird[] = {"laird", "--groups", NULL};
	const char *kernel[3 + LINES_MAX] = {"lair-kernel", "--doctor"};
	size_t n = 2;
	int r;

	r = program_ask("laird", laird, findings->groups, sizeof(findings->groups));
	if (r)
		return r;
	findings_add(findings, findings->groups);
	for (size_t i = 0; i < findings->n; i++)
		if (strcmp(findings->items[i].name, "group") == 0)
			kernel[n++] = findings->items[i].value;
	r = program_ask("lair-kernel", kernel, findings->cages, sizeof(findings->cages));
	findings_add(findings, findings->cages);
	return r;
}

int verb_doctor(struct cli *cli)
{
	static struct findings findings;
	static struct host host;
	int r = ask(&findings);

	if (r)
		return cli_fail(cli, "internal",
				"cannot start laird and lair-kernel, which must lie beside lair: %s", strerror(-r));
	host_look(&host);
	if (cli->json) {
		r = tell_json(&findings, &host);
	} else {
		tell(&findings);
		host_tell(&host, &findings);
	}
	return r ? r : value_of(&findings, "reached") ? 0 : EXIT_TROUBLE;
}
