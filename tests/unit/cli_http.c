/* Targets of requests, documents against schemas, and lines of the file of tokens. */
#include "check.h"

#include "serve/exchange.h"
#include "serve/schema.h"
#include "serve/target.h"
#include "serve/tokens.h"

#include <sodium.h>

static void test_targets(void)
{
	struct target target;

	CHECK(target_parse(&target, "/v1/sessions/a%2Fb/exec?n=1&x=a+b%26&n=2") == 0);
	CHECK(target.n == 4);
	CHECK(strcmp(target.segments[2], "a/b") == 0);
	CHECK(strcmp(json_string_value(json_object_get(target.query, "n")), "2") == 0);
	CHECK(strcmp(json_string_value(json_object_get(target.query, "x")), "a b&") == 0);
	CHECK(target_matches(&target, "/v1/sessions/{id}/exec"));
	CHECK(target_matches(&target, "/v1/{*}"));
	CHECK(!target_matches(&target, "/v1/sessions/{id}"));
	CHECK(!target_matches(&target, "/v1/sessions/{id}/exec/{x}"));
	CHECK(strcmp(target_value(&target, "/v1/sessions/{id}/exec", "id"), "a/b") == 0);
	CHECK(!target_value(&target, "/v1/sessions/{id}/exec", "i"));
	target_deinit(&target);
	CHECK(target_parse(&target, "http://localhost:80/v1/sessions") == 0);
	CHECK(target_matches(&target, "/v1/sessions"));
	target_deinit(&target);
	CHECK(target_parse(&target, "/") == 0);
	CHECK(target_matches(&target, "/"));
	CHECK(!target_matches(&target, "/{id}"));
	target_deinit(&target);
}

static void test_targets_that_are_none(void)
{
	static const char *const wrong[] = {
		"",
		"*",
		"v1",
		"/%",
		"/%0",
		"/%zz",
		"/%00",
		"/%ff%fe",
		"/a?%",
		"/a?b=%c0",
		"/\xff\xfe",
		"http://a",
		"/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17",
	};
	struct target target;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		CHECK(target_parse(&target, wrong[i]) == -EINVAL);
}

static bool fits(const char *name, const char *json)
{
	char why[SCHEMA_WHY_SIZE] = "";
	json_t *document = json_loads(json, JSON_DECODE_ANY, NULL);
	bool ok = schema_check(name, document, why);

	json_decref(document);
	CHECK(ok == !*why);
	return ok;
}

static void test_schemas(void)
{
	CHECK(schemas_open() == 0);
	CHECK(fits("Exec", "{\"code\": \"1\", \"timeout\": 1.5, \"functions\": [{\"name\": \"f\"}]}"));
	CHECK(!fits("Exec", "{}"));
	CHECK(!fits("Exec", "[]"));
	CHECK(!fits("Exec", "{\"code\": 1}"));
	CHECK(!fits("Exec", "{\"code\": \"1\", \"timeout\": -1}"));
	CHECK(!fits("Exec", "{\"code\": \"1\", \"figure\": \"gif\"}"));
	CHECK(!fits("Exec", "{\"code\": \"1\", \"functions\": [{\"name\": \"\"}]}"));
	CHECK(!fits("Exec", "{\"code\": \"1\", \"codes\": \"1\"}"));
	CHECK(fits("Undo", "{\"n\": 2.0}"));
	CHECK(!fits("Undo", "{\"n\": 2.5}"));
	CHECK(fits("Input", "{\"text\": null}"));
	schemas_close();
}

static void test_tokens(void)
{
	static const char *const wrong[] = {
		"",
		"a",
		"a 00",
		"7 HASH",
		"a:b HASH",
		"a HASH sessions",
		"a HASH sessions=",
		"a HASH rate=x",
		"a HASH rate=-1",
		"a HASH profiles=",
		"a HASH profiles=a,,b",
		"a HASH profiles=a profiles=b",
		"a HASH x=1",
	};
	char hash[2 * TOKEN_HASH_SIZE + 1], line[256];
	struct token *token;

	memset(hash, 'a', sizeof(hash) - 1);
	hash[sizeof(hash) - 1] = '\0';
	snprintf(line, sizeof(line), "name %s profiles=a,b sessions=2 rate=1.5", hash);
	token = token_parse(line);
	CHECK(token && strcmp(token->name, "name") == 0 && token->sessions == 2 && token->hash[0] == 0xaa);
	CHECK(token && strcmp(token->profiles[1], "b") == 0 && !token->profiles[2]);
	tokens_free(token);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		const char *at = strstr(wrong[i], "HASH");

		snprintf(line, sizeof(line), "%.*s%s%s", at ? (int)(at - wrong[i]) : (int)strlen(wrong[i]),
			 wrong[i], at ? hash : "", at ? at + 4 : "");
		token = token_parse(line);
		CHECK(!token);
		tokens_free(token);
	}
}

static void test_hosts(void)
{
	static const struct {
		const char *host;
		bool loopback;
	} hosts[] = {
		{"localhost", true}, {"LOCALHOST:80", true}, {"127.0.0.1:1", true},
		{"[::1]", true},     {"[::1]:8080", true},   {"", false},
		{":80", false},	     {"localhost:", true},   {"localhost.x", false},
		{"[::1].x", false},  {"[::1", false},	     {"127.0.0.1:80@x", false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++)
		CHECK(host_is_loopback(hosts[i].host, strlen(hosts[i].host)) == hosts[i].loopback);
}

int main(void)
{
	CHECK(sodium_init() >= 0);
	test_targets();
	test_targets_that_are_none();
	test_schemas();
	test_tokens();
	test_hosts();
	return check_report();
}
