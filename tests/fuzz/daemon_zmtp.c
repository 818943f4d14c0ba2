/* Whatever a client sends: what is told of it does not depend on how it is cut, lies within what came, and never
 * wants more than a message may have. The first byte says how the rest is cut. */
#include "front/zmtp.h"

#define MESSAGE_MAX 5000

static uint64_t mix(uint64_t hash, const void *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		hash = (hash ^ ((const uint8_t *)data)[i]) * 0x100000001b3ULL;
	return hash;
}

/* A number for all that was told. */
static uint64_t told(struct bytes stream, size_t cut)
{
	struct zmtp zmtp = {.message_max = MESSAGE_MAX};
	size_t start = 0, end = 0, used;
	struct zmtp_item item;
	uint64_t hash = 0, wanted;
	const char *why;
	int r;

	for (;;) {
		r = zmtp_next(&zmtp, (struct bytes){.data = stream.data + start, .size = end - start}, &item, &used,
			      &wanted, &why);
		if (used > end - start || (r == ZMTP_E_MORE && wanted > MAX(MESSAGE_MAX, ZMTP_COMMAND_MAX) + 9))
			abort();
		if (!r) {
			hash = mix(hash, &item.kind, sizeof(item.kind));
			hash = item.data.size ? mix(hash, item.data.data, item.data.size) : hash;
			if (item.data.size && (item.data.data < stream.data + start ||
					       item.data.data + item.data.size > stream.data + start + used))
				abort();
		}
		start += used;
		if (r == ZMTP_E_BROKEN)
			return mix(hash, why, strlen(why));
		if (r == ZMTP_E_MORE && end == stream.size)
			return hash;
		if (r == ZMTP_E_MORE)
			end = MIN(end + cut, stream.size);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes stream = {.data = (const char *)data + 1, .size = size ? size - 1 : 0};

	if (size > 0 && told(stream, 1U + data[0]) != told(stream, MAX(stream.size, (size_t)1)))
		abort();
	return 0;
}
