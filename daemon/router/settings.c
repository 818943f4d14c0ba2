/* The settings in force: read when the router starts, or as the last router had them, and again when somebody says
 * so. Sessions keep the profile they were opened with. */
#include "router.h"

#include "base/directory.h"
#include "base/log.h"
#include "config/paths.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>

static bool any_packages(const struct config *config)
{
	for (size_t i = 0; i < config->n_profiles; i++)
		if (config->profiles[i]->packages != PACKAGES_OFF)
			return true;
	return false;
}

/* The store is there before the first session that is to see it. Returns 0; or another value with @error. */
static int packages_prepare(struct router *router, struct config *config, struct config_error *error)
{
	struct package_store *store = &router->builds.store;
	char path[PATH_MAX];
	int r = 0;

	if (!any_packages(config))
		return 0;
	if (store->fd < 0)
		r = package_store_open(store, config->packages_store, router->socket_path);
	if (!r)
		r = package_store_sets(path, config->packages_store, router->socket_path);
	if (!r)
		r = pin_take(&config->sets, path, true);
	if (r)
		(void)snprintf(error->text, sizeof(error->text), "cannot use the store of packages: %s",
			       r < 0 ? strerror(-r) : "it was replaced at this very moment");
	return r ? 1 : 0;
}

/* Forks of an image share memory layout and hash seed with all that ever wake from it, so there are images only
 * where all sessions are one user's. */
static void images_prepare(struct router *router, const struct config *config)
{
	char path[PATH_MAX];
	int r;

	fd_closep(&router->cages.images);
	if (!config->template_images || config->socket_mode & 077)
		return;
	r = directory_of_state(path, "images", NULL, router->socket_path);
	if (!r) {
		*strrchr(path, '/') = '\0'; /* all lairds of the user share it, so that it has a bound */
		r = directory_make(path);
	}
	if (!r)
		router->cages.images = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (r || router->cages.images < 0 || fchmod(router->cages.images, 0700) < 0)
		log_warn(NULL, "no images of templates in %s: %s", path, strerror(r ? -r : errno));
}

int settings_prepare(struct router *router, struct config *config, struct config_error *error)
{
	const struct in_use in_use = {.socket = router->socket_path, .workspaces = router->cages.workspaces.path};
	_cleanup_(fd_closep) int left = -1;
	int r = config_pin_own(config, &in_use);

	if (!r)
		r = packages_prepare(router, config, error);
	if (!r)
		images_prepare(router, config);
	if (r > 0)
		return -ECANCELED;

	if (!r)
		r = config_leave(&left, config);
	if (!r)
		r = vault_store(VAULT_SETTINGS, 0, 0, &left, 1);
	if (r)
		(void)snprintf(error->text, sizeof(error->text),
			       "cannot leave the settings for the next router: %s", strerror(-r));
	return r;
}

/* Sessions of the last router stay open without the audit log; cells are refused until it opens. */
int settings_start(struct router *router, struct config_error *error)
{
	const char *path = router->config->audit_log;
	_cleanup_(audit_log_close) struct audit_log log = AUDIT_LOG_NONE;
	bool first = !vault_find(&router->vault, VAULT_SETTINGS, 0, 0);
	int r = path ? audit_log_open(&log, path) : 0;

	if (r)
		(void)audit_log_trouble(error->text, path, r);
	if (r && !first && log.file) {
		log_error(NULL, "%s", error->text);
		r = 0;
	}
	if (!r)
		r = settings_prepare(router, router->config, error);
	if (!r)
		audit_log_replace(&router->sessions, &log);
	return r;
}

/* Each kind of memory that clients and sessions cause has a bound of its own. This bounds the sum, in case one is
 * missing. */
static void memory_limit(uint64_t size)
{
	struct rlimit limit;
	int r = getrlimit(RLIMIT_DATA, &limit);

#ifdef __SANITIZE_ADDRESS__
	size = 0; /* its shadow counts, and is larger than all else */
#endif
	limit.rlim_cur = size ? MIN((rlim_t)size, limit.rlim_max) : limit.rlim_max;
	if (r < 0 || setrlimit(RLIMIT_DATA, &limit) < 0)
		log_warn(NULL, "router_memory cannot be set: %s", strerror(errno));
}

/* Without a disk for it, the next router has it from the keeper. */
static void past_begin_life(struct router *router)
{
	struct vault_item *left = vault_find(&router->vault, VAULT_PAST, 0, 0);
	struct past *past = &router->sessions.past;

	if (left)
		left->taken = true;
	if (past_open(past, &router->saved, left ? steal_fd(&left->fds[0]) : -1) &&
	    vault_store(VAULT_PAST, 0, 0, &past->fd, 1))
		log_warn(NULL, "the next router will not know how sessions have ended");
}

/* Sessions keep the profile they were opened with. A new file means new templates, all warmed at once. */
void settings_use(struct router *router, struct config *config)
{
	bool first = !router->config;

	cages_retire_all(&router->cages);
	config_free(router->config);
	router->config = config;
	router->cages.config = router->sessions.config = router->builds.config = config;
	router->clients.settings =
		config->path ? config->path : "the sessions.conf inside laird (laird -d prints it)";
	router->promises.size_per_user = config->results_per_uid;
	router->users.share = config->work_per_uid;
	front_limit(&router->clients.front,
		    &(struct front_limits){.connections_per_uid = config->connections_per_uid,
					   .memory = config->router_memory});
	memory_limit(config->router_memory);
	router->saved = (struct saved_store){
		.configured = config->saves, .socket = router->socket_path, .per_user = config->saves_per_uid};
	saved_sweep(&router->saved, first);
	if (first)
		past_begin_life(router);
	for (size_t i = 0; i < config->n_profiles; i++)
		cages_warm(&router->cages, config->profiles[i]);
}

/* Those that were in force, if a router has left any: they change on request, not because a router died.
 */
int settings_begin(struct router *router)
{
	struct vault_item *left = vault_find(&router->vault, VAULT_SETTINGS, 0, 0);
	struct config_error error;
	int r;

	if (left) {
		left->taken = true;
		r = config_recall(&router->config, left->fds[0], &error);
		if (!r)
			return 0;
		log_warn(NULL, "%s; they are read anew", error.text);
	}
	r = config_load(&router->config, router->config_path, &error);
	if (r)
		log_error(NULL, "%s", error.text);
	return r;
}
