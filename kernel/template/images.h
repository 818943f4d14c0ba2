/* The image of a template: the template that has imported writes it, and the next one wakes from it. What a cage
 * needs is not in it, but is prepared anew. */
#pragma once

#include "image/image.h"

#include "proto/channel.h"

struct images {
	int directory;	    /* the router's; -1: no image is wanted, or all has been done with it */
	const char *unused; /* why this template does not come from an image; NULL: it does, or none is wanted */
	bool woken;
	bool proven; /* it has come from an image, and made a warden */
	char **sources;
	struct image_identity identity;
	char name[SHA256_HEX_SIZE], aside[SHA256_HEX_SIZE + 8];
	int report; /* of the process that writes the image, or -1 */
	pid_t writer;
};

/* `configure` waits in @channel. If there is an image for it, this process becomes it: a template in which
 * images_keep returns. Else it returns here, and `configure` still waits. @buffer: CHANNEL_SIZE_MAX bytes. */
void images_wake(struct images *images, int channel, char *buffer);

/* @directory came with `configure`, or is -1; it is taken over. */
void images_begin(struct images *images, int directory);

/* Everything is imported: find out what an image depends on. */
void images_find_sources(struct images *images);

/* Whether an image should be written, once nobody waits for the template. */
bool images_is_due(const struct images *images);

/* Fork a process that writes it. It keeps nothing that @forget wipes. Returns NULL, or why there will be none. In
 * the process that wakes, *@wokenp becomes true: what had been begun for a cage is to be prepared anew. */
const char *images_keep(struct images *images, int channel, void (*forget)(void *data), void *data, bool *wokenp);

/* images->report can be read: the writer has ended. Returns NULL: it is written; or why it is not. */
const char *images_finish(struct images *images);

/* A warden was made. An image that a template wakes from is put aside until then, so that one of which templates
 * die is tried but once. */
void images_prove(struct images *images);
