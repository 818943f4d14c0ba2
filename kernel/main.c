/* lair-kernel: laird's keeper starts it as a template, with the template's end of a pair to the router. Wardens
 * and interpreters are its forks. Or it is a builder, which makes a set of packages. `lair doctor` starts it to
 * find out what cage this host allows. */
#include "packages/builder.h"
#include "template/cost.h"
#include "template/doctor.h"
#include "template/template.h"

#include "proto/base.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define CHANNEL_FD 3

static bool is_channel(int fd)
{
	socklen_t size = sizeof(int);
	int type;

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

int main(int argc, char *argv[])
{
	if (argc >= 2 && strcmp(argv[1], "--doctor") == 0)
		return doctor_run(argv + 2);
	if (argc == 2 && strcmp(argv[1], "--cost") == 0)
		return cost_run();
	if (argc == 2 && strcmp(argv[1], "--builder") == 0 && is_channel(CHANNEL_FD))
		return builder_run(CHANNEL_FD);
	if (argc != 2 || !is_channel(CHANNEL_FD)) {
		(void)fprintf(stderr, "%s is started by laird\n", argc > 0 ? argv[0] : "lair-kernel");
		return 2;
	}
	umask(077);
	return template_run(CHANNEL_FD);
}
