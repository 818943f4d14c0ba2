/* Templates of sets of packages. What a wheel does when it is imported it does in the sessions that ask for it, and
 * nowhere else. So such a template is no process that others are forked from: it is a spare, in a cage of its own
 * like that of any session, which imports ahead what was asked for of one set. One session gets it, of the same
 * user and profile, that begins by asking for that set; then another one is made. */
#pragma once

#include "warden.h"

/* A session begins with @set, which is at @path. @requirements: an array of str, by which it was asked for. */
void prepared_asked(struct nursery *nursery, const char *set, const char *path, struct bytes requirements);
/* Whether there is any that a session could get; in any nursery, also one that is not ready. */
bool prepared_any(const struct nursery *nursery);
bool prepared_any_of(const struct cages *cages);
/* The one of that set, a session's from now on; NULL: there is none that is ready. */
struct warden *prepared_take(struct nursery *nursery, const char *set);
/* The memory that the templates of @set take, of all users or, unless that is 0, of @owner alone; 0: it has none.
 */
uint64_t prepared_size(const struct cages *cages, const char *set, uid_t owner);
/* All of them end. */
void prepared_drop_all(struct nursery *nursery);

/* From the nursery: the warden of one is ready; it is gone. */
void prepared_begin(struct warden *warden);
void prepared_on_gone(const struct warden *warden);
