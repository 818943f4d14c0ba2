/* Functions that cells may call: the tools of MCP servers. Their calls are answered here, and a person is asked
 * about those that ask, by the client if it can do that. */
#pragma once

#include "engine.h"

/* Go on with @then, as soon as it is known which functions there are, or soon. */
void functions_wait(struct request *request, void (*then)(struct request *request));
/* Resume the requests of the engine @userdata that wait for that. */
void functions_resume(void *userdata);

/* Offer them to a cell, whose calls belong to @request, as its userdata. */
void functions_offer(struct request *request, struct lair_exec *exec);
/* The same for a cell that runs already, unless another request answers its calls. */
void functions_attach(struct request *request, struct lair_attach *attach);
/* The request is answered, but its cell runs on: its calls are answered nevertheless. Returns false if it can be
 * dropped. */
bool functions_keep(struct request *request);
/* Its cell has ended. */
void functions_end(struct request *request);

/* Calls of the cell that wait for approval: {number, function, arguments}. Borrowed; NULL: none. */
json_t *functions_asking(const struct request *request);
/* In the stateless era: what asks the client about them, in the place of a result; new. NULL: it cannot be asked.
 */
json_t *functions_input_required(const struct request *request, json_t *handle);
/* And its answers. */
void functions_input_take(struct request *request, const char *key, const json_t *responses);
/* Nobody answers the questions to the client any more. */
void functions_forget(struct engine *engine);
/* In the other era: a response of the client. */
void functions_response(struct engine *engine, const struct rpc *rpc);

/* Whether a client with these capabilities can ask a person. */
bool functions_elicits(const json_t *capabilities);
/* Their description for a model; "" if there are none. New. */
json_t *functions_instructions(const struct engine *engine);
