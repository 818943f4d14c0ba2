/* Tables. To know the width of a column we look at all rows before the first is printed. */
#include "table.h"

#include "base/text.h"

#include <stdio.h>

static void row_measure(int widths[TABLE_COLUMNS], char row[TABLE_COLUMNS][TABLE_CELL], int columns)
{
	for (int i = 0; i < columns; i++)
		widths[i] = MAX(widths[i], (int)text_columns(row[i]));
}

static void row_print(const int widths[TABLE_COLUMNS], char row[TABLE_COLUMNS][TABLE_CELL], int columns)
{
	for (int i = 0; i + 1 < columns; i++)
		printf("%s%*s  ", row[i], widths[i] - (int)text_columns(row[i]), "");
	puts(row[columns - 1]);
}

void table_print(const char heads[TABLE_COLUMNS][TABLE_CELL], struct lair_items items,
		 bool (*next)(struct lair_items items, size_t *cursor, table_row row))
{
	int widths[TABLE_COLUMNS] = {0}, columns = 0;

	while (columns < TABLE_COLUMNS && heads[columns][0])
		columns++;
	for (int pass = 0; pass < 2; pass++) {
		size_t cursor = 0;
		table_row row;

		memcpy(row, heads, sizeof(row));
		do {
			if (pass == 0)
				row_measure(widths, row, columns);
			else
				row_print(widths, row, columns);
		} while (next(items, &cursor, row));
	}
}
