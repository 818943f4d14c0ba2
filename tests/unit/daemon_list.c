/* Lists refuse to be fused, in every build; and what is buried needs no list. */
#include "base/graveyard.h"
#include "proto/list.h"

#include "check.h"

#include <signal.h>
#include <sys/wait.h>

struct thing {
	struct list node;
	struct grave grave;
	int number;
};

static struct list one, other;
static struct thing things[3];
static int freed[4], n_freed;
static struct graveyard yard;

static void append_twice(void)
{
	list_append(&one, &things[0].node);
	list_append(&other, &things[0].node);
}

static void append_unmade(void)
{
	static struct list unmade;

	list_append(&one, &unmade);
}

static void remove_next(void)
{
	struct thing *thing;

	list_append(&one, &things[0].node);
	list_append(&one, &things[1].node);
	list_for_each (thing, &one, node)
		list_remove(thing->node.next);
}

static bool aborts(void (*fn)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		(void)fclose(stderr);
		fn();
		_exit(0);
	}
	return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void thing_free(struct grave *grave)
{
	struct thing *thing = container_of(grave, struct thing, grave);

	list_remove(&thing->node);
	freed[n_freed++] = thing->number;
	/* The first takes the last with it. */
	if (thing->number == 1)
		CHECK(graveyard_bury(&yard, &things[2].grave));
}

static void graves(void)
{
	struct thing *thing;
	int n = 0;

	graveyard_init(&yard, thing_free);
	list_append(&one, &things[0].node);
	list_append(&one, &things[2].node);
	CHECK(graveyard_bury(&yard, &things[1].grave) && graveyard_bury(&yard, &things[0].grave));
	CHECK(!graveyard_bury(&yard, &things[1].grave));
	graveyard_for_each(thing, &yard, grave) n += thing->number;
	CHECK(n == 1);
	/* Buried, it may still be put into a list, which is whole when it is freed. */
	list_append(&other, &things[1].node);
	graveyard_empty(&yard);
	CHECK(n_freed == 3 && freed[0] == 1 && freed[1] == 0 && freed[2] == 2);
	CHECK(list_empty(&one) && list_empty(&other) && !yard.first);
}

int main(void)
{
	list_init(&one);
	list_init(&other);
	for (int i = 0; i < 3; i++) {
		list_init(&things[i].node);
		things[i].number = i;
	}
	CHECK(aborts(append_twice));
	CHECK(aborts(append_unmade));
	CHECK(aborts(remove_next));
	graves();
	return check_report();
}
