/* The engine: its life, what it says, and what it does when a time has come. methods.c has what it hears. */
#include "functions.h"
#include "servers/offered.h"

#include <stdio.h>

struct engine *engine_new(const struct mcp_options *options, struct lair *lair, const char *session,
			  engine_say *say, void *userdata)
{
	struct engine *engine = calloc(1, sizeof(*engine));

	if (!engine)
		return NULL;
	*engine = (struct engine){
		.options = *options, .lair = lair, .lent = lair != NULL, .say = say, .userdata = userdata};
	snprintf(engine->session, sizeof(engine->session), "%s", session);
	engine->births = json_object();
	engine->asked = json_object();
	return offered_new(&engine->offered, options->servers) ? engine_free(engine) : engine;
}

struct engine *engine_free(struct engine *engine)
{
	if (!engine)
		return NULL;
	engine->mute = true;
	engine_interrupt(engine);
	while (engine->requests)
		request_drop(engine->requests);
	if (!engine->lent)
		engine->lair = lair_free(engine->lair);
	engine->offered = offered_free(engine->offered);
	json_decref(engine->births);
	json_decref(engine->asked);
	free(engine);
	return NULL;
}

/* @about: the id of the request that it belongs to; NULL: none. */
static void send_about(const struct engine *engine, json_t *document, const json_t *about)
{
	if (engine->mute)
		json_decref(document);
	else
		engine->say(engine->userdata, document, about);
}

void engine_send(struct engine *engine, json_t *document)
{
	send_about(engine, document, json_object_get(document, "id"));
}

void request_tell(const struct request *request, json_t *document)
{
	send_about(request->engine, document, request->id);
}

int engine_connect(struct engine *engine, struct lair **lairp, bool start, const char **sentencep)
{
	struct lair_options options = engine->options.lair;
	int r = 0;

	if (engine->lent) {
		*lairp = engine->lair;
		*sentencep = "laird does not answer";
		return lair_fd(engine->lair) < 0 ? LAIR_E_NO_DAEMON : 0;
	}
	/* If a handle must not start a daemon, it is of no use once its daemon has gone. */
	if (engine->lair && lair_fd(engine->lair) < 0)
		engine->lair = lair_free(engine->lair);
	options.no_start = options.no_start || !start;
	if (!engine->lair)
		r = lair_new(&engine->lair, &options);
	if (r) {
		*sentencep = strerror(-r);
		return r;
	}
	*lairp = engine->lair;
	r = lair_connect(engine->lair);
	*sentencep = lair_error(engine->lair);
	return r;
}

double engine_due(const struct engine *engine)
{
	double due = 0;

	for (const struct request *request = engine->requests; request; request = request->next)
		if (request->due && (!due || request->due < due))
			due = request->due;
	return due;
}

void engine_tick(struct engine *engine)
{
	double now = clock_seconds();
	struct request *next;

	for (struct request *request = engine->requests; request; request = next) {
		next = request->next;
		if (request->due && request->due <= now)
			request->on_due(request);
	}
}

void engine_end(struct engine *engine)
{
	struct request *next;

	for (struct request *request = engine->requests; request; request = next) {
		next = request->next;
		if (request->answered || request->resume)
			request_drop(request);
		else if (!request->call)
			request_reply(request, json_pack("{s:{s:O}}", "_meta",
							 "io.modelcontextprotocol/subscriptionId", request->id));
	}
}

void engine_interrupt(struct engine *engine)
{
	struct request *next;

	for (struct request *request = engine->requests; request; request = next) {
		next = request->next;
		if (!request->cancelled && !request->answered)
			request_cancel(request);
	}
}
