/* A kind and the layout of what is stored, in one number. */
#include "kind.h"

uint64_t vault_kind_of(enum vault_kind kind)
{
	return kind ? kind | (uint64_t)VAULT_LAYOUT << 32 : 0;
}

bool vault_kind_is_ours(uint64_t kind)
{
	return kind >> 32 == VAULT_LAYOUT;
}
