/* lair jupyter: sessions as kernels of Jupyter, by its messaging protocol 5.3. */
#pragma once

#include "proto/base.h"

#include "base/asked.h"
#include "lair.h"

struct jupyter_options {
	struct lair_options lair;
	const char *connection;	      /* the path of the connection file */
	const char *session;	      /* NULL: one of this kernel's own, that ends with it */
	const char *profile;	      /* NULL: LAIR_WORKBENCH */
	struct asked_settings *asked; /* of the session */
	bool by_path;		      /* without @session: one for each notebook, named after its path */
	double timeout;		      /* of a cell, in seconds; 0: as long as the profile allows */
};

/* Serve until a client says that the kernel is to end, a signal does, or the parent is gone. Returns 0 or an exit
 * status, having said on stderr why. */
int jupyter_run(const struct jupyter_options *options);

struct jupyter_spec {
	const char *name;	      /* of the kernel's directory; NULL: "lair" */
	const char *prefix;	      /* where to install; NULL: for the user */
	const char *display;	      /* what menus show */
	const char *const *arguments; /* of `lair jupyter run`, ended by NULL */
};

/* Write kernel.json and logos. @path gets the directory, PATH_MAX bytes. Returns 0 or -errno. */
int jupyter_install(const struct jupyter_spec *spec, char *path);
