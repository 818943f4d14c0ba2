/* Functions that the command line offers to cells: a list of them, each with the source that answers its calls. */
#pragma once

#include "cli.h"

/* A source of functions, such as commands. It belongs to its offer. */
struct source {
	struct source *next;
	/* Begin to answer. The call is the source's until it is answered or freed. */
	void (*call)(struct source *source, struct lair_calling *calling);
	/* The cell waits for that call no longer. */
	void (*cancel)(struct source *source, uint64_t number);
	/* The cell has ended. Calls that still run are ended, too, before this returns. */
	void (*end)(struct source *source);
	void (*free)(struct source *source);
};

struct offer;

/* The functions of the flags; NULL in *offerp if there are none. Returns 0 or an exit status, having
 * said why. */
int offer_new(struct offer **offerp, const struct cli *cli);
struct offer *offer_free(struct offer *offer);
/* Takes @source over. */
void offer_source(struct offer *offer, struct source *source);
/* Offer a function, whose texts are copied. --ask and --effect are heeded. Returns 0, -EEXIST or -ENOMEM. */
int offer_add(struct offer *offer, struct source *source, const struct lair_function *function);

/* For the exec. Valid until something is added. */
const struct lair_function *offer_functions(const struct offer *offer, size_t *np);

/* Calls of the cell that runs, and its end. */
void offer_call(struct offer *offer, struct lair_calling *calling);
void offer_cancel(struct offer *offer, uint64_t number);
void offer_end(struct offer *offer);

static inline void offer_freep(struct offer **offerp)
{
	*offerp = offer_free(*offerp);
}

/* commands.c: the functions of cli->functions, each of which is a command. Returns 0 or an exit status, having said
 * why. */
int commands_offer(struct offer *offer, const struct cli *cli);
/* server_tools.c: the tools of the servers of cli->servers, once they are known. Returns the same. */
int server_tools_offer(struct offer *offer, const struct cli *cli);
