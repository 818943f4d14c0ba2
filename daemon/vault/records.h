/* What is in a router's ledgers: read and written by laird alone, with the tables of every other message. What
 * other builds could not go on with is another layout, see vault.h.
 *
 * A number that names something, such as a session, an interpreter by its serial, a checkpoint by its place, is 0
 * for none. Times are those of event_now(). What has parts of its own has them as bytes, so that the bounds of a
 * frame are those of each part and not of all. */
#pragma once

#include "proto/wire.h"

/* The fields that an object has under the same name are lists of their own: its values, and by what they are there
 * its texts (arrays of char), buffers, interpreters and checkpoints. These copy the fields of a list into the
 * variable record, and from what the pointer record points to; snapshot.c and revive_session.c have the same for
 * the last two.
 */
#define RECORD_PUT(object, kind, field, need) record.field = (object)->field;
#define RECORD_TAKE(object, kind, field, need) (object)->field = record->field;
#define TEXT_PUT(object, kind, field, need) record.field = record_text((object)->field);
#define TEXT_TAKE(object, kind, field, need) bytes_copy((object)->field, sizeof((object)->field), record->field);
#define BUFFER_PUT(object, kind, field, need) record.field = wire_bytes(&(object)->field);
#define BUFFER_TAKE(object, kind, field, need) record_take_buffer(&(object)->field, record->field);

/* "" and NULL are absent. */
struct bytes record_text(const char *text);
void record_take_buffer(msgpack_sbuffer *buffer, struct bytes from);

/* ---- a family's ledger; the last family record says what is, and others before it are what it refers to; what
 * comes after it has not happened ---- */

#define LINK_FIELDS(F, m)                                                                                          \
	F(m, UINT, sent, OPTIONAL)                                                                                 \
	F(m, UINT, received, OPTIONAL)

#define WARDEN_VALUES(F, m)                                                                                        \
	F(m, UINT, serial, REQUIRED)                                                                               \
	F(m, UINT, uid, OPTIONAL)                                                                                  \
	F(m, UINT, pid, OPTIONAL)                                                                                  \
	F(m, UINT, baseline, OPTIONAL)                                                                             \
	F(m, UINT, keep, OPTIONAL)                                                                                 \
	F(m, UINT, last_interpreter, OPTIONAL)                                                                     \
	F(m, UINT, last_session, OPTIONAL)                                                                         \
	F(m, UINT, last_question, OPTIONAL)                                                                        \
	F(m, UINT, last_files, OPTIONAL)                                                                           \
	F(m, FLAG, sweeping, OPTIONAL)
/* Of its workspace: see quota.h. */
#define QUOTA_VALUES(F, m)                                                                                         \
	F(m, UINT, size, OPTIONAL)                                                                                 \
	F(m, UINT, files, OPTIONAL)                                                                                \
	F(m, UINT, size_allowed, OPTIONAL)                                                                         \
	F(m, UINT, files_allowed, OPTIONAL)                                                                        \
	F(m, UINT, brought_size, OPTIONAL)                                                                         \
	F(m, UINT, brought_files, OPTIONAL)                                                                        \
	F(m, UINT, step, OPTIONAL)                                                                                 \
	F(m, FLAG, settling, OPTIONAL)                                                                             \
	F(m, FLAG, asked, OPTIONAL)
#define FAMILY_FIELDS(F, m)                                                                                        \
	WARDEN_VALUES(F, m)                                                                                        \
	F(m, UINT, state, REQUIRED)                                                                                \
	LINK_FIELDS(F, m)                                                                                          \
	F(m, BIN, workspace, REQUIRED)                                                                             \
	F(m, STR, level, OPTIONAL)                                                                                 \
	F(m, STR, language, OPTIONAL)                                                                              \
	F(m, STR, python, OPTIONAL)                                                                                \
	F(m, BIN, guards, OPTIONAL)                                                                                \
	F(m, STR, reason, OPTIONAL)                                                                                \
	F(m, STR, group, OPTIONAL)                                                                                 \
	F(m, UINT, group_held, OPTIONAL)                                                                           \
	F(m, UINT, group_memory, OPTIONAL)                                                                         \
	F(m, UINT, group_processes, OPTIONAL)                                                                      \
	F(m, UINT, group_cpu, OPTIONAL)                                                                            \
	F(m, UINT, group_oom_kills, OPTIONAL)                                                                      \
	QUOTA_VALUES(F, m)                                                                                         \
	F(m, UINT, done_calls_forgotten, OPTIONAL)                                                                 \
	F(m, BIN, interpreters, REQUIRED)                                                                          \
	F(m, BIN, sessions, REQUIRED)                                                                              \
	F(m, BIN, messages, REQUIRED)
