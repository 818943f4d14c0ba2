/* The documents by which the control plane describes a sandbox. */
#include "e2b.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ENVD_VERSION "0.6.4"
#define CLIENT_ID "lair"
#define TIMEOUT_MAX (366 * 86400.0)

json_t *date_document(double when)
{
	time_t seconds = (time_t)when;
	struct tm tm;
	char text[64];

	gmtime_r(&seconds, &tm);
	snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900, tm.tm_mon + 1,
		 tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int)((when - floor(when)) * 1000));
	return json_string(text);
}

/* Both tokens always: a request for contexts has nothing else to prove itself with. */
json_t *sandbox_document(const struct sandbox *sandbox)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "templateID", sandbox->template, "sandboxID",
			 sandbox->id, "clientID", CLIENT_ID, "envdVersion", ENVD_VERSION, "envdAccessToken",
			 sandbox->token, "trafficAccessToken", sandbox->token);
}

json_t *sandbox_info(const struct sandbox *sandbox)
{
	json_t *document = sandbox_document(sandbox);
	double never = sandbox->started + TIMEOUT_MAX;

	json_object_del(document, "trafficAccessToken");
	json_object_set_new(document, "startedAt", date_document(sandbox->started));
	json_object_set_new(document, "endAt", date_document(sandbox->ends > 0 ? sandbox->ends : never));
	json_object_set_new(document, "cpuCount", json_integer((json_int_t)fmax(ceil(sandbox->cpu), 1)));
	json_object_set_new(document, "memoryMB", json_integer((json_int_t)(sandbox->memory >> 20)));
	json_object_set_new(document, "diskSizeMB", json_integer((json_int_t)(sandbox->disk >> 20)));
	json_object_set_new(document, "state", json_string(sandbox->paused ? "paused" : "running"));
	json_object_set(document, "metadata", sandbox->metadata);
	return document;
}

double timeout_asked(const json_t *asked, double otherwise)
{
	const json_t *timeout = json_object_get(asked, "timeout");

	return json_is_number(timeout) ? fmin(fmax(json_number_value(timeout), 0), TIMEOUT_MAX) : otherwise;
}
