/* The whole unit test framework: CHECK prints what was false and where, check_report gives the exit status. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

static int check_failed, check_passed;

#define CHECK(condition)                                                                                           \
	do {                                                                                                       \
		if (condition) {                                                                                   \
			check_passed++;                                                                            \
		} else {                                                                                           \
			check_failed++;                                                                            \
			fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);                  \
		}                                                                                                  \
	} while (0)

static inline int check_report(void)
{
	printf("%d checks passed, %d failed\n", check_passed, check_failed);
	return check_failed || !check_passed ? EXIT_FAILURE : EXIT_SUCCESS;
}
