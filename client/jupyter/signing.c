/* libsodium signs, which libzmq itself needs. */
#include "signing.h"

#include <sodium.h>

static void digest(const struct signer *signer, unsigned char out[static crypto_auth_hmacsha256_BYTES],
		   const struct lair_text documents[4])
{
	crypto_auth_hmacsha256_state state;

	(void)crypto_auth_hmacsha256_init(&state, (const unsigned char *)signer->key, signer->key_size);
	for (size_t i = 0; i < 4; i++)
		(void)crypto_auth_hmacsha256_update(&state, (const unsigned char *)documents[i].data,
						    documents[i].size);
	(void)crypto_auth_hmacsha256_final(&state, out);
}

static void hexadecimal(char *out, const unsigned char *bytes, size_t n)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		*out++ = digits[bytes[i] >> 4];
		*out++ = digits[bytes[i] & 15];
	}
}

void signer_sign(const struct signer *signer, char out[static SIGNATURE_SIZE], const struct lair_text documents[4])
{
	unsigned char bytes[crypto_auth_hmacsha256_BYTES];

	digest(signer, bytes, documents);
	hexadecimal(out, bytes, sizeof(bytes));
}

static bool signature_equal(const char *a, const char *b)
{
	return sodium_memcmp(a, b, SIGNATURE_SIZE) == 0;
}

void signing_name(char *out, size_t n, struct lair_text of)
{
	unsigned char bytes[crypto_hash_sha256_BYTES];

	(void)crypto_hash_sha256(bytes, (const unsigned char *)of.data, of.size);
	hexadecimal(out, bytes, MIN(n, sizeof(bytes)));
	out[2 * MIN(n, sizeof(bytes))] = '\0';
}

int signer_init(struct signer *signer, struct lair_text key)
{
	if (sodium_init() < 0)
		return -ENOTSUP;
	*signer = (struct signer){.key = malloc(key.size + 1), .key_size = key.size};
	if (!signer->key)
		return -ENOMEM;
	if (key.size > 0)
		memcpy(signer->key, key.data, key.size);
	signer->key[key.size] = '\0';
	return 0;
}

void signer_deinit(struct signer *signer)
{
	free(signer->key);
	signer->key = NULL;
}

/* Sixteen digits of a digest that only the key's holders can make name it well enough. */
static bool is_new(struct signer *signer, const char *signature)
{
	uint64_t name = 0;
	size_t n = MIN(signer->n_seen, (size_t)REPLAYS);

	for (size_t i = 0; i < 16; i++)
		name = name << 4 | (uint64_t)(signature[i] <= '9' ? signature[i] - '0' : signature[i] - 'a' + 10);
	for (size_t i = 0; i < n; i++)
		if (signer->seen[i] == name)
			return false;
	signer->seen[signer->n_seen++ % REPLAYS] = name;
	return true;
}

bool signer_accepts(struct signer *signer, struct lair_text signature, const struct lair_text documents[4])
{
	char right[SIGNATURE_SIZE];

	if (signer->key_size == 0)
		return true;
	if (signature.size != SIGNATURE_SIZE)
		return false;
	signer_sign(signer, right, documents);
	return signature_equal(signature.data, right) && is_new(signer, signature.data);
}