#define INTERPRETER_VALUES(F, m)                                                                                   \
	F(m, UINT, serial, REQUIRED)                                                                               \
	F(m, UINT, size, OPTIONAL)                                                                                 \
	F(m, FLAG, adopted, OPTIONAL)                                                                              \
	F(m, FLAG, alive, OPTIONAL)                                                                                \
	F(m, UINT, signals_unanswered, OPTIONAL)                                                                   \
	F(m, UINT, effects, OPTIONAL)                                                                              \
	F(m, UINT, last_words, OPTIONAL)
#define INTERPRETER_FIELDS(F, m)                                                                                   \
	INTERPRETER_VALUES(F, m)                                                                                   \
	F(m, STR, set, OPTIONAL)                                                                                   \
	F(m, UINT, role, OPTIONAL)                                                                                 \
	F(m, UINT, session, OPTIONAL)                                                                              \
	LINK_FIELDS(F, m)
/* A message that may not have been sent yet: on the channel of @to, or the warden's control pair. subject: whose
 * descriptors travel along. */
#define MESSAGE_FIELDS(F, m)                                                                                       \
	F(m, UINT, to, OPTIONAL)                                                                                   \
	F(m, UINT, number, REQUIRED)                                                                               \
	F(m, UINT, subject, OPTIONAL)                                                                              \
	F(m, UINT, n_fds, OPTIONAL)                                                                                \
	F(m, BIN, datagram, REQUIRED)
#define SESSION_VALUES(F, m)                                                                                       \
	F(m, UINT, n_cells, OPTIONAL)                                                                              \
	F(m, FLAG, exited, OPTIONAL)                                                                               \
	F(m, UINT, lost_to, OPTIONAL)                                                                              \
	F(m, FLAG, lost_step, OPTIONAL)                                                                            \
	F(m, UINT, at, OPTIONAL)                                                                                   \
	F(m, FLAG, growing, OPTIONAL)                                                                              \
	F(m, FLAG, midway, OPTIONAL)                                                                               \
	F(m, FLAG, was_saved, OPTIONAL)                                                                            \
	F(m, UINT, n_questions, OPTIONAL)                                                                          \
	F(m, FLAG, exact, OPTIONAL)                                                                                \
	F(m, UINT, n_forgotten, OPTIONAL)                                                                          \
	F(m, UINT, stray_given, OPTIONAL)                                                                          \
	F(m, UINT, opened, OPTIONAL)                                                                               \
	F(m, UINT, last, OPTIONAL)                                                                                 \
	F(m, REAL, created, OPTIONAL)                                                                              \
	F(m, UINT, birth, OPTIONAL)                                                                                \
	F(m, FLAG, untold, OPTIONAL)
#define SESSION_TEXTS(F, m) F(m, STR, lost_cause, OPTIONAL)
#define SESSION_INTERPRETERS(F, m)                                                                                 \
	F(m, UINT, live, OPTIONAL)                                                                                 \
	F(m, UINT, source, OPTIONAL)                                                                               \
	F(m, UINT, freezing, OPTIONAL)                                                                             \
	F(m, UINT, successor, OPTIONAL)
#define SESSION_CHECKPOINTS(F, m)                                                                                  \
	F(m, UINT, target, OPTIONAL)                                                                               \
	F(m, UINT, successor_of, OPTIONAL)
