/* Both ends of the copier. An order is one datagram with one or two descriptors, its answer another one. */
#include "copier.h"

#include "vault/errand.h"

#include "proto/channel.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#define PIECE (256U << 10)

enum copier_op { COPIER_COPY, COPIER_SYNC };

struct order {
	uint32_t op, spare;
	struct copy_order copy;
};

struct answer {
	int32_t error;
	uint8_t digest[SHA256_SIZE];
};

/* ---- the router's end ---- */

static void on_answer(struct event_source *source, uint32_t events)
{
	struct copier *copier = container_of(source, struct copier, source);
	int r, fds[CHANNEL_FDS_MAX];
	struct answer answer;
	struct bytes data;
	size_t n_fds;

	r = channel_recv(copier->channel, (char *)&answer, sizeof(answer), &data, fds, &n_fds);
	if (r == CHANNEL_E_EMPTY)
		return;
	for (size_t i = 0; !r && i < n_fds; i++)
		fd_close(fds[i]);
	if (!r && data.size != sizeof(answer))
		r = -EPROTO;
	/* It is heard again when it has another order. */
	event_change(copier->loop, source, 0);
	if (r)
		copier->on_done(copier, r == CHANNEL_E_EOF ? -EPIPE : r, NULL);
	else
		copier->on_done(copier, MIN(answer.error, 0), answer.digest);
}

int copier_begin(struct copier *copier, struct event_loop *loop)
{
	_cleanup_(fd_closep) int theirs = -1;
	int r;

	*copier = COPIER_NONE;
	copier->loop = loop;
	r = channel_pair(&copier->channel, &theirs);
	if (!r)
		r = errand_start_copier(theirs);
	if (!r)
		r = event_add(loop, &copier->source, copier->channel, 0, on_answer);
	if (r)
		copier_end(copier);
	return r;
}

static int give(struct copier *copier, const struct order *order, const int *fds, size_t n_fds,
		void (*on_done)(struct copier *copier, int r, const uint8_t *digest))
{
	int r = channel_send(copier->channel, (struct bytes){(const char *)order, sizeof(*order)}, fds, n_fds);

	if (r)
		return r > 0 ? -EPIPE : r;
	copier->on_done = on_done;
	event_change(copier->loop, &copier->source, EPOLLIN);
	return 0;
}

int copier_copy(struct copier *copier, const struct copy_order *order, int from, int to,
		void (*on_done)(struct copier *copier, int r, const uint8_t *digest))
{
	const struct order whole = {.op = COPIER_COPY, .copy = *order};
	const int fds[] = {from, to};

	return give(copier, &whole, fds, to < 0 ? 1 : 2, on_done);
}

int copier_sync(struct copier *copier, int fd, void (*on_done)(struct copier *copier, int r, const uint8_t *digest))
{
	const struct order order = {.op = COPIER_SYNC};

	return give(copier, &order, &fd, 1, on_done);
}

void copier_end(struct copier *copier)
{
	if (copier->channel < 0)
		return;
	event_remove(copier->loop, &copier->source);
	copier->channel = fd_close(copier->channel);
}

/* ---- the process ---- */

static int write_all(int to, const char *data, size_t size, off_t at)
{
	while (size > 0) {
		ssize_t n = pwrite(to, data, size, at);

		if (n <= 0 && errno != EINTR)
			return n < 0 ? -errno : -ENOSPC;
		n = MAX(n, 0);
		data += n;
		size -= (size_t)n;
		at += n;
	}
	return 0;
}

/* Nobody waits for it any more. */
static bool abandoned(void)
{
	struct pollfd channel = {.fd = COPIER_FD};

	return poll(&channel, 1, 0) > 0;
}

/* The session may still write to @from. What is written is what the digest is of, because both have one reading. */
static int copy(const struct copy_order *order, int from, int to, struct sha256 *sha256)
{
	static char buffer[PIECE];
	uint64_t done = 0;
	int r = 0;

	while (!r && done < order->size) {
		size_t size = (size_t)MIN(order->size - done, (uint64_t)PIECE), skip;
		ssize_t n = pread(from, buffer, size, (off_t)(order->from_at + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EBADMSG;
		skip = done < order->skip ? (size_t)MIN(order->skip - done, (uint64_t)n) : 0;
		sha256_add(sha256, (struct bytes){buffer + skip, (size_t)n - skip});
		if (to >= 0)
			r = write_all(to, buffer, (size_t)n, (off_t)(order->to_at + done));
		done += (uint64_t)n;
		r = !r && abandoned() ? -EPIPE : r;
	}
	return r;
}

/* A file that is new, and the directory that it is in, may have been made a moment ago. */
static int sync_up(int fd)
{
	struct stat status, above;
	int r = fsync(fd) < 0 ? -errno : 0;

	if (r || fstat(fd, &status) < 0 || !S_ISDIR(status.st_mode))
		return r;
	for (int up = fcntl(fd, F_DUPFD_CLOEXEC, 0), next; up >= 0; up = next) {
		next = openat(up, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		fd_close(up);
		if (next >= 0 && (fstat(next, &above) < 0 || above.st_dev != status.st_dev ||
				  above.st_ino == status.st_ino || fsync(next) < 0))
			next = fd_close(next);
		status = above;
	}
	return 0;
}

static void obey(struct answer *answer, const struct order *order, const int *fds, size_t n_fds)
{
	struct sha256 sha256;

	*answer = (struct answer){.error = -EPROTO};
	sha256_begin(&sha256);
	if (order->op == COPIER_SYNC && n_fds == 1)
		answer->error = sync_up(fds[0]);
	else if (order->op == COPIER_COPY && n_fds > 0)
		answer->error = copy(&order->copy, fds[0], n_fds > 1 ? fds[1] : -1, &sha256);
	sha256_end(&sha256, answer->digest);
}

/* Returns 0, CHANNEL_E_EMPTY, CHANNEL_E_EOF or -errno. */
static int step(int channel)
{
	struct pollfd readable = {.fd = channel, .events = POLLIN};
	int r, fds[CHANNEL_FDS_MAX];
	struct answer answer;
	struct order order;
	struct bytes data;
	size_t n_fds;

	(void)poll(&readable, 1, -1);
	r = channel_recv(channel, (char *)&order, sizeof(order), &data, fds, &n_fds);
	if (r)
		return r;
	if (data.size != sizeof(order))
		order.op = UINT32_MAX;
	obey(&answer, &order, fds, n_fds);
	for (size_t i = 0; i < n_fds; i++)
		fd_close(fds[i]);
	return channel_send(channel, (struct bytes){(const char *)&answer, sizeof(answer)}, NULL, 0);
}

int copier_run(void)
{
	int r;

	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
	(void)prctl(PR_SET_NAME, "laird");
	(void)prctl(PR_SET_DUMPABLE, 0);
	do
		r = step(COPIER_FD);
	while (!r || r == CHANNEL_E_EMPTY);
	return r == CHANNEL_E_EOF ? EXIT_SUCCESS : EXIT_FAILURE;
}
