/* What models are told. Descriptions say when to use which tool, and how state, files and failures behave; never
 * what the operator's policy is. */
#include "tools.h"

/* ---- parameters ---- */

#define PARAMETER(identifier, kind, text)                                                                          \
	static const struct parameter identifier = {.name = #identifier, .type = kind, .description = (text)}
#define REQUIRED_PARAMETER(identifier, kind, text)                                                                 \
	static const struct parameter identifier = {                                                               \
		.name = #identifier, .type = kind, .description = (text), .required = true}

REQUIRED_PARAMETER(code, "string",
		   "Python source. The value of its last expression comes back as `text`; print is not needed.");
PARAMETER(session_id, "string",
	  "Which session: any name without spaces, made when it is first used. Leave it out for the default one.");
PARAMETER(timeout_sec, "number",
	  "Stop the code after so many seconds. Leave it out unless the code is known to take long.");
PARAMETER(
	cwd_rel, "string",
	"A directory to run in, relative to the session's own; for this call only. Leave it out for that itself.");
REQUIRED_PARAMETER(source, "string", "Absolute path of a file or directory on the host.");
PARAMETER(dest_rel, "string",
	  "Where to put it, relative to the session's directory. Leave it out for the same name there.");
PARAMETER(steps, "integer", "How many states to go back; 1 if left out.");
REQUIRED_PARAMETER(new_session_id, "string", "The name of the new session; it must not exist yet.");
PARAMETER(copy_files, "boolean",
	  "Give the new session copies of the files. If left out or false, both work on the same files.");
PARAMETER(path_rel, "string",
	  "A directory, relative to the session's own. Leave it out for the session's directory itself.");

/* ---- what results have ---- */

#define TYPE(type, text) "{\"type\":\"" type "\",\"description\":\"" text "\"}"
#define LIST_OF(item, text) "{\"type\":\"array\",\"description\":\"" text "\",\"items\":" item "}"

static const struct property ok = {"ok", TYPE("boolean", "Whether it did what was asked.")};
static const struct property out_session = {"session_id", TYPE("string", "The session that was used.")};
static const struct property out_cell = {"cell", TYPE("integer", "The number of this code in its session.")};
static const struct property out_stdout = {"stdout", TYPE("string", "What the code printed.")};
static const struct property out_stderr = {"stderr", TYPE("string", "What the code wrote to stderr.")};
static const struct property out_text = {"text",
					 TYPE("string", "The value of the last expression, as a prompt shows it.")};
static const struct property out_displays = {
	"displays", LIST_OF("{\"type\":\"string\"}", "What else the code has shown, as text.")};
static const struct property out_images = {"images", TYPE("integer", "How many images come with this result.")};
static const struct property out_left_out = {"displays_left_out",
					     TYPE("integer", "How many more things were shown than are given.")};
static const struct property out_artifacts = {
	"artifacts",
	LIST_OF("{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"},\"size\":{\"type\":"
		"\"integer\"},"
		"\"type\":{\"type\":\"string\"},\"change\":{\"type\":\"string\"}},\"required\":[\"path\"]}",
		"The files the code has created or modified, by their paths in the session's directory.")};
static const struct property out_error = {
	"error",
	"{\"type\":\"object\",\"description\":\"The exception, or why it was not done.\",\"properties\":{"
	"\"name\":{\"type\":\"string\"},\"value\":{\"type\":\"string\"},\"suggestion\":{\"type\":\"string\"}},"
	"\"required\":[\"name\",\"value\"]}"};
static const struct property out_state = {
	"state",
	"{\"type\":\"string\",\"description\":\"What became of the variables of the session: kept; rolled_back to "
	"what "
	"they were before this code; reset, which is all lost; ended, when there is no session any more.\","
	"\"enum\":[\"kept\",\"rolled_back\",\"reset\",\"ended\"]}"};
static const struct property out_restored = {
	"restored",
	TYPE("integer", "With rolled_back: the state is the one after this cell, 0 = before the first.")};
static const struct property out_cause = {
	"cause",
	TYPE("string", "Why the code did not simply end: error, exit, interrupt, timeout, oom, signal N, ...")};
static const struct property out_returncode = {"returncode", TYPE("integer", "0, or how the code failed.")};
static const struct property out_blocked = {
	"blocked",
	LIST_OF("{\"type\":\"object\",\"properties\":{\"event\":{\"type\":\"string\"},\"target\":{\"type\":"
		"\"string\"},\"reason\":{\"type\":\"string\"}}}",
		"What the code was not permitted to do.")};
static const struct property out_note = {"note",
					 TYPE("string", "What happened, and what that means for the session.")};
static const struct property out_new = {"new", TYPE("boolean", "Whether the session did not exist before.")};
static const struct property out_path = {"path",
					 TYPE("string", "Where it is now, relative to the session's directory.")};
static const struct property out_copied = {"files", TYPE("integer", "How many files were copied.")};
static const struct property out_size = {"size", TYPE("integer", "How many bytes they have.")};
static const struct property out_skipped = {
	"skipped", TYPE("integer", "How many entries were left out, being neither files nor directories.")};
static const struct property out_at_cell = {
	"at_cell", TYPE("integer", "The state is the one after this cell, 0 = before the first.")};
static const struct property out_entries = {
	"entries",
	LIST_OF("{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"kind\":{\"type\":\"string\","
		"\"enum\":[\"file\",\"directory\",\"link\",\"other\"]},\"size\":{\"type\":\"integer\"}},"
		"\"required\":[\"name\",\"kind\",\"size\"]}",
		"What is in the directory.")};
static const struct property out_more = {"more",
					 TYPE("boolean", "Whether there are more entries than are listed.")};

static const struct property out_loaded = {
	"loaded", LIST_OF("{\"type\":\"string\"}", "The variables that came back of a session that had ended.")};
static const struct property out_not_loaded = {"not_loaded",
					       LIST_OF("{\"type\":\"object\",\"properties\":{\"name\":{\"type\":"
						       "\"string\"},\"reason\":{\"type\":\"string\"}}}",
						       "Those that did not, and why.")};
static const struct property out_line = {"line", TYPE("integer", "Where it is wrong, from 1.")};
static const struct property out_offset = {"offset", TYPE("integer", "Where in the line, from 1.")};
static const struct property out_context = {"context", TYPE("string", "That line.")};
static const struct property out_variables = {
	"variables",
	LIST_OF("{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"type\":{\"type\":\"string\"}"
		","
		"\"shape\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"}},\"size\":{\"type\":\"integer\"},"
		"\"text\":{\"type\":\"string\"}},\"required\":[\"name\",\"type\"]}",
		"Its variables, by name, the first 200.")};
