/* The least that a worker behind a ZeroMQ router can be, on the machine that it runs on: a client's DEALER, a
 * broker's ROUTER, and a process behind a socket that sends back what it gets. No daemon, no cage, no Python. Each
 * line of the output is one sample, in microseconds. usage: bare_broker COUNT GAP_US */
#include "clock.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

#define MESSAGE 64
#define IDENTITY 16

static void check(int result, const char *what)
{
	if (result >= 0)
		return;
	perror(what);
	exit(EXIT_FAILURE);
}

static void work(int channel)
{
	char message[MESSAGE];
	ssize_t size;

	while ((size = recv(channel, message, sizeof(message), 0)) > 0)
		check((int)send(channel, message, (size_t)size, 0), "send");
}

static void route(void *router, int worker)
{
	char identity[IDENTITY], message[MESSAGE];

	for (;;) {
		int n = zmq_recv(router, identity, sizeof(identity), 0);
		int size = zmq_recv(router, message, sizeof(message), 0);

		check(n, "zmq_recv");
		check(size, "zmq_recv");
		check((int)send(worker, message, (size_t)size, 0), "send");
		size = (int)recv(worker, message, sizeof(message), 0);
		check(size, "recv");
		check(zmq_send(router, identity, (size_t)n, ZMQ_SNDMORE), "zmq_send");
		check(zmq_send(router, message, (size_t)size, 0), "zmq_send");
	}
}

static pid_t child(void)
{
	pid_t pid = fork();

	check(pid, "fork");
	if (pid == 0)
		check(prctl(PR_SET_PDEATHSIG, SIGKILL), "prctl");
	return pid;
}

static void serve(const char *endpoint)
{
	int pair[2];
	void *router;

	check(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), "socketpair");
	if (child() == 0) {
		close(pair[0]);
		work(pair[1]);
		exit(EXIT_SUCCESS);
	}
	close(pair[1]);
	router = zmq_socket(zmq_ctx_new(), ZMQ_ROUTER);
	check(zmq_bind(router, endpoint), "zmq_bind");
	route(router, pair[0]);
}

static void measure(const char *endpoint, long count, long gap_us)
{
	void *dealer = zmq_socket(zmq_ctx_new(), ZMQ_DEALER);
	char message[MESSAGE] = "";

	check(zmq_connect(dealer, endpoint), "zmq_connect");
	/* The first one makes the connection. */
	for (long i = 0; i <= count; i++) {
		double began;

		pause_us(gap_us);
		began = now_us();
		check(zmq_send(dealer, message, sizeof(message), 0), "zmq_send");
		check(zmq_recv(dealer, message, sizeof(message), 0), "zmq_recv");
		if (i > 0)
			printf("%.1f\n", now_us() - began);
	}
}

int main(int argc, char *argv[])
{
	char directory[] = "/tmp/bare_broker.XXXXXX", path[64], endpoint[80];
	pid_t broker;

	if (argc != 3) {
		fputs("usage: bare_broker COUNT GAP_US\n", stderr);
		return EXIT_FAILURE;
	}
	if (!mkdtemp(directory)) {
		perror(directory);
		return EXIT_FAILURE;
	}
	snprintf(path, sizeof(path), "%s/socket", directory);
	snprintf(endpoint, sizeof(endpoint), "ipc://%s", path);
	broker = child();
	if (broker == 0)
		serve(endpoint);
	measure(endpoint, strtol(argv[1], NULL, 10), strtol(argv[2], NULL, 10));
	kill(broker, SIGKILL);
	unlink(path);
	rmdir(directory);
	return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
