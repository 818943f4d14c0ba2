/* What a cell shows, for people: its text, and its pictures as files. */
#pragma once

#include "cli.h"

/* The text of @data on stdout, and with cli->figures its pictures there. Returns 0 or -errno. */
int shown_print(const struct cli *cli, struct lair_items data);
/* Only the pictures, if they are wanted. */
void shown_save(const struct cli *cli, struct lair_items data);
/* One line on stderr for each file. */
void artifacts_notice(const struct lair_result *result);
