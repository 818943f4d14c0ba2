/* How two states of a session differ, in files and in variables. The warden compares the files; of the variables
 * each state tells what they are, and they are compared here. */
#pragma once

#include "session/core/session.h"

/* What the operation under way asks for (ANSWERING). */
void comparing_begin(struct session *session);
/* A piece of what an interpreter tells. Whether this session has asked for it. */
bool comparing_on_described(struct session *session, struct interpreter *interpreter,
			    const struct described_message *described);
/* From its warden. */
void comparing_on_files(struct tenant *tenant, const struct files_compared_message *compared);