#define KEPT_SESSION_FIELDS(F, m)                                                                                  \
	F(m, UINT, number, REQUIRED)                                                                               \
	F(m, STR, id, OPTIONAL)                                                                                    \
	F(m, UINT, owner, OPTIONAL)                                                                                \
	F(m, UINT, state, OPTIONAL)                                                                                \
	F(m, UINT, sweep, OPTIONAL)                                                                                \
	F(m, BIN, workspace, OPTIONAL)                                                                             \
	F(m, BIN, queue, REQUIRED)                                                                                 \
	F(m, BIN, cell, OPTIONAL)                                                                                  \
	SESSION_VALUES(F, m)                                                                                       \
	SESSION_TEXTS(F, m)                                                                                        \
	SESSION_INTERPRETERS(F, m)                                                                                 \
	SESSION_CHECKPOINTS(F, m)                                                                                  \
	F(m, UINT, stdout_begin, OPTIONAL)                                                                         \
	F(m, UINT, stderr_begin, OPTIONAL)                                                                         \
	F(m, BIN, stdout_words, OPTIONAL)                                                                          \
	F(m, BIN, stderr_words, OPTIONAL)                                                                          \
	F(m, STR, kill_cause, OPTIONAL)                                                                            \
	F(m, INT, verdict_returncode, OPTIONAL)                                                                    \
	F(m, STR, verdict_cause, OPTIONAL)                                                                         \
	F(m, BIN, checkpoints, REQUIRED)                                                                           \
	F(m, UINT, base, OPTIONAL)                                                                                 \
	F(m, FLAG, saved, OPTIONAL)                                                                                \
	F(m, FLAG, severed, OPTIONAL)                                                                              \
	F(m, BIN, operations, REQUIRED)                                                                            \
	F(m, BIN, operation, OPTIONAL)                                                                             \
	F(m, UINT, deadline, OPTIONAL)                                                                             \
	F(m, UINT, patience, OPTIONAL)                                                                             \
	F(m, BIN, resets, REQUIRED)                                                                                \
	F(m, BIN, closers, REQUIRED)                                                                               \
	F(m, BIN, parts, OPTIONAL)
#define CELL_VALUES(F, m)                                                                                          \
	F(m, UINT, number, OPTIONAL)                                                                               \
	F(m, UINT, after, OPTIONAL)                                                                                \
	F(m, UINT, timeout, OPTIONAL)                                                                              \
	F(m, UINT, asked, OPTIONAL)                                                                                \
	F(m, UINT, started, OPTIONAL)                                                                              \
	F(m, FLAG, asking, OPTIONAL)                                                                               \
	F(m, UINT, asks, OPTIONAL)                                                                                 \
	F(m, UINT, stdout_stray, OPTIONAL)                                                                         \
	F(m, UINT, stderr_stray, OPTIONAL)                                                                         \
	F(m, FLAG, password, OPTIONAL)                                                                             \
	F(m, FLAG, timed_out, OPTIONAL)                                                                            \
	F(m, FLAG, stands, OPTIONAL)                                                                               \
	F(m, UINT, n_calls, OPTIONAL)                                                                              \
	F(m, UINT, rest, OPTIONAL)
/* Its code, its options and what it has shown are records of their own, written once. */
#define CELL_FIELDS(F, m)                                                                                          \
	F(m, UINT, promise, REQUIRED)                                                                              \
	F(m, FLAG, kept, OPTIONAL)                                                                                 \
	CELL_VALUES(F, m)                                                                                          \
	F(m, UINT, displays, OPTIONAL)                                                                             \
	F(m, UINT, displays_dropped, OPTIONAL)                                                                     \
	F(m, UINT, stdout_most, OPTIONAL)                                                                          \
	F(m, UINT, stderr_most, OPTIONAL)                                                                          \
	F(m, BIN, prompt, OPTIONAL)                                                                                \
	F(m, BIN, calls, OPTIONAL)                                                                                 \
	F(m, UINT, task, OPTIONAL)                                                                                 \
	F(m, UINT, telling, OPTIONAL)                                                                              \
	F(m, FLAG, last_save, OPTIONAL)
/* options: as in run. */
#define CELL_CODE_FIELDS(F, m)                                                                                     \
	F(m, UINT, promise, REQUIRED)                                                                              \
	F(m, BIN, options, REQUIRED)
/* What a question is about, by its number in the family. */
#define ABOUT_FIELDS(F, m)                                                                                         \
	F(m, UINT, number, REQUIRED)                                                                               \
	F(m, STR, code, OPTIONAL)                                                                                  \
	F(m, BIN, names, OPTIONAL)
/* Something that a running cell has shown. */
#define KEPT_DISPLAY_FIELDS(F, m)                                                                                  \
	F(m, UINT, promise, REQUIRED)                                                                              \
	F(m, BIN, shown, REQUIRED)
/* A call of a cell. Which of them wait is in the record of the cell. Without function: what has changed of it
 * since. */
#define KEPT_CALL_FIELDS(F, m)                                                                                     \
	F(m, UINT, promise, REQUIRED)                                                                              \
	F(m, UINT, number, REQUIRED)                                                                               \
	F(m, STR, function, OPTIONAL)                                                                              \
	F(m, RAW, arguments, OPTIONAL)                                                                             \
	F(m, UINT, since, OPTIONAL)                                                                                \
	F(m, UINT, timeout, OPTIONAL)                                                                              \
	F(m, UINT, state, OPTIONAL)                                                                                \
	F(m, STR, text, OPTIONAL)                                                                                  \
	F(m, UINT, turned, OPTIONAL)                                                                               \
	F(m, FLAG, again, OPTIONAL)
