/* What uv complains of, for two: whoever runs laird may know where the index is, and sessions may not. */
#pragma once

#include "proto/base.h"

/* @log as sessions may see it: without addresses, hosts of these and of the environment, paths of the host, and
 * control characters. */
void complaint_tell(char *out, size_t size, const char *log);
/* All of it on stderr, which is laird's log, but for credentials in addresses. */
void complaint_log(const char *log);
