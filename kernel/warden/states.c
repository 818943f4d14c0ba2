/* States by number. What is known of the files that are there now is kept for each place, which is the workspace or
 * the directory of a branch: it is what was captured or brought back last. Of a file that has not changed since,
 * the content is known. Each restore looks at all files: nothing that a session says can make it skip one. */
#include "states.h"

#include "differences.h"

#include "proto/clock.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

#define FIRST_STATE 1
#define MAPPED_MAX 64
#define TOLD_MAX 64
#define TOLD_SIZE_MAX 16384
#define GIVEN_UP "it was given up"
/* How often it is said that files are being kept or brought back. */
#define GOING_MS 500
/* How long is waited until the interpreters of a session stand still. */
#define STILL_MS 1000
#define NOT_KEPT "they are not kept any more"

struct place {
	struct place *next;
	struct manifest *now; /* NULL: nothing is known */
	char name[];	      /* of a branch's directory; "": the workspace */
};

struct kept_state {
	struct kept_state *next;
	uint64_t number;
	struct manifest *manifest;
};

struct job {
	struct job *next;
	struct place *place;
	uint64_t number;
	bool bring, given_up;
	uint64_t size, files; /* at most so much is written */
	uint64_t max;
	msgpack_sbuffer still;
	uint64_t still_until; /* in ms */
	uint64_t mapped[MAPPED_MAX];
	size_t n_mapped;
	int root;
	enum { JOB_NEW, JOB_LOOKS, JOB_WORKS } step;
	struct capture capture;
	struct scan scan;
	struct revert revert;
};

static struct kept_state *state_find(struct states *states, uint64_t number)
{
	struct kept_state *state = states->kept;

	while (state && state->number != number)
		state = state->next;
	return state;
}

static struct place *place_get(struct states *states, struct bytes name)
{
	struct place *place = states->places;

	while (place && !bytes_equal(bytes_of(place->name), name))
		place = place->next;
	if (place)
		return place;
	place = calloc(1, sizeof(*place) + name.size + 1);
	if (!place)
		return NULL;
	if (name.size > 0)
		memcpy(place->name, name.data, name.size);
	place->next = states->places;
	states->places = place;
	return place;
}

static void place_set(struct states *states, struct place *place, struct manifest *manifest)
{
	manifest_use(manifest);
	manifest_drop(&states->store, place->now);
	place->now = manifest;
}

/* It takes the place of what had its number, if anything had. */
static bool state_set(struct states *states, uint64_t number, struct manifest *manifest)
{
	struct kept_state *state = state_find(states, number);

	if (!state) {
		state = calloc(1, sizeof(*state));
		if (!state)
			return false;
		state->number = number;
		state->next = states->kept;
		states->kept = state;
	}
	manifest_use(manifest);
	manifest_drop(&states->store, state->manifest);
	state->manifest = manifest;
	return true;
}

void states_drop(struct states *states, uint64_t number)
{
	for (struct kept_state **slot = &states->kept; *slot; slot = &(*slot)->next) {
		struct kept_state *state = *slot;

		if (state->number != number)
			continue;
		*slot = state->next;
		manifest_drop(&states->store, state->manifest);
		free(state);
		return;
	}
}

/* ---- room ---- */

static bool is_present(const struct states *states, const struct manifest *manifest)
{
	for (const struct place *place = states->places; place; place = place->next)
		if (place->now == manifest)
			return true;
	return false;
}

/* The oldest state goes, but not one that is there now, which takes no room of its own; nor one that is wanted. */
static bool make_room(void *userdata)
{
	struct states *states = userdata;
	struct kept_state *oldest = NULL;

	for (struct kept_state *state = states->kept; state; state = state->next)
		if (!is_present(states, state->manifest) && (!oldest || state->number < oldest->number))
			oldest = state;
	if (!oldest)
		return false;
	states->lost = MAX(states->lost, oldest->number);
	states_drop(states, oldest->number);
	return true;
}

/* ---- orders ---- */

