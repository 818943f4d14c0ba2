/* The warden's turns on a processor. */
#pragma once

/* Short, and so soon, whatever cells have started. Its forks have the usual ones. */
void turns_shorten(void);
