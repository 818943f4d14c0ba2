/* Every message of every channel, as tables. PROTOCOL.md says what they mean; this file says what they are. */
#pragma once

#include "proto/wire.h"

/* ---- client to router: requests. Every one carries an id chosen by the client. One with a key is done once. ----
 */

/* A function that a cell may call. schema: of the arguments, returns: of the value, both JSON Schema as text.
 * effect: not to be repeated in silence. ask: a person approves each call; caution: the same, unless the profile
 * allows the function by name. timeout: seconds for one call. server, tool: an MCP server's name for itself and for
 * its tool. bare: its name alone is enough in the cell, without `tools`. */
#define FUNCTION_FIELDS(F, m)                                                                                      \
	F(m, STR, name, REQUIRED)                                                                                  \
	F(m, STR, schema, OPTIONAL)                                                                                \
	F(m, STR, returns, OPTIONAL)                                                                               \
	F(m, STR, doc, OPTIONAL)                                                                                   \
	F(m, FLAG, effect, OPTIONAL)                                                                               \
	F(m, FLAG, ask, OPTIONAL)                                                                                  \
	F(m, FLAG, caution, OPTIONAL)                                                                              \
	F(m, REAL, timeout, OPTIONAL)                                                                              \
	F(m, STR, server, OPTIONAL)                                                                                \
	F(m, STR, tool, OPTIONAL)                                                                                  \
	F(m, FLAG, bare, OPTIONAL)
WIRE_MESSAGE(function, "function", NO_ID, FUNCTION_FIELDS);

#define HELLO_FIELDS(F, m) F(m, STR, client, OPTIONAL)
#define OPEN_FIELDS(F, m)                                                                                          \
	F(m, STR, session, REQUIRED)                                                                               \
	F(m, STR, profile, OPTIONAL)                                                                               \
	F(m, RAW, settings, OPTIONAL)                                                                              \
	F(m, STR, key, OPTIONAL)
/* A cell: its code and its options, which the daemon keeps in this form, writes down and hands to the interpreter.
 * figure: png or svg. values: show small locals in errors. env: array of "NAME=value". argv: array of str, as
 * sys.argv. directory: where to run. again: calls may repeat what was done before. notebook: JSON, the mode of a
 * notebook's cell. */
#define CELL_OPTIONS_FIELDS(F, m)                                                                                  \
	F(m, STR, code, REQUIRED)                                                                                  \
	F(m, FLAG, stream, OPTIONAL)                                                                               \
	F(m, FLAG, input, OPTIONAL)                                                                                \
	F(m, STR, figure, OPTIONAL)                                                                                \
	F(m, FLAG, values, OPTIONAL)                                                                               \
	F(m, RAW, env, OPTIONAL)                                                                                   \
	F(m, STR, directory, OPTIONAL)                                                                             \
	F(m, FLAG, reload, OPTIONAL)                                                                               \
	F(m, RAW, functions, OPTIONAL)                                                                             \
	F(m, FLAG, again, OPTIONAL)                                                                                \
	F(m, STR, notebook, OPTIONAL)                                                                              \
	F(m, RAW, packages, OPTIONAL)                                                                              \
	F(m, RAW, argv, OPTIONAL)
#define EXEC_FIELDS(F, m)                                                                                          \
	F(m, STR, session, OPTIONAL)                                                                               \
	F(m, STR, profile, OPTIONAL)                                                                               \
	F(m, RAW, settings, OPTIONAL)                                                                              \
	CELL_OPTIONS_FIELDS(F, m)                                                                                  \
	F(m, REAL, timeout, OPTIONAL)                                                                              \
	F(m, STR, key, OPTIONAL)                                                                                   \
	F(m, FLAG, detach, OPTIONAL)                                                                               \
	F(m, UINT, stdout, OPTIONAL)                                                                               \
	F(m, UINT, stderr, OPTIONAL)                                                                               \
	F(m, UINT, displays, OPTIONAL)                                                                             \
	F(m, FLAG, unlimited, OPTIONAL)                                                                            \
	F(m, UINT, birth, OPTIONAL)
/* The answer to a call: a value, or an error's name and text. exec: the id of an own unanswered exec or attach.
 * hold: no answer yet, the call is put aside, and text says why. */
#define RETURN_FIELDS(F, m)                                                                                        \
	F(m, UINT, exec, REQUIRED)                                                                                 \
	F(m, UINT, number, REQUIRED)                                                                               \
	F(m, RAW, value, OPTIONAL)                                                                                 \
	F(m, STR, error, OPTIONAL)                                                                                 \
	F(m, STR, text, OPTIONAL)                                                                                  \
	F(m, FLAG, hold, OPTIONAL)
/* The calls that wait for an answer: of that session, or all. */
#define CALLS_FIELDS(F, m) F(m, STR, session, OPTIONAL)
/* Answered when the turn of calls is not seen any more, or after so many seconds; at once without these. */
#define WATCH_CALLS_FIELDS(F, m)                                                                                   \
	F(m, UINT, seen, OPTIONAL)                                                                                 \
	F(m, REAL, wait, OPTIONAL)
/* The answer to a call by another program than its provider; at least one of session and of: the key of the cell's
 * exec. cell: it must be that cell. approve: a call that asks is to be done. */
#define ANSWER_CALL_FIELDS(F, m)                                                                                   \
	F(m, STR, session, OPTIONAL)                                                                               \
	F(m, STR, of, OPTIONAL)                                                                                    \
	F(m, UINT, cell, OPTIONAL)                                                                                 \
	F(m, UINT, number, REQUIRED)                                                                               \
	F(m, FLAG, approve, OPTIONAL)                                                                              \
	F(m, RAW, value, OPTIONAL)                                                                                 \
	F(m, STR, error, OPTIONAL)                                                                                 \
	F(m, STR, text, OPTIONAL)                                                                                  \
	F(m, STR, key, OPTIONAL)                                                                                   \
	F(m, UINT, birth, OPTIONAL)
/* number: of the `ask` that it answers; absent: of the open one. */
#define INPUT_FIELDS(F, m)                                                                                         \
	F(m, UINT, exec, REQUIRED)                                                                                 \
	F(m, STR, text, OPTIONAL)                                                                                  \
	F(m, FLAG, eof, OPTIONAL)                                                                                  \
	F(m, UINT, number, OPTIONAL)                                                                               \
	F(m, STR, key, OPTIONAL)
#define SESSION_REQUEST_FIELDS(F, m)                                                                               \
	F(m, STR, session, REQUIRED)                                                                               \
	F(m, UINT, birth, OPTIONAL)
/* stay: to be asked counts as use, so idle_ttl begins anew. */
#define INFO_FIELDS(F, m)                                                                                          \
	F(m, STR, session, REQUIRED)                                                                               \
	F(m, UINT, birth, OPTIONAL)                                                                                \
	F(m, FLAG, stay, OPTIONAL)
#define SESSION_CHANGE_FIELDS(F, m)                                                                                \
	F(m, STR, session, REQUIRED)                                                                               \
	F(m, STR, key, OPTIONAL)                                                                                   \
	F(m, UINT, birth, OPTIONAL)
/* keep: array of str, the names to keep; absent: a fresh interpreter. */
#define RESET_FIELDS(F, m)                                                                                         \
	F(m, STR, session, REQUIRED)                                                                               \
	F(m, RAW, keep, OPTIONAL)                                                                                  \
	F(m, STR, key, OPTIONAL)                                                                                   \
	F(m, UINT, birth, OPTIONAL)
/* Questions about the state. cursor: how many characters come before it; absent: all. forget: array of str. */
#define COMPLETE_FIELDS(F, m)                                                                                      \
	F(m, STR, session, REQUIRED)                                                                               \
	F(m, STR, code, REQUIRED)                                                                                  \
	F(m, UINT, cursor, OPTIONAL)                                                                               \
	F(m, UINT, birth, OPTIONAL)
#define INSPECT_FIELDS(F, m)                                                                                       \
	F(m, STR, session, REQUIRED)                                                                               \
	F(m, STR, code, REQUIRED)                                                                                  \
	F(m, UINT, cursor, OPTIONAL)                                                                               \
	F(m, FLAG, source, OPTIONAL)                                                                               \
	F(m, UINT, birth, OPTIONAL)
#define VARS_FIELDS(F, m)                                                                                          \
	F(m, STR, session, REQUIRED)                                                                               \
	F(m, RAW, forget, OPTIONAL)                                                                                \
	F(m, UINT, birth, OPTIONAL)
#define HISTORY_FIELDS(F, m)                                                                                       \
	F(m, STR, session, REQUIRED)                                                                               \
	F(m, UINT, n, OPTIONAL)                                                                                    \
	F(m, UINT, birth, OPTIONAL)
#define STRAY_FIELDS(F, m)                                                                                         \
	F(m, STR, session, REQUIRED)                                                                               \
	F(m, UINT, birth, OPTIONAL)
/* check and is_complete: about code alone. Without a session, by an interpreter of the profile made for it. */
#define CODE_FIELDS(F, m)                                                                                          \
	F(m, STR, session, OPTIONAL)                                                                               \
	F(m, STR, profile, OPTIONAL)                                                                               \
	F(m, STR, code, REQUIRED)
/* Without a session: the caller's one-shots. */
#define RESULTS_FIELDS(F, m) F(m, STR, session, OPTIONAL)
/* One of the two: the number of the cell, or the key of its exec. */
#define ATTACH_FIELDS(F, m)                                                                                        \
	F(m, STR, session, OPTIONAL)                                                                               \
	F(m, UINT, cell, OPTIONAL)                                                                                 \
	F(m, STR, key, OPTIONAL)                                                                                   \
	F(m, FLAG, stream, OPTIONAL)                                                                               \
	F(m, FLAG, input, OPTIONAL)                                                                                \
	F(m, UINT, stdout, OPTIONAL)                                                                               \
	F(m, UINT, stderr, OPTIONAL)                                                                               \
	F(m, UINT, displays, OPTIONAL)                                                                             \
	F(m, FLAG, calls, OPTIONAL)
/* One of the two: the session, or the id of an own unanswered exec. */
#define INTERRUPT_FIELDS(F, m)                                                                                     \
	F(m, STR, session, OPTIONAL)                                                                               \
	F(m, UINT, exec, OPTIONAL)                                                                                 \
	F(m, STR, key, OPTIONAL)                                                                                   \
	F(m, FLAG, kill, OPTIONAL)
