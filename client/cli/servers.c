/* servers: the tools of MCP servers as functions. For a person, a list. For a program, calls: lines of JSON on
 * stdin, lines of JSON on stdout. The protocol itself is client/servers/. */
#include "cli.h"

#include "base/json.h"
#include "base/jsonrpc.h"
#include "base/lines.h"
#include "base/outbox.h"
#include "base/text.h"
#include "servers/servers.h"

#include <signal.h>
#include <stdio.h>

#define LINE_SIZE_MAX ((size_t)64 << 20)
/* While so much waits to be written, no more is read. */
#define OUTBOX_FULL ((size_t)16 << 20)

static void on_failure(const char *text, void *userdata)
{
	cli_notice("%s", text);
}

/* Returns 0 or an exit status, having said why. */
static int servers_open(const struct cli *cli, struct servers **serversp, const char *path,
			const struct servers_options *options)
{
	_cleanup_(freep) char *why = NULL;
	int r = servers_new(serversp, path, options, &why);

	(void)signal(SIGPIPE, SIG_IGN);
	if (r == -EINVAL && why)
		return cli_usage(cli, "%s", why);
	return r ? cli_fail(cli, "error", "%s", why ? why : strerror(-r)) : 0;
}

int cli_servers(const struct cli *cli, struct servers **serversp)
{
	struct servers_options options = {.loop = cli->loop, .allow = cli->allow.items, .on_failure = on_failure};

	return cli->servers ? servers_open(cli, serversp, cli->servers, &options) : 0;
}

/* ---- for a person ---- */

static void function_print(const json_t *function, int width)
{
	const char *name = json_string_value(json_object_get(function, "name"));
	const json_t *doc = json_object_get(function, "doc");
	struct lair_text text = {json_string_value(doc), json_string_length(doc)};
	char shown[400];

	text.size = text.data ? strcspn(text.data, "\n") : 0;
	printf("%-*s  %-4s  %s\n", width, name, json_object_get(function, "caution") ? "asks" : "",
	       text_tamed(shown, sizeof(shown), text));
}

static int functions_print(struct cli *cli, const struct servers *servers)
{
	json_t *functions = servers_functions(servers), *failed = servers_failed(servers), *function;
	bool any_failed = json_object_size(failed) > 0;
	int width = 0, r;
	size_t i;

	if (cli->json)
		return json_print(json_pack("{s:o, s:o}", "functions", functions, "failed", failed));
	json_array_foreach(functions, i, function)
	{
		width = MAX(width, (int)json_string_length(json_object_get(function, "name")));
	}
	json_array_foreach(functions, i, function)
	{
		function_print(function, width);
	}
	json_decref(functions);
	json_decref(failed);
	r = any_failed || ferror(stdout) ? EXIT_TROUBLE : 0;
	return r;
}

static int functions_list(struct cli *cli)
{
	struct servers_options options = {
		.loop = cli->loop, .allow = cli->allow.items, .on_failure = cli->json ? NULL : on_failure};
	struct servers *servers = NULL;
	int r = servers_open(cli, &servers, cli->args[0], &options);

	if (r)
		return r;
	r = servers_wait(servers);
	r = r ? cli_fail(cli, "error", "%s", strerror(-r)) : functions_print(cli, servers);
	servers_free(servers);
	return r;
}

/* ---- for a program ---- */

struct serving;

/* A call that the program waits for. */
struct asked {
	struct asked *next;
	struct serving *serving;
	json_t *id;
	struct servers_call *call;
};

struct serving {
	struct event_loop *loop;
	struct servers *servers;
	struct lines input;
	struct outbox outbox;
	struct event_source on_input, on_output;
	struct asked *asked;
	bool told; /* which functions there are */
	int error;
};

static void say(struct serving *serving, json_t *document)
{
	if (outbox_add(&serving->outbox, document))
		serving->error = -ENOMEM;
}

static void asked_free(struct asked *asked)
{
	struct asked **at = &asked->serving->asked;

	while (*at != asked)
		at = &(*at)->next;
	*at = asked->next;
	json_decref(asked->id);
	free(asked);
}

static void on_done(json_t *result, const char *error, const char *text, void *userdata)
{
	struct asked *asked = userdata;

	if (result)
		say(asked->serving, json_pack("{s:O, s:O}", "id", asked->id, "result", result));
	else
		say(asked->serving, json_pack("{s:O, s:s, s:o}", "id", asked->id, "error", error, "text",
					      json_text(lair_text(text))));
	asked_free(asked);
}

static void on_progress(json_t *params, void *userdata)
{
	struct asked *asked = userdata;

	say(asked->serving,
	    json_pack("{s:O, s:O*, s:O*, s:O*}", "id", asked->id, "progress", json_object_get(params, "progress"),
		      "total", json_object_get(params, "total"), "message", json_object_get(params, "message")));
}

static void refuse(struct serving *serving, json_t *id, const char *error, const char *text)
{
	say(serving, json_pack("{s:O, s:s, s:s}", "id", id ? id : json_null(), "error", error, "text", text));
}