static struct job *job_add(struct states *states, struct bytes directory)
{
	struct job **slot = &states->jobs, *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	job->place = place_get(states, directory);
	if (!job->place) {
		free(job);
		return NULL;
	}
	msgpack_sbuffer_init(&job->still);
	job->root = -1;
	job->capture.fd = job->capture.root = job->revert.made = -1;
	job->capture.scan.walk = job->scan.walk = (struct walk)WALK_NONE;
	job->revert.reach.fd = -1;
	while (*slot)
		slot = &(*slot)->next;
	*slot = job;
	return job;
}

static void job_end(struct states *states)
{
	struct job *job = states->jobs;

	if (job->still.size > 0)
		states->listener->resume(states->userdata, wire_bytes(&job->still));
	msgpack_sbuffer_destroy(&job->still);
	states->jobs = job->next;
	fd_close(job->root);
	free(job);
}

void states_keep(struct states *states, const struct keep_files_message *keep)
{
	struct files_kept_message failed = {.serial = keep->serial, .why = bytes_of(strerror(ENOMEM))};
	struct job *job = job_add(states, keep->directory);
	size_t cursor = 0;
	uint64_t inode;

	if (!job) {
		states->listener->on_kept(states->userdata, &failed);
		return;
	}
	job->number = keep->serial;
	job->max = keep->max;
	while (job->n_mapped < MAPPED_MAX && wire_next_uint(keep->mapped, &cursor, &inode))
		job->mapped[job->n_mapped++] = inode;
}

void states_bring(struct states *states, const struct bring_files_message *bring)
{
	struct files_back_message failed = {.serial = bring->serial,
					    .directory = bring->directory,
					    .refused = true,
					    .why = bytes_of(strerror(ENOMEM))};
	struct job *job = job_add(states, bring->directory);

	if (!job) {
		states->listener->on_back(states->userdata, &failed);
		return;
	}
	job->number = bring->serial;
	job->bring = true;
	if (bring->still.size > 0)
		(void)msgpack_sbuffer_write(&job->still, bring->still.data, bring->still.size);
}

void states_give_up(struct states *states, const struct leave_files_message *leave)
{
	for (struct job *job = states->jobs; job; job = job->next)
		job->given_up |= job->bring && job->number == leave->serial &&
				 bytes_equal(bytes_of(job->place->name), leave->directory);
}

void states_compare(struct states *states, const struct compare_files_message *compare)
{
	const struct kept_state *since = state_find(states, compare->since),
				*until = state_find(states, compare->until);
	struct files_compared_message compared = {.serial = compare->serial};
	_cleanup_(wire_list_deinit) struct wire_list list = {0};
	int r;

	r = since && until ? differences_put(&list, &compared.more, since->manifest, until->manifest) : -ESTALE;
	if (r)
		compared.why = bytes_of(r == -ESTALE ? NOT_KEPT : strerror(-r));
	else
		compared.files = wire_list_bytes(&list);
	states->listener->on_compared(states->userdata, &compared);
}

static int directory_make(int parent, const char *name)
{
	return mkdirat(parent, name, S_IRWXU) < 0 && errno != EEXIST ? -errno : 0;
}

/* A branch's own files lie beneath the family's, whose directory may be shut. Those of a new one are brought back
 * before it lives. */
static int branch_open(int *fdp, const struct states *states, const char *name, bool make)
{
	struct reach reach;
	int at, r;

	reach_init(&reach, states->home, make ? S_IRWXU : S_IXUSR);
	r = make ? reach_directory(&reach, &at, "") : 0;
	if (!r && make)
		r = directory_make(at, BRANCHES);
	if (!r)
		r = reach_directory(&reach, &at, BRANCHES);
	if (!r && make)
		r = directory_make(at, name);
	if (!r)
		r = directory_open(fdp, at, name);
	(void)reach_shut(&reach);
	return r;
}