#define CHECKPOINT_FIELDS(F, m)                                                                                    \
	F(m, STR, session, REQUIRED)                                                                               \
	F(m, STR, name, OPTIONAL)                                                                                  \
	F(m, STR, key, OPTIONAL)                                                                                   \
	F(m, UINT, birth, OPTIONAL)
#define NAMED_CHECKPOINT_FIELDS(F, m)                                                                              \
	F(m, STR, session, REQUIRED)                                                                               \
	F(m, STR, name, REQUIRED)                                                                                  \
	F(m, STR, key, OPTIONAL)                                                                                   \
	F(m, UINT, birth, OPTIONAL)
/* keep_files: the files stay as they are. */
#define RESTORE_FIELDS(F, m)                                                                                       \
	NAMED_CHECKPOINT_FIELDS(F, m)                                                                              \
	F(m, FLAG, keep_files, OPTIONAL)
#define UNDO_FIELDS(F, m)                                                                                          \
	F(m, STR, session, REQUIRED)                                                                               \
	F(m, UINT, n, OPTIONAL)                                                                                    \
	F(m, FLAG, keep_files, OPTIONAL)                                                                           \
	F(m, STR, key, OPTIONAL)                                                                                   \
	F(m, UINT, birth, OPTIONAL)
/* files: it has its own; share: those of the other session. Without both: its own, where files go back. */
#define BRANCH_FIELDS(F, m)                                                                                        \
	F(m, STR, session, REQUIRED)                                                                               \
	F(m, STR, branch, REQUIRED)                                                                                \
	F(m, STR, origin, OPTIONAL)                                                                                \
	F(m, FLAG, files, OPTIONAL)                                                                                \
	F(m, FLAG, share, OPTIONAL)                                                                                \
	F(m, FLAG, at_call, OPTIONAL)                                                                              \
	F(m, STR, key, OPTIONAL)                                                                                   \
	F(m, UINT, birth, OPTIONAL)
/* How two states differ. since, until: checkpoints, as in restore; absent: the state before the last cell, and now.
 */
#define DIFF_FIELDS(F, m)                                                                                          \
	F(m, STR, session, REQUIRED)                                                                               \
	F(m, STR, since, OPTIONAL)                                                                                 \
	F(m, STR, until, OPTIONAL)                                                                                 \
	F(m, UINT, birth, OPTIONAL)
/* Files of a session. Paths are bytes, in its workspace. */
#define FILES_FIELDS(F, m)                                                                                         \
	F(m, STR, session, REQUIRED)                                                                               \
	F(m, BIN, path, OPTIONAL)                                                                                  \
	F(m, FLAG, host, OPTIONAL)                                                                                 \
	F(m, UINT, after, OPTIONAL)                                                                                \
	F(m, UINT, birth, OPTIONAL)
#define GET_FIELDS(F, m)                                                                                           \
	F(m, STR, session, REQUIRED)                                                                               \
	F(m, BIN, path, REQUIRED)                                                                                  \
	F(m, UINT, offset, OPTIONAL)                                                                               \
	F(m, UINT, size, OPTIONAL)                                                                                 \
	F(m, UINT, file, OPTIONAL)                                                                                 \
	F(m, UINT, birth, OPTIONAL)
#define PUT_FIELDS(F, m)                                                                                           \
	F(m, STR, session, REQUIRED)                                                                               \
	F(m, BIN, path, OPTIONAL)                                                                                  \
	F(m, UINT, transfer, OPTIONAL)                                                                             \
	F(m, UINT, offset, OPTIONAL)                                                                               \
	F(m, BIN, data, OPTIONAL)                                                                                  \
	F(m, UINT, mode, OPTIONAL)                                                                                 \
	F(m, FLAG, more, OPTIONAL)                                                                                 \
	F(m, FLAG, directory, OPTIONAL)                                                                            \
	F(m, UINT, birth, OPTIONAL)
#define COPY_IN_FIELDS(F, m)                                                                                       \
	F(m, STR, session, REQUIRED)                                                                               \
	F(m, BIN, source, OPTIONAL)                                                                                \
	F(m, BIN, path, OPTIONAL)                                                                                  \
	F(m, UINT, transfer, OPTIONAL)                                                                             \
	F(m, UINT, birth, OPTIONAL)

/* The sets of packages that there are; prune: remove those that no session has, and tell these. */
#define PACKAGES_FIELDS(F, m) F(m, FLAG, prune, OPTIONAL)

WIRE_MESSAGE(packages_request, "packages", ID, PACKAGES_FIELDS);
WIRE_MESSAGE(hello_request, "hello", ID, HELLO_FIELDS);
WIRE_MESSAGE(open_request, "open", ID, OPEN_FIELDS);
WIRE_MESSAGE(exec_request, "exec", ID, EXEC_FIELDS);
WIRE_MESSAGE(attach_request, "attach", ID, ATTACH_FIELDS);
WIRE_MESSAGE(results_request, "results", ID, RESULTS_FIELDS);
WIRE_MESSAGE(input_request, "input", ID, INPUT_FIELDS);
WIRE_MESSAGE(return_request, "return", ID, RETURN_FIELDS);
WIRE_MESSAGE(calls_request, "calls", ID, CALLS_FIELDS);
WIRE_MESSAGE(watch_calls_request, "watch_calls", ID, WATCH_CALLS_FIELDS);
WIRE_MESSAGE(answer_call_request, "answer_call", ID, ANSWER_CALL_FIELDS);
WIRE_MESSAGE(interrupt_request, "interrupt", ID, INTERRUPT_FIELDS);
WIRE_MESSAGE(reset_request, "reset", ID, RESET_FIELDS);
WIRE_MESSAGE(shutdown_request, "shutdown", ID, SESSION_CHANGE_FIELDS);
WIRE_MESSAGE(info_request, "info", ID, INFO_FIELDS);
WIRE_MESSAGE(checkpoint_request, "checkpoint", ID, CHECKPOINT_FIELDS);
WIRE_MESSAGE(checkpoints_request, "checkpoints", ID, SESSION_REQUEST_FIELDS);
WIRE_MESSAGE(restore_request, "restore", ID, RESTORE_FIELDS);
WIRE_MESSAGE(drop_request, "drop", ID, NAMED_CHECKPOINT_FIELDS);
WIRE_MESSAGE(undo_request, "undo", ID, UNDO_FIELDS);
WIRE_MESSAGE(branch_request, "branch", ID, BRANCH_FIELDS);
WIRE_MESSAGE(diff_request, "diff", ID, DIFF_FIELDS);
WIRE_MESSAGE(files_request, "files", ID, FILES_FIELDS);
WIRE_MESSAGE(get_request, "get", ID, GET_FIELDS);
WIRE_MESSAGE(put_request, "put", ID, PUT_FIELDS);
WIRE_MESSAGE(copy_in_request, "copy_in", ID, COPY_IN_FIELDS);
WIRE_MESSAGE(complete_request, "complete", ID, COMPLETE_FIELDS);
WIRE_MESSAGE(inspect_request, "inspect", ID, INSPECT_FIELDS);
WIRE_MESSAGE(vars_request, "vars", ID, VARS_FIELDS);
WIRE_MESSAGE(history_request, "history", ID, HISTORY_FIELDS);
WIRE_MESSAGE(stray_request, "stray", ID, STRAY_FIELDS);
WIRE_MESSAGE(check_request, "check", ID, CODE_FIELDS);
WIRE_MESSAGE(is_complete_request, "is_complete", ID, CODE_FIELDS);
WIRE_MESSAGE(save_request, "save", ID, SESSION_CHANGE_FIELDS);
WIRE_MESSAGE(load_request, "load", ID, SESSION_CHANGE_FIELDS);
WIRE_MESSAGE(saves_request, "saves", ID, RESULTS_FIELDS);
WIRE_MESSAGE(unsave_request, "unsave", ID, SESSION_CHANGE_FIELDS);
WIRE_MESSAGE(stop_request, "stop", ID, WIRE_NOTHING);
WIRE_MESSAGE(reload_request, "reload", ID, WIRE_NOTHING);
WIRE_MESSAGE(list_request, "list", ID, WIRE_NOTHING);
WIRE_MESSAGE(stats_request, "stats", ID, WIRE_NOTHING);

/* ---- router to client: exactly one final message ("reply" or "error") per request, events before it ---- */

#define ERROR_FIELDS(F, m)                                                                                         \
	F(m, STR, code, REQUIRED)                                                                                  \
	F(m, STR, message, REQUIRED)                                                                               \
	F(m, RAW, ended, OPTIONAL)                                                                                 \
	F(m, STR, setting, OPTIONAL)
#define HELLO_REPLY_FIELDS(F, m)                                                                                   \
	F(m, UINT, version, REQUIRED)                                                                              \
	F(m, STR, server, REQUIRED)                                                                                \
	F(m, UINT, pid, REQUIRED)                                                                                  \
	F(m, UINT, frame_max, REQUIRED)                                                                            \
	F(m, STR, instance, OPTIONAL)
/* In a reply that says that the state went back: what this does not undo, and how many more there were. */
#define EFFECTS_FIELDS(F, m)                                                                                       \
	F(m, RAW, effects, OPTIONAL)                                                                               \
	F(m, UINT, effects_more, OPTIONAL)
/* In such a reply: the restored files, as an array of file_back, and how many more; and why those that
 * there are, or the first of them, are not those of that state. */
#define BACK_FIELDS(F, m)                                                                                          \
	F(m, RAW, files, OPTIONAL)                                                                                 \
	F(m, UINT, files_more, OPTIONAL)                                                                           \
	F(m, STR, files_stay, OPTIONAL)
/* change: restored, made (it had been removed or renamed), removed (it was not there), or failed. */
#define FILE_BACK_FIELDS(F, m)                                                                                     \
	F(m, BIN, path, REQUIRED)                                                                                  \
	F(m, STR, change, REQUIRED)
/* Of a session that was opened and had been saved: the loaded names; or the fate of the saved state, which is
 * damaged.
 */
#define LOADED_FIELDS(F, m)                                                                                        \
	F(m, STR, saved_damaged, OPTIONAL)                                                                         \
	F(m, REAL, saved_age, OPTIONAL)                                                                            \
	F(m, RAW, loaded, OPTIONAL)                                                                                \
	F(m, RAW, not_loaded, OPTIONAL)
