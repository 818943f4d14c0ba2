/* What a router died of: when it counts, when it is not tried again, and what clears of it. */
#include "check.h"

#include "vault/breaker.h"

#include <fcntl.h>

static struct breaker breaker;

/* The next router finds the page as the last one has left it. */
static void dies(enum router_end end)
{
	int fd = fcntl(breaker.fd, F_DUPFD_CLOEXEC, 0);

	breaker_close(&breaker);
	breaker_open(&breaker, fd, end);
}

static void handles(const struct thing *thing)
{
	breaker_take(&breaker);
	breaker_name(&breaker, thing);
}

static void settles(void)
{
	breaker_settle(&breaker);
	breaker_put_down(&breaker);
}

static const struct thing bad = {.kind = BLAME_INTERPRETER, .turn = TURN_CHANNEL, .whose = 7, .number = 3};
static const struct thing output = {.kind = BLAME_INTERPRETER, .turn = TURN_STDOUT, .whose = 7, .number = 3};
static const struct thing other = {.kind = BLAME_SESSION, .turn = TURN_DEADLINE, .whose = 7, .number = 3};

static void begin(void)
{
	breaker_open(&breaker, -1, ROUTER_END_WELL);
	CHECK(breaker.fd >= 0 && !breaker_is_careful(&breaker));
}

static void test_three_deaths(void)
{
	begin();
	for (int i = 0; i < 3; i++) {
		CHECK(!breaker_is_open(&breaker, &bad));
		handles(&other);
		settles();
		handles(&bad);
		dies(ROUTER_END_DIED);
		CHECK(breaker_is_careful(&breaker));
	}
	CHECK(breaker_is_open(&breaker, &bad) && !breaker_is_open(&breaker, &other));
	CHECK(breaker_is_open_for(&breaker, BLAME_INTERPRETER, 7, 3));
	CHECK(!breaker_is_open_for(&breaker, BLAME_INTERPRETER, 7, 4));
	handles(&bad);
	settles();
	CHECK(breaker_is_open(&breaker, &bad));
	breaker_forget(&breaker, BLAME_SESSION);
	CHECK(breaker_is_open(&breaker, &bad));
	breaker_forget(&breaker, BLAME_INTERPRETER);
	CHECK(!breaker_is_open(&breaker, &bad));
	breaker_close(&breaker);
}

static void test_two_pauses(void)
{
	begin();
	for (int i = 0; i < 2; i++) {
		CHECK(!breaker_is_open(&breaker, &bad));
		handles(&bad);
		dies(ROUTER_END_STOOD);
	}
	CHECK(breaker_is_open(&breaker, &bad));
	breaker_close(&breaker);
}

/* What is handled and settled was not it; but its other half says nothing of it. */
static void test_success(void)
{
	begin();
	for (int i = 0; i < 20; i++) {
		handles(&bad);
		dies(ROUTER_END_DIED);
		handles(&bad);
		settles();
	}
	CHECK(!breaker_is_open(&breaker, &bad));
	for (int i = 0; i < 3; i++) {
		handles(&bad);
		dies(ROUTER_END_DIED);
		handles(&output);
		settles();
	}
	CHECK(breaker_is_open(&breaker, &bad));
	breaker_close(&breaker);
}

/* Killed by somebody, or with nothing in hand. */
static void test_nobodys_fault(void)
{
	begin();
	for (int i = 0; i < 20; i++) {
		handles(&bad);
		dies(ROUTER_END_WELL);
		handles(&bad);
		breaker_take(&breaker);
		dies(ROUTER_END_DIED);
		breaker_take(&breaker);
		breaker_name(&breaker, &bad);
		settles();
		dies(ROUTER_END_DIED);
	}
	CHECK(!breaker_is_open(&breaker, &bad));
	breaker_close(&breaker);
}

/* Of which of several, is not known while they are settled, nor when they took too long together. */
static void test_several(void)
{
	begin();
	for (int i = 0; i < 20; i++) {
		handles(&other);
		handles(&bad);
		breaker_settle(&breaker);
		dies(ROUTER_END_DIED);
		handles(&other);
		handles(&bad);
		dies(ROUTER_END_STOOD);
	}
	CHECK(!breaker_is_open(&breaker, &bad) && !breaker_is_open(&breaker, &other));
	for (int i = 0; i < 3; i++) {
		handles(&bad);
		breaker_settle(&breaker);
		dies(ROUTER_END_DIED);
	}
	CHECK(breaker_is_open(&breaker, &bad));
	breaker_close(&breaker);
}

static void test_many(void)
{
	begin();
	for (uint64_t i = 0; i < 100; i++) {
		struct thing thing = {.kind = BLAME_REQUEST, .whose = i};

		for (int n = 0; n < 3; n++) {
			handles(&thing);
			dies(ROUTER_END_DIED);
		}
		CHECK(breaker_is_open(&breaker, &thing));
	}
	breaker_close(&breaker);
}

/* A page that makes no sense is none. */
static void test_another_layout(void)
{
	const uint64_t layout = 77;

	begin();
	handles(&bad);
	CHECK(pwrite(breaker.fd, &layout, sizeof(layout), 0) == sizeof(layout));
	dies(ROUTER_END_DIED);
	for (int i = 0; i < 3; i++) {
		CHECK(!breaker_is_open(&breaker, &bad));
		handles(&bad);
		dies(ROUTER_END_DIED);
	}
	CHECK(breaker_is_open(&breaker, &bad));
	breaker_close(&breaker);
	breaker_open(&breaker, open("/dev/null", O_RDWR | O_CLOEXEC), ROUTER_END_DIED);
	CHECK(!breaker_is_open(&breaker, &bad));
	handles(&bad);
	settles();
	breaker_close(&breaker);
}

int main(void)
{
	test_three_deaths();
	test_two_pauses();
	test_success();
	test_nobodys_fault();
	test_several();
	test_many();
	test_another_layout();
	return check_report();
}