static int job_open(const struct states *states, struct job *job)
{
	if (job->root >= 0)
		return 0;
	if (job->place->name[0])
		return branch_open(&job->root, states, job->place->name, job->bring);
	job->root = fcntl(states->home, F_DUPFD_CLOEXEC, 3);
	return job->root < 0 ? -errno : 0;
}

/* ---- keeping ---- */

static void keep_done(struct states *states, struct job *job, int r)
{
	struct manifest *found = r ? NULL : job->capture.found;
	struct files_kept_message kept = {.serial = job->number, .lost = states->lost};

	if (found)
		place_set(states, job->place, found);
	if (!r && !state_set(states, job->number, found))
		r = -ENOMEM;
	if (r)
		kept.why = bytes_of(strerror(-r));
	else if (found && found->why[0])
		kept.why = bytes_of(found->why);
	kept.failed = r != 0;
	kept.held = states->store.held;
	kept.files = found ? found->n : 0;
	kept.size = found ? job->capture.kept : 0;
	states->listener->on_kept(states->userdata, &kept);
	if (job->step != JOB_NEW)
		capture_deinit(&job->capture);
	job_end(states);
}

static void keep_step(struct states *states, struct job *job)
{
	int r = 1;

	if (job->step == JOB_NEW) {
		states->store.max = job->max;
		r = job_open(states, job);
		if (!r) {
			job->step = JOB_WORKS;
			r = capture_begin(&job->capture, &states->store, steal_fd(&job->root), job->place->now);
			job->capture.mapped = job->mapped;
			job->capture.n_mapped = job->n_mapped;
			job->capture.make_room = make_room;
			job->capture.userdata = states;
		}
		if (r) {
			keep_done(states, job, r);
			return;
		}
	}
	r = capture_step(&job->capture);
	if (r != 1)
		keep_done(states, job, r);
}

/* ---- bringing back ---- */

static const char *const change_names[_REVERT_CHANGE_N] = {
	[REVERT_CHANGED] = "restored",
	[REVERT_MADE] = "made",
	[REVERT_REMOVED] = "removed",
	[REVERT_FAILED] = "failed",
};

/* The first of them. */
static void put_changes(struct wire_list *list, const struct revert *revert, uint64_t *more)
{
	enum revert_change change;
	const char *path;

	for (size_t i = 0; (path = revert_done(revert, i, &change)); i++) {
		const struct file_back record = {.path = bytes_of(path), .change = bytes_of(change_names[change])};

		if (revert_is_quiet(revert, i))
			continue;
		if (list->n == TOLD_MAX || list->buffer.size + strlen(path) > TOLD_SIZE_MAX ||
		    wire_list_add(list, &file_back_schema, &record))
			++*more;
	}
}

static void bring_say(struct states *states, struct job *job, int r, const char *why)
{
	struct files_back_message back = {.serial = job->number,
					  .directory = bytes_of(job->place->name),
					  .why = bytes_of(why),
					  .refused = r != 0};
	_cleanup_(wire_list_deinit) struct wire_list list = {0};

	if (!r)
		put_changes(&list, &job->revert, &back.more);
	if (list.n > 0)
		back.files = wire_list_bytes(&list);
	states->listener->on_back(states->userdata, &back);
}

/* What is there now is known from here on, and is that state: also when it is wanted again. */
static void bring_note(struct states *states, struct job *job)
{
	struct manifest *result = job->revert.refused ? NULL : revert_result(&job->revert);

	place_set(states, job->place, result);
	if (result && !job->revert.why[0])
		(void)state_set(states, job->number, result);
	manifest_drop(&states->store, result);
}

static void bring_done(struct states *states, struct job *job, int r)
{
	const char *why = r ? strerror(-r) : NULL;

	if (!r)
		bring_note(states, job);
	if (!r && job->revert.why[0])
		why = job->revert.why;
	if (!r)
		r = job->revert.refused;
	if (r == -ESTALE)
		why = NOT_KEPT;
	if (r == -ECANCELED)
		why = GIVEN_UP;
	bring_say(states, job, r, why);
	if (job->step == JOB_WORKS)
		revert_deinit(&job->revert);
	scan_deinit(&job->scan);
	job_end(states);
}

