/* Whoever asks, and a connection to laird for each. laird takes turns between the connections of a user, so no
 * tenant has to wait for all that another one has asked. */
#include "server.h"

#include "text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define RETRY 1.0

static struct tenant *tenant_free(struct tenant *tenant)
{
	if (!tenant)
		return NULL;
	if (tenant->fd >= 0)
		server_unwatch(tenant->server, tenant->fd);
	(void)lair_free(tenant->lair);
	for (size_t i = 0; tenant->profiles && tenant->profiles[i]; i++)
		free(tenant->profiles[i]);
	free(tenant->profiles);
	free(tenant->prefix);
	free(tenant->name);
	free(tenant);
	return NULL;
}

static void on_lair(struct watched *watched)
{
	struct tenant *tenant = (struct tenant *)((char *)watched - offsetof(struct tenant, watched));

	if (lair_process(tenant->lair) == LAIR_E_LOST) {
		server_unwatch(tenant->server, tenant->fd);
		tenant->fd = -1;
	}
}

static struct tenant *tenant_new(struct server *server, const char *name, const char *prefix)
{
	struct tenant *tenant = calloc(1, sizeof(*tenant));

	if (!tenant)
		return NULL;
	tenant->server = server;
	tenant->watched.on_ready = on_lair;
	tenant->fd = -1;
	tenant->name = strdup(name);
	tenant->prefix = strdup(prefix);
	if (!tenant->name || !tenant->prefix)
		return tenant_free(tenant);
	tenant->next = server->tenants;
	server->tenants = tenant;
	return tenant;
}

int tenants_open(struct server *server)
{
	server->open = true;
	return tenant_new(server, "", "") ? 0 : -ENOMEM;
}

void tenants_close(struct server *server)
{
	for (struct tenant *tenant; (tenant = server->tenants);) {
		server->tenants = tenant->next;
		tenant_free(tenant);
	}
}

struct tenant *tenant_of(struct server *server, const char *token)
{
	(void)token;
	return server->open ? server->tenants : NULL;
}

static int tenant_connect(struct tenant *tenant)
{
	/* laird is started once, when we are. Later, whoever has stopped it wants it stopped. */
	struct lair_options options = {
		.socket = tenant->server->options->lair.socket, .no_start = true, .timeout = 2};
	int r = 0;

	if (!tenant->lair)
		r = lair_new(&tenant->lair, &options);
	if (!r)
		r = lair_connect(tenant->lair);
	if (!r) {
		tenant->held = 0;
		tenant->fd = lair_fd(tenant->lair);
		r = server_watch(tenant->server, tenant->fd, EPOLLIN, &tenant->watched);
	}
	return r;
}

int tenant_lair(struct tenant *tenant, struct lair **lairp, const char **sentencep)
{
	double now = server_now();
	int r;

	*lairp = tenant->lair;
	if (tenant->fd >= 0)
		return 0;
	*sentencep = tenant->lair ? lair_error(tenant->lair) : "out of memory";
	if (now < tenant->retry)
		return LAIR_E_NO_DAEMON;
	r = tenant_connect(tenant);
	if (r)
		tenant->retry = now + RETRY;
	*lairp = tenant->lair;
	*sentencep = tenant->lair ? lair_error(tenant->lair) : "out of memory";
	return r;
}

void tenant_hold(struct tenant *tenant, double seconds)
{
	if (tenant->held > 0 || tenant->fd < 0)
		return;
	tenant->held = server_now() + seconds;
	server_unwatch(tenant->server, tenant->fd);
}

void tenant_go_on(struct tenant *tenant)
{
	if (tenant->held > 0 && tenant->fd >= 0)
		(void)server_watch(tenant->server, tenant->fd, EPOLLIN, &tenant->watched);
	tenant->held = 0;
}

double tenant_admit(struct tenant *tenant)
{
	double now = server_now(), rate = tenant->limits.rate;

	if (!(rate > 0))
		return 0;
	/* Two seconds' worth may come at once. */
	tenant->tokens = fmin(tenant->tokens + (now - tenant->refilled) * rate, fmax(2 * rate, 1));
	tenant->refilled = now;
	if (tenant->tokens < 1)
		return (1 - tenant->tokens) / rate;
	tenant->tokens -= 1;
	return 0;
}

bool tenant_may(const struct tenant *tenant, const char *profile)
{
	if (!tenant->profiles)
		return true;
	for (size_t i = 0; tenant->profiles[i]; i++)
		if (strcmp(tenant->profiles[i], profile) == 0)
			return true;
	return false;
}

struct lair_text tenant_own(const struct tenant *tenant, struct lair_text session)
{
	size_t size = strlen(tenant->prefix);

	if (!session.data || session.size < size || memcmp(session.data, tenant->prefix, size) != 0)
		return (struct lair_text){.data = NULL};
	return (struct lair_text){.data = session.data + size, .size = session.size - size};
}
