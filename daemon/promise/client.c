/* The answer to one request: encoded here, kept and shared out by its promise, if it has one. */
#include "client.h"

#include "base/log.h"
#include "promise.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

/* It is sent to all askers. */
static int to_promise(struct promise *promise, const struct wire_schema *schema, const void *message)
{
	_cleanup_(msgpack_sbuffer_destroy) msgpack_sbuffer buffer = {0};
	int r;

	r = wire_encode(&buffer, schema, message);
	if (!r)
		promise_answer(promise, schema, &buffer, NULL);
	else
		log_error(NULL, "cannot answer with a %s: %s", schema->type, strerror(-r));
	return r;
}

int client_answer(struct clients *clients, const struct address *to, const struct wire_schema *schema,
		  const void *message)
{
	int r = to->promise ? to_promise(to->promise, schema, message) : clients_say(clients, to, schema, message);

	return r == CLIENT_E_WAITS ? 0 : r;
}

/* There is no memory for an answer. An error takes little. */
static void answer_fail(struct clients *clients, const struct address *to)
{
	const struct error_reply reply = {
		.id = to->id, .code = BYTES("internal"), .message = BYTES("out of memory to answer this")};

	if (!to->promise) {
		clients_refuse(clients, to, "internal", "out of memory to answer this");
		return;
	}
	clients_use_reserve(clients);
	clients->n_errors++;
	if (to_promise(to->promise, &error_reply_schema, &reply))
		promise_hang_up(to->promise);
}

int client_send(struct clients *clients, const struct address *to, const struct wire_schema *schema,
		const void *message)
{
	int r = client_answer(clients, to, schema, message);

	if (r < 0)
		answer_fail(clients, to);
	return r;
}

void client_reply(struct clients *clients, const struct address *to, int r, const struct wire_schema *schema,
		  const void *message)
{
	if (r)
		client_error(clients, to, "internal", "out of memory");
	else
		(void)client_send(clients, to, schema, message);
}

/* A path need not be UTF-8, and what is too long may be cut in a character. */
static void sentence_mend(char *text)
{
	size_t left = strlen(text);

	for (size_t n; left > 0; text += n, left -= n) {
		n = 1;
		while (n <= MIN(left, (size_t)4) && !utf8_valid((struct bytes){.data = text, .size = n}))
			n++;
		if (n <= MIN(left, (size_t)4))
			continue;
		*text = '?';
		n = 1;
	}
}

struct bytes client_setting(char text[static DECIDING_SIZE], const struct clients *clients, uid_t uid,
			    const struct deciding *deciding, const char *profile)
{
	bool operates = uid == 0 || uid == geteuid();
	struct bytes told = deciding_tell(text, deciding, profile, operates ? clients->settings : NULL);

	if (!told.data)
		return told;
	sentence_mend(text);
	return bytes_of(text);
}

static int error_send(struct clients *clients, const struct address *to, struct error_reply reply,
		      const char *format, va_list args) _printf_(4, 0);

static int error_send(struct clients *clients, const struct address *to, struct error_reply reply,
		      const char *format, va_list args)
{
	char sentence[640];

	vsnprintf(sentence, sizeof(sentence), format, args);
	sentence_mend(sentence);
	reply.id = to->id;
	reply.message = bytes_of(sentence);
	clients->n_errors++;
	return client_send(clients, to, &error_reply_schema, &reply);
}

int client_error(struct clients *clients, const struct address *to, const char *code, const char *format, ...)
{
	struct error_reply reply = {.code = bytes_of(code)};
	va_list args;
	int r;

	va_start(args, format);
	r = error_send(clients, to, reply, format, args);
	va_end(args);
	return r;
}

int client_limit(struct clients *clients, const struct address *to, const char *code, const char *profile,
		 const char *setting, const char *format, ...)
{
	const struct deciding deciding = {.settings = {setting}, .n = setting != NULL};
	struct error_reply reply = {.code = bytes_of(code)};
	char text[DECIDING_SIZE];
	va_list args;
	int r;

	reply.setting = client_setting(text, clients, to->uid, &deciding, profile);
	va_start(args, format);
	r = error_send(clients, to, reply, format, args);
	va_end(args);
	return r;
}

int client_gone(struct clients *clients, const struct address *to, const char *code, struct bytes ended,
		const char *why, const char *format, ...)
{
	struct error_reply reply = {.code = bytes_of(code), .ended = ended};
	struct deciding deciding = {.n = 0};
	char text[DECIDING_SIZE];
	va_list args;
	int r;

	deciding_add(&deciding, bytes_of(why));
	reply.setting = client_setting(text, clients, to->uid, &deciding, NULL);
	va_start(args, format);
	r = error_send(clients, to, reply, format, args);
	va_end(args);
	return r;
}
