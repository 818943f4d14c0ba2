/* The functions that are offered to a cell. Each has its source, which answers its calls from the loop. */
#include "offer.h"

#include <fnmatch.h>

struct offer {
	const struct cli *cli;
	struct lair_function *functions;
	struct source **sources; /* of each function */
	size_t n;
	struct source *first;
};

static void function_deinit(struct lair_function *function)
{
	const char *texts[] = {function->name, function->schema, function->returns,
			       function->doc,  function->server, function->tool};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		free((char *)texts[i]);
}

struct offer *offer_free(struct offer *offer)
{
	if (!offer)
		return NULL;
	while (offer->first) {
		struct source *source = offer->first;

		offer->first = source->next;
		source->free(source);
	}
	for (size_t i = 0; i < offer->n; i++)
		function_deinit(&offer->functions[i]);
	free(offer->functions);
	free(offer->sources);
	free(offer);
	return NULL;
}

void offer_source(struct offer *offer, struct source *source)
{
	source->next = offer->first;
	offer->first = source;
}

static bool matches(const struct cli_list *patterns, const char *name)
{
	for (size_t i = 0; i < patterns->n; i++)
		if (fnmatch(patterns->items[i], name, 0) == 0)
			return true;
	return false;
}

static bool matches_some(const struct offer *offer, const char *pattern)
{
	for (size_t i = 0; i < offer->n; i++)
		if (fnmatch(pattern, offer->functions[i].name, 0) == 0)
			return true;
	return false;
}

/* A slip in a pattern would let calls pass without a question. A server may be missing, and its functions with it.
 */
static int patterns_check(const struct offer *offer, const char *flag, const struct cli_list *patterns)
{
	for (size_t i = 0; i < patterns->n; i++) {
		if (matches_some(offer, patterns->items[i]))
			continue;
		if (!offer->cli->servers)
			return cli_usage(offer->cli, "%s: there is no function \"%s\"", flag, patterns->items[i]);
		cli_notice("%s: there is no function \"%s\"", flag, patterns->items[i]);
	}
	return 0;
}

/* Puts copies in the place of its texts. Returns whether there was memory for all. */
static bool texts_copy(struct lair_function *function)
{
	const char **texts[] = {&function->name, &function->schema, &function->returns,
				&function->doc,	 &function->server, &function->tool};
	bool all = true;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		const char *text = *texts[i];

		*texts[i] = text ? strdup(text) : NULL;
		all &= !text || *texts[i];
	}
	return all;
}

int offer_add(struct offer *offer, struct source *source, const struct lair_function *function)
{
	struct lair_function *functions = reallocarray(offer->functions, offer->n + 1, sizeof(*functions));
	struct source **sources = reallocarray(offer->sources, offer->n + 1, sizeof(struct source *));
	struct lair_function copy = *function;
	bool all;

	offer->functions = functions ? functions : offer->functions;
	offer->sources = sources ? sources : offer->sources;
	if (!functions || !sources)
		return -ENOMEM;
	for (size_t i = 0; i < offer->n; i++)
		if (strcmp(functions[i].name, function->name) == 0)
			return -EEXIST;
	copy.ask |= matches(&offer->cli->ask, function->name);
	copy.effect |= matches(&offer->cli->effect, function->name);
	all = texts_copy(&copy);
	sources[offer->n] = source;
	functions[offer->n++] = copy;
	return all ? 0 : -ENOMEM;
}

const struct lair_function *offer_functions(const struct offer *offer, size_t *np)
{
	static const struct lair_function none[1];

	*np = offer->n;
	return offer->n ? offer->functions : none;
}

int offer_new(struct offer **offerp, const struct cli *cli)
{
	_cleanup_(offer_freep) struct offer *offer = NULL;
	int r;

	*offerp = NULL;
	if (cli->functions.n == 0 && !cli->servers)
		return 0;
	offer = calloc(1, sizeof(*offer));
	if (!offer)
		return cli_fail(cli, "error", "out of memory");
	offer->cli = cli;
	r = cli->functions.n ? commands_offer(offer, cli) : 0;
	if (!r && cli->servers)
		r = server_tools_offer(offer, cli);
	if (!r)
		r = patterns_check(offer, "--ask", &cli->ask);
	if (!r)
		r = patterns_check(offer, "--effect", &cli->effect);
	if (!r)
		*offerp = steal_ptr(&offer);
	return r;
}

/* ---- calls ---- */

void offer_call(struct offer *offer, struct lair_calling *calling)
{
	const char *name = lair_calling_function(calling).data;

	for (size_t i = 0; i < offer->n; i++) {
		if (strcmp(offer->functions[i].name, name) == 0) {
			offer->sources[i]->call(offer->sources[i], calling);
			return;
		}
	}
	/* Of a cell that was attached to. */
	if (lair_raise(calling, "FunctionError", "who answers now does not have that function"))
		lair_calling_free(calling);
}

void offer_cancel(struct offer *offer, uint64_t number)
{
	for (struct source *source = offer->first; source; source = source->next)
		source->cancel(source, number);
}

void offer_end(struct offer *offer)
{
	for (struct source *source = offer->first; source; source = source->next)
		source->end(source);
}
