/* The invisible characters of Unicode, as ranges. Characters that are not assigned yet count as visible: a table
 * of them would be out of date with the next version. */
#include "printable.h"

#include "proto/wire.h"

/* clang-format off */
static const struct range {
	uint32_t first, last;
} unseen[] = {
	{0x0, 0x20}, {0x7f, 0xa0}, {0xad, 0xad}, /* controls, spaces, the soft hyphen */
	{0x34f, 0x34f}, {0x600, 0x605}, {0x61c, 0x61c}, {0x6dd, 0x6dd}, {0x70f, 0x70f}, {0x890, 0x891}, {0x8e2, 0x8e2},
	{0x115f, 0x1160}, {0x1680, 0x1680}, {0x17b4, 0x17b5}, {0x180b, 0x180f},
	{0x2000, 0x200f}, {0x2028, 0x202f}, {0x205f, 0x206f}, /* spaces, joiners, directions */
	{0x2800, 0x2800}, {0x3000, 0x3000}, {0x3164, 0x3164},
	{0xd800, 0xf8ff}, /* surrogates and private use */
	{0xfdd0, 0xfdef}, {0xfeff, 0xfeff}, {0xffa0, 0xffa0}, {0xfff0, 0xfffb},
	{0x110bd, 0x110bd}, {0x110cd, 0x110cd}, {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
	{0xe0000, 0x10ffff}, /* tags, and private use */
};
/* clang-format on */

/* Of valid UTF-8. */
static uint32_t character_take(const uint8_t **at)
{
	uint32_t first = *(*at)++, n = first < 0x80 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
	uint32_t character = n ? first & (0x3fU >> n) : first;

	while (n-- > 0)
		character = character << 6 | (*(*at)++ & 0x3f);
	return character;
}

static bool seen(uint32_t character)
{
	for (size_t i = 0; i < ARRAY_SIZE(unseen); i++)
		if (character >= unseen[i].first && character <= unseen[i].last)
			return false;
	return (character & 0xfffe) != 0xfffe; /* no character in any plane */
}

bool printable(struct bytes text)
{
	const uint8_t *at = (const uint8_t *)text.data, *end = at ? at + text.size : at;

	if (!utf8_valid(text))
		return false;
	while (at < end)
		if (!seen(character_take(&at)))
			return false;
	return true;
}
