/* The ring between router and scribe: what is put comes out whole and in order, however full it gets and whoever of
 * the two is another one by then; and nothing in it is believed. */
#include "audit/ring.h"

#include "check.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

static struct audit_ring router, scribe;

static void begin(void)
{
	CHECK(audit_ring_new(&router) == 0);
	CHECK(audit_ring_open(&scribe, fcntl(router.fd, F_DUPFD_CLOEXEC, 0)) == 0);
}

static void end(void)
{
	audit_ring_close(&router);
	audit_ring_close(&scribe);
}

/* As when the last one has died. */
static void another(struct audit_ring *ring)
{
	int fd = fcntl(ring->fd, F_DUPFD_CLOEXEC, 0);

	audit_ring_close(ring);
	CHECK(audit_ring_open(ring, fd) == 0);
}

static int put(uint64_t number, struct bytes text)
{
	const struct audit_record record = {.event = AUDIT_EXEC, .number = number, .time = 1.5, .uid = 7};

	return audit_ring_put(&router, &record, (const struct bytes[AUDIT_TEXTS]){BYTES("name"), text});
}

static bool take(uint64_t number, struct bytes text, uint64_t missed)
{
	_cleanup_(freep) struct audit_record *record = NULL;
	bool right;

	if (audit_ring_next(&scribe, &record) != 0)
		return false;
	right = record->event == AUDIT_EXEC && record->number == number && record->uid == 7 &&
		record->missed == missed && record->sizes[0] == 4 && !memcmp(record->texts, "name", 4) &&
		record->sizes[1] == (text.data ? text.size : AUDIT_ABSENT) && record->sizes[2] == AUDIT_ABSENT &&
		(text.size == 0 || !memcmp(record->texts + 4, text.data, text.size));
	audit_ring_take(&scribe, record);
	return right;
}

static bool empty(void)
{
	struct audit_record *record;

	return audit_ring_next(&scribe, &record) == AUDIT_RING_E_EMPTY;
}

static uint64_t memory(void)
{
	struct stat status;

	return fstat(router.fd, &status) == 0 ? (uint64_t)status.st_blocks * 512 : UINT64_MAX;
}

static void test_order(void)
{
	begin();
	CHECK(empty());
	CHECK(put(1, BYTES("code")) == 0 && put(2, (struct bytes){.data = NULL}) == 0);
	CHECK(put(3, BYTES("")) == 0);
	CHECK(audit_ring_left(router.fd) == 3);
	CHECK(take(1, BYTES("code"), 0) && take(2, (struct bytes){.data = NULL}, 0) && take(3, BYTES(""), 0));
	CHECK(empty() && audit_ring_left(router.fd) == 0);
	end();
}

/* Around its end many times, with records that lie across it, and other processes all the time. */
static void test_around(void)
{
	static char text[3000001];
	uint64_t n_put = 0, n_taken = 0, total = 0;

	begin();
	while (total < 5 * AUDIT_RING_SIZE) {
		size_t size = (size_t)(n_put * 700001 % sizeof(text));

		memset(text, (int)(n_put % 251), size);
		CHECK(put(n_put++, (struct bytes){.data = text, .size = size}) == 0);
		total += size;
		if (n_put - n_taken > 5) {
			size = (size_t)(n_taken * 700001 % sizeof(text));
			memset(text, (int)(n_taken % 251), size);
			CHECK(take(n_taken++, (struct bytes){.data = text, .size = size}, 0));
			another(n_put % 2 ? &router : &scribe);
		}
		CHECK(memory() < 24U << 20);
	}
	end();
}

static void test_full(void)
{
	static char text[1 << 20];
	struct bytes large = {.data = text, .size = sizeof(text)};
	uint64_t n = 0, left;

	begin();
	while (put(n, large) == 0)
		n++;
	CHECK(n >= 62 && n < AUDIT_RING_SIZE / sizeof(text));
	CHECK(put(0, large) == AUDIT_RING_E_FULL);
	left = n + 2;
	CHECK(audit_ring_left(router.fd) == left);
	CHECK(take(0, large, 0) && take(1, large, 0));
	CHECK(put(n, large) == 0);
	for (uint64_t i = 2; i < n; i++)
		CHECK(take(i, large, 0));
	/* Here two are missed. */
	CHECK(take(n, large, 2) && empty());
	CHECK(atomic_load(&scribe.page->missed) == 2);
	atomic_store(&scribe.page->told, 2);
	CHECK(audit_ring_left(router.fd) == 0);
	end();
}

static void test_larger_than_the_ring(void)
{
	char *text = mmap(NULL, AUDIT_RING_SIZE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	begin();
	CHECK(put(1, (struct bytes){.data = text, .size = AUDIT_RING_SIZE}) == AUDIT_RING_E_FULL);
	CHECK(put(2, BYTES("x")) == 0 && take(2, BYTES("x"), 1));
	munmap(text, AUDIT_RING_SIZE);
	end();
}

/* What a router that went wrong may have left there. */
static void test_nonsense(void)
{
	struct audit_record *record, *first;

	begin();
	CHECK(put(1, BYTES("code")) == 0);
	first = (struct audit_record *)(void *)router.data;
	first->size = 8;
	CHECK(audit_ring_next(&scribe, &record) == -EBADMSG);
	first->size = 1 << 20;
	CHECK(audit_ring_next(&scribe, &record) == -EBADMSG);
	first->size = sizeof(*first) + 8;
	CHECK(audit_ring_next(&scribe, &record) == 0);
	free(record);
	first->sizes[2] = 1 << 20;
	CHECK(audit_ring_next(&scribe, &record) == -EBADMSG);
	first->sizes[2] = AUDIT_ABSENT;
	first->event = _AUDIT_N;
	CHECK(audit_ring_next(&scribe, &record) == -EBADMSG);
	CHECK(audit_ring_give_up(&scribe) == 1 && empty());
	atomic_store(&router.page->put, UINT64_MAX);
	CHECK(audit_ring_next(&scribe, &record) == -EBADMSG);
	CHECK(put(2, BYTES("x")) == AUDIT_RING_E_FULL);
	end();
}

static void test_no_ring(void)
{
	struct audit_ring ring;
	int fd = memfd_create("test", MFD_CLOEXEC);

	CHECK(audit_ring_open(&ring, fd) == -EBADMSG);
	CHECK(audit_ring_left(fd) == 0);
	close(fd);
	CHECK(audit_ring_open(&ring, -1) == -EBADF);
}

int main(void)
{
	test_order();
	test_around();
	test_full();
	test_larger_than_the_ring();
	test_nonsense();
	test_no_ring();
	return check_report();
}
