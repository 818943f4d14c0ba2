/* The lists are read without stdio, because what an image keeps must not change while it is listed. */
#include "memory.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/utsname.h>

struct lines {
	int fd;
	size_t from, to;
	char buffer[16384];
};

/* The next line, terminated, or NULL; the rest of one that is too long is left out. */
static char *line_next(struct lines *lines)
{
	for (;;) {
		char *line = lines->buffer + lines->from, *end = memchr(line, '\n', lines->to - lines->from);
		ssize_t n;

		if (end) {
			*end = '\0';
			lines->from = (size_t)(end - lines->buffer) + 1;
			return line;
		}
		memmove(lines->buffer, line, lines->to - lines->from);
		lines->to -= lines->from;
		lines->from = 0;
		if (lines->to == sizeof(lines->buffer))
			return NULL;
		n = read(lines->fd, lines->buffer + lines->to, sizeof(lines->buffer) - lines->to);
		if (n <= 0)
			return NULL;
		lines->to += (size_t)n;
	}
}

static bool area_read(struct memory_area *area, const char *line)
{
	char mode[5];
	int path = 0;

	*area = (struct memory_area){.start = 0};
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n", &area->start, &area->end,
		   mode, &area->offset, &area->major, &area->minor, &area->inode, &path) < 7)
		return false;
	area->protection = (uint8_t)((mode[0] == 'r' ? PROT_READ : 0) | (mode[1] == 'w' ? PROT_WRITE : 0) |
				     (mode[2] == 'x' ? PROT_EXEC : 0));
	area->shared = mode[3] == 's';
	snprintf(area->path, sizeof(area->path), "%s", line + path);
	return true;
}

static void flags_read(struct memory_area *area, const char *flags)
{
	area->flags = (uint8_t)((strstr(flags, " hg") ? IMAGE_HUGE : 0) | (strstr(flags, " wf") ? IMAGE_WIPE : 0));
	area->droppable = strstr(flags, " dp");
}

/* What lies above is the kernel's own, and the same everywhere. */
static bool is_ours(const struct memory_area *area)
{
	return area->end <= IMAGE_END && (area->end <= IMAGE_ZONE || area->start >= IMAGE_ZONE_END);
}

/* What smaps says of a mapping ends with its flags. */
static bool area_next(struct memory_area *area, struct lines *lines, bool advised)
{
	bool found = false;
	const char *line;

	while ((line = line_next(lines))) {
		if (line[0] < 'A' || line[0] > 'Z')
			found = area_read(area, line);
		else if (strncmp(line, "VmFlags:", 8) == 0)
			flags_read(area, line + 8);
		else
			continue;
		if (found && is_ours(area) && (!advised || line[0] == 'V'))
			return true;
	}
	return false;
}

const char *memory_walk(bool advised, const char *(*each)(const struct memory_area *area, void *data), void *data)
{
	struct lines lines = {.fd = open(advised ? "/proc/self/smaps" : "/proc/self/maps", O_RDONLY | O_CLOEXEC)};
	static struct memory_area area;
	const char *why = NULL;

	if (lines.fd < 0)
		return "the kernel does not list its memory";
	while (!why && area_next(&area, &lines, advised))
		why = each(&area, data);
	(void)close(lines.fd);
	return why;
}

struct specials {
	struct image_special *specials;
	size_t n;
};

static const char *special_note(const struct memory_area *area, void *data)
{
	struct specials *found = data;

	if (strncmp(area->path, "[v", 2) != 0)
		return NULL;
	if (found->n == IMAGE_SPECIALS)
		return "the kernel lends it more than is known";
	found->specials[found->n++] = (struct image_special){area->start, area->end - area->start};
	return NULL;
}

const char *memory_specials(struct image_special specials[static IMAGE_SPECIALS])
{
	struct specials found = {.specials = specials};
	const char *why;

	memset(specials, 0, IMAGE_SPECIALS * sizeof(*specials));
	why = memory_walk(false, special_note, &found);
	return why || found.n ? why : "the kernel lends it no code";
}

void memory_kernel(uint8_t out[static SHA256_SIZE], const struct image_special specials[static IMAGE_SPECIALS])
{
	struct utsname name = {0};
	struct sha256 digest;
	size_t n = 0;

	sha256_begin(&digest);
	if (uname(&name) == 0) {
		sha256_add(&digest, bytes_of(name.release));
		sha256_add(&digest, bytes_of(name.version));
	}
	for (; n < IMAGE_SPECIALS && specials[n].size; n++)
		sha256_add(&digest, (struct bytes){(const char *)&specials[n].size, sizeof(specials[n].size)});
	if (n)
		sha256_add(&digest,
			   (struct bytes){(const char *)(uintptr_t)specials[n - 1].start, specials[n - 1].size});
	sha256_end(&digest, out);
}
