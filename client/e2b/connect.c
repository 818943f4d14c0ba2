/* Connect's protocol with JSON: messages in envelopes, and the errors of both kinds of its calls. */
#include "e2b.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define HEAD 5
#define FLAG_COMPRESSED 1
#define FLAG_END 2

int envelope_add(struct envelope *envelope, const char *data, size_t size)
{
	size_t wanted = envelope->size + size, allocated = MAX(wanted, (size_t)1024);
	char *grown;

	if (wanted > ENVELOPE_MAX + HEAD)
		return -E2BIG;
	if (wanted > envelope->allocated) {
		allocated += allocated / 2;
		grown = realloc(envelope->data, allocated);
		if (!grown)
			return -ENOMEM;
		envelope->data = grown;
		envelope->allocated = allocated;
	}
	if (size > 0)
		memcpy(envelope->data + envelope->size, data, size);
	envelope->size = wanted;
	return 0;
}

static size_t size_of(const char *head)
{
	const unsigned char *at = (const unsigned char *)head;

	return (size_t)at[1] << 24 | (size_t)at[2] << 16 | (size_t)at[3] << 8 | at[4];
}

int envelope_next(struct envelope *envelope, json_t **messagep, bool *endp)
{
	size_t size;

	if (envelope->size < HEAD)
		return -EAGAIN;
	size = size_of(envelope->data);
	if (size > ENVELOPE_MAX || (envelope->data[0] & FLAG_COMPRESSED))
		return -EBADMSG;
	if (envelope->size - HEAD < size)
		return -EAGAIN;
	*endp = envelope->data[0] & FLAG_END;
	*messagep =
		size > 0 ? json_loadb(envelope->data + HEAD, size, JSON_REJECT_DUPLICATES, NULL) : json_object();
	envelope->size -= HEAD + size;
	memmove(envelope->data, envelope->data + HEAD + size, envelope->size);
	if (json_is_object(*messagep))
		return 0;
	json_decref(*messagep);
	*messagep = NULL;
	return -EBADMSG;
}

void envelope_deinit(struct envelope *envelope)
{
	freep(&envelope->data);
	envelope->size = envelope->allocated = 0;
}

static bool send_framed(struct exchange *exchange, unsigned flags, json_t *message)
{
	const size_t form = JSON_COMPACT | JSON_ENSURE_ASCII;
	size_t size = message ? json_dumpb(message, NULL, 0, form) : 0;
	_cleanup_(freep) char *frame = size > 0 ? malloc(HEAD + size) : NULL;

	if (frame) {
		frame[0] = (char)flags;
		for (unsigned i = 1; i < HEAD; i++)
			frame[i] = (char)(size >> (8 * (HEAD - 1 - i)) & 0xff);
		(void)json_dumpb(message, frame + HEAD, size, form);
	}
	json_decref(message);
	return frame && stream_write(exchange, (struct lair_text){.data = frame, .size = HEAD + size});
}

bool connect_send(struct exchange *exchange, json_t *message)
{
	return send_framed(exchange, 0, message);
}

void connect_end(struct exchange *exchange, const char *code, const char *message)
{
	json_t *end = code ? json_pack("{s:{s:s, s:s}}", "error", "code", code, "message", message) : json_object();

	if (send_framed(exchange, FLAG_END, end))
		stream_end(exchange);
	else
		stream_break(exchange);
}

unsigned connect_status(const char *code)
{
	static const struct {
		const char *code;
		unsigned status;
	} statuses[] = {
		{"invalid_argument", 400},  {"not_found", 404},		{"already_exists", 409},
		{"unauthenticated", 401},   {"permission_denied", 403}, {"resource_exhausted", 429},
		{"unimplemented", 501},	    {"unavailable", 503},	{"failed_precondition", 400},
		{"deadline_exceeded", 504}, {"canceled", 499},
	};

	for (size_t i = 0; i < ARRAY_SIZE(statuses); i++)
		if (strcmp(statuses[i].code, code) == 0)
			return statuses[i].status;
	return 500;
}

void connect_fail(struct exchange *exchange, const char *code, const char *format, ...)
{
	const struct work *work = exchange->state;
	char sentence[LINE_SIZE];
	va_list args;

	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	if (work && work->stream)
		connect_end(exchange, code, sentence);
	else
		answer_json(exchange, connect_status(code),
			    json_pack("{s:s, s:s}", "code", code, "message", sentence));
}

double header_seconds(const struct exchange *exchange, const char *name, double unit)
{
	const char *text = exchange_header(exchange, name);
	double value = text ? strtod(text, NULL) * unit : 0;

	return value > 0 && value < 1e9 ? value : 0;
}
