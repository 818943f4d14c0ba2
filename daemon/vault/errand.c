/* Messages to the keeper about processes and workspaces. */
#include "errand.h"

#include "base/log.h"
#include "proto/event.h"

#include "proto/channel.h"
#include "proto/paths.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

int keeper_tell(const struct keeper_message *message, const int *fds, size_t n_fds)
{
	struct bytes data = {.data = (const char *)message, .size = keeper_message_size(message->op)};
	struct pollfd writable = {.fd = KEEPER_FD, .events = POLLOUT};
	int r;

	while ((r = channel_send(KEEPER_FD, data, fds, n_fds)) == CHANNEL_E_EMPTY || r == -ETOOMANYREFS)
		(void)poll(&writable, 1, r == CHANNEL_E_EMPTY ? -1 : 1);
	return r;
}

int errand_start_template(const char *profile, const char *language, unsigned python, uint32_t serial, int theirs)
{
	struct keeper_message message = {.op = KEEPER_START_TEMPLATE, .serial = serial, .name = {.number = python}};
	size_t used = (size_t)snprintf(message.profile, sizeof(message.profile), "%s", profile) + 1;
	int r;

	if (strcmp(language, LANGUAGE_OWN) != 0) {
		if (used + strlen(language) >= sizeof(message.profile))
			return -ENAMETOOLONG;
		memcpy(message.profile + used, language, strlen(language));
	}
	r = keeper_tell(&message, &theirs, 1);
	return r > 0 ? -EPIPE : r;
}

static int start_on(enum keeper_op op, int theirs)
{
	const struct keeper_message message = {.op = op};
	int r = keeper_tell(&message, &theirs, 1);

	return r > 0 ? -EPIPE : r;
}

int errand_start_builder(int theirs)
{
	return start_on(KEEPER_START_BUILDER, theirs);
}

int errand_start_copier(int theirs)
{
	return start_on(KEEPER_START_COPIER, theirs);
}

static void have_removed(const char *path, const int *directory)
{
	struct keeper_message message = {.op = KEEPER_REMOVE_TREE};

	snprintf(message.path, sizeof(message.path), "%s", path);
	if (keeper_tell(&message, directory, directory != NULL))
		log_error(NULL, "cannot have %s removed", path);
}

void errand_remove_tree(const char *path)
{
	if (rmdir(path) < 0 && errno != ENOENT)
		have_removed(path, NULL);
}

void errand_remove_from(int directory, const char *path)
{
	have_removed(path, &directory);
}

void errand_beat(void)
{
	static uint64_t last;
	struct keeper_message beat = {.op = KEEPER_BEAT};
	uint64_t now = event_now();

	if (now - last < ERRAND_BEAT_US)
		return;
	last = now;
	(void)keeper_tell(&beat, NULL, 0);
}

void errand_stopping(uint64_t ms)
{
	const struct keeper_message beat = {.op = KEEPER_BEAT, .serial = (uint32_t)MIN(ms, (uint64_t)UINT32_MAX)};

	(void)keeper_tell(&beat, NULL, 0);
}
