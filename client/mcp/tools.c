/* The tools: tools.json describes them to models, this table has their functions. Descriptions say when to use
 * which tool, and how state, files and failures behave; they never mention the operator's policy. */
#include "tools.h"

const struct tool tools[] = {
	{"python_execute_once", run_once},
	{"python_session_start", session_start},
	{"python_session_execute", run_in_session},
	{"python_result", run_rest},
	{"python_session_reset", session_reset},
	{"python_session_shutdown", session_shutdown},
	{"copy_to_sandbox", copy_to_sandbox},
	{"check_syntax", check_syntax},
	{"python_session_undo", session_undo},
	{"python_session_branch", session_branch},
	{"python_session_install", session_install},
	{"python_session_vars", session_vars},
	{"python_session_diff", session_diff},
	{"python_session_files", session_files},
	{NULL, NULL},
};
