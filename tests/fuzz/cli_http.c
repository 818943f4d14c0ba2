/* What a stranger sends to `lair serve`, behind the parser of HTTP: targets, queries, documents, hosts; and lines
 * of a file of tokens. */
#include "serve/exchange.h"
#include "serve/schema.h"
#include "serve/target.h"
#include "serve/tokens.h"

#include "proto/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void fuzz_target(const char *text)
{
	struct target target;

	if (target_parse(&target, text))
		return;
	check(target.n <= TARGET_SEGMENTS);
	for (size_t i = 0; i < target.n; i++)
		check(utf8_valid(bytes_of(target.segments[i])));
	(void)target_matches(&target, "/v1/sessions/{id}/exec");
	if (target_matches(&target, "/v1/sessions/{id}"))
		check(target_value(&target, "/v1/sessions/{id}", "id"));
	check(target_matches(&target, "/{*}"));
	target_deinit(&target);
}

static void fuzz_query(const char *text)
{
	static const char parameters[] =
		"{\"n\": {\"type\": \"integer\", \"minimum\": 1}, \"f\": {\"type\": \"boolean\"}}";
	char why[SCHEMA_WHY_SIZE];
	struct target target;

	if (target_parse(&target, text))
		return;
	if (!schema_check_query(parameters, target.query, why))
		check(strlen(why) > 0);
	target_deinit(&target);
}

static void fuzz_document(const char *text, size_t size)
{
	json_t *document = json_loadb(text, size, JSON_DECODE_ANY, NULL);
	char why[SCHEMA_WHY_SIZE];

	if (document && !schema_check("Exec", document, why))
		check(strlen(why) > 0);
	json_decref(document);
}

static void fuzz_token(const char *text)
{
	struct token *token = token_parse(text);

	if (token)
		check(strlen(token->name) <= TOKEN_NAME_MAX && !strchr(token->name, ':'));
	tokens_free(token);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool ready;
	char *text;

	if (!ready)
		check(schemas_open() == 0);
	ready = true;
	if (size == 0)
		return 0;
	text = strndup((const char *)data + 1, size - 1);
	check(text);
	if (*data % 5 == 0)
		fuzz_target(text);
	else if (*data % 5 == 1)
		fuzz_query(text);
	else if (*data % 5 == 2)
		fuzz_document((const char *)data + 1, size - 1);
	else if (*data % 5 == 3)
		fuzz_token(text);
	else
		(void)host_is_loopback(text, strlen(text));
	free(text);
	return 0;
}
