/* Signatures of messages, HMAC-SHA256, and which have been seen. */
#pragma once

#include "proto/base.h"

#include "lair.h"

#define SIGNATURE_SIZE 64 /* hexadecimal, not terminated */
/* So many messages are remembered, so that none of them is taken twice. */
#define REPLAYS 4096

struct signer {
	char *key; /* owned; empty: messages are not signed */
	size_t key_size;
	uint64_t seen[REPLAYS];
	size_t n_seen;
};

/* Returns 0 or -errno. */
int signer_init(struct signer *signer, struct lair_text key);
void signer_deinit(struct signer *signer);
/* Of the four documents of a message. */
void signer_sign(const struct signer *signer, char out[static SIGNATURE_SIZE], const struct lair_text documents[4]);
/* Whether the signature is right, and new. */
bool signer_accepts(struct signer *signer, struct lair_text signature, const struct lair_text documents[4]);
/* Fixed by @of, for names: 2 * @n hexadecimal digits, @n at most 32, and a NUL. */
void signing_name(char *out, size_t n, struct lair_text of);
