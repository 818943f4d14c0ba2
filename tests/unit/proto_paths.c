/* Where the socket is, and whom its directory is trusted from. */
#include "proto/paths.h"

#include "check.h"

#include <sys/stat.h>

static char scratch[] = "/tmp/lair-paths-XXXXXX";

static const char *below(const char *name)
{
	static char path[PATH_SIZE];

	snprintf(path, sizeof(path), "%s/%s", scratch, name);
	return path;
}

static bool default_is(const char *expected)
{
	char path[PATH_SIZE];

	return path_default_socket(path) == 0 && strcmp(path, expected) == 0;
}

static void test_default(void)
{
	char path[PATH_SIZE], expected[PATH_SIZE];

	setenv("LAIR_SOCKET", "/named", 1);
	setenv("XDG_RUNTIME_DIR", "/runtime", 1);
	CHECK(default_is("/named"));
	memset(path, 'x', 108);
	path[108] = '\0';
	setenv("LAIR_SOCKET", path, 1);
	CHECK(path_default_socket(path) == -ENAMETOOLONG);
	setenv("LAIR_SOCKET", "", 1);
	CHECK(default_is(geteuid() == 0 ? "/run/lair/socket" : "/runtime/lair/socket"));
	if (geteuid() == 0 && seteuid(1234) < 0)
		abort();
	CHECK(default_is("/runtime/lair/socket"));
	unsetenv("XDG_RUNTIME_DIR");
	snprintf(expected, sizeof(expected), "/tmp/lair-%u/socket", (unsigned)geteuid());
	CHECK(default_is(expected));
	if (getuid() == 0 && seteuid(0) < 0)
		abort();
}

static void test_directory_of(void)
{
	char directory[PATH_SIZE];

	CHECK(path_directory(directory, "/a/b/c") == 0 && !strcmp(directory, "/a/b"));
	CHECK(path_directory(directory, "/a") == 0 && !strcmp(directory, "/"));
	CHECK(path_directory(directory, "a") == 0 && !strcmp(directory, "."));
}

static void test_make(void)
{
	struct stat st;

	CHECK(path_make_socket_dir(below("new/socket")) == 0);
	CHECK(stat(below("new"), &st) == 0 && (st.st_mode & 07777) == 0700);
	CHECK(path_make_socket_dir(below("new/socket")) == 0);
	CHECK(path_make_socket_dir(below("none/none/socket")) == -ENOENT);

	CHECK(chmod(below("new"), 0770) == 0 && path_make_socket_dir(below("new/socket")) == -EPERM);
	CHECK(chmod(below("new"), 01777) == 0 && path_make_socket_dir(below("new/socket")) == -EPERM);
	CHECK(chmod(below("new"), 0755) == 0 && path_make_socket_dir(below("new/socket")) == 0);

	CHECK(symlink("new", below("link")) == 0 && path_make_socket_dir(below("link/socket")) == -EPERM);
	CHECK(path_make_socket_dir("/proc/1/socket") == (geteuid() == 0 ? 0 : -EPERM));
	if (geteuid() == 0) {
		CHECK(chown(below("new"), 1234, 0) == 0 && path_make_socket_dir(below("new/socket")) == -EPERM);
	}
	unlink(below("link"));
	rmdir(below("new"));
}

static void test_sibling(void)
{
	char path[PATH_SIZE], self[PATH_SIZE] = "";

	CHECK(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	CHECK(path_sibling(path, "unit-proto_paths") == 0);
	CHECK(!strcmp(path, self));
}

int main(void)
{
	if (!mkdtemp(scratch))
		return EXIT_FAILURE;
	test_default();
	test_directory_of();
	test_make();
	test_sibling();
	rmdir(scratch);
	return check_report();
}
