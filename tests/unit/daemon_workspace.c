/* Workspaces on the real file system: made, swept, removed however deep and however hostile. */
#include "check.h"

#include "keeper/workspace.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

static unsigned n_stale;
static char last_stale[4096];

static void on_stale(void *userdata, const char *path)
{
	(void)userdata;
	n_stale++;
	snprintf(last_stale, sizeof(last_stale), "%s", path);
}

static void make_deep(const char *root, const char *name, unsigned depth)
{
	int fd = open(root, O_PATH | O_DIRECTORY), next;

	for (unsigned i = 0; i < depth; i++) {
		CHECK(mkdirat(fd, name, 0700) == 0);
		next = openat(fd, name, O_PATH | O_DIRECTORY);
		fd_close(fd);
		fd = next;
	}
	fd_close(fd);
}

int main(void)
{
	char base[] = "/tmp/lair-unit-XXXXXX", outside[64], path[4200];
	struct workspaces workspaces;
	char *workspace;
	struct stat status;
	int fd;

	CHECK(mkdtemp(base) != NULL);
	CHECK(workspaces_open(&workspaces, base, "/a/socket", on_stale, NULL) == 0 && n_stale == 0);
	CHECK(workspace_create(&workspace, &workspaces, 7, 0, false) == 0);
	CHECK(stat(workspace, &status) == 0 && (status.st_mode & 0777) == 0700);

	/* A link to something outside, a directory nobody may enter, a tree deeper than any path. */
	snprintf(outside, sizeof(outside), "%s/precious", base);
	fd = open(outside, O_CREAT | O_WRONLY, 0600);
	CHECK(fd >= 0);
	fd_close(fd);
	snprintf(path, sizeof(path), "%s/link", workspace);
	CHECK(symlink(base, path) == 0);
	snprintf(path, sizeof(path), "%s/closed", workspace);
	CHECK(mkdir(path, 0700) == 0);
	strcat(path, "/inside");
	CHECK(mkdir(path, 0700) == 0);
	snprintf(path, sizeof(path), "%s/closed", workspace);
	CHECK(chmod(path, 0) == 0);
	make_deep(workspace, "d", 5000);
	/* Names that removing may want for itself. */
	make_deep(workspace, ".lair-deep-0", 50);
	make_deep(workspace, ".lair-deep-1", 50);

	workspaces_close(&workspaces);
	/* A later life with the same socket finds it; one with another socket does not. */
	CHECK(workspaces_open(&workspaces, base, "/b/socket", on_stale, NULL) == 0 && n_stale == 0);
	workspaces_close(&workspaces);
	CHECK(workspaces_open(&workspaces, base, "/a/socket", on_stale, NULL) == 0 && n_stale == 1);
	CHECK(!strcmp(last_stale, workspace));

	CHECK(workspace_remove_tree(AT_FDCWD, workspace) == 0);
	CHECK(lstat(workspace, &status) < 0 && errno == ENOENT);
	CHECK(stat(outside, &status) == 0);
	CHECK(workspace_remove_tree(AT_FDCWD, workspace) == -ENOENT);

	/* By its name in a directory, where a link may be instead. */
	CHECK(mkdir(workspace, 0700) == 0);
	fd = open(workspace, O_PATH | O_DIRECTORY);
	CHECK(symlinkat(base, fd, "link") == 0 && workspace_remove_tree(fd, "link") < 0);
	CHECK(stat(outside, &status) == 0 && unlinkat(fd, "link", 0) == 0);
	make_deep(workspace, "d", 50);
	CHECK(workspace_remove_tree(fd, "d") == 0 && fstatat(fd, "d", &status, 0) < 0);
	fd_close(fd);
	CHECK(rmdir(workspace) == 0);
	workspaces_close(&workspaces);
	CHECK(unlink(outside) == 0 && rmdir(base) == 0);
	free(workspace);
	return check_report();
}
