/* The steps of a thread that C cannot say. */
#include "machine.h"

/* Arguments of threads_clone are in the order of x86-64's clone. The new thread has registers like its maker's, and
 * a stack without a frame. threads_restorer is what debuggers and unwinders take for the end of a signal's handler.
 */
#if defined(__x86_64__)

__asm__(".text\n"
	".globl threads_clone\n"
	".type threads_clone, @function\n"
	"threads_clone:\n"
	"	mov %rcx, %r10\n"
	"	mov $56, %eax\n"
	"	syscall\n"
	"	test %rax, %rax\n"
	"	jz 1f\n"
	"	ret\n"
	"1:	xor %ebp, %ebp\n"
	"	mov %r9, %rdi\n"
	"	call threads_come_back\n"
	"	ud2\n"
	".size threads_clone, . - threads_clone\n"
	".globl threads_return\n"
	".type threads_return, @function\n"
	"threads_return:\n"
	"	mov %rdi, %rsp\n"
	".globl threads_restorer\n"
	".type threads_restorer, @function\n"
	"threads_restorer:\n"
	"	mov $15, %rax\n"
	"	syscall\n"
	"	ud2\n"
	".size threads_restorer, . - threads_restorer\n"
	".size threads_return, . - threads_return\n");

#endif
