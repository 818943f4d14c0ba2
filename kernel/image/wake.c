/* A process becomes an image. All content is read, and its digest checked, before anything of the process changes:
 * it lies then in the zone. The rest is a list of system calls, which the restorer makes when the process has
 * nothing left but the zone. */
#include "image.h"

#include "machine.h"
#include "memory.h"

#if IMAGE_MACHINE

#include <fcntl.h>
#include <linux/prctl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define LARGE ((uint64_t)2 << 20)
#define PIECE ((size_t)1 << 20)
#define STAGE (IMAGE_ZONE + ((uint64_t)1 << 38)) /* below lies struct waking */
#define FILES_MAX 1024
#define CALLS_MAX (4 * IMAGE_AREAS_MAX + 2 * FILES_MAX + IMAGE_SIGNALS + 64)
#define RSEQ_SIGNATURE 0x53053053
#define RSEQ_UNREGISTER 1

extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

struct waking {
	char code[IMAGE_PAGE]; /* the restorer, at the beginning of a page */
	int file, memory, program, directory;
	struct image image;
	struct image_digest digest;
	uint64_t staged[IMAGE_AREAS_MAX]; /* where the content of an area lies; 0: it has none */
	uint64_t stage;			  /* where the next one will lie */
	char *copies;			  /* the content of the memory file */
	uint64_t copies_size, copied;	  /* how much of it has been used */
	int files[IMAGE_SOURCES_MAX];	  /* descriptors of the sources that are mapped, or -1 */
	struct image_special specials[IMAGE_SPECIALS];
	struct prctl_mm_map layout;
	stack_t stack;
	uint64_t blocked;
	struct image_call calls[CALLS_MAX];
	size_t n_calls;
	char tables[]; /* as they were read */
};

#define AT(address) ((void *)(uintptr_t)(address))

