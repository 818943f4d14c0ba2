/* token: who may use `lair serve`. */
#include "cli.h"

#include "base/json.h"
#include "base/text.h"
#include "serve/tokens.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* a,b,c: a list of one block, ended by NULL; NULL if there is none. */
static char **profiles_split(char *list)
{
	size_t n = 2, i = 0;
	char **profiles;

	for (const char *at = list; *at; at++)
		n += *at == ',';
	profiles = calloc(n, sizeof(*profiles));
	while (profiles && list)
		profiles[i++] = strsep(&list, ",");
	return profiles;
}

static int number_take(const struct cli *cli, const char *flag, const char *text, uint64_t *numberp)
{
	if (!text || text_number(text, numberp))
		return 0;
	return cli_usage(cli, "--%s: expected a number; got \"%s\"", flag, text);
}

static int rate_take(const struct cli *cli, double *ratep)
{
	char *end;

	if (!cli->rate)
		return 0;
	*ratep = strtod(cli->rate, &end);
	if (*end || *cli->rate < '0' || *cli->rate > '9' || !(*ratep > 0 && *ratep < 1e9))
		return cli_usage(cli, "--rate: expected requests a second; got \"%s\"", cli->rate);
	return 0;
}

/* If laird answers, it knows which profiles there are. */
static int profiles_check(struct cli *cli, char **profiles)
{
	struct lair_call *call = NULL;
	int r = lair_connect(cli->lair);

	if (r) {
		cli_notice("no laird answers, so nobody knows yet whether there are these profiles");
		return 0;
	}
	for (; r != LAIR_E_BAD_REQUEST && *profiles; profiles++) {
		const struct lair_code code = {.profile = *profiles, .code = lair_text("")};

		r = lair_check(cli->lair, &call, &code);
		if (!r)
			r = lair_wait(call, LAIR_FOREVER);
		call = lair_call_free(call);
	}
	/* One that does not start is there. */
	return r == LAIR_E_BAD_REQUEST ? cli_trouble(cli, r) : 0;
}

static int token_add(struct cli *cli, const char *path, char *name)
{
	_cleanup_(freep) char *list = cli->profile ? strdup(cli->profile) : NULL;
	_cleanup_(freep) char **profiles = list ? profiles_split(list) : NULL;
	struct token token = {.name = name, .profiles = profiles};
	char secret[TOKEN_SIZE], why[TOKEN_WHY_SIZE];
	int r;

	r = number_take(cli, "sessions", cli->sessions, &token.sessions);
	if (!r)
		r = number_take(cli, "requests", cli->requests, &token.requests);
	if (!r)
		r = rate_take(cli, &token.rate);
	if (!r && profiles)
		r = profiles_check(cli, profiles);
	if (r)
		return r;
	if (tokens_add(path, &token, secret, why))
		return cli_fail(cli, "error", "%s", why);
	if (cli->json)
		return json_print(json_pack("{s:s, s:s}", "name", name, "token", secret));
	puts(secret);
	cli_notice("this is shown once: only its hash is in %s", path);
	return 0;
}

static json_t *token_json(const struct token *token)
{
	json_t *profiles = token->profiles ? json_array() : json_null();

	for (size_t i = 0; token->profiles && token->profiles[i]; i++)
		json_array_append_new(profiles, json_text(lair_text(token->profiles[i])));
	return json_pack("{s:s, s:o, s:o, s:o, s:o}", "name", token->name, "profiles", profiles, "sessions",
			 token->sessions ? json_integer((json_int_t)token->sessions) : json_null(), "requests",
			 token->requests ? json_integer((json_int_t)token->requests) : json_null(), "rate",
			 token->rate > 0 ? json_real(token->rate) : json_null());
}

static void token_print(const struct token *token)
{
	fputs(token->name, stdout);
	for (size_t i = 0; token->profiles && token->profiles[i]; i++)
		printf("%s%s", i ? "," : "  profiles ", token->profiles[i]);
	if (token->sessions)
		printf("  sessions %llu", (unsigned long long)token->sessions);
	if (token->requests)
		printf("  requests %llu", (unsigned long long)token->requests);
	if (token->rate > 0)
		printf("  rate %g", token->rate);
	puts("");
}

static int token_list(const struct cli *cli, const char *path)
{
	char why[TOKEN_WHY_SIZE];
	json_t *array = cli->json ? json_array() : NULL;
	struct token *tokens;
	struct stat st;
	int r = tokens_read(&tokens, path, &st, why);

	if (r && r != -ENOENT) {
		json_decref(array);
		return cli_fail(cli, "error", "%s", why);
	}
	for (const struct token *token = tokens; token; token = token->next) {
		if (array)
			json_array_append_new(array, token_json(token));
		else
			token_print(token);
	}
	tokens_free(tokens);
	return array ? json_print(json_pack("{s:o}", "tokens", array)) : 0;
}

static int token_revoke(const struct cli *cli, const char *path, const char *name)
{
	char why[TOKEN_WHY_SIZE];

	if (tokens_revoke(path, name, why))
		return cli_fail(cli, "error", "%s", why);
	return cli->json ? json_print(json_pack("{s:s, s:b}", "name", name, "revoked", 1)) : 0;
}

int verb_token(struct cli *cli)
{
	const char *what = cli->args[0];
	char path[PATH_MAX];

	if (!cli->tokens && tokens_path(path))
		return cli_fail(cli, "error", "%s", strerror(ENAMETOOLONG));
	if (cli->tokens)
		snprintf(path, sizeof(path), "%s", cli->tokens);
	if (strcmp(what, "list") == 0 && cli->n_args == 1)
		return token_list(cli, path);
	if (strcmp(what, "add") == 0 && cli->n_args == 2)
		return token_add(cli, path, cli->args[1]);
	if (strcmp(what, "revoke") == 0 && cli->n_args == 2)
		return token_revoke(cli, path, cli->args[1]);
	return cli_usage(cli, "expected add NAME, list, or revoke NAME");
}
