/* Parent and child share the memory for the pixels, and nothing else of the child is read but how it ended. */
#include "pixels.h"

#include <sys/mman.h>

#if LAIR_PNG
#include <png.h>
#include <seccomp.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define CHILD_MEMORY (256UL << 20) /* beyond what we have */
#define CHILD_SECONDS 5

/* ---- the child ---- */

static bool memory_limit(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long pages = 0;
	bool known = file && fscanf(file, "%lu", &pages) == 1;
	rlim_t most = pages * (rlim_t)sysconf(_SC_PAGESIZE) + CHILD_MEMORY;

	if (file)
		(void)fclose(file);
	return known && setrlimit(RLIMIT_AS, &(struct rlimit){.rlim_cur = most, .rlim_max = most}) == 0;
}

static bool limits_set(void)
{
	struct rlimit seconds = {.rlim_cur = CHILD_SECONDS, .rlim_max = CHILD_SECONDS}, none = {.rlim_cur = 0};

	return memory_limit() && setrlimit(RLIMIT_CPU, &seconds) == 0 && setrlimit(RLIMIT_CORE, &none) == 0;
}

/* What malloc and the end take; the sanitizers' ends want sigaltstack. */
static bool calls_limit(void)
{
	static const int calls[] = {SCMP_SYS(brk),     SCMP_SYS(munmap),     SCMP_SYS(mremap),
				    SCMP_SYS(madvise), SCMP_SYS(exit_group), SCMP_SYS(sigaltstack)};
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
	bool done = filter != NULL;

	for (size_t i = 0; done && i < ARRAY_SIZE(calls); i++)
		done = seccomp_rule_add(filter, SCMP_ACT_ALLOW, calls[i], 0) == 0;
	/* No program, and no file. */
	done = done && seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 2,
					SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0),
					SCMP_A3(SCMP_CMP_MASKED_EQ, MAP_ANONYMOUS, MAP_ANONYMOUS)) == 0;
	done = done && seccomp_load(filter) == 0;
	/* The filter's own memory stays: it would be freed under it. */
	return done;
}

bool pixels_cage(void)
{
	return limits_set() && calls_limit();
}

/* On white, as on paper. */
static bool decode(const struct pixels *pixels, struct lair_text data)
{
	static const png_color white = {.red = 0xff, .green = 0xff, .blue = 0xff};
	png_image image = {.version = PNG_IMAGE_VERSION};

	if (!png_image_begin_read_from_memory(&image, data.data, data.size))
		return false;
	image.format = PNG_FORMAT_RGB;
	return image.width == pixels->width && image.height == pixels->height &&
	       png_image_finish_read(&image, &white, pixels->rgb, 0, NULL);
}

/* ---- the parent ---- */

bool pixels_can(void)
{
	return true;
}

static int child_wait(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) != pid)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EBADMSG;
}

int pixels_read(struct pixels *pixels, struct lair_text data, unsigned width, unsigned height)
{
	pid_t pid;

	*pixels = (struct pixels){.width = width, .height = height, .size = (size_t)width * height * 3};
	if ((uint64_t)width * height > PIXELS_MAX)
		return -EFBIG;
	pixels->rgb = mmap(NULL, pixels->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (pixels->rgb == MAP_FAILED) {
		pixels->rgb = NULL;
		return -ENOMEM;
	}
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		_exit(pixels_cage() && decode(pixels, data) ? 0 : 1);
	return child_wait(pid);
}
#else
bool pixels_cage(void)
{
	return false;
}

bool pixels_can(void)
{
	return false;
}

int pixels_read(struct pixels *pixels, struct lair_text data, unsigned width, unsigned height)
{
	(void)data;
	*pixels = (struct pixels){.width = width, .height = height};
	return -ENOTSUP;
}
#endif

void pixels_deinit(struct pixels *pixels)
{
	if (pixels->rgb)
		(void)munmap(pixels->rgb, pixels->size);
	pixels->rgb = NULL;
}

/* ---- scaling ---- */

/* The mean of the pixels that become one. */
static void mean(uint8_t out[static 3], const struct pixels *from, const unsigned x[2], const unsigned y[2])
{
	uint64_t sums[3] = {0}, n = MAX((uint64_t)(x[1] - x[0]) * (y[1] - y[0]), (uint64_t)1);

	for (unsigned row = y[0]; row < y[1]; row++)
		for (unsigned column = x[0]; column < x[1]; column++)
			for (size_t c = 0; c < 3; c++)
				sums[c] += from->rgb[((size_t)row * from->width + column) * 3 + c];
	for (size_t c = 0; c < 3; c++)
		out[c] = (uint8_t)((sums[c] + n / 2) / n);
}

/* In place: a pixel is never further on than those it is made of. */
void pixels_fit(struct pixels *pixels, unsigned width)
{
	uint64_t from_width = pixels->width, from_height = pixels->height;
	uint64_t height = MAX(from_height * width / from_width, (uint64_t)1);

	if (width == 0 || width >= pixels->width)
		return;
	for (uint64_t i = 0; i < height; i++)
		for (uint64_t j = 0; j < width; j++) {
			unsigned x[2] = {(unsigned)(j * from_width / width),
					 (unsigned)((j + 1) * from_width / width)};
			unsigned y[2] = {(unsigned)(i * from_height / height),
					 (unsigned)((i + 1) * from_height / height)};

			mean(pixels->rgb + (i * width + j) * 3, pixels, x, y);
		}
	pixels->width = width;
	pixels->height = (unsigned)height;
}