static void call_take(struct serving *serving, json_t *id, const char *function, json_t *arguments)
{
	struct asked *asked = calloc(1, sizeof(*asked));
	int r = asked ? servers_call(serving->servers, &asked->call, function, json_incref(arguments), on_done,
				     on_progress, asked)
		      : -ENOMEM;

	if (r) {
		refuse(serving, id, "LookupError", r == -ENOENT ? "there is no such function" : "out of memory");
		free(asked);
		return;
	}
	asked->serving = serving;
	asked->id = json_incref(id);
	asked->next = serving->asked;
	serving->asked = asked;
}

static void cancel_take(struct serving *serving, const json_t *id)
{
	struct asked *asked = serving->asked;

	while (asked && !json_equal(asked->id, id))
		asked = asked->next;
	if (asked) {
		servers_cancel(asked->call);
		asked_free(asked);
	}
}

static void line_take(struct serving *serving, struct lair_text line)
{
	json_t *document = json_loadb(line.data, line.size, JSON_ALLOW_NUL, NULL);
	json_t *id = json_object_get(document, "id"), *arguments = json_object_get(document, "arguments");
	const char *function = json_text_value(json_object_get(document, "function"));

	if (json_object_get(document, "cancel"))
		cancel_take(serving, json_object_get(document, "cancel"));
	else if (json_is_integer(id) && function && json_is_object(arguments))
		call_take(serving, id, function, arguments);
	else
		refuse(serving, id, "ValueError",
		       "expected {\"id\": N, \"function\": NAME, \"arguments\": {...}}, or "
		       "{\"cancel\": N}");
	json_decref(document);
}

/* The first time, when each server has said what it has, or has failed. */
static void on_functions(void *userdata)
{
	struct serving *serving = userdata;

	serving->told = serving->told && !servers_settled(serving->servers);
}

static void on_serving_failure(const char *text, void *userdata)
{
	on_functions(userdata);
}

static void functions_tell(struct serving *serving)
{
	if (serving->told || !servers_settled(serving->servers))
		return;
	serving->told = true;
	say(serving, json_pack("{s:o, s:o}", "functions", servers_functions(serving->servers), "failed",
			       servers_failed(serving->servers)));
}

static void lines_take(struct serving *serving)
{
	struct lair_text line;
	int r;

	while (!serving->error && outbox_waiting(&serving->outbox) < OUTBOX_FULL &&
	       (r = lines_next(&serving->input, &line)) != LINES_E_EMPTY) {
		if (r == LINES_E_EOF)
			serving->error = -EPIPE;
		else if (r)
			refuse(serving, NULL, "ValueError", "this line is too long");
		else
			line_take(serving, line);
	}
}

static void on_input(struct event_source *source, uint32_t events)
{
	struct serving *serving = container_of(source, struct serving, on_input);
	int r = lines_fill(&serving->input);

	if (r && !serving->error)
		serving->error = r;
}

static void on_output(struct event_source *source, uint32_t events)
{
	/* Each round writes. */
}

static void serving_round(struct serving *serving)
{
	int r;

	lines_take(serving);
	functions_tell(serving);
	r = outbox_flush(&serving->outbox);
	if (!r)
		r = event_set(serving->loop, &serving->on_input, serving->input.fd,
			      outbox_waiting(&serving->outbox) < OUTBOX_FULL ? EPOLLIN : 0, on_input);
	if (!r)
		r = event_set(serving->loop, &serving->on_output, serving->outbox.fd,
			      outbox_waiting(&serving->outbox) ? EPOLLOUT : 0, on_output);
	if (!r && !serving->error)
		r = event_round(serving->loop, -1);
	if (r && !serving->error)
		serving->error = r;
}

static int functions_serve(struct cli *cli)
{
	struct serving serving = {.loop = cli->loop, .on_input = EVENT_SOURCE_NONE, .on_output = EVENT_SOURCE_NONE};
	struct servers_options options = {.loop = cli->loop,
					  .allow = cli->allow.items,
					  .on_functions = on_functions,
					  .on_failure = on_serving_failure,
					  .userdata = &serving};
	int r = servers_open(cli, &serving.servers, cli->args[0], &options);

	if (r)
		return r;
	lines_init(&serving.input, STDIN_FILENO);
	serving.input.size_max = LINE_SIZE_MAX;
	outbox_init(&serving.outbox, STDOUT_FILENO);
	servers_start(serving.servers);
	while (!serving.error)
		serving_round(&serving);
	while (serving.asked) {
		servers_cancel(serving.asked->call);
		asked_free(serving.asked);
	}
	event_remove(serving.loop, &serving.on_input);
	event_remove(serving.loop, &serving.on_output);
	servers_free(serving.servers);
	lines_deinit(&serving.input);
	outbox_deinit(&serving.outbox);
	/* Nobody asks any more, or nobody reads. */
	return serving.error == -EPIPE ? 0 : cli_fail(cli, "error", "%s", strerror(-serving.error));
}

int verb_servers(struct cli *cli)
{
	return cli->serve ? functions_serve(cli) : functions_list(cli);
}