#define EXEC_REPLY_FIELDS(F, m)                                                                                    \
	F(m, STR, session, OPTIONAL)                                                                               \
	F(m, UINT, cell, REQUIRED)                                                                                 \
	F(m, INT, returncode, REQUIRED)                                                                            \
	F(m, STR, state, REQUIRED)                                                                                 \
	F(m, STR, cause, OPTIONAL)                                                                                 \
	F(m, BIN, stdout, REQUIRED)                                                                                \
	F(m, BIN, stderr, REQUIRED)                                                                                \
	F(m, STR, text, OPTIONAL)                                                                                  \
	F(m, RAW, data, OPTIONAL)                                                                                  \
	F(m, RAW, displays, OPTIONAL)                                                                              \
	F(m, UINT, displays_dropped, OPTIONAL)                                                                     \
	F(m, RAW, error, OPTIONAL)                                                                                 \
	F(m, RAW, blocked, OPTIONAL)                                                                               \
	F(m, RAW, artifacts, OPTIONAL)                                                                             \
	F(m, FLAG, artifacts_more, OPTIONAL)                                                                       \
	F(m, UINT, stdout_dropped, OPTIONAL)                                                                       \
	F(m, UINT, stderr_dropped, OPTIONAL)                                                                       \
	F(m, UINT, stdout_stray, OPTIONAL)                                                                         \
	F(m, UINT, stderr_stray, OPTIONAL)                                                                         \
	F(m, UINT, restored, OPTIONAL)                                                                             \
	EFFECTS_FIELDS(F, m)                                                                                       \
	BACK_FIELDS(F, m)                                                                                          \
	F(m, STR, files_unkept, OPTIONAL)                                                                          \
	F(m, STR, unfaithful, OPTIONAL)                                                                            \
	F(m, UINT, forgotten, OPTIONAL)                                                                            \
	F(m, REAL, duration_ms, REQUIRED)                                                                          \
	LOADED_FIELDS(F, m)                                                                                        \
	F(m, REAL, limit, OPTIONAL)                                                                                \
	F(m, STR, language, OPTIONAL)                                                                              \
	F(m, UINT, birth, OPTIONAL)                                                                                \
	F(m, RAW, ended, OPTIONAL)                                                                                 \
	F(m, STR, setting, OPTIONAL)
/* ended, of a reply or an error: how the session that had the id before came to its end. why: a cause, or stopped,
 * lost or unknown. when: seconds since the epoch. cells: how many it had run. not_saved: why its variables were
 * not. */
#define ENDED_FIELDS(F, m)                                                                                         \
	F(m, STR, why, REQUIRED)                                                                                   \
	F(m, REAL, when, OPTIONAL)                                                                                 \
	F(m, UINT, birth, OPTIONAL)                                                                                \
	F(m, UINT, cells, OPTIONAL)                                                                                \
	F(m, FLAG, saved, OPTIONAL)                                                                                \
	F(m, STR, not_saved, OPTIONAL)                                                                             \
	F(m, FLAG, by_root, OPTIONAL)
/* Elements of displays, and what a display event carries. data: a map of MIME type to str (text and JSON) or bin.
 * metadata: JSON. at: how many there were before it. */
#define SHOWN_FIELDS(F, m)                                                                                         \
	F(m, UINT, at, OPTIONAL)                                                                                   \
	F(m, RAW, data, REQUIRED)                                                                                  \
	F(m, STR, metadata, OPTIONAL)                                                                              \
	F(m, STR, display_id, OPTIONAL)                                                                            \
	F(m, FLAG, update, OPTIONAL)                                                                               \
	F(m, FLAG, clear, OPTIONAL)
/* An element of artifacts. change: created or modified. */
#define ARTIFACT_FIELDS(F, m)                                                                                      \
	F(m, BIN, path, REQUIRED)                                                                                  \
	F(m, UINT, size, REQUIRED)                                                                                 \
	F(m, STR, type, REQUIRED)                                                                                  \
	F(m, STR, change, REQUIRED)
/* An element of effects. act: connected, sent, wrote, made, renamed, removed, ran, called or maybe_called. cell:
 * the cell that did it, or the cell before it. */
#define EFFECT_FIELDS(F, m)                                                                                        \
	F(m, STR, act, REQUIRED)                                                                                   \
	F(m, BIN, target, REQUIRED)                                                                                \
	F(m, BIN, to, OPTIONAL)                                                                                    \
	F(m, UINT, cell, REQUIRED)
/* An element of the frames of an error: a line of that cell, or of that file. values: a map of str to str. */
#define ERROR_FRAME_FIELDS(F, m)                                                                                   \
	F(m, UINT, cell, OPTIONAL)                                                                                 \
	F(m, STR, file, OPTIONAL)                                                                                  \
	F(m, UINT, line, OPTIONAL)                                                                                 \
	F(m, UINT, column, OPTIONAL)                                                                               \
	F(m, STR, function, REQUIRED)                                                                              \
	F(m, STR, source, OPTIONAL)                                                                                \
	F(m, RAW, values, OPTIONAL)
/* exec with detach. cell: absent while it waits. */
#define DETACHED_REPLY_FIELDS(F, m)                                                                                \
	F(m, STR, key, REQUIRED)                                                                                   \
	F(m, STR, session, OPTIONAL)                                                                               \
	F(m, UINT, cell, OPTIONAL)
/* state: queued, running or finished. age: seconds since it began to wait, began to run, or ended. bytes: the
 * size of its answer. */
#define RESULT_RECORD_FIELDS(F, m)                                                                                 \
	F(m, STR, key, OPTIONAL)                                                                                   \
	F(m, UINT, cell, OPTIONAL)                                                                                 \
	F(m, STR, state, REQUIRED)                                                                                 \
	F(m, INT, returncode, OPTIONAL)                                                                            \
	F(m, REAL, age, REQUIRED)                                                                                  \
	F(m, UINT, bytes, OPTIONAL)
#define RESULTS_REPLY_FIELDS(F, m) F(m, RAW, results, REQUIRED)
/* A call that waits. key: of the exec. arguments: absent if they are large; bytes: their size. state: out (its
 * provider has it), asks (it needs approval) or held (its provider has put it aside). text: why. age:
 * seconds since the cell called. */
#define CALL_RECORD_FIELDS(F, m)                                                                                   \
	F(m, STR, session, OPTIONAL)                                                                               \
	F(m, STR, key, OPTIONAL)                                                                                   \
	F(m, UINT, cell, REQUIRED)                                                                                 \
	F(m, UINT, number, REQUIRED)                                                                               \
	F(m, STR, function, REQUIRED)                                                                              \
	F(m, RAW, arguments, OPTIONAL)                                                                             \
	F(m, UINT, bytes, REQUIRED)                                                                                \
	F(m, STR, state, REQUIRED)                                                                                 \
	F(m, STR, text, OPTIONAL)                                                                                  \
	F(m, REAL, age, REQUIRED)                                                                                  \
	F(m, UINT, uid, REQUIRED)
/* more: how many there are beside these. */
#define CALLS_REPLY_FIELDS(F, m)                                                                                   \
	F(m, RAW, calls, REQUIRED)                                                                                 \
	F(m, UINT, more, OPTIONAL)
/* turn: another number whenever the calls that the client may see are others. */
#define WATCH_CALLS_REPLY_FIELDS(F, m) F(m, UINT, turn, REQUIRED)
#define RESET_REPLY_FIELDS(F, m) EFFECTS_FIELDS(F, m)
#define INTERRUPT_REPLY_FIELDS(F, m) F(m, FLAG, interrupted, REQUIRED)
#define SESSION_FACT_FIELDS(F, m)                                                                                  \
	F(m, STR, session, REQUIRED)                                                                               \
	F(m, STR, profile, REQUIRED)                                                                               \
	F(m, STR, state, REQUIRED)                                                                                 \
	F(m, UINT, uid, REQUIRED)                                                                                  \
	F(m, STR, workspace, REQUIRED)                                                                             \
	F(m, REAL, created, REQUIRED)                                                                              \
	F(m, REAL, idle, REQUIRED)                                                                                 \
	F(m, UINT, cells, REQUIRED)                                                                                \
	F(m, UINT, queued, REQUIRED)                                                                               \
	F(m, UINT, pid, OPTIONAL)                                                                                  \
	F(m, UINT, memory, OPTIONAL)                                                                               \
	F(m, REAL, idle_left, OPTIONAL)                                                                            \
	F(m, REAL, hard_left, OPTIONAL)                                                                            \
	F(m, STR, level, OPTIONAL)                                                                                 \
	F(m, STR, language, OPTIONAL)                                                                              \
	F(m, STR, version, OPTIONAL)                                                                               \
	F(m, STR, python, OPTIONAL)                                                                                \
	F(m, RAW, guards, OPTIONAL)                                                                                \
	F(m, UINT, checkpoints, OPTIONAL)                                                                          \
	F(m, UINT, checkpoint_memory, OPTIONAL)                                                                    \
	F(m, REAL, checkpoint_age, OPTIONAL)                                                                       \
	F(m, REAL, cpu, OPTIONAL)                                                                                  \
	F(m, UINT, disk, OPTIONAL)                                                                                 \
	F(m, UINT, files, OPTIONAL)                                                                                \
	F(m, UINT, tasks, OPTIONAL)                                                                                \
	F(m, UINT, memory_limit, OPTIONAL)                                                                         \
	F(m, UINT, tasks_limit, OPTIONAL)                                                                          \
	F(m, UINT, disk_limit, OPTIONAL)                                                                           \
	F(m, REAL, cpu_limit, OPTIONAL)                                                                            \
	F(m, REAL, cell_timeout, OPTIONAL)                                                                         \
	F(m, REAL, idle_ttl, OPTIONAL)                                                                             \
	F(m, REAL, hard_ttl, OPTIONAL)                                                                             \
	F(m, STR, directory, OPTIONAL)                                                                             \
	F(m, FLAG, writable, OPTIONAL)                                                                             \
	F(m, FLAG, opened, OPTIONAL)
/* One session, in the replies to open, info and branch and in the list of list. Times are seconds; created is since
 * the epoch; idle is 0 while busy. key: of the cell in which a branch at a call has begun. own_files: the branch
 * that was made has files of its own. */
#define SESSION_INFO_FIELDS(F, m)                                                                                  \
	SESSION_FACT_FIELDS(F, m)                                                                                  \
	EFFECTS_FIELDS(F, m)                                                                                       \
	LOADED_FIELDS(F, m)                                                                                        \
	F(m, UINT, birth, OPTIONAL)                                                                                \
	F(m, RAW, ended, OPTIONAL)                                                                                 \
	F(m, STR, key, OPTIONAL)                                                                                   \
	F(m, FLAG, own_files, OPTIONAL)
