/* SHA-256 (FIPS 180-4), so that an entry of the audit log can say which code ran without keeping it, a call can be
 * known again, and a damaged saved state is not taken for a whole one. */
#pragma once

#include "proto/base.h"

#define SHA256_SIZE 32
#define SHA256_HEX_SIZE 65
#define SHA256_BLOCK 64

struct sha256 {
	uint32_t state[8];
	uint64_t size; /* bytes so far */
	uint8_t rest[SHA256_BLOCK];
};

/* In pieces. */
void sha256_begin(struct sha256 *sha256);
void sha256_add(struct sha256 *sha256, struct bytes data);
void sha256_end(struct sha256 *sha256, uint8_t out[static SHA256_SIZE]);

void sha256(uint8_t out[static SHA256_SIZE], struct bytes data);

/* The digest of @data in lower-case hexadecimal, terminated. Returns @out. */
const char *sha256_hex(char out[static SHA256_HEX_SIZE], struct bytes data);
