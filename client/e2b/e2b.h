/* The door of E2B: what E2B's SDKs ask of its control plane, of its interpreter and of envd, answered by sessions.
 *
 * A sandbox is a session. Beside it there are branches of it, which share its cage and its workspace: one that runs
 * nothing, of which all others are made; one for each further context, command and watcher; and one for what is
 * asked of files. Their names are that of the session, a tilde, and what they are for. */
#pragma once

#include "serve/doors.h"

#define ACCESS_SIZE 65
#define ID_SIZE 33
#define HOME "/home/user"
#define LINE_SIZE 512

struct context {
	struct context *next;
	char *id, *session, *language, *cwd;
};

struct process;

struct sandbox {
	struct sandbox *next;
	struct tenant *tenant;
	char *id, *session; /* session: in laird */
	char *template, *workspace;
	json_t *metadata, *envs;
	json_t *marks; /* the metadata of its files, by path; NULL: there is none */
	size_t marks_size;
	uint64_t birth, serial, cells_limit;
	double started, ends, stays; /* since the epoch; stays: when laird is to be told that it is in use */
	uint64_t memory, disk;	     /* limits */
	double cpu;
	bool paused, pauses, dead, based, filed;
	struct context *contexts;
	struct process *processes;
	size_t users; /* exchanges that have it */
	char token[ACCESS_SIZE];
};

/* The beginning of the state of every exchange with a sandbox. */
struct work {
	struct sandbox *sandbox;
	handler *then, *after;
	json_t *asked;			   /* the body */
	char *branch;			   /* that is being made */
	bool stream;			   /* errors come in a frame of connect's, and the answer has begun */
	void (*finish)(struct work *work); /* of what follows it */
};

/* ---- door.c ---- */

extern const struct door e2b_door;

/* In their debug mode the SDKs go to two fixed ports, and name no sandbox: there is one. */
#define DEBUG_ID "debug_sandbox_id"
bool is_fixed_port(const struct server *server);
/* Whether the request is for envd's remote procedures. */
bool is_connect(const struct exchange *exchange);
/* laird's answer as an error of the kind that the SDK expects. */
void e2b_refuse(struct exchange *exchange);
/* 502: there is no such sandbox, or not any more. */
void e2b_lost(struct exchange *exchange);
/* The body as an object; false after it has been answered, since it is none. */
bool e2b_body(struct exchange *exchange, struct lair_text body, json_t **documentp);

/* ---- sandboxes.c ---- */

#define TEMPLATE "code-interpreter-v1"
/* How often laird gets a sign that a sandbox is in use. */
#define STAY_SECONDS 60.0

struct e2b {
	struct sandbox *sandboxes;
};

struct e2b *e2b_of(const struct server *server);
double wall_now(void);
/* A new one of the exchange's tenant; it belongs to the door. NULL without memory. */
struct sandbox *sandbox_new(struct exchange *exchange, const char *id, const char *template);
/* The tenant's sandbox of that id, or NULL. */
struct sandbox *sandbox_find(const struct exchange *exchange, const char *id);
void sandbox_learn(struct sandbox *sandbox, const struct lair_session *session);
/* The access token of a tenant's sandbox: derived from the token's hash, so it is the same after a restart, and
 * ends with the token. */
void sandbox_token(const struct tenant *tenant, const char *id, char token[static ACCESS_SIZE]);
/* It is over: its streams break, and nobody finds it any more. */
void sandbox_drop(struct server *server, struct sandbox *sandbox);
/* And its sessions end. */
void sandbox_kill(struct server *server, struct sandbox *sandbox);
/* An exchange does not need it any more. */
void sandbox_put(struct sandbox *sandbox);
void sandboxes_tick(struct server *server, double now);
void sandboxes_close(struct server *server);

/* ---- endings.c ---- */

/* Nobody waits for the answer of a call; @started is what its beginning has returned. */
void call_forget(struct lair_call *call, int started);
/* End a session of it, and forget the answer. */
void sandbox_end_branch(struct sandbox *sandbox, const char *session);
/* End the session and its branches, also those that an earlier server has made; and delete its saved variables. */
void sandbox_end_sessions(struct tenant *tenant, const char *session);

/* ---- entry.c ---- */

/* Whose sandbox's request this is: by its token, or by the signature in its query. */
struct tenant *sandbox_asker(const struct exchange *exchange);
/* Give the exchange a state of @size bytes, which begins with struct work, and run @then when its sandbox is
 * found. Otherwise it is answered. */
void sandbox_enter(struct exchange *exchange, size_t size, handler *then);
struct sandbox *sandbox_of(const struct exchange *exchange);
/* A state that begins with struct work; NULL after the exchange has been answered. */
struct work *work_new(struct exchange *exchange, size_t size);
void work_take(struct exchange *exchange, struct sandbox *sandbox);

/* ---- branches.c ---- */

/* Make the branch @purpose of it, if there is none, then @then. Its name is in work->branch. */
void sandbox_branch(struct exchange *exchange, const char *purpose, handler *then);
/* Ask for the branch of which all others are made. */
int sandbox_base(struct exchange *exchange, struct sandbox *sandbox);
/* Whether there is such a branch now. */
bool branch_is_there(const struct lair_call *call);

/* ---- documents.c ---- */

/* The answer of create and connect. */
json_t *sandbox_document(const struct sandbox *sandbox);
json_t *sandbox_info(const struct sandbox *sandbox);
json_t *date_document(double when);
/* The seconds that a body asks for. */
double timeout_asked(const json_t *asked, double otherwise);

