/* Any bytes through the scanner and, if they are a frame, through every decoder; what decodes must encode. */
#include "../unit/messages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wire_frame frame;
	struct wire_fault fault;
	_Alignas(16) char decoded[1024];
	struct bytes item;
	uint64_t id;

	if (wire_open(&frame, (struct bytes){.data = (const char *)data, .size = size}))
		return 0;
	(void)wire_find_id(&id, frame.body);
	for (size_t cursor = 0; wire_next_string(frame.body, &cursor, &item);)
		;
	messages_for_each(at)
	{
		msgpack_sbuffer buffer;

		if ((*at)->schema->size > sizeof(decoded))
			abort();
		if (wire_decode(decoded, (*at)->schema, frame.body, &fault)) {
			(void)wire_decode_known(decoded, (*at)->schema, frame.body, &fault);
			continue;
		}
		msgpack_sbuffer_init(&buffer);
		if (wire_encode(&buffer, (*at)->schema, decoded) || wire_open(&frame, wire_bytes(&buffer)) ||
		    wire_decode(decoded, (*at)->schema, frame.body, &fault))
			abort();
		msgpack_sbuffer_destroy(&buffer);
		break;
	}
	return 0;
}
