/* Messages to the client wait here until there is room for them. */
#include "outbox.h"

#include "json.h"
#include "text.h"

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
	_cleanup_(freep) char *line = json_line(document);
	size_t size = line ? strlen(line) : 0;
	int r = line ? room_make(outbox, size) : -ENOMEM;

	if (!r) {
		memcpy(outbox->data + outbox->end, line, size);
		outbox->end += size;
	}
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
