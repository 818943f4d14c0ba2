/* What a transcript gives back, and when: never what the next router may still read. */
#include "check.h"

#include "warden/transcript.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB (1UL << 20)

static char block[MIB];

static void add(struct transcript *transcript, size_t size)
{
	for (size_t n; size > 0; size -= n) {
		n = size < sizeof(block) ? size : sizeof(block);
		CHECK(pwrite(transcript->fd, block, n, (off_t)transcript->end) == (ssize_t)n);
		transcript->end += n;
	}
}

static size_t held(const struct transcript *transcript)
{
	struct stat status;

	CHECK(fstat(transcript->fd, &status) == 0);
	return (size_t)status.st_blocks * 512;
}

/* A cell has its answer, which is not written down yet: a router that dies now needs the cell's output again. */
static void test_what_is_not_settled_stays(void)
{
	struct transcript transcript;

	transcript_init(&transcript);
	CHECK(transcript_create(&transcript) == 0);
	add(&transcript, 3 * MIB);
	transcript.begin = transcript.end;
	add(&transcript, MIB);
	CHECK(!transcript_trim(&transcript, 16 * MIB) && held(&transcript) == 4 * MIB);
	transcript_settle(&transcript);
	while (transcript_trim(&transcript, 16 * MIB))
		;
	CHECK(held(&transcript) == MIB);
	transcript_deinit(&transcript);
}

/* In pieces, with nothing else in between. */
static void test_no_call_takes_long(void)
{
	struct transcript transcript;
	size_t before;
	bool more;

	transcript_init(&transcript);
	CHECK(transcript_create(&transcript) == 0);
	add(&transcript, 10 * MIB);
	transcript.begin = transcript.end;
	transcript_settle(&transcript);
	do {
		before = held(&transcript);
		more = transcript_trim(&transcript, 4 * MIB);
		CHECK(before - held(&transcript) <= MIB && before > held(&transcript));
	} while (more);
	CHECK(held(&transcript) == 0);
	/* The middle of one cell's output. */
	add(&transcript, 12 * MIB);
	while (transcript_trim(&transcript, 4 * MIB))
		;
	CHECK(held(&transcript) == 4 * MIB);
	transcript_deinit(&transcript);
}

int main(void)
{
	memset(block, 'x', sizeof(block));
	test_what_is_not_settled_stays();
	test_no_call_takes_long();
	return check_report();
}
