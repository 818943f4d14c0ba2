/* Python in the template: operations of the language. */
#pragma once

#include "language.h"

int python_start(const struct configure_message *configure, struct language_report *report);
int python_warm(struct language_report *report);
void python_make_room(void);
char **python_sources(void);
void python_settle(void);

/* Its number. Static; "" before it has started. */
const char *python_version(void);
