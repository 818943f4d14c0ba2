/* Operations as objects: asked for, answered, and kept for the next router. */
#include "operation.h"

#include "sessions.h"
#include "vault/records.h"

#include <stdio.h>

int operation_new(struct operation **operationp, enum operation_kind kind, const struct address *request,
		  struct bytes name)
{
	struct operation *operation = calloc(1, sizeof(*operation));

	if (!operation)
		return -ENOMEM;
	list_init(&operation->node);
	msgpack_sbuffer_init(&operation->effects);
	operation->kind = kind;
	operation->request = *request;
	snprintf(operation->name, sizeof(operation->name), "%.*s", (int)name.size, name.size ? name.data : "");
	*operationp = operation;
	return 0;
}

struct operation *operation_free(struct operation *operation)
{
	if (operation) {
		list_remove(&operation->node);
		if (operation->question)
			question_free(operation->question);
		msgpack_sbuffer_destroy(&operation->effects);
		free(operation);
	}
	return NULL;
}

static struct clients *clients_of(const struct session *session)
{
	return session->sessions->clients;
}

void operation_refuse(struct session *session, struct operation *operation, const char *why)
{
	client_error(clients_of(session), &operation->request, "gone", "%s", why);
	if (session->operation == operation)
		session->operation = NULL;
	operation_free(operation);
}

void operation_done(struct session *session)
{
	session->operation = operation_free(session->operation);
}

void operation_on_homeless(struct session *session, const char *code, const char *why)
{
	client_error(clients_of(session), &session->operation->request, code,
		     "the files for session \"%s\" cannot be copied: %s", session->id, why);
	operation_done(session);
}

bool operation_is_birth(const struct session *session)
{
	const struct operation *operation = session->operation;

	return operation && operation->kind == OPERATION_BRANCH && !strcmp(operation->branch, session->id);
}

/* ---- for the next router ---- */

int operation_put(msgpack_sbuffer *buffer, const struct operation *operation)
{
	static const struct question none;
	const struct question *question = operation->question ? operation->question : &none;
	struct operation_record record = {
		.kind = operation->kind,
		.promise = promise_serial(&operation->request),
		.name = record_text(operation->name),
		.branch = record_text(operation->branch),
		.effects = wire_bytes(&operation->effects),
		.asks = operation->question != NULL,
		.question = question->kind,
		.about = question->number,
	};

	OPERATION_VALUES(RECORD_PUT, operation);
	QUESTION_VALUES(RECORD_PUT, question);
	return wire_encode_body(buffer, &operation_record_schema, &record);
}

int operation_take(struct operation **operationp, struct operation_record *record, const struct session *session,
		   struct bytes body)
{
	struct operation *operation;
	struct wire_fault fault;
	struct address address;
	int r;

	if (wire_decode_known(record, &operation_record_schema, body, &fault))
		return -EBADMSG;
	address = session_claim(session, record->promise);
	r = operation_new(&operation, (enum operation_kind)record->kind, &address, record->name);
	if (r)
		return r;
	*operationp = operation;
	bytes_copy(operation->branch, sizeof(operation->branch), record->branch);
	OPERATION_VALUES(RECORD_TAKE, operation);
	record_take_buffer(&operation->effects, record->effects);
	return 0;
}