/* What a call has done for the family, see done_calls.h. */
#define DONE_CALL_FIELDS(F, m)                                                                                     \
	F(m, UINT, family, OPTIONAL)                                                                               \
	F(m, UINT, place, OPTIONAL)                                                                                \
	F(m, UINT, serial, REQUIRED)                                                                               \
	F(m, UINT, session, REQUIRED)                                                                              \
	F(m, UINT, cell, REQUIRED)                                                                                 \
	F(m, BIN, digest, REQUIRED)                                                                                \
	F(m, STR, where, REQUIRED)                                                                                 \
	F(m, STR, text, REQUIRED)                                                                                  \
	F(m, FLAG, maybe, OPTIONAL)
#define ENTRY_VALUES(F, m)                                                                                         \
	F(m, UINT, cell, REQUIRED)                                                                                 \
	F(m, UINT, after, OPTIONAL)                                                                                \
	F(m, INT, returncode, OPTIONAL)                                                                            \
	F(m, REAL, duration_ms, OPTIONAL)
/* A cell that a session has run, for its journal. size: of all the code. */
#define ENTRY_FIELDS(F, m)                                                                                         \
	F(m, UINT, session, REQUIRED)                                                                              \
	ENTRY_VALUES(F, m)                                                                                         \
	F(m, STR, cause, OPTIONAL)                                                                                 \
	F(m, UINT, size, OPTIONAL)                                                                                 \
	F(m, STR, code, REQUIRED)
/* An effect of a session, see effects.h. */
#define EFFECT_RECORD_FIELDS(F, m)                                                                                 \
	F(m, UINT, session, REQUIRED)                                                                              \
	F(m, UINT, when, REQUIRED)                                                                                 \
	F(m, UINT, count, OPTIONAL)                                                                                \
	F(m, UINT, act, OPTIONAL)                                                                                  \
	F(m, FLAG, effect, OPTIONAL)                                                                               \
	F(m, BIN, target, OPTIONAL)                                                                                \
	F(m, BIN, to, OPTIONAL)
#define CHECKPOINT_VALUES(F, m)                                                                                    \
	F(m, UINT, cell, OPTIONAL)                                                                                 \
	F(m, UINT, born, OPTIONAL)                                                                                 \
	F(m, UINT, memory, OPTIONAL)                                                                               \
	F(m, UINT, files, OPTIONAL)                                                                                \
	F(m, UINT, n_files, OPTIONAL)                                                                              \
	F(m, UINT, files_size, OPTIONAL)                                                                           \
	F(m, FLAG, files_lack, OPTIONAL)                                                                           \
	F(m, FLAG, severed, OPTIONAL)
#define KEPT_CHECKPOINT_FIELDS(F, m)                                                                               \
	F(m, STR, name, OPTIONAL)                                                                                  \
	CHECKPOINT_VALUES(F, m)                                                                                    \
	F(m, BIN, done_calls, OPTIONAL)                                                                            \
	F(m, UINT, parent, OPTIONAL)                                                                               \
	F(m, UINT, interpreter, REQUIRED)
#define OPERATION_VALUES(F, m)                                                                                     \
	F(m, UINT, n, OPTIONAL)                                                                                    \
	F(m, FLAG, files, OPTIONAL)                                                                                \
	F(m, FLAG, by_default, OPTIONAL)                                                                           \
	F(m, FLAG, keep_files, OPTIONAL)                                                                           \
	F(m, UINT, effects_more, OPTIONAL)
#define QUESTION_VALUES(F, m)                                                                                      \
	F(m, UINT, serial, OPTIONAL)                                                                               \
	F(m, UINT, cursor, OPTIONAL)                                                                               \
	F(m, FLAG, source, OPTIONAL)                                                                               \
	F(m, FLAG, changes, OPTIONAL)                                                                              \
	F(m, FLAG, interrupted, OPTIONAL)
#define OPERATION_FIELDS(F, m)                                                                                     \
	F(m, UINT, kind, OPTIONAL)                                                                                 \
	F(m, UINT, promise, OPTIONAL)                                                                              \
	F(m, STR, name, OPTIONAL)                                                                                  \
	F(m, STR, branch, OPTIONAL)                                                                                \
	OPERATION_VALUES(F, m)                                                                                     \
	F(m, BIN, effects, OPTIONAL)                                                                               \
	F(m, FLAG, asks, OPTIONAL)                                                                                 \
	F(m, UINT, question, OPTIONAL)                                                                             \
	QUESTION_VALUES(F, m)                                                                                      \
	F(m, UINT, about, OPTIONAL)
