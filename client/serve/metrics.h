/* What the server counts of itself. */
#pragma once

struct exchange;

void metrics_count_exchange(const struct exchange *exchange);
