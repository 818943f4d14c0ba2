/* The tables of the ledgers. */
#define WIRE_TABLES
#include "records.h"
