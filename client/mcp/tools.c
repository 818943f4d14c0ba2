/* The tools, as models see them. Descriptions say when to use which tool, and how state, files and failures
 * behave; they never mention the operator's policy. */
#include "tools.h"

#include "proto/causes.h"

/* ---- parameters ---- */

#define PARAMETER(identifier, kind, text, ...)                                                                     \
	static const struct parameter identifier = {                                                               \
		.name = #identifier, .type = kind, .description = (text), __VA_ARGS__}
#define REQUIRED_PARAMETER(identifier, kind, text)                                                                 \
	static const struct parameter identifier = {                                                               \
		.name = #identifier, .type = kind, .description = (text), .required = true}

REQUIRED_PARAMETER(code, "string",
		   "Python source. The value of its last expression comes back as `text`; print is not needed.");
PARAMETER(session_id, "string",
	  "Which session: any name without spaces, made when it is first used. Leave it out for the one of this "
	  "conversation.");
PARAMETER(timeout_sec, "number",
	  "Stop the code after so many seconds. Leave it out unless the code is known to take long.");
PARAMETER(
	cwd_rel, "string",
	"A directory to run in, relative to the session's own; for this call only. Leave it out for that itself.");
REQUIRED_PARAMETER(source, "string", "Absolute path of a file or directory on the host.");
PARAMETER(dest_rel, "string",
	  "Where to put it, relative to the session's directory. Leave it out for the same name there.");
REQUIRED_PARAMETER(packages, "string",
		   "Names of projects, as after pip install, with versions where they matter: polars duckdb==1.*");
PARAMETER(steps, "integer", "How many states to go back; 1 if left out.");
REQUIRED_PARAMETER(new_session_id, "string", "The name of the new session; it must not exist yet.");
PARAMETER(at_cell, "integer",
	  "Go on from the state after this code, by its number in the session, if that is still kept; from the "
	  "state of now if left "
	  "out.");
PARAMETER(since_cell, "integer",
	  "The state after this code, by its number in the session; the one before the last code if left out.");
PARAMETER(until_cell, "integer", "The state to compare it with; the one of now if left out.");
PARAMETER(keep_files, "boolean", "Leave the files as they are. If left out or false, they go back, too.");
PARAMETER(copy_files, "boolean",
	  "Whether the new session gets files of its own, which begin as they were in its state. With false, both "
	  "work on the same files. Leave it out for files of its own where they are kept.");
REQUIRED_PARAMETER(handle, "string", "The handle of the result that came before.");
PARAMETER(from_byte, "integer",
	  "For output that was left out: the 20000 bytes from this one on. Leave it out to wait.", .zero = true);
PARAMETER(of_stderr, "boolean", "With from_byte: of stderr. If left out or false, of stdout.");
PARAMETER(path_rel, "string",
	  "A directory, relative to the session's own. Leave it out for the session's directory itself.");

/* ---- what results have ---- */

#define PROPERTY(identifier, called, type, text, ...)                                                              \
	static const struct property identifier = {                                                                \
		.name = (called), .kind = (type), .description = (text), __VA_ARGS__}
#define MEMBER(called, type)                                                                                       \
	{                                                                                                          \
		.name = (called), .kind = (type)                                                                   \
	}
#define LAST                                                                                                       \
	{                                                                                                          \
		.name = NULL                                                                                       \
	}

static const struct property error_members[] = {MEMBER("name", KIND_TEXT), MEMBER("value", KIND_TEXT),
						MEMBER("suggestion", KIND_TEXT), LAST};
static const struct property blocked_members[] = {MEMBER("event", KIND_TEXT), MEMBER("target", KIND_TEXT),
						  MEMBER("reason", KIND_TEXT), LAST};
static const struct property artifact_members[] = {MEMBER("path", KIND_TEXT), MEMBER("size", KIND_COUNT),
						   MEMBER("type", KIND_TEXT), MEMBER("change", KIND_TEXT), LAST};
static const struct property effect_members[] = {MEMBER("act", KIND_TEXT), MEMBER("target", KIND_TEXT),
						 MEMBER("to", KIND_TEXT), LAST};
static const struct property back_members[] = {MEMBER("path", KIND_TEXT), MEMBER("change", KIND_TEXT), LAST};
static const struct property refused_members[] = {MEMBER("name", KIND_TEXT), MEMBER("reason", KIND_TEXT), LAST};
static const struct property entry_members[] = {MEMBER("name", KIND_TEXT), MEMBER("kind", KIND_TEXT),
						MEMBER("size", KIND_COUNT), LAST};
static const struct property variable_members[] = {MEMBER("name", KIND_TEXT),	 MEMBER("type", KIND_TEXT),
						   MEMBER("shape", KIND_COUNTS), MEMBER("size", KIND_COUNT),
						   MEMBER("text", KIND_TEXT),	 LAST};
static const struct property file_change_members[] = {MEMBER("path", KIND_TEXT),
						      MEMBER("change", KIND_TEXT),
						      MEMBER("kind", KIND_TEXT),
						      MEMBER("size", KIND_COUNT),
						      MEMBER("before", KIND_COUNT),
						      MEMBER("was", KIND_TEXT),
						      LAST};
static const struct property variable_change_members[] = {MEMBER("name", KIND_TEXT),   MEMBER("change", KIND_TEXT),
							  MEMBER("type", KIND_TEXT),   MEMBER("text", KIND_TEXT),
							  MEMBER("before", KIND_TEXT), LAST};
static const struct property asking_members[] = {MEMBER("number", KIND_COUNT), MEMBER("function", KIND_TEXT),
						 MEMBER("arguments", KIND_TEXT), LAST};
#define STATE(id, name, ...) name,
static const char *const states[] = {FATES(STATE) NULL};
#undef STATE

PROPERTY(ok, "ok", KIND_FLAG, "Whether it did what was asked.");
PROPERTY(out_error, "error", KIND_OBJECT, "The exception, or why it was not done.", .members = error_members);
PROPERTY(out_note, "note", KIND_TEXT, "What happened, and what that means for the session.");

/* of a cell */
PROPERTY(out_session, "session_id", KIND_TEXT, "The session that was used.");
PROPERTY(out_cell, "cell", KIND_COUNT, "The number of this code in its session.");
PROPERTY(out_stdout, "stdout", KIND_TEXT, "What the code printed.");
PROPERTY(out_stderr, "stderr", KIND_TEXT, "What the code wrote to stderr.");
PROPERTY(out_text, "text", KIND_TEXT, "The value of the last expression, as a prompt shows it.");
PROPERTY(out_displays, "displays", KIND_TEXTS, "What else the code has shown, as text.");
PROPERTY(out_images, "images", KIND_COUNT, "How many images come with this result.");
PROPERTY(out_left_out, "displays_left_out", KIND_COUNT, "How many more things were shown than are given.");
PROPERTY(out_state, "state", KIND_TEXT,
	 "What became of the variables of the session: kept; new, when it was made for this code and all that one "
	 "of its "
	 "name had before is lost; rolled_back to what they were before this code; reset, "
	 "which is all lost; ended, when there is no session any more.",
	 .values = states);
PROPERTY(out_ended, "ended", KIND_TEXT, "The session is new, and this is why the one before has ended.");
PROPERTY(out_restored, "restored", KIND_COUNT,
	 "With rolled_back: the state is the one after this cell, 0 = before the first.");
PROPERTY(out_cause, "cause", KIND_TEXT,
	 "Why the code did not simply end: error, exit, interrupt, timeout, oom, signal N, ...");
PROPERTY(out_returncode, "returncode", KIND_COUNT, "How the code failed, if it did.");
PROPERTY(out_blocked, "blocked", KIND_OBJECTS, "What the code was not permitted to do.",
	 .members = blocked_members);
PROPERTY(out_effects, "effects", KIND_OBJECTS,
	 "What was done outside the session since the state it went back to, and is not undone by that.",
	 .members = effect_members);
PROPERTY(out_effects_left_out, "effects_left_out", KIND_COUNT, "How many more such things were done.");
PROPERTY(out_back, "files_back", KIND_OBJECTS, "The files that are again what they were in that state.",
	 .members = back_members);
PROPERTY(out_back_left_out, "files_left_out", KIND_COUNT, "How many more such files there are.");
PROPERTY(out_artifacts, "artifacts", KIND_OBJECTS,
	 "The files the code has created or modified, by their paths in the session's directory.",
	 .members = artifact_members);
PROPERTY(out_loaded, "loaded", KIND_TEXTS, "The variables that came back of a session that had ended.");
PROPERTY(out_not_loaded, "not_loaded", KIND_OBJECTS, "Those that did not, and why.", .members = refused_members);

PROPERTY(out_running, "running", KIND_FLAG,
	 "The code still runs, or waits to: python_result with the handle gets what is to come.");
PROPERTY(out_asking, "asking", KIND_OBJECTS, "Calls of functions that wait until a person approves.",
	 .members = asking_members);
PROPERTY(out_handle, "handle", KIND_TEXT, "What python_result wants, for the rest of this result.");
PROPERTY(out_from_byte, "from_byte", KIND_COUNT, "Where in the output the piece begins.");
PROPERTY(out_next_byte, "next_byte", KIND_COUNT, "Where the next piece begins; absent at the end.");

/* of the others */
PROPERTY(out_new, "new", KIND_FLAG, "Whether the session did not exist before.");
PROPERTY(out_path, "path", KIND_TEXT, "Where it is now, relative to the session's directory.");
PROPERTY(out_copied, "files", KIND_COUNT, "How many files were copied.");
PROPERTY(out_size, "size", KIND_COUNT, "How many bytes they have.");
PROPERTY(out_skipped, "skipped", KIND_COUNT,
	 "How many entries were left out, being neither files nor directories.");
PROPERTY(out_line, "line", KIND_COUNT, "Where it is wrong, from 1.");
PROPERTY(out_offset, "offset", KIND_COUNT, "Where in the line, from 1.");
PROPERTY(out_context, "context", KIND_TEXT, "That line.");
PROPERTY(out_at_cell, "at_cell", KIND_COUNT, "The state is the one after this cell, 0 = before the first.");
PROPERTY(out_variables, "variables", KIND_OBJECTS, "Its variables, by name, the first 200.",
	 .members = variable_members);
PROPERTY(out_own_files, "own_files", KIND_FLAG, "Whether it has files of its own, or both work on the same.");
PROPERTY(out_since, "since_cell", KIND_COUNT, "The first state is the one after this cell, 0 = before the first.");
PROPERTY(out_until, "until_cell", KIND_COUNT, "The other state likewise.");
PROPERTY(
	out_file_changes, "file_changes", KIND_OBJECTS,
	"Files that were created, changed, deleted, renamed (`was`: the old path), or got another mode; with their "
	"sizes.",
	.members = file_change_members);
PROPERTY(out_variable_changes, "variable_changes", KIND_OBJECTS, "Variables that are new, changed or gone.",
	 .members = variable_change_members);
PROPERTY(out_changes_left_out, "changes_left_out", KIND_COUNT, "How many more changes there are.");
PROPERTY(out_unsure, "unsure", KIND_TEXTS, "Variables that may have changed inside, where it cannot be seen.");
PROPERTY(out_total, "total", KIND_COUNT, "How many variables there are.");
PROPERTY(out_entries, "entries", KIND_OBJECTS, "What is in the directory; kind is file, directory, link or other.",
	 .members = entry_members);
PROPERTY(out_more, "more", KIND_FLAG, "Whether there are more entries than are listed.");

#define CELL                                                                                                       \
	&ok, &out_stdout, &out_stderr, &out_text, &out_displays, &out_images, &out_left_out, &out_error,           \
		&out_state, &out_cause, &out_returncode, &out_blocked, &out_note, &out_running, &out_handle,       \
		&out_asking
#define DONE &ok, &out_session, &out_error

/* ---- the tools ---- */

const struct tool tools[] = {
	{
		.name = "python_execute_once",
		.title = "Run Python once",
		.description =
			"Run Python code in a fresh interpreter with a directory of its own; both are gone when "
			"it ends. Nothing is remembered: use it for a calculation that stands alone, and "
			"python_session_execute for work in several steps or with files that are to stay.",
		.parameters = {&code, &timeout_sec},
		.properties = {CELL},
		.run = run_once,
	},
	{
		.name = "python_session_start",
		.title = "Start a Python session",
		.description =
			"Make a session, or find that it exists. Not needed before python_session_execute, which "
			"makes one too.",
		.hints = HINT_HARMLESS | HINT_IDEMPOTENT,
		.parameters = {&session_id},
		.properties = {DONE, &out_new, &out_ended, &out_loaded, &out_not_loaded, &out_note},
		.run = session_start,
	},
	{
		.name = "python_session_execute",
		.title = "Run Python in a session",
		.description =
			"Run Python code in a session. Variables, imports and files stay for the next call with "
			"the same session_id. After an exception what the code had done until then stays. Code "
			"that is killed, for its time or its memory, takes nothing along but what it did itself, "
			"where `state` is rolled_back; `files_back` says which files are as they were "
			"before. Paths are relative to the session's directory. Figures come back as images. "
			"`blocked` says what was not "
			"permitted: do it another way.",
		.parameters = {&code, &session_id, &timeout_sec, &cwd_rel},
		.properties = {CELL, &out_session, &out_cell, &out_ended, &out_restored, &out_artifacts,
			       &out_loaded, &out_not_loaded, &out_back, &out_back_left_out, &out_effects,
			       &out_effects_left_out},
		.run = run_in_session,
	},
	{
		.name = "python_result",
		.title = "Get the rest of a result",
		.description =
			"Wait for code that still runs (`running`), and get what it has printed since and then its "
			"result; nothing is run again. Or, with from_byte, get a piece of a long output that was "
			"left out.",
		.hints = HINT_READ_ONLY,
		.parameters = {&handle, &from_byte, &of_stderr},
		.properties = {CELL, &out_session, &out_cell, &out_ended, &out_restored, &out_artifacts,
			       &out_loaded, &out_not_loaded, &out_back, &out_back_left_out, &out_effects,
			       &out_effects_left_out, &out_from_byte, &out_next_byte},
		.run = run_rest,
	},
	{
		.name = "python_session_reset",
		.title = "Reset a Python session",
		.description =
			"Forget all variables and imports of a session; code that runs is ended. Its files stay.",
		.hints = HINT_DESTRUCTIVE | HINT_IDEMPOTENT,
		.parameters = {&session_id},
		.properties = {DONE, &out_state, &out_effects, &out_effects_left_out, &out_note},
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
		.description =
			"Copy a file or a directory of the host into the directory of a session, where its code "
			"can read it. Only some places of the host may be copied from.",
		.hints = HINT_HARMLESS,
		.parameters = {&source, &dest_rel, &session_id},
		.properties = {DONE, &out_path, &out_copied, &out_size, &out_skipped, &out_new, &out_ended,
			       &out_loaded, &out_not_loaded, &out_note},
		.run = copy_to_sandbox,
	},
	{
		.name = "check_syntax",
		.title = "Check Python code",
		.description =
			"Whether Python code compiles, without running it; if not, where and why. Running code "
			"tells as much: use this for code that is not to run yet.",
		.hints = HINT_READ_ONLY,
		.parameters = {&code},
		.properties = {&ok, &out_error, &out_line, &out_offset, &out_context},
		.run = check_syntax,
	},
	{
		.name = "python_session_undo",
		.title = "Undo in a Python session",
		.description =
			"Make the variables and the files of a session what they were before its last code, or "
			"several codes back. `files_back` says which files that has changed.",
		.hints = HINT_DESTRUCTIVE,
		.full = true,
		.parameters = {&session_id, &steps, &keep_files},
		.properties = {DONE, &out_at_cell, &out_back, &out_back_left_out, &out_effects,
			       &out_effects_left_out, &out_note},
		.run = session_undo,
	},
	{
		.name = "python_session_branch",
		.title = "Branch a Python session",
		.description =
			"Make a new session that goes on from the variables and files a session has now, or had "
			"before. Both "
			"then change without each other: use it to try alternatives from one expensive state.",
		.hints = HINT_HARMLESS,
		.full = true,
		.parameters = {&new_session_id, &session_id, &at_cell, &copy_files},
		.properties = {DONE, &out_own_files, &out_effects, &out_effects_left_out, &out_note},
		.run = session_branch,
	},
	{
		.name = "python_session_install",
		.title = "Install packages in a session",
		.description =
			"Install packages in a session as it is: its variables stay. Only what has wheels can be "
			"installed. Where there is no such permission the error says so: do it another way.",
		.full = true,
		.parameters = {&packages, &session_id},
		.properties = {CELL, &out_session, &out_cell, &out_ended, &out_restored, &out_loaded,
			       &out_not_loaded},
		.run = session_install,
	},
	{
		.name = "python_session_vars",
		.title = "List the variables of a session",
		.description =
			"List the variables of a session: names, types, shapes, sizes, and what short ones are. "
			"Not while its code runs.",
		.hints = HINT_READ_ONLY,
		.full = true,
		.parameters = {&session_id},
		.properties = {DONE, &out_variables, &out_total},
		.run = session_vars,
	},
	{
		.name = "python_session_diff",
		.title = "What has changed in a session",
		.description = "List what changed between two states of a session, in files and in variables; by "
			       "default what "
			       "the last code has changed. Not while code runs.",
		.hints = HINT_READ_ONLY,
		.full = true,
		.parameters = {&session_id, &since_cell, &until_cell},
		.properties = {DONE, &out_since, &out_until, &out_file_changes, &out_variable_changes,
			       &out_changes_left_out, &out_unsure, &out_note},
		.run = session_diff,
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
