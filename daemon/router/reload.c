/* The settings are read anew, because an operator says so, by a signal or a request. If anything is wrong with
 * them, nothing changes. */
#include "router.h"

#include "base/log.h"
#include "config/changes.h"
#include "config/paths.h"

#include <stdio.h>

static int on_delta(void *userdata, const struct setting_delta *delta)
{
	const struct setting_change record = {
		.change = bytes_of(delta->kind),
		.profile = bytes_of(delta->profile),
		.setting = bytes_of(delta->setting),
		.before = bytes_of(delta->before),
		.after = bytes_of(delta->after),
		.restart = delta->at_start,
	};

	return wire_list_add(userdata, &setting_change_schema, &record);
}

static int delta_log(void *userdata, const struct setting_delta *delta)
{
	if (delta->at_start)
		log_warn(NULL, "%s has changed, which counts when laird is started anew", delta->setting);
	return 0;
}

/* Open sessions may still write to the directories of their own settings. */
static int config_check(struct router *router, const struct config *config, struct config_error *error)
{
	struct list *const heads[] = {&router->cages.nurseries, &router->cages.retired};
	_cleanup_(freep) const struct profile **profiles = NULL;
	struct in_use in_use = {.socket = router->socket_path, .workspaces = router->cages.workspaces.path};
	struct nursery *nursery;
	struct warden *warden;
	size_t n = 1;

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		list_for_each (nursery, heads[i], node)
			n += list_size(&nursery->wardens);
	profiles = calloc(n, sizeof(struct profile *));
	if (!profiles) {
		(void)snprintf(error->text, sizeof(error->text), "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		list_for_each (nursery, heads[i], node)
			list_for_each (warden, &nursery->wardens, node)
				if (!list_empty(&warden->tenants))
					profiles[in_use.n_profiles++] = warden->profile;
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

/* ---- the answer ---- */

static void tell(struct router *router, const struct address *asker, struct wire_list *changes)
{
	struct reload_reply reply = {.path = bytes_of(router->config->path)};

	if (!asker)
		return;
	reply.id = asker->id;
	reply.changes = wire_list_bytes(changes);
	client_send(&router->clients, asker, &reload_reply_schema, &reply);
}

static void refuse(struct router *router, const struct address *asker, const struct config_error *error)
{
	log_error(NULL, "%s; nothing has changed", error->text);
	if (asker)
		client_error(&router->clients, asker, "settings", "%s; nothing has changed", error->text);
}

/* ---- the reload ---- */

/* The last thing that can fail comes last. Returns 0, or another value with @error. */
static int settings_replace(struct router *router, struct config *config, struct wire_list *changes,
			    struct config_error *error)
{
	_cleanup_(audit_log_close) struct audit_log log = AUDIT_LOG_NONE;
	int r = config->audit_log ? audit_log_open(&log, config->audit_log) : 0;

	if (r) {
		(void)audit_log_trouble(error->text, config->audit_log, r);
		return r;
	}
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
	audit_log_replace(&router->sessions, &log);
	settings_use(router, config);
	return 0;
}

void reload(struct router *router, const struct address *asker)
{
	_cleanup_(wire_list_deinit) struct wire_list changes = {0};
	struct config *config = NULL;
	struct config_error error;

	if (settings_read(router, &config, &error)) {
		refuse(router, asker, &error);
	} else if (settings_replace(router, config, &changes, &error)) {
		config_free(config);
		refuse(router, asker, &error);
	} else {
		tell(router, asker, &changes);
	}
}

static void on_request(struct sessions *sessions, const struct address *from)
{
	reload(container_of(sessions, struct router, sessions), from);
}

void reload_init(struct router *router)
{
	router->sessions.reload = on_request;
}
