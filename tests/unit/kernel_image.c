/* A process with threads writes its image and ends; another one becomes it, and its threads go on. Then all that
 * must not wake: an image of somebody else, another program, changed files, damage anywhere, and what only looks
 * like one. */
#include "image/image.h"

#include "check.h"
#include "threads/threads.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define NAME "image"
#define AWAKE 42
#define REFUSED 43

static char directory[] = "/tmp/lair-image-XXXXXX", source[64];
static const uint8_t subject[SHA256_SIZE] = "what was loaded";

/* ---- the process that is kept ---- */

static __thread unsigned long own;
static unsigned long steps[3];
static int handled;

static void *work(void *argument)
{
	unsigned long *mine = argument;
	double half = 0.5;

	for (own = 1;; own++) {
		struct timespec pause = {.tv_nsec = 1000000};

		__asm__ volatile("" : "+x"(half));
		if (half != 0.5 || own != *mine + 1)
			_exit(7);
		*mine = own;
		if (mine != &steps[0])
			nanosleep(&pause, NULL);
	}
	return NULL;
}

static void on_signal(int number)
{
	handled++;
}

static bool all_go_on(const unsigned long before[static 3])
{
	struct timespec pause = {.tv_nsec = 10000000};
	bool moved = false;

	for (int i = 0; i < 1000 && !moved; i++) {
		moved = true;
		for (size_t j = 0; j < ARRAY_SIZE(steps); j++)
			moved = moved && *(volatile unsigned long *)&steps[j] > before[j] + 2;
		nanosleep(&pause, NULL);
	}
	return moved;
}

/* In the process that woke. */
static int go_on(const char *grown, const char *zero)
{
	unsigned long before[3];
	char *more = malloc(100000);
	pthread_t thread;
	static unsigned long fresh;

	memcpy(before, steps, sizeof(steps));
	if (!more || strcmp(grown + 5000000, "far in the heap") != 0 || zero[4096] || threads_revive())
		return 1;
	(void)raise(SIGUSR1);
	memset(more, 1, 100000);
	if (!all_go_on(before) || handled != 1 || pthread_create(&thread, NULL, work, &fresh))
		return 2;
	while (*(volatile unsigned long *)&fresh < 3)
		;
	return AWAKE;
}

