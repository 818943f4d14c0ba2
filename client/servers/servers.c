/* All servers of a file, and the loop's view of them: one descriptor, one deadline. What comes in is handled until
 * nothing more is there, then calls that wait are sent, and last the owner is told what has changed. */
#include "upstream.h"

#include "proto/clock.h"

#include <stdio.h>

#define EVENTS_MAX 32
/* A cell is offered no more. */
#define OFFERED_MAX ((size_t)500)
#define OFFERED_SIZE_MAX ((size_t)700 << 10)

int servers_new(struct servers **serversp, const char *path, const struct servers_options *options, char **whyp)
{
	struct servers *servers = calloc(1, sizeof(*servers));
	int r;

	*whyp = NULL;
	if (!servers)
		return -ENOMEM;
	servers->options = *options;
	servers->epoll = epoll_create1(EPOLL_CLOEXEC);
	r = servers->epoll < 0 ? -errno : config_read(servers, path, whyp);
	if (r) {
		servers_free(servers);
		return r;
	}
	*serversp = servers;
	return 0;
}

struct servers *servers_free(struct servers *servers)
{
	struct upstream *upstream;

	if (!servers)
		return NULL;
	while ((upstream = servers->upstreams)) {
		servers->upstreams = upstream->next;
		upstream_free(upstream);
	}
	process_abandon(servers);
	http_loop_free(servers);
	fd_close(servers->epoll);
	free(servers);
	return NULL;
}

int watch_set(struct servers *servers, struct watch *watch, uint32_t events, bool fresh)
{
	struct epoll_event event = {.events = events, .data = {.ptr = watch}};
	int operation = !events ? EPOLL_CTL_DEL : fresh ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;

	return epoll_ctl(servers->epoll, operation, watch->fd, &event) < 0 ? -errno : 0;
}

int servers_fd(const struct servers *servers)
{
	return servers->epoll;
}

static double sooner(double a, double b)
{
	return !a || (b && b < a) ? b : a;
}

double servers_due(const struct servers *servers)
{
	double due = http_due(servers);

	for (const struct upstream *it = servers->upstreams; it; it = it->next)
		due = sooner(due, upstream_due(it));
	return servers->changed ? clock_seconds() : due;
}

/* The first servers of the file have theirs whole. */
static void count_left_out(struct servers *servers)
{
	size_t room = OFFERED_MAX;

	for (struct upstream *it = servers->upstreams; it; it = it->next) {
		size_t n = json_array_size(it->functions), left_out = n > room ? n - room : 0;

		it->told = it->told && left_out <= it->left_out;
		it->left_out = left_out;
		room -= n - left_out;
	}
}

/* Why functions of a server are not there, as a sentence of the caller's; NULL: all are there. */
static char *trouble_of(const struct upstream *upstream)
{
	char *sentence = NULL;

	if (upstream->state == UPSTREAM_DOWN && upstream->failure)
		return strdup(upstream->failure);
	if (upstream->left_out &&
	    asprintf(&sentence,
		     "%s: %zu of its %zu functions are left out, for a cell is offered no more than %zu: "
		     "put what is needed first in the file",
		     upstream->name, upstream->left_out, json_array_size(upstream->functions), OFFERED_MAX) < 0)
		return NULL;
	return sentence;
}

static void owner_told(struct servers *servers)
{
	const struct servers_options *options = &servers->options;

	if (servers->changed)
		count_left_out(servers);
	for (struct upstream *it = servers->upstreams; it; it = it->next) {
		_cleanup_(freep) char *trouble = it->told ? NULL : trouble_of(it);

		if (!trouble)
			continue;
		it->told = true;
		if (options->on_failure)
			options->on_failure(trouble, options->userdata);
	}
	if (servers->changed && options->on_functions)
		options->on_functions(options->userdata);
	servers->changed = false;
}

int servers_process(struct servers *servers)
{
	struct epoll_event events[EVENTS_MAX];
	int n = epoll_wait(servers->epoll, events, EVENTS_MAX, 0);
	double now = clock_seconds();

	if (n < 0 && errno != EINTR)
		return -errno;
	/* Nothing that has a watch is freed meanwhile. */
	for (int i = 0; i < n; i++) {
		struct watch *watch = events[i].data.ptr;

		watch->ready(watch, events[i].events);
	}
	http_process(servers);
	process_sweep(servers);
	for (struct upstream *it = servers->upstreams; it; it = it->next) {
		if (it->due && it->due <= now)
			upstream_late(it);
		upstream_settle(it);
	}
	owner_told(servers);
	return 0;
}

void servers_start(struct servers *servers)
{
	for (struct upstream *it = servers->upstreams; it; it = it->next)
		upstream_start(it);
}

bool servers_settled(const struct servers *servers)
{
	for (const struct upstream *it = servers->upstreams; it; it = it->next)
		if (it->state == UPSTREAM_STARTING || it->state == UPSTREAM_LISTING ||
		    (it->state == UPSTREAM_DOWN && !it->functions && !it->failure))
			return false;
	return true;
}

json_t *servers_functions(const struct servers *servers)
{
	json_t *functions = json_array();
	size_t size = 0;

	for (const struct upstream *it = servers->upstreams; it; it = it->next) {
		if (!it->functions)
			continue;
		json_array_extend(functions, it->functions);
		size += it->size;
	}
	/* count_left_out tells whose they are. */
	while (json_array_size(functions) > OFFERED_MAX)
		json_array_remove(functions, json_array_size(functions) - 1);
	if (size > OFFERED_SIZE_MAX)
		tools_shorten(functions, OFFERED_SIZE_MAX);
	return functions;
}

json_t *servers_failed(const struct servers *servers)
{
	json_t *failed = json_object();

	for (const struct upstream *it = servers->upstreams; it; it = it->next) {
		_cleanup_(freep) char *trouble = trouble_of(it);

		if (trouble)
			json_object_set_new_nocheck(failed, it->name, json_string_nocheck(trouble));
	}
	return failed;
}

char *servers_names(const struct servers *servers)
{
	char *names = NULL;
	size_t size;
	FILE *out = open_memstream(&names, &size);

	for (const struct upstream *it = servers->upstreams; out && it; it = it->next) {
		const char *about = json_string_value(json_object_get(it->entry, "description"));

		fprintf(out, "%s%s%s%s%s", it == servers->upstreams ? "" : ", ", it->alias, about ? " (" : "",
			about ? about : "", about ? ")" : "");
	}
	if (out && fclose(out) != 0) {
		free(names);
		names = NULL;
	}
	return names;
}
