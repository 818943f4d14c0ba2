/* Starting a daemon that is not there: what it is started with, and what is said of one that cannot start. The
 * daemons here are shell scripts in PATH; where one has to answer, a router in a thread does it for them. */
#include "check.h"

#include "proto/message.h"

#include "lair.h"

#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <zmq.h>

static char directory[] = "/tmp/lair-unit-XXXXXX";

static const char *in_directory(const char *name)
{
	static __thread char paths[4][128];
	static __thread unsigned n;
	char *path = paths[n++ % ARRAY_SIZE(paths)];

	snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
	return path;
}

static void laird_is(const char *script)
{
	FILE *file = fopen(in_directory("laird.new"), "w");

	fprintf(file, "#!/bin/sh\nhere=%s\n%s\n", directory, script);
	fclose(file);
	CHECK(chmod(in_directory("laird.new"), 0700) == 0);
	/* The last one may be about to be executed still, and cannot be written to meanwhile. */
	CHECK(rename(in_directory("laird.new"), in_directory("laird")) == 0);
}

static char *contents(const char *name)
{
	static char text[4096];
	FILE *file = fopen(in_directory(name), "r");

	text[file ? fread(text, 1, sizeof(text) - 1, file) : 0] = '\0';
	if (file)
		fclose(file);
	return text;
}

static int attempt(struct lair **lairp, const char *config, double timeout)
{
	struct lair_options options = {.socket = in_directory("run/socket"), .config = config, .timeout = timeout};

	CHECK(lair_new(lairp, &options) == 0);
	return lair_connect(*lairp);
}

static void check_failures(void)
{
	struct lair *lair = NULL;

	CHECK(attempt(&lair, NULL, 5) == LAIR_E_START && strstr(lair_error(lair), "cannot run laird"));
	lair_free(lair);
	laird_is("echo 'sessions.conf:3: cell_timeot: no such key' >&2; echo 'a second line' >&2; exit 2");
	CHECK(attempt(&lair, NULL, 5) == LAIR_E_START);
	CHECK(strcmp(lair_error(lair), "sessions.conf:3: cell_timeot: no such key\na second line") == 0);
	lair_free(lair);
	laird_is("exit 7");
	CHECK(attempt(&lair, NULL, 5) == LAIR_E_START && strstr(lair_error(lair), "status 7"));
	CHECK(strstr(lair_error(lair), "run/laird.log"));
	lair_free(lair);
	laird_is("kill -9 $$");
	CHECK(attempt(&lair, NULL, 5) == LAIR_E_START && strstr(lair_error(lair), "status 137"));
	lair_free(lair);
	CHECK(attempt(&lair, "/nonexistent.conf", 5) == LAIR_E_START &&
	      strstr(lair_error(lair), "/nonexistent.conf"));
	lair_free(lair);
	CHECK(strstr(contents("run/laird.log"), "a second line"));
}

static void check_patience(void)
{
	struct lair *lair = NULL;

	laird_is("trap 'echo ended > $here/ended; exit 0' TERM; sleep 60 & wait");
	CHECK(attempt(&lair, NULL, 1.5) == -ETIMEDOUT && strstr(lair_error(lair), "not ready within 1.5 seconds"));
	lair_free(lair);
	/* What nobody waits for any more does not stay. */
	for (int i = 0; i < 200 && !*contents("ended"); i++)
		usleep(10000);
	CHECK(strcmp(contents("ended"), "ended\n") == 0);
	laird_is("echo x >> $here/tries; exit 3");
	CHECK(attempt(&lair, NULL, 1.5) == -ETIMEDOUT && strstr(lair_error(lair), "socket.lock"));
	CHECK(strlen(contents("tries")) >= 4);
	lair_free(lair);
	/* Whose time is up while one of its attempts is under way has learnt as much from those before. */
	laird_is("[ -e $here/once ] && sleep 60; touch $here/once; exit 3");
	CHECK(attempt(&lair, NULL, 1.5) == -ETIMEDOUT && strstr(lair_error(lair), "socket.lock"));
	lair_free(lair);
}

