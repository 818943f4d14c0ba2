/* Questions: what is sent to the interpreter, and what may come back. An answer is decoded by the table of its
 * kind, lists item by item, and encoded anew. */
#include "question.h"

#define ANSWER_MAX ((size_t)4 << 20)
#define SENTENCE_MAX 256

/* An answer, under whichever name. Each begins with its id. */
union answer {
	uint64_t id;
	struct complete_reply complete;
	struct inspect_reply inspect;
	struct vars_reply vars;
	struct is_complete_reply is_complete;
	struct check_reply check;
};

static bool match_valid(struct bytes body)
{
	struct completion_match match;
	struct wire_fault fault;

	return !wire_decode(&match, &completion_match_schema, body, &fault);
}

static bool variable_valid(struct bytes body)
{
	struct variable_record variable;
	struct wire_fault fault;
	size_t cursor = 0;
	uint64_t length;

	if (wire_decode(&variable, &variable_record_schema, body, &fault))
		return false;
	if (!variable.shape.data)
		return true;
	while (wire_next_uint(variable.shape, &cursor, &length))
		;
	return cursor == variable.shape.size;
}

static const struct {
	const char *name;
	const struct wire_schema *reply; /* NULL: it is empty */
	size_t items;			 /* where its list is; 0: it has none */
	bool (*item_valid)(struct bytes body);
} kinds[] = {
	[QUESTION_COMPLETE] = {"complete", &complete_reply_schema, offsetof(struct complete_reply, matches),
			       match_valid},
	[QUESTION_INSPECT] = {"inspect", &inspect_reply_schema, 0, NULL},
	[QUESTION_VARS] = {"vars", &vars_reply_schema, offsetof(struct vars_reply, variables), variable_valid},
	[QUESTION_KEEP] = {"keep", NULL, 0, NULL},
	[QUESTION_IS_COMPLETE] = {"is_complete", &is_complete_reply_schema, 0, NULL},
	[QUESTION_CHECK] = {"check", &check_reply_schema, 0, NULL},
};

static int keep_bytes(char **copyp, size_t *sizep, struct bytes bytes)
{
	if (!bytes.data)
		return 0;
	*copyp = malloc(bytes.size + 1);
	if (!*copyp)
		return -ENOMEM;
	memcpy(*copyp, bytes.data, bytes.size);
	*sizep = bytes.size;
	return 0;
}

uint64_t question_price(struct bytes code, struct bytes names)
{
	return 2 * (code.size + names.size);
}

int question_new(struct question **questionp, enum question_kind kind, struct user *user, struct bytes code,
		 struct bytes names)
{
	struct question *question = calloc(1, sizeof(*question));

	if (!question)
		return -ENOMEM;
	question->kind = kind;
	question->changes = kind == QUESTION_KEEP || names.data;
	if (keep_bytes(&question->code, &question->code_size, code) ||
	    keep_bytes(&question->names, &question->names_size, names)) {
		question_free(question);
		return -ENOMEM;
	}
	question->user = user;
	user_charge(user, question_price(code, names));
	*questionp = question;
	return 0;
}

struct question *question_free(struct question *question)
{
	if (question) {
		user_give_back(question->user, 2 * (question->code_size + question->names_size));
		free(question->code);
		free(question->names);
		free(question);
	}
	return NULL;
}

struct question_message question_message(const struct question *question)
{
	return (struct question_message){
		.serial = question->serial,
		.kind = bytes_of(kinds[question->kind].name),
		.code = {.data = question->code, .size = question->code_size},
		.cursor = question->cursor,
		.source = question->source,
		.names = {.data = question->names, .size = question->names_size},
	};
}

static bool items_valid(struct bytes raw, bool (*valid)(struct bytes body))
{
	size_t cursor = 0;
	struct bytes item;

	while (wire_next(raw, &cursor, &item))
		if (!valid(item))
			return false;
	/* An array, and nothing of it left over. */
	return cursor == raw.size;
}

static int reply_answer(const struct question *question, struct clients *clients, const struct address *request,
			struct bytes body)
{
	const struct wire_schema *schema = kinds[question->kind].reply;
	size_t items = kinds[question->kind].items;
	struct wire_fault fault;
	union answer answer = {.id = 0};

	if (!schema)
		schema = &empty_reply_schema;
	else if (body.size > ANSWER_MAX || wire_decode(&answer, schema, body, &fault))
		return WIRE_E_FIELD;
	if (items && !items_valid(*(struct bytes *)((char *)&answer + items), kinds[question->kind].item_valid))
		return WIRE_E_FIELD;
	answer.id = request->id;
	client_send(clients, request, schema, &answer);
	return 0;
}

/* A sentence of the interpreter, made one line of bounded length. */
static void sentence_tame(char sentence[static SENTENCE_MAX], struct bytes text)
{
	size_t size = MIN(text.size, (size_t)SENTENCE_MAX - 1);

	while (size > 0 && size < text.size && (text.data[size] & 0xc0) == 0x80)
		size--;
	for (size_t i = 0; i < size; i++)
		sentence[i] = (unsigned char)text.data[i] < ' ' || text.data[i] == 0x7f ? '?' : text.data[i];
	sentence[size] = '\0';
}

int question_reply(const struct question *question, struct clients *clients, const struct address *request,
		   const struct told_message *told, bool *donep)
{
	char sentence[SENTENCE_MAX];

	*donep = told->answer.data != NULL;
	if (*donep)
		return reply_answer(question, clients, request, told->answer);
	sentence_tame(sentence, told->refused);
	if (told->refused.data)
		client_error(clients, request, "bad_request", "%s", sentence);
	else
		client_error(clients, request, "limit",
			     "%s took too long, or more room than there is: it was given up",
			     kinds[question->kind].name);
	return 0;
}
