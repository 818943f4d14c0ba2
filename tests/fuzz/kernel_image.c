/* The tables of an image from anybody: what passes keeps its promises. */
#include "image/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct image *image)
{
	const struct image_header *header = image->header;
	uint64_t before = 0;

	for (uint32_t i = 0; i < header->n_areas; i++) {
		if (image->areas[i].start < before || image->areas[i].end > IMAGE_END ||
		    (image->areas[i].start < IMAGE_ZONE_END && image->areas[i].end > IMAGE_ZONE))
			abort();
		before = image->areas[i].end;
	}
	for (uint32_t i = 0; i < header->n_sources; i++)
		if (strlen(image->text + image->sources[i].name) >= header->text_size)
			abort();
}

/* The header is mostly zeroes: the fuzzer gives what matters in it, and the rest of the tables. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct image_header header = {.header_size = sizeof(header), .page = IMAGE_PAGE};
	const size_t given = 4 * sizeof(uint32_t) + sizeof(struct image_registers);
	struct image image;
	char *tables;
	size_t whole;

	if (size < given)
		return 0;
	memcpy(header.magic, IMAGE_MAGIC, sizeof(header.magic));
	memcpy(&header.n_areas, data, 4 * sizeof(uint32_t));
	memcpy(&header.process.registers, data + 4 * sizeof(uint32_t), sizeof(struct image_registers));
	header.n_areas %= 64;
	header.n_runs %= 64;
	header.n_sources %= 64;
	header.text_size %= 4096;
	header.size = whole = image_tables_size(&header);
	tables = calloc(1, whole);
	if (!tables)
		return 0;
	memcpy(tables, &header, sizeof(header));
	memcpy(tables + sizeof(header), data + given, MIN(size - given, whole - sizeof(header)));
	for (uint32_t i = 0; i < header.n_runs; i++)
		((struct image_header *)(void *)tables)->size +=
			((struct image_run *)(void *)(tables + sizeof(header) +
						      header.n_areas * sizeof(struct image_area)))[i]
				.size;
	if (!image_parse(&image, tables, whole))
		check(&image);
	free(tables);
	return 0;
}
