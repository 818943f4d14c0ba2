/* Who can have an image, and what it must be the same in. */
#include "image.h"

#include "machine.h"
#include "memory.h"

#include <dirent.h>
#include <link.h>
#include <stdio.h>
#include <sys/prctl.h>

#if IMAGE_MACHINE

/* The linker numbers each build of the program. */
static int build_find(struct dl_phdr_info *program, size_t size, void *data)
{
	struct bytes *build = data;

	for (int i = 0; i < program->dlpi_phnum && !build->data; i++) {
		const ElfW(Phdr) *part = &program->dlpi_phdr[i];
		const char *at = (const char *)(program->dlpi_addr + part->p_vaddr), *end = at + part->p_memsz;

		while (part->p_type == PT_NOTE && end - at > (ptrdiff_t)sizeof(ElfW(Nhdr))) {
			const ElfW(Nhdr) *note = (const void *)at;
			const char *name = at + sizeof(*note), *content = name + ((note->n_namesz + 3U) & ~3U);

			if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && strcmp(name, "GNU") == 0)
				*build = (struct bytes){content, note->n_descsz};
			at = content + ((note->n_descsz + 3U) & ~3U);
		}
	}
	return 1; /* the program comes first, and the libraries are sources */
}

static struct bytes build(void)
{
	struct bytes found = {0};

	(void)dl_iterate_phdr(build_find, &found);
	return found;
}

const char *image_impossible(void)
{
	unsigned size = 0;

	if (image_shadowed())
		return "processes with shadow stacks have no images";
	if (prctl(PR_SET_MM, PR_SET_MM_MAP_SIZE, &size, 0, 0) < 0)
		return "this kernel cannot restore processes (CONFIG_CHECKPOINT_RESTORE)";
	return build().data ? NULL : "the program has no build id";
}

void image_identify(struct image_identity *identity, const uint8_t subject[static SHA256_SIZE])
{
	struct image_special specials[IMAGE_SPECIALS];

	sha256(identity->build, build());
	memcpy(identity->subject, subject, SHA256_SIZE);
	image_machine(identity->machine);
	(void)memory_specials(specials);
	memory_kernel(identity->kernel, specials);
}

const char *image_lacks(int first, int except)
{
	static char why[128];
	DIR *directory = opendir("/proc/self/fd");
	struct dirent *entry;
	int found = -1;

	if (!directory)
		return "its descriptors cannot be listed";
	while (found < 0 && (entry = readdir(directory))) {
		int fd = (int)strtol(entry->d_name, NULL, 10);

		if (entry->d_name[0] != '.' && fd >= first && fd != except && fd != dirfd(directory))
			found = fd;
	}
	if (found >= 0) {
		char path[32], target[64];
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", found);
		n = readlink(path, target, sizeof(target));
		snprintf(why, sizeof(why), "what is preloaded holds %.*s open", (int)MAX(n, 0), target);
	}
	(void)closedir(directory);
	return found >= 0 ? why : NULL;
}

#else

const char *image_impossible(void)
{
	return "there are no images on this kind of processor";
}

void image_identify(struct image_identity *identity, const uint8_t subject[static SHA256_SIZE])
{
	*identity = (struct image_identity){.build = {0}};
	memcpy(identity->subject, subject, SHA256_SIZE);
}

const char *image_lacks(int first, int except)
{
	return image_impossible();
}

const char *image_write(int directory, const char *name, const struct image_identity *identity,
			char *const *sources, bool *wokenp)
{
	*wokenp = false;
	return image_impossible();
}

const char *image_wake(int directory, const char *name, const char *aside, const struct image_identity *identity)
{
	return image_impossible();
}

#endif
