/* What a router asks of the keeper: it cannot start a process or delete a large tree itself. */
#pragma once

#include "keeper/keeper.h"
#include "keeper/pulse.h"

/* To the keeper, which always reads: what must not fail is waited for. Returns 0, CHANNEL_E_EOF or -errno. */
int keeper_tell(const struct keeper_message *message, const int *fds, size_t n_fds);

/* Start a template of that profile. The keeper answers with the same @serial. @theirs: the template's end of its
 * channel, which stays the caller's. Returns 0 or -errno. */
int errand_start_template(const char *profile, uint32_t serial, int theirs);

/* Start a scribe, and another one whenever it dies. It gets @theirs, its end of its channel, and the ring of what
 * it has to write to @file; all stay the caller's. Returns 0 or -errno. */
int errand_start_scribe(int theirs, int ring, int file);

/* Delete the tree at @path; an empty directory goes at once. */
void errand_remove_tree(const char *path);
/* Delete what has the last component of @path for its name in @directory. */
void errand_remove_from(int directory, const char *path);

/* Where more than ERRAND_BEAT_US is spent before the next round: tell the keeper, now and then, that we get on. */
#define ERRAND_BEAT_US (PULSE_BEAT_MS * 500ULL)
void errand_beat(void);
/* We stop, and need so many milliseconds before sessions end. */
void errand_stopping(uint64_t ms);
