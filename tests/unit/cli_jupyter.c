/* Messages of Jupyter's protocol, without a socket: signatures, what is dropped, what comes twice. */
#include "check.h"

#include "jupyter/message.h"

#define DOCUMENTS 4

static const struct lair_text key = {.data = "key", .size = 3};

static void add(struct frames *frames, const char *text)
{
	CHECK(frames_add(frames, text, strlen(text)) == 0);
}

/* identity, delimiter, signature, four documents, and a buffer */
static void fill(struct frames *frames, struct signer *signer, const char *header)
{
	const struct lair_text documents[DOCUMENTS] = {lair_text(header), lair_text("{}"), lair_text("{}"),
						       lair_text("{\"code\": \"a\\u0000b\"}")};
	char signature[SIGNATURE_SIZE + 1] = "";

	signer_sign(signer, signature, documents);
	add(frames, "identity");
	add(frames, "<IDS|MSG>");
	add(frames, signature);
	for (size_t i = 0; i < DOCUMENTS; i++)
		CHECK(frames_add(frames, documents[i].data, documents[i].size) == 0);
	CHECK(frames_add(frames, "\0\1", 2) == 0);
}

static void test_signature(void)
{
	/* The second case of RFC 4231, its text cut into four. */
	static const char right[] = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
	const struct lair_text documents[DOCUMENTS] = {lair_text("what do "), lair_text("ya want "), lair_text(""),
						       lair_text("for nothing?")};
	char signature[SIGNATURE_SIZE], name[17];
	struct signer signer;

	CHECK(signer_init(&signer, lair_text("Jefe")) == 0);
	signer_sign(&signer, signature, documents);
	CHECK(memcmp(signature, right, SIGNATURE_SIZE) == 0);
	CHECK(signer_accepts(&signer, lair_text(right), documents));
	CHECK(!signer_accepts(&signer, lair_text(right), documents));
	signer_deinit(&signer);
	signing_name(name, 8, lair_text("abc"));
	CHECK(strcmp(name, "ba7816bf8f01cfea") == 0);
}

static void test_message(void)
{
	struct frames frames = {.items = NULL};
	struct message message;
	struct signer signer;

	CHECK(signer_init(&signer, key) == 0);
	fill(&frames, &signer, "{\"msg_type\": \"t\", \"flag\": true}");
	CHECK(message_read(&message, &frames, &signer) == 0);
	CHECK(message.n_identities == 1 && message.buffers == 7 && frames.items[7].size == 2);
	CHECK(strcmp(message_text(message.header, "msg_type"), "t") == 0 && !*message_text(message.header, "flag"));
	CHECK(message_flag(message.header, "flag", false) && message_flag(message.header, "none", true));
	CHECK(json_string_length(json_object_get(message.content, "code")) == 3);
	message_deinit(&message);
	/* It has been taken. */
	CHECK(message_read(&message, &frames, &signer) == -EBADMSG);
	frames_deinit(&frames);
	signer_deinit(&signer);
}

static void check_dropped(const char *header)
{
	struct frames frames = {.items = NULL};
	struct message message;
	struct signer signer;

	CHECK(signer_init(&signer, key) == 0);
	fill(&frames, &signer, header);
	CHECK(message_read(&message, &frames, &signer) == -EBADMSG);
	frames_deinit(&frames);
	signer_deinit(&signer);
}

static void test_dropped(void)
{
	check_dropped("{}");
	check_dropped("[]");
	check_dropped("{\"msg_type\": 5}");
	check_dropped("{\"msg_type\": \"t\"");
	check_dropped("");
	check_dropped("\xff");
}

/* Each byte of a message counts, and so does each frame. */
static void test_changed(void)
{
	struct frames frames = {.items = NULL};
	struct message message;
	struct signer signer;

	CHECK(signer_init(&signer, key) == 0);
	fill(&frames, &signer, "{\"msg_type\": \"t\"}");
	for (size_t i = 1; i < 7; i++)
		for (size_t at = 0; at < frames.items[i].size; at++) {
			((char *)frames.items[i].data)[at] ^= 1;
			CHECK(message_read(&message, &frames, &signer) == -EBADMSG);
			((char *)frames.items[i].data)[at] ^= 1;
		}
	for (size_t n = 0; n < 7; n++) {
		const struct frames some = {.items = frames.items, .n = n};

		CHECK(message_read(&message, &some, &signer) == -EBADMSG);
	}
	frames_deinit(&frames);
	signer_deinit(&signer);
}

static void test_replays(void)
{
	struct signer signer;
	char signature[SIGNATURE_SIZE], text[32];
	struct lair_text documents[DOCUMENTS] = {lair_text("a"), lair_text("b"), lair_text("c")};

	CHECK(signer_init(&signer, key) == 0);
	for (size_t i = 0; i < (size_t)2 * REPLAYS; i++) {
		snprintf(text, sizeof(text), "%zu", i);
		documents[3] = lair_text(text);
		signer_sign(&signer, signature, documents);
		if (!signer_accepts(&signer, (struct lair_text){.data = signature, .size = SIGNATURE_SIZE},
				    documents))
			CHECK(!"accepted");
		if (signer_accepts(&signer, (struct lair_text){.data = signature, .size = SIGNATURE_SIZE},
				   documents))
			CHECK(!"refused");
	}
	signer_deinit(&signer);
}

static void check_quoted(const char *text, size_t size, const char *right)
{
	char out[QUOTED_SIZE(64)];
	size_t n = message_quote(out, (struct lair_text){.data = text, .size = size});

	CHECK(n <= QUOTED_SIZE(size) && n == strlen(right) && memcmp(out, right, n) == 0);
}

static void test_quoted(void)
{
	check_quoted("", 0, "\"\"");
	check_quoted("a\"b\\c/\x7f\u00e9", 9, "\"a\\\"b\\\\c/\x7f\u00e9\"");
	check_quoted("\b\t\n\v\f\r\0\x1f", 8, "\"\\b\\t\\n\\u000b\\f\\r\\u0000\\u001f\"");
	check_quoted("a\xff\xc3", 3, "\"a\xef\xbf\xbd\xef\xbf\xbd\"");
}

/* Halves of surrogate pairs become U+FFFD; pairs, and what only looks like one, stay. */
static void test_halves(void)
{
	static const char header[] = "{\"msg_type\": \"\\ud83d|\\ude00|\\ud83d\\ude00|\\\\ud83d|\\ud83d\"}";
	struct frames frames = {.items = NULL};
	struct message message;
	struct signer signer;

	CHECK(signer_init(&signer, key) == 0);
	fill(&frames, &signer, header);
	CHECK(message_read(&message, &frames, &signer) == 0);
	CHECK(strcmp(message_text(message.header, "msg_type"),
		     "\xef\xbf\xbd|\xef\xbf\xbd|\xf0\x9f\x98\x80|\\ud83d|\xef\xbf\xbd") == 0);
	message_deinit(&message);
	frames_deinit(&frames);
	signer_deinit(&signer);
}

static void test_limits(void)
{
	struct frames frames = {.items = NULL};

	for (size_t i = 0; i < FRAMES_MAX; i++)
		if (frames_add(&frames, "", 0))
			CHECK(!"added");
	CHECK(frames_add(&frames, "", 0) == -E2BIG);
	frames_deinit(&frames);
}

int main(void)
{
	test_signature();
	test_message();
	test_dropped();
	test_changed();
	test_replays();
	test_quoted();
	test_halves();
	test_limits();
	return check_report();
}
