/* Any bytes through the scanner and, if they are a frame, through every decoder; what decodes must encode. */
#include "proto/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct wire_schema *const schemas[] = {
	&hello_request_schema,	   &open_request_schema,   &exec_request_schema,   &input_request_schema,
	&interrupt_request_schema, &info_request_schema,   &list_request_schema,   &error_reply_schema,
	&exec_reply_schema,	   &session_info_schema,   &list_reply_schema,	   &stats_reply_schema,
	&ask_event_schema,	   &done_message_schema,   &ask_message_schema,	   &configure_message_schema,
	&warden_message_schema,	   &warden_ready_schema,   &exited_message_schema, &cell_error_schema,
	&blocked_act_schema,	   &template_ready_schema, &run_message_schema,	   &hello_reply_schema,
};

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
	for (size_t i = 0; i < ARRAY_SIZE(schemas); i++) {
		msgpack_sbuffer buffer;

		if (schemas[i]->size > sizeof(decoded))
			abort();
		if (wire_decode(decoded, schemas[i], frame.body, &fault)) {
			(void)wire_decode_known(decoded, schemas[i], frame.body, &fault);
			continue;
		}
		msgpack_sbuffer_init(&buffer);
		if (wire_encode(&buffer, schemas[i], decoded) || wire_open(&frame, wire_bytes(&buffer)) ||
		    wire_decode(decoded, schemas[i], frame.body, &fault))
			abort();
		msgpack_sbuffer_destroy(&buffer);
		break;
	}
	return 0;
}
