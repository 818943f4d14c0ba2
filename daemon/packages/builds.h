/* Sets of packages that are being made, each once, however many wait for it. The key of a build is the digest of
 * all that its outcome depends on. This room does not know who waits: sessions look for the build of their key. */
#pragma once

#include "config/config.h"
#include "proto/event.h"
#include "store.h"

struct breaker;

struct builds {
	struct event_loop *loop;
	struct breaker *breaker;
	struct package_store store;
	const struct config *config; /* the settings in force */
	struct list all;
	size_t n_running;
	/* The build with @key has ended; @set or @reason is NULL. */
	void (*on_built)(struct builds *builds, const char *key, const char *set, const char *reason);
	/* It does something else now: builds_told() */
	void (*on_told)(struct builds *builds, const char *key);
};

/* What is asked for. */
struct package_order {
	const struct profile *profile;
	char **requirements; /* normalized, in order, each once */
	size_t n;
	struct bytes base; /* the set that it grows from, or empty */
	uid_t uid;	   /* who does it, 0: laird's own user */
	uid_t owner;	   /* who asks for it */
};

void builds_init(struct builds *builds, struct event_loop *loop, struct breaker *breaker);
void builds_deinit(struct builds *builds);

/* The digest of @order. */
void package_order_key(char key[static SHA256_HEX_SIZE], const struct package_order *order);

/* Begin, unless it is under way. Returns NULL, or why it cannot be. */
const char *builds_begin(struct builds *builds, const struct package_order *order, const char *key);
/* What uv keeps is removed, unless a build needs it now. */
void builds_drop_cache(const struct builds *builds);
/* What the build of @key does; NULL: there is none. */
const char *builds_told(const struct builds *builds, const char *key);

/* The types of what a builder may say; NULL after the last. */
const char *builder_message_type(size_t i);
