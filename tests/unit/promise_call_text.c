/* A call in words, and the digest by which it is known again. */
#include "check.h"

#include "promise/call_text.h"

#include <string.h>

static const char *text_of(const char *arguments, size_t size)
{
	static char text[CALL_TEXT_SIZE];

	return call_text(text, BYTES("pay"), (struct bytes){.data = arguments, .size = size});
}

/* @literal: msgpack. */
#define TEXT(literal) text_of(literal, sizeof(literal) - 1)

static void test_values(void)
{
	CHECK(!strcmp(TEXT("\x80"), "pay()"));
	CHECK(!strcmp(TEXT("\x82\xa2to\xa3"
			   "bob\xa6"
			   "amount\x05"),
		      "pay(to=\"bob\", amount=5)"));
	CHECK(!strcmp(TEXT("\x81\xa1n\xc0"), "pay(n=null)"));
	CHECK(!strcmp(TEXT("\x82\xa1n\xc2\xa1m\xc3"), "pay(n=false, m=true)"));
	CHECK(!strcmp(TEXT("\x81\xa1n\xff"), "pay(n=-1)"));
	CHECK(!strcmp(TEXT("\x81\xa1n\xd0\x80"), "pay(n=-128)"));
	CHECK(!strcmp(TEXT("\x81\xa1n\xd3\x80\0\0\0\0\0\0\0"), "pay(n=-9223372036854775808)"));
	CHECK(!strcmp(TEXT("\x81\xa1n\xcf\xff\xff\xff\xff\xff\xff\xff\xff"), "pay(n=18446744073709551615)"));
	CHECK(!strcmp(TEXT("\x81\xa1n\xcb\x40\0\0\0\0\0\0\0"), "pay(n=2.0)"));
	CHECK(!strcmp(TEXT("\x81\xa1n\xcb\x3f\xb9\x99\x99\x99\x99\x99\x9a"), "pay(n=0.1)"));
	CHECK(!strcmp(TEXT("\x81\xa1n\xca\x3f\0\0\0"), "pay(n=0.5)"));
	CHECK(!strcmp(TEXT("\x81\xa1n\xc4\x02\0\0"), "pay(n=\"AAA=\")"));
	CHECK(!strcmp(TEXT("\x81\xa1n\x92\x01\x81\xa1k\x91\x91\x91\x02"), "pay(n=[1, {\"k\": [[[2]]]}])"));
}

static void test_hostile(void)
{
	CHECK(!strcmp(TEXT("\x81\xa1n\xa4\x1b\"\\\n"), "pay(n=\"\\u001b\\\"\\\\\\n\")"));
	/* NOLINTNEXTLINE(misc-misleading-bidirectional): that is what it is about */
	CHECK(!strcmp(TEXT("\x81\xa1n\xa3\xe2\x80\xae"), "pay(n=\"\\xe2\\x80\\xae\")"));
	CHECK(!strcmp(TEXT("\x81\xa1n\xa2\xc3\xa9"), "pay(n=\"\xc3\xa9\")"));
	CHECK(!strcmp(TEXT("\x81\xa2\x1bn\x01"), "pay(\"\\u001bn\"=1)"));
	CHECK(!strcmp(TEXT("\x81\xa5"
			   "a=1,b\x01"),
		      "pay(\"a=1,b\"=1)"));
	CHECK(!strcmp(TEXT("\x81\xa1n\x82\x05\x02\xa1k\x01"), "pay(n={\"5\": 2, \"k\": 1})"));
	/* What is not a map has no arguments, and what is cut off ends. */
	CHECK(!strcmp(TEXT("\x01"), "pay()"));
}

static bool plain(struct bytes arguments)
{
	return call_arguments_plain(arguments);
}

