/* Trees to delete. What fails is logged and forgotten: the next start finds it again. */
#include "removal.h"

#include "log.h"
#include "spawn.h"
#include "workspace.h"

#include <fcntl.h>
#include <sys/resource.h>

#define RUNNING_MAX 4
/* Of a processor's time, for a tree to which a session may add as fast as it is emptied. */
#define SHARED_MAX_S 60

/* Running when it has a pid, waiting its turn when not. */
struct tree {
	struct list node;
	pid_t pid;
	int directory; /* -1: @path is enough */
	char path[];
};

static void tree_free(struct tree *tree)
{
	fd_closep(&tree->directory);
	list_remove(&tree->node);
	free(tree);
}

/* In the child. */
static int tree_remove(const char *path)
{
	const struct tree *tree = container_of(path, struct tree, path);
	const struct rlimit limit = {SHARED_MAX_S, SHARED_MAX_S};
	int r;

	if (tree->directory < 0)
		r = workspace_remove_tree(AT_FDCWD, path);
	else if (setrlimit(RLIMIT_CPU, &limit) < 0)
		r = -errno;
	else
		r = workspace_remove_tree(tree->directory, strrchr(path, '/') + 1);
	if (r < 0)
		log_warn(NULL, "cannot remove %s: %s", path, strerror(-r));
	return r;
}

static struct tree *tree_find(struct removals *removals, pid_t pid)
{
	struct tree *tree;

	list_for_each (tree, &removals->trees, node) {
		if (tree->pid == pid)
			return tree;
	}
	return NULL;
}

static void start(struct removals *removals)
{
	struct tree *tree;

	while (removals->n_running < RUNNING_MAX && (tree = tree_find(removals, 0))) {
		int r = spawn_helper(&tree->pid, tree_remove, tree->path);

		if (r < 0) {
			log_warn(NULL, "cannot remove %s: %s", tree->path, strerror(-r));
			tree_free(tree);
		} else {
			removals->n_running++;
		}
	}
}

void removals_init(struct removals *removals)
{
	list_init(&removals->trees);
	removals->n_running = 0;
	removals->root[0] = '\0';
}

void removals_deinit(struct removals *removals)
{
	struct tree *tree;

	list_for_each (tree, &removals->trees, node) {
		log_warn(NULL, "%s is left for the next start to remove", tree->path);
		tree_free(tree);
	}
	if (*removals->root)
		(void)rmdir(removals->root);
}

void removals_add(struct removals *removals, int directory, const char *path)
{
	size_t size = strlen(path) + 1;
	struct tree *tree = malloc(sizeof(*tree) + size);

	if (!tree) {
		log_warn(NULL, "cannot remove %s: %s", path, strerror(ENOMEM));
		fd_close(directory);
		return;
	}
	tree->pid = 0;
	tree->directory = directory;
	memcpy(tree->path, path, size);
	list_init(&tree->node);
	list_append(&removals->trees, &tree->node);
	if (directory < 0)
		(void)path_directory(removals->root, path);
	start(removals);
}

bool removals_reap(struct removals *removals, pid_t pid)
{
	struct tree *tree = tree_find(removals, pid);

	if (!tree)
		return false;
	tree_free(tree);
	removals->n_running--;
	start(removals);
	return true;
}

bool removals_has(struct removals *removals, pid_t pid)
{
	return tree_find(removals, pid) != NULL;
}
