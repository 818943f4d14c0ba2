/* The front with its own event loop and clients that are descriptors of this process: who is let in, whose turn it
 * is, what waits, and what is closed. */
#include "check.h"

#include "front/front.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#define ZEROES "\0\0\0\0\0\0\0\0"
#define GREETING "\xff" ZEROES "\x7f\3\1NULL" ZEROES ZEROES ZEROES ZEROES ZEROES ZEROES
#define HELLO GREETING "\4\34\5READY\13Socket-Type\0\0\0\6DEALER"
#define ANSWERED (64 + 43)
#define MESSAGE_MAX ((uint64_t)1 << 20)

static struct sockaddr_un address = {.sun_family = AF_UNIX};
static struct event_loop loop;
static struct front front;
static struct users users;

/* The requests, a letter each, and the last one's sender. */
static char handled[256];
static size_t handled_size;
static int last_fd;
static uint64_t last_serial;

static void on_request(struct front *at, const struct connection *connection, struct bytes data)
{
	CHECK(at == &front && handled_size + 1 < sizeof(handled));
	handled[handled_size++] = data.size > 0 ? data.data[0] : '-';
	last_fd = connection->fd;
	last_serial = connection->serial;
}

static void run(void)
{
	for (int i = 0; i < 20; i++) {
		CHECK(event_wait(&loop, 0) == 0);
		event_dispatch(&loop, &(struct slice){.until = UINT64_MAX, .things = SIZE_MAX});
		while (front_serve(&front) == 0)
			;
		front_flush(&front);
		graveyard_empty(&front.dead);
	}
}

static bool handled_are(const char *expected)
{
	bool equal = handled_size == strlen(expected) && !memcmp(handled, expected, handled_size);

	handled_size = 0;
	return equal;
}

static int client_connect(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	return fd;
}

static void client_say(int fd, const char *data, size_t size)
{
	CHECK(send(fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)size);
}

#define SAY(fd, literal) client_say(fd, literal, sizeof(literal) - 1)

/* How many bytes have come; -1: nothing, -2: the end. */
static ssize_t client_hear(int fd)
{
	static char data[1 << 16];
	ssize_t n = recv(fd, data, sizeof(data), MSG_DONTWAIT);

	return n == 0 || (n < 0 && errno != EAGAIN) ? -2 : n;
}

static int client_greet(void)
{
	int fd = client_connect();

	SAY(fd, HELLO);
	run();
	CHECK(client_hear(fd) == ANSWERED);
	return fd;
}

static int say(int fd, uint64_t serial, size_t size)
{
	struct text text = {.bulk = NULL};
	int r;

	for (size_t n = 0; n < size; n += 1000)
		CHECK(msgpack_sbuffer_write(&text.encoded, (char[1000]){0}, MIN(size - n, (size_t)1000)) == 0);
	r = front_send(&front, fd, serial, &text);
	text_free(&text);
	return r;
}

/* ---- what is checked ---- */

static void check_answers(void)
{
	int fd = client_greet(), gone;
	uint64_t serial;

	SAY(fd, "\0\1a\0\1b\0\1");
	run();
	CHECK(handled_are("ab"));
	SAY(fd, "c");
	run();
	CHECK(handled_are("c"));
	CHECK(say(last_fd, last_serial, 10) == 0 && client_hear(fd) == -1);
	run();
	CHECK(client_hear(fd) == 12);
	/* The same descriptor is another's by then. */
	gone = last_fd;
	serial = last_serial;
	close(fd);
	run();
	CHECK(front.n_connections == 0 && say(gone, serial, 10) == FRONT_E_GONE);
	fd = client_greet();
	SAY(fd, "\0\1d");
	run();
	CHECK(handled_are("d") && last_fd == gone && last_serial != serial);
	CHECK(say(gone, serial, 10) == FRONT_E_GONE);
	run();
	CHECK(client_hear(fd) == -1);
	close(fd);
	run();
}

/* What was sent before the end is handled. */
static void check_farewell(void)
{
	int fd = client_connect();

	SAY(fd, HELLO "\0\1x\0\1y");
	close(fd);
	run();
	CHECK(handled_are("xy") && front.n_connections == 0 && users.incoming == 0);
}

/* Who does not read is not read from; who reads again loses nothing. */
static void check_unread(void)
{
	int fd = client_greet();
	size_t sent = 0, read = 0;
	ssize_t n;

	SAY(fd, "\0\1a");
	run();
	CHECK(handled_are("a"));
	for (int i = 0; i < 9; i++, sent += MESSAGE_MAX + 9)
		CHECK(say(last_fd, last_serial, MESSAGE_MAX) == FRONT_E_WAITS);
	run();
	CHECK(front_lags(&front, last_fd, last_serial) && !front.drained);
	SAY(fd, "\0\1b");
	run();
	CHECK(handled_are(""));
	do {
		n = client_hear(fd);
		read += n > 0 ? (size_t)n : 0;
		run();
	} while (read < sent && n != -2);
	CHECK(read == sent && front.drained && handled_are("b"));
	CHECK(!front_lags(&front, last_fd, last_serial) && front.n_unread == 0);
	/* Without end it is closed: more than the share. */
	users.share = (uint64_t)64 << 20;
	for (int i = 0; i < 70; i++)
		(void)say(last_fd, last_serial, MESSAGE_MAX);
	CHECK(front.n_unread > 60 && say(last_fd, last_serial, 1) == FRONT_E_GONE);
	users.share = 0;
	close(fd);
	run();
}

