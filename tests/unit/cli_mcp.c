/* What lair mcp is made of, without a daemon: outputs that are cut, URIs of files, messages, and a reader that is
 * slow. */
#include "check.h"

#include "base/jsonrpc.h"
#include "base/outbox.h"
#include "mcp/excerpt.h"
#include "mcp/uri.h"
#include "mcp/walk.h"

#include <signal.h>
#include <sys/socket.h>

/* ---- excerpts ---- */

/* @n bytes of @unit over and over, added in steps of @step. */
static json_t *excerpted(const char *unit, size_t n, size_t step)
{
	static struct excerpt excerpt;
	size_t size = strlen(unit);
	char *text = malloc(n + 1);

	excerpt_begin(&excerpt);
	for (size_t i = 0; i < n; i++)
		text[i] = unit[i % size];
	for (size_t i = 0; i < n; i += step)
		excerpt_add(&excerpt, (struct lair_text){.data = text + i, .size = MIN(step, n - i)});
	free(text);
	return excerpt_json(&excerpt);
}

static void check_whole(size_t n, size_t step)
{
	json_t *text = excerpted("0123456789", n, step);
	const char *at = json_string_value(text);

	CHECK(json_string_length(text) == n);
	for (size_t i = 0; i < n; i++)
		CHECK(at[i] == (char)('0' + i % 10));
	json_decref(text);
}

static void check_cut(const char *unit, size_t n, size_t step)
{
	json_t *text = excerpted(unit, n, step);
	const char *at = json_string_value(text), *gap = strstr(at, "\n[... ");
	const char *end = gap ? strchr(gap + 1, '\n') : NULL;
	size_t left_out = 0, size = strlen(unit);

	CHECK(gap && sscanf(gap, "\n[... %zu bytes", &left_out) == 1);
	CHECK(end && strlen(at) - (size_t)(end + 1 - gap) + left_out == n);
	CHECK(!strstr(at, "\xef\xbf\xbd"));
	CHECK(strncmp(at, unit, size) == 0 && strcmp(at + strlen(at) - size, unit) == 0);
	json_decref(text);
}

/* What is behind the bytes that are not to be had looks like no part of what is before them. */
static void check_skipped(const char *before, uint64_t size, const char *after, const char *expected)
{
	static struct excerpt excerpt;
	json_t *text;

	excerpt_begin(&excerpt);
	excerpt_add(&excerpt, lair_text(before));
	excerpt_skip(&excerpt, size);
	excerpt_add(&excerpt, lair_text(after));
	text = excerpt_json(&excerpt);
	CHECK(excerpt_cut(&excerpt));
	CHECK(strcmp(json_string_value(text), expected) == 0);
	json_decref(text);
}

static void check_excerpts(void)
{
	static const size_t steps[] = {1, 7, 9999, 10000, 10001, 1000000};

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		check_whole(0, steps[i]);
		check_whole(EXCERPT_HALF, steps[i]);
		check_whole(EXCERPT_HALF + 1, steps[i]);
		check_whole(2 * EXCERPT_HALF, steps[i]);
		check_cut("0123456789", 2 * EXCERPT_HALF + 10, steps[i]);
		check_cut("0123456789", 12345670, steps[i] + 10000);
		check_cut("\xe2\x82\xac", 90000, steps[i]);
		check_cut("\xf0\x9f\x90\x8d", 90004, steps[i]);
		check_cut("a\xc3\xa4", 90003, steps[i]);
	}
	check_skipped("abc", 5, "def", "abc\n[... 5 bytes left out ...]\ndef");
	check_skipped("", 7, "", "\n[... 7 bytes left out ...]\n");
	check_skipped("a\xe2\x82", 1, "\xacz", "a\n[... 4 bytes left out ...]\nz");
	CHECK(json_is_null(excerpt_of((struct lair_text){.data = NULL})));
}

/* ---- URIs ---- */

static void check_uri(struct lair_text path, const char *expected)
{
	json_t *uri = uri_of(lair_text("a:b/c"), path);
	char *session = NULL, *back = NULL;

	CHECK(strcmp(json_string_value(uri), expected) == 0);
	CHECK(uri_parse(expected, &session, &back));
	CHECK(strcmp(session, "a:b/c") == 0 && strcmp(back, path.data) == 0);
	free(session);
	free(back);
	json_decref(uri);
}

