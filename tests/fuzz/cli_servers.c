/* Whatever an MCP server says: each line is taken, its functions have names that Python can write, each of them
 * another, and a call is answered once at most. */
#include "servers/upstream.h"

#include <ctype.h>
#include <stdio.h>
#include <sys/mman.h>

static const char config[] = "{\"mcpServers\": {\"u\": {\"command\": \"x\"}}}";
static unsigned answered, asked;

static void check(bool holds)
{
	if (!holds)
		abort();
}

/* ---- in the place of process.c: nobody reads what is sent ---- */

struct process {
	bool there;
};

static struct process process;

int process_start(struct upstream *upstream, char **whyp)
{
	(void)whyp;
	upstream->process = &process;
	return 0;
}

void process_said(const struct process *it, char text[static TEXT_END_SIZE])
{
	(void)it;
	*text = '\0';
}

int process_send(struct process *it, json_t *document)
{
	(void)it;
	json_decref(document);
	return 0;
}

void process_end(struct process *it)
{
	(void)it;
}

void process_sweep(struct servers *servers)
{
	(void)servers;
}

void process_abandon(struct servers *servers)
{
	(void)servers;
}

/* ---- */

static void on_done(json_t *result, const char *error, const char *text, void *userdata)
{
	(void)userdata;
	check(result ? json_is_object(result) : error && text);
	answered++;
}

static const char *name_of(json_t *functions, size_t i)
{
	return json_string_value(json_object_get(json_array_get(functions, i), "name"));
}

static void functions_check(struct servers *servers)
{
	json_t *functions = servers_functions(servers);

	for (size_t i = 0; i < json_array_size(functions); i++) {
		const char *name = name_of(functions, i);

		check(strncmp(name, "u.", 2) == 0 && name[2] && !isdigit((unsigned char)name[2]) &&
		      strlen(name) < 128);
		for (const char *at = name + 2; *at; at++)
			check(islower((unsigned char)*at) || isdigit((unsigned char)*at) || *at == '_');
		for (size_t other = 0; other < i && i < 20; other++)
			check(strcmp(name, name_of(functions, other)) != 0);
	}
	json_decref(functions);
}

static void call(struct servers *servers)
{
	json_t *functions = servers_functions(servers);
	struct servers_call *it;

	if (json_array_size(functions) > 0 && asked < 100 &&
	    servers_call(servers, &it, name_of(functions, 0), json_object(), on_done, NULL, NULL) == 0)
		asked++;
	json_decref(functions);
}

static char *config_path(void)
{
	static char path[32];

	if (!*path) {
		int fd = memfd_create("servers", 0);

		check(write(fd, config, sizeof(config) - 1) == sizeof(config) - 1);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	return path;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct event_loop loop;
	const struct servers_options options = {.loop = &loop};
	const char *at = (const char *)data, *end = at + size;
	struct servers *servers;
	char *why = NULL;

	if (!loop.epoll_fd)
		check(event_loop_init(&loop) == 0);
	answered = asked = 0;
	check(servers_new(&servers, config_path(), &options, &why) == 0);
	servers_start(servers);
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;

		upstream_message(servers->upstreams, (struct lair_text){.data = at, .size = (size_t)(stop - at)});
		servers_touch(servers);
		check(event_round(&loop, -1) == 0);
		call(servers);
		at = stop + 1;
	}
	functions_check(servers);
	check(answered <= asked);
	servers_free(servers);
	return 0;
}
