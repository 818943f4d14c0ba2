/* The steps of a thread that C cannot say. */
#include "machine.h"

/* Arguments of crowd_clone are in the order of x86-64's clone. The new thread has registers like its maker's, and a
 * stack without a frame. crowd_restorer is what debuggers and unwinders take for the end of a signal's handler. */
#if defined(__x86_64__)

__asm__(".text\n"
	".globl crowd_clone\n"
	".type crowd_clone, @function\n"
	"crowd_clone:\n"
	"	mov %rcx, %r10\n"
	"	mov $56, %eax\n"
	"	syscall\n"
	"	test %rax, %rax\n"
	"	jz 1f\n"
	"	ret\n"
	"1:	xor %ebp, %ebp\n"
	"	mov %r9, %rdi\n"
	"	call crowd_come_back\n"
	"	ud2\n"
	".size crowd_clone, . - crowd_clone\n"
	".globl crowd_return\n"
	".type crowd_return, @function\n"
	"crowd_return:\n"
	"	mov %rdi, %rsp\n"
	".globl crowd_restorer\n"
	".type crowd_restorer, @function\n"
	"crowd_restorer:\n"
	"	mov $15, %rax\n"
	"	syscall\n"
	"	ud2\n"
	".size crowd_restorer, . - crowd_restorer\n"
	".size crowd_return, . - crowd_return\n");

#endif
