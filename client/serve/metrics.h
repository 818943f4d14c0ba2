/* What the server counts of itself, and /metrics: that and what laird counts, in the text format of Prometheus. */
#pragma once

struct exchange;
struct lair_result;

/* One exchange has ended; */
void metrics_count_exchange(const struct exchange *exchange);
/* one result of a cell was given to somebody. */
void metrics_count_result(const struct lair_result *result);
