/* The tables of the ledgers. */
#include "records.h"

WIRE_DEFINE(family_record, "family", FAMILY_FIELDS);
WIRE_DEFINE(interpreter_record, "interpreter", INTERPRETER_FIELDS);
WIRE_DEFINE(message_record, "message", MESSAGE_FIELDS);
WIRE_DEFINE(kept_session, "session", KEPT_SESSION_FIELDS);
WIRE_DEFINE(cell_record, "cell", CELL_FIELDS);
WIRE_DEFINE(code_record, "code", CELL_CODE_FIELDS);
WIRE_DEFINE(about_record, "about", ABOUT_FIELDS);
WIRE_DEFINE(entry_record, "entry", ENTRY_FIELDS);
WIRE_DEFINE(effect_record, "effect", EFFECT_RECORD_FIELDS);
WIRE_DEFINE(display_record, "display", KEPT_DISPLAY_FIELDS);
WIRE_DEFINE(kept_checkpoint, "checkpoint", KEPT_CHECKPOINT_FIELDS);
WIRE_DEFINE(operation_record, "operation", OPERATION_FIELDS);
WIRE_DEFINE(waiter_record, "waiter", WAITER_FIELDS);
WIRE_DEFINE(transfer_record, "transfer", TRANSFER_FIELDS);
WIRE_DEFINE(profile_record, "profile", PROFILE_FIELDS);
WIRE_DEFINE(life_record, "life", LIFE_FIELDS);
WIRE_DEFINE(promise_record, "promise", PROMISE_FIELDS);
WIRE_DEFINE(answered_record, "answered", ANSWERED_FIELDS);
