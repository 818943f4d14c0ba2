/* The builder: it makes one set of packages and ends. */
#pragma once

/* The whole of its process; @channel: to the router. Returns its exit status. */
int builder_run(int channel);
