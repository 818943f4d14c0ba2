/* In place of base/event_clock.c: a clock that stands until the test sets it. The machine never sleeps. */
#pragma once

#include "proto/base.h"

extern uint64_t fake_now;
