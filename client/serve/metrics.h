/* The server's own counters, and /metrics: these and laird's, in the text format of Prometheus. */
#pragma once

struct exchange;
struct lair_result;

/* One exchange has ended; */
void metrics_count_exchange(const struct exchange *exchange);
/* one result of a cell was given to a client. */
void metrics_count_result(const struct lair_result *result);
