/* Whole blocks are compressed where they are; what is left waits for the next bytes, or the padding. */
#include "sha256.h"

#include <stdio.h>

static const uint32_t constants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, unsigned n)
{
	return x >> n | x << (32 - n);
}

static void expand(uint32_t w[64], const uint8_t *block)
{
	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
		       (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (int i = 16; i < 64; i++) {
		uint32_t a = w[i - 15], b = w[i - 2];

		w[i] = w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[i - 7] +
		       (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
	}
}

/* One round. Of the standard's a to h only two get another value, @d and @h; for the next round all are renamed. */
static inline void turn(uint32_t a, uint32_t b, uint32_t c, uint32_t *d, uint32_t e, uint32_t f, uint32_t g,
			uint32_t *h, uint32_t added)
{
	uint32_t s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
	uint32_t s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
	uint32_t one = *h + s1 + ((e & f) ^ (~e & g)) + added;

	*d += one;
	*h = one + s0 + ((a & b) ^ (a & c) ^ (b & c));
}

static void compress(uint32_t state[8], const uint8_t *block)
{
	uint32_t w[64], a = state[0], b = state[1], c = state[2], d = state[3];
	uint32_t e = state[4], f = state[5], g = state[6], h = state[7];

	expand(w, block);
	for (int i = 0; i < 64; i++)
		w[i] += constants[i];
	for (int i = 0; i < 64; i += 8) {
		turn(a, b, c, &d, e, f, g, &h, w[i]);
		turn(h, a, b, &c, d, e, f, &g, w[i + 1]);
		turn(g, h, a, &b, c, d, e, &f, w[i + 2]);
		turn(f, g, h, &a, b, c, d, &e, w[i + 3]);
		turn(e, f, g, &h, a, b, c, &d, w[i + 4]);
		turn(d, e, f, &g, h, a, b, &c, w[i + 5]);
		turn(c, d, e, &f, g, h, a, &b, w[i + 6]);
		turn(b, c, d, &e, f, g, h, &a, w[i + 7]);
	}
	state[0] += a;
	state[1] += b;
	state[2] += c;
	state[3] += d;
	state[4] += e;
	state[5] += f;
	state[6] += g;
	state[7] += h;
}

void sha256_begin(struct sha256 *sha256)
{
	static const uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
					    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

	*sha256 = (struct sha256){.size = 0};
	memcpy(sha256->state, initial, sizeof(initial));
}

void sha256_add(struct sha256 *sha256, struct bytes data)
{
	const uint8_t *at = (const uint8_t *)data.data;
	size_t left = data.size, held = sha256->size % SHA256_BLOCK, n;

	sha256->size += data.size;
	if (held > 0) {
		n = MIN(left, SHA256_BLOCK - held);
		if (n > 0)
			memcpy(sha256->rest + held, at, n);
		at += n;
		left -= n;
		if (held + n < SHA256_BLOCK)
			return;
		compress(sha256->state, sha256->rest);
	}
	for (; left >= SHA256_BLOCK; at += SHA256_BLOCK, left -= SHA256_BLOCK)
		compress(sha256->state, at);
	if (left > 0)
		memcpy(sha256->rest, at, left);
}

/* One bit, zeroes, and how many bits there were. */
static void pad(struct sha256 *sha256)
{
	uint64_t bits = sha256->size * 8;
	size_t held = sha256->size % SHA256_BLOCK;
	uint8_t padding[2 * SHA256_BLOCK] = {0x80};
	size_t size = (held + 9 <= SHA256_BLOCK ? SHA256_BLOCK : 2 * SHA256_BLOCK) - held;

	for (unsigned i = 0; i < 8; i++)
		padding[size - 1 - i] = (uint8_t)(bits >> 8 * i);
	sha256_add(sha256, (struct bytes){(const char *)padding, size});
}

void sha256_end(struct sha256 *sha256, uint8_t out[static SHA256_SIZE])
{
	pad(sha256);
	for (unsigned i = 0; i < SHA256_SIZE; i++)
		out[i] = (uint8_t)(sha256->state[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256(uint8_t out[static SHA256_SIZE], struct bytes data)
{
	struct sha256 sha256;

	sha256_begin(&sha256);
	sha256_add(&sha256, data);
	sha256_end(&sha256, out);
}

const char *sha256_hex(char out[static SHA256_HEX_SIZE], struct bytes data)
{
	uint8_t digest[SHA256_SIZE];

	sha256(digest, data);
	for (size_t i = 0; i < SHA256_SIZE; i++)
		snprintf(out + 2 * i, 3, "%02x", digest[i]);
	return out;
}
