/* The survey of a tree: its sums, where it stops, and what it does not trip over. */
#include "check.h"
#include "files/survey.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

static char root[] = "/tmp/lair-survey-XXXXXX";

static const char *below(const char *name)
{
	static char paths[4][PATH_MAX];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", root, name);
	return path;
}

static void write_file(const char *name, size_t size)
{
	int fd = open(below(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
	char page[4096] = "x";

	for (; size >= sizeof(page); size -= sizeof(page))
		CHECK(write(fd, page, sizeof(page)) == sizeof(page));
	close(fd);
}

static struct survey survey_of(uint64_t size_max, uint64_t files_max, unsigned pieces)
{
	struct survey survey = SURVEY_NONE;

	survey_begin(&survey, root, size_max, files_max);
	while (!survey_step(&survey, pieces))
		;
	CHECK(!walk_busy(&survey.walk) && survey.walk.reach.root == -1);
	return survey;
}

static struct survey survey_all(void)
{
	return survey_of(UINT64_MAX, UINT64_MAX, 7);
}

static void test_sums(void)
{
	struct survey before = survey_all(), after;

	CHECK(before.files == 0 && before.size == 0);
	write_file("one", 8192);
	CHECK(mkdir(below("d"), 0700) == 0);
	write_file("d/two", 4096);
	CHECK(symlink("/usr", below("link")) == 0);
	CHECK(link(below("one"), below("d/same")) == 0);
	CHECK(mkfifo(below("fifo"), 0600) == 0);
	after = survey_all();
	CHECK(after.files == 6 && !after.blind);
	CHECK(after.size >= 8192 + 4096 && after.size < 8192 + 4096 + 16384); /* a hard link counts once */
}

static void test_sparse(void)
{
	uint64_t before = survey_all().size;

	write_file("sparse", 4096);
	CHECK(truncate(below("sparse"), 1LL << 40) == 0);
	CHECK(survey_all().size == before + 4096);
	unlink(below("sparse"));
}

static void test_stops(void)
{
	struct survey found;
	char name[32];

	for (int i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "d/%d", i);
		write_file(name, 0);
	}
	CHECK(survey_all().files == 3006);
	found = survey_of(UINT64_MAX, 100, 50);
	CHECK(found.files > 100 && found.files < 1000);
	found = survey_of(0, UINT64_MAX, 50);
	CHECK(found.size > 0 && found.files < 1000);
}

/* Done as an ordinary user, whom modes bind. */
static void test_closed_directories(void)
{
	struct survey found;
	struct stat status;

	CHECK(mkdir(below("closed"), 0700) == 0 && mkdir(below("closed/in"), 0700) == 0);
	write_file("closed/in/file", 4096);
	CHECK(chmod(below("closed/in"), 0300) == 0 && chmod(below("closed"), 0) == 0);
	found = survey_all();
	CHECK(found.files == 3009 && !found.blind);
	CHECK(stat(below("closed"), &status) == 0 && (status.st_mode & 07777) == 0);
	CHECK(chmod(below("closed"), 0700) == 0);
	CHECK(stat(below("closed/in"), &status) == 0 && (status.st_mode & 07777) == 0300);
}

/* Deeper than a path can say: that there is something is all that can be told. */
static void test_deep(void)
{
	int fd = open(root, O_RDONLY | O_DIRECTORY), next;
	struct survey found;
	char name[256];

	memset(name, 'n', 255);
	name[255] = '\0';
	for (int i = 0; i < 20; i++) {
		CHECK(mkdirat(fd, name, 0700) == 0);
		next = openat(fd, name, O_RDONLY | O_DIRECTORY);
		close(fd);
		fd = next;
	}
	close(fd);
	found = survey_all();
	CHECK(found.blind && found.files > 3009 + 10);
}

static void test_begun_anew(void)
{
	struct survey survey = SURVEY_NONE;

	survey_begin(&survey, root, UINT64_MAX, UINT64_MAX);
	CHECK(!survey_step(&survey, 1));
	CHECK(!survey_step(&survey, 1));
	survey_begin(&survey, "/nonexistent", UINT64_MAX, UINT64_MAX);
	CHECK(survey_step(&survey, 2) && !survey.blind && survey.files == 0);
}

int main(void)
{
	char remove[PATH_MAX];

	CHECK(mkdtemp(root) != NULL);
	if (geteuid() == 0)
		CHECK(chown(root, 61000, 61000) == 0 && setegid(61000) == 0 && seteuid(61000) == 0);
	test_sums();
	test_sparse();
	test_stops();
	test_closed_directories();
	test_deep();
	test_begun_anew();
	snprintf(remove, sizeof(remove), "rm -rf %s", root);
	CHECK(seteuid(getuid()) == 0 && system(remove) == 0);
	return check_report();
}