/* checkpoint, restore, undo: the present state is the one after this cell, 0 = before the first. */
#define STATE_REPLY_FIELDS(F, m)                                                                                   \
	F(m, UINT, cell, REQUIRED)                                                                                 \
	F(m, STR, name, OPTIONAL)                                                                                  \
	EFFECTS_FIELDS(F, m)                                                                                       \
	BACK_FIELDS(F, m)
/* saved, loaded: arrays of str; not_saved, not_loaded: arrays of maps of name and reason. size: bytes. */
#define SAVE_REPLY_FIELDS(F, m)                                                                                    \
	F(m, RAW, saved, REQUIRED)                                                                                 \
	F(m, RAW, not_saved, REQUIRED)                                                                             \
	F(m, UINT, size, REQUIRED)
#define LOAD_REPLY_FIELDS(F, m)                                                                                    \
	F(m, REAL, saved_age, REQUIRED)                                                                            \
	F(m, RAW, loaded, REQUIRED)                                                                                \
	F(m, RAW, not_loaded, REQUIRED)                                                                            \
	F(m, UINT, birth, OPTIONAL)                                                                                \
	F(m, RAW, ended, OPTIONAL)
/* files: how many the state has. files_size: bytes that are kept of them and the state before does not have.
 * files_lack: some of these are not kept. parent: which record of the list it grew from, from 1 on; absent: the
 * beginning. gap: a state between the two is forgotten. base: the present state is this one, or grew from it. */
#define CHECKPOINT_RECORD_FIELDS(F, m)                                                                             \
	F(m, STR, name, OPTIONAL)                                                                                  \
	F(m, UINT, cell, REQUIRED)                                                                                 \
	F(m, REAL, age, REQUIRED)                                                                                  \
	F(m, UINT, memory, REQUIRED)                                                                               \
	F(m, UINT, files, OPTIONAL)                                                                                \
	F(m, UINT, files_size, OPTIONAL)                                                                           \
	F(m, FLAG, files_lack, OPTIONAL)                                                                           \
	F(m, UINT, parent, OPTIONAL)                                                                               \
	F(m, FLAG, gap, OPTIONAL)                                                                                  \
	F(m, FLAG, base, OPTIONAL)
/* diff. since, until: the cells after which the states are. ..._more: how many more have changed. ..._lack: why
 * they are not known, or not all of them. unsure: array of str, variables that may have changed where nobody can
 * see it.
 */
#define DIFF_REPLY_FIELDS(F, m)                                                                                    \
	F(m, UINT, since, REQUIRED)                                                                                \
	F(m, UINT, until, REQUIRED)                                                                                \
	F(m, RAW, files, REQUIRED)                                                                                 \
	F(m, UINT, files_more, OPTIONAL)                                                                           \
	F(m, STR, files_lack, OPTIONAL)                                                                            \
	F(m, RAW, variables, REQUIRED)                                                                             \
	F(m, UINT, variables_more, OPTIONAL)                                                                       \
	F(m, STR, variables_lack, OPTIONAL)                                                                        \
	F(m, RAW, unsure, OPTIONAL)
/* An element of files. change: created, changed (its content), deleted, renamed or mode. was: the path before.
 * kind: as in the record of a file. before: that of the first state, where it differs. */
#define FILE_DIFFERENCE_FIELDS(F, m)                                                                               \
	F(m, BIN, path, REQUIRED)                                                                                  \
	F(m, STR, change, REQUIRED)                                                                                \
	F(m, STR, kind, REQUIRED)                                                                                  \
	F(m, BIN, was, OPTIONAL)                                                                                   \
	F(m, UINT, size, OPTIONAL)                                                                                 \
	F(m, UINT, size_before, OPTIONAL)                                                                          \
	F(m, UINT, mode, OPTIONAL)                                                                                 \
	F(m, UINT, mode_before, OPTIONAL)
/* An element of variables. change: new, changed or gone. type, text, size: as in vars; of one that is gone, what it
 * was. ..._before: of one that has changed. */
#define VARIABLE_DIFFERENCE_FIELDS(F, m)                                                                           \
	F(m, STR, name, REQUIRED)                                                                                  \
	F(m, STR, change, REQUIRED)                                                                                \
	F(m, STR, type, REQUIRED)                                                                                  \
	F(m, STR, text, REQUIRED)                                                                                  \
	F(m, UINT, size, OPTIONAL)                                                                                 \
	F(m, STR, type_before, OPTIONAL)                                                                           \
	F(m, STR, text_before, OPTIONAL)                                                                           \
	F(m, UINT, size_before, OPTIONAL)
#define CHECKPOINTS_REPLY_FIELDS(F, m) F(m, RAW, checkpoints, REQUIRED)
#define LIST_REPLY_FIELDS(F, m) F(m, RAW, sessions, REQUIRED)
/* timed_out, out_of_memory, crashed: cells. rolled_back: how often an interpreter was lost, and its session went
 * back. audit_missed: lines. loading: profiles. times: an array of cell_times, shortest first. ran, waited: the
 * sums of these times in seconds. languages: of the profiles, in their order. */
#define STATS_REPLY_FIELDS(F, m)                                                                                   \
	F(m, REAL, uptime, REQUIRED)                                                                               \
	F(m, UINT, pid, REQUIRED)                                                                                  \
	F(m, UINT, keeper_pid, REQUIRED)                                                                           \
	F(m, UINT, sessions, REQUIRED)                                                                             \
	F(m, UINT, spares, REQUIRED)                                                                               \
	F(m, UINT, templates, OPTIONAL)                                                                            \
	F(m, UINT, opened, REQUIRED)                                                                               \
	F(m, UINT, ended, REQUIRED)                                                                                \
	F(m, UINT, cells, REQUIRED)                                                                                \
	F(m, UINT, requests, REQUIRED)                                                                             \
	F(m, UINT, refused, REQUIRED)                                                                              \
	F(m, UINT, memory, REQUIRED)                                                                               \
	F(m, RAW, profiles, REQUIRED)                                                                              \
	F(m, UINT, saving, OPTIONAL)                                                                               \
	F(m, UINT, timed_out, OPTIONAL)                                                                            \
	F(m, UINT, out_of_memory, OPTIONAL)                                                                        \
	F(m, UINT, crashed, OPTIONAL)                                                                              \
	F(m, UINT, rolled_back, OPTIONAL)                                                                          \
	F(m, UINT, audit_missed, OPTIONAL)                                                                         \
	F(m, RAW, loading, OPTIONAL)                                                                               \
	F(m, RAW, times, OPTIONAL)                                                                                 \
	F(m, REAL, ran, OPTIONAL)                                                                                  \
	F(m, REAL, waited, OPTIONAL)                                                                               \
	F(m, RAW, languages, OPTIONAL)
/* An element of times: how many cells took so long, and longer than the element before it says. most: seconds;
 * absent: all that took longer. ran: from the beginning to the answer. waited: from the request to the beginning.
 */
#define CELL_TIMES_FIELDS(F, m)                                                                                    \
	F(m, REAL, most, OPTIONAL)                                                                                 \
	F(m, UINT, ran, REQUIRED)                                                                                  \
	F(m, UINT, waited, REQUIRED)
/* saves. Names and not_saved are only there of one that was asked for; count: how many names there are. */
#define SAVE_RECORD_FIELDS(F, m)                                                                                   \
	F(m, STR, session, REQUIRED)                                                                               \
	F(m, UINT, uid, REQUIRED)                                                                                  \
	F(m, REAL, created, REQUIRED)                                                                              \
	F(m, REAL, expires, OPTIONAL)                                                                              \
	F(m, UINT, size, REQUIRED)                                                                                 \
	F(m, UINT, count, REQUIRED)                                                                                \
	F(m, RAW, names, OPTIONAL)                                                                                 \
	F(m, RAW, not_saved, OPTIONAL)                                                                             \
	F(m, REAL, before, OPTIONAL)                                                                               \
	F(m, UINT, damaged, OPTIONAL)
#define SAVES_REPLY_FIELDS(F, m)                                                                                   \
	F(m, RAW, saves, REQUIRED)                                                                                 \
	F(m, UINT, more, OPTIONAL)
/* An element of sets. size: bytes; absent: not known. made: seconds since the epoch. used: a session has it now.
 * projects: array of str, NAME==VERSION. template: bytes of memory that its templates take; absent: there is none.
 * sessions: array of str, those of the asker that have it, now or in a state to which they can go back. */
#define PACKAGE_SET_FIELDS(F, m)                                                                                   \
	F(m, STR, set, REQUIRED)                                                                                   \
	F(m, UINT, size, OPTIONAL)                                                                                 \
	F(m, REAL, made, REQUIRED)                                                                                 \
	F(m, FLAG, used, OPTIONAL)                                                                                 \
	F(m, RAW, projects, REQUIRED)                                                                              \
	F(m, UINT, template, OPTIONAL)                                                                             \
	F(m, RAW, sessions, OPTIONAL)
/* path: of the store. taken: bytes that it has of packages, and cache: beside them, what uv keeps; total: how many
 * it may have, absent: any. These are for root and laird's own user. more: how many there are beside these. */
#define PACKAGES_REPLY_FIELDS(F, m)                                                                                \
	F(m, STR, path, REQUIRED)                                                                                  \
	F(m, RAW, sets, REQUIRED)                                                                                  \
	F(m, UINT, taken, OPTIONAL)                                                                                \
	F(m, UINT, cache, OPTIONAL)                                                                                \
	F(m, UINT, total, OPTIONAL)                                                                                \
	F(m, UINT, more, OPTIONAL)
/* stop. saved: how many sessions. not_saved: an array of maps of name, of a session, and reason. */
#define STOP_REPLY_FIELDS(F, m)                                                                                    \
	F(m, UINT, saved, REQUIRED)                                                                                \
	F(m, RAW, not_saved, OPTIONAL)
/* reload. path: of the file; absent: the settings inside laird. changes: an array of change records. */
#define RELOAD_REPLY_FIELDS(F, m)                                                                                  \
	F(m, BIN, path, OPTIONAL)                                                                                  \
	F(m, RAW, changes, REQUIRED)
/* An element of changes. change: changed (a setting), added or removed (a profile). profile: absent: [daemon].
 * before, after: as sessions.conf has the value. restart: it counts when laird is started anew. */
