/* ZMTP: what is told of a stream does not depend on how its bytes are cut, and what is broken is told at the first
 * byte that shows it. */
#include "check.h"

#include "front/zmtp.h"

#define ZEROES "\0\0\0\0\0\0\0\0"
#define GREETING "\xff" ZEROES "\x7f\3\1NULL" ZEROES ZEROES ZEROES ZEROES ZEROES ZEROES
#define READY(type, n) "\4" n "\5READY\13Socket-Type\0\0\0" type
#define DEALER GREETING READY("\6DEALER", "\34")
#define REQ GREETING READY("\3REQ", "\31")

/* The items of @stream, a letter each, when @cut bytes come at a time. */
static void items_of(char *text, size_t size, struct bytes stream, size_t cut)
{
	static const char letters[] = {[ZMTP_GREETED] = 'g',
				       [ZMTP_READY] = 'r',
				       [ZMTP_PING] = 'p',
				       [ZMTP_MESSAGE] = 'm',
				       [ZMTP_PARTS] = 'x'};
	struct zmtp zmtp = {.message_max = 1000};
	size_t start = 0, end = 0, n = 0;
	struct zmtp_item item;
	uint64_t wanted;
	const char *why;
	size_t used;
	int r;

	for (;;) {
		r = zmtp_next(&zmtp, (struct bytes){.data = stream.data + start, .size = end - start}, &item, &used,
			      &wanted, &why);
		CHECK(used <= end - start);
		start += used;
		if (!r)
			n += (size_t)snprintf(text + n, size - n, "%c%zu", letters[item.kind], item.data.size);
		if (r == ZMTP_E_BROKEN)
			snprintf(text + n, size - n, "!%s", why);
		if (r == ZMTP_E_MORE)
			CHECK(wanted > end - start);
		if (r == ZMTP_E_BROKEN || (r == ZMTP_E_MORE && end == stream.size))
			return;
		if (r == ZMTP_E_MORE)
			end = MIN(end + cut, stream.size);
	}
}

static void check_items(struct bytes stream, const char *expected)
{
	char text[512];

	for (size_t cut = 1; cut <= stream.size + 1; cut++) {
		memset(text, 0, sizeof(text));
		items_of(text, sizeof(text), stream, cut);
		CHECK(strcmp(text, expected) == 0);
		if (strcmp(text, expected) != 0) {
			fprintf(stderr, "in pieces of %zu: %s, expected %s\n", cut, text, expected);
			return;
		}
	}
}

static const char large[300];

static void check_large(void)
{
	char stream[512];
	size_t at = sizeof(DEALER) - 1;

	memcpy(stream, (const char[]){DEALER}, at);
	at += zmtp_put_header(&(struct zmtp){.delimited = false}, stream + at, sizeof(large));
	memcpy(stream + at, large, sizeof(large));
	check_items((struct bytes){.data = stream, .size = at + sizeof(large)}, "g0r0m300");
}

static void check_what_is_said(void)
{
	struct zmtp dealer = {.delimited = false}, req = {.delimited = true};
	char text[ZMTP_ANSWER_MAX];

	CHECK(zmtp_put_greeting(text) == 64 && !memcmp(text + 9, &GREETING[9], 64 - 9));
	CHECK(zmtp_put_ready(text) == 43 && !memcmp(text, "\4\51\5READY", 8) &&
	      !memcmp(text + 24, "ROUTER\10Identity", 15));
	CHECK(zmtp_put_pong(text, BYTES("12")) == 9 && !memcmp(text, "\4\7\4PONG12", 9));
	CHECK(zmtp_put_error(text, "why") == 12 && !memcmp(text, "\4\12\5ERROR\3why", 12));
	CHECK(zmtp_put_error(text, "a sentence that is longer than all that has room in one such command") == 64);
	CHECK(zmtp_put_header(&dealer, text, 255) == 2 && !memcmp(text, "\0\xff", 2));
	CHECK(zmtp_put_header(&dealer, text, 256) == 9 && !memcmp(text, "\2\0\0\0\0\0\0\1\0", 9));
	CHECK(zmtp_put_header(&req, text, 1) == 4 && !memcmp(text, "\1\0\0\1", 4));
}

int main(void)
{
	check_items(BYTES(DEALER), "g0r0");
	check_items(BYTES(DEALER "\0\3abc\0\0\0\1x"), "g0r0m3m0m1");
	check_items(BYTES(DEALER "\4\11\4PING\0\1ab\4\6\4PONG!\4\2\1Z\0\1a"), "g0r0p2m1");
	check_items(BYTES(DEALER "\1\2ab\1\0\0\1c\0\1d"), "g0r0x0m1");
	check_items(BYTES(REQ "\1\0\0\2ab\1\0\0\1c"), "g0r0m2m1");
	check_items(BYTES(REQ "\0\2ab\1\2ab\0\1c\1\0\1\0\0\1d\1\0\0\1e"), "g0r0x0x0x0m1");
	check_large();
	check_items(BYTES("GET"), "!it does not speak ZeroMQ's protocol");
	check_items(BYTES("\xff\0\0\0\0\0\0\0\0\1\1"), "!it speaks a version of ZeroMQ's protocol before 3");
	check_items(BYTES(DEALER "\10"), "g0r0");
	check_items(BYTES(DEALER "\10\0"), "g0r0!a frame has unknown flags");
	check_items(BYTES(DEALER "\2\0\0\0\0\0\0\3\351"), "g0r0!its message is larger than frame_size allows");
	check_items(BYTES(DEALER "\2\377\377\377\377\377\377\377\377"),
		    "g0r0!its message is larger than frame_size allows");
	check_items(BYTES(DEALER "\6\0\0\0\0\0\0\20\1"), "g0r0!a command is too large");
	check_items(BYTES(GREETING "\4\32\5READY\13Socket-Type\0\0\0\7DEALER"), "g0!its READY is malformed");
	check_what_is_said();
	return check_report();
}
