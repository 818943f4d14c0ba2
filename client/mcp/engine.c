/* The engine: its life, its connection to the daemon, and the messages that it sends. methods.c has those that it
 * takes. */
#include "functions.h"
#include "servers/offered.h"
#include "servers/servers.h"

#include <stdio.h>

struct engine *engine_new(const struct mcp_options *options, struct lair *lair, const char *session,
			  engine_say *say, void *userdata)
{
	struct engine *engine = calloc(1, sizeof(*engine));

	if (!engine)
		return NULL;
	*engine = (struct engine){.options = *options,
				  .lair = lair,
				  .on_lair = EVENT_SOURCE_NONE,
				  .lent = lair != NULL,
				  .say = say,
				  .userdata = userdata};
	snprintf(engine->session, sizeof(engine->session), "%s", session);
	engine->births = json_object();
	rpc_asker_init(&engine->asker);
	if (options->servers)
		servers_on_turn(options->servers, functions_resume, engine);
	return offered_new(&engine->offered, options->servers) ? engine_free(engine) : engine;
}

static void disconnect(struct engine *engine)
{
	event_remove(engine->options.loop, &engine->on_lair);
	engine->lair = lair_free(engine->lair);
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
		disconnect(engine);
	if (engine->options.servers)
		servers_on_turn(engine->options.servers, NULL, NULL);
	engine->offered = offered_free(engine->offered);
	json_decref(engine->births);
	functions_forget(engine);
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

static void on_lair(struct event_source *source, uint32_t events)
{
	struct engine *engine = container_of(source, struct engine, on_lair);

	/* If the daemon is gone, each of its calls has said so. */
	if (lair_process(engine->lair) == LAIR_E_LOST)
		disconnect(engine);
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
		disconnect(engine);
	options.no_start = options.no_start || !start;
	if (!engine->lair)
		r = lair_new(&engine->lair, &options);
	if (r) {
		*sentencep = strerror(-r);
		return r;
	}
	*lairp = engine->lair;
	/* Another connection has another descriptor. */
	event_remove(engine->options.loop, &engine->on_lair);
	r = lair_connect(engine->lair);
	*sentencep = lair_error(engine->lair);
	return r ? r : event_add(engine->options.loop, &engine->on_lair, lair_fd(engine->lair), EPOLLIN, on_lair);
}

static void on_due(struct timer *timer)
{
	struct request *request = container_of(timer, struct request, timer);

	request->on_due(request);
}

void request_due(struct request *request, double due)
{
	struct event_loop *loop = request->engine->options.loop;

	timer_clear(loop, &request->timer);
	if (due > 0 && timer_set_in(loop, &request->timer, due - clock_seconds(), on_due))
		request->engine->error = -ENOMEM;
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
