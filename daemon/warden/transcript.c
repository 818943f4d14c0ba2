/* Transcripts. The file grows for ever and holds little: parts that are not needed any more are punched out of
 * it. */
#include "transcript.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* Punching holes costs more than what it gains for less. */
#define TRIM_SIZE (64U << 10)
#define PAGE 4096ULL
/* Of one call: a fraction of a millisecond. */
#define TRIM_MAX (1ULL << 20)

void transcript_init(struct transcript *transcript)
{
	*transcript = (struct transcript){.fd = -1};
}

void transcript_deinit(struct transcript *transcript)
{
	fd_close(transcript->fd);
	transcript_init(transcript);
}

int transcript_create(struct transcript *transcript)
{
	transcript->fd = memfd_create("lair-transcript", MFD_CLOEXEC);
	return transcript->fd < 0 ? -errno : 0;
}

int transcript_open(struct transcript *transcript, int fd, uint64_t begin)
{
	struct stat status;

	*transcript = (struct transcript){.fd = fd, .begin = begin, .kept = begin};
	if (fstat(fd, &status) < 0)
		return -errno;
	transcript->end = (uint64_t)status.st_size;
	return transcript->end < begin ? -EBADMSG : 0;
}

ssize_t transcript_read(const struct transcript *transcript, uint64_t at, char *buffer, size_t size)
{
	ssize_t n;

	do
		n = pread(transcript->fd, buffer, size, (off_t)at);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

ssize_t transcript_take(struct transcript *transcript, int pipe, char *buffer, size_t size)
{
	loff_t end = (loff_t)transcript->end;
	ssize_t n;

	do
		n = splice(pipe, NULL, transcript->fd, &end, size, SPLICE_F_NONBLOCK);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : 0;
	n = transcript_read(transcript, transcript->end, buffer, (size_t)n);
	transcript->end = (uint64_t)end;
	return n;
}

/* At its end. */
static void append(struct transcript *transcript, struct bytes text)
{
	ssize_t n;

	while (text.size > 0 && ((n = pwrite(transcript->fd, text.data, text.size, (off_t)transcript->end)) > 0 ||
				 (n < 0 && errno == EINTR))) {
		n = MAX(n, 0);
		transcript->end += (uint64_t)n;
		text = (struct bytes){.data = text.data + n, .size = text.size - (size_t)n};
	}
}

void transcript_replace(struct transcript *transcript, struct bytes text)
{
	transcript->begin = transcript->end;
	append(transcript, text);
}

void transcript_put(struct transcript *transcript, uint64_t at, struct bytes text)
{
	transcript->end = MAX(transcript->end, at);
	append(transcript, text);
}

void transcript_settle(struct transcript *transcript)
{
	transcript->kept = transcript->begin;
}

/* Returns up to where. */
static uint64_t punch(const struct transcript *transcript, uint64_t from, uint64_t to)
{
	to = MIN(to, from + TRIM_MAX);
	(void)fallocate(transcript->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from,
			(off_t)(to - from));
	return to;
}

bool transcript_trim(struct transcript *transcript, uint64_t limit)
{
	uint64_t old = transcript->kept & ~(PAGE - 1);
	uint64_t head = MAX((transcript->begin + limit - limit / 2 + PAGE - 1) & ~(PAGE - 1), transcript->hole);
	uint64_t tail = transcript->end > limit / 2 ? (transcript->end - limit / 2) & ~(PAGE - 1) : 0;

	if (old >= transcript->gone + TRIM_SIZE)
		transcript->gone = punch(transcript, transcript->gone, old);
	if (tail >= head + TRIM_SIZE)
		head = transcript->hole = punch(transcript, head, tail);
	return old >= transcript->gone + TRIM_SIZE || tail >= head + TRIM_SIZE;
}