static struct waking *waking_new(size_t tables)
{
	void *zone = mmap(AT(IMAGE_ZONE), sizeof(struct waking) + tables, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	struct waking *waking = zone == AT(IMAGE_ZONE) ? zone : NULL;

	if (!waking)
		return NULL;
	waking->file = waking->memory = waking->program = -1;
	waking->stage = STAGE;
	for (size_t i = 0; i < ARRAY_SIZE(waking->files); i++)
		waking->files[i] = -1;
	return waking;
}

static void waking_free(struct waking *waking)
{
	for (size_t i = 0; i < ARRAY_SIZE(waking->files); i++)
		fd_close(waking->files[i]);
	fd_close(waking->file);
	fd_close(waking->memory);
	fd_close(waking->program);
	(void)munmap(AT(IMAGE_ZONE), IMAGE_ZONE_END - IMAGE_ZONE);
}

/* ---- the file ---- */

/* Only its owner could write to it, or exchange it. */
static const char *owner_check(int fd, mode_t kind)
{
	struct stat status;

	if (fd < 0 || fstat(fd, &status) < 0 || (status.st_mode & S_IFMT) != kind)
		return "there is none";
	return status.st_uid != geteuid() || status.st_mode & 077 || (kind == S_IFREG && status.st_nlink != 1)
		       ? "somebody else could have changed it"
		       : NULL;
}

static bool read_all(int file, char *to, size_t size, off_t at)
{
	while (size > 0) {
		ssize_t n = pread(file, to, size, at);

		if (n <= 0)
			return false;
		to += n;
		at += n;
		size -= (size_t)n;
	}
	return true;
}

static const char *identity_check(const struct image_identity *image, const struct image_identity *mine)
{
	if (memcmp(image->build, mine->build, SHA256_SIZE) != 0)
		return "another build of Lair wrote it";
	if (memcmp(image->machine, mine->machine, SHA256_SIZE) != 0)
		return "it is of another processor";
	if (memcmp(image->kernel, mine->kernel, SHA256_SIZE) != 0)
		return "it is of another kernel";
	return memcmp(image->subject, mine->subject, SHA256_SIZE) != 0 ? "it is of other settings" : NULL;
}

static const char *tables_read(struct waking **wakingp, int file, const struct image_identity *mine)
{
	struct image_header header;
	struct stat status;
	struct waking *waking;
	const char *why;
	size_t size;

	if (!read_all(file, (char *)&header, sizeof(header), 0) || fstat(file, &status) < 0)
		return "it is no image";
	size = image_tables_size(&header);
	if (!size || header.size != (uint64_t)status.st_size)
		return "it is no image";
	why = identity_check(&header.identity, mine);
	if (why)
		return why;
	*wakingp = waking = waking_new(size);
	if (!waking)
		return "this process has memory where images are made";
	waking->file = file;
	if (!read_all(file, waking->tables, size, 0))
		return "it is damaged";
	image_digest_begin(&waking->digest);
	image_digest_tables(&waking->digest, (const void *)waking->tables, size);
	return image_parse(&waking->image, waking->tables, size);
}

/* ---- sources ---- */

static bool is_same(const struct image_source *source, const struct stat *status)
{
	return source->inode == status->st_ino && source->size == (uint64_t)status->st_size &&
	       source->changed_s == status->st_mtim.tv_sec && source->changed_ns == status->st_mtim.tv_nsec &&
	       source->status_s == status->st_ctim.tv_sec && source->status_ns == status->st_ctim.tv_nsec;
}

/* Files that will be mapped are opened first, so that they are what was looked at. */
static bool sources_open(struct waking *waking)
{
	const struct image *image = &waking->image;
	unsigned n = 0;

	for (uint32_t i = 0; i < image->header->n_areas; i++) {
		const struct image_area *area = &image->areas[i];
		int *file = &waking->files[area->source];

		if ((area->kind != IMAGE_FILE && area->kind != IMAGE_SHARED) || *file >= 0)
			continue;
		*file = n++ == FILES_MAX ? -1
					 : open(image->text + image->sources[area->source].name,
						O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		if (*file < 0)
			return false;
	}
	return true;
}

static const char *sources_check(struct waking *waking)
{
	const struct image *image = &waking->image;
	bool same = sources_open(waking);

	for (uint32_t i = 0; same && i < image->header->n_sources; i++) {
		const struct image_source *source = &image->sources[i];
		struct stat status;
		int r = waking->files[i] >= 0 ? fstat(waking->files[i], &status)
					      : stat(image->text + source->name, &status);

		same = r == 0 && is_same(source, &status);
	}
	return same ? NULL : "files that it was made from have changed";
}

/* ---- content ---- */

/* Large pages lie in the zone as they will lie in the end, and are moved as a whole. */
static char *stage_map(struct waking *waking, uint64_t place, uint64_t size, int flags, int file)
{
	uint64_t start = (waking->stage + LARGE - 1) / LARGE * LARGE + place % LARGE;

	if (start > IMAGE_ZONE_END || size > IMAGE_ZONE_END - start)
		return NULL;
	waking->stage = start + size;
	return mmap(AT(start), size, PROT_READ | PROT_WRITE, flags | MAP_FIXED_NOREPLACE | MAP_NORESERVE, file,
		    0) == AT(start)
		       ? AT(start)
		       : NULL;
}

/* Whether nearly every large page of the area has content: the process that was written had laid it out like that,
 * as gather.c does. In one with gaps a session would later get a large page for a few bytes. */
static bool is_dense(const struct image_area *area, const struct image_run *run, const struct image_run *end)
{
	uint64_t at = (area->start + LARGE - 1) / LARGE * LARGE, last = area->end / LARGE * LARGE, filled = 0;
	uint64_t all = at < last ? (last - at) / LARGE : 0;

	for (; at < last; at += LARGE) {
		while (run < end && run->start + run->size <= at)
			run++;
		filled += run < end && run->start < at + LARGE;
	}
	return all && filled * 8 >= all * 7;
}

static bool runs_read(struct waking *waking, const struct image_area *area, char *staged,
		      const struct image_run *run, const struct image_run *end, uint64_t *at)
{
	for (; run < end; run++) {
		char *to = staged + (run->start - area->start);

		for (uint64_t done = 0; done < run->size; done += PIECE) {
			size_t size = MIN(run->size - done, PIECE);

			if (!read_all(waking->file, to + done, size, (off_t)*at))
				return false;
			image_digest_add(&waking->digest, to + done, size);
			*at += size;
		}
	}
	return true;
}

static const char *area_stage(struct waking *waking, const struct image_area *area, const struct image_run *run,
			      const struct image_run *end, uint64_t *at)
{
	uint64_t size = area->end - area->start;
	char *staged = waking->copies + waking->copied;

	if (area->kind == IMAGE_COPY)
		waking->copied += size;
	else
		staged = stage_map(waking, area->start, size, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	if (!staged)
		return "there is no memory for it";
	if (area->kind == IMAGE_MEMORY && (area->flags & IMAGE_HUGE || is_dense(area, run, end)))
		(void)madvise(staged, size, MADV_HUGEPAGE);
	waking->staged[area - waking->image.areas] = (uintptr_t)staged;
	return runs_read(waking, area, staged, run, end, at) ? NULL : "it is damaged";
}

static bool copies_map(struct waking *waking)
{
	const struct image *image = &waking->image;

	for (uint32_t i = 0; i < image->header->n_areas; i++)
		if (image->areas[i].kind == IMAGE_COPY)
			waking->copies_size += image->areas[i].end - image->areas[i].start;
	if (waking->copies_size == 0)
		return true;
	if (waking->copies_size > IMAGE_END || ftruncate(waking->memory, (off_t)waking->copies_size) < 0)
		return false;
	waking->copies = stage_map(waking, 0, waking->copies_size, MAP_SHARED, waking->memory);
	return waking->copies;
}

static const char *content_read(struct waking *waking)
{
	const struct image *image = &waking->image;
	const struct image_header *header = image->header;
	const struct image_run *run = image->runs, *end = run + header->n_runs;
	uint64_t at = image_tables_size(header), digest[4];

	for (uint32_t i = 0; i < header->n_areas; i++) {
		const struct image_area *area = &image->areas[i];
		const struct image_run *first = run;
		const char *why;

		while (run < end && run->start < area->end)
			run++;
		if (run == first && area->kind != IMAGE_COPY)
			continue;
		why = area_stage(waking, area, first, run, &at);
		if (why)
			return why;
	}
	image_digest_end(&waking->digest, digest);
	return memcmp(digest, header->digest, sizeof(digest)) != 0 ? "it is damaged" : NULL;
}

/* Nobody may change what all forks share. */
static void copies_seal(struct waking *waking)
{
	(void)munmap(waking->copies, waking->copies_size);
	(void)fcntl(waking->memory, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL);
}

/* ---- the calls of the restorer ---- */

#define CALL(...) CALL_(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)
#define CALL_(n, a, b, c, d, e, f, ...)                                                                            \
	call_add(waking, (struct image_call){                                                                      \
				 SYS_##n, {(long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f)}, 0})
#define TRY(...) (CALL(__VA_ARGS__), waking->calls[waking->n_calls - 1].may_fail = 1)

static void call_add(struct waking *waking, struct image_call call)
{
	if (waking->n_calls < CALLS_MAX)
		waking->calls[waking->n_calls++] = call;
}

/* The kernel lends its code where it likes. It is put aside, and back where the image had it. */
static void specials_move(struct waking *waking, bool back)
{
	const struct image_special *theirs = waking->image.header->process.specials, *ours = waking->specials;
	uint64_t aside = (waking->stage + LARGE - 1) / LARGE * LARGE;

	for (size_t i = 0; i < IMAGE_SPECIALS && ours[i].size; aside += ours[i++].size)
		CALL(mremap, back ? aside : ours[i].start, ours[i].size, ours[i].size,
		     MREMAP_MAYMOVE | MREMAP_FIXED, back ? theirs[i].start : aside);
}

static bool specials_fit(const struct waking *waking)
{
	const struct image_special *theirs = waking->image.header->process.specials;

	for (size_t i = 0; i < IMAGE_SPECIALS; i++)
		if (theirs[i].size != waking->specials[i].size)
			return false;
	return true;
}

static void own_leave(struct waking *waking)
{
	uint64_t blocked, thread, segment;

	image_segments(&thread, &segment);
	if (&__rseq_size && __rseq_size)
		TRY(rseq, thread + (uint64_t)__rseq_offset, MAX(__rseq_size, 32U), RSEQ_UNREGISTER, RSEQ_SIGNATURE);
	blocked = UINT64_MAX;
	(void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, NULL, sizeof(blocked));
	specials_move(waking, false);
	CALL(munmap, 0, IMAGE_ZONE);
	CALL(munmap, IMAGE_ZONE_END, IMAGE_END - IMAGE_ZONE_END);
}

static void memory_place(struct waking *waking, const struct image_area *area, uint64_t staged)
{
	uint64_t size = area->end - area->start;
	int plain = PROT_READ | PROT_WRITE;

	if (staged)
		CALL(mremap, staged, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, area->start);
	else
		CALL(mmap, area->start, size, area->protection,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | (area->protection & PROT_WRITE ? 0 : MAP_NORESERVE),
		     -1, 0);
	if (staged && area->protection != plain)
		CALL(mprotect, area->start, size, area->protection);
	if (area->flags & IMAGE_HUGE && !staged)
		TRY(madvise, area->start, size, MADV_HUGEPAGE);
	if (area->flags & IMAGE_WIPE)
		CALL(madvise, area->start, size, MADV_WIPEONFORK);
}

static void areas_place(struct waking *waking)
{
	const struct image *image = &waking->image;
	uint64_t copied = 0;

	for (uint32_t i = 0; i < image->header->n_areas; i++) {
		const struct image_area *area = &image->areas[i];
		uint64_t size = area->end - area->start;
		int flags = MAP_FIXED | (area->kind == IMAGE_SHARED ? MAP_SHARED : MAP_PRIVATE);

		if (area->kind == IMAGE_MEMORY) {
			memory_place(waking, area, waking->staged[i]);
		} else if (area->kind == IMAGE_COPY) {
			CALL(mmap, area->start, size, area->protection, flags, waking->memory, copied);
			copied += size;
		} else {
			int file = area->kind == IMAGE_PROGRAM ? waking->program : waking->files[area->source];

			CALL(mmap, area->start, size, area->protection, flags, file, area->offset);
		}
	}
}

static void layout_place(struct waking *waking)
{
	_Static_assert(offsetof(struct prctl_mm_map, auxv) == sizeof(waking->image.header->process.layout),
		       "the kernel's struct begins with them");

	memcpy(&waking->layout, waking->image.header->process.layout, offsetof(struct prctl_mm_map, auxv));
	waking->layout.exe_fd = (uint32_t)-1;
	CALL(prctl, PR_SET_MM, PR_SET_MM_MAP, &waking->layout, sizeof(waking->layout));
}

static void process_place(struct waking *waking)
{
	const struct image_process *process = &waking->image.header->process;

	for (size_t i = 0; i < IMAGE_SIGNALS; i++)
		if (i + 1 != SIGKILL && i + 1 != SIGSTOP)
			CALL(rt_sigaction, i + 1, &process->actions[i], 0, sizeof(uint64_t));
	waking->stack = (stack_t){.ss_sp = AT(process->stack_start),
				  .ss_flags = (int)process->stack_flags,
				  .ss_size = process->stack_size};
	CALL(sigaltstack, &waking->stack, 0);
	CALL(arch_prctl, IMAGE_SET_THREAD, process->thread);
	CALL(arch_prctl, IMAGE_SET_SEGMENT, process->segment);
	CALL(set_tid_address, process->tid_address);
	if (process->robust)
		CALL(set_robust_list, process->robust, process->robust_size);
	if (process->rseq)
		CALL(rseq, process->rseq, process->rseq_size, 0, RSEQ_SIGNATURE);
	CALL(prctl, PR_SET_NAME, process->name);
}

static void files_close(struct waking *waking)
{
	for (uint32_t i = 0; i < waking->image.header->n_sources; i++)
		if (waking->files[i] >= 0)
			CALL(close, waking->files[i]);
	CALL(close, waking->memory);
	CALL(close, waking->program);
	CALL(close, waking->file);
	CALL(close, waking->directory);
	waking->blocked = waking->image.header->process.blocked;
	CALL(rt_sigprocmask, SIG_SETMASK, &waking->blocked, 0, sizeof(waking->blocked));
}

static _Noreturn void become(struct waking *waking)
{
	image_restorer *restorer;

	copies_seal(waking);
	own_leave(waking);
	layout_place(waking);
	areas_place(waking);
	specials_move(waking, true);
	process_place(waking);
	files_close(waking);
	memcpy(waking->code, image_restorer_begin, (size_t)(image_restorer_end - image_restorer_begin));
	if (waking->n_calls == CALLS_MAX || mprotect(waking, sizeof(waking->code), PROT_READ | PROT_EXEC) < 0)
		_exit(IMAGE_EXIT);
	*(void **)&restorer = waking->code;
	restorer(waking->calls, waking->calls + waking->n_calls, &waking->image.header->process.registers);
	_exit(IMAGE_EXIT);
}

static const char *prepare(struct waking *waking)
{
	const char *why = memory_specials(waking->specials);

	if (!why && !specials_fit(waking))
		why = "it is of another kernel";
	if (!why)
		why = sources_check(waking);
	if (why)
		return why;
	waking->memory = memfd_create("lair-libraries", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	waking->program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (waking->memory < 0 || waking->program < 0)
		return "there are no descriptors for it";
	return copies_map(waking) ? content_read(waking) : "there is no memory for it";
}

const char *image_wake(int directory, const char *name, const char *aside, const struct image_identity *identity)
{
	int file = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct waking *waking = NULL;
	const char *why = owner_check(file, S_IFREG);

	if (!why)
		why = owner_check(directory, S_IFDIR);
	if (!why)
		why = tables_read(&waking, file, identity);
	if (!why)
		why = prepare(waking);
	if (waking)
		waking->directory = directory;
	if (!why && renameat(directory, name, directory, aside) < 0)
		why = "it cannot be put aside";
	if (!why)
		become(waking);
	if (waking)
		waking_free(waking);
	else
		fd_close(file);
	return why;
}

#endif
