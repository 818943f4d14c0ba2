/* Finds out, by building it, what cage this host allows: for `lair doctor`. */
#pragma once

/* Print one fact a line, "name<TAB>value", on stdout. Returns the exit status. */
int doctor_run(char *const groups[]);
