/* What cage this host allows, found out by building it: for `lair doctor`. */
#pragma once

/* Print one fact a line, "name<TAB>value", on stdout. Returns the exit status. */
int doctor_run(char *const groups[]);
