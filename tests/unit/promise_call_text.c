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
	CHECK(!strcmp(TEXT("\x81\xa1n\xc0"), "pay(n=None)"));
	CHECK(!strcmp(TEXT("\x82\xa1n\xc2\xa1m\xc3"), "pay(n=False, m=True)"));
	CHECK(!strcmp(TEXT("\x81\xa1n\xff"), "pay(n=-1)"));
	CHECK(!strcmp(TEXT("\x81\xa1n\xd0\x80"), "pay(n=-128)"));
	CHECK(!strcmp(TEXT("\x81\xa1n\xd3\x80\0\0\0\0\0\0\0"), "pay(n=-9223372036854775808)"));
	CHECK(!strcmp(TEXT("\x81\xa1n\xcf\xff\xff\xff\xff\xff\xff\xff\xff"), "pay(n=18446744073709551615)"));
	CHECK(!strcmp(TEXT("\x81\xa1n\xcb\x40\0\0\0\0\0\0\0"), "pay(n=2.0)"));
	CHECK(!strcmp(TEXT("\x81\xa1n\xcb\x3f\xb9\x99\x99\x99\x99\x99\x9a"), "pay(n=0.1)"));
	CHECK(!strcmp(TEXT("\x81\xa1n\xca\x3f\0\0\0"), "pay(n=0.5)"));
	CHECK(!strcmp(TEXT("\x81\xa1n\xc4\x02\0\0"), "pay(n=<2 bytes>)"));
	CHECK(!strcmp(TEXT("\x81\xa1n\x92\x01\x81\xa1k\x91\x91\x91\x02"), "pay(n=[1, {\"k\": [[...]]}])"));
}

static void test_hostile(void)
{
	CHECK(!strcmp(TEXT("\x81\xa1n\xa4\x1b\"\\\n"), "pay(n=\"\\x1b\\\"\\\\\\n\")"));
	/* NOLINTNEXTLINE(misc-misleading-bidirectional): that is what it is about */
	CHECK(!strcmp(TEXT("\x81\xa1n\xa3\xe2\x80\xae"), "pay(n=\"\\xe2\\x80\\xae\")"));
	CHECK(!strcmp(TEXT("\x81\xa1n\xa2\xc3\xa9"), "pay(n=\"\xc3\xa9\")"));
	CHECK(!strcmp(TEXT("\x81\xa2\x1bn\x01"), "pay(\\x1bn=1)"));
	/* What is no map has no arguments, and what is cut off ends. */
	CHECK(!strcmp(TEXT("\x01"), "pay()"));
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
	test_long();
	test_digests();
	return check_report();
}
