/* x86-64: the registers that a function must keep, and a list of system calls worked off without memory of its own.
 */
#include "machine.h"

#if IMAGE_MACHINE

#include <cpuid.h>
#include <sys/syscall.h>

_Static_assert(sizeof(struct image_call) == 64 && offsetof(struct image_registers, rip) == 56,
	       "as the code below has it");

__asm__(".text\n"
	".globl image_registers_save\n"
	".type image_registers_save, @function\n"
	"image_registers_save:\n"
	"	mov %rbx, 0(%rdi)\n"
	"	mov %rbp, 8(%rdi)\n"
	"	mov %r12, 16(%rdi)\n"
	"	mov %r13, 24(%rdi)\n"
	"	mov %r14, 32(%rdi)\n"
	"	mov %r15, 40(%rdi)\n"
	"	lea 8(%rsp), %rax\n"
	"	mov %rax, 48(%rdi)\n"
	"	mov (%rsp), %rax\n"
	"	mov %rax, 56(%rdi)\n"
	"	xor %eax, %eax\n"
	"	ret\n"
	".size image_registers_save, . - image_registers_save\n"
	".globl image_restorer_begin\n"
	".globl image_restorer_end\n"
	"image_restorer_begin:\n"
	"	mov %rdi, %rbx\n"
	"	mov %rsi, %rbp\n"
	"	mov %rdx, %r12\n"
	"1:	cmp %rbp, %rbx\n"
	"	je 3f\n"
	"	mov 0(%rbx), %rax\n"
	"	mov 8(%rbx), %rdi\n"
	"	mov 16(%rbx), %rsi\n"
	"	mov 24(%rbx), %rdx\n"
	"	mov 32(%rbx), %r10\n"
	"	mov 40(%rbx), %r8\n"
	"	mov 48(%rbx), %r9\n"
	"	syscall\n"
	"	cmp $-4095, %rax\n"
	"	jb 2f\n"
	"	cmpq $0, 56(%rbx)\n"
	"	jne 2f\n"
	"	mov $111, %edi\n"
	"	mov $231, %eax\n"
	"	syscall\n"
	"2:	add $64, %rbx\n"
	"	jmp 1b\n"
	"3:	mov %r12, %rdi\n"
	"	mov 0(%rdi), %rbx\n"
	"	mov 8(%rdi), %rbp\n"
	"	mov 16(%rdi), %r12\n"
	"	mov 24(%rdi), %r13\n"
	"	mov 32(%rdi), %r14\n"
	"	mov 40(%rdi), %r15\n"
	"	mov 48(%rdi), %rsp\n"
	"	mov $1, %eax\n"
	"	jmp *56(%rdi)\n"
	"image_restorer_end:\n");

void image_segments(uint64_t *thread, uint64_t *segment)
{
	*thread = *segment = 0;
	(void)syscall(SYS_arch_prctl, 0x1003 /* ARCH_GET_FS */, thread);
	(void)syscall(SYS_arch_prctl, 0x1004 /* ARCH_GET_GS */, segment);
}

bool image_shadowed(void)
{
	unsigned long features = 0;

	return syscall(SYS_arch_prctl, 0x5005 /* ARCH_SHSTK_STATUS */, &features) == 0 && features;
}

/* Of leaf 1 a part numbers the processor that runs this. The number of processors counts, since libraries have
 * sized themselves by it. */
void image_machine(uint8_t out[static SHA256_SIZE])
{
	static const unsigned leaves[][2] = {{0, 0}, {1, 0}, {7, 0}, {7, 1}, {13, 0}, {0x80000001, 0}};
	uint32_t words[ARRAY_SIZE(leaves) + 1][4] = {{0}};

	for (size_t i = 0; i < ARRAY_SIZE(leaves); i++) {
		uint32_t *word = words[i];

		(void)__get_cpuid_count(leaves[i][0], leaves[i][1], &word[0], &word[1], &word[2], &word[3]);
	}
	words[1][1] &= 0xffff;
	if (words[1][2] & bit_OSXSAVE)
		__asm__("xgetbv" : "=a"(words[ARRAY_SIZE(leaves)][0]), "=d"(words[ARRAY_SIZE(leaves)][1]) : "c"(0));
	words[ARRAY_SIZE(leaves)][2] = (uint32_t)sysconf(_SC_NPROCESSORS_CONF);
	sha256(out, (struct bytes){(const char *)words, sizeof(words)});
}

#endif