static int bring_begin(struct states *states, struct job *job)
{
	int r = state_find(states, job->number) ? job_open(states, job) : -ESTALE;

	if (r)
		return r;
	job->scan.store = &states->store;
	job->step = JOB_LOOKS;
	return scan_begin(&job->scan, &states->store, job->root);
}

static void going_say(struct states *states, const struct job *job)
{
	const struct files_going_message going = {.size = job->size, .files = job->files};

	states->said = clock_ms();
	states->listener->on_going(states->userdata, &going);
}

static int bring_work(struct states *states, struct job *job)
{
	struct kept_state *state = state_find(states, job->number);
	struct manifest *now = job->scan.found;

	if (!state)
		return -ESTALE;
	scan_shut(&job->scan);
	scan_share(&states->store, now, job->place->now);
	job->step = JOB_WORKS;
	job->files = state->manifest->n;
	for (size_t i = 0; i < state->manifest->n; i++)
		job->size += state->manifest->files[i]->content ? state->manifest->files[i]->content->stored : 0;
	going_say(states, job);
	return revert_begin(&job->revert, &states->store, job->root, now, state->manifest);
}

/* Whether interpreters that must stand still do not yet. One that cannot be stopped soon does no harm but to its
 * own session. */
static bool is_moving(struct states *states, const struct job *job)
{
	return job->still.size > 0 && !states->listener->stop(states->userdata, wire_bytes(&job->still)) &&
	       clock_ms() < job->still_until;
}

static void bring_step(struct states *states, struct job *job)
{
	int r = 0;

	if (!job->still_until)
		job->still_until = clock_ms() + STILL_MS;
	if (job->step == JOB_NEW && is_moving(states, job))
		return;
	if (job->step == JOB_NEW)
		r = bring_begin(states, job);
	if (!r && job->given_up && job->step == JOB_WORKS)
		revert_give_up(&job->revert, GIVEN_UP);
	else if (!r && job->given_up)
		r = -ECANCELED;
	if (!r && job->step == JOB_LOOKS) {
		r = scan_step(&job->scan, 2000);
		if (!r)
			r = bring_work(states, job);
	}
	if (!r && job->step == JOB_WORKS)
		r = revert_step(&job->revert);
	if (r != 1)
		bring_done(states, job, r);
}

void states_leave(struct states *states)
{
	store_leave(&states->store);
	fd_closep(&states->home);
	for (struct job *job = states->jobs; job; job = job->next) {
		fd_closep(&job->root);
		fd_closep(&job->capture.root);
		fd_closep(&job->capture.fd);
		walk_leave(&job->capture.scan.walk);
		walk_leave(&job->scan.walk);
		reach_leave(&job->revert.reach);
		fd_closep(&job->revert.made);
	}
}

bool states_busy(const struct states *states)
{
	return states->jobs;
}

bool states_at_home(const struct states *states)
{
	return !states->jobs->place->name[0];
}

bool states_reading(const struct states *states)
{
	return !states->jobs->bring;
}

void states_step(struct states *states)
{
	struct job *job = states->jobs;

	if (job && job->bring)
		bring_step(states, job);
	else if (job)
		keep_step(states, job);
	if (states->jobs && clock_ms() - states->said > GOING_MS)
		going_say(states, states->jobs);
}

/* ---- the first state ---- */

void states_init(struct states *states, const struct states_listener *listener, void *userdata)
{
	struct place *place;
	struct scan scan;

	*states = (struct states){.listener = listener, .userdata = userdata};
	(void)directory_open(&states->home, AT_FDCWD, ".");
	store_init(&states->store, states->home, 0);
	place = place_get(states, BYTES(""));
	if (!place || states->home < 0)
		return;
	if (scan_begin(&scan, &states->store, states->home) == 0 && scan_step(&scan, 1000) == 0 &&
	    state_set(states, FIRST_STATE, scan.found))
		place_set(states, place, scan.found);
	scan_deinit(&scan);
}
