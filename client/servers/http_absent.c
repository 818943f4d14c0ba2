/* Servers over streamable HTTP, in a build without libcurl: there are none. */
#include "upstream.h"

#include <stdio.h>

#if !LAIR_CURL

int http_start(struct upstream *upstream, char **whyp)
{
	(void)upstream;
	return asprintf(whyp, "this lair was built without libcurl, so it knows no servers with a url") < 0
		       ? -ENOMEM
		       : -ENOTSUP;
}

int http_send(struct http *http, json_t *document, json_int_t id)
{
	(void)http;
	(void)id;
	json_decref(document);
	return -ENOTSUP;
}

void http_answered(struct http *http, json_int_t id)
{
	(void)http;
	(void)id;
}

void http_drop(struct http *http, json_int_t id)
{
	(void)http;
	(void)id;
}

void http_listen(struct http *http)
{
	(void)http;
}

void http_end(struct http *http)
{
	(void)http;
}

double http_due(const struct servers *servers)
{
	(void)servers;
	return 0;
}

void http_process(struct servers *servers)
{
	(void)servers;
}

void http_loop_free(struct servers *servers)
{
	(void)servers;
}

#endif
