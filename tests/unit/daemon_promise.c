/* Promises that outlive the router: each is written down sooner or later, and is found again by who asks again, of
 * whatever build the routers and the clients are. */
#include "check.h"

#include "promise/promise.h"
#include "vault/breaker.h"
#include "vault/records.h"
#include "vault/vault.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>

static const struct keeping keeping = {.ttl = 60 * 1000000ULL, .number = 1000, .size = 1 << 20};
static const char us[INSTANCE_NAME_SIZE] = "this-keeper", others[INSTANCE_NAME_SIZE] = "another-keeper";

static struct event_loop loop;

/* Who is told what to keep. It does not answer. */
static void keeper_make(void)
{
	int pair[2];

	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	CHECK(fcntl(pair[1], F_DUPFD_CLOEXEC, 50) >= 50);
	CHECK(dup2(pair[0], KEEPER_FD) == KEEPER_FD);
}

/* Each router has users of its own. */
static struct users users[32];
static size_t n_routers;

static void begin(struct promises *promises, const char keeper[static INSTANCE_NAME_SIZE])
{
	CHECK(n_routers < ARRAY_SIZE(users));
	users_init(&users[n_routers]);
	promises_init(promises, &loop, NULL, &users[n_routers++], keeper);
	promises->size_per_user = 1 << 20;
}

static struct promise *asked(struct promises *promises, unsigned n, const struct wire_schema *schema,
			     const void *request)
{
	struct promise *promise = NULL;
	char key[32];

	snprintf(key, sizeof(key), "key-%u", n);
	CHECK(promise_new(&promise, promises, 1000, BYTES("s"), bytes_of(key), promise_fingerprint(schema, request),
			  &keeping) == 0);
	return promise;
}

static void ask(struct promises *promises, unsigned from, unsigned to)
{
	for (unsigned n = from; n < to; n++)
		(void)asked(promises, n, &undo_request_schema,
			    &(struct undo_request){.session = BYTES("s"), .n = n});
}

static struct promise *found(struct promises *promises, unsigned n)
{
	char key[32];

	snprintf(key, sizeof(key), "key-%u", n);
	return promises_find_key(promises, 1000, BYTES("s"), bytes_of(key));
}

/* What the next router has of it. */
static void hand_over_to(const char keeper[static INSTANCE_NAME_SIZE], const struct promises *from,
			 struct promises *to)
{
	struct breaker breaker;

	breaker_open(&breaker, -1, ROUTER_END_WELL);
	begin(to, keeper);
	CHECK(promises_revive(to, fcntl(from->ledger.fd, F_DUPFD_CLOEXEC, 0), &breaker) == 0);
	breaker_close(&breaker);
}

static void hand_over(const struct promises *from, struct promises *to)
{
	hand_over_to(us, from, to);
}

static unsigned known_to_the_next(const struct promises *promises, unsigned n)
{
	struct promises next;
	unsigned known = 0;

	hand_over(promises, &next);
	for (unsigned i = 0; i < n; i++)
		known += found(&next, i) && promise_is_of(found(&next, i), &undo_request_schema,
							  &(struct undo_request){.session = BYTES("s"), .n = i});
	promises_deinit(&next);
	return known;
}

/* From there on a file has no room. */
static void file_limit(rlim_t size)
{
	struct rlimit limit;

	CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0);
	limit.rlim_cur = MIN(size, limit.rlim_max);
	CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

/* What could not be written is tried again, and all of what came with it. */
static void test_a_failed_append(void)
{
	struct promises promises;

	begin(&promises, us);
	ask(&promises, 0, 3);
	file_limit(64 << 10);
	promises_commit(&promises); /* the ledger cannot even begin */
	CHECK(promises.unkept && !list_empty(&promises.changed));
	file_limit(RLIM_INFINITY);
	promises_commit(&promises);
	CHECK(!promises.unkept && list_empty(&promises.changed) && known_to_the_next(&promises, 3) == 3);
	file_limit((64 << 10) + promises.ledger.room);
	ask(&promises, 3, 1000);
	promises_commit(&promises);
	CHECK(promises.unkept && known_to_the_next(&promises, 1000) > 3 &&
	      known_to_the_next(&promises, 1000) < 1000);
	file_limit(RLIM_INFINITY);
	promises_commit(&promises);
	CHECK(!promises.unkept && list_empty(&promises.changed) && known_to_the_next(&promises, 1000) == 1000);
	promises_deinit(&promises);
}

static void answer(struct promise *promise)
{
	msgpack_sbuffer buffer;

	msgpack_sbuffer_init(&buffer);
	CHECK(wire_encode(&buffer, &empty_reply_schema, &(struct empty_reply){.id = 1}) == 0);
	promise_taken(promise);
	promise_answer(promise, &empty_reply_schema, &buffer, NULL);
	msgpack_sbuffer_destroy(&buffer);
}

