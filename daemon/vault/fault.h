/* Faults made on purpose, to test what follows. Only the person who starts laird can ask for one. When a router
 * starts, it reads a file that LAIR_FAULT in the environment of laird names, with a line
 *
 * ACT POINT [SESSION [TIMES]]
 *
 * ACT is abort, or stall: to stand still. POINT is GROUP.NAME; `laird --faults` lists them. With SESSION only
 * things of that session count; at points of a template it is the name of a profile. Without, or with -, those
 * of every session count. The fault is made TIMES times, however many routers that takes, or always. */
#pragma once

#include "proto/base.h"

/* Call it before any point. @made: memory that outlives the router: which order is obeyed, and how often it was. */
void fault_begin(volatile uint64_t made[static 2]);

/* A point. Where no fault is asked for, it is a look at one variable. */
#define fault_at(group, name, of)                                                                                  \
	do {                                                                                                       \
		if (fault_asked)                                                                                   \
			fault_meet(group, name, of);                                                               \
	} while (0)
extern bool fault_asked;
void fault_meet(const char *group, const char *name, struct bytes of);

/* fault_points.c: all points, one a line. */
void fault_print_points(void);
