/* What differs between processors: saving and restoring registers, and a restorer, which replaces all memory of its
 * process. Where there is none, no image is written. */
#pragma once

#include "format.h"

/* A system call of the restorer. */
struct image_call {
	long number, arguments[6];
	uint64_t may_fail;
};

#if defined(__x86_64__) && !defined(LAIR_NO_IMAGES)
#define IMAGE_MACHINE 1

/* Returns 0; and 1 in the process that wakes with these registers. */
int image_registers_save(struct image_registers *registers) __attribute__((returns_twice));

/* From begin to end code that may lie anywhere and needs no stack: makes all @calls, and goes on with @registers.
 * If a call fails, the process ends with IMAGE_EXIT. */
extern const char image_restorer_begin[], image_restorer_end[];
typedef void image_restorer(const struct image_call *calls, const struct image_call *end,
			    const struct image_registers *registers);
#define IMAGE_EXIT 111

/* Bases of the segments fs and gs. */
void image_segments(uint64_t *thread, uint64_t *segment);
#define IMAGE_SET_THREAD 0x1002 /* of arch_prctl */
#define IMAGE_SET_SEGMENT 0x1001

/* The digest of all that code may have asked of the processor. */
void image_machine(uint8_t out[static SHA256_SIZE]);
/* Whether the kernel keeps a second stack for this process, which no image has. */
bool image_shadowed(void);

#else
#define IMAGE_MACHINE 0
#endif