#define SETTING_CHANGE_FIELDS(F, m)                                                                                \
	F(m, STR, change, REQUIRED)                                                                                \
	F(m, STR, profile, OPTIONAL)                                                                               \
	F(m, STR, setting, OPTIONAL)                                                                               \
	F(m, BIN, before, OPTIONAL)                                                                                \
	F(m, BIN, after, OPTIONAL)                                                                                 \
	F(m, FLAG, restart, OPTIONAL)
/* A transfer continues under its number; 0: the file is complete. offset: the bytes so far. */
#define TRANSFER_REPLY_FIELDS(F, m)                                                                                \
	F(m, UINT, transfer, REQUIRED)                                                                             \
	F(m, UINT, offset, REQUIRED)                                                                               \
	F(m, UINT, size, OPTIONAL)
#define GET_REPLY_FIELDS(F, m)                                                                                     \
	F(m, BIN, data, REQUIRED)                                                                                  \
	F(m, UINT, size, REQUIRED)                                                                                 \
	F(m, UINT, file, REQUIRED)                                                                                 \
	F(m, UINT, mode, REQUIRED)
/* kind: file, directory, link or other. modified: seconds since the epoch. */
#define FILE_RECORD_FIELDS(F, m)                                                                                   \
	F(m, BIN, name, REQUIRED)                                                                                  \
	F(m, STR, kind, REQUIRED)                                                                                  \
	F(m, UINT, size, REQUIRED)                                                                                 \
	F(m, UINT, stored, REQUIRED)                                                                               \
	F(m, UINT, mode, REQUIRED)                                                                                 \
	F(m, REAL, modified, REQUIRED)
#define FILES_REPLY_FIELDS(F, m)                                                                                   \
	F(m, RAW, files, REQUIRED)                                                                                 \
	F(m, UINT, next, OPTIONAL)
/* The answers to questions come from the interpreter, in these tables, without id. start, end: the characters of
 * the code that a match replaces. */
#define COMPLETE_REPLY_FIELDS(F, m)                                                                                \
	F(m, RAW, matches, REQUIRED)                                                                               \
	F(m, UINT, start, REQUIRED)                                                                                \
	F(m, UINT, end, REQUIRED)
#define MATCH_FIELDS(F, m)                                                                                         \
	F(m, STR, text, REQUIRED)                                                                                  \
	F(m, STR, type, OPTIONAL)
#define INSPECT_REPLY_FIELDS(F, m)                                                                                 \
	F(m, FLAG, found, REQUIRED)                                                                                \
	F(m, STR, name, OPTIONAL)                                                                                  \
	F(m, STR, type, OPTIONAL)                                                                                  \
	F(m, STR, signature, OPTIONAL)                                                                             \
	F(m, STR, docstring, OPTIONAL)                                                                             \
	F(m, STR, text, OPTIONAL)                                                                                  \
	F(m, STR, file, OPTIONAL)                                                                                  \
	F(m, UINT, line, OPTIONAL)                                                                                 \
	F(m, STR, source, OPTIONAL)
/* total: how many there are; variables has the first of them, by name. directory: where the session is. */
#define VARS_REPLY_FIELDS(F, m)                                                                                    \
	F(m, RAW, variables, REQUIRED)                                                                             \
	F(m, UINT, total, REQUIRED)                                                                                \
	F(m, BIN, directory, OPTIONAL)
/* shape: array of uint, the length of each dimension. size: bytes. */
#define VARIABLE_FIELDS(F, m)                                                                                      \
	F(m, STR, name, REQUIRED)                                                                                  \
	F(m, STR, type, REQUIRED)                                                                                  \
	F(m, RAW, shape, OPTIONAL)                                                                                 \
	F(m, UINT, size, REQUIRED)                                                                                 \
	F(m, STR, text, REQUIRED)
/* status: complete, incomplete, invalid or unknown. indent: how the next line begins. */
#define IS_COMPLETE_REPLY_FIELDS(F, m)                                                                             \
	F(m, STR, status, REQUIRED)                                                                                \
	F(m, STR, indent, OPTIONAL)
/* line, offset: from 1. context: that line. rule: the broken rule of the profile. */
#define CHECK_REPLY_FIELDS(F, m)                                                                                   \
	F(m, FLAG, valid, REQUIRED)                                                                                \
	F(m, STR, error, OPTIONAL)                                                                                 \
	F(m, UINT, line, OPTIONAL)                                                                                 \
	F(m, UINT, offset, OPTIONAL)                                                                               \
	F(m, STR, context, OPTIONAL)                                                                               \
	F(m, STR, rule, OPTIONAL)
#define HISTORY_REPLY_FIELDS(F, m) F(m, RAW, cells, REQUIRED)
/* at: how many bytes of both the answers before this one have given. */
#define STRAY_REPLY_FIELDS(F, m)                                                                                   \
	F(m, BIN, stdout, REQUIRED)                                                                                \
	F(m, BIN, stderr, REQUIRED)                                                                                \
	F(m, UINT, at, OPTIONAL)
/* size: of the whole code in bytes; code may be only its beginning. undone: the present state does not come from
 * it. */
#define HISTORY_RECORD_FIELDS(F, m)                                                                                \
	F(m, UINT, cell, REQUIRED)                                                                                 \
	F(m, STR, code, REQUIRED)                                                                                  \
	F(m, UINT, size, REQUIRED)                                                                                 \
	F(m, INT, returncode, REQUIRED)                                                                            \
	F(m, STR, cause, OPTIONAL)                                                                                 \
	F(m, REAL, duration_ms, REQUIRED)                                                                          \
	F(m, FLAG, undone, OPTIONAL)
/* The error a cell ended with, and one thing the cage refused: the elements inside error and blocked. */
#define CELL_ERROR_FIELDS(F, m)                                                                                    \
	F(m, STR, name, REQUIRED)                                                                                  \
	F(m, STR, value, REQUIRED)                                                                                 \
	F(m, STR, traceback, REQUIRED)                                                                             \
	F(m, STR, suggestion, OPTIONAL)                                                                            \
	F(m, UINT, line, OPTIONAL)                                                                                 \
	F(m, UINT, offset, OPTIONAL)                                                                               \
	F(m, STR, context, OPTIONAL)                                                                               \
	F(m, RAW, frames, OPTIONAL)
#define BLOCKED_FIELDS(F, m)                                                                                       \
	F(m, STR, event, REQUIRED)                                                                                 \
	F(m, STR, target, OPTIONAL)                                                                                \
	F(m, STR, reason, REQUIRED)
#define REFUSED_FIELDS(F, m)                                                                                       \
	F(m, STR, name, REQUIRED)                                                                                  \
	F(m, STR, reason, REQUIRED)

WIRE_MESSAGE(error_reply, "error", ID, ERROR_FIELDS);
WIRE_MESSAGE(hello_reply, "reply", ID, HELLO_REPLY_FIELDS);
WIRE_MESSAGE(exec_reply, "reply", ID, EXEC_REPLY_FIELDS);
WIRE_MESSAGE(ended_record, "ended", NO_ID, ENDED_FIELDS);
WIRE_MESSAGE(shown, "shown", NO_ID, SHOWN_FIELDS);
WIRE_MESSAGE(artifact, "artifact", NO_ID, ARTIFACT_FIELDS);
WIRE_MESSAGE(file_back, "file_back", NO_ID, FILE_BACK_FIELDS);
WIRE_MESSAGE(effect, "effect", NO_ID, EFFECT_FIELDS);
WIRE_MESSAGE(error_frame, "error_frame", NO_ID, ERROR_FRAME_FIELDS);
WIRE_MESSAGE(cell_error, "cell_error", NO_ID, CELL_ERROR_FIELDS);
WIRE_MESSAGE(blocked_act, "blocked", NO_ID, BLOCKED_FIELDS);
WIRE_MESSAGE(refused_name, "refused", NO_ID, REFUSED_FIELDS);
WIRE_MESSAGE(detached_reply, "reply", ID, DETACHED_REPLY_FIELDS);
WIRE_MESSAGE(result_record, "result", NO_ID, RESULT_RECORD_FIELDS);
WIRE_MESSAGE(results_reply, "reply", ID, RESULTS_REPLY_FIELDS);
WIRE_MESSAGE(call_record, "call_record", NO_ID, CALL_RECORD_FIELDS);
WIRE_MESSAGE(calls_reply, "reply", ID, CALLS_REPLY_FIELDS);
WIRE_MESSAGE(watch_calls_reply, "reply", ID, WATCH_CALLS_REPLY_FIELDS);
WIRE_MESSAGE(empty_reply, "reply", ID, WIRE_NOTHING); /* input, return, shutdown */
WIRE_MESSAGE(reset_reply, "reply", ID, RESET_REPLY_FIELDS);
WIRE_MESSAGE(interrupt_reply, "reply", ID, INTERRUPT_REPLY_FIELDS);
WIRE_MESSAGE(session_info, "reply", MAYBE_ID, SESSION_INFO_FIELDS);
WIRE_MESSAGE(state_reply, "reply", ID, STATE_REPLY_FIELDS);
WIRE_MESSAGE(save_reply, "reply", ID, SAVE_REPLY_FIELDS);
WIRE_MESSAGE(load_reply, "reply", ID, LOAD_REPLY_FIELDS);
WIRE_MESSAGE(checkpoint_record, "checkpoint", NO_ID, CHECKPOINT_RECORD_FIELDS);
WIRE_MESSAGE(checkpoints_reply, "reply", ID, CHECKPOINTS_REPLY_FIELDS);
WIRE_MESSAGE(diff_reply, "reply", ID, DIFF_REPLY_FIELDS);
WIRE_MESSAGE(file_difference, "file_difference", NO_ID, FILE_DIFFERENCE_FIELDS);
WIRE_MESSAGE(variable_difference, "variable_difference", NO_ID, VARIABLE_DIFFERENCE_FIELDS);
WIRE_MESSAGE(save_record, "save_record", NO_ID, SAVE_RECORD_FIELDS);
WIRE_MESSAGE(saves_reply, "reply", ID, SAVES_REPLY_FIELDS);
WIRE_MESSAGE(package_set, "package_set", NO_ID, PACKAGE_SET_FIELDS);
WIRE_MESSAGE(packages_reply, "reply", ID, PACKAGES_REPLY_FIELDS);
WIRE_MESSAGE(stop_reply, "reply", ID, STOP_REPLY_FIELDS);
WIRE_MESSAGE(reload_reply, "reply", ID, RELOAD_REPLY_FIELDS);
WIRE_MESSAGE(cell_times, "cell_times", NO_ID, CELL_TIMES_FIELDS);
WIRE_MESSAGE(setting_change, "setting_change", NO_ID, SETTING_CHANGE_FIELDS);
WIRE_MESSAGE(transfer_reply, "reply", ID, TRANSFER_REPLY_FIELDS);
WIRE_MESSAGE(get_reply, "reply", ID, GET_REPLY_FIELDS);
WIRE_MESSAGE(file_record, "file", NO_ID, FILE_RECORD_FIELDS);
WIRE_MESSAGE(files_reply, "reply", ID, FILES_REPLY_FIELDS);
WIRE_MESSAGE(list_reply, "reply", ID, LIST_REPLY_FIELDS);
WIRE_MESSAGE(stats_reply, "reply", ID, STATS_REPLY_FIELDS);
WIRE_MESSAGE(complete_reply, "reply", MAYBE_ID, COMPLETE_REPLY_FIELDS);
WIRE_MESSAGE(completion_match, "match", NO_ID, MATCH_FIELDS);
WIRE_MESSAGE(inspect_reply, "reply", MAYBE_ID, INSPECT_REPLY_FIELDS);
WIRE_MESSAGE(vars_reply, "reply", MAYBE_ID, VARS_REPLY_FIELDS);
WIRE_MESSAGE(variable_record, "variable", NO_ID, VARIABLE_FIELDS);
WIRE_MESSAGE(is_complete_reply, "reply", MAYBE_ID, IS_COMPLETE_REPLY_FIELDS);
WIRE_MESSAGE(check_reply, "reply", MAYBE_ID, CHECK_REPLY_FIELDS);
WIRE_MESSAGE(history_reply, "reply", ID, HISTORY_REPLY_FIELDS);
WIRE_MESSAGE(stray_reply, "reply", ID, STRAY_REPLY_FIELDS);
WIRE_MESSAGE(history_record, "cell", NO_ID, HISTORY_RECORD_FIELDS);

