#include "fakes/front.h"

static void ignore(uint64_t connection, struct bytes message)
{
	(void)connection;
	(void)message;
}

void (*fake_front_on_message)(uint64_t connection, struct bytes message) = ignore;
unsigned fake_front_hung_up;
int fake_front_result;

int front_send(struct front *front, int fd, uint64_t serial, struct text *text)
{
	struct iovec parts[TEXT_PARTS_MAX];
	size_t n = text_parts(text, parts), size = 0;
	char *whole = malloc(text_size(text) + 1);

	(void)front;
	(void)fd;
	for (size_t i = 0; i < n && whole; size += parts[i++].iov_len)
		memcpy(whole + size, parts[i].iov_base, parts[i].iov_len);
	if (fake_front_result != FRONT_E_GONE)
		fake_front_on_message(serial, (struct bytes){.data = whole, .size = size});
	free(whole);
	return fake_front_result;
}

void front_hang_up(struct front *front, int fd, uint64_t serial)
{
	(void)front;
	(void)fd;
	(void)serial;
	fake_front_hung_up++;
}

bool front_has(const struct front *front, int fd, uint64_t serial)
{
	(void)front;
	(void)fd;
	return serial != 0;
}

bool front_lags(const struct front *front, int fd, uint64_t serial)
{
	(void)front;
	(void)fd;
	(void)serial;
	return fake_front_result == FRONT_E_WAITS;
}

void front_flush(struct front *front)
{
	(void)front;
}

void front_deinit(struct front *front)
{
	(void)front;
}

uint64_t front_refusals(const struct front *front)
{
	(void)front;
	return 0;
}
