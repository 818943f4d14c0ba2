/* Promises: who finds one, who gets its answer, and how long that is kept. The front is a fake, the time the
 * test's. */
#include "check.h"
#include "fakes/clock.h"
#include "fakes/front.h"

#include "promise/cell.h"
#include "promise/client.h"
#include "promise/promise.h"

#include <stdio.h>
#include <string.h>

#define TTL (60 * 1000000ULL)

static const struct keeping keeping = {.ttl = TTL, .number = 2, .size = 1 << 20};

static struct event_loop loop;
static struct users users;
static struct clients clients;
static struct promises promises;
/* "reply 7, error 3": what has been sent. */
static char sent[1024];

static void on_message(uint64_t connection, struct bytes message)
{
	size_t size = strlen(sent);
	struct wire_frame frame;
	uint64_t id = 0;

	CHECK(wire_open_answer(&frame, message) == 0 && wire_find_id(&id, frame.body));
	CHECK(connection == id);
	snprintf(sent + size, sizeof(sent) - size, "%s%.*s %llu", size ? ", " : "", (int)frame.type.size,
		 frame.type.data, (unsigned long long)id);
}

static void begin(uint64_t size_per_user)
{
	static const char keeper[INSTANCE_NAME_SIZE] = "a-keeper";

	CHECK(event_loop_init(&loop) == 0);
	users_init(&users);
	clients_init(&clients);
	promises_init(&promises, &loop, &clients, &users, keeper);
	promises.size_per_user = size_per_user;
	sent[0] = '\0';
}

static void end(void)
{
	promises_deinit(&promises);
	clients_deinit(&clients);
	users_deinit(&users);
	CHECK(loop.n_timers == 0);
	event_loop_deinit(&loop);
}

static bool was_sent(const char *expected)
{
	bool same;

	clients_settle(&clients);
	graveyard_empty(&promises.dead);
	same = !strcmp(sent, expected);
	if (!same)
		fprintf(stderr, "sent: %s\n", sent);
	sent[0] = '\0';
	return same;
}

static struct address who(uint64_t id)
{
	return (struct address){.fd = 1, .connection = id, .uid = 1000, .id = id};
}

static struct promise *ask_in(const char *session, const char *key, uint64_t id)
{
	const struct watch watch = {.stream = false};
	const struct address address = who(id);
	struct promise *promise = NULL;

	CHECK(promise_new(&promise, &promises, 1000, bytes_of(session), key ? bytes_of(key) : BYTES(""), 1,
			  &keeping) == 0);
	CHECK(promise_join(promise, &address, &watch) == 0);
	return promise;
}

static struct promise *ask(const char *key, uint64_t id)
{
	return ask_in("s", key, id);
}

static void join(struct promise *promise, uint64_t id)
{
	const struct watch watch = {.stream = false};
	const struct address address = who(id);

	CHECK(promise_join(promise, &address, &watch) == 0);
}

static void answer_with(struct promise *promise, const struct wire_schema *schema, const void *message)
{
	const struct address to = {.uid = 1000, .id = 1, .promise = promise};

	CHECK(client_send(&clients, &to, schema, message) == 0);
}

static void answer(struct promise *promise)
{
	const struct empty_reply reply = {.id = 1};

	promise_taken(promise);
	answer_with(promise, &empty_reply_schema, &reply);
}

static void refuse(struct promise *promise)
{
	const struct error_reply reply = {.id = 1, .code = BYTES("limit"), .message = BYTES("no")};

	answer_with(promise, &error_reply_schema, &reply);
}

static struct promise *found(const char *key)
{
	return promises_find_key(&promises, 1000, BYTES("s"), bytes_of(key));
}

/* ---- tests ---- */