/* A socket that takes bytes again is no reason to write before the round is settled. */
static void check_settled(void)
{
	int fd = client_greet();
	ssize_t n;

	SAY(fd, "\0\1a");
	run();
	CHECK(handled_are("a"));
	for (int i = 0; i < 9; i++)
		CHECK(say(last_fd, last_serial, MESSAGE_MAX) == FRONT_E_WAITS);
	CHECK(client_hear(fd) == -1);
	run();
	do
		n = client_hear(fd);
	while (n > 0);
	CHECK(n == -1);
	for (int i = 0; i < 20; i++) {
		CHECK(event_wait(&loop, 0) == 0);
		event_dispatch(&loop, &(struct slice){.until = UINT64_MAX, .things = SIZE_MAX});
	}
	CHECK(client_hear(fd) == -1);
	run();
	CHECK(client_hear(fd) > 0);
	close(fd);
	run();
}

/* One user's messages that are begun and not sent. */
static void check_room(void)
{
	int fds[6], last;

	for (int i = 0; i < 6; i++) {
		fds[i] = client_greet();
		SAY(fds[i], "\2\0\0\0\0\0\20\0\0"
			    "some");
		run();
	}
	/* Room for four, and a header each. */
	last = client_greet();
	SAY(last, "\0\1s");
	run();
	CHECK(handled_are("s"));
	CHECK(users.incoming <= users.incoming_each);
	CHECK(users.incoming > 2 * MESSAGE_MAX);
	for (int i = 0; i < 5; i++)
		close(fds[i]);
	run();
	for (size_t n = 4; n < MESSAGE_MAX; n += 65536) {
		static const char piece[65536];

		client_say(fds[5], piece, MIN(sizeof(piece), MESSAGE_MAX - n));
		run();
	}
	CHECK(handled_are("s"));
	close(fds[5]);
	close(last);
	run();
	CHECK(users.incoming == 0 && front.n_connections == 0);
}

/* While others have turns, long requests of one user wait until the last long thing of that user is paid for. */
static void check_rest(void)
{
	static const char text[70000];
	int fds[2] = {client_greet(), client_greet()}, small = client_greet();
	struct user *user = user_get(&users, getuid());
	uint64_t due = event_now() + 200000;
	bool early = false;

	CHECK(party_waits(&user->party, &loop) == 0);
	user->party.due = due;
	CHECK(party_waits(&user->party, &loop) == 0);
	loop.changed = event_now();
	for (int i = 0; i < 2; i++) {
		SAY(fds[i], "\2\0\0\0\0\0\1\x11\x70");
		client_say(fds[i], text, sizeof(text));
	}
	SAY(small, "\0\1s");
	run();
	CHECK(handled_are("s") && front.n_connections == 3);
	while (handled_size < 2 && event_now() < due + 10 * 1000000ULL) {
		timer_run(&loop, &(struct slice){.until = UINT64_MAX, .things = SIZE_MAX});
		early |= event_now() < due - 1000 && handled_size > 0;
		run();
	}
	CHECK(!early && handled_size == 2 && list_empty(&user->resting));
	handled_size = 0;
	/* One that is there alone does not wait, nor does the end of one that waits matter. */
	user->party.due = event_now() + 10 * 1000000ULL;
	loop.changed = event_now();
	SAY(fds[0], "\2\0\0\0\0\0\1\x11\x70");
	client_say(fds[0], text, sizeof(text));
	run();
	CHECK(handled_size == 0 && !list_empty(&user->resting));
	close(fds[0]);
	loop.changed = 0;
	SAY(fds[1], "\2\0\0\0\0\0\1\x11\x70");
	client_say(fds[1], text, sizeof(text));
	while (handled_size < 2) {
		timer_run(&loop, &(struct slice){.until = UINT64_MAX, .things = SIZE_MAX});
		run();
		if (user->rest.index)
			user->rest.deadline = 0;
	}
	CHECK(handled_size == 2);
	handled_size = 0;
	user->party.due = loop.changed = 0;
	close(fds[1]);
	close(small);
	run();
	CHECK(front.n_connections == 0 && users.incoming == 0);
}