/* at: how much the cell had written to this stream before. */
#define OUTPUT_FIELDS(F, m)                                                                                        \
	F(m, BIN, data, REQUIRED)                                                                                  \
	F(m, UINT, at, OPTIONAL)
/* number: which question of the cell it is, from 1 on. After a lost connection a question comes again with its
 * number. */
#define ASK_EVENT_FIELDS(F, m)                                                                                     \
	F(m, STR, prompt, REQUIRED)                                                                                \
	F(m, FLAG, password, OPTIONAL)                                                                             \
	F(m, UINT, number, OPTIONAL)
#define DISPLAY_EVENT_FIELDS(F, m)                                                                                 \
	SHOWN_FIELDS(F, m)                                                                                         \
	F(m, UINT, id, REQUIRED)
/* number: of the call in its cell, from 1 on. arguments: map of str to anything. */
#define CALL_FIELDS(F, m)                                                                                          \
	F(m, UINT, number, REQUIRED)                                                                               \
	F(m, STR, function, REQUIRED)                                                                              \
	F(m, RAW, arguments, REQUIRED)
/* The call asks to be approved, and is not to be done yet. text: who wants that. */
#define HELD_FIELDS(F, m)                                                                                          \
	CALL_FIELDS(F, m)                                                                                          \
	F(m, STR, text, OPTIONAL)
#define CANCEL_FIELDS(F, m) F(m, UINT, number, REQUIRED)
/* A long cell still runs: for so many seconds, with this memory of its session and this CPU time of its
 * processes. doing: the work that is done for it meanwhile. */
#define ALIVE_EVENT_FIELDS(F, m)                                                                                   \
	F(m, REAL, elapsed, REQUIRED)                                                                              \
	F(m, UINT, memory, OPTIONAL)                                                                               \
	F(m, REAL, cpu, OPTIONAL)                                                                                  \
	F(m, STR, doing, OPTIONAL)

WIRE_MESSAGE(stdout_event, "stdout", ID, OUTPUT_FIELDS);
WIRE_MESSAGE(stderr_event, "stderr", ID, OUTPUT_FIELDS);
WIRE_MESSAGE(ask_event, "ask", ID, ASK_EVENT_FIELDS);
WIRE_MESSAGE(display_event, "display", NO_ID, DISPLAY_EVENT_FIELDS);
WIRE_MESSAGE(alive_event, "alive", ID, ALIVE_EVENT_FIELDS);
WIRE_MESSAGE(call_event, "call", ID, CALL_FIELDS);
WIRE_MESSAGE(held_event, "held", ID, HELD_FIELDS);
WIRE_MESSAGE(cancel_event, "cancel", ID, CANCEL_FIELDS);

/* ---- router to template (SOCK_SEQPACKET) ---- */

/* A directory of the host, as it was when the settings were read. kind: read, write, hide, own (it holds laird's
 * own files), or python, which may be a file. path: as in the settings. real: the same without links; empty if
 * it did not exist. */
#define PLACE_RECORD_FIELDS(F, m)                                                                                  \
	F(m, STR, kind, REQUIRED)                                                                                  \
	F(m, BIN, path, REQUIRED)                                                                                  \
	F(m, BIN, real, REQUIRED)                                                                                  \
	F(m, UINT, device, REQUIRED)                                                                               \
	F(m, UINT, inode, REQUIRED)

/* Sent once, first, perhaps with a descriptor: of the directory for images. Sizes are bytes, 0 = no limit. preload:
 * array of str, a trailing '?' marks a module that may be missing. env: array of "NAME=value". places: array of
 * place records. changeable: array of the real paths that some session may write to. home: where a session finds
 * its workspace, if it has a file system of its own. forbid: array of rules as in sessions.conf. packages_allow,
 * packages_deny: arrays of patterns. ..._group: a control group of each warden holds this limit. threads: how many
 * the libraries of a session may start, 0 = 1; threads_given: even if checkpoints then fail. */
#define CONFIGURE_FIELDS(F, m)                                                                                     \
	F(m, STR, profile, REQUIRED)                                                                               \
	F(m, STR, python, OPTIONAL)                                                                                \
	F(m, RAW, preload, OPTIONAL)                                                                               \
	F(m, RAW, env, OPTIONAL)                                                                                   \
	F(m, RAW, places, OPTIONAL)                                                                                \
	F(m, RAW, changeable, OPTIONAL)                                                                            \
	F(m, STR, network, OPTIONAL)                                                                               \
	F(m, FLAG, subprocess, OPTIONAL)                                                                           \
	F(m, FLAG, terminals, OPTIONAL)                                                                            \
	F(m, UINT, memory, OPTIONAL)                                                                               \
	F(m, UINT, processes, OPTIONAL)                                                                            \
	F(m, UINT, open_files, OPTIONAL)                                                                           \
	F(m, UINT, file_size, OPTIONAL)                                                                            \
	F(m, UINT, workspace_size, OPTIONAL)                                                                       \
	F(m, UINT, scratch_size, OPTIONAL)                                                                         \
	F(m, UINT, text_max, REQUIRED)                                                                             \
	F(m, STR, level, OPTIONAL)                                                                                 \
	F(m, RAW, forbid, OPTIONAL)                                                                                \
	F(m, FLAG, forbid_exec, OPTIONAL)                                                                          \
	F(m, FLAG, memory_group, OPTIONAL)                                                                         \
	F(m, FLAG, processes_group, OPTIONAL)                                                                      \
	F(m, FLAG, cpu_group, OPTIONAL)                                                                            \
	F(m, STR, packages, OPTIONAL)                                                                              \
	F(m, RAW, requirements, OPTIONAL)                                                                          \
	F(m, RAW, packages_allow, OPTIONAL)                                                                        \
	F(m, RAW, packages_deny, OPTIONAL)                                                                         \
	F(m, STR, home, OPTIONAL)                                                                                  \
	F(m, UINT, threads, OPTIONAL)                                                                              \
	F(m, FLAG, threads_given, OPTIONAL)
/* Make a warden. Descriptors travel with it: the warden's end of its control pair, then one for each control
 * group that it enters. uid: the host uid and gid of the session, 0 = the template's own. directory: where it
 * starts, absent: in its workspace. places, memory: in place of those of configure, if there are places; then home:
 * absent: none. */
#define WARDEN_FIELDS(F, m)                                                                                        \
	F(m, UINT, serial, REQUIRED)                                                                               \
	F(m, STR, workspace, REQUIRED)                                                                             \
	F(m, UINT, uid, OPTIONAL)                                                                                  \
	F(m, STR, directory, OPTIONAL)                                                                             \
	F(m, RAW, places, OPTIONAL)                                                                                \
	F(m, UINT, memory, OPTIONAL)                                                                               \
	F(m, STR, home, OPTIONAL)

#define NO_FIELDS(F, m) F(m, UINT, serial, OPTIONAL)

WIRE_MESSAGE(place_record, "place", NO_ID, PLACE_RECORD_FIELDS);
WIRE_MESSAGE(configure_message, "configure", NO_ID, CONFIGURE_FIELDS);
WIRE_MESSAGE(warden_message, "warden", NO_ID, WARDEN_FIELDS);
WIRE_MESSAGE(hurry_message, "hurry", NO_ID, NO_FIELDS); /* a session waits already */

/* ---- template to router ---- */

/* rough: it makes wardens for who waits, but has not warmed up yet; it says ready again when it has. woken: it
 * comes from an image. */
#define TEMPLATE_READY_FIELDS(F, m)                                                                                \
	F(m, STR, language, REQUIRED)                                                                              \
	F(m, STR, version, REQUIRED)                                                                               \
	F(m, RAW, missing, OPTIONAL)                                                                               \
	F(m, FLAG, rough, OPTIONAL)                                                                                \
	F(m, FLAG, woken, OPTIONAL)
/* There is a directory for images, and the reason why it wakes from none. */
#define IMPORTING_FIELDS(F, m) F(m, STR, reason, REQUIRED)
#define FAILED_FIELDS(F, m)                                                                                        \
	F(m, UINT, serial, OPTIONAL)                                                                               \
	F(m, STR, reason, REQUIRED)
/* An image of the template was written, or, with the reason, was not. */
#define IMAGED_FIELDS(F, m) F(m, STR, reason, OPTIONAL)
/* The warden exists; its pidfd travels along (no descriptor on kernels without pidfds). pid: as the host sees it.
 */
#define MADE_FIELDS(F, m)                                                                                          \
	F(m, UINT, serial, REQUIRED)                                                                               \
	F(m, UINT, pid, REQUIRED)