static void test_find(void)
{
	struct promise *one, *old, *new;

	begin(1 << 20);
	one = ask("key", 1);
	CHECK(found("key") == one && !found("ke") && !found("keys"));
	CHECK(!promises_find_key(&promises, 1001, BYTES("s"), BYTES("key")));
	CHECK(!promises_find_key(&promises, 1000, BYTES(""), BYTES("key")));
	CHECK(!promises_find_key(&promises, 1000, BYTES("sk"), BYTES("ey")));
	old = ask(NULL, 2);
	new = ask(NULL, 3);
	promise_is_cell(old);
	promise_is_cell(new);
	old->cell = new->cell = 4;
	CHECK(promises_find_cell(&promises, 1000, BYTES("s"), 4) == new);
	CHECK(!promises_find_cell(&promises, 1000, BYTES("s"), 5));
	CHECK(!promises_find_cell(&promises, 1000, BYTES("t"), 4));
	CHECK(list_size(promises_cells_of(&promises, 1000, BYTES("s"))) == 2);
	CHECK(promises_find_serial(&promises, one->serial) == one && one->serial < old->serial);
	promise_forget(one);
	promise_forget(one);
	CHECK(!found("key") && !promises_find_serial(&promises, one->serial));
	CHECK(was_sent(""));
	promise_name(new);
	CHECK(new->key[0] && found(new->key) == new);
	end();
}

static void test_askers(void)
{
	const struct address fifth = who(5);
	struct promise *promise;

	begin(1 << 20);
	promise = ask("key", 1);
	for (uint64_t id = 2; id <= 4; id++)
		join(promise, id);
	join(promise, 4); /* again: the same asker */
	join(promise, 5);
	CHECK(promise->n_askers == 5 && promise_asked_by(promise, &fifth));
	promise_leave(promise, &fifth);
	CHECK(!promise_asked_by(promise, &fifth));
	answer(promise);
	CHECK(promise->n_askers == 0 && was_sent("reply 1, reply 2, reply 3, reply 4"));
	/* Late ones have it at once; a second answer is none. */
	join(promise, 6);
	answer(promise);
	CHECK(was_sent("reply 6"));
	end();
}

static void test_too_many_askers(void)
{
	struct promise *promise;

	begin(1 << 20);
	promise = ask("key", 1);
	for (uint64_t id = 2; id <= 17; id++)
		join(promise, id);
	CHECK(promise->n_askers == 16 && was_sent("error 1"));
	end();
}

/* Before its session has it, a refusal is as if nothing had been asked. */
static void test_refused(void)
{
	struct promise *promise;

	begin(1 << 20);
	promise = ask("key", 1);
	refuse(promise);
	CHECK(!found("key") && was_sent("error 1"));
	promise = ask("key", 2);
	promise_taken(promise);
	refuse(promise);
	CHECK(found("key") == promise && was_sent("error 2"));
	join(promise, 3);
	CHECK(was_sent("error 3"));
	promise = ask(NULL, 4);
	answer(promise);
	CHECK(was_sent("reply 4") && list_size(&promises.all) == 1); /* without a key nothing is kept */
	end();
}

static void wait_for(uint64_t us)
{
	struct slice slice = {.until = UINT64_MAX, .things = SIZE_MAX};

	fake_now += us;
	timer_run(&loop, &slice);
	graveyard_empty(&promises.dead);
}

static void test_time(void)
{
	begin(1 << 20);
	(void)ask("waits", 1);
	answer(ask("answered", 2));
	wait_for(TTL - 1);
	CHECK(found("waits") && found("answered"));
	wait_for(1);
	CHECK(found("waits") && !found("answered"));
	CHECK(was_sent("reply 2"));
	end();
}

static void answer_cell(const char *key, uint64_t id)
{
	struct promise *promise = ask(key, id);

	promise_is_cell(promise);
	answer(promise);
}

/* Of cells the oldest go by number; what else is answered does not push them out. */
static void test_number(void)
{
	begin(1 << 20);
	answer_cell("a", 1);
	answer_cell("b", 2);
	for (uint64_t id = 3; id < 9; id++) {
		char key[8];

		snprintf(key, sizeof(key), "k%llu", (unsigned long long)id);
		answer(ask(key, id));
	}
	CHECK(found("a") && found("b") && found("k3") && found("k8"));
	answer_cell("c", 9);
	CHECK(!found("a") && found("b") && found("c") && found("k3"));
	end();
}

