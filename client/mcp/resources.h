/* The files of sessions as resources. */
#pragma once

#include "engine.h"

/* The methods. */
void resources_list(struct request *request);
void resources_templates(struct request *request);
void resources_read(struct request *request);
