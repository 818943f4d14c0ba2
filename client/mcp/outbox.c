/* What a client is told waits here until there is room for it. */
#include "outbox.h"

#include "text.h"

#define FORM (JSON_COMPACT | JSON_REAL_PRECISION(15))

void outbox_init(struct outbox *outbox, int fd)
{
	*outbox = (struct outbox){.fd = fd};
}

void outbox_deinit(struct outbox *outbox)
{
	free(outbox->data);
	outbox_init(outbox, outbox->fd);
}

static int room_make(struct outbox *outbox, size_t size)
{
	size_t waiting = outbox_waiting(outbox), allocated = MAX(outbox->allocated, (size_t)4096);
	char *grown;

	if (outbox->start > 0) {
		memmove(outbox->data, outbox->data + outbox->start, waiting);
		outbox->start = 0;
		outbox->end = waiting;
	}
	while (allocated - waiting < size)
		allocated *= 2;
	grown = realloc(outbox->data, allocated);
	if (!grown)
		return -ENOMEM;
	outbox->data = grown;
	outbox->allocated = allocated;
	return 0;
}

int outbox_add(struct outbox *outbox, json_t *document)
{
	size_t size = json_dumpb(document, NULL, 0, FORM);
	int r = document ? room_make(outbox, size + 1) : -ENOMEM;

	if (!r) {
		outbox->end += json_dumpb(document, outbox->data + outbox->end, size, FORM);
		outbox->data[outbox->end++] = '\n';
	}
	json_decref(document);
	return r;
}

int outbox_flush(struct outbox *outbox)
{
	while (outbox_waiting(outbox) > 0) {
		ssize_t n = write_some(outbox->fd, outbox->data + outbox->start, outbox_waiting(outbox));

		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		outbox->start += n > 0 ? (size_t)n : 0;
	}
	outbox->start = outbox->end = 0;
	return 0;
}
