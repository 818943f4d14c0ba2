/* lair doctor: what cage this host gives, why not a stronger one, and what would raise it. lair-kernel finds out,
 * by building cages; this explains. It needs no daemon and changes nothing. */
#include "cli.h"

#include "json.h"

#include "proto/paths.h"

#include <sys/wait.h>

#define LINES_MAX 64

struct finding {
	const char *name, *value, *reason; /* reason: of a level that is lacking */
};

struct findings {
	char text[16384];
	struct finding items[LINES_MAX];
	size_t n;
};

/* What an administrator can change, and how it shows. */
static const struct {
	const char *path, *value, *because, *command;
} remedies[] = {
	{"/proc/sys/kernel/unprivileged_userns_clone", "0", "user namespaces are reserved for root",
	 "sysctl -w kernel.unprivileged_userns_clone=1"},
	{"/proc/sys/user/max_user_namespaces", "0", "no user namespaces may be made",
	 "sysctl -w user.max_user_namespaces=15000"},
	{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
	 "AppArmor allows user namespaces to named programs only",
	 "printf 'abi <abi/4.0>,\\nprofile lair-kernel /**/lair-kernel flags=(unconfined) {\\n  userns,\\n}\\n' "
	 "> /etc/apparmor.d/lair-kernel && apparmor_parser -r /etc/apparmor.d/lair-kernel"},
};

/* ---- asking ---- */

static int kernel_ask(char *text, size_t size)
{
	char path[PATH_SIZE];
	int out[2], status;
	size_t n = 0;
	ssize_t got;
	pid_t pid;

	if (path_sibling(path, "lair-kernel") < 0 || pipe(out) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		if (dup2(out[1], STDOUT_FILENO) >= 0)
			execl(path, "lair-kernel", "--doctor", NULL);
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

static void findings_read(struct findings *findings)
{
	char *rest = findings->text, *line;

	while ((line = strsep(&rest, "\n")) && findings->n < LINES_MAX) {
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

static bool guarded_by_landlock(const struct findings *findings)
{
	for (size_t i = 0; i < findings->n; i++)
		if (strncmp(findings->items[i].value, "landlock:", strlen("landlock:")) == 0)
			return true;
	return false;
}

/* ---- telling ---- */

/* "the profile demands level X and this host gives Y: why": the last part is what is new. */
static const char *short_reason(const char *reason)
{
	const char *why = reason ? strstr(reason, " gives ") : NULL;

	why = why ? strstr(why, ": ") : NULL;
	return why ? why + 2 : reason ? reason : "";
}

static const char *const landlock_remedy[2] = {
	"Landlock is not in this kernel or not switched on",
	"boot with lsm=landlock,... on the kernel's command line (Linux 5.13 or later)",
};

static json_t *remedies_json(const struct findings *findings)
{
	json_t *list = json_array();

	for (size_t i = 0; i < ARRAY_SIZE(remedies); i++)
		if (file_says(remedies[i].path, remedies[i].value))
			json_array_append_new(list, json_pack("{s:s, s:s}", "because", remedies[i].because,
							      "command", remedies[i].command));
	if (!guarded_by_landlock(findings))
		json_array_append_new(list, json_pack("{s:s, s:s}", "because", landlock_remedy[0], "command",
						      landlock_remedy[1]));
	return list;
}

static int tell_json(const struct findings *findings)
{
	json_t *guards = json_array(), *lacking = json_array();
	const char *linux_version = value_of(findings, "linux");

	for (size_t i = 0; i < findings->n; i++) {
		const struct finding *item = &findings->items[i];

		if (strcmp(item->name, "guard") == 0)
			json_array_append_new(guards, json_string(item->value));
		else if (strcmp(item->name, "lacking") == 0)
			json_array_append_new(lacking, json_pack("{s:s, s:s}", "level", item->value, "reason",
								 short_reason(item->reason)));
	}
	return json_print(json_pack("{s:s?, s:s?, s:o, s:o, s:o}", "level", value_of(findings, "reached"), "linux",
				    linux_version, "guards", guards, "lacking", lacking, "remedies",
				    remedies_json(findings)));
}

static void tell_remedies(const struct findings *findings)
{
	for (size_t i = 0; i < ARRAY_SIZE(remedies); i++)
		if (file_says(remedies[i].path, remedies[i].value))
			printf("\n%s. As root:\n    %s\n", remedies[i].because, remedies[i].command);
	if (!guarded_by_landlock(findings))
		printf("\n%s:\n    %s\n", landlock_remedy[0], landlock_remedy[1]);
}

static void tell(const struct findings *findings)
{
	const char *level = value_of(findings, "reached"), *separator = "guards   ";

	printf("level    %s\n", level ? level : "none: no session can be caged here");
	for (size_t i = 0; i < findings->n; i++) {
		if (strcmp(findings->items[i].name, "guard") != 0)
			continue;
		printf("%s%s", separator, findings->items[i].value);
		separator = ", ";
	}
	printf("%slinux    %s\n", level ? "\n" : "", value_of(findings, "linux"));
	for (size_t i = 0; i < findings->n; i++)
		if (strcmp(findings->items[i].name, "lacking") == 0)
			printf("not %s: %s\n", findings->items[i].value, short_reason(findings->items[i].reason));
	tell_remedies(findings);
}

int verb_doctor(struct cli *cli)
{
	static struct findings findings;
	int r = kernel_ask(findings.text, sizeof(findings.text));

	if (r)
		return cli_fail(cli, "internal", "cannot start lair-kernel, which must lie beside lair: %s",
				strerror(-r));
	findings_read(&findings);
	if (cli->json)
		r = tell_json(&findings);
	else
		tell(&findings);
	return r ? r : value_of(&findings, "reached") ? 0 : EXIT_TROUBLE;
}