/* Another keeper's router begins a ledger of its own. If that fails, it is tried again though nothing changes. */
static void test_a_failed_beginning(void)
{
	struct promises promises, next;

	begin(&promises, us);
	ask(&promises, 0, 3);
	for (unsigned n = 0; n < 3; n++)
		answer(found(&promises, n));
	promises_commit(&promises);
	hand_over_to(others, &promises, &next);
	file_limit(64 << 10);
	promises_settle(&next);
	CHECK(!next.ledger.in_force);
	file_limit(RLIM_INFINITY);
	promises_commit(&next);
	CHECK(next.ledger.in_force && known_to_the_next(&next, 3) == 3);
	promises_deinit(&next);
	promises_deinit(&promises);
}

#define LATER_EXEC_FIELDS(F, m)                                                                                    \
	EXEC_FIELDS(F, m)                                                                                          \
	F(m, STR, later, OPTIONAL)                                                                                 \
	F(m, UINT, number, OPTIONAL)

WIRE_DECLARE(later_exec, ID, LATER_EXEC_FIELDS);
WIRE_DEFINE(later_exec, "exec", ID, LATER_EXEC_FIELDS);

static uint64_t of_undo(uint64_t n)
{
	return promise_fingerprint(&undo_request_schema, &(struct undo_request){.session = BYTES("s"), .n = n});
}

static uint64_t of_exec(struct exec_request request)
{
	request.session = BYTES("s");
	if (!request.code.data)
		request.code = BYTES("x");
	return promise_fingerprint(&exec_request_schema, &request);
}

static uint64_t of_later_exec(struct later_exec request)
{
	request.session = BYTES("s");
	request.code = BYTES("x");
	return promise_fingerprint(&later_exec_schema, &request);
}

/* What means the same is the same, whichever build says it and whichever hears it. */
static void test_fingerprints(void)
{
	uint64_t plain = of_exec((struct exec_request){.id = 1});
	struct exec_request explicit;
	struct wire_fault fault;
	/* {"id": 2, "session": "s", "code": "x", "values": false, "timeout": 0} */
	static const char defaults[] = "\x85\xa2id\x02\xa7session\xa1s\xa4"
				       "code\xa1x\xa6values\xc2\xa7timeout\x00";

	CHECK(wire_decode(&explicit, &exec_request_schema,
			  (struct bytes){.data = defaults, .size = sizeof(defaults) - 1}, &fault) == 0);
	CHECK(of_exec(explicit) == plain);
	CHECK(of_later_exec((struct later_exec){.id = 3}) == plain);
	CHECK(of_exec((struct exec_request){.stream = true, .detach = true, .stdout = 7}) == plain);
	CHECK(of_later_exec((struct later_exec){.number = 1}) != plain);
	CHECK(of_later_exec((struct later_exec){.later = BYTES("")}) != plain);
	CHECK(of_exec((struct exec_request){.code = BYTES("y")}) != plain);
	CHECK(of_exec((struct exec_request){.values = true}) != plain);
	CHECK(of_exec((struct exec_request){.timeout = 1}) != plain);
	CHECK(of_undo(0) == of_undo(1) && of_undo(1) != of_undo(2));
}

/* As a router wrote it that took fingerprints otherwise, and one that knows more than this. */
#define OTHER_PROMISE_FIELDS(F, m)                                                                                 \
	F(m, UINT, serial, REQUIRED)                                                                               \
	F(m, UINT, owner, OPTIONAL)                                                                                \
	F(m, STR, session, OPTIONAL)                                                                               \
	F(m, STR, key, OPTIONAL)                                                                                   \
	F(m, UINT, request, OPTIONAL)                                                                              \
	F(m, RAW, later, OPTIONAL)

WIRE_DECLARE(other_promise, NO_ID, OTHER_PROMISE_FIELDS);
WIRE_DEFINE(other_promise, "promise", NO_ID, OTHER_PROMISE_FIELDS);

static void test_of_another_build(void)
{
	const struct other_promise record = {.serial = 5,
					     .owner = 1000,
					     .session = BYTES("s"),
					     .key = BYTES("key-9"),
					     .request = 12345,
					     .later = BYTES("\x91\x01")};
	const struct exec_request request = {.session = BYTES("s"), .code = BYTES("x")};
	struct promises promises, next;

	begin(&promises, us);
	ask(&promises, 0, 1);
	promises_commit(&promises);
	CHECK(ledger_append(&promises.ledger, &other_promise_schema, &record) == 0);
	hand_over(&promises, &next);
	CHECK(found(&next, 0) && !promise_is_of(found(&next, 0), &exec_request_schema, &request));
	CHECK(found(&next, 9) && promise_is_of(found(&next, 9), &exec_request_schema, &request));
	promises_deinit(&next);
	promises_deinit(&promises);
}

