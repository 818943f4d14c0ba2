/* All servers of a file, and their turn of the loop: messages have been taken by then; calls that wait are sent,
 * and last the owner is notified of changes. */
#include "upstream.h"

#include "proto/clock.h"

#include <stdio.h>

/* A cell is offered no more. */
#define OFFERED_MAX ((size_t)500)
#define OFFERED_SIZE_MAX ((size_t)700 << 10)
/* Most servers end at once when their input does: for these it is worth to wait. */
#define END_PATIENCE 0.3

int servers_new(struct servers **serversp, const char *path, const struct servers_options *options, char **whyp)
{
	struct servers *servers = calloc(1, sizeof(*servers));
	int r;

	*whyp = NULL;
	if (!servers)
		return -ENOMEM;
	servers->options = *options;
	r = config_read(servers, path, whyp);
	if (r) {
		servers_free(servers);
		return r;
	}
	*serversp = servers;
	return 0;
}

static void on_patience(struct timer *timer)
{
	(void)timer;
}

struct servers *servers_free(struct servers *servers)
{
	struct timer patience = {.index = 0};
	struct upstream *upstream;

	if (!servers)
		return NULL;
	servers->options = (struct servers_options){.loop = servers->options.loop};
	servers->on_turn = NULL;
	while ((upstream = servers->upstreams)) {
		servers->upstreams = upstream->next;
		upstream_free(upstream);
	}
	if (servers->processes || http_parting(servers)) {
		servers_touch(servers);
		(void)timer_set_in(servers->options.loop, &patience, END_PATIENCE, on_patience);
	}
	while (patience.index && (servers->processes || http_parting(servers)) &&
	       !event_round(servers->options.loop, -1))
		;
	timer_clear(servers->options.loop, &patience);
	timer_clear(servers->options.loop, &servers->turn);
	process_abandon(servers);
	http_loop_free(servers);
	free(servers);
	return NULL;
}

static void on_turn(struct timer *timer);

static double sooner(double a, double b)
{
	return !a || (b && b < a) ? b : a;
}

static double servers_due(const struct servers *servers)
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

static void owner_notify(struct servers *servers)
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

static void servers_turn(struct servers *servers)
{
	double now = clock_seconds(), due;

	http_process(servers);
	process_sweep(servers);
	for (struct upstream *it = servers->upstreams; it; it = it->next) {
		if (it->due && it->due <= now)
			upstream_late(it);
		upstream_settle(it);
	}
	owner_notify(servers);
	if (servers->on_turn)
		servers->on_turn(servers->turn_userdata);
	due = servers_due(servers);
	if (due)
		(void)timer_set_in(servers->options.loop, &servers->turn, due - clock_seconds(), on_turn);
}

static void on_turn(struct timer *timer)
{
	servers_turn(container_of(timer, struct servers, turn));
}

void servers_touch(struct servers *servers)
{
	(void)timer_set(servers->options.loop, &servers->turn, event_now(), on_turn);
}

void servers_on_turn(struct servers *servers, void (*fn)(void *userdata), void *userdata)
{
	servers->on_turn = fn;
	servers->turn_userdata = userdata;
}

int servers_wait(struct servers *servers)
{
	int r = 0;

	servers_start(servers);
	while (!r && !servers_settled(servers))
		r = event_round(servers->options.loop, -1);
	if (!r)
		servers_turn(servers); /* it tells the last failure */
	return r;
}

void servers_start(struct servers *servers)
{
	for (struct upstream *it = servers->upstreams; it; it = it->next)
		upstream_start(it);
	servers_touch(servers);
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
