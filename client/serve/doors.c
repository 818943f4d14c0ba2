/* The front doors, in the order in which they are asked. One without claims takes what it has a route for. */
#include "doors.h"

const struct door *const doors[] = {
	&e2b_door, &mcp_door, &plain_door, &native_door, &dashboard_door,
};
const size_t n_doors = ARRAY_SIZE(doors);
