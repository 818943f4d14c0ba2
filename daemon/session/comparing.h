/* How two states of a session differ, in files and in variables. The warden compares the files; of the variables
 * each state tells what they are, and they are compared here. */
#pragma once

#include "session.h"

struct comparison;

/* What the operation under way asks for (IDLE). */
void comparing_begin(struct session *session);
/* It has taken too long: what is known is told. */
void comparing_give_up(struct session *session);
/* A former router had begun it. */
void comparing_on_revived(struct session *session);
/* A piece of what an interpreter tells. Whether this session has asked for it. */
bool comparing_on_described(struct session *session, struct interpreter *interpreter,
			    const struct described_message *described);
void comparing_on_files(struct session *session, const struct files_compared_message *compared);
/* NULL is tolerated. */
void comparison_free(struct comparison *comparison);