/* All that one user has, in whichever session: the oldest answer goes first, the newest stays. */
static void test_size_of_user(void)
{
	struct promise *first;
	size_t each;

	begin(UINT64_MAX);
	first = ask_in("one", "a", 1);
	answer(first);
	each = users.all.next == &users.all ? 0 : container_of(users.all.next, struct user, node)->kept;
	CHECK(each > 0);
	promises.size_per_user = 2 * each;
	answer(ask_in("two", "a", 2));
	CHECK(promises_find_key(&promises, 1000, BYTES("one"), BYTES("a")) == first);
	answer(ask_in("three", "a", 3));
	CHECK(!promises_find_key(&promises, 1000, BYTES("one"), BYTES("a")));
	CHECK(promises_find_key(&promises, 1000, BYTES("two"), BYTES("a")));
	promises.size_per_user = 1;
	answer(ask_in("four", "a", 4));
	CHECK(!promises_find_key(&promises, 1000, BYTES("three"), BYTES("a")));
	CHECK(promises_find_key(&promises, 1000, BYTES("four"), BYTES("a")));
	CHECK(container_of(users.all.next, struct user, node)->kept == each);
	end();
}

/* Who has gone is no asker any more; the others have what they asked for. */
/* An answer that is not kept goes to its only asker, who may be another than the first. */
static void test_given_away(void)
{
	const struct address first = who(1);
	struct promise *promise;

	begin(1 << 20);
	answer(ask(NULL, 1));
	CHECK(was_sent("reply 1"));
	promise = ask(NULL, 1);
	join(promise, 2);
	promise_leave(promise, &first);
	answer(promise);
	answer(promise);
	CHECK(was_sent("reply 2"));
	end();
}

/* One share for what cells hold and what is kept. */
static void test_kept_answers_make_room(void)
{
	struct user *user;
	uint64_t each;

	begin(UINT64_MAX);
	answer(ask_in("s", "one", 1));
	user = user_find(&users, 1000);
	each = 2 * user->kept;
	CHECK(user_holds(user) == each);
	answer(ask_in("t", "two", 2));
	answer(ask_in("u", "three", 3));
	users.share = 3 * each;
	CHECK(user_has_room(user, 0) && list_size(&user->answered) == 3);
	/* What would not fit without them either leaves them alone. */
	CHECK(!user_take(user, 3 * each + 1) && list_size(&user->answered) == 3);
	CHECK(user_take(user, each + 1) && user->at_work == each + 1);
	CHECK(list_size(&user->answered) == 1 && user->made_room == 2 && user_holds(user) <= users.share);
	CHECK(!found("one"));
	user->outgoing = each;
	CHECK(user_take(user, 1) && list_empty(&user->answered));
	/* The newest stays, however full it is. */
	answer(ask_in("s", "four", 4));
	CHECK(found("four") && !user_take(user, each));
	user->outgoing = 0;
	user_give_back(user, each + 2);
	CHECK(user_holds(user) == each);
	users.share = 0;
	CHECK(user_take(user, UINT64_MAX / 4) && found("four"));
	user_give_back(user, UINT64_MAX / 4);
	end();
}

static void test_gone(void)
{
	const struct watch watch = {.stream = true};
	const struct address second = who(2);
	struct promise *promise;

	begin(1 << 20);
	promise = ask("key", 1);
	CHECK(promise_join(promise, &second, &watch) == 0 && promise_has(promise, ASKING_STREAM));
	fake_front_result = FRONT_E_WAITS;
	CHECK(promise_stream(promise, PROMISE_STDOUT, 0, BYTES("x")) == CLIENT_E_WAITS && promise_waits(promise));
	fake_front_result = FRONT_E_GONE;
	CHECK(promise_stream(promise, PROMISE_STDOUT, 1, BYTES("y")) == 0);
	fake_front_result = 0;
	CHECK(!promise_has(promise, ASKING_STREAM) && promise->n_askers == 1);
	answer(promise);
	CHECK(was_sent("stdout 2, reply 1"));
	end();
}

int main(void)
{
	fake_front_on_message = on_message;
	test_find();
	test_askers();
	test_too_many_askers();
	test_refused();
	test_time();
	test_number();
	test_size_of_user();
	test_given_away();
	test_kept_answers_make_room();
	test_gone();
	return check_report();
}
