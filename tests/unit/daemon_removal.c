/* Whose turn it is: trees that are filled as fast as they are emptied keep no other waiting. */
#include "check.h"

#include "keeper/removal.h"
#include "keeper/workspace.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char base[] = "/tmp/lair-unit-XXXXXX";

/* In place of the real one: "endless" is never done, "again" has something in it at the end, the first times. */
int workspace_remove_tree(int directory, const char *name)
{
	char path[4096];

	(void)directory;
	while (strstr(name, "endless"))
		(void)poll(NULL, 0, 1000);
	if (strstr(name, "again")) {
		FILE *tries;

		snprintf(path, sizeof(path), "%s/tries", base);
		tries = fopen(path, "a");
		if (!tries || fputc('.', tries) < 0 || fclose(tries))
			return -EIO;
		return -ENOTEMPTY;
	}
	snprintf(path, sizeof(path), "%s/%s", base, strrchr(name, '/') ? strrchr(name, '/') + 1 : name);
	return rmdir(path) < 0 ? -errno : 0;
}

/* Reap until @path is not there any more. */
static bool goes(struct removals *removals, const char *path)
{
	for (int i = 0; i < 2000 && access(path, F_OK) == 0; i++) {
		int status;
		pid_t pid;

		while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
			CHECK(removals_reap(removals, pid, status));
		(void)poll(NULL, 0, 5);
	}
	return access(path, F_OK) < 0;
}

static void test_others_have_their_turn(void)
{
	/* Some are not done when the test is. */
	static struct removals removals;
	char path[64];

	removals_init(&removals);
	removals.turn_ms = 50;
	for (int i = 0; i < 9; i++) {
		snprintf(path, sizeof(path), "%s/endless%d", base, i);
		removals_add(&removals, -1, path);
	}
	for (int i = 0; i < 20; i++) {
		snprintf(path, sizeof(path), "%s/tree%d", base, i);
		CHECK(mkdir(path, 0700) == 0);
		removals_add(&removals, -1, path);
		CHECK(goes(&removals, path));
	}
	CHECK(removals.n_running <= 4 && removals.n_running_again <= 3);
}

/* Somebody adds to it, and it is given up at last: the pair of a directory and a name is one of a session that
 * lives. */
static void test_a_session_adds_to_it(void)
{
	struct removals removals;
	int status;
	pid_t pid;

	removals_init(&removals);
	removals_add(&removals, dup(STDIN_FILENO), "/nowhere/again");
	while (!list_empty(&removals.trees)) {
		pid = waitpid(-1, &status, 0);
		CHECK(pid > 0);
		(void)removals_reap(&removals, pid, status);
	}
	CHECK(removals.n_running == 0 && removals.n_running_again == 0);
}

static void test_tries(void)
{
	char path[64], text[64] = "";
	FILE *tries;

	snprintf(path, sizeof(path), "%s/tries", base);
	tries = fopen(path, "r");
	CHECK(tries && fgets(text, sizeof(text), tries));
	CHECK(strcmp(text, "......") == 0);
	if (tries)
		fclose(tries);
	CHECK(unlink(path) == 0);
}

int main(void)
{
	CHECK(mkdtemp(base));
	test_a_session_adds_to_it();
	test_tries();
	test_others_have_their_turn();
	CHECK(rmdir(base) == 0);
	return check_report();
}
