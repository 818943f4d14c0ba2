/* The template: one warm process a profile, from which wardens are cloned. It never runs user code. */
#pragma once

/* Serve the router on @channel until it closes. Returns the exit status of the process. */
int template_run(int channel);