static char printed[300000];

/* What an asker of it gets. */
static bool answer_is(const struct promise *promise, struct bytes expected)
{
	const struct bytes answer = {.data = promise->answer, .size = promise->answer_size};
	struct iovec parts[TEXT_PARTS_MAX];
	struct text text = {.bulk = NULL};
	size_t n, at = 0;
	bool same;

	CHECK(wire_readdress(&text.encoded, answer, 1) == 0 && promise_load(promise, &text) == 0);
	n = text_parts(&text, parts);
	same = text_size(&text) == expected.size;
	for (size_t i = 0; i < n && same; i++) {
		same = memcmp(expected.data + at, parts[i].iov_base, parts[i].iov_len) == 0;
		at += parts[i].iov_len;
	}
	text_free(&text);
	return same && at == expected.size;
}

static struct output written(size_t limit, size_t size)
{
	struct output output;

	output_init(&output, limit);
	for (size_t at = 0; at < size; at += 7000)
		output_add(&output, (struct bytes){.data = printed + at, .size = MIN((size_t)7000, size - at)});
	return output;
}

/* Long output is no part of its answer, but of what askers get, from this router and from the next. @limit: of its
 * two streams. */
static void long_answer(const size_t limits[2], const size_t sizes[2])
{
	struct exec_reply reply = {.id = 1, .state = BYTES("kept"), .text = BYTES("7"), .duration_ms = 1};
	struct promises promises, next;
	struct bulk *bulk = bulk_new();
	struct output outputs[2], joined[2];
	struct promise *promise;
	msgpack_sbuffer buffer, expected;

	begin(&promises, us);
	promise = asked(&promises, 0, &undo_request_schema, &(struct undo_request){.session = BYTES("s")});
	promise_is_cell(promise);
	promise_taken(promise);
	for (int i = 0; i < 2; i++) {
		struct bytes *field = i ? &reply.stderr : &reply.stdout;

		joined[i] = written(limits[i], sizes[i]);
		outputs[i] = written(limits[i], sizes[i]);
		*(i ? &reply.stderr_dropped : &reply.stdout_dropped) = output_dropped(&joined[i]);
		promise->heads[i] = joined[i].head_size;
		*field = output_join(&joined[i]);
	}
	msgpack_sbuffer_init(&expected);
	CHECK(wire_encode(&expected, &exec_reply_schema, &reply) == 0);
	for (int i = 0; i < 2; i++)
		if (output_is_long(&outputs[i])) {
			output_give(&outputs[i], &bulk->bins[i]);
			*(i ? &reply.stderr : &reply.stdout) = BYTES("");
		}
	msgpack_sbuffer_init(&buffer);
	CHECK(wire_encode(&buffer, &exec_reply_schema, &reply) == 0);
	promise_answer(promise, &exec_reply_schema, &buffer, bulk);
	bulk_unref(bulk);
	CHECK(promise->answer_size < (64 << 10) && promise_answer_size(promise) > (64 << 10));
	CHECK(answer_is(promise, wire_bytes(&expected)));
	promises_commit(&promises);
	hand_over(&promises, &next);
	promise = found(&next, 0);
	CHECK(promise && promise_answer_size(promise) < expected.size && answer_is(promise, wire_bytes(&expected)));
	msgpack_sbuffer_destroy(&buffer);
	msgpack_sbuffer_destroy(&expected);
	for (int i = 0; i < 2; i++) {
		output_deinit(&joined[i]);
		output_deinit(&outputs[i]);
	}
	promises_deinit(&next);
	promises_deinit(&promises);
}

static void test_long_answers(void)
{
	memset(printed, 'x', sizeof(printed));
	long_answer((size_t[]){1 << 20, 1 << 20}, (size_t[]){200000, 100000});
	long_answer((size_t[]){1 << 17, 1 << 17}, (size_t[]){300000, 299999});
	long_answer((size_t[]){1 << 17, 1 << 17}, (size_t[]){300000, 0});
	long_answer((size_t[]){1 << 17, 1 << 17}, (size_t[]){12, 300000});
}

int main(void)
{
	keeper_make();
	(void)signal(SIGXFSZ, SIG_IGN);
	CHECK(event_loop_init(&loop) == 0);
	test_a_failed_append();
	test_a_failed_beginning();
	test_long_answers();
	test_fingerprints();
	test_of_another_build();
	event_loop_deinit(&loop);
	while (n_routers > 0)
		users_deinit(&users[--n_routers]);
	return check_report();
}
