/* An image is the daemon's own, and is parsed as if it were not: what passes here can at worst make a process that
 * fails, but never lets the one that wakes it write outside of the zone, read outside of the file, or loop. */
#include "format.h"

#include <sys/mman.h>

static uint64_t page_up(uint64_t n)
{
	return (n + IMAGE_PAGE - 1) & ~(uint64_t)(IMAGE_PAGE - 1);
}

size_t image_tables_size(const struct image_header *header)
{
	if (memcmp(header->magic, IMAGE_MAGIC, sizeof(header->magic)) != 0 ||
	    header->header_size != sizeof(*header) || header->page != IMAGE_PAGE ||
	    header->n_areas > IMAGE_AREAS_MAX || header->n_runs > IMAGE_RUNS_MAX ||
	    header->n_sources > IMAGE_SOURCES_MAX || header->text_size > IMAGE_TEXT_MAX)
		return 0;
	return page_up(sizeof(*header) + header->n_areas * sizeof(struct image_area) +
		       header->n_runs * sizeof(struct image_run) + header->n_sources * sizeof(struct image_source) +
		       header->text_size);
}

static bool is_range(uint64_t start, uint64_t end)
{
	return start % IMAGE_PAGE == 0 && end % IMAGE_PAGE == 0 && start >= 16ULL * IMAGE_PAGE && start < end &&
	       end <= IMAGE_END && (end <= IMAGE_ZONE || start >= IMAGE_ZONE_END);
}

static bool has_pages(const struct image_area *area)
{
	return area->kind == IMAGE_MEMORY || area->kind == IMAGE_COPY;
}

static bool has_source(const struct image_area *area)
{
	return area->kind == IMAGE_FILE || area->kind == IMAGE_SHARED;
}

static bool is_area(const struct image *image, const struct image_area *area, uint64_t before)
{
	unsigned writable = PROT_WRITE;

	return is_range(area->start, area->end) && area->start >= before && area->kind < _IMAGE_KIND_N &&
	       (area->protection & ~(PROT_READ | PROT_WRITE | PROT_EXEC)) == 0 &&
	       (area->flags & ~_IMAGE_FLAGS) == 0 && (area->kind == IMAGE_MEMORY || area->flags == 0) &&
	       area->offset % IMAGE_PAGE == 0 && area->offset < IMAGE_END &&
	       (!has_source(area) || area->source < image->header->n_sources) &&
	       (area->kind != IMAGE_SHARED || !(area->protection & writable));
}

static const char *areas_check(const struct image *image)
{
	uint64_t before = 0;

	for (uint32_t i = 0; i < image->header->n_areas; i++) {
		if (!is_area(image, &image->areas[i], before))
			return "an area is not one";
		before = image->areas[i].end;
	}
	return NULL;
}

/* Both are in order. */
static const char *runs_check(const struct image *image, size_t tables)
{
	const struct image_area *area = image->areas, *end = area + image->header->n_areas;
	uint64_t before = 0, size = tables;

	for (uint32_t i = 0; i < image->header->n_runs; i++) {
		const struct image_run *run = &image->runs[i];

		if (run->size > IMAGE_END || !is_range(run->start, run->start + run->size) || run->start < before)
			return "a run of pages is not one";
		before = run->start + run->size;
		size += run->size;
		while (area < end && area->end <= run->start)
			area++;
		if (area == end || area->start > run->start || area->end < before || !has_pages(area))
			return "a run of pages lies in no memory";
	}
	return size == image->header->size ? NULL : "it is not as long as it says";
}

static const char *sources_check(const struct image *image)
{
	const struct image_header *header = image->header;

	if (header->n_sources && (!header->text_size || image->text[header->text_size - 1]))
		return "its text has no end";
	for (uint32_t i = 0; i < header->n_sources; i++)
		if (image->sources[i].name >= header->text_size || image->text[image->sources[i].name] != '/')
			return "a source has no path";
	return NULL;
}