WIRE_MESSAGE(template_ready, "ready", NO_ID, TEMPLATE_READY_FIELDS);
WIRE_MESSAGE(failed_message, "failed", NO_ID,
	     FAILED_FIELDS); /* template: serial 0 = the template itself; warden: the cage or a spawn */
WIRE_MESSAGE(importing_message, "importing", NO_ID, IMPORTING_FIELDS);
WIRE_MESSAGE(imaged_message, "imaged", NO_ID, IMAGED_FIELDS);
WIRE_MESSAGE(made_message, "made", NO_ID, MADE_FIELDS);

/* ---- router to builder (SOCK_SEQPACKET): one order, then its end of the channel closes ---- */

/* Make a set of packages. packages: the directory of all sets; work: an empty directory for this one. python, uv:
 * as in the settings. base: the set that it grows from. newer: packages published from that time on are left out.
 * deny: array of patterns. size: that it may have; scarce: because there is no room for more. uid: who does it, 0 =
 * the builder's own user. */
#define BUILD_FIELDS(F, m)                                                                                         \
	F(m, BIN, packages, REQUIRED)                                                                              \
	F(m, BIN, work, REQUIRED)                                                                                  \
	F(m, RAW, requirements, REQUIRED)                                                                          \
	F(m, STR, base, OPTIONAL)                                                                                  \
	F(m, STR, python, OPTIONAL)                                                                                \
	F(m, STR, uv, OPTIONAL)                                                                                    \
	F(m, STR, newer, OPTIONAL)                                                                                 \
	F(m, RAW, deny, OPTIONAL)                                                                                  \
	F(m, UINT, size, REQUIRED)                                                                                 \
	F(m, FLAG, scarce, OPTIONAL)                                                                               \
	F(m, UINT, uid, OPTIONAL)

/* ---- builder to router ---- */

/* text: the present work. */
#define BUILDING_FIELDS(F, m) F(m, STR, text, REQUIRED)
/* One of both: the name of the set, or why there is none. */
#define BUILT_FIELDS(F, m)                                                                                         \
	F(m, STR, set, OPTIONAL)                                                                                   \
	F(m, STR, reason, OPTIONAL)

WIRE_MESSAGE(build_message, "build", NO_ID, BUILD_FIELDS);
WIRE_MESSAGE(building_message, "building", NO_ID, BUILDING_FIELDS);
WIRE_MESSAGE(built_message, "built", NO_ID, BUILT_FIELDS);

/* ---- router to warden (a link) ---- */

#define SERIAL_FIELDS(F, m) F(m, UINT, serial, REQUIRED)
#define SIGNAL_FIELDS(F, m)                                                                                        \
	F(m, UINT, serial, REQUIRED)                                                                               \
	F(m, UINT, signal, REQUIRED)

/* To a warden: fork the pristine image; to a frozen interpreter: fork yourself. Four descriptors travel along: the
 * interpreter's exec channel, its stdout, its stderr, and the memory file of outbuffer.h. hold: nothing of it runs
 * until it gets `settle`. directory: it works in that branch's directory, which is filled, or else to be made. */
#define SPAWN_FIELDS(F, m)                                                                                         \
	F(m, UINT, serial, REQUIRED)                                                                               \
	F(m, FLAG, reseed, OPTIONAL)                                                                               \
	F(m, FLAG, hold, OPTIONAL)                                                                                 \
	F(m, FLAG, filled, OPTIONAL)                                                                               \
	F(m, STR, directory, OPTIONAL)
#define ADOPT_FIELDS(F, m)                                                                                         \
	F(m, UINT, serial, REQUIRED)                                                                               \
	F(m, UINT, pid, REQUIRED)
/* Add up the size of the workspace; stop once it is more than this. */
#define SURVEY_FIELDS(F, m)                                                                                        \
	F(m, UINT, size, REQUIRED)                                                                                 \
	F(m, UINT, files, REQUIRED)

/* Keep the files of the state as serial; at most max bytes of contents are kept. directory: of a branch that has
 * its own. mapped: array of uint, inodes that are mapped for writing. */
#define KEEP_FILES_FIELDS(F, m)                                                                                    \
	F(m, UINT, serial, REQUIRED)                                                                               \
	F(m, STR, directory, OPTIONAL)                                                                             \
	F(m, UINT, max, REQUIRED)                                                                                  \
	F(m, RAW, mapped, OPTIONAL)
/* Bring the files of that state back. The directory of a branch is made if it is not there. still: array of uint,
 * interpreters that must not run meanwhile. */
#define BRING_FILES_FIELDS(F, m)                                                                                   \
	F(m, UINT, serial, REQUIRED)                                                                               \
	F(m, STR, directory, OPTIONAL)                                                                             \
	F(m, RAW, still, OPTIONAL)
/* Stop that. */
#define LEAVE_FILES_FIELDS(F, m)                                                                                   \
	F(m, UINT, serial, REQUIRED)                                                                               \
	F(m, STR, directory, OPTIONAL)

/* How the files of the state since differ from those of the state until. */
#define COMPARE_FILES_FIELDS(F, m)                                                                                 \
	F(m, UINT, serial, REQUIRED)                                                                               \
	F(m, UINT, since, REQUIRED)                                                                                \
	F(m, UINT, until, REQUIRED)

WIRE_MESSAGE(spawn_message, "spawn", NO_ID, SPAWN_FIELDS);
WIRE_MESSAGE(adopt_message, "adopt", NO_ID, ADOPT_FIELDS);
WIRE_MESSAGE(sweep_message, "sweep", NO_ID, NO_FIELDS);
WIRE_MESSAGE(signal_message, "signal", NO_ID, SIGNAL_FIELDS);
WIRE_MESSAGE(discard_message, "discard", NO_ID, SERIAL_FIELDS); /* kill it, and say no more about it */
WIRE_MESSAGE(survey_message, "survey", NO_ID, SURVEY_FIELDS);
WIRE_MESSAGE(keep_files_message, "keep_files", NO_ID, KEEP_FILES_FIELDS);
WIRE_MESSAGE(bring_files_message, "bring_files", NO_ID, BRING_FILES_FIELDS);
WIRE_MESSAGE(leave_files_message, "leave_files", NO_ID, LEAVE_FILES_FIELDS);
WIRE_MESSAGE(compare_files_message, "compare_files", NO_ID, COMPARE_FILES_FIELDS);
WIRE_MESSAGE(drop_files_message, "drop_files", NO_ID, SERIAL_FIELDS);

/* ---- warden to router ---- */

/* The cage is complete. guards: array of str, the mechanisms that really hold; level: their level. */
#define WARDEN_READY_FIELDS(F, m)                                                                                  \
	F(m, STR, level, REQUIRED)                                                                                 \
	F(m, STR, language, REQUIRED)                                                                              \
	F(m, STR, version, OPTIONAL)                                                                               \
	F(m, RAW, guards, REQUIRED)
/* An interpreter has died; a sweep kills the processes that it started. status: as from waitpid. */
#define EXITED_FIELDS(F, m)                                                                                        \
	F(m, UINT, serial, REQUIRED)                                                                               \
	F(m, UINT, status, REQUIRED)
/* blind: some directories could not be looked into. worked: µs of a processor. */
#define SURVEYED_FIELDS(F, m)                                                                                      \
	SURVEY_FIELDS(F, m)                                                                                        \
	F(m, FLAG, blind, OPTIONAL)                                                                                \
	F(m, UINT, worked, OPTIONAL)

/* files: how many; size: bytes that were kept for it; held: bytes that all states together have; lost: states up to
 * this one may not be kept any more.
 * why: the first that was not kept, or, if it failed, why nothing was. */
#define FILES_KEPT_FIELDS(F, m)                                                                                    \
	F(m, UINT, serial, REQUIRED)                                                                               \
	F(m, UINT, files, OPTIONAL)                                                                                \
	F(m, UINT, size, OPTIONAL)                                                                                 \
	F(m, UINT, held, OPTIONAL)                                                                                 \
	F(m, UINT, lost, OPTIONAL)                                                                                 \
	F(m, FLAG, failed, OPTIONAL)                                                                               \
	F(m, STR, why, OPTIONAL)
/* files: array of file_back; more: how many more. refused: nothing was done; why: of that, or of the first that
 * failed. */
#define FILES_BACK_FIELDS(F, m)                                                                                    \
	F(m, UINT, serial, REQUIRED)                                                                               \
	F(m, STR, directory, OPTIONAL)                                                                             \
	F(m, RAW, files, OPTIONAL)                                                                                 \
	F(m, UINT, more, OPTIONAL)                                                                                 \
	F(m, FLAG, refused, OPTIONAL)                                                                              \
	F(m, STR, why, OPTIONAL)

/* Said now and then while files are kept or restored, when some more of that is done. size, files: at
 * most so much is written for it. */
#define FILES_GOING_FIELDS(F, m)                                                                                   \
	F(m, UINT, size, REQUIRED)                                                                                 \
	F(m, UINT, files, REQUIRED)

/* files: array of file_difference; more: how many more. why: they are not known. */
#define FILES_COMPARED_FIELDS(F, m)                                                                                \
	F(m, UINT, serial, REQUIRED)                                                                               \
	F(m, RAW, files, OPTIONAL)                                                                                 \
	F(m, UINT, more, OPTIONAL)                                                                                 \
	F(m, STR, why, OPTIONAL)

WIRE_MESSAGE(warden_ready, "ready", NO_ID, WARDEN_READY_FIELDS);
WIRE_MESSAGE(swept_message, "swept", NO_ID, NO_FIELDS);
WIRE_MESSAGE(spawned_message, "spawned", NO_ID,
	     ADOPT_FIELDS); /* also from a frozen interpreter: pid as its warden sees it, or 0 */
WIRE_MESSAGE(signalled_message, "signalled", NO_ID,
	     SERIAL_FIELDS); /* the signal has been sent, or the interpreter is dead */
WIRE_MESSAGE(exited_message, "exited", NO_ID, EXITED_FIELDS);
WIRE_MESSAGE(surveyed_message, "surveyed", NO_ID, SURVEYED_FIELDS);
WIRE_MESSAGE(files_kept_message, "files_kept", NO_ID, FILES_KEPT_FIELDS);
WIRE_MESSAGE(files_back_message, "files_back", NO_ID, FILES_BACK_FIELDS);
WIRE_MESSAGE(files_going_message, "files_going", NO_ID, FILES_GOING_FIELDS);
WIRE_MESSAGE(files_compared_message, "files_compared", NO_ID, FILES_COMPARED_FIELDS);

