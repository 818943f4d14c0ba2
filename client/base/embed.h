/* Files inside this program. CMake must name them as dependencies: no scanner sees them. */
#pragma once

/* The content of the file at @path, from @name to @name_end; a zero byte follows. */
#define EMBED(name, path)                                                                                          \
	__asm__(".pushsection .rodata\n" #name ":\n.incbin \"" path "\"\n" #name "_end:\n.byte 0\n.popsection");   \
	extern const char name[] __attribute__((visibility("hidden"))),                                            \
		name##_end[] __attribute__((visibility("hidden")))
