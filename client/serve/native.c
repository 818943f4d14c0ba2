/* /v1: what laird's socket can do, as resources of HTTP. */
#include "doors.h"

static const struct route routes[] = {
	{.method = "POST",
	 .path = "/v1/sessions/{id}/exec",
	 .begin = exec_begin,
	 .summary = "Run a cell. The session is made if it does not exist.",
	 .body = "Exec",
	 .answer = "Result",
	 .flags = ROUTE_KEY},
};

const struct door native_door = {.name = "native", .routes = routes, .n_routes = ARRAY_SIZE(routes)};
