/* [identities...] <IDS|MSG> signature header parent metadata content [buffers...] */
#include "message.h"

#include "base/text.h"

#include "proto/wire.h"

#include <stdio.h>

#define DELIMITER "<IDS|MSG>"
/* JSON that is nested deeper is refused by jansson itself. */
#define DOCUMENTS 4

int frames_add(struct frames *frames, const void *data, size_t size)
{
	char *copy;

	if (frames->n == FRAMES_MAX || frames->size + size > MESSAGE_SIZE_MAX)
		return -E2BIG;
	if (frames->n == frames->allocated) {
		size_t wanted = MAX(2 * frames->allocated, (size_t)8);
		struct lair_text *grown = reallocarray(frames->items, wanted, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		frames->items = grown;
		frames->allocated = wanted;
	}
	copy = malloc(size + 1);
	if (!copy)
		return -ENOMEM;
	if (size > 0)
		memcpy(copy, data, size);
	copy[size] = '\0';
	frames->items[frames->n++] = (struct lair_text){.data = copy, .size = size};
	frames->size += size;
	return 0;
}

void frames_deinit(struct frames *frames)
{
	for (size_t i = 0; i < frames->n; i++)
		free((char *)frames->items[i].data);
	free(frames->items);
	*frames = (struct frames){.items = NULL};
}

static bool is_delimiter(struct lair_text frame)
{
	return frame.size == sizeof(DELIMITER) - 1 && memcmp(frame.data, DELIMITER, frame.size) == 0;
}

/* The number in \\uXXXX at @at; 0 if there is none. */
static unsigned long escaped_at(const char *at, const char *end)
{
	char digits[5] = "";

	if (end - at < 6 || at[0] != '\\' || at[1] != 'u')
		return 0;
	memcpy(digits, at + 2, 4);
	return strtoul(digits, NULL, 16);
}

/* Browsers send halves of a surrogate pair, if a text was cut there. jansson refuses them. */
static void surrogates_mend(char *at, const char *end)
{
	while ((at = memchr(at, '\\', (size_t)(end - at)))) {
		unsigned long first = escaped_at(at, end), second = first ? escaped_at(at + 6, end) : 0;

		if (first >= 0xd800 && first < 0xdc00 && second >= 0xdc00 && second < 0xe000) {
			at += 12;
			continue;
		}
		for (size_t i = 0; i < 4 && first >= 0xd800 && first < 0xe000; i++)
			at[2 + i] = "fffd"[i];
		at += MIN((ptrdiff_t)2, end - at);
	}
}

static json_t *load_mended(struct lair_text text)
{
	_cleanup_(freep) char *mended = NULL;

	if (text_mend(&text, &mended))
		return NULL;
	surrogates_mend(mended, mended + text.size);
	return json_loadb(mended, text.size, JSON_ALLOW_NUL, NULL);
}

static json_t *object_of(struct lair_text text)
{
	json_t *document = json_loadb(text.data, text.size, JSON_ALLOW_NUL, NULL);

	if (!document)
		document = load_mended(text);
	if (json_is_object(document))
		return document;
	json_decref(document);
	return NULL;
}

int message_read(struct message *message, const struct frames *frames, struct signer *signer)
{
	const struct lair_text *at = frames->items;
	json_t *documents[DOCUMENTS];
	size_t n = 0;
	bool read = true;

	while (n < frames->n && !is_delimiter(at[n]))
		n++;
	if (n + 2 + DOCUMENTS > frames->n || !signer_accepts(signer, at[n + 1], at + n + 2))
		return -EBADMSG;
	for (size_t i = 0; i < DOCUMENTS; i++) {
		documents[i] = object_of(at[n + 2 + i]);
		read = read && documents[i];
	}
	*message = (struct message){
		.n_identities = n,
		.header = documents[0],
		.parent = documents[1],
		.metadata = documents[2],
		.content = documents[3],
		.buffers = n + 2 + DOCUMENTS,
	};
	if (read && *message_text(message->header, "msg_type"))
		return 0;
	message_deinit(message);
	return -EBADMSG;
}

void message_deinit(struct message *message)
{
	json_decref(message->header);
	json_decref(message->parent);
	json_decref(message->metadata);
	json_decref(message->content);
	*message = (struct message){.header = NULL};
}

const char *message_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

bool message_flag(const json_t *object, const char *key, bool otherwise)
{
	const json_t *flag = json_object_get(object, key);

	return json_is_boolean(flag) ? json_is_true(flag) : otherwise;
}

static size_t quote_escape(char *out, unsigned char c)
{
	static const char letters[] = "btn?fr";

	if (c == '"' || c == '\\') {
		out[0] = '\\';
		out[1] = (char)c;
		return 2;
	}
	if (c >= '\b' && c <= '\r' && c != '\v') {
		out[0] = '\\';
		out[1] = letters[c - '\b'];
		return 2;
	}
	return (size_t)snprintf(out, 7, "\\u%04x", c);
}

static bool is_quoted_plainly(unsigned char c)
{
	return c >= ' ' && c != '"' && c != '\\';
}

size_t message_quote(char *out, struct lair_text text)
{
	_cleanup_(freep) char *mended = NULL;
	char *at = out;

	if (!utf8_valid((struct bytes){.data = text.data, .size = text.size}) && text_mend(&text, &mended))
		text.size = 0;
	*at++ = '"';
	for (size_t i = 0; i < text.size;) {
		size_t n = 0;

		while (i + n < text.size && is_quoted_plainly((unsigned char)text.data[i + n]))
			n++;
		memcpy(at, text.data + i, n);
		at += n;
		i += n;
		if (i < text.size)
			at += quote_escape(at, (unsigned char)text.data[i++]);
	}
	*at++ = '"';
	return (size_t)(at - out);
}
