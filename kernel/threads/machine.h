/* What differs between processors: system calls that leave errno alone, the pointer to a thread's memory, and the
 * first and last steps of a thread. */
#pragma once

#include "proto/base.h"

#include <sys/syscall.h>
#include <ucontext.h>

/* The kernel's struct sigaction. */
struct action {
	void *handler;
	unsigned long flags;
	void *restorer;
	uint64_t mask;
};

struct member;

/* What a new thread runs. It does not return, but a sanitizer that knew this would look for the stack of a thread
 * that libc has not made. */
void threads_come_back(struct member *member);

/* Make a thread that runs threads_come_back(@member) below @stack. Returns its number, or -errno. */
long threads_clone(unsigned long flags, void *stack, int *parent_tid, int *child_tid, void *tls,
		   struct member *member);

/* Go on where the signal with this context has interrupted the thread. */
void threads_return(ucontext_t *context);

#if defined(__x86_64__)

#define CROWD_MACHINE 1
#define RSEQ_SIGNATURE 0x53053053
#define SA_RESTORER 0x04000000UL

void threads_restorer(void);

static inline long raw(long call, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(call), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

static inline char *thread_pointer(void)
{
	char *pointer;

	__asm__("mov %%fs:0, %0" : "=r"(pointer));
	return pointer;
}

#else
#define CROWD_MACHINE 0
#endif
