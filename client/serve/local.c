#include "local.h"

#include "proto/base.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>

struct question {
	struct nlmsghdr head;
	struct inet_diag_req_v2 about;
};

union end {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* Both ends of a connection, of one family. */
struct ends {
	union end ours, theirs;
};

static int ends_of(struct ends *ends, int fd)
{
	socklen_t size = sizeof(ends->ours), other = sizeof(ends->theirs);

	memset(ends, 0, sizeof(*ends));
	if (getsockname(fd, &ends->ours.any, &size) < 0 || getpeername(fd, &ends->theirs.any, &other) < 0)
		return -errno;
	return ends->ours.any.sa_family == ends->theirs.any.sa_family ? 0 : -EAFNOSUPPORT;
}

static void end_put(const union end *end, __be16 *port, __be32 address[static 4])
{
	if (end->any.sa_family == AF_INET6) {
		*port = end->in6.sin6_port;
		memcpy(address, &end->in6.sin6_addr, sizeof(end->in6.sin6_addr));
	} else {
		*port = end->in.sin_port;
		address[0] = end->in.sin_addr.s_addr;
	}
}

/* The answer to a question about one socket: 0 or -errno. -ENOENT: there is no such socket. */
static int ask(int local, struct question *question, struct inet_diag_msg *found)
{
	union {
		struct nlmsghdr head;
		char bytes[1024];
	} answer;
	ssize_t n;

	if (send(local, question, sizeof(*question), 0) < 0)
		return -errno;
	n = recv(local, &answer, sizeof(answer), 0);
	if (n < (ssize_t)sizeof(answer.head) || answer.head.nlmsg_len > (size_t)n)
		return n < 0 ? -errno : -EPROTO;
	if (answer.head.nlmsg_type == NLMSG_ERROR && n >= (ssize_t)NLMSG_LENGTH(sizeof(struct nlmsgerr)))
		return ((const struct nlmsgerr *)NLMSG_DATA(&answer.head))->error;
	if (answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY || n < (ssize_t)NLMSG_LENGTH(sizeof(*found)))
		return -EPROTO;
	memcpy(found, NLMSG_DATA(&answer.head), sizeof(*found));
	return 0;
}

static int ask_about(int local, const struct ends *ends, struct inet_diag_msg *found)
{
	struct question question = {
		.head = {.nlmsg_len = sizeof(question),
			 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			 .nlmsg_flags = NLM_F_REQUEST},
		.about = {.sdiag_family = (__u8)ends->ours.any.sa_family,
			  .sdiag_protocol = IPPROTO_TCP,
			  .idiag_states = UINT32_MAX,
			  .id.idiag_cookie = {(__u32)INET_DIAG_NOCOOKIE, (__u32)INET_DIAG_NOCOOKIE}},
	};

	/* It is asked about the other end, so its source is theirs. */
	end_put(&ends->theirs, &question.about.id.idiag_sport, question.about.id.idiag_src);
	end_put(&ends->ours, &question.about.id.idiag_dport, question.about.id.idiag_dst);
	return ask(local, &question, found);
}

int local_open(void)
{
	const struct timeval patience = {.tv_sec = 1};
	struct ends nobody = {.ours.in.sin_family = AF_INET, .theirs.in.sin_family = AF_INET};
	int local = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG), r;
	struct inet_diag_msg found;

	if (local < 0)
		return -errno;
	(void)setsockopt(local, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	r = ask_about(local, &nobody, &found);
	if (!r || r == -ENOENT)
		return local;
	fd_close(local);
	return r;
}

/* A socket that no process has any more has no inode, and then its user is 0, whoever that was. */
bool local_is_ours(int local, int fd)
{
	struct inet_diag_msg found = {0};
	struct ends ends;

	return !ends_of(&ends, fd) && !ask_about(local, &ends, &found) && found.idiag_inode != 0 &&
	       (found.idiag_uid == geteuid() || found.idiag_uid == 0);
}
