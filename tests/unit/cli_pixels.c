/* A PNG becomes pixels, or does not; and whoever decodes it can do nothing else. */
#include "check.h"

#include "pixels.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* Two pixels, red and half transparent black. */
static const unsigned char whole[] = {
	0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52, 0x00, 0x00,
	0x00, 0x02, 0x00, 0x00, 0x00, 0x01, 0x08, 0x06, 0x00, 0x00, 0x00, 0xf4, 0x22, 0x7f, 0x8a, 0x00, 0x00, 0x00,
	0x0f, 0x49, 0x44, 0x41, 0x54, 0x78, 0xda, 0x63, 0xf8, 0xcf, 0xc0, 0x00, 0x44, 0x0c, 0x0d, 0x00, 0x0d, 0x7c,
	0x02, 0x7f, 0xb1, 0xc6, 0xd7, 0x71, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
};

static void check_read(void)
{
	struct lair_text data = {.data = (const char *)whole, .size = sizeof(whole)};
	struct pixels pixels;

	CHECK(pixels_read(&pixels, data, 2, 1) == 0);
	CHECK(pixels.rgb[0] == 0xff && pixels.rgb[1] == 0 && pixels.rgb[2] == 0);
	CHECK(pixels.rgb[3] > 0x70 && pixels.rgb[3] < 0xd0 && pixels.rgb[4] == pixels.rgb[3]);
	pixels_deinit(&pixels);
	CHECK(pixels_read(&pixels, data, 1, 2) == -EBADMSG);
	pixels_deinit(&pixels);
	CHECK(pixels_read(&pixels, data, 20000, 20000) == -EFBIG);
	pixels_deinit(&pixels);
	for (size_t size = 0; size + 12 < data.size; size++) {
		CHECK(pixels_read(&pixels, (struct lair_text){.data = data.data, .size = size}, 2, 1) == -EBADMSG);
		pixels_deinit(&pixels);
	}
}

static void act_open(void)
{
	(void)open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void act_write(void)
{
	(void)!write(STDOUT_FILENO, "", 1);
}

static void act_read(void)
{
	char byte;

	(void)!read(STDIN_FILENO, &byte, 0);
}

static void act_socket(void)
{
	(void)socket(AF_UNIX, SOCK_STREAM, 0);
}

static void act_fork(void)
{
	(void)fork();
}

static void act_signal(void)
{
	(void)kill(getppid(), 0);
}

static void act_program(void)
{
	(void)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void act_mapping(void)
{
	(void)mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, STDIN_FILENO, 0);
}

static void act_memory(void)
{
	for (size_t size = 1; size < 4 << 20; size *= 2)
		free(malloc(size));
	_exit(42);
}

/* How a process ends that does so in the cage. */
static int end_of(void (*act)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (pixels_cage())
			act();
		_exit(1);
	}
	return waitpid(pid, &status, 0) == pid ? status : -1;
}

static void check_cage(void)
{
	static void (*const acts[])(void) = {act_open, act_write,  act_read,	act_socket,
					     act_fork, act_signal, act_program, act_mapping};
	int status;

	for (size_t i = 0; i < ARRAY_SIZE(acts); i++) {
		status = end_of(acts[i]);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
	}
	status = end_of(act_memory);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
}

int main(void)
{
	if (pixels_can()) {
		check_read();
		check_cage();
	}
	return check_report();
}
