/* SHA-256 against the examples of the standard, and around the edges of its blocks. */
#include "check.h"

#include "proto/sha256.h"

static bool hashes_to(struct bytes data, const char *expected)
{
	char out[SHA256_HEX_SIZE];

	return strcmp(sha256_hex(out, data), expected) == 0;
}

/* In pieces of every length it is the same. */
static bool pieces_agree(struct bytes data)
{
	uint8_t whole[SHA256_SIZE], pieced[SHA256_SIZE];
	struct sha256 pieces;

	sha256(whole, data);
	for (size_t piece = 1; piece <= data.size; piece++) {
		sha256_begin(&pieces);
		for (size_t at = 0; at < data.size; at += piece)
			sha256_add(&pieces, (struct bytes){data.data + at, MIN(piece, data.size - at)});
		sha256_end(&pieces, pieced);
		if (memcmp(whole, pieced, sizeof(whole)) != 0)
			return false;
	}
	return true;
}

int main(void)
{
	static char many[1000000];

	CHECK(hashes_to((struct bytes){.data = NULL},
			"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
	CHECK(hashes_to(BYTES("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
	CHECK(hashes_to(BYTES("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
			"248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"));
	memset(many, 'a', sizeof(many));
	CHECK(hashes_to((struct bytes){.data = many, .size = sizeof(many)},
			"cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"));
	CHECK(hashes_to((struct bytes){.data = many, .size = 55},
			"9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"));
	CHECK(hashes_to((struct bytes){.data = many, .size = 64},
			"ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"));
	for (size_t i = 0; i < 300; i++)
		many[i] = (char)(i * 7);
	CHECK(pieces_agree((struct bytes){.data = many, .size = 300}));
	CHECK(pieces_agree((struct bytes){.data = many, .size = 64}));
	return check_report();
}
