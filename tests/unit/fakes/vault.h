/* In place of vault/vault.c and vault/errand.c: the keeper is this process, and does no errand. */
#pragma once

#include "vault/vault.h"

/* What has been stored, for the next router, which takes it. */
void fake_vault_inherit(struct vault *vault);
/* What is left of that. */
void fake_vault_end(struct vault *vault);
