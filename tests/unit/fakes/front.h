/* In place of front/front.c: whoever asks is always there, reads at once, and what it is sent is the test's to see.
 */
#pragma once

#include "front/front.h"

/* Called with each message as it is sent; never NULL. */
extern void (*fake_front_on_message)(uint64_t connection, struct bytes message);
/* Connections that were hung up. */
extern unsigned fake_front_hung_up;
/* What is to come of the next messages: 0, FRONT_E_WAITS, FRONT_E_GONE. */
extern int fake_front_result;