/* ---- router to interpreter (a link) ---- */

/* options: a map. */
#define RUN_FIELDS(F, m)                                                                                           \
	F(m, UINT, cell, REQUIRED)                                                                                 \
	F(m, BIN, options, REQUIRED)
/* Like run. "save": save into the descriptor that travels along, at most size bytes; variables that cannot be
 * saved within half of budget seconds are left out. "load": load what begins in it at offset. */
#define TASK_FIELDS(F, m)                                                                                          \
	F(m, UINT, cell, REQUIRED)                                                                                 \
	F(m, STR, task, REQUIRED)                                                                                  \
	F(m, UINT, size, OPTIONAL)                                                                                 \
	F(m, UINT, offset, OPTIONAL)                                                                               \
	F(m, REAL, budget, OPTIONAL)
#define ANSWER_FIELDS(F, m)                                                                                        \
	F(m, STR, text, OPTIONAL)                                                                                  \
	F(m, FLAG, eof, OPTIONAL)

/* As in `return`. */
#define RETURNED_FIELDS(F, m)                                                                                      \
	F(m, UINT, number, REQUIRED)                                                                               \
	F(m, RAW, value, OPTIONAL)                                                                                 \
	F(m, STR, error, OPTIONAL)                                                                                 \
	F(m, STR, text, OPTIONAL)

/* kind: complete, inspect, vars, keep, is_complete or check. names: array of str. */
#define QUESTION_FIELDS(F, m)                                                                                      \
	F(m, UINT, serial, REQUIRED)                                                                               \
	F(m, STR, kind, REQUIRED)                                                                                  \
	F(m, STR, code, OPTIONAL)                                                                                  \
	F(m, UINT, cursor, OPTIONAL)                                                                               \
	F(m, FLAG, source, OPTIONAL)                                                                               \
	F(m, RAW, names, OPTIONAL)

/* cell: in the middle of that cell, which waits for calls; 0: between two cells. */
#define FREEZE_FIELDS(F, m)                                                                                        \
	F(m, UINT, serial, REQUIRED)                                                                               \
	F(m, UINT, cell, OPTIONAL)

/* All state that it continues from is unchanged. files: some have just been put there, from outside the session. */
#define SETTLE_FIELDS(F, m) F(m, FLAG, files, OPTIONAL)

/* A spare imports what these ask for of the set at that path. requirements: array of str. */
#define PREPARE_FIELDS(F, m)                                                                                       \
	F(m, STR, path, REQUIRED)                                                                                  \
	F(m, RAW, requirements, REQUIRED)

WIRE_MESSAGE(run_message, "run", NO_ID, RUN_FIELDS);
WIRE_MESSAGE(cell_options, "options", NO_ID, CELL_OPTIONS_FIELDS);
WIRE_MESSAGE(question_message, "question", NO_ID, QUESTION_FIELDS);
WIRE_MESSAGE(task_message, "task", NO_ID, TASK_FIELDS);
WIRE_MESSAGE(answer_message, "answer", NO_ID, ANSWER_FIELDS);
WIRE_MESSAGE(settle_message, "settle", NO_ID, SETTLE_FIELDS);
WIRE_MESSAGE(prepare_message, "prepare", NO_ID, PREPARE_FIELDS);
WIRE_MESSAGE(returned_message, "returned", NO_ID, RETURNED_FIELDS);
WIRE_MESSAGE(freeze_message, "freeze", NO_ID, FREEZE_FIELDS); /* one descriptor: the channel of the frozen copy */
WIRE_MESSAGE(measure_message, "measure", NO_ID, NO_FIELDS);   /* to a frozen interpreter, like spawn */
WIRE_MESSAGE(describe_message, "describe", NO_ID, SERIAL_FIELDS); /* to a live or a frozen one: its variables */

/* ---- interpreter to router: every byte of it is hostile ---- */

/* cause: absent, "error", "exit" or "interrupt". data: as in shown. error, blocked, artifacts: the maps below.
 * changed: something in the workspace has. restless: other processes may still change it. mapped: array of uint,
 * the inodes of files there that are mapped for writing. rewritten: bytes that were copied because a frozen copy
 * had them, too; rewriting: µs that this took. */
#define DONE_FIELDS(F, m)                                                                                          \
	F(m, UINT, cell, REQUIRED)                                                                                 \
	F(m, INT, returncode, REQUIRED)                                                                            \
	F(m, STR, cause, OPTIONAL)                                                                                 \
	F(m, STR, text, OPTIONAL)                                                                                  \
	F(m, RAW, data, OPTIONAL)                                                                                  \
	F(m, RAW, error, OPTIONAL)                                                                                 \
	F(m, RAW, blocked, OPTIONAL)                                                                               \
	F(m, RAW, artifacts, OPTIONAL)                                                                             \
	F(m, FLAG, artifacts_more, OPTIONAL)                                                                       \
	F(m, STR, unfaithful, OPTIONAL)                                                                            \
	F(m, RAW, report, OPTIONAL)                                                                                \
	F(m, FLAG, changed, OPTIONAL)                                                                              \
	F(m, FLAG, restless, OPTIONAL)                                                                             \
	F(m, RAW, mapped, OPTIONAL)                                                                                \
	F(m, UINT, rewritten, OPTIONAL)                                                                            \
	F(m, UINT, rewriting, OPTIONAL)
#define ASK_FIELDS(F, m)                                                                                           \
	F(m, STR, prompt, REQUIRED)                                                                                \
	F(m, FLAG, password, OPTIONAL)

/* again: a call that was made, and rolled back, is to be made once more. */
#define CALLING_FIELDS(F, m)                                                                                       \
	CALL_FIELDS(F, m)                                                                                          \
	F(m, FLAG, again, OPTIONAL)

/* The arguments of a call of "pip install", and its value. base: the set that there is already. path: of the set.
 */
#define INSTALL_FIELDS(F, m)                                                                                       \
	F(m, RAW, requirements, REQUIRED)                                                                          \
	F(m, STR, base, OPTIONAL)
#define INSTALLED_FIELDS(F, m)                                                                                     \
	F(m, STR, set, REQUIRED)                                                                                   \
	F(m, STR, path, REQUIRED)

/* answer: the fields of that reply. refused: the error in the question. Without both: it could not be
 * answered. */
#define TOLD_FIELDS(F, m)                                                                                          \
	F(m, UINT, serial, REQUIRED)                                                                               \
	F(m, RAW, answer, OPTIONAL)                                                                                \
	F(m, STR, refused, OPTIONAL)

WIRE_MESSAGE(done_message, "done", NO_ID, DONE_FIELDS);
WIRE_MESSAGE(install_arguments, "install", NO_ID, INSTALL_FIELDS);
WIRE_MESSAGE(installed, "installed", NO_ID, INSTALLED_FIELDS);
WIRE_MESSAGE(told_message, "told", NO_ID, TOLD_FIELDS);
WIRE_MESSAGE(ask_message, "ask", NO_ID, ASK_FIELDS);
WIRE_MESSAGE(display_message, "display", NO_ID, SHOWN_FIELDS); /* without at */
WIRE_MESSAGE(call_message, "call", NO_ID, CALLING_FIELDS);
WIRE_MESSAGE(abandon_message, "abandon", NO_ID, CANCEL_FIELDS); /* nobody waits for that call any more */

/* pid as its warden sees it; 0 and a reason if there is no frozen copy. */
#define FROZEN_FIELDS(F, m)                                                                                        \
	F(m, UINT, serial, REQUIRED)                                                                               \
	F(m, UINT, pid, OPTIONAL)                                                                                  \
	F(m, STR, reason, OPTIONAL)                                                                                \
	F(m, FLAG, homeless, OPTIONAL)
/* A piece of a frame with descriptions; more: others follow. why: there is none. */
#define DESCRIBED_FIELDS(F, m)                                                                                     \
	F(m, UINT, serial, REQUIRED)                                                                               \
	F(m, BIN, data, OPTIONAL)                                                                                  \
	F(m, FLAG, more, OPTIONAL)                                                                                 \
	F(m, STR, why, OPTIONAL)
/* variables: array of descriptions, in the order of their names; more: how many more there are. */
#define DESCRIPTIONS_FIELDS(F, m)                                                                                  \
	F(m, RAW, variables, REQUIRED)                                                                             \
	F(m, UINT, more, OPTIONAL)
/* type, size, text: as in vars. digest: of all that can be seen of the value; absent: that took too long. partial:
 * there is something that cannot be seen. */
#define DESCRIPTION_FIELDS(F, m)                                                                                   \
	F(m, STR, name, REQUIRED)                                                                                  \
	F(m, STR, type, REQUIRED)                                                                                  \
	F(m, UINT, size, REQUIRED)                                                                                 \
	F(m, STR, text, REQUIRED)                                                                                  \
	F(m, BIN, digest, OPTIONAL)                                                                                \
	F(m, FLAG, partial, OPTIONAL)
#define MEASURED_FIELDS(F, m) F(m, UINT, memory, REQUIRED)

WIRE_MESSAGE(frozen_message, "frozen", NO_ID, FROZEN_FIELDS);
WIRE_MESSAGE(measured_message, "measured", NO_ID, MEASURED_FIELDS);
WIRE_MESSAGE(described_message, "described", NO_ID, DESCRIBED_FIELDS);
WIRE_MESSAGE(descriptions_record, "descriptions", NO_ID, DESCRIPTIONS_FIELDS);
WIRE_MESSAGE(description_record, "description", NO_ID, DESCRIPTION_FIELDS);

/* The result of a task: the report inside done, whose refused has maps of name and reason. */
#define REPORT_FIELDS(F, m)                                                                                        \
	F(m, UINT, size, REQUIRED)                                                                                 \
	F(m, RAW, names, REQUIRED)                                                                                 \
	F(m, RAW, refused, REQUIRED)

WIRE_MESSAGE(task_report, "report", NO_ID, REPORT_FIELDS);

/* ---- files of the router: the beginning of a saved state ---- */

#define SAVED_FIELDS(F, m)                                                                                         \
	F(m, UINT, owner, REQUIRED)                                                                                \
	F(m, STR, session, REQUIRED)                                                                               \
	F(m, REAL, created, REQUIRED)                                                                              \
	F(m, UINT, size, REQUIRED)                                                                                 \
	F(m, RAW, names, REQUIRED)                                                                                 \
	F(m, RAW, refused, REQUIRED)

WIRE_MESSAGE(saved_state, "saved", NO_ID, SAVED_FIELDS);
