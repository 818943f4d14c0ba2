/* stdout, which nobody may be reading: messages that do not fit wait here, and nothing blocks. */
#pragma once

#include "proto/base.h"

#include <jansson.h>

struct outbox {
	int fd;
	char *data;
	size_t allocated, start, end;
};

void outbox_init(struct outbox *outbox, int fd);
void outbox_deinit(struct outbox *outbox);

/* Adds one document, as a line; it is taken over; NULL is fine. Returns 0 or -ENOMEM. */
int outbox_add(struct outbox *outbox, json_t *document);
/* Write as much as possible without waiting. Returns 0; or -errno if nobody reads any more. */
int outbox_flush(struct outbox *outbox);

static inline size_t outbox_waiting(const struct outbox *outbox)
{
	return outbox->end - outbox->start;
}
