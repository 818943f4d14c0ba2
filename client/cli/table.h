/* Lists for people: rows in columns of the necessary width. */
#pragma once

#include "lair.h"

enum { TABLE_COLUMNS = 11, TABLE_CELL = 192 };

typedef char table_row[TABLE_COLUMNS][TABLE_CELL];

/* Print @items under @heads, of which the first empty one ends the columns. @next fills @row from the item at
 * @cursor, as the lair_next_* do; false at the end. It is asked for every item twice. */
void table_print(const char heads[TABLE_COLUMNS][TABLE_CELL], struct lair_items items,
		 bool (*next)(struct lair_items items, size_t *cursor, table_row row));
