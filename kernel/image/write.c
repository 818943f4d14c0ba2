/* A process writes itself. What it notes meanwhile lies in the zone, which is in no image; from the moment at which
 * its registers are saved, nothing else of it changes but the stack below them. Pages are copied before they are
 * written, so that the digest is of what the file has. */
#include "image.h"

#include "machine.h"
#include "memory.h"

#if IMAGE_MACHINE

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#define PIECE ((size_t)256 << 10)
#define GAP (8UL * IMAGE_PAGE)	  /* pages of zeroes between two runs that are written with them */
#define STACK ((uint64_t)8 << 20) /* room for the stack to grow: what stays untouched costs nothing */
#define STACK_GUARD ((uint64_t)1 << 20)
#define PAGEMAP_PRESENT (1ULL << 63 | 1ULL << 62) /* or swapped */
#define PAGEMAP_FILE (1ULL << 61)

extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

struct writing {
	int file, pagemap;
	uint32_t mapped; /* the first source that is mapped */
	dev_t device;	 /* the program's */
	ino_t inode;
	struct image_digest digest;
	struct image_header header;
	struct image_area areas[IMAGE_AREAS_MAX];
	struct image_run runs[IMAGE_RUNS_MAX];
	struct image_source sources[IMAGE_SOURCES_MAX];
	char text[IMAGE_TEXT_MAX];
	uint64_t states[512]; /* of pages */
	char piece[PIECE];
	char tables[]; /* as they are written */
};

static char why_text[256];

static const char *because(const char *what, const char *path)
{
	snprintf(why_text, sizeof(why_text), "%s: %.180s", what, path);
	return why_text;
}

