/* The file of an image: the memory of a process, and what the kernel knows of it. All numbers are those of the
 *machine.
 *
 *	header | areas | runs | sources | text | pages, from the next page on
 *
 * The pages are those of the runs, one after the other. Pages of zeroes are in no run. */
#pragma once

#include "proto/base.h"

#include "proto/sha256.h"

#define IMAGE_MAGIC "lairimg\1"
#define IMAGE_PAGE 4096U
#define IMAGE_END (((uint64_t)1 << 47) - IMAGE_PAGE)
#define IMAGE_SIGNALS 64
#define IMAGE_SPECIALS 4
#define IMAGE_AREAS_MAX 16384
#define IMAGE_RUNS_MAX 262144
#define IMAGE_SOURCES_MAX 65536
#define IMAGE_TEXT_MAX (16U << 20)

/* Nothing of a process that is kept lies here: what writes and wakes images has it to itself. */
#define IMAGE_ZONE ((uint64_t)1 << 40)
#define IMAGE_ZONE_END ((uint64_t)1 << 41)

/* What must be the same when an image wakes. */
struct image_identity {
	uint8_t build[SHA256_SIZE];   /* of the program */
	uint8_t subject[SHA256_SIZE]; /* of what was loaded, and for whom */
	uint8_t machine[SHA256_SIZE]; /* of the processor: what it can do, and how large its registers are */
	uint8_t kernel[SHA256_SIZE];  /* with the code that it lends to processes */
};

/* The order is that of the restorer. */
struct image_registers {
	uint64_t rbx, rbp, r12, r13, r14, r15, rsp, rip;
};

/* The kernel's struct sigaction. */
struct image_action {
	uint64_t handler, flags, restorer, mask;
};

/* What the kernel lends to a process: its data and its code (vvar, vdso). */
struct image_special {
	uint64_t start, size;
};

struct image_process {
	struct image_registers registers;
	uint64_t thread, segment; /* the bases of fs and gs */
	uint64_t layout[11];	  /* the first members of struct prctl_mm_map */
	uint64_t tid_address, robust, robust_size, rseq, rseq_size;
	uint64_t blocked, stack_start, stack_size, stack_flags; /* signals, and their stack */
	struct image_action actions[IMAGE_SIGNALS];
	struct image_special specials[IMAGE_SPECIALS];
	char name[16];
};

enum image_kind {
	IMAGE_MEMORY, /* private and anonymous */
	IMAGE_COPY,   /* private, of a file that is gone, or changed since: it is mapped from a memory file again */
	IMAGE_FILE,   /* private, unchanged, of a source */
	IMAGE_SHARED, /* shared, for reading, of a source */
	IMAGE_PROGRAM, /* private, unchanged, of the program itself */
	_IMAGE_KIND_N,
};

enum {
	IMAGE_HUGE = 1, /* it asks for large pages */
	IMAGE_WIPE = 2, /* a fork finds zeroes there */
	_IMAGE_FLAGS = 3,
};

struct image_area {
	uint64_t start, end, offset; /* in its file */
	uint32_t source;
	uint8_t kind, protection, flags, unused;
};

struct image_run {
	uint64_t start, size;
};

/* A file or directory that the process depends on. Its device is left out, since the kernel numbers devices anew.
 */
struct image_source {
	uint64_t inode, size;
	int64_t changed_s, changed_ns, status_s, status_ns;
	uint32_t name, unused; /* where its path begins in the text */
};

struct image_header {
	char magic[8];
	uint32_t header_size, page;
	uint64_t size; /* of the file */
	uint64_t digest[4];
	struct image_identity identity;
	struct image_process process;
	uint32_t n_areas, n_runs, n_sources, text_size;
};

/* The tables of a file that was checked. They point into its bytes. */
struct image {
	const struct image_header *header;
	const struct image_area *areas;
	const struct image_run *runs;
	const struct image_source *sources;
	const char *text;
};

/* How many bytes of the file come before its pages; 0: the header is not one, or says too much. */
size_t image_tables_size(const struct image_header *header);

/* @data: a header that passed image_tables_size, and the rest of the tables, aligned as malloc does. NULL, or what
 * is wrong: static. Areas and runs are then in order, without overlaps, outside of the zone; each run lies in an
 * area that has pages; each source has a path. */
const char *image_parse(struct image *image, const void *data, size_t size);

/* The digest finds damage, not forgery: whoever could exchange an image could write this, too. */
struct image_digest {
	uint64_t lanes[4], size;
};

void image_digest_begin(struct image_digest *digest);
/* Both sides must cut the bytes into the same pieces, or into pieces of whole pages. */
void image_digest_add(struct image_digest *digest, const void *data, size_t size);
void image_digest_end(struct image_digest *digest, uint64_t out[static 4]);
/* Add the tables, as if the header had no digest. */
void image_digest_tables(struct image_digest *digest, const struct image_header *header, size_t size);
