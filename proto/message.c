/* The tables of message.h. */
#define WIRE_TABLES
#include "proto/message.h"
