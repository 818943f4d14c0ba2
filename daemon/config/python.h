/* Which Python is meant by `python =` of a profile: the path of an environment, or of a program. */
#pragma once

#include "proto/base.h"

#include <limits.h>

/* The environment at @python, or of the program @python; "" if it is none. */
void python_environment(char path[static PATH_MAX], const char *python);

/* The program that @python leads to in the end. Returns 0 or -errno. */
int python_program(char path[static PATH_MAX], const char *python);

/* Its version, a PYTHON_NUMBER; 0 if that is not known, or @python is NULL. */
unsigned python_version(const char *python);