static struct writing *writing_new(void)
{
	size_t size = sizeof(struct writing) + sizeof(struct image_header) +
		      IMAGE_AREAS_MAX * sizeof(struct image_area) + IMAGE_RUNS_MAX * sizeof(struct image_run) +
		      IMAGE_SOURCES_MAX * sizeof(struct image_source) + IMAGE_TEXT_MAX + IMAGE_PAGE;
	void *zone = mmap((void *)(uintptr_t)IMAGE_ZONE, size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	return zone == (void *)(uintptr_t)IMAGE_ZONE ? zone : NULL;
}

static void zone_free(void)
{
	(void)munmap((void *)(uintptr_t)IMAGE_ZONE, IMAGE_ZONE_END - IMAGE_ZONE);
}

/* ---- sources ---- */

static const char *source_add(struct writing *writing, const char *path, const struct stat *status)
{
	struct image_header *header = &writing->header;
	size_t size = strlen(path) + 1;

	if (header->n_sources == IMAGE_SOURCES_MAX || size > IMAGE_TEXT_MAX - header->text_size)
		return "it depends on too many files";
	writing->sources[header->n_sources++] = (struct image_source){
		.inode = status->st_ino,
		.size = (uint64_t)status->st_size,
		.changed_s = status->st_mtim.tv_sec,
		.changed_ns = status->st_mtim.tv_nsec,
		.status_s = status->st_ctim.tv_sec,
		.status_ns = status->st_ctim.tv_nsec,
		.name = header->text_size,
	};
	memcpy(writing->text + header->text_size, path, size);
	header->text_size += (uint32_t)size;
	return NULL;
}

static const char *sources_add(struct writing *writing, char *const *paths)
{
	const char *why = NULL;
	struct stat status;

	for (; !why && paths && *paths; paths++)
		if ((*paths)[0] == '/' && stat(*paths, &status) == 0)
			why = source_add(writing, *paths, &status);
	writing->mapped = writing->header.n_sources;
	return why;
}

static const char *source_of(struct writing *writing, const struct memory_area *area, uint32_t *sourcep)
{
	struct stat status;

	for (*sourcep = writing->mapped; *sourcep < writing->header.n_sources; (*sourcep)++)
		if (strcmp(writing->text + writing->sources[*sourcep].name, area->path) == 0)
			return NULL;
	if (stat(area->path, &status) < 0 || status.st_ino != area->inode || !S_ISREG(status.st_mode))
		return because("a file that it has mapped is gone", area->path);
	return source_add(writing, area->path, &status);
}

/* ---- memory ---- */

static bool is_zero(const char *page)
{
	const uint64_t *words = (const void *)page;

	for (size_t i = 0; i < IMAGE_PAGE / sizeof(*words); i++)
		if (words[i])
			return false;
	return true;
}

/* Reads the states of pages from @start on, as many as are asked for at once. */
static size_t states_read(struct writing *writing, uint64_t start, uint64_t end)
{
	size_t n = MIN((end - start) / IMAGE_PAGE, ARRAY_SIZE(writing->states));
	ssize_t r = pread(writing->pagemap, writing->states, n * sizeof(uint64_t),
			  (off_t)(start / IMAGE_PAGE * sizeof(uint64_t)));

	return r > 0 ? (size_t)r / sizeof(uint64_t) : 0;
}

/* Whether any page has been written to. -1: the kernel does not say. */
static int is_changed(struct writing *writing, const struct memory_area *area)
{
	for (uint64_t at = area->start; at < area->end;) {
		size_t n = states_read(writing, at, area->end);

		if (n == 0)
			return -1;
		for (size_t i = 0; i < n; i++)
			if (writing->states[i] & PAGEMAP_PRESENT && !(writing->states[i] & PAGEMAP_FILE))
				return 1;
		at += n * IMAGE_PAGE;
	}
	return 0;
}

static const char *page_add(struct writing *writing, uint64_t area_start, uint64_t page)
{
	uint32_t n = writing->header.n_runs;
	struct image_run *last = n ? &writing->runs[n - 1] : NULL;

	if (last && last->start >= area_start && page - (last->start + last->size) <= GAP) {
		last->size = page + IMAGE_PAGE - last->start;
		return NULL;
	}
	if (n == IMAGE_RUNS_MAX)
		return "its memory lies in too many pieces";
	writing->runs[writing->header.n_runs++] = (struct image_run){page, IMAGE_PAGE};
	return NULL;
}

/* @every: of a file, so that pages that nobody has touched have content, too. */
static const char *pages_add(struct writing *writing, const struct memory_area *area, bool every)
{
	const char *why = NULL;

	if (area->flags & IMAGE_WIPE)
		return NULL;
	for (uint64_t at = area->start; !why && at < area->end;) {
		size_t n = states_read(writing, at, area->end);

		if (n == 0)
			return "the kernel does not say which pages it has";
		for (size_t i = 0; !why && i < n; i++, at += IMAGE_PAGE) {
			if (!every && !(writing->states[i] & PAGEMAP_PRESENT))
				continue;
			if (!(area->protection & PROT_READ))
				return "it has memory that cannot be read";
			if (!is_zero((const char *)(uintptr_t)at))
				why = page_add(writing, area->start, at);
		}
	}
	return why;
}

static const char *kind_find(struct writing *writing, const struct memory_area *area, struct image_area *kept)
{
	bool file = area->path[0] == '/' && area->inode, gone = strstr(area->path, " (deleted)");
	bool program =
		file && area->inode == writing->inode && makedev(area->major, area->minor) == writing->device;
	int changed = file && !area->shared ? is_changed(writing, area) : 0;

	if (area->droppable || changed < 0)
		return "it has memory that the kernel may drop";
	if (area->shared && (!file || gone || area->protection & PROT_WRITE))
		return because("it shares memory with others", area->path);
	kept->kind = !file || (gone && !program && !area->protection) ? IMAGE_MEMORY
		     : area->shared				      ? IMAGE_SHARED
		     : changed || (gone && !program)		      ? IMAGE_COPY
		     : program					      ? IMAGE_PROGRAM
								      : IMAGE_FILE;
	return kept->kind == IMAGE_FILE || kept->kind == IMAGE_SHARED ? source_of(writing, area, &kept->source)
								      : NULL;
}

/* The stack of the process that wakes does not grow by itself. */
static void stack_enlarge(struct writing *writing, struct image_area *stack)
{
	uint32_t n = writing->header.n_areas;
	uint64_t before = n ? writing->areas[n - 1].end + STACK_GUARD : 0;

	stack->start = MIN(stack->start, MAX(stack->end - STACK, before));
}

static const char *area_add(const struct memory_area *area, void *data)
{
	struct writing *writing = data;
	struct image_area kept = {.start = area->start,
				  .end = area->end,
				  .offset = area->offset,
				  .protection = area->protection,
				  .flags = area->flags};
	const char *why;

	if (strncmp(area->path, "[v", 2) == 0)
		return NULL;
	if (writing->header.n_areas == IMAGE_AREAS_MAX)
		return "it has too many mappings";
	why = kind_find(writing, area, &kept);
	if (why)
		return why;
	if (kept.kind == IMAGE_MEMORY)
		kept.offset = 0;
	else
		kept.flags = 0;
	if (strcmp(area->path, "[stack]") == 0)
		stack_enlarge(writing, &kept);
	writing->areas[writing->header.n_areas++] = kept;
	return kept.kind == IMAGE_MEMORY || kept.kind == IMAGE_COPY
		       ? pages_add(writing, area, kept.kind == IMAGE_COPY)
		       : NULL;
}

/* ---- what the kernel knows of the process ---- */

/* Where the kernel counts from in /proc/self/stat, for each member of struct prctl_mm_map; 0: the heap's end, which
 * is not there. */
static const int layout_fields[11] = {26, 27, 45, 46, 47, 0, 28, 48, 49, 50, 51};

static const char *layout_read(uint64_t layout[static 11])
{
	char text[2048];
	uint64_t fields[52] = {0};
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	char *at;

	fd_close(fd);
	text[MAX(n, 0)] = '\0';
	at = strrchr(text, ')'); /* behind it comes the third field, which is a letter */
	for (int i = 4; at && i < 52; i++)
		fields[i] = strtoull(i == 4 ? at + 3 : at, &at, 10);
	for (size_t i = 0; i < ARRAY_SIZE(layout_fields); i++)
		layout[i] = layout_fields[i] ? fields[layout_fields[i]] : (uint64_t)syscall(SYS_brk, 0);
	return at && fields[26] ? NULL : "the kernel does not say how its memory is laid out";
}

static const char *process_read(struct image_process *process)
{
	stack_t stack = {0};
	const char *why = memory_specials(process->specials);

	if (!why)
		why = layout_read(process->layout);
	image_segments(&process->thread, &process->segment);
	(void)prctl(PR_GET_TID_ADDRESS, &process->tid_address);
	(void)syscall(SYS_get_robust_list, 0, &process->robust, &process->robust_size);
	if (&__rseq_size && __rseq_size) {
		process->rseq = process->thread + (uint64_t)__rseq_offset;
		process->rseq_size = MAX(__rseq_size, 32U);
	}
	(void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, NULL, &process->blocked, sizeof(process->blocked));
	for (size_t i = 0; i < IMAGE_SIGNALS; i++)
		(void)syscall(SYS_rt_sigaction, i + 1, NULL, &process->actions[i], sizeof(uint64_t));
	(void)sigaltstack(NULL, &stack);
	process->stack_start = (uint64_t)(uintptr_t)stack.ss_sp;
	process->stack_size = stack.ss_size;
	process->stack_flags = (uint64_t)stack.ss_flags;
	(void)prctl(PR_GET_NAME, process->name);
	return why;
}

/* ---- the file ---- */

static size_t tables_put(struct writing *writing)
{
	const struct image_header *header = &writing->header;
	char *at = writing->tables;

	at = mempcpy(at, header, sizeof(*header));
	at = mempcpy(at, writing->areas, header->n_areas * sizeof(*writing->areas));
	at = mempcpy(at, writing->runs, header->n_runs * sizeof(*writing->runs));
	at = mempcpy(at, writing->sources, header->n_sources * sizeof(*writing->sources));
	memcpy(at, writing->text, header->text_size);
	return image_tables_size(header);
}

static int put(int file, const char *data, size_t size, off_t at)
{
	while (size > 0) {
		ssize_t n = pwrite(file, data, size, at);

		if (n <= 0)
			return n < 0 ? -errno : -ENOSPC;
		data += n;
		at += n;
		size -= (size_t)n;
	}
	return 0;
}

static int pages_put(struct writing *writing, off_t at)
{
	int r = 0;

	for (uint32_t i = 0; !r && i < writing->header.n_runs; i++) {
		uint64_t from = writing->runs[i].start, end = from + writing->runs[i].size;

		for (; !r && from < end; from += PIECE) {
			size_t size = MIN(end - from, PIECE);

			memcpy(writing->piece, (const void *)(uintptr_t)from, size);
			image_digest_add(&writing->digest, writing->piece, size);
			r = put(writing->file, writing->piece, size, at);
			at += (off_t)size;
		}
	}
	return r;
}

static int file_put(struct writing *writing)
{
	struct image_header *header = &writing->header;
	size_t tables = image_tables_size(header);
	int r;

	header->size = tables;
	for (uint32_t i = 0; i < header->n_runs; i++)
		header->size += writing->runs[i].size;
	(void)tables_put(writing);
	image_digest_begin(&writing->digest);
	image_digest_tables(&writing->digest, (const void *)writing->tables, tables);
	r = pages_put(writing, (off_t)tables);
	image_digest_end(&writing->digest, header->digest);
	memcpy(writing->tables, header, sizeof(*header));
	return r ? r : put(writing->file, writing->tables, tables, 0);
}

static const char *prepare(struct writing *writing, const struct image_identity *identity, char *const *sources)
{
	struct image_header *header = &writing->header;
	struct stat program;
	const char *why;

	memcpy(header->magic, IMAGE_MAGIC, sizeof(header->magic));
	header->header_size = sizeof(*header);
	header->page = IMAGE_PAGE;
	header->identity = *identity;
	if (stat("/proc/self/exe", &program) < 0)
		return "its program is gone";
	writing->device = program.st_dev;
	writing->inode = program.st_ino;
	why = sources_add(writing, sources);
	if (!why)
		why = memory_walk(true, area_add, writing);
	return why ? why : process_read(&header->process);
}

/* Returns false in the process that wakes. Everything that the woken one goes on with lies above this frame. */
static __attribute__((noinline)) bool save_and_put(struct writing *writing, int *errorp)
{
	if (image_registers_save(&writing->header.process.registers))
		return false;
	*errorp = file_put(writing);
	return true;
}

/* libc remembers the number of its only running thread, which the kernel has given anew. */
static void woken(void)
{
	int *number = NULL;

	zone_free();
	if (prctl(PR_GET_TID_ADDRESS, &number) == 0 && number)
		*number = (int)syscall(SYS_gettid);
}

static const char *write_to(struct writing *writing, bool *wokenp)
{
	int error = 0;

	*wokenp = !save_and_put(writing, &error);
	if (*wokenp)
		woken();
	return *wokenp || !error ? NULL : strerror(-error);
}

const char *image_write(int directory, const char *name, const struct image_identity *identity,
			char *const *sources, bool *wokenp)
{
	struct writing *writing = writing_new();
	char fresh[80];
	const char *why;

	*wokenp = false;
	if (!writing)
		return "its memory lies where images are made";
	snprintf(fresh, sizeof(fresh), "%.60s.%d", name, (int)getpid());
	writing->file = openat(directory, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	writing->pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	why = writing->file < 0 || writing->pagemap < 0 ? strerror(errno) : prepare(writing, identity, sources);
	if (!why)
		why = write_to(writing, wokenp);
	if (*wokenp)
		return NULL;
	if (!why && renameat(directory, fresh, directory, name) < 0)
		why = strerror(errno);
	if (why && writing->file >= 0)
		(void)unlinkat(directory, fresh, 0);
	fd_close(writing->file);
	fd_close(writing->pagemap);
	zone_free();
	return why;
}

#endif