/* Answers one hello, once the script below has said that it has been started. */
static void *peer_run(void *unused)
{
	void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_ROUTER);
	struct hello_reply reply = {.version = 1, .server = BYTES("test"), .pid = 1, .frame_max = 4096};
	msgpack_sbuffer buffer;
	struct wire_frame frame;
	char endpoint[160];
	zmq_msg_t identity, message;

	while (access(in_directory("started"), F_OK) < 0)
		usleep(1000);
	snprintf(endpoint, sizeof(endpoint), "ipc://%s/run/socket", directory);
	CHECK(zmq_bind(socket, endpoint) == 0);
	fclose(fopen(in_directory("bound"), "w"));
	zmq_msg_init(&identity);
	zmq_msg_init(&message);
	zmq_msg_recv(&identity, socket, 0);
	zmq_msg_recv(&message, socket, 0);
	CHECK(wire_open(&frame, (struct bytes){.data = zmq_msg_data(&message), .size = zmq_msg_size(&message)}) ==
	      0);
	CHECK(wire_find_id(&reply.id, frame.body));
	zmq_msg_close(&message);
	msgpack_sbuffer_init(&buffer);
	wire_encode(&buffer, &hello_reply_schema, &reply);
	zmq_msg_send(&identity, socket, ZMQ_SNDMORE);
	zmq_send(socket, buffer.data, buffer.size, 0);
	msgpack_sbuffer_destroy(&buffer);
	zmq_close(socket);
	zmq_ctx_term(context);
	return unused;
}

static void check_success(void)
{
	pthread_t peer;
	struct lair *lair = NULL;
	char expected[512];
	sigset_t blocked;
	int leaked, r;

	/* All this must not reach the daemon. */
	leaked = dup(1);
	signal(SIGINT, SIG_IGN);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &blocked, NULL);
	fclose(fopen(in_directory("our.conf"), "w"));
	laird_is("exec 2> $here/trouble\n"
		 "echo $* > $here/arguments\n"
		 "pwd > $here/where\n"
		 "(ls /proc/self/fd | tr '\\n' ' ') > $here/fds\n"
		 "readlink /proc/self/fd/0 >> $here/where\n"
		 "grep -E '^Sig(Blk|Ign)' /proc/self/status > $here/signals\n"
		 "cut -d' ' -f4,6 /proc/$$/stat > $here/parents\n"
		 "touch $here/started\n"
		 "until [ -e $here/bound ]; do sleep 0.01; done\n"
		 "echo >&3\n");
	pthread_create(&peer, NULL, peer_run, NULL);
	CHECK(chdir(directory) == 0);
	r = attempt(&lair, "our.conf", 10);
	CHECK(r == 0 && lair_started(lair));
	lair_free(lair);
	pthread_join(peer, NULL);
	close(leaked);
	snprintf(expected, sizeof(expected), "--socket %s/run/socket --config %s/our.conf --ready-fd=3\n",
		 directory, directory);
	CHECK(strcmp(contents("arguments"), expected) == 0);
	CHECK(strcmp(contents("where"), "/\n/dev/null\n") == 0);
	CHECK(strstr(contents("signals"), "SigBlk:\t0000000000000000"));
	CHECK(strstr(contents("signals"), "SigIgn:\t0000000000000000"));
	/* 0 to 3 and what ls has opened itself. */
	CHECK(strcmp(contents("fds"), "0 1 2 3 4 ") == 0);
	CHECK(*contents("trouble") == '\0');
	/* No child is left with us. */
	CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

int main(void)
{
	char command[160];

	CHECK(mkdtemp(directory) != NULL);
	snprintf(command, sizeof(command), "%s:/usr/bin:/bin", directory);
	setenv("PATH", command, 1);
	check_failures();
	check_patience();
	check_success();
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	CHECK(system(command) == 0);
	return check_report();
}
