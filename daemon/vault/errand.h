/* Errands: the router asks the keeper to do them, because it cannot start a process or delete a large tree
 * itself. */
#pragma once

#include "keeper/keeper.h"
#include "keeper/pulse.h"

/* Send to the keeper, which always reads: wait until it is sent, if it must not fail. Returns 0, CHANNEL_E_EOF
 * or -errno. */
int keeper_tell(const struct keeper_message *message, const int *fds, size_t n_fds);

/* Start a template of that profile; @language, @python: see program_path. The keeper answers with the same @serial.
 * @theirs: the template's end of its channel, which stays the caller's. Returns 0 or -errno. */
int errand_start_template(const char *profile, const char *language, unsigned python, uint32_t serial, int theirs);

/* Start a builder of packages, which gets @theirs, its end of its channel; that stays the caller's. */
int errand_start_builder(int theirs);
/* The same for a copier. */
int errand_start_copier(int theirs);

/* Delete the tree at @path; an empty directory is removed at once. */
void errand_remove_tree(const char *path);
/* Delete the last component of @path in @directory. */
void errand_remove_from(int directory, const char *path);

/* Where more than ERRAND_BEAT_US is spent before the next round: tell the keeper, now and then, that we get on. */
#define ERRAND_BEAT_US (PULSE_BEAT_MS * 500ULL)
void errand_beat(void);
/* We stop, and need so many milliseconds before sessions end. */
void errand_stopping(uint64_t ms);
