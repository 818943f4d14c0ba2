/* What keeper and router say to each other. */
#include "state.h"

#include "base/descriptors.h"
#include "base/log.h"
#include "base/spawn.h"
#include "notify.h"
#include "program.h"

#include "proto/channel.h"
#include "proto/clock.h"

#include <inttypes.h>
#include <stdio.h>

size_t keeper_message_size(enum keeper_op op)
{
	return op == KEEPER_REMOVE_TREE ? sizeof(struct keeper_message) : offsetof(struct keeper_message, path);
}

int keeper_tell_router(struct keeper *keeper, const struct keeper_message *message, const int *fds, size_t n_fds)
{
	struct bytes data = {.data = (const char *)message, .size = keeper_message_size(message->op)};

	return channel_send(keeper->channel, data, fds, n_fds);
}

/* Not valid if it does not end. */
static const char *language_of(const struct keeper_message *request)
{
	const char *language = request->profile + strlen(request->profile) + 1;
	const char *end = request->profile + sizeof(request->profile);

	if (language >= end || !*language)
		return LANGUAGE_OWN;
	return memchr(language, '\0', (size_t)(end - language)) ? language : "?";
}

static void on_start_template(struct keeper *keeper, const struct keeper_message *request, int *fds, size_t n_fds)
{
	struct keeper_message reply = {.op = KEEPER_STARTED, .serial = request->serial};
	_cleanup_(fd_closep) int pidfd = -1;
	pid_t pid = 0;
	int r;

	if (keeper->router == 0)
		return;
	r = program_start(&pid, request->profile, language_of(request), (unsigned)request->name.number,
			  keeper->options->socket, fds[0]);
	reply.error = r;
	reply.pid = pid;
	if (r == 0)
		pidfd = spawn_pidfd(pid);
	r = keeper_tell_router(keeper, &reply, &pidfd, pidfd >= 0);
	if (r == 0)
		return;
	/* The router has died, or reads so slowly that it is beyond help: it never learns of this template. */
	log_warn(NULL, "the router does not take its template %d", (int)pid);
	if (pid > 0)
		(void)kill(pid, SIGKILL);
}

/* One type for all that may come, and one of them takes the descriptors.
 * NOLINTBEGIN(readability-non-const-parameter) */

static void on_remove_tree(struct keeper *keeper, const struct keeper_message *request, int *fds, size_t n_fds)
{
	removals_add(&keeper->removals, n_fds > 0 ? steal_fd(&fds[0]) : -1, request->path);
}

static void on_ready(struct keeper *keeper, const struct keeper_message *request, int *fds, size_t n_fds)
{
	keeper->was_ready = keeper->is_ready = true;
	keeper_pay(keeper);
	if (keeper->ready >= 0 && write(keeper->ready, "\n", 1) < 0)
		log_warn(NULL, "nobody waits for laird to be ready: %s", strerror(errno));
	fd_closep(&keeper->ready);
	notify_manager("READY=1");
}

static void on_store(struct keeper *keeper, const struct keeper_message *request, int *fds, size_t n_fds)
{
	if (request->serial)
		handover_leave_ledger(&keeper->handover, &request->name, fds[0]);
	if (store_put(&keeper->store, &request->name, fds, n_fds) < 0)
		log_error(NULL, "no memory is left to hold the router's things");
	for (size_t i = 0; i < n_fds; i++)
		fds[i] = -1;
}

static void on_forget(struct keeper *keeper, const struct keeper_message *request, int *fds, size_t n_fds)
{
	store_forget(&keeper->store, &request->name);
}

static void on_start_builder(struct keeper *keeper, const struct keeper_message *request, int *fds, size_t n_fds)
{
	(void)program_start_builder(fds[0]);
}

static void on_start_copier(struct keeper *keeper, const struct keeper_message *request, int *fds, size_t n_fds)
{
	(void)program_start_copier(fds[0]);
}

