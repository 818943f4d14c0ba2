/* Messages of the protocol: frames of untrusted bytes, and their content. */
#pragma once

#include "signing.h"

#include <jansson.h>

/* A message has at most so many frames, and so many bytes. */
#define FRAMES_MAX 1024
#define MESSAGE_SIZE_MAX ((size_t)64 << 20)

/* Frames as they came; each is owned. */
struct frames {
	struct lair_text *items;
	size_t n, allocated, size; /* size: bytes of all of them */
};

/* Adds a copy. Returns 0, -ENOMEM, or -E2BIG if there are too many. */
int frames_add(struct frames *frames, const void *data, size_t size);
void frames_deinit(struct frames *frames);

/* The content of frames. Spans point into them. */
struct message {
	size_t n_identities;			      /* the first frames: the way back to who has sent it */
	json_t *header, *parent, *metadata, *content; /* objects, owned */
	size_t buffers;				      /* the number of the first frame that is a buffer */
};

/* Returns 0, or -EBADMSG if it is not one, or has no fresh signature. */
int message_read(struct message *message, const struct frames *frames, struct signer *signer);
void message_deinit(struct message *message);

/* The text under @key of an object, "" if there is none. Valid as long as the object. */
const char *message_text(const json_t *object, const char *key);
/* A flag under @key; @otherwise if there is none. */
bool message_flag(const json_t *object, const char *key, bool otherwise);

/* The text as a JSON string, as json_text() makes it: much of it goes that way. @out has room for
 * QUOTED_SIZE(text.size). Returns its size. */
#define QUOTED_SIZE(size) (6 * (size) + 2)
size_t message_quote(char *out, struct lair_text text);