/* ---- create.c ---- */

#define TIMEOUT_DEFAULT 300.0

/* The profile of the template; LAIR_WORKBENCH for E2B's own if the token names none. False: it has been refused. */
bool template_profile(struct exchange *exchange, const char *template, const char **profilep);
void create_begin(struct exchange *exchange);

/* ---- list.c, control.c ---- */

void list_begin(struct exchange *exchange);
void info_begin(struct exchange *exchange);
void connect_begin(struct exchange *exchange);
void timeout_begin(struct exchange *exchange);
void kill_begin(struct exchange *exchange);
void pause_begin(struct exchange *exchange);
void sandbox_metrics_begin(struct exchange *exchange);

/* ---- contexts.c ---- */

#define DEFAULT_CONTEXT "default"

struct context *context_find(const struct sandbox *sandbox, const char *id);
void context_free(struct context *context);
/* The language of that name; NULL: it is not there. */
const char *language_named(const char *given);
/* Answer that there is no such context. */
void no_context(struct exchange *exchange, const char *id);
void contexts_list_begin(struct exchange *exchange);
void contexts_create_begin(struct exchange *exchange);
void context_remove_begin(struct exchange *exchange);
void context_restart_begin(struct exchange *exchange);

/* ---- execute.c ---- */

void execute_code_begin(struct exchange *exchange);

/* ---- results.c ---- */

/* A line of /execute. New. */
json_t *result_line(struct lair_items bundle, struct lair_text text, bool main);

/* ---- connect.c ---- */

/* The messages of a body: five bytes of head, and JSON. */
struct envelope {
	char *data;
	size_t size, allocated;
};

#define ENVELOPE_MAX ((size_t)16 << 20)

/* Add a piece of the body. Returns 0, -ENOMEM, or -E2BIG. */
int envelope_add(struct envelope *envelope, const char *data, size_t size);
/* The next message, new, if it is there as a whole: 0; -EAGAIN if not; -EBADMSG: it is none. *endp: it is the last,
 * and no message. */
int envelope_next(struct envelope *envelope, json_t **messagep, bool *endp);
void envelope_deinit(struct envelope *envelope);

/* Write a message to the stream; @message is taken over. */
bool connect_send(struct exchange *exchange, json_t *message);
/* End the stream, well or with an error: @code is NULL or one of connect's. */
void connect_end(struct exchange *exchange, const char *code, const char *message);
/* An error, before or after the stream has begun. */
void connect_fail(struct exchange *exchange, const char *code, const char *format, ...) _printf_(3, 4);
/* The HTTP status of connect's code. */
unsigned connect_status(const char *code);
/* Seconds, of a header with milliseconds or seconds; 0: absent. */
double header_seconds(const struct exchange *exchange, const char *name, double unit);

/* ---- programs.c ---- */

/* A cell that runs one of the programs of this door, with @given as its argument. Its own; NULL without memory. */
char *program_cell(const char *program, const json_t *given);

/* ---- commands.c, stream_input.c, watchers.c ---- */

void process_start_begin(struct exchange *exchange);
void process_connect_begin(struct exchange *exchange);
void process_list_begin(struct exchange *exchange);
void process_input_begin(struct exchange *exchange);
void process_stream_begin(struct exchange *exchange);
void process_close_begin(struct exchange *exchange);
void process_signal_begin(struct exchange *exchange);
void process_update_begin(struct exchange *exchange);
void watch_begin(struct exchange *exchange);
void watcher_create_begin(struct exchange *exchange);
void watcher_events_begin(struct exchange *exchange);
void watcher_remove_begin(struct exchange *exchange);

/* ---- processes.c ---- */

/* The sandbox has ended: all of its streams break. */
void processes_drop(struct sandbox *sandbox);
/* End those whose time is up. */
void processes_tick(struct sandbox *sandbox, double now);

/* ---- staging.c ---- */

#define STAGED_SIZE 32

/* A name that is free. */
void staged_name(char name[static STAGED_SIZE]);
void staged_remove(const struct work *work, const char *name);
/* A cell of the branch for files; *callp is its call. */
int files_cell(struct sandbox *sandbox, struct lair_call **callp, const char *branch, const char *call,
	       json_t *asked);
/* The outcome of such a cell: true if it is done; otherwise the exchange is answered. */
bool staged_well(struct exchange *exchange);

/* ---- download.c, upload.c, filesystem.c ---- */

void file_get_begin(struct exchange *exchange);
void file_put_begin(struct exchange *exchange);
void filesystem_begin(struct exchange *exchange);
/* The path of a file of the workspace, from there on; NULL: it lies elsewhere, or memory is short (errno). Its own.
 */
char *path_inside(const struct sandbox *sandbox, const char *path);
/* The path of a file as it is shown. Its own; NULL without memory. */
char *path_whole(const struct sandbox *sandbox, const char *path);

/* ---- marks.c ---- */

/* The metadata that an upload brings, new and maybe empty; false after it has been answered, since it is too much.
 */
bool mark_asked(struct exchange *exchange, json_t **markp);
/* The file has been written, with this metadata. Returns the kept part of it, borrowed, or NULL. */
const json_t *mark_set(struct sandbox *sandbox, const char *path, json_t *mark);
/* The file @from is at @to now; @to NULL: it is removed. */
void marks_move(struct sandbox *sandbox, const char *from, const char *to);
/* Add to what the session says of a file. */
void mark_show(const struct sandbox *sandbox, json_t *entry);
