/* The result of a cell: its document, and in words all that must be told beside the output. Each door gives the
 * notes their places; none makes words of its own. */
#pragma once

#include "json.h"

#include "proto/causes.h"

/* How a door tells. */
struct note_style {
	bool models;			    /* it tells models, which hear also of what people see by themselves */
	const char *hints[CAUSE_DEATH + 1]; /* behind what a cause did, such as "; -t TIME gives it more" */
	const char *renew;		    /* behind that the session is new */
	bool sentences;			    /* with a capital letter and a full stop */
	bool skip[N_NOTES];		    /* what the door shows in another way */
};

/* A sentence, tamed. */
typedef void note_tell(void *userdata, enum note note, const char *sentence);

/* Calls @tell with each note, in the order of the table. A field that @result lacks is not told of, so of other
 * answers a result with a few fields can be made. @style: NULL: for programs. */
void result_notes(const struct lair_result *result, const struct note_style *style, note_tell *tell,
		  void *userdata);

enum cause result_cause(const struct lair_result *result);
enum fate result_fate(const struct lair_result *result);
/* The effect of the cause on the code, with the hint; "": nothing, or the error tells it. */
#define CAUSE_SIZE 320
const char *cause_words(char out[static CAUSE_SIZE], const struct lair_result *result,
			const struct note_style *style);
/* Whether the session continues from the state after the cell. */
bool result_continues(const struct lair_result *result);
/* Whether the cell ended by exit() or the like, and its session continues. */
bool result_left(const struct lair_result *result);
/* Whether the value of the error tells this refusal. */
bool refusal_show(const struct lair_blocked *act, const struct lair_result *result);

/* "it was idle for too long, 5m ago". */
#define ENDED_SIZE 192
const char *human_ended(char out[static ENDED_SIZE], const struct lair_ended *ended);
/* "3 names; not f (it is open), g (it is a thread)". */
#define NAMES_SIZE 12288
const char *human_names(char out[static NAMES_SIZE], struct lair_items names, struct lair_items refused);
/* A session of the same id was another one; nobody knows how it ended. */
extern const struct lair_ended ended_unknown;

/* Puts the notes under "notes", if there are any: what each is about, and its text. */
void json_add_notes(json_t *object, const struct lair_result *result);
/* Every field that the documentation names; null if there is no value. New. */
json_t *json_result(const struct lair_result *result);
