/* /v1: what laird's socket can do, as resources of HTTP. */
#include "doors.h"

#define GET(at, fn, does, has) .method = "GET", .path = (at), .begin = (fn), .summary = (does), .answer = (has)
#define POST(at, fn, does, wants, has)                                                                             \
	.method = "POST", .path = (at), .begin = (fn), .summary = (does), .body = (wants), .answer = (has)
#define DELETE(at, fn, does) .method = "DELETE", .path = (at), .begin = (fn), .summary = (does), .status = 204
#define SESSION "/v1/sessions/{id}"
#define CALLS_QUERY                                                                                                \
	"{\"wait\": {\"type\": \"number\", \"minimum\": 0, \"maximum\": 300, \"description\": "                    \
	"\"Answer when there is a call, or after so many seconds.\"}, "                                            \
	"\"seen\": {\"type\": \"string\", \"description\": "                                                       \
	"\"seen of the last answer: wait until there is something else.\"}}"

static const struct route routes[] = {
	/* sessions */
	{GET("/v1/sessions", v1_sessions, "All sessions, oldest first.", "Sessions")},
	{GET(SESSION, v1_info, "One session.", "Session"),
	 .query = "{\"stay\": {\"type\": \"boolean\", \"description\": \"To ask counts as use: idle_ttl begins "
		  "anew.\"}}"},
	{.method = "PUT",
	 .path = SESSION,
	 .begin = v1_open,
	 .summary = "Open the session, unless it is open.",
	 .body = "Open",
	 .answer = "Session"},
	{DELETE(SESSION, v1_shutdown, "End the session.")},
	{POST(SESSION "/interrupt", v1_interrupt, "Interrupt the running cell.", "Interrupt", "Interrupted")},
	{POST(SESSION "/reset", v1_reset, "Forget all variables, or all but some.", "Reset", "Done")},

	/* cells */
	{POST(SESSION "/exec", v1_exec, "Run a cell. The session is made if it does not exist.", "Exec", "Result"),
	 .flags = ROUTE_KEY | ROUTE_EVENTS,
	 .description =
		 "With Accept: text/event-stream the answer is events: begun, stdout, stderr, display, alive, ask, "
		 "call, held, cancel, left_out, and last result or error."},
	{POST(SESSION "/input", v1_input, "A line for the cell that asks for one.", "Input", NULL), .status = 204},
	{GET(SESSION "/cells", v1_history, "The code of past cells, oldest first.", "History"),
	 .query = "{\"n\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 1000000, \"description\": \"The "
		  "last n.\"}}"},
	{GET(SESSION "/cells/{cell}", v1_attach_cell, "The result of a cell, once there is one.", "Result"),
	 .flags = ROUTE_EVENTS,
	 .query = "{\"input\": {\"type\": \"boolean\"}, \"calls\": {\"type\": \"boolean\"}}"},
	{GET(SESSION "/results", v1_results, "The results that are kept, and what runs or waits.", "Results")},
	{GET(SESSION "/results/{key}", v1_attach_key, "The result of the cell of that key, once there is one.",
	     "Result"),
	 .flags = ROUTE_EVENTS,
	 .query = "{\"input\": {\"type\": \"boolean\"}, \"calls\": {\"type\": \"boolean\"}}"},

	/* states */
	{GET(SESSION "/checkpoints", v1_checkpoints, "The states to which it can go back, oldest first.",
	     "Checkpoints")},
	{POST(SESSION "/checkpoints", v1_checkpoint, "Keep the present state, under a name if there is one.",
	      "Checkpoint", "State")},
	{DELETE(SESSION "/checkpoints/{name}", v1_drop, "Forget a checkpoint.")},
	{POST(SESSION "/restore", v1_restore, "Go back to a checkpoint, or to the state after a cell.", "Restore",
	      "State")},
	{POST(SESSION "/undo", v1_undo, "Go back n states.", "Undo", "State")},
	{GET(SESSION "/diff", v1_diff, "How two states differ, in files and variables.", "Difference"),
	 .query = "{\"since\": {\"type\": \"string\", \"minLength\": 1, \"description\": "
		  "\"a checkpoint, or the number of a cell; absent: before the last cell\"}, "
		  "\"until\": {\"type\": \"string\", \"minLength\": 1, \"description\": \"absent: now\"}}"},
	{POST(SESSION "/branch", v1_branch, "Begin another session in a state of this one.", "Branch", "Session"),
	 .status = 201},
	{POST(SESSION "/save", v1_save, "Save the variables, so that they outlive the session.", "Nothing",
	      "Saved")},
	{POST(SESSION "/load", v1_load, "Load what is saved, into a new session if there is none.", "Nothing",
	      "Loaded")},
	{GET("/v1/saves", v1_saves, "What is saved, of all sessions.", "Saves")},
	{GET("/v1/saves/{id}", v1_saved, "What is saved of a session.", "Save")},
	{DELETE("/v1/saves/{id}", v1_unsave, "Delete what is saved of a session.")},

	/* questions */
	{GET(SESSION "/vars", v1_vars, "The variables.", "Variables")},
	{DELETE(SESSION "/vars/{name}", v1_forget, "Delete a variable.")},
	{POST(SESSION "/complete", v1_complete, "What the code at the cursor may go on with.", "Complete",
	      "Completions")},
	{POST(SESSION "/inspect", v1_inspect, "What a name is.", "Inspect", "Inspection")},
	{POST(SESSION "/stray", v1_stray, "Take the output that was written since the last cell ended.", "Nothing",
	      "Stray")},
	{POST("/v1/check", v1_check, "Whether code compiles, and keeps the rules of the profile.", "Code",
	      "Checked")},
	{POST("/v1/is_complete", v1_is_complete, "Whether a prompt should ask for another line.", "Code",
	      "Completeness")},

	/* calls */
	{GET("/v1/calls", v1_calls, "The calls of functions that wait, of all sessions.", "Calls"),
	 .query = CALLS_QUERY},
	{GET(SESSION "/calls", v1_calls, "The calls of functions that wait.", "Calls"), .query = CALLS_QUERY},
	{POST(SESSION "/calls/{number}", v1_answer_call, "Answer a call, or approve it.", "Answer", NULL),
	 .status = 204, .flags = ROUTE_OWN},

	/* files */
	{GET(SESSION "/files", v1_files, "A directory of the workspace.", "Files"),
	 .query = "{\"path\": {\"type\": \"string\"}, \"after\": {\"type\": \"integer\", \"minimum\": 0,"
		  " \"description\": \"next of the last answer\"}}"},
	{.method = "GET",
	 .path = SESSION "/file",
	 .begin = v1_download,
	 .summary = "A file of the workspace. It takes a Range.",
	 .flags = ROUTE_BYTES,
	 .query = "{\"path\": {\"type\": \"string\", \"minLength\": 1, \"required\": true}}"},
	{.method = "PUT",
	 .path = SESSION "/file",
	 .begin = v1_upload,
	 .summary = "Write a file of the workspace, or make a directory. It appears when it is complete.",
	 .answer = "Written",
	 .status = 201,
	 .flags = ROUTE_BYTES | ROUTE_RAW,
	 .query = "{\"path\": {\"type\": \"string\", \"minLength\": 1, \"required\": true}, \"mode\": {\"type\": "
		  "\"string\","
		  " \"description\": \"permissions, 644\"}, \"directory\": {\"type\": \"boolean\"}}"},

	/* one-shots */
	{GET("/v1/results/{key}", v1_attach_key, "The result of a one-shot of that key, once there is one.",
	     "Result"),
	 .flags = ROUTE_EVENTS,
	 .query = "{\"input\": {\"type\": \"boolean\"}, \"calls\": {\"type\": \"boolean\"}}"},
};

const struct door native_door = {.name = "native", .routes = routes, .n_routes = ARRAY_SIZE(routes)};
