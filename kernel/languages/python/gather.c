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

/* ---- Python's arenas lie side by side: scattered between the libraries they would fill no large page ---- */

#define ARENAS_BASE ((uintptr_t)1 << 44) /* far from the addresses that the kernel chooses */
#define ARENA_SIZE (256U << 10)		 /* of Python before 3.10; a megabyte since */
#define OBJECT_STEP 16			 /* between the sizes of objects in an arena */
#define OBJECT_MAX 512
#define CHUNK_STEP 16 /* between the sizes of malloc's chunks */
#define CHUNK_MAX 1024
#define HEAP_FREE_MAX ((size_t)32 << 20)
#define MUCH ((uintptr_t)16 << 20) /* once a session has added so much, one large page more hardly counts */

static uintptr_t arenas_begin, arenas_end; /* the part in use */
static uintptr_t arenas_room;		   /* the end of the memory that is mapped for them */
static uintptr_t arenas_full;		   /* below this all free blocks have been taken, by fill_arenas */
static uintptr_t arenas_settled;	   /* where sessions begin to add; 0: still in the template */

static void *arena_map(uintptr_t address, size_t size, int flags)
{
	return mmap((void *)address, size, PROT_READ | PROT_WRITE, // NOLINT(performance-no-int-to-ptr)
		    MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

/* Maps @size bytes at arenas_end. False if something else is mapped there, or if addresses end before. What the
 * template imports is in large pages from the beginning: to move it into them later takes as long as a fifth of the
 * imports. */
static bool arenas_extend(size_t size)
{
	bool much = !arenas_full || (arenas_settled && arenas_end > arenas_settled + MUCH);
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

/* If the size is smaller than an arena, it is for Python's own stack, which grows and shrinks. Such a mapping lies
 * elsewhere. */
static void *arena_new(void *context, size_t size)
{
	void *arena;

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

/* Takes the free blocks in the arenas, so that new objects lie behind the last large page of the objects there are.
 * Of each size blocks are taken until one lies there. */
static void fill_arenas(void)
{
	(void)PyGC_Collect(); /* this also frees the objects that types keep to use them again */
	for (size_t size = OBJECT_STEP; size <= OBJECT_MAX; size += OBJECT_STEP)
		while ((uintptr_t)PyObject_Malloc(size) - arenas_begin < arenas_full - arenas_begin)
			;
}

/* ---- the same for malloc's heap; a malloc other than libc's may have its memory elsewhere ---- */

#define NAMES_MAX 64

static uintptr_t heap_full;
static void *taken; /* chunks from malloc, each of which points to the one before */

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

	for (size_t size = CHUNK_MAX; size >= CHUNK_STEP; size -= CHUNK_STEP)
		while (left > size && heap_take(size))
			left -= size;
}

/* setenv enlarges the array of variables where it lies. So variables are added until the array has to move. */
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
	arenas_full = round_up(arenas_end);
	heap_full = round_up((uintptr_t)sbrk(0));
	fill_arenas();
	fill_heap();
	move_environment();
}

/* ---- large blocks that Python takes from malloc; numpy does the same for large arrays ---- */

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

/* Only blocks from malloc. A zeroed block is often used in few places only, and the kernel moves a growing block
 * about in small pages. */
static void gather_blocks(void)
{
	PyMemAllocatorEx allocator;

	if (blocks.malloc)
		return;
	PyMem_GetAllocator(PYMEM_DOMAIN_RAW, &blocks);
	allocator = blocks;
	allocator.malloc = block_new;
	PyMem_SetAllocator(PYMEM_DOMAIN_RAW, &allocator);
}

/* ---- libraries: the loader makes five mappings of each; they are merged into two, where that is possible ---- */

/* If a page may be read, it may be executed as well. No guard is lost by that, since a cell may ask for the
 * same. */
static void merge_code(uintptr_t start, uintptr_t end)
{
	(void)mprotect((void *)start, end - start, PROT_READ | PROT_EXEC); // NOLINT(performance-no-int-to-ptr)
}

/* It also reads bytes that a sanitizer keeps from everybody. */
__attribute__((no_sanitize("address"))) static bool is_zero(const uint64_t *page, size_t size)
{
	for (size_t i = 0; i < size / sizeof(*page); i++)
		if (page[i])
			return false;
	return true;
}

/* Copies the pages from @start to @end to @at in @file. A page of zeroes becomes a hole. */
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

/* Replaces the writable part of a library by a private mapping of @file. A fork then copies only those pages that
 * are written to again, which are few, and only for these the kernel's records. Relocated tables become writable,
 * for which a cell may ask, too. Between the copy and the mapping nothing may change, not even in the C library, so
 * there are only system calls between them. */
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
	/* One large page a call: the kernel gives up a whole range when one page of it cannot be collapsed. */
	for (; start < end; start += LARGE)
		(void)madvise((void *)start, LARGE, MADV_COLLAPSE); // NOLINT(performance-no-int-to-ptr)
}

void gather_memory(void)
{
	FILE *maps;
	char line[512], mode[5], name[8];

	merge_libraries();
	fill_arenas(); /* again, because something has been freed since */
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