static int writer(int at)
{
	char *const sources[] = {source, NULL};
	struct image_identity identity;
	pthread_t thread;
	char *grown = malloc(10000000), *zero = mmap(NULL, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const char *why;
	bool woken;

	signal(SIGUSR1, on_signal);
	threads_learn();
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
		if (pthread_create(&thread, NULL, work, &steps[i]))
			return 1;
	while (!*(volatile unsigned long *)&steps[2])
		;
	strcpy(grown + 5000000, "far in the heap");
	image_identify(&identity, subject);
	why = threads_hold();
	if (!why)
		why = image_write(at, NAME, &identity, sources, &woken);
	if (!why && woken)
		_exit(go_on(grown, zero));
	if (why)
		fprintf(stderr, "not written: %s\n", why);
	threads_release();
	return why ? 1 : 0;
}

static int waker(int at, const char *expected)
{
	struct image_identity identity;
	uint8_t other[SHA256_SIZE] = "something else";
	const char *why;

	image_identify(&identity, strcmp(expected, "other settings") == 0 ? other : subject);
	why = image_wake(at, NAME, NAME ".tried", &identity);
	if (!strstr(why, expected))
		fprintf(stderr, "%s, not %s\n", why, expected);
	return strstr(why, expected) ? REFUSED : 1;
}

/* ---- the test ---- */

static int run(const char *what, const char *expected)
{
	const char *const argv[] = {"unit-kernel_image", what, directory, expected, NULL};
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		execv("/proc/self/exe", (char *const *)argv);
		_exit(127);
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void path_of(char path[static 128], const char *name)
{
	snprintf(path, 128, "%s/%s", directory, name);
}

/* As if it had not been tried. */
static void put_back(void)
{
	char path[128], aside[128];

	path_of(path, NAME);
	path_of(aside, NAME ".tried");
	CHECK(rename(aside, path) == 0);
}

static void flip(off_t at)
{
	char path[128], byte;
	int file;

	path_of(path, NAME);
	file = open(path, O_RDWR);
	CHECK(pread(file, &byte, 1, at) == 1);
	byte ^= 1;
	CHECK(pwrite(file, &byte, 1, at) == 1);
	close(file);
}

static void test_damage(void)
{
	struct stat status;
	char path[128];

	path_of(path, NAME);
	CHECK(stat(path, &status) == 0);
	for (off_t at = offsetof(struct image_header, digest); at < status.st_size; at += 1 + status.st_size / 20) {
		if (at > (off_t)offsetof(struct image_header, identity) && at < (off_t)sizeof(struct image_header))
			continue;
		flip(at);
		CHECK(run("wake", "") == REFUSED);
		flip(at);
	}
	flip(status.st_size - 1);
	CHECK(run("wake", "damaged") == REFUSED);
	flip(status.st_size - 1);
	CHECK(truncate(path, status.st_size - 4096) == 0);
	CHECK(run("wake", "no image") == REFUSED);
	CHECK(truncate(path, status.st_size) == 0);
	CHECK(run("wake", "damaged") == REFUSED);
}

static void test_refused(void)
{
	char path[128], other[128];

	path_of(path, NAME);
	path_of(other, "other");
	CHECK(run("wake", "other settings") == REFUSED);
	CHECK(chmod(path, 0640) == 0 && run("wake", "somebody else") == REFUSED && chmod(path, 0600) == 0);
	CHECK(link(path, other) == 0 && run("wake", "somebody else") == REFUSED && unlink(other) == 0);
	CHECK(rename(path, other) == 0 && symlink("other", path) == 0 && run("wake", "there is none") == REFUSED &&
	      rename(other, path) == 0);
	CHECK(chmod(directory, 0750) == 0 && run("wake", "somebody else") == REFUSED &&
	      chmod(directory, 0700) == 0);
	if (geteuid() == 0)
		CHECK(chown(path, 1, 1) == 0 && run("wake", "somebody else") == REFUSED && chown(path, 0, 0) == 0);
	flip(offsetof(struct image_header, identity.build));
	CHECK(run("wake", "another build") == REFUSED);
	flip(offsetof(struct image_header, identity.build));
	flip(offsetof(struct image_header, identity.machine));
	CHECK(run("wake", "another processor") == REFUSED);
	flip(offsetof(struct image_header, identity.machine));
	flip(offsetof(struct image_header, identity.kernel));
	CHECK(run("wake", "another kernel") == REFUSED);
	flip(offsetof(struct image_header, identity.kernel));
	CHECK(chmod(source, 0640) == 0 && run("wake", "have changed") == REFUSED);
}

static void test_wake(void)
{
	CHECK(run("write", "") == 0);
	for (int i = 0; i < 3; i++) {
		CHECK(run("wake", "") == AWAKE);
		CHECK(run("wake", "there is none") == REFUSED); /* it was put aside */
		put_back();
	}
	/* An image can be written where there is one. */
	CHECK(run("write", "") == 0);
	CHECK(run("wake", "") == AWAKE);
	put_back();
}

/* ---- what only looks like an image ---- */

static struct {
	struct image_header header;
	struct image_area areas[2];
	struct image_run runs[2];
	struct image_source sources[1];
	char text[64];
	char rest[4096];
} made __attribute__((aligned(16)));

static void make(void)
{
	memset(&made, 0, sizeof(made));
	memcpy(made.header.magic, IMAGE_MAGIC, sizeof(made.header.magic));
	made.header.header_size = sizeof(made.header);
	made.header.page = IMAGE_PAGE;
	made.header.n_areas = made.header.n_runs = 2;
	made.header.n_sources = 1;
	made.header.text_size = sizeof(made.text);
	made.areas[0] = (struct image_area){
		.start = 0x100000, .end = 0x110000, .kind = IMAGE_MEMORY, .protection = PROT_READ | PROT_WRITE};
	made.areas[1] = (struct image_area){
		.start = 0x200000, .end = 0x210000, .kind = IMAGE_COPY, .protection = PROT_READ | PROT_EXEC};
	made.runs[0] = (struct image_run){0x101000, 0x1000};
	made.runs[1] = (struct image_run){0x200000, 0x10000};
	strcpy(made.text, "/a/source");
	made.header.process.registers.rsp = 0x108000;
	made.header.process.registers.rip = 0x208000;
	made.header.size = image_tables_size(&made.header) + 0x11000;
}

static const char *parse(void)
{
	struct image image;

	return image_parse(&image, &made, image_tables_size(&made.header));
}

#define HOSTILE(change)                                                                                            \
	do {                                                                                                       \
		make();                                                                                            \
		made.change;                                                                                       \
		CHECK(parse() != NULL);                                                                            \
	} while (0)

static void test_hostile(void)
{
	make();
	CHECK(parse() == NULL);
	HOSTILE(header.magic[0]++);
	HOSTILE(header.page = 8192);
	HOSTILE(header.header_size++);
	HOSTILE(header.size++);
	HOSTILE(header.size = 0);
	HOSTILE(header.n_areas = UINT32_MAX);
	HOSTILE(header.n_runs = IMAGE_RUNS_MAX + 1);
	HOSTILE(header.text_size = UINT32_MAX);
	HOSTILE(areas[0].start = 0x100001);
	HOSTILE(areas[0].start = 0);
	HOSTILE(areas[0].end = 0x201000);
	HOSTILE(areas[0].end = 0x100000);
	HOSTILE(areas[1].end = UINT64_MAX - 0xfff);
	HOSTILE(areas[1].end = IMAGE_ZONE + 0x1000);
	HOSTILE(areas[1].kind = _IMAGE_KIND_N);
	HOSTILE(areas[1].protection = 8);
	HOSTILE(areas[1].flags = IMAGE_HUGE);
	HOSTILE(areas[0].flags = 128);
	HOSTILE(areas[1].kind = IMAGE_FILE);
	HOSTILE(areas[0].kind = IMAGE_PROGRAM);
	HOSTILE(runs[0].start = 0x10f000; made.runs[0].size = 0x2000);
	HOSTILE(runs[0].start = 0x201000);
	HOSTILE(runs[1].size = 0);
	HOSTILE(runs[1].size = UINT64_MAX - 0xfff);
	HOSTILE(runs[1].size = 0x11000);
	HOSTILE(runs[0].start = 0x1ff000);
	HOSTILE(sources[0].name = 64);
	HOSTILE(sources[0].name = 1);
	HOSTILE(text[63] = 'x');
	HOSTILE(header.process.registers.rip = 0x108000);
	HOSTILE(header.process.registers.rsp = 0x208000);
	HOSTILE(header.process.registers.rip = UINT64_MAX);
	HOSTILE(header.process.specials[0] = ((struct image_special){0x100000, 0x1000}));
	HOSTILE(header.process.specials[0] = ((struct image_special){0x300000, UINT64_MAX - 0xfff}));
	HOSTILE(header.process.specials[0] = ((struct image_special){IMAGE_ZONE, 0x1000}));
	make();
	memset(made.header.process.name, 'x', sizeof(made.header.process.name));
	CHECK(parse() != NULL);
	make();
	made.areas[1].kind = IMAGE_SHARED;
	made.areas[1].protection = PROT_READ | PROT_WRITE;
	CHECK(parse() != NULL);
}

static void remove_all(void)
{
	DIR *list = opendir(directory);
	struct dirent *entry;

	while ((entry = readdir(list)))
		(void)unlinkat(dirfd(list), entry->d_name, 0);
	(void)closedir(list);
	CHECK(rmdir(directory) == 0);
}

int main(int argc, char *argv[])
{
	int at = argc > 2 ? open(argv[2], O_RDONLY | O_DIRECTORY) : -1;

	if (at >= 0) {
		snprintf(source, sizeof(source), "%.40s/source", argv[2]);
		return strcmp(argv[1], "write") == 0 ? writer(at) : waker(at, argv[3]);
	}
	test_hostile();
	if (image_impossible()) {
		printf("no images here: %s\n", image_impossible());
		return check_report();
	}
	CHECK(mkdtemp(directory) != NULL);
	snprintf(source, sizeof(source), "%.40s/source", directory);
	close(open(source, O_CREAT | O_WRONLY, 0600));
	test_wake();
	test_damage();
	CHECK(run("write", "") == 0);
	test_refused();
	remove_all();
	return check_report();
}
