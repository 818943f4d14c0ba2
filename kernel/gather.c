/* A fork costs by the mapping and by the page, and so does its end. The template therefore lays its memory out for
 * the forks that are to come, and what a session adds to it, once that is much, is put into large pages, too. A
 * page that somebody writes to is still copied by itself: the kernel splits what it lies in, in that process alone.
 */
#include <Python.h>

#include "gather.h"

#include "proto/base.h"

#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/random.h>

#ifndef MADV_COLLAPSE /* Linux 6.1 */
#define MADV_COLLAPSE 25
#endif
#define LARGE ((uintptr_t)2 << 20)

static uintptr_t round_up(uintptr_t address)
{
	return (address + LARGE - 1) & ~(LARGE - 1);
}

/* ---- Python's arenas: one behind the other, since between the libraries they would fill no large page ---- */

#define ARENAS_BASE ((uintptr_t)1 << 44) /* far from where the kernel puts what names no address */
#define ARENA_SIZE (256U << 10)		 /* of Python before 3.10; a megabyte since */
#define OBJECT_STEP 16			 /* between the sizes that objects in one are given */
#define OBJECT_MAX 512
#define MUCH ((uintptr_t)16 << 20) /* added by a session: a large page more is not, beside it */

static uintptr_t arenas_begin, arenas_end; /* in use */
static uintptr_t arenas_room;		   /* the end of what is mapped for them */
static uintptr_t arenas_settled;	   /* where sessions begin to add; 0: in the template */

static void *arena_map(uintptr_t address, size_t size, int flags)
{
	return mmap((void *)address, size, PROT_READ | PROT_WRITE, // NOLINT(performance-no-int-to-ptr)
		    MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

/* See that there are @size bytes at arenas_end. False if something is there, or addresses end before. */
static bool arenas_extend(size_t size)
{
	bool much = arenas_settled && arenas_end > arenas_settled + MUCH;
	uintptr_t room = much ? round_up(arenas_end + size) : arenas_end + size;

	if (room <= arenas_room)
		return true;
	if (arena_map(arenas_room, room - arenas_room, MAP_FIXED_NOREPLACE) == MAP_FAILED)
		return false;
	if (much)
		(void)madvise((void *)arenas_room, room - arenas_room, // NOLINT(performance-no-int-to-ptr)
			      MADV_HUGEPAGE);
	arenas_room = room;
	return true;
}

/* What is smaller than an arena, Python's stack, comes and goes. */
static void *arena_new(void *context, size_t size)
{
	void *arena;

	(void)context;
	if (size < ARENA_SIZE || !arenas_extend(size)) {
		arena = arena_map(0, size, 0);
		return arena == MAP_FAILED ? NULL : arena;
	}
	arena = (void *)arenas_end; // NOLINT(performance-no-int-to-ptr)
	arenas_end += size;
	return arena;
}

static void arena_free(void *context, void *arena, size_t size)
{
	(void)context;
	if ((uintptr_t)arena + size == arenas_end) {
		size = arenas_room - (uintptr_t)arena;
		arenas_end = arenas_room = (uintptr_t)arena;
	}
	(void)munmap(arena, size);
}

void gather_arenas(void)
{
	PyObjectArenaAllocator allocator = {.alloc = arena_new, .free = arena_free};
	uintptr_t random = 0;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) < 0)
		random = 0;
	arenas_begin = arenas_end = arenas_room = ARENAS_BASE + random % ARENAS_BASE / LARGE * LARGE;
	PyObject_SetArenaAllocator(&allocator);
}

/* What is free in them is taken, of each size until an object lies in an arena that was not there before: what a
 * fork allocates, and hence writes to, then lies together. */
static void fill_arenas(void)
{
	uintptr_t before = arenas_end - arenas_begin;

	for (size_t size = OBJECT_STEP; size <= OBJECT_MAX; size += OBJECT_STEP)
		while ((uintptr_t)PyObject_Malloc(size) - arenas_begin < before)
			;
}

/* ---- what Python takes from malloc: large blocks, as numpy does for those of arrays ---- */

#define BLOCK_LARGE ((size_t)4 << 20)

static PyMemAllocatorEx blocks;

static void *block_new(void *context, size_t size)
{
	char *block = blocks.malloc(context, size);
	uintptr_t start = round_up((uintptr_t)block), end = ((uintptr_t)block + size) & ~(LARGE - 1);

	if (block && size >= BLOCK_LARGE)
		(void)madvise((void *)start, end - start, MADV_HUGEPAGE); // NOLINT(performance-no-int-to-ptr)
	return block;
}

/* Not what is zeroed, which is often there to be touched here and there; nor what grows, which the kernel moves
 * about in small pages. */
static void gather_blocks(void)
{
	PyMemAllocatorEx allocator;

	PyMem_GetAllocator(PYMEM_DOMAIN_RAW, &blocks);
	allocator = blocks;
	allocator.malloc = block_new;
	PyMem_SetAllocator(PYMEM_DOMAIN_RAW, &allocator);
}

/* ---- libraries: five mappings each as the loader leaves them, two where they can be merged ---- */

/* What may be read may be executed as well, and what was only to be relocated, written. No guard is lost by it: a
 * cell may ask for the same. */
static void merge(const ElfW(Phdr) * part, uintptr_t start)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), end = (start + part->p_memsz + page - 1) & ~(page - 1);
	int protection = part->p_flags & PF_W ? PROT_READ | PROT_WRITE : PROT_READ | PROT_EXEC;

	if ((part->p_flags & (PF_W | PF_X)) == (PF_W | PF_X))
		return;
	start &= ~(page - 1);
	(void)mprotect((void *)start, end - start, protection); // NOLINT(performance-no-int-to-ptr)
}

static int merge_parts(struct dl_phdr_info *library, size_t size, void *data)
{
	(void)size;
	(void)data;
	for (int i = 0; *library->dlpi_name && i < library->dlpi_phnum; i++) /* the program itself has no name */
		if (library->dlpi_phdr[i].p_type == PT_LOAD)
			merge(&library->dlpi_phdr[i], library->dlpi_addr + library->dlpi_phdr[i].p_vaddr);
	return 0;
}

/* ---- large pages ---- */

static void collapse(uintptr_t start, uintptr_t end)
{
	start = round_up(start);
	end &= ~(LARGE - 1);
	/* One at a time: the kernel gives up a range at the first that it cannot do. */
	for (; start < end; start += LARGE)
		(void)madvise((void *)start, LARGE, MADV_COLLAPSE); // NOLINT(performance-no-int-to-ptr)
}

void gather_memory(void)
{
	FILE *maps;
	char line[512], mode[5], name[8];

	(void)dl_iterate_phdr(merge_parts, NULL);
	fill_arenas();
	gather_blocks();
	arenas_settled = arenas_end;
	maps = fopen("/proc/self/maps", "re");
	while (maps && fgets(line, sizeof(line), maps)) {
		uintptr_t start, end;
		unsigned long inode;
		int n = sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*x %*s %lu %7s", &start, &end, mode, &inode,
			       name);

		if (n < 4 || strcmp(mode, "rw-p") || inode || (n == 5 && strcmp(name, "[heap]")))
			continue;
		collapse(start, end);
	}
	if (maps)
		(void)fclose(maps);
}
