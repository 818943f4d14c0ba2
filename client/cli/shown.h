/* Displays of a cell for people: pictures as files, and the names of artifacts. */
#pragma once

#include "cli.h"

/* Make a directory for the pictures of @data, if it has any, cli->figures_place asks for one, and there is none.
 * The directory stays. */
void figures_place(struct cli *cli, struct lair_items data);
/* Write the pictures of @data into the directory cli->figures, if they are wanted. */
void shown_save(const struct cli *cli, struct lair_items data);
/* One line on stderr for each note of the result, or of a result with those fields of another answer. */
enum {
	NOTICE_PROMPT = 1,   /* at a prompt: output is shown as it comes, and files are listed */
	NOTICE_SCRIPTED = 2, /* without refusals: the script prints them */
};
void result_notice(const struct lair_result *result, int flags);
/* The result for a program. Other doors tell no settings. The caller's; NULL without memory. */
json_t *result_told(const struct lair_result *result);
/* One line on stderr for each file. */
void artifacts_notice(const struct lair_result *result);
