/* The service manager's readiness protocol, sd_notify(3), for those who run laird under one. */
#pragma once

/* Send @state ("READY=1") to $NOTIFY_SOCKET, if there is one. Nobody depends on its arrival. */
void notify_manager(const char *state);
/* The same, about a descriptor. Returns 0 if it is on its way. */
int notify_manager_of(const char *state, int about);

/* To a manager that wants to hear from us every now and then ($WATCHDOG_USEC). */
void notify_alive(void);
