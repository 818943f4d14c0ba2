/* The handlers of requests, for request.c's table. */
#pragma once

#include "router.h"

union request {
	uint64_t id; /* every request begins with it */
	struct hello_request hello;
	struct open_request open;
	struct exec_request exec;
	struct input_request input;
	struct interrupt_request interrupt;
	struct reset_request reset;
	struct shutdown_request shutdown;
	struct info_request info;
	struct checkpoint_request checkpoint;
	struct checkpoints_request checkpoints;
	struct restore_request restore;
	struct undo_request undo;
	struct branch_request branch;
	struct drop_request drop;
	struct files_request files;
	struct get_request get;
	struct put_request put;
	struct copy_in_request copy_in;
	struct list_request list;
	struct stats_request stats;
};

/* The session a request names, or NULL when the client has been told that it has none. */
struct session *session_named(struct router *router, const struct address *from, struct bytes id);

/* request_files.c */
void handle_files(struct router *router, const struct address *from, const union request *request);
void handle_get(struct router *router, const struct address *from, const union request *request);
void handle_put(struct router *router, const struct address *from, const union request *request);
void handle_copy_in(struct router *router, const struct address *from, const union request *request);
