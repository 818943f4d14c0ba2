/* Requests that are for all of laird: for root and laird's own user alone. */
#include "request.h"

#include "session/life/stop.h"

#include <signal.h>

bool is_operator(struct sessions *sessions, const struct address *from, const char *act)
{
	if (from->uid == 0 || from->uid == geteuid())
		return true;
	client_error(sessions->clients, from, "denied", "only root and laird's own user may %s", act);
	return false;
}

void handle_reload(struct sessions *sessions, const struct address *from, const struct request *request)
{
	if (is_operator(sessions, from, "have it read its settings again"))
		sessions->reload(sessions, from);
}

void handle_stop(struct sessions *sessions, const struct address *from, const struct request *request)
{
	if (!is_operator(sessions, from, "stop it"))
		return;
	sessions_stop_ask(sessions, from);
	(void)kill(getppid(), SIGTERM);
}