static void on_beat(struct keeper *keeper, const struct keeper_message *request, int *fds, size_t n_fds)
{
	char extend[64];

	pulse_heard(&keeper->pulse, clock_ms());
	if (!request->serial || !keeper_stops(keeper) || keeper->stop_deadline == UINT64_MAX)
		return;
	keeper->stop_deadline = clock_ms() + request->serial + STOP_LIMIT_MS;
	snprintf(extend, sizeof(extend), "EXTEND_TIMEOUT_USEC=%" PRIu64,
		 ((uint64_t)request->serial + STOP_LIMIT_MS) * 1000);
	notify_manager(extend);
}
/* NOLINTEND(readability-non-const-parameter) */

static const struct {
	void (*fn)(struct keeper *keeper, const struct keeper_message *request, int *fds, size_t n_fds);
	size_t n_fds, n_fds_max;
} requests[] = {
	[KEEPER_START_TEMPLATE] = {on_start_template, 1, 1},
	[KEEPER_READY] = {on_ready, 0, 0},
	[KEEPER_REMOVE_TREE] = {on_remove_tree, 0, 1},
	[KEEPER_STORE] = {on_store, 1, STORE_FDS_MAX},
	[KEEPER_FORGET] = {on_forget, 0, 0},
	[KEEPER_BEAT] = {on_beat, 0, 0},
	[KEEPER_START_BUILDER] = {on_start_builder, 1, 1},
	[KEEPER_START_COPIER] = {on_start_copier, 1, 1},
};
_Static_assert(STORE_FDS_MAX <= CHANNEL_FDS_MAX, "one message is one item");

static bool request_valid(const struct keeper_message *request, size_t size, size_t n_fds)
{
	return size >= offsetof(struct keeper_message, path) && request->op < ARRAY_SIZE(requests) &&
	       requests[request->op].fn && size == keeper_message_size(request->op) &&
	       n_fds >= requests[request->op].n_fds && n_fds <= requests[request->op].n_fds_max &&
	       memchr(request->profile, 0, sizeof(request->profile)) &&
	       memchr(request->path, 0, sizeof(request->path));
}

/* The keeper had no room for the descriptors of a message: the router is not to blame. A template is not
 * started. A thing is not stored, and an older one under its name is out of date. */
static void descriptors_lost(struct keeper *keeper, const struct keeper_message *request, size_t size)
{
	struct keeper_message answer = {.op = KEEPER_STARTED, .serial = request->serial, .error = -EMFILE};

	if (!keeper->short_of_descriptors)
		log_error(NULL,
			  "no descriptors are left for those that the router stores: sessions may not outlive it");
	keeper->short_of_descriptors = true;
	if (size == keeper_message_size(KEEPER_START_TEMPLATE) && request->op == KEEPER_START_TEMPLATE)
		(void)keeper_tell_router(keeper, &answer, NULL, 0);
	else if (size == keeper_message_size(KEEPER_STORE) && request->op == KEEPER_STORE)
		store_forget(&keeper->store, &request->name);
}

int keeper_hear(struct keeper *keeper)
{
	struct keeper_message request = {0};
	int fds[CHANNEL_FDS_MAX];
	struct bytes data;
	size_t n_fds;
	int r;

	/* Enough descriptors are left to start another router. */
	descriptors_limit(false);
	r = channel_recv(keeper->channel, (char *)&request, sizeof(request), &data, fds, &n_fds);
	descriptors_limit(true);
	if (r == -EMFILE) {
		descriptors_lost(keeper, &request, data.size);
		return 0;
	}
	if (r != 0)
		return r;
	if (request_valid(&request, data.size, n_fds))
		requests[request.op].fn(keeper, &request, fds, n_fds);
	else
		r = -EPROTO;
	for (size_t i = 0; i < n_fds; i++)
		fd_closep(&fds[i]);
	return r;
}

void keeper_hand_over(struct keeper *keeper)
{
	struct keeper_message end = {.op = KEEPER_END, .error = keeper->last_end};
	struct store_item *item;

	while ((item = store_next(&keeper->store))) {
		struct keeper_message held = {.op = KEEPER_HELD, .name = item->name};

		if (keeper_tell_router(keeper, &held, item->fds, item->n_fds)) {
			store_again(&keeper->store);
			return;
		}
	}
	keeper->handing = keeper_tell_router(keeper, &end, NULL, 0) != 0;
}