static void check_uris(void)
{
	static const char *const wrong[] = {"",
					    "lair://sessions",
					    "lair://sessions/",
					    "lair://sessions/a",
					    "lair://sessions/a/",
					    "lair://sessions//b",
					    "lair://sessions/a/%",
					    "lair://sessions/a/%4",
					    "lair://sessions/a/%4g",
					    "lair://sessions/a/%00",
					    "lair://sessions/%/b",
					    "file://sessions/a/b"};
	char *session = NULL, *path = NULL;

	check_uri(lair_text("d/x.csv"), "lair://sessions/a%3Ab%2Fc/d/x.csv");
	check_uri(lair_text("a b%?#\xff"), "lair://sessions/a%3Ab%2Fc/a%20b%25%3F%23%FF");
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		CHECK(!uri_parse(wrong[i], &session, &path) && !session && !path);
	CHECK(strcmp(uri_type(lair_text("a.PNG")), "image/png") == 0);
	CHECK(!uri_type(lair_text(".png")) && !uri_type(lair_text("png")) && !uri_type(lair_text("")));
}

static void check_names(void)
{
	static const char *const wrong[] = {"", ".", "..", "a/b"};
	char path[PATH_MAX], name[NAME_MAX + 2];

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		CHECK(!walk_join(path, "d", lair_text(wrong[i])));
	memset(name, 'x', sizeof(name));
	CHECK(!walk_join(path, "d", (struct lair_text){.data = name, .size = NAME_MAX + 1}));
	CHECK(!walk_join(path, "d", (struct lair_text){.data = "a\0b", .size = 3}));
	CHECK(walk_join(path, "d", lair_text("..a")) && strcmp(path, "d/..a") == 0);
	CHECK(walk_join(path, "/", lair_text("a")) && strcmp(path, "/a") == 0);
	CHECK(walk_join(path, "", lair_text("a")) && strcmp(path, "a") == 0);
}

/* ---- messages ---- */

static void check_messages(void)
{
	struct rpc rpc;
	json_t *error;

	error = rpc_read(
		&rpc, lair_text("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"m\",\"params\":{\"n\":1e400}}"), false);
	CHECK(json_integer_value(json_object_get(json_object_get(error, "error"), "code")) == RPC_INVALID_REQUEST);
	json_decref(error);
	rpc_deinit(&rpc);
	/* An integer that is too large for one member spoils no other. */
	error = rpc_read(&rpc,
			 lair_text("{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"m\",\"params\":"
				   "{\"n\":123456789012345678901234567890}}"),
			 false);
	CHECK(!error && rpc.kind == RPC_REQUEST && json_integer_value(rpc.id) == 7);
	rpc_deinit(&rpc);
}

/* ---- the outbox ---- */

/* Whatever nobody reads waits; then it comes, all of it and in order. */
static void check_outbox(int reader, int writer)
{
	struct outbox outbox;
	size_t expected = 0, n = 0;
	ssize_t got;
	char data[65536];

	outbox_init(&outbox, writer);
	for (int i = 0; i < 1000; i++) {
		json_t *document = json_pack("[i, s]", i, "a message of some length, so that they do not all fit");

		expected += json_dumpb(document, NULL, 0, JSON_COMPACT) + 1;
		CHECK(outbox_add(&outbox, document) == 0 && outbox_flush(&outbox) == 0);
	}
	while (n < expected) {
		CHECK(outbox_flush(&outbox) == 0);
		got = read(reader, data, sizeof(data));
		CHECK(got > 0);
		n += got > 0 ? (size_t)got : expected;
	}
	CHECK(n == expected && outbox_waiting(&outbox) == 0);
	CHECK(outbox_add(&outbox, NULL) == -ENOMEM);
	close(reader);
	CHECK(outbox_add(&outbox, json_true()) == 0 && outbox_flush(&outbox) == -EPIPE);
	outbox_deinit(&outbox);
	close(writer);
}

int main(void)
{
	int fds[2];

	(void)signal(SIGPIPE, SIG_IGN);
	check_excerpts();
	check_uris();
	check_names();
	check_messages();
	CHECK(pipe(fds) == 0);
	check_outbox(fds[0], fds[1]);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
	check_outbox(fds[0], fds[1]);
	return check_report();
}
