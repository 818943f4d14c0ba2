/* A fork costs time for each mapping and each page, and so does its end. So the template lays out its memory for
 * later forks, and once a session adds much to it, that is put into large pages, too. If a process writes to a
 * page, that page is still copied alone: the kernel splits its large page, in that process alone. */
#include <Python.h>

#include "gather.h"

#include "proto/base.h"

#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

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
#define CHUNK_STEP 16 /* so with what malloc gives */
#define CHUNK_MAX 1024
#define HEAP_FREE_MAX ((size_t)32 << 20)
#define MUCH ((uintptr_t)16 << 20) /* added by a session: a large page more is not, beside it */

static uintptr_t arenas_begin, arenas_end; /* in use */
static uintptr_t arenas_room;		   /* the end of what is mapped for them */
static uintptr_t arenas_full;		   /* the end of what is filled up */
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

/* What is free in them is taken, of each size until an object lies behind the last large page of those that there
 * were. */
static void fill_arenas(void)
{
	if (!arenas_full)
		arenas_full = round_up(arenas_end);
	(void)PyGC_Collect(); /* or there are objects that were freed, and are kept for their types */
	for (size_t size = OBJECT_STEP; size <= OBJECT_MAX; size += OBJECT_STEP)
		while ((uintptr_t)PyObject_Malloc(size) - arenas_begin < arenas_full - arenas_begin)
			;
}

/* ---- malloc's heap: so it is with that. Another malloc may have its memory elsewhere ---- */

#define NAMES_MAX 64

static uintptr_t heap_full;
static void *taken; /* from malloc, in a row */

static bool heap_take(size_t size)
{
	void **chunk = malloc(size);

	if (!chunk)
		return false;
	*chunk = taken;
	taken = chunk;
	return (uintptr_t)chunk < heap_full;
}

static void fill_heap(void)
{
	size_t left = HEAP_FREE_MAX;

	if (!heap_full)
		heap_full = round_up((uintptr_t)sbrk(0));
	for (size_t size = CHUNK_MAX; size >= CHUNK_STEP; size -= CHUNK_STEP)
		while (left > size && heap_take(size))
			left -= size;
}

/* The environment grows with each variable, from where it is: so it is made to grow until it has to move. */
static void move_environment(void)
{
	char name[16];
	int n = 0;

	while ((uintptr_t)environ < heap_full && n < NAMES_MAX) {
		snprintf(name, sizeof(name), "LAIR_%d", n++);
		(void)setenv(name, "", 1);
	}
	while (n > 0) {
		snprintf(name, sizeof(name), "LAIR_%d", --n);
		(void)unsetenv(name);
	}
}

void gather_room(void)
{
	fill_arenas();
	fill_heap();
	move_environment();
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

/* What may be read may be executed as well. No guard is lost by it: a cell may ask for the same. */
static void merge_code(uintptr_t start, uintptr_t end)
{
	(void)mprotect((void *)start, end - start, PROT_READ | PROT_EXEC); // NOLINT(performance-no-int-to-ptr)
}

/* Also of what a sanitizer would have nobody read. */
__attribute__((no_sanitize("address"))) static bool is_zero(const uint64_t *page, size_t size)
{
	for (size_t i = 0; i < size / sizeof(*page); i++)
		if (page[i])
			return false;
	return true;
}

/* The pages of @start to @end, at @at in @file; a hole where there is nothing but zeroes. */
static bool data_copy(int file, off_t at, uintptr_t start, uintptr_t end, size_t page)
{
	if (ftruncate(file, at + (off_t)(end - start)) < 0)
		return false;
	for (; start < end; start += page, at += (off_t)page)
		if (!is_zero((const uint64_t *)start, page) && // NOLINT(performance-no-int-to-ptr)
		    syscall(SYS_pwrite64, file, start, page, at) != (long)page)
			return false;
	return true;
}

/* What a library writes to becomes a mapping of @file. Of one that is not written to again a fork then copies
 * neither pages nor what the kernel keeps about them, and few are. What was only to be relocated may be written
 * now, which a cell may ask for, too. Until it is mapped nothing may change, not in the C library either: no more
 * is called there than the kernel. */
static void merge_data(int file, uintptr_t start, uintptr_t end, size_t page)
{
	off_t at = lseek(file, 0, SEEK_END);

	if (at >= 0 && data_copy(file, at, start, end, page) &&
	    syscall(SYS_mmap, start, end - start, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file, at) < 0)
		abort();
}

static int merge_parts(struct dl_phdr_info *library, size_t size, void *file)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	(void)size;
	for (int i = 0; *library->dlpi_name && i < library->dlpi_phnum; i++) { /* the program itself has no name */
		const ElfW(Phdr) *part = &library->dlpi_phdr[i];
		uintptr_t start = library->dlpi_addr + part->p_vaddr;
		uintptr_t end = (start + part->p_memsz + page - 1) & ~(page - 1);

		start &= ~(page - 1);
		if (part->p_type != PT_LOAD || (part->p_flags & (PF_W | PF_X)) == (PF_W | PF_X))
			continue;
		if (part->p_flags & PF_W)
			merge_data(*(int *)file, start, end, page);
		else
			merge_code(start, end);
	}
	return 0;
}

static void merge_libraries(void)
{
	int file = memfd_create("lair-libraries", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	(void)dl_iterate_phdr(merge_parts, &file);
	if (file < 0)
		return;
	(void)fcntl(file, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
	(void)close(file);
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

	merge_libraries();
	fill_arenas(); /* once more: something has been freed since */
	fill_heap();
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
