/* The tables behind message.h: one line a message, giving the name it travels under. */
#include "proto/message.h"

WIRE_DEFINE(hello_request, "hello", HELLO_FIELDS);
WIRE_DEFINE(open_request, "open", OPEN_FIELDS);
WIRE_DEFINE(exec_request, "exec", EXEC_FIELDS);
WIRE_DEFINE(attach_request, "attach", ATTACH_FIELDS);
WIRE_DEFINE(results_request, "results", RESULTS_FIELDS);
WIRE_DEFINE(input_request, "input", INPUT_FIELDS);
WIRE_DEFINE(interrupt_request, "interrupt", INTERRUPT_FIELDS);
WIRE_DEFINE(reset_request, "reset", SESSION_CHANGE_FIELDS);
WIRE_DEFINE(shutdown_request, "shutdown", SESSION_CHANGE_FIELDS);
WIRE_DEFINE(info_request, "info", SESSION_REQUEST_FIELDS);
WIRE_DEFINE(checkpoint_request, "checkpoint", CHECKPOINT_FIELDS);
WIRE_DEFINE(checkpoints_request, "checkpoints", SESSION_REQUEST_FIELDS);
WIRE_DEFINE(restore_request, "restore", NAMED_CHECKPOINT_FIELDS);
WIRE_DEFINE(drop_request, "drop", NAMED_CHECKPOINT_FIELDS);
WIRE_DEFINE(undo_request, "undo", UNDO_FIELDS);
WIRE_DEFINE(branch_request, "branch", BRANCH_FIELDS);
WIRE_DEFINE(files_request, "files", FILES_FIELDS);
WIRE_DEFINE(get_request, "get", GET_FIELDS);
WIRE_DEFINE(put_request, "put", PUT_FIELDS);
WIRE_DEFINE(copy_in_request, "copy_in", COPY_IN_FIELDS);
WIRE_DEFINE(list_request, "list", PLAIN_REQUEST_FIELDS);
WIRE_DEFINE(stats_request, "stats", PLAIN_REQUEST_FIELDS);

WIRE_DEFINE(error_reply, "error", ERROR_FIELDS);
WIRE_DEFINE(hello_reply, "reply", HELLO_REPLY_FIELDS);
WIRE_DEFINE(exec_reply, "reply", EXEC_REPLY_FIELDS);
WIRE_DEFINE(shown, "shown", SHOWN_FIELDS);
WIRE_DEFINE(artifact, "artifact", ARTIFACT_FIELDS);
WIRE_DEFINE(error_frame, "error_frame", ERROR_FRAME_FIELDS);
WIRE_DEFINE(detached_reply, "reply", DETACHED_REPLY_FIELDS);
WIRE_DEFINE(result_record, "result", RESULT_RECORD_FIELDS);
WIRE_DEFINE(results_reply, "reply", RESULTS_REPLY_FIELDS);
WIRE_DEFINE(empty_reply, "reply", EMPTY_REPLY_FIELDS);
WIRE_DEFINE(interrupt_reply, "reply", INTERRUPT_REPLY_FIELDS);
WIRE_DEFINE(session_info, "reply", SESSION_INFO_FIELDS);
WIRE_DEFINE(state_reply, "reply", STATE_REPLY_FIELDS);
WIRE_DEFINE(checkpoint_record, "checkpoint", CHECKPOINT_RECORD_FIELDS);
WIRE_DEFINE(checkpoints_reply, "reply", CHECKPOINTS_REPLY_FIELDS);
WIRE_DEFINE(transfer_reply, "reply", TRANSFER_REPLY_FIELDS);
WIRE_DEFINE(get_reply, "reply", GET_REPLY_FIELDS);
WIRE_DEFINE(file_record, "file", FILE_RECORD_FIELDS);
WIRE_DEFINE(files_reply, "reply", FILES_REPLY_FIELDS);
WIRE_DEFINE(list_reply, "reply", LIST_REPLY_FIELDS);
WIRE_DEFINE(stats_reply, "reply", STATS_REPLY_FIELDS);

WIRE_DEFINE(stdout_event, "stdout", OUTPUT_FIELDS);
WIRE_DEFINE(stderr_event, "stderr", OUTPUT_FIELDS);
WIRE_DEFINE(ask_event, "ask", ASK_EVENT_FIELDS);
WIRE_DEFINE(display_event, "display", DISPLAY_EVENT_FIELDS);
WIRE_DEFINE(alive_event, "alive", ALIVE_EVENT_FIELDS);

WIRE_DEFINE(configure_message, "configure", CONFIGURE_FIELDS);
WIRE_DEFINE(warden_message, "warden", WARDEN_FIELDS);
WIRE_DEFINE(template_ready, "ready", TEMPLATE_READY_FIELDS);
WIRE_DEFINE(failed_message, "failed", FAILED_FIELDS);
WIRE_DEFINE(made_message, "made", MADE_FIELDS);

WIRE_DEFINE(spawn_message, "spawn", SPAWN_FIELDS);
WIRE_DEFINE(adopt_message, "adopt", ADOPT_FIELDS);
WIRE_DEFINE(sweep_message, "sweep", NO_FIELDS);
WIRE_DEFINE(swept_message, "swept", NO_FIELDS);
WIRE_DEFINE(signal_message, "signal", SIGNAL_FIELDS);
WIRE_DEFINE(warden_ready, "ready", WARDEN_READY_FIELDS);
WIRE_DEFINE(spawned_message, "spawned", ADOPT_FIELDS);
WIRE_DEFINE(signalled_message, "signalled", SERIAL_FIELDS);
WIRE_DEFINE(exited_message, "exited", EXITED_FIELDS);
WIRE_DEFINE(survey_message, "survey", SURVEY_FIELDS);
WIRE_DEFINE(surveyed_message, "surveyed", SURVEYED_FIELDS);

WIRE_DEFINE(run_message, "run", RUN_FIELDS);
WIRE_DEFINE(answer_message, "answer", ANSWER_FIELDS);
WIRE_DEFINE(freeze_message, "freeze", SERIAL_FIELDS);
WIRE_DEFINE(measure_message, "measure", NO_FIELDS);
WIRE_DEFINE(frozen_message, "frozen", FROZEN_FIELDS);
WIRE_DEFINE(measured_message, "measured", MEASURED_FIELDS);
WIRE_DEFINE(done_message, "done", DONE_FIELDS);
WIRE_DEFINE(ask_message, "ask", ASK_FIELDS);
WIRE_DEFINE(display_message, "display", SHOWN_FIELDS);
WIRE_DEFINE(cell_error, "cell_error", CELL_ERROR_FIELDS);
WIRE_DEFINE(blocked_act, "blocked", BLOCKED_FIELDS);
