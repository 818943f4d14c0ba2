/* The list of places: its order, which word wins about a path, and what a path lies in. */
#include "cage/places.h"
#include "check.h"

#include "proto/pin.h"

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

struct listed {
	const char *kind, *name;
};

/* As laird tells of them, which has found them by their names. */
static void list(msgpack_sbuffer *buffer, const struct listed *listed, size_t n)
{
	msgpack_sbuffer_init(buffer);
	wire_put_array(buffer, n);
	for (size_t i = 0; i < n; i++) {
		const char *path = below(listed[i].name);
		struct place_record record = {.kind = bytes_of(listed[i].kind), .path = bytes_of(path)};
		struct pin pin;

		CHECK(pin_take(&pin, path, true) == 0 || !pin.path);
		record.real = bytes_of(pin.path ? pin.path : "");
		record.device = pin.device;
		record.inode = pin.inode;
		CHECK(wire_encode_body(buffer, &place_record_schema, &record) == 0);
		pin_drop(&pin);
	}
}

static int init(struct places *places, const msgpack_sbuffer *buffer, char culprit[128])
{
	const struct configure_message configure = {.places = wire_bytes(buffer)};

	return places_init(places, &configure, NULL, culprit, 128);
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
	static const struct listed listed[] = {{"read", "/data"},      {"read", "/name"},
					       {"write", "/data/out"}, {"hide", "/data/keys"},
					       {"hide", "/elsewhere"}, {"own", "/data/out/.."}};
	struct places places;
	msgpack_sbuffer buffer;
	char culprit[128];

	list(&buffer, listed, ARRAY_SIZE(listed) - 1);
	CHECK(init(&places, &buffer, culprit) == 0);
	CHECK(find(&places, below("/data/x"))->kind == PLACE_READ);
	CHECK(find(&places, below("/data/out/x"))->kind == PLACE_WRITE);
	CHECK(find(&places, below("/data/keys/x"))->kind == PLACE_HIDE);
	CHECK(find(&places, below("/name"))->kind == PLACE_LINK);
	CHECK(find(&places, below("/target/x"))->kind == PLACE_READ);
	CHECK(find(&places, "/usr/lib/x")->kind == PLACE_READ);
	CHECK(find(&places, "/dev/shm/x")->kind == PLACE_SHM);
	CHECK(find(&places, "/root/x") == NULL);
	CHECK(find(&places, below("/data/x"))->pinned && !find(&places, "/usr/lib/x")->pinned);
	places_deinit(&places);
	msgpack_sbuffer_destroy(&buffer);
	/* What holds laird's own files cannot be shown for what else is in it. */
	list(&buffer, listed, ARRAY_SIZE(listed));
	CHECK(init(&places, &buffer, culprit) == PLACE_E_OWN);
	msgpack_sbuffer_destroy(&buffer);
}

/* Laird's own files are hidden where they would be shown, and nothing is said of them elsewhere. */
static void test_own(void)
{
	static const struct listed listed[] = {
		{"own", "/data/keys"}, {"own", "/elsewhere"}, {"read", "/data"}, {"write", "/data/keys/deep"}};
	struct places places;
	msgpack_sbuffer buffer;
	char culprit[128];

	list(&buffer, listed, ARRAY_SIZE(listed));
	CHECK(init(&places, &buffer, culprit) == 0);
	CHECK(find(&places, below("/data/keys/x"))->kind == PLACE_HIDE);
	CHECK(find(&places, below("/data/keys/deep/x"))->kind == PLACE_WRITE);
	CHECK(find(&places, below("/elsewhere"))->kind == PLACE_SCRATCH);
	places_deinit(&places);
	msgpack_sbuffer_destroy(&buffer);
}

/* Whatever is at the path by now: another directory, none, a link to the very one. */
static void test_changed(void)
{
	static const struct listed listed[] = {{"read", "/data/out"}};
	struct places places;
	struct place place;
	msgpack_sbuffer buffer;
	char culprit[128], text[256];
	int fd;

	list(&buffer, listed, 1);
	CHECK(init(&places, &buffer, culprit) == 0);
	place = *find(&places, below("/data/out"));
	CHECK(place_open(&fd, &place) == 0 && fd_close(fd) == -1);
	CHECK(rename(below("/data/out"), below("/data/away")) == 0);
	CHECK(place_open(&fd, &place) == -ENOENT);
	CHECK(mkdir(below("/data/out"), 0700) == 0);
	CHECK(place_open(&fd, &place) == PLACE_E_CHANGED);
	CHECK(rmdir(below("/data/out")) == 0 && symlink("away", below("/data/out")) == 0);
	CHECK(place_open(&fd, &place) == PLACE_E_CHANGED);
	places_deinit(&places);
	CHECK(init(&places, &buffer, culprit) == PLACE_E_CHANGED && places.n == 0);
	CHECK(strcmp(culprit, below("/data/out")) == 0);
	places_explain(text, sizeof(text), PLACE_E_CHANGED, culprit);
	CHECK(strstr(text, "was replaced after the settings were read"));
	CHECK(unlink(below("/data/out")) == 0 && rename(below("/data/away"), below("/data/out")) == 0);
	CHECK(init(&places, &buffer, culprit) == 0);
	places_deinit(&places);
	msgpack_sbuffer_destroy(&buffer);
}

static void test_missing(void)
{
	static const struct listed listed[] = {{"read", "/data"}, {"read", "/missing"}};
	struct places places;
	msgpack_sbuffer buffer;
	char culprit[128];

	list(&buffer, listed, ARRAY_SIZE(listed));
	CHECK(init(&places, &buffer, culprit) == -ENOENT);
	CHECK(strcmp(culprit, below("/missing")) == 0);
	CHECK(places.n == 0);
	msgpack_sbuffer_destroy(&buffer);
}

int main(void)
{
	static const char *const made[] = {"/data",	      "/data/out",  "/data/keys",
					   "/data/keys/deep", "/elsewhere", "/target"};

	if (!mkdtemp(root))
		return EXIT_FAILURE;
	for (size_t i = 0; i < ARRAY_SIZE(made); i++)
		CHECK(mkdir(below(made[i]), 0700) == 0);
	CHECK(symlink("target", below("/name")) == 0);
	test_within();
	test_order();
	test_profile();
	test_own();
	test_changed();
	test_missing();
	CHECK(unlink(below("/name")) == 0);
	for (size_t i = ARRAY_SIZE(made); i-- > 0;)
		CHECK(rmdir(below(made[i])) == 0);
	CHECK(rmdir(root) == 0);
	return check_report();
}