#define WAITER_FIELDS(F, m) F(m, UINT, promise, OPTIONAL)
/* The settings of the profile, as a sessions.conf. */
#define PROFILE_FIELDS(F, m) F(m, BIN, text, REQUIRED)

WIRE_MESSAGE(family_record, "family", NO_ID, FAMILY_FIELDS);
WIRE_MESSAGE(interpreter_record, "interpreter", NO_ID, INTERPRETER_FIELDS);
WIRE_MESSAGE(message_record, "message", NO_ID, MESSAGE_FIELDS);
WIRE_MESSAGE(kept_session, "session", NO_ID, KEPT_SESSION_FIELDS);
WIRE_MESSAGE(cell_record, "cell", NO_ID, CELL_FIELDS);
WIRE_MESSAGE(code_record, "code", NO_ID, CELL_CODE_FIELDS);
WIRE_MESSAGE(about_record, "about", NO_ID, ABOUT_FIELDS);
WIRE_MESSAGE(entry_record, "entry", NO_ID, ENTRY_FIELDS);
WIRE_MESSAGE(effect_record, "effect", NO_ID, EFFECT_RECORD_FIELDS);
WIRE_MESSAGE(display_record, "display", NO_ID, KEPT_DISPLAY_FIELDS);
WIRE_MESSAGE(kept_call, "call", NO_ID, KEPT_CALL_FIELDS);
WIRE_MESSAGE(done_call_record, "done_call", NO_ID, DONE_CALL_FIELDS);
WIRE_MESSAGE(kept_checkpoint, "checkpoint", NO_ID, KEPT_CHECKPOINT_FIELDS);
WIRE_MESSAGE(operation_record, "operation", NO_ID, OPERATION_FIELDS);
WIRE_MESSAGE(waiter_record, "waiter", NO_ID, WAITER_FIELDS);
WIRE_MESSAGE(profile_record, "profile", NO_ID, PROFILE_FIELDS);

/* ---- the ledger of promises ---- */

/* fingerprint: of the request. It has another name in each other version of the field list, because those match
 * other requests. */
#define PROMISE_FIELDS(F, m)                                                                                       \
	F(m, UINT, serial, REQUIRED)                                                                               \
	F(m, UINT, owner, OPTIONAL)                                                                                \
	F(m, STR, session, OPTIONAL)                                                                               \
	F(m, STR, key, OPTIONAL)                                                                                   \
	F(m, UINT, fingerprint, OPTIONAL)                                                                          \
	F(m, UINT, since, OPTIONAL)                                                                                \
	F(m, UINT, ttl, OPTIONAL)                                                                                  \
	F(m, UINT, number, OPTIONAL)                                                                               \
	F(m, UINT, size, OPTIONAL)                                                                                 \
	F(m, FLAG, by_root, OPTIONAL)
#define ANSWERED_FIELDS(F, m)                                                                                      \
	F(m, UINT, serial, REQUIRED)                                                                               \
	F(m, UINT, since, REQUIRED)                                                                                \
	F(m, FLAG, is_cell, OPTIONAL)                                                                              \
	F(m, UINT, cell, OPTIONAL)                                                                                 \
	F(m, UINT, stdout_head, OPTIONAL)                                                                          \
	F(m, UINT, stderr_head, OPTIONAL)                                                                          \
	F(m, BIN, answer, REQUIRED)
/* An answer whose output is so long that it is no part of it. */
#define LONG_ANSWERED_FIELDS(F, m)                                                                                 \
	ANSWERED_FIELDS(F, m)                                                                                      \
	F(m, BIN, stdout, OPTIONAL)                                                                                \
	F(m, BIN, stderr, OPTIONAL)

/* The first record: the name by which clients know the daemon as long as it knows their requests, and the keeper
 * whose routers write this. */
#define LIFE_FIELDS(F, m)                                                                                          \
	F(m, STR, instance, REQUIRED)                                                                              \
	F(m, STR, keeper, REQUIRED)

WIRE_MESSAGE(life_record, "life", NO_ID, LIFE_FIELDS);
WIRE_MESSAGE(promise_record, "promise", NO_ID, PROMISE_FIELDS);
WIRE_MESSAGE(answered_record, "answered", NO_ID, ANSWERED_FIELDS);
WIRE_MESSAGE(long_answered_record, "answered_long", NO_ID, LONG_ANSWERED_FIELDS);