static void test_plain(void)
{
	static char many[3 + 40000 * 5];

	CHECK(plain(BYTES("\x80")) && plain(BYTES("\x81\xa1n\xc0")) && plain(BYTES("\xde\0\x01\xa1n\xc0")));
	CHECK(plain(BYTES("\x82\xa1n\xc0\xa1m\x81\x05\x05")));
	CHECK(!plain(BYTES("\xc0")) && !plain(BYTES("\x91\x80")) && !plain((struct bytes){.size = 0}));
	CHECK(!plain(BYTES("\x81\x05\x05")) && !plain(BYTES("\x82\xa1n\xc0\x05\x05")));
	CHECK(!plain(BYTES("\x81\xa1\xff\xc0")) && !plain(BYTES("\x81\xc4\x01n\xc0")));
	CHECK(!plain(BYTES("\x82\xa1n\xc0\xa1n\x01")) && !plain(BYTES("\x83\xa1n\xc0\xa1m\x01\xa1n\xc0")));
	/* Inside, keys may be integers, too. */
	CHECK(plain(BYTES("\x81\xa1n\x84\x05\xc0\xa1\x05\xc0\xff\xc0\xcf\xff\xff\xff\xff\xff\xff\xff\xff\xc0")));
	CHECK(!plain(BYTES("\x81\xa1n\x82\x05\xc0\xcc\x05\xc0")));
	CHECK(!plain(BYTES("\x81\xa1n\x82\xff\xc0\xd1\xff\xff\xc0")));
	CHECK(!plain(BYTES("\x81\xa1n\x91\x82\xa1k\xc0\xd9\x01k\xc0")));
	CHECK(!plain(BYTES("\x81\xa1n\x81\xc0\xc0")) && !plain(BYTES("\x81\xa1n\x81\x90\xc0")));
	CHECK(!plain(BYTES("\x81\xa1n\x81\xc3\xc0")) && !plain(BYTES("\x81\xa1n\x81\xca\0\0\0\0\xc0")));
	CHECK(!plain(BYTES("\x81\xa1n\xa1\xff")) && !plain(BYTES("\x81\xa1n\x91\xd9\x01\xff")));
	CHECK(plain(BYTES("\x81\xa1n\x92\xc4\x01\xff\xa1k")));
	memcpy(many, (char[]){(char)0xde, (char)0x9c, 0x40}, 3);
	for (int i = 0; i < 40000; i++)
		memcpy(many + 3 + (ptrdiff_t)i * 5,
		       (char[]){(char)0xa3, 'k', (char)(i / 128 % 128), (char)(i % 128), 1}, 5);
	CHECK(!plain((struct bytes){.data = many, .size = sizeof(many)}));
}

static void test_long(void)
{
	char many[3 + 100 * 5] = {(char)0xde, 0, 100}, text[CALL_TEXT_SIZE];

	for (int i = 0; i < 100; i++)
		memcpy(many + 3 + (ptrdiff_t)i * 5, (char[]){(char)0xa3, 'k', 'e', 'y', 1}, 5);
	call_text(text, BYTES("pay"), (struct bytes){.data = many, .size = sizeof(many)});
	CHECK(strlen(text) < sizeof(text) && strlen(text) > 200);
	CHECK(!strcmp(text + strlen(text) - 4, "...)"));
}

static bool same(const char *name, struct bytes one, const char *other_name, struct bytes other)
{
	uint8_t digests[2][SHA256_SIZE];

	CHECK(call_digest(digests[0], bytes_of(name), one) == 0);
	CHECK(call_digest(digests[1], bytes_of(other_name), other) == 0);
	return !memcmp(digests[0], digests[1], SHA256_SIZE);
}

static void test_digests(void)
{
	const struct bytes one = BYTES("\x82\xa1"
				       "a\x82\xa1x\x01\xa1y\x02\xa1"
				       "b\x03");
	const struct bytes turned = BYTES("\x82\xa1"
					  "b\x03\xa1"
					  "a\x82\xa1y\x02\xa1x\x01");
	const struct bytes other = BYTES("\x82\xa1"
					 "b\x03\xa1"
					 "a\x82\xa1y\x01\xa1x\x02");

	CHECK(same("pay", one, "pay", turned));
	CHECK(!same("pay", one, "pay", other));
	CHECK(!same("pay", one, "paid", one));
	CHECK(!same("f", BYTES("\x81\xa1k\x81\x01\x02"), "f", BYTES("\x81\xa1k\x81\x01\x03")));
	/* In an array the order counts, and what is inside what. */
	CHECK(!same("f",
		    BYTES("\x81\xa1"
			  "a\x92\x01\x02"),
		    "f",
		    BYTES("\x81\xa1"
			  "a\x92\x02\x01")));
	CHECK(!same("f",
		    BYTES("\x81\xa1"
			  "a\x91\x91\x01"),
		    "f",
		    BYTES("\x81\xa1"
			  "a\x91\x01")));
	CHECK(!same("f",
		    BYTES("\x81\xa1"
			  "a\x01"),
		    "f",
		    BYTES("\x81\xa1"
			  "a\xc3")));
}

int main(void)
{
	test_values();
	test_hostile();
	test_plain();
	test_long();
	test_digests();
	return check_report();
}
