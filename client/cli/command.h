/* Commands of a prompt: lines that begin with %, ! or ?, or are a name and ?; no Python code looks so. Commands
 * that are short for a cell are in shorthand.h. */
#pragma once

#include "cli.h"

/* Whether @text, the first line of an input, is a command. */
bool command_is(struct lair_text text);

/* Run the command @text in session *@sessionp. If that makes a branch, *@sessionp becomes the branch, and the old
 * id is freed. Returns an exit status, having said everything. */
int command_run(const struct cli *cli, char **sessionp, struct lair_text text);

/* The words that begin a command, with their sign, ended by NULL; for completion. */
enum { COMMANDS_MAX = 64 };
void commands_list(const char *names[static COMMANDS_MAX + 1]);
