/* /metrics: what the server counts itself, and what laird counts, in the text format of Prometheus. No label is a
 * text of a client or a session, except the event of a blocked act: there are few of these, and they are bounded.
 */
#include "metrics.h"

#include "doors.h"

#include "base/result.h"
#include "base/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define EVENTS_MAX 32
#define LABEL_SIZE 48

/* Seconds; the last bucket is for everything. */
static const double bounds[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
				0.5,	1,     2.5,    5,     10,   30,	   60,	 300};
#define N_BOUNDS ARRAY_SIZE(bounds)

struct histogram {
	uint64_t n[N_BOUNDS + 1];
	double sum;
};

struct labelled {
	char label[LABEL_SIZE];
	uint64_t n;
};

/* One server in a process. */
static struct {
	uint64_t statuses[6], broken;
	struct histogram requests, cells;
	struct labelled causes[EVENTS_MAX], blocked[EVENTS_MAX], states[EVENTS_MAX];
} counted;

static void observe(struct histogram *histogram, double seconds)
{
	size_t i = 0;

	while (i < N_BOUNDS && seconds > bounds[i])
		i++;
	histogram->n[i]++;
	histogram->sum += seconds;
}

/* A label has few characters, and with too many labels it is "other". */
static void count(struct labelled list[static EVENTS_MAX], struct lair_text label, uint64_t n)
{
	char name[LABEL_SIZE] = "";
	size_t i = 0;

	for (size_t at = 0; at < label.size && at < LABEL_SIZE - 1; at++)
		name[at] = isalnum((unsigned char)label.data[at]) || label.data[at] == '.' ? label.data[at] : '_';
	while (i < EVENTS_MAX - 1 && *list[i].label && strcmp(list[i].label, name) != 0)
		i++;
	snprintf(list[i].label, sizeof(list[i].label), "%s", i == EVENTS_MAX - 1 ? "other" : name);
	list[i].n += n;
}

void metrics_count_exchange(const struct exchange *exchange)
{
	if (!exchange->queued) {
		counted.broken++;
		return;
	}
	counted.statuses[MIN(exchange->status / 100, 5U)]++;
	if (!exchange->streaming)
		observe(&counted.requests, server_now() - exchange->began);
}

void metrics_count_result(const struct lair_result *result)
{
	struct lair_blocked act;
	size_t cursor = 0;

	observe(&counted.cells, result->duration_ms / 1e3);
	count(counted.causes, result->cause.data ? result->cause : lair_text("none"), 1);
	if (result_fate(result) == FATE_ROLLED_BACK || result_fate(result) == FATE_RESET)
		count(counted.states, result->cause.data ? result->cause : lair_text("none"), 1);
	while (lair_next_blocked(result->blocked, &cursor, &act))
		count(counted.blocked, act.event, 1);
}

/* ---- /metrics ---- */

static void head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void one(FILE *out, const char *name, const char *type, const char *help, double value)
{
	head(out, name, type, help);
	fprintf(out, "%s %.17g\n", name, value);
}

static void histogram_print(FILE *out, const char *name, const char *help, const struct histogram *histogram)
{
	uint64_t n = 0;

	head(out, name, "histogram", help);
	for (size_t i = 0; i < N_BOUNDS; i++) {
		n += histogram->n[i];
		fprintf(out, "%s_bucket{le=\"%g\"} %" PRIu64 "\n", name, bounds[i], n);
	}
	n += histogram->n[N_BOUNDS];
	fprintf(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n%s_sum %.9g\n%s_count %" PRIu64 "\n", name, n, name,
		histogram->sum, name, n);
}

static void labelled_print(FILE *out, const char *name, const char *type, const char *help, const char *label,
			   const struct labelled list[static EVENTS_MAX])
{
	head(out, name, type, help);
	for (size_t i = 0; i < EVENTS_MAX; i++)
		if (*list[i].label)
			fprintf(out, "%s{%s=\"%s\"} %" PRIu64 "\n", name, label, list[i].label, list[i].n);
}

static void own_print(FILE *out, const struct server *server)
{
	static const char *const classes[] = {"other", "1xx", "2xx", "3xx", "4xx", "5xx"};

	head(out, "lair_http_requests_total", "counter", "Requests that were answered.");
	for (size_t i = 0; i < ARRAY_SIZE(classes); i++)
		fprintf(out, "lair_http_requests_total{status=\"%s\"} %" PRIu64 "\n", classes[i],
			counted.statuses[i]);
	one(out, "lair_http_broken_total", "counter", "Requests whose client went away before the answer.",
	    (double)counted.broken);
	one(out, "lair_http_connections", "gauge", "Connections of clients.", (double)server->n_connections);
	one(out, "lair_http_exchanges", "gauge", "Requests that are being answered, streams too.",
	    (double)server->n_exchanges);
	histogram_print(out, "lair_http_request_seconds", "How long answers took, but for streams.",
			&counted.requests);
	histogram_print(out, "lair_http_cell_seconds", "How long the cells of this server ran.", &counted.cells);
	labelled_print(out, "lair_http_cells_total", "counter", "Cells of this server, by how they ended.", "cause",
		       counted.causes);
	labelled_print(out, "lair_http_rollbacks_total", "counter",
		       "Cells of this server whose session went back or was reset, by why.", "cause",
		       counted.states);
	labelled_print(out, "lair_http_blocked_total", "counter", "Acts of these cells that were refused, by kind.",
		       "event", counted.blocked);
}