static bool overlaps(const struct image *image, uint64_t start, uint64_t end)
{
	for (uint32_t i = 0; i < image->header->n_areas; i++)
		if (image->areas[i].start < end && start < image->areas[i].end)
			return true;
	return false;
}

static const char *specials_check(const struct image *image)
{
	const struct image_special *specials = image->header->process.specials;
	uint64_t before = 0;

	for (size_t i = 0; i < IMAGE_SPECIALS && specials[i].size; i++) {
		uint64_t end = specials[i].start + specials[i].size;

		if (specials[i].size > IMAGE_END || !is_range(specials[i].start, end) ||
		    specials[i].start < before || overlaps(image, specials[i].start, end))
			return "the kernel's code has no place";
		before = end;
	}
	return NULL;
}

/* Where it goes on, and what it goes on with. */
static const char *process_check(const struct image *image)
{
	const struct image_process *process = &image->header->process;
	bool code = false, stack = false;

	for (uint32_t i = 0; i < image->header->n_areas; i++) {
		const struct image_area *area = &image->areas[i];

		code = code || (process->registers.rip - area->start < area->end - area->start &&
				area->protection & PROT_EXEC);
		stack = stack || (process->registers.rsp - area->start < area->end - area->start &&
				  area->kind == IMAGE_MEMORY && area->protection & PROT_WRITE);
	}
	return !code || !stack					    ? "it has nowhere to go on"
	       : memchr(process->name, '\0', sizeof(process->name)) ? NULL
								    : "its name has no end";
}

const char *image_parse(struct image *image, const void *data, size_t size)
{
	const struct image_header *header = data;
	const char *wrong;

	if (size < sizeof(*header) || size != image_tables_size(header))
		return "it is no image";
	image->header = header;
	image->areas = (const void *)(header + 1);
	image->runs = (const void *)(image->areas + header->n_areas);
	image->sources = (const void *)(image->runs + header->n_runs);
	image->text = (const void *)(image->sources + header->n_sources);
	wrong = areas_check(image);
	if (!wrong)
		wrong = runs_check(image, size);
	if (!wrong)
		wrong = sources_check(image);
	if (!wrong)
		wrong = specials_check(image);
	return wrong ? wrong : process_check(image);
}

/* ---- the digest: each step can be undone, so no single change of a word goes unnoticed ---- */

#define FACTOR 0x9e3779b97f4a7c15ULL

static uint64_t mix(uint64_t lane, uint64_t word)
{
	lane = (lane ^ word) * FACTOR;
	return lane << 31 | lane >> 33;
}

void image_digest_begin(struct image_digest *digest)
{
	*digest = (struct image_digest){.lanes = {1, 2, 3, 4}};
}

void image_digest_add(struct image_digest *digest, const void *data, size_t size)
{
	const char *at = data, *end = at + size;
	uint64_t words[4];

	digest->size += size;
	for (; end - at >= (ptrdiff_t)sizeof(words); at += sizeof(words)) {
		memcpy(words, at, sizeof(words));
		for (size_t i = 0; i < ARRAY_SIZE(words); i++)
			digest->lanes[i] = mix(digest->lanes[i], words[i]);
	}
	if (at == end)
		return;
	memset(words, 0, sizeof(words));
	memcpy(words, at, (size_t)(end - at));
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		digest->lanes[i] = mix(digest->lanes[i], words[i]);
}

void image_digest_end(struct image_digest *digest, uint64_t out[static 4])
{
	for (size_t round = 0; round < 3; round++)
		for (size_t i = 0; i < 4; i++)
			digest->lanes[i] = mix(digest->lanes[i], digest->lanes[(i + 1) % 4] + digest->size);
	memcpy(out, digest->lanes, sizeof(digest->lanes));
}

void image_digest_tables(struct image_digest *digest, const struct image_header *header, size_t size)
{
	struct image_header plain = *header;

	memset(plain.digest, 0, sizeof(plain.digest));
	image_digest_add(digest, &plain, sizeof(plain));
	image_digest_add(digest, header + 1, size - sizeof(plain));
}
