/* The settings are read anew, because an operator says so, by a signal or a request. If anything is wrong with
 * them, nothing changes. */
#include "router.h"

#include "base/log.h"
#include "config/changes.h"
#include "config/paths.h"
#include "session/events.h"

#include <stdio.h>

/* For the answer. */
struct changes {
	msgpack_sbuffer records;
	size_t n;
};

static int on_delta(void *userdata, const struct setting_delta *delta)
{
	struct changes *changes = userdata;
	const struct setting_change record = {
		.change = bytes_of(delta->kind),
		.profile = bytes_of(delta->profile),
		.setting = bytes_of(delta->setting),
		.before = bytes_of(delta->before),
		.after = bytes_of(delta->after),
		.restart = delta->at_start,
	};

	changes->n++;
	return wire_encode_body(&changes->records, &setting_change_schema, &record);
}

static int delta_log(void *userdata, const struct setting_delta *delta)
{
	(void)userdata;
	if (delta->at_start)
		log_warn(NULL, "%s has changed, which counts when laird is started anew", delta->setting);
	return 0;
}

/* Sessions that go on may change what they were given to write to, whatever the settings say by now. */
static int config_check(struct router *router, const struct config *config, struct config_error *error)
{
	struct list *const heads[] = {&router->cages.nurseries, &router->cages.retired};
	_cleanup_(freep) const struct profile **profiles = NULL;
	struct in_use in_use = {.socket = router->socket_path, .workspaces = router->cages.workspaces.path};
	struct nursery *nursery;

	profiles = calloc(list_size(heads[0]) + list_size(heads[1]) + 1, sizeof(struct profile *));
	if (!profiles) {
		(void)snprintf(error->text, sizeof(error->text), "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		list_for_each (nursery, heads[i], node)
			if (nursery_is_used(nursery))
				profiles[in_use.n_profiles++] = nursery->profile;
	in_use.profiles = profiles;
	return config_check_paths(config, config_name(config), &in_use, error);
}

/* Those of the file, checked. Returns 0, or -errno with @error. */
static int settings_read(struct router *router, struct config **configp, struct config_error *error)
{
	char usual[PATH_SIZE];
	const char *path = router->config_path;
	struct config *config;
	int r;

	/* Where there was none, there may be one by now. */
	if (!path && config_usual(usual) == 0 && *usual)
		path = usual;
	r = config_load(&config, path, error);
	if (r)
		return r;
	r = config_check(router, config, error);
	if (r)
		config_free(config);
	else
		*configp = config;
	return r;
}

/* ---- who asked ---- */

static void asker_free(struct waiter *waiter)
{
	list_remove(&waiter->node);
	free(waiter);
}

static void askers_free(struct list *askers)
{
	struct waiter *waiter;

	list_for_each (waiter, askers, node)
		asker_free(waiter);
}

static void askers_refuse(struct router *router, struct list *askers, const char *code, const char *sentence)
{
	struct waiter *waiter;

	list_for_each (waiter, askers, node)
		client_error(&router->clients, &waiter->request, code, "%s", sentence);
	askers_free(askers);
}

static void askers_tell(struct router *router, const struct changes *changes)
{
	struct reload_reply reply = {.path = bytes_of(router->config->path)};
	struct waiter *waiter;
	msgpack_sbuffer array;
	int r;

	msgpack_sbuffer_init(&array);
	r = wire_put_array(&array, changes->n);
	if (!r && changes->n > 0)
		r = msgpack_sbuffer_write(&array, changes->records.data, changes->records.size);
	reply.changes = wire_bytes(&array);
	if (r)
		askers_refuse(router, &router->reload.askers, "internal",
			      "the new settings are in force; no memory is left to list the changes");
	list_for_each (waiter, &router->reload.askers, node) {
		reply.id = waiter->request.id;
		client_send(&router->clients, &waiter->request, &reload_reply_schema, &reply);
	}
	askers_free(&router->reload.askers);
	msgpack_sbuffer_destroy(&array);
}

static void fail(struct router *router, const struct config_error *error)
{
	char sentence[sizeof(error->text) + 32];

	(void)snprintf(sentence, sizeof(sentence), "%s; nothing has changed", error->text);
	log_error(NULL, "%s", sentence);
	askers_refuse(router, &router->reload.askers, "settings", sentence);
}

/* ---- on their way ---- */

/* Nobody waits for the audit log any more. */
static void log_drop(struct router *router)
{
	struct reload *reload = &router->reload;

	event_remove(&router->loop, &reload->source);
	timer_clear(&router->loop, &reload->patience);
	audit_log_close(&reload->log);
}

/* The last thing that can fail comes last. Returns 0, or -errno with @error. */
static int settings_replace(struct router *router, struct config *config, struct changes *changes,
			    struct config_error *error)
{
	/* Sessions may have been opened while the audit log was. */
	int r = config_check(router, config, error);

	if (r)
		return r;
	r = config_compare(router->config, config, on_delta, changes);
	if (r) {
		(void)snprintf(error->text, sizeof(error->text), "%s", strerror(-r));
		return r;
	}
	r = settings_prepare(router, config, error);
	if (r)
		return r;
	log_info(NULL, "settings re-read from %s, for sessions opened from now on",
		 config->path ? config->path : "the embedded default");
	(void)config_compare(router->config, config, delta_log, NULL);
	audit_log_replace(&router->sessions, &router->reload.log);
	settings_use(router, config);
	return 0;
}

static void bring_into_force(struct router *router)
{
	struct config *config = steal_ptr(&router->reload.config);
	struct changes changes = {.n = 0};
	struct config_error error;

	msgpack_sbuffer_init(&changes.records);
	if (settings_replace(router, config, &changes, &error)) {
		config_free(config);
		fail(router, &error);
	} else {
		askers_tell(router, &changes);
	}
	msgpack_sbuffer_destroy(&changes.records);
}

static void begin(struct router *router);

/* The audit log is open if @r is 0. */
static void end(struct router *router, int r)
{
	struct reload *reload = &router->reload;
	char trouble[AUDIT_LOG_TROUBLE_SIZE];
	struct config_error error;

	event_remove(&router->loop, &reload->source);
	if (r) {
		(void)snprintf(error.text, sizeof(error.text), "%s",
			       audit_log_trouble(trouble, reload->config->audit_log, r));
		reload->config = config_free(reload->config);
		fail(router, &error);
	} else {
		bring_into_force(router);
	}
	log_drop(router);
	if (reload->again)
		begin(router);
}

static void on_heard(struct event_source *source, uint32_t events)
{
	struct router *router = container_of(source, struct router, reload.source);
	int r = audit_log_hear(&router->reload.log);

	(void)events;
	if (r != AUDIT_LOG_E_WAIT)
		end(router, r);
}

static void on_late(struct timer *timer)
{
	end(container_of(timer, struct router, reload.patience), AUDIT_LOG_E_WAIT);
}

/* Returns 0 or -errno. */
static int log_begin(struct router *router)
{
	struct reload *reload = &router->reload;
	int r = audit_log_begin(&reload->log, reload->config->audit_log);

	if (!r)
		r = event_add(&router->loop, &reload->source, reload->log.scribe, EPOLLIN, on_heard);
	return r ? r
		 : timer_set(&router->loop, &reload->patience, event_now() + AUDIT_LOG_PATIENCE_MS * 1000, on_late);
}

/* For everybody who has asked so far. */
static void begin(struct router *router)
{
	struct reload *reload = &router->reload;
	struct config_error error;
	struct waiter *waiter;
	int r;

	reload->again = false;
	list_for_each (waiter, &reload->later, node) {
		list_remove(&waiter->node);
		list_append(&reload->askers, &waiter->node);
	}
	if (settings_read(router, &reload->config, &error)) {
		fail(router, &error);
		return;
	}
	r = reload->config->audit_log ? log_begin(router) : 0;
	if (r || !reload->config->audit_log)
		end(router, r);
}

void reload(struct router *router)
{
	router->reload.again = true;
	if (!router->reload.config)
		begin(router);
}

static void on_request(struct sessions *sessions, const struct address *from)
{
	struct router *router = container_of(sessions, struct router, sessions);
	struct waiter *waiter = calloc(1, sizeof(*waiter));

	if (!waiter) {
		client_error(sessions->clients, from, "internal", "out of memory; nothing has changed");
		return;
	}
	waiter->request = *from;
	list_init(&waiter->node);
	list_append(&router->reload.later, &waiter->node);
	reload(router);
}

/* ---- its life ---- */

void reload_init(struct router *router)
{
	router->reload = (struct reload){.log = AUDIT_LOG_NONE, .source = EVENT_SOURCE_NONE};
	list_init(&router->reload.askers);
	list_init(&router->reload.later);
	router->sessions.reload = on_request;
}

void reload_cancel(struct router *router)
{
	struct reload *reload = &router->reload;

	log_drop(router);
	reload->config = config_free(reload->config);
	reload->again = false;
	askers_refuse(router, &reload->askers, "gone", "laird is stopping; nothing has changed");
	askers_refuse(router, &reload->later, "gone", "laird is stopping; nothing has changed");
}

void reload_deinit(struct router *router)
{
	log_drop(router);
	router->reload.config = config_free(router->reload.config);
	askers_free(&router->reload.askers);
	askers_free(&router->reload.later);
}
