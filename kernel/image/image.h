/* Images: a process writes itself to a file, and another process, of the same program, becomes it. */
#pragma once

#include "format.h"

/* Why this process can neither write an image nor wake one; NULL: it can. Static. */
const char *image_impossible(void);

/* Who this process is, for what it has loaded: @subject. Not if images are impossible. */
void image_identify(struct image_identity *identity, const uint8_t subject[static SHA256_SIZE]);

/* Why an image of this process would lack something: a descriptor from @first on, other than @except; NULL:
 * nothing. Valid until the next call. */
const char *image_lacks(int first, int except);

/* Write this process as @name into @directory. It has one thread, or the others stand still (threads.h), and what
 * it has mapped of files, and @sources (NULL-terminated paths) must be unchanged when it wakes. A file of that name
 * is replaced only by a whole one. Returns NULL, or why it was not written, valid until the next call. In the
 * process that wakes it returns, too: *@wokenp is true there and false here. It has the descriptors of the one that
 * woke it, and the rest of the image. */
const char *image_write(int directory, const char *name, const struct image_identity *identity,
			char *const *sources, bool *wokenp);

/* Become @name in @directory. The file is moved to @aside first, so that an image of which processes die is tried
 * once. Returns only if it cannot be done, with the reason, static; the process is then as before. Else @directory
 * is closed. Until the end nothing is written to or mapped from a file whose digest is wrong. */
const char *image_wake(int directory, const char *name, const char *aside, const struct image_identity *identity);
