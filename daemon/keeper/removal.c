/* Trees to delete. A failure is logged and forgotten: the next start finds the tree again. */
#include "removal.h"

#include "base/log.h"
#include "base/spawn.h"
#include "workspace.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

#define RUNNING_MAX 4
/* How many of the running ones may be trees that have had a turn: the other places are for new ones. */
#define RUNNING_AGAIN_MAX 3
#define TURN_MS 10000
#define PAUSE_MS 200
/* How many turns a tree gets if nobody writes to it any more, and if a session may. */
#define TURNS_MAX 360
#define SHARED_TURNS_MAX 6
#define EXIT_AGAIN 2

/* Running when it has a pid, waiting its turn when not. */
struct tree {
	struct list node;
	pid_t pid;
	int directory; /* -1: @path is enough */
	unsigned turns, turn_ms;
	char path[];
};

static void tree_free(struct tree *tree)
{
	fd_closep(&tree->directory);
	list_remove(&tree->node);
	free(tree);
}

static bool begin_turn(unsigned ms)
{
	const struct itimerval turn = {
		.it_value = {.tv_sec = ms / 1000, .tv_usec = (suseconds_t)(ms % 1000) * 1000}};

	return setitimer(ITIMER_REAL, &turn, NULL) == 0;
}

/* In the child, which SIGALRM ends. */
static int tree_remove(const char *path)
{
	const struct tree *tree = container_of(path, struct tree, path);
	int r;

	if (tree->turns > 0)
		(void)poll(NULL, 0, PAUSE_MS);
	if (!begin_turn(tree->turn_ms))
		r = -errno;
	else if (tree->directory < 0)
		r = workspace_remove_tree(AT_FDCWD, path);
	else
		r = workspace_remove_tree(tree->directory, strrchr(path, '/') + 1);
	/* Something has come since all was gone. */
	if (r == -ENOTEMPTY)
		_exit(EXIT_AGAIN);
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

/* The first tree that waits, if it may run now. */
static struct tree *tree_next(struct removals *removals)
{
	bool again = removals->n_running_again < RUNNING_AGAIN_MAX;
	struct tree *tree;

	if (removals->n_running == RUNNING_MAX)
		return NULL;
	list_for_each (tree, &removals->trees, node) {
		if (tree->pid == 0 && (tree->turns == 0 || again))
			return tree;
	}
	return NULL;
}

static void start(struct removals *removals)
{
	struct tree *tree;

	while ((tree = tree_next(removals))) {
		int r = spawn_helper(&tree->pid, tree_remove, tree->path);

		if (r < 0) {
			log_warn(NULL, "cannot remove %s: %s", tree->path, strerror(-r));
			tree_free(tree);
		} else {
			removals->n_running++;
			removals->n_running_again += tree->turns > 0;
		}
	}
}

/* The tree is done, or goes to the end of the queue. */
static void end_turn(struct removals *removals, struct tree *tree, bool again)
{
	removals->n_running--;
	removals->n_running_again -= tree->turns > 0;
	tree->turns++;
	tree->pid = 0;
	if (again && tree->turns < (tree->directory < 0 ? TURNS_MAX : SHARED_TURNS_MAX)) {
		list_remove(&tree->node);
		list_append(&removals->trees, &tree->node);
		return;
	}
	if (again)
		log_warn(NULL, "cannot remove %s: it is filled as fast as it is emptied", tree->path);
	tree_free(tree);
}

void removals_init(struct removals *removals)
{
	list_init(&removals->trees);
	removals->n_running = removals->n_running_again = 0;
	removals->turn_ms = TURN_MS;
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
	tree->turns = 0;
	tree->turn_ms = removals->turn_ms;
	tree->directory = directory;
	memcpy(tree->path, path, size);
	list_init(&tree->node);
	list_append(&removals->trees, &tree->node);
	if (directory < 0)
		(void)path_directory(removals->root, path);
	start(removals);
}

bool removals_reap(struct removals *removals, pid_t pid, int status)
{
	struct tree *tree = tree_find(removals, pid);

	if (!tree)
		return false;
	end_turn(removals, tree,
		 WIFSIGNALED(status) ? WTERMSIG(status) == SIGALRM : WEXITSTATUS(status) == EXIT_AGAIN);
	start(removals);
	return true;
}

bool removals_has(struct removals *removals, pid_t pid)
{
	return tree_find(removals, pid) != NULL;
}