/* How long cells took on laird's own clock; the part of each that is @waited, or the other. */
static void times_print(FILE *out, const struct lair_counters *counters, const char *name, const char *help,
			bool waited)
{
	struct lair_times times;
	size_t cursor = 0;
	uint64_t n = 0;

	head(out, name, "histogram", help);
	while (lair_next_times(counters->times, &cursor, &times)) {
		n += waited ? times.waited : times.ran;
		if (times.most > 0)
			fprintf(out, "%s_bucket{le=\"%g\"} %" PRIu64 "\n", name, times.most, n);
	}
	fprintf(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n%s_sum %.9g\n%s_count %" PRIu64 "\n", name, n, name,
		waited ? counters->waited : counters->ran, name, n);
}

static void daemon_print(FILE *out, const struct lair_counters *counters)
{
	const struct {
		const char *name, *type, *help;
		double value;
	} values[] = {
		{"lair_uptime_seconds", "gauge", "Since the router began.", counters->uptime},
		{"lair_sessions", "gauge", "Sessions of all users.", (double)counters->sessions},
		{"lair_spares", "gauge", "Cages that no session has claimed yet.", (double)counters->spares},
		{"lair_templates", "gauge", "Processes that sessions are forked from.",
		 (double)counters->templates},
		{"lair_router_memory_bytes", "gauge", "Memory of the router.", (double)counters->memory},
		{"lair_opened_total", "counter", "Sessions that began.", (double)counters->opened},
		{"lair_ended_total", "counter", "Sessions that ended.", (double)counters->ended},
		{"lair_cells_total", "counter", "Cells.", (double)counters->cells},
		{"lair_requests_total", "counter", "Requests on the socket.", (double)counters->requests},
		{"lair_refused_total", "counter", "Requests and connections that were refused or dropped.",
		 (double)counters->refused},
		{"lair_rollbacks_total", "counter", "Sessions that went back since their interpreter was lost.",
		 (double)counters->rolled_back},
		{"lair_audit_missed_total", "counter", "Lines that the audit log does not have.",
		 (double)counters->audit_missed},
	};

	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		one(out, values[i].name, values[i].type, values[i].help, values[i].value);
	times_print(out, counters, "lair_cell_seconds", "How long cells ran.", false);
	times_print(out, counters, "lair_cell_wait_seconds", "How long cells waited before they began.", true);
	head(out, "lair_stopped_cells_total", "counter", "Cells that were stopped, by why.");
	fprintf(out, "lair_stopped_cells_total{cause=\"timeout\"} %" PRIu64 "\n", counters->timed_out);
	fprintf(out, "lair_stopped_cells_total{cause=\"memory\"} %" PRIu64 "\n", counters->out_of_memory);
	fprintf(out, "lair_stopped_cells_total{cause=\"crash\"} %" PRIu64 "\n", counters->crashed);
}

/* Of the sessions that the asker has. */
static void sessions_print(FILE *out, const struct exchange *exchange)
{
	struct labelled states[EVENTS_MAX] = {{.n = 0}};
	double memory = 0, cpu = 0, disk = 0, checkpoints = 0, queued = 0;
	struct lair_session session;
	size_t cursor = 0;

	while (lair_next_session(lair_sessions(exchange->call), &cursor, &session)) {
		if (!tenant_own(exchange->tenant, session.session).data)
			continue;
		count(states, session.state, 1);
		memory += (double)session.memory;
		cpu += session.cpu;
		disk += (double)session.disk;
		checkpoints += (double)session.checkpoint_memory;
		queued += (double)session.queued;
	}
	labelled_print(out, "lair_own_sessions", "gauge", "Sessions of whoever asks, by state.", "state", states);
	one(out, "lair_own_memory_bytes", "gauge", "Memory of these sessions.", memory);
	one(out, "lair_own_checkpoint_memory_bytes", "gauge", "Memory that their checkpoints alone hold.",
	    checkpoints);
	one(out, "lair_own_cpu_seconds", "gauge", "Processor time of these sessions so far.", cpu);
	one(out, "lair_own_disk_bytes", "gauge", "Bytes in their workspaces.", disk);
	one(out, "lair_own_queued_cells", "gauge", "Cells that wait in them.", queued);
}

static void metrics_done(struct exchange *exchange)
{
	_cleanup_(freep) char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out) {
		answer_error(exchange, -ENOMEM, "out of memory");
		return;
	}
	daemon_print(out, lair_counters(exchange->kept));
	sessions_print(out, exchange);
	own_print(out, exchange->server);
	if (fclose(out))
		answer_error(exchange, -ENOMEM, "out of memory");
	else
		answer_text(exchange, 200, "text/plain; version=0.0.4; charset=utf-8",
			    (struct lair_text){.data = text, .size = size});
}

static void stats_done(struct exchange *exchange)
{
	exchange->kept = steal_ptr(&exchange->call);
	exchange_wait(exchange, lair_list(exchange->tenant->lair, &exchange->call), metrics_done);
}

void metrics_begin(struct exchange *exchange)
{
	struct lair *lair = exchange_lair(exchange);

	if (lair)
		exchange_wait(exchange, lair_stats(lair, &exchange->call), stats_done);
}
