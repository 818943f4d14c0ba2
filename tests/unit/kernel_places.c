/* The list of places: its order, which word wins about a path, and what a path lies in. */
#include "cage/places.h"
#include "check.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static char root[] = "/tmp/lair-places-XXXXXX";

static const char *below(const char *name)
{
	static char paths[4][128];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s%s", root, name);
	return path;
}

static void list(msgpack_sbuffer *buffer, struct bytes *raw, const char *const names[], size_t n)
{
	msgpack_sbuffer_init(buffer);
	wire_put_array(buffer, n);
	for (size_t i = 0; i < n; i++)
		wire_put_string(buffer, bytes_of(below(names[i])));
	*raw = wire_bytes(buffer);
}

static const struct place *find(const struct places *places, const char *path)
{
	return places_find(places, path, strlen(path));
}

static void test_within(void)
{
	CHECK(path_within("/a", "/a"));
	CHECK(path_within("/a/b", "/a"));
	CHECK(path_within("/a", "/"));
	CHECK(!path_within("/ab", "/a"));
	CHECK(!path_within("/", "/a"));
}

static void test_order(void)
{
	static const char *const paths[] = {"/a/b", "/a", "/a-b", "/a/b/c", "/", "/a/a"};
	struct places places = {0};

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		CHECK(places_add(&places, paths[i], PLACE_READ, NULL) == 0);
	CHECK(places.n == ARRAY_SIZE(paths));
	for (size_t i = 0; i < places.n; i++)
		for (size_t j = 0; j < i; j++)
			CHECK(!path_within(places.items[j].path, places.items[i].path));
	CHECK(strcmp(find(&places, "/a/b/x")->path, "/a/b") == 0);
	CHECK(strcmp(find(&places, "/a-b/x")->path, "/a-b") == 0);
	CHECK(strcmp(find(&places, "/b")->path, "/") == 0);
	CHECK(places_add(&places, "/a", PLACE_WRITE, NULL) == 0);
	CHECK(places_add(&places, "/a", PLACE_READ, NULL) == 0);
	CHECK(places.n == ARRAY_SIZE(paths) && find(&places, "/a")->kind == PLACE_WRITE);
	places_deinit(&places);
}

static void test_profile(void)
{
	static const char *const read[] = {"/data", "/name"}, *const write[] = {"/data/out"},
				 *const hide[] = {"/data/keys", "/elsewhere"};
	struct configure_message configure = {0};
	struct places places;
	msgpack_sbuffer buffers[3];
	char culprit[128];

	list(&buffers[0], &configure.read, read, ARRAY_SIZE(read));
	list(&buffers[1], &configure.write, write, ARRAY_SIZE(write));
	list(&buffers[2], &configure.hide, hide, ARRAY_SIZE(hide));
	CHECK(places_init(&places, &configure, NULL, culprit, sizeof(culprit)) == 0);
	CHECK(find(&places, below("/data/x"))->kind == PLACE_READ);
	CHECK(find(&places, below("/data/out/x"))->kind == PLACE_WRITE);
	CHECK(find(&places, below("/data/keys/x"))->kind == PLACE_HIDE);
	CHECK(find(&places, below("/name"))->kind == PLACE_LINK);
	CHECK(find(&places, below("/target/x"))->kind == PLACE_READ);
	CHECK(find(&places, "/usr/lib/x")->kind == PLACE_READ);
	CHECK(find(&places, "/dev/shm/x")->kind == PLACE_SHM);
	CHECK(find(&places, "/root/x") == NULL);
	places_deinit(&places);
	for (size_t i = 0; i < ARRAY_SIZE(buffers); i++)
		msgpack_sbuffer_destroy(&buffers[i]);
}

static void test_missing(void)
{
	static const char *const read[] = {"/data", "/missing"};
	struct configure_message configure = {0};
	struct places places;
	msgpack_sbuffer buffer;
	char culprit[128];

	list(&buffer, &configure.read, read, ARRAY_SIZE(read));
	CHECK(places_init(&places, &configure, NULL, culprit, sizeof(culprit)) == -ENOENT);
	CHECK(strcmp(culprit, below("/missing")) == 0);
	CHECK(places.n == 0);
	msgpack_sbuffer_destroy(&buffer);
}

int main(void)
{
	static const char *const made[] = {"/data", "/data/out", "/data/keys", "/elsewhere", "/target"};

	if (!mkdtemp(root))
		return EXIT_FAILURE;
	for (size_t i = 0; i < ARRAY_SIZE(made); i++)
		CHECK(mkdir(below(made[i]), 0700) == 0);
	CHECK(symlink("target", below("/name")) == 0);
	test_within();
	test_order();
	test_profile();
	test_missing();
	CHECK(unlink(below("/name")) == 0);
	for (size_t i = ARRAY_SIZE(made); i-- > 0;)
		CHECK(rmdir(below(made[i])) == 0);
	CHECK(rmdir(root) == 0);
	return check_report();
}