static void check_patience(void)
{
	const uint64_t second = 1000000;
	int quiet = client_connect(), begun = client_greet(), idle = client_greet(), unread = client_greet();
	uint64_t now;

	SAY(unread, "\0\1u");
	run();
	CHECK(handled_are("u") && say(last_fd, last_serial, MESSAGE_MAX) == FRONT_E_WAITS);
	SAY(begun, "\0\1");
	run();
	now = event_now();
	for (size_t i = 0; i < front.table_size; i++)
		if (front.table[i])
			connection_check(front.table[i], now + 4 * second);
	CHECK(front.n_connections == 4);
	for (size_t i = 0; i < front.table_size; i++)
		if (front.table[i])
			connection_check(front.table[i], now + 31 * second);
	CHECK(front.n_connections == 1);
	run();
	CHECK(client_hear(quiet) == 64);
	CHECK(client_hear(quiet) == -2);
	CHECK(client_hear(begun) == -2 && client_hear(idle) == -1);
	close(quiet);
	close(begun);
	close(idle);
	close(unread);
	run();
}

static void check_limit(void)
{
	int fds[4];

	front_limit(&front, &(struct front_limits){.connections_per_uid = 3});
	for (int i = 0; i < 4; i++)
		fds[i] = client_connect();
	run();
	CHECK(front.n_connections == 3 && front.n_refused[FRONT_REFUSED] == 1 && client_hear(fds[3]) == -2);
	close(fds[0]);
	close(fds[3]);
	run();
	fds[0] = client_greet();
	for (int i = 0; i < 3; i++)
		close(fds[i]);
	run();
	front_limit(&front, &(struct front_limits){.connections_per_uid = 1000});
}

static void check_no_descriptors(void)
{
	int fd = client_connect(), next = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	uint64_t before = front.n_refused[FRONT_REFUSED];
	struct rlimit limit, none;

	close(next);
	getrlimit(RLIMIT_NOFILE, &limit);
	none = (struct rlimit){.rlim_cur = (rlim_t)next, .rlim_max = limit.rlim_max};
	setrlimit(RLIMIT_NOFILE, &none);
	run();
	/* It is not left waiting, or it would be ready for ever. */
	CHECK(front.n_refused[FRONT_REFUSED] == before + 1 && client_hear(fd) == -2);
	setrlimit(RLIMIT_NOFILE, &limit);
	close(fd);
	close(client_greet());
	run();
}

/* What descends from the keeper is a session's. */
static void check_caged(void)
{
	uint64_t before = front.n_refused[FRONT_REFUSED];
	pid_t child;

	front.admission.keeper = getpid();
	child = fork();
	if (child == 0) {
		(void)client_connect();
		pause();
	}
	for (int i = 0; i < 1000 && front.n_refused[FRONT_REFUSED] == before; i++) {
		run();
		usleep(1000);
	}
	CHECK(front.n_refused[FRONT_REFUSED] == before + 1);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static struct user *turn_of(struct users *all, struct event_loop *at)
{
	struct user *user = users_turn(all);

	party_turn(&user->party, at, 0);
	return user;
}

/* Users take turns by the time that their requests take, and save none up. */
static void check_turns(void)
{
	struct user *heavy, *light, *next;
	struct event_loop none = {.clock = 0};
	struct users all;
	struct list a, b;
	int n_heavy = 0;

	users_init(&all);
	heavy = user_get(&all, 1);
	light = user_get(&all, 2);
	list_init(&a);
	list_init(&b);
	CHECK(!users_turn(&all) && user_get(&all, 1) == heavy);
	user_asks(heavy, &none, &a);
	for (int i = 0; i < 100; i++)
		turn_of(&all, &none)->party.spent += 100;
	user_asks(light, &none, &b);
	for (int i = 0; i < 110; i++) {
		next = turn_of(&all, &none);
		n_heavy += next == heavy;
		next->party.spent += next == heavy ? 100 : 10;
	}
	CHECK(n_heavy >= 9 && n_heavy <= 11);
	CHECK(user_next(heavy) == &a && users_turn(&all) == light);
	user_leave(light, &b);
	CHECK(!users_turn(&all));
	users_deinit(&all);
}

int main(void)
{
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/lair-unit-front-%d", getpid());
	CHECK(bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(listener, 64) == 0);
	CHECK(event_loop_init(&loop) == 0);
	users_init(&users);
	front_init(&front, &loop, &users, 1, MESSAGE_MAX, on_request);
	front_limit(&front, &(struct front_limits){.connections_per_uid = 1000});
	CHECK(front_listen(&front, listener) == 0);
	check_answers();
	check_farewell();
	check_unread();
	check_settled();
	check_room();
	check_rest();
	check_patience();
	check_limit();
	check_no_descriptors();
	check_turns();
	check_caged();
	front_deinit(&front);
	users_deinit(&users);
	event_loop_deinit(&loop);
	close(listener);
	unlink(address.sun_path);
	return check_report();
}
