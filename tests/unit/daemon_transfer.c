/* Transfers: who may go on with one, and that one which nobody goes on with leaves nothing. */
#include "check.h"
#include "session/core/sessions.h"
#include "session/parts/rows.h"
#include "session/parts/transfer.h"
#include "vault/breaker.h"

#include <fcntl.h>
#include <stdio.h>

#define MINUTE_US (60 * 1000000ULL)

static char directory[] = "/tmp/lair-transfer-XXXXXX";
static struct event_loop loop;
static struct breaker breaker;
static struct cages cages = {.loop = &loop, .breaker = &breaker};
static struct sessions sessions = {.loop = &loop, .breaker = &breaker, .cages = &cages};
static struct warden warden = {.cages = &cages};
static struct session session = {.sessions = &sessions, .warden = &warden};

static struct transfer *begin(uid_t owner)
{
	int root = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct transfer *transfer = transfer_new(&session, owner);

	CHECK(transfer && new_file_begin(&transfer->file, root, "file", 0) == 0);
	CHECK(new_file_append(&transfer->file, BYTES("half")) == 0);
	close(root);
	return transfer;
}

static struct slice all = {.until = UINT64_MAX, .things = SIZE_MAX};

static bool is_empty(void)
{
	if (rmdir(directory) < 0)
		return false;
	return mkdir(directory, 0700) == 0;
}

static void test_nobody_goes_on(void)
{
	struct transfer *transfer = begin(5);
	int fd = transfer->file.fd;
	uint64_t deadline = transfer->patience.deadline;

	CHECK(deadline > event_now() + MINUTE_US - 5000000 && deadline <= event_now() + MINUTE_US);
	timer_run(&loop, &all);
	CHECK(transfer_find(&session, transfer->number, 5) == transfer);
	CHECK(transfer->patience.deadline >= deadline); /* it has been heard of */
	CHECK(!is_empty());
	/* A minute goes by. */
	CHECK(timer_set(&loop, &transfer->patience, event_now() - 1, transfer->patience.fn) == 0);
	timer_run(&loop, &all);
	CHECK(list_empty(&session.transfers) && loop.n_timers == 0);
	CHECK(fcntl(fd, F_GETFD) < 0);
	CHECK(is_empty());
}

static void test_who_may(void)
{
	struct transfer *transfer = begin(5), *other = begin(6);

	CHECK(transfer->number != other->number);
	CHECK(transfer_find(&session, transfer->number, 5) == transfer);
	CHECK(!transfer_find(&session, transfer->number, 6));
	CHECK(!transfer_find(&session, other->number + 1, 6));
	transfer_free(transfer);
	transfer_free(other);
	CHECK(is_empty());
}

static void test_no_more_than(void)
{
	for (int i = 0; i < TRANSFERS_MAX; i++) {
		CHECK(!transfers_full(&session));
		begin(5);
	}
	CHECK(transfers_full(&session));
	transfers_part.deinit(&session);
	CHECK(list_empty(&session.transfers) && !transfers_full(&session));
	CHECK(is_empty());
}

int main(void)
{
	list_init(&session.transfers);
	breaker_open(&breaker, -1, ROUTER_END_WELL);
	CHECK(mkdtemp(directory) != NULL && event_loop_init(&loop) == 0);
	test_nobody_goes_on();
	test_who_may();
	test_no_more_than();
	breaker_close(&breaker);
	event_loop_deinit(&loop);
	CHECK(rmdir(directory) == 0);
	return check_report();
}
