/* Displays of a cell for people: pictures as files, and the names of artifacts. */
#pragma once

#include "cli.h"

/* Make a directory for the pictures of @data, if it has any, cli->figures_place asks for one, and there is none.
 * The directory stays. */
void figures_place(struct cli *cli, struct lair_items data);
/* Write the pictures of @data into the directory cli->figures, if they are wanted. */
void shown_save(const struct cli *cli, struct lair_items data);
/* One line on stderr for each of the first files that were brought back, and one that says why others were not. */
void back_notice(const struct lair_back *back);
/* One line on stderr for each of the first effects that going back has not undone. */
void effects_notice(const struct lair_effects *effects);
/* One line on stderr for each file. */
void artifacts_notice(const struct lair_result *result);
