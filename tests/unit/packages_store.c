/* The store of packages: what is found under a key, what is in use, and what is removed. */
#include "packages/store.h"

#include "check.h"
#include "vault/errand.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SET "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define KEY "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

/* ---- in the place of the keeper ---- */

static char removed[PATH_MAX];

void errand_remove_tree(const char *path)
{
	snprintf(removed, sizeof(removed), "%s", path);
}

int errand_start_builder(int theirs)
{
	(void)theirs;
	return 0;
}

/* ---- a set ---- */

static char root[] = "/tmp/lair-store-XXXXXX";

static void file_make(const struct package_store *store, const char *path, const char *text)
{
	int fd = openat(store->fd, path, O_WRONLY | O_CREAT | O_TRUNC, 0444);

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	fd_close(fd);
}

static void set_make(const struct package_store *store)
{
	CHECK(mkdirat(store->fd, "sets/" SET, 0755) == 0);
	file_make(store, "sets/" SET "/lock", "polars==2.1.0 \\\n    --hash=sha256:ab\nnumpy==2.0\n# x==1\n");
	file_make(store, "sets/" SET "/size", "4096\n");
}

struct seen {
	unsigned n;
	bool used, whole;
};

static bool see(void *userdata, const struct package_record *record)
{
	struct seen *seen = userdata;
	struct bytes project;
	size_t cursor = 0;

	seen->n++;
	seen->used = record->used;
	seen->whole = strcmp(record->set, SET) == 0 && record->size == 4096 && record->made > 0 &&
		      wire_next_string(record->projects, &cursor, &project) && bytes_is(project, "polars==2.1.0") &&
		      wire_next_string(record->projects, &cursor, &project) && bytes_is(project, "numpy==2.0") &&
		      !wire_next_string(record->projects, &cursor, &project);
	return true;
}

static struct seen look(const struct package_store *store)
{
	struct seen seen = {.n = 0};

	package_store_each(store, see, &seen);
	return seen;
}

/* ---- */

static void check_names(const struct package_store *store)
{
	static const char *const no_names[] = {"", ".", "..", "../" SET, SET "/..", SET "0", "sets/" SET};
	char set[SHA256_HEX_SIZE];

	CHECK(package_store_has(store, BYTES(SET)) && !package_store_has(store, BYTES(KEY)));
	for (size_t i = 0; i < ARRAY_SIZE(no_names); i++)
		CHECK(!package_store_has(store, bytes_of(no_names[i])));
	CHECK(!package_store_find(set, store, KEY));
	CHECK(package_store_note(store, KEY, SET) == 0);
	CHECK(package_store_find(set, store, KEY) && strcmp(set, SET) == 0);
	file_make(store, "asked/" SET, "../../../etc");
	CHECK(!package_store_find(set, store, SET));
}

/* As a session has it: mapped, without a descriptor. */
static void check_use(const struct package_store *store)
{
	int fd = openat(store->fd, "sets/" SET "/lock", O_RDONLY | O_CLOEXEC);
	void *mapped = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE, fd, 0);

	fd_close(fd);
	CHECK(mapped != MAP_FAILED);
	CHECK(look(store).n == 1 && look(store).used && look(store).whole);
	CHECK(package_store_remove(store, SET) == -EBUSY && package_store_has(store, BYTES(SET)));
	CHECK(munmap(mapped, 4096) == 0);
	CHECK(look(store).n == 1 && !look(store).used && look(store).whole);
}

static void check_removal(const struct package_store *store)
{
	char set[SHA256_HEX_SIZE], path[PATH_MAX + 80];

	CHECK(package_store_remove(store, SET) == 0);
	snprintf(path, sizeof(path), "%s/work/%s", store->path, SET);
	CHECK(strcmp(removed, path) == 0);
	CHECK(!package_store_has(store, BYTES(SET)) && look(store).n == 0);
	CHECK(package_store_remove(store, SET) == -ENOENT);
	CHECK(!package_store_find(set, store, KEY));
	package_store_forget(store);
	CHECK(faccessat(store->fd, "asked/" KEY, F_OK, 0) < 0);
}

int main(void)
{
	struct package_store store;
	char command[PATH_MAX + 32];

	CHECK(mkdtemp(root) != NULL);
	CHECK(package_store_open(&store, root, "/tmp/no-socket") == 0);
	set_make(&store);
	check_names(&store);
	check_use(&store);
	check_removal(&store);
	package_store_close(&store);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	CHECK(system(command) == 0);
	return check_report();
}
