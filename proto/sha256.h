/* SHA-256 (FIPS 180-4), so that an entry of the audit log can say which code ran without keeping it, and a call can
 * be known again. */
#pragma once

#include "proto/base.h"

#define SHA256_SIZE 32
#define SHA256_HEX_SIZE 65

void sha256(uint8_t out[static SHA256_SIZE], struct bytes data);

/* The digest of @data in lower-case hexadecimal, terminated. Returns @out. */
const char *sha256_hex(char out[static SHA256_HEX_SIZE], struct bytes data);
