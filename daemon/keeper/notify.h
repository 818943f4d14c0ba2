/* The readiness protocol of service managers, sd_notify(3). */
#pragma once

/* Send @state ("READY=1") to $NOTIFY_SOCKET, if there is one. It may be lost without harm. */
void notify_manager(const char *state);
/* The same, with a descriptor. Returns 0 if it was sent. */
int notify_manager_of(const char *state, int about);

/* Tell the manager that we are alive, if it wants to know ($WATCHDOG_USEC). */
void notify_alive(void);
