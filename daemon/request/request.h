/* The handlers of requests, for request.c's table. */
#pragma once

#include "session/life/life.h"

/* A request, and the session that it names: that is looked up once, before its handler. */
struct request {
	struct bytes named; /* the name as the client has it; absent: the request names no session */
	struct session_name name;
	struct session *session; /* NULL: there is none of that name */
	union {
		uint64_t id; /* every request begins with it */
		struct hello_request hello;
		struct open_request open;
		struct exec_request exec;
		struct attach_request attach;
		struct results_request results;
		struct input_request input;
		struct return_request returned;
		struct calls_request calls;
		struct watch_calls_request watch_calls;
		struct answer_call_request answer_call;
		struct interrupt_request interrupt;
		struct reset_request reset;
		struct shutdown_request shutdown;
		struct info_request info;
		struct checkpoint_request checkpoint;
		struct checkpoints_request checkpoints;
		struct restore_request restore;
		struct undo_request undo;
		struct branch_request branch;
		struct diff_request diff;
		struct drop_request drop;
		struct files_request files;
		struct get_request get;
		struct put_request put;
		struct copy_in_request copy_in;
		struct complete_request complete;
		struct inspect_request inspect;
		struct vars_request vars;
		struct check_request check;
		struct is_complete_request is_complete;
		struct history_request history;
		struct stray_request stray;
		struct save_request save;
		struct load_request load;
		struct saves_request saves;
		struct unsave_request unsave;
		struct stop_request stop;
		struct reload_request reload;
		struct list_request list;
		struct stats_request stats;
		struct packages_request packages;
	};
};

/* The session that @from means by the name @text. False if it is no name; the client has been told. */
bool session_name_given(struct session_name *name, struct sessions *sessions, const struct address *from,
			struct bytes text);
/* The session that a request names, or NULL if there is none; the client has been told. */
struct session *session_named(struct sessions *sessions, const struct address *from, const struct request *request);
/* The same, or NULL if a cell runs or waits in it; the client has been told. */
struct session *session_between_cells(struct sessions *sessions, const struct address *from,
				      const struct request *request);
/* Whether @owner has room for so many more bytes that wait or run; if not, the client has been told. */
bool user_room(struct sessions *sessions, const struct address *from, uid_t owner, uint64_t size);
/* Whether one more operation may wait in @session; if not, @from has been told. */
bool session_room_for_operation(struct sessions *sessions, const struct address *from,
				const struct session *session);
/* What a session is opened with, as a client asks for it. @settings: see config/asked.h; absent: none. */
struct opening {
	struct bytes profile, settings;
	struct beginning with;
};

/* The profile that @from names; NULL if there is none. With a ? behind the name it is `default` if there is none,
 * or none for that user. */
struct profile *profile_asked(struct sessions *sessions, const struct address *from, struct bytes name);
/* A new session, a one-shot if @id is absent, which begins with that; NULL if that failed and
 * the client has been told. */
struct session *session_make(struct sessions *sessions, const struct address *from, struct bytes id,
			     const struct opening *opening);

/* The session whose running cell @request asks for; NULL. */
struct session *session_running(struct sessions *sessions, const struct address *request);
/* The client is told that there is no such session. */
void no_session(struct sessions *sessions, const struct address *from, const struct request *request);
/* @from gets the answer of @promise, too. */
void request_join(struct sessions *sessions, const struct address *from, struct promise *promise,
		  const struct watch *watch);
/* The cell has been put into its queue. */
void exec_detach(struct sessions *sessions, const struct address *from, const struct exec_request *exec);

/* One message from a client. */
void request_receive(struct sessions *sessions, const struct address *from, struct bytes data);
/* The types of requests there are; NULL after the last. */
const char *request_type(size_t i);

/* info.c */
void handle_info(struct sessions *sessions, const struct address *from, const struct request *request);
void handle_list(struct sessions *sessions, const struct address *from, const struct request *request);
void handle_stats(struct sessions *sessions, const struct address *from, const struct request *request);
void handle_hello(struct sessions *sessions, const struct address *from, const struct request *request);

/* checkpoints.c */
void handle_checkpoint(struct sessions *sessions, const struct address *from, const struct request *request);
void handle_restore(struct sessions *sessions, const struct address *from, const struct request *request);
void handle_undo(struct sessions *sessions, const struct address *from, const struct request *request);
void handle_drop(struct sessions *sessions, const struct address *from, const struct request *request);
void handle_diff(struct sessions *sessions, const struct address *from, const struct request *request);
void handle_branch(struct sessions *sessions, const struct address *from, const struct request *request);
void handle_checkpoints(struct sessions *sessions, const struct address *from, const struct request *request);

/* questions.c */
void handle_complete(struct sessions *sessions, const struct address *from, const struct request *request);
void handle_inspect(struct sessions *sessions, const struct address *from, const struct request *request);
void handle_vars(struct sessions *sessions, const struct address *from, const struct request *request);
void handle_check(struct sessions *sessions, const struct address *from, const struct request *request);
void handle_is_complete(struct sessions *sessions, const struct address *from, const struct request *request);
void handle_history(struct sessions *sessions, const struct address *from, const struct request *request);
void handle_stray(struct sessions *sessions, const struct address *from, const struct request *request);
void handle_reset(struct sessions *sessions, const struct address *from, const struct request *request);

/* exec.c */
void handle_open(struct sessions *sessions, const struct address *from, const struct request *request);
void handle_exec(struct sessions *sessions, const struct address *from, const struct request *request);
void handle_input(struct sessions *sessions, const struct address *from, const struct request *request);
void handle_interrupt(struct sessions *sessions, const struct address *from, const struct request *request);
void handle_shutdown(struct sessions *sessions, const struct address *from, const struct request *request);
void handle_save(struct sessions *sessions, const struct address *from, const struct request *request);
void handle_load(struct sessions *sessions, const struct address *from, const struct request *request);

/* calls.c */
void handle_return(struct sessions *sessions, const struct address *from, const struct request *request);
void handle_calls(struct sessions *sessions, const struct address *from, const struct request *request);
void handle_watch_calls(struct sessions *sessions, const struct address *from, const struct request *request);
void handle_answer_call(struct sessions *sessions, const struct address *from, const struct request *request);

/* results.c */
void handle_attach(struct sessions *sessions, const struct address *from, const struct request *request);
void handle_results(struct sessions *sessions, const struct address *from, const struct request *request);

/* saves.c */
void handle_saves(struct sessions *sessions, const struct address *from, const struct request *request);
void handle_unsave(struct sessions *sessions, const struct address *from, const struct request *request);

/* operator.c */
void handle_reload(struct sessions *sessions, const struct address *from, const struct request *request);
/* Whether @from is root or laird's own user; if not, it has been told. */
bool is_operator(struct sessions *sessions, const struct address *from, const char *act);
void handle_packages(struct sessions *sessions, const struct address *from, const struct request *request);
void handle_stop(struct sessions *sessions, const struct address *from, const struct request *request);

/* files.c */
void handle_files(struct sessions *sessions, const struct address *from, const struct request *request);
void handle_get(struct sessions *sessions, const struct address *from, const struct request *request);
void handle_put(struct sessions *sessions, const struct address *from, const struct request *request);
void handle_copy_in(struct sessions *sessions, const struct address *from, const struct request *request);