static const struct property out_total = {"total", TYPE("integer", "How many variables there are.")};

#define CELL                                                                                                       \
	&ok, &out_stdout, &out_stderr, &out_text, &out_displays, &out_images, &out_left_out, &out_error,           \
		&out_state, &out_cause, &out_returncode, &out_blocked, &out_note
#define DONE &ok, &out_session, &out_error

/* ---- the tools ---- */

const struct tool tools[] = {
	{
		.name = "python_execute_once",
		.title = "Run Python once",
		.description = "Run Python code in a fresh interpreter with a directory of its own; both are gone "
			       "when it ends. "
			       "Nothing is remembered: use it for a calculation that stands alone, and "
			       "python_session_execute "
			       "for work in several steps or with files that are to stay.",
		.parameters = {&code, &timeout_sec},
		.properties = {CELL},
		.run = run_once,
	},
	{
		.name = "python_session_start",
		.title = "Start a Python session",
		.description = "Make a session, or find that it exists. Not needed before python_session_execute, "
			       "which makes "
			       "one too.",
		.hints = HINT_HARMLESS | HINT_IDEMPOTENT,
		.parameters = {&session_id},
		.properties = {DONE, &out_new, &out_loaded, &out_not_loaded, &out_note},
		.run = session_start,
	},
	{
		.name = "python_session_execute",
		.title = "Run Python in a session",
		.description =
			"Run Python code in a session. Variables, imports and files stay for the next call with "
			"the same "
			"session_id. After an exception what the code had done until then stays. Code that is "
			"killed, "
			"for its time or its memory, takes nothing along but what it did itself, where `state` is "
			"rolled_back; files are never rolled back. Paths are relative to the session's directory. "
			"Figures "
			"come back as images. `blocked` says what was not permitted: do it another way.",
		.parameters = {&code, &session_id, &timeout_sec, &cwd_rel},
		.properties = {CELL, &out_session, &out_cell, &out_restored, &out_artifacts, &out_loaded,
			       &out_not_loaded},
		.run = run_in_session,
	},
	{
		.name = "python_session_reset",
		.title = "Reset a Python session",
		.description =
			"Forget all variables and imports of a session; code that runs is ended. Its files stay.",
		.hints = HINT_DESTRUCTIVE | HINT_IDEMPOTENT,
		.parameters = {&session_id},
		.properties = {DONE, &out_state},
		.run = session_reset,
	},
	{
		.name = "python_session_shutdown",
		.title = "End a Python session",
		.description =
			"End a session: its variables are lost, and its files with them. Take results out first.",
		.hints = HINT_DESTRUCTIVE,
		.parameters = {&session_id},
		.properties = {DONE, &out_state},
		.run = session_shutdown,
	},
	{
		.name = "copy_to_sandbox",
		.title = "Copy files into a session",
		.description = "Copy a file or a directory of the host into the directory of a session, where its "
			       "code can read "
			       "it. Only some places of the host may be copied from.",
		.hints = HINT_HARMLESS,
		.parameters = {&source, &dest_rel, &session_id},
		.properties = {DONE, &out_path, &out_copied, &out_size, &out_skipped},
		.run = copy_to_sandbox,
	},
	{
		.name = "check_syntax",
		.title = "Check Python code",
		.description = "Whether Python code compiles, without running it; if not, where and why. Running "
			       "code tells as "
			       "much: use this for code that is not to run yet.",
		.hints = HINT_READ_ONLY,
		.parameters = {&code},
		.properties = {&ok, &out_error, &out_line, &out_offset, &out_context},
		.run = check_syntax,
	},
	{
		.name = "python_session_undo",
		.title = "Undo in a Python session",
		.description = "Make the variables of a session what they were before its last code, or several "
			       "codes back. Files "
			       "stay as they are.",
		.hints = HINT_DESTRUCTIVE,
		.full = true,
		.parameters = {&session_id, &steps},
		.properties = {DONE, &out_at_cell},
		.run = session_undo,
	},
	{
		.name = "python_session_branch",
		.title = "Branch a Python session",
		.description = "Make a new session that goes on from the variables a session has now. Both then "
			       "change without "
			       "each other: use it to try alternatives from one expensive state.",
		.hints = HINT_HARMLESS,
		.full = true,
		.parameters = {&new_session_id, &session_id, &copy_files},
		.properties = {DONE},
		.run = session_branch,
	},
	{
		.name = "python_session_vars",
		.title = "List the variables of a session",
		.description = "List the variables of a session: names, types, shapes, sizes, and what short ones "
			       "are. Not "
			       "while its code runs.",
		.hints = HINT_READ_ONLY,
		.full = true,
		.parameters = {&session_id},
		.properties = {DONE, &out_variables, &out_total},
		.run = session_vars,
	},
	{
		.name = "python_session_files",
		.title = "List the files of a session",
		.description = "List a directory of a session.",
		.hints = HINT_READ_ONLY,
		.full = true,
		.parameters = {&session_id, &path_rel},
		.properties = {DONE, &out_entries, &out_more},
		.run = session_files,
	},
	{.name = NULL},
};
