/* Calls that ask to be approved, while a cell runs in the foreground. At a terminal the person is asked, one call
 * after the other; input from before the question is not an answer to it. Elsewhere a line says once who may
 * answer. */
#include "run.h"

#include "base/json.h"
#include "base/text.h"
#include "calls.h"

#include <inttypes.h>
#include <termios.h>

/* Only visible values can be approved; so much of each is shown. */
#define VALUE_MAX 400
/* Of a call in a line. */
#define TOLD_SIZE 600

struct approval {
	struct approval *next;
	uint64_t number;
	char *function, *text;
	char *whole; /* if the text leaves something out */
};

bool approval_possible(const struct run *run)
{
	return run->answers && !run->cli->json && isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

static void say(const char *text)
{
	(void)write_all(STDERR_FILENO, lair_text(text));
}

static struct approval *approval_free(struct approval *approval)
{
	free(approval->function);
	free(approval->text);
	free(approval->whole);
	free(approval);
	return NULL;
}

void approvals_end(struct run *run)
{
	struct approval *approval;

	if (run->approving)
		say("\n");
	run->approving = false;
	while ((approval = run->approvals)) {
		run->approvals = approval->next;
		approval_free(approval);
	}
}

/* ---- asking ---- */

static void question_print(struct run *run)
{
	say(run->approvals->text);
	say(run->approvals->whole ? ": allow? [y/N, all shows all of it] " : ": allow? [y/N] ");
	screen_mark(&run->cli->terminal.screen);
}

void approval_ask(struct run *run)
{
	if (run->asking || run->approving || !run->approvals)
		return;
	(void)tcflush(STDIN_FILENO, TCIFLUSH);
	run->input.start = run->input.end = 0;
	question_print(run);
	run->approving = true;
}

/* A cell may write what looks like a question about another call. So the real one is the last that is seen. */
void approval_repeat(struct run *run)
{
	if (!run->approving)
		return;
	if (run->in_line)
		say("\n");
	run->in_line = false;
	question_print(run);
}

/* Ask again later. */
void approval_put_off(struct run *run)
{
	if (run->approving)
		say("\n");
	run->approving = false;
}

static void on_decided(struct lair_call *call, void *userdata)
{
	if (lair_outcome(call))
		cli_notice("the decision was not used: %s", lair_call_error(call));
	lair_call_free(call);
}

static void decide(struct run *run, const struct approval *approval, bool approve)
{
	_cleanup_(freep) char *text = NULL;
	struct lair_answer answer = {.exec = run->call, .number = approval->number, .approve = approve};
	struct lair_call *call = NULL;
	int r = 0;

	if (!approve &&
	    asprintf(&text, "%s was refused: the person at the terminal said no", approval->function) < 0)
		r = -ENOMEM;
	if (!approve) {
		answer.error = "PermissionError";
		answer.text = text;
	}
	if (!r)
		r = lair_answer_call(run->cli->lair, &call, &answer);
	if (r)
		cli_notice("the decision could not be sent: %s", lair_error(run->cli->lair));
	else
		lair_on_done(call, on_decided, NULL);
}

static bool is_yes(struct lair_text line)
{
	return line.size > 0 && (line.data[0] == 'y' || line.data[0] == 'Y') &&
	       (line.size == 1 || (line.size == 3 && strncasecmp(line.data, "yes", 3) == 0));
}

/* Then it is asked again. */
static bool wants_all(struct run *run, struct lair_text line)
{
	if (!run->approvals->whole || line.size != 3 || strncasecmp(line.data, "all", 3) != 0)
		return false;
	say(run->approvals->whole);
	say("\n");
	return true;
}

void approval_answer(struct run *run, struct lair_text line)
{
	struct approval *approval = run->approvals;

	run->approving = false;
	if (wants_all(run, line)) {
		approval_ask(run);
		return;
	}
	run->approvals = approval->next;
	if (line.data) {
		decide(run, approval, is_yes(line));
	} else {
		say("\n");
		cli_notice("%s still waits: lair answer answers it, lair calls shows it", approval->text);
	}
	approval_free(approval);
	approval_ask(run);
}

/* ---- calls that come and go ---- */

static void event_print(struct run *run, const struct lair_waiting *waiting)
{
	run_print(run, json_pack("{s:s, s:o}", "event", "held", "call", json_waiting(waiting)));
}

static void approval_add(struct run *run, const struct lair_waiting *waiting, char **textp)
{
	struct approval *approval = calloc(1, sizeof(*approval)), **place = &run->approvals;

	if (!approval)
		return;
	approval->number = waiting->number;
	approval->text = steal_ptr(textp);
	approval->whole = call_text(waiting->function, waiting->arguments, waiting->bytes, SIZE_MAX);
	if (approval->whole && strcmp(approval->whole, approval->text) == 0) {
		free(approval->whole);
		approval->whole = NULL;
	}
	approval->function = strndup(waiting->function.data, waiting->function.size);
	if (!approval->function) {
		approval_free(approval);
		return;
	}
	while (*place)
		place = &(*place)->next;
	*place = approval;
}

void approval_begin(struct run *run, const struct lair_waiting *waiting)
{
	_cleanup_(freep) char *text = call_text(waiting->function, waiting->arguments, waiting->bytes, VALUE_MAX);
	char name[CALL_NAME_SIZE], shown[TOLD_SIZE];

	if (!text)
		return;
	if (run->events) {
		event_print(run, waiting);
	} else if (approval_possible(run)) {
		approval_add(run, waiting, &text);
		approval_ask(run);
	} else {
		cli_notice("%s waits for approval: lair answer %s --approve, or --refuse WHY",
			   text_cut(shown, sizeof(shown), text), call_name(name, waiting));
	}
}

/* ---- calls of other programs' functions ---- */

static bool is_of(const struct lair_waiting *waiting, const struct lair_attach *attach)
{
	if (attach->key)
		return text_is(waiting->key, attach->key);
	return waiting->cell == attach->cell;
}

/* Whether it was not told yet, and now is to be. */
static bool is_news(struct run *run, const struct lair_waiting *waiting)
{
	uint64_t what = 2 * waiting->number + text_is(waiting->state, "held"), *grown;

	for (size_t i = 0; i < run->others.n_told; i++)
		if (run->others.told[i] == what)
			return false;
	grown = reallocarray(run->others.told, run->others.n_told + 1, sizeof(*grown));
	if (!grown)
		return false;
	run->others.told = grown;
	run->others.told[run->others.n_told++] = what;
	return true;
}

void others_end(struct run *run)
{
	run->others.call = lair_call_free(run->others.call);
	free(run->others.told);
	run->others.told = NULL;
	run->others.n_told = 0;
}

static void other_tell(struct run *run, const struct lair_waiting *waiting)
{
	_cleanup_(freep) char *text = NULL;
	char name[CALL_NAME_SIZE], shown[TOLD_SIZE], why[200];

	if (text_is(waiting->state, "asks")) {
		approval_begin(run, waiting);
		return;
	}
	text = call_text(waiting->function, waiting->arguments, waiting->bytes, VALUE_MAX);
	if (text && text_is(waiting->state, "held") && !run->events)
		cli_notice("%s is put aside: %s. lair answer %s VALUE answers it",
			   text_cut(shown, sizeof(shown), text), text_tamed(why, sizeof(why), waiting->text),
			   call_name(name, waiting));
}

static void on_looked(struct lair_call *call, void *userdata)
{
	struct run *run = userdata;
	const struct lair_waiting_list *list = lair_waiting_list(call);
	struct lair_waiting waiting;
	size_t cursor = 0;

	while (list && lair_next_waiting(list->calls, &cursor, &waiting)) {
		if (!text_is(waiting.state, "out") && is_of(&waiting, run->others.attach) && is_news(run, &waiting))
			other_tell(run, &waiting);
	}
	run->others.call = lair_call_free(call);
}

void approval_look(struct run *run)
{
	const struct lair_attach *attach = run->others.attach;

	if (!attach || run->others.call)
		return;
	if (lair_calls(run->cli->lair, &run->others.call, attach->session) == 0)
		lair_on_done(run->others.call, on_looked, run);
}

void approval_cancel(struct run *run, uint64_t number)
{
	struct approval **place = &run->approvals, *approval;

	while (*place && (*place)->number != number)
		place = &(*place)->next;
	approval = *place;
	if (!approval)
		return;
	if (run->approving && approval == run->approvals) {
		run->approving = false;
		say("\n");
		cli_notice("the call does not ask any more: somebody else has answered, or the cell does not wait");
	}
	*place = approval->next;
	approval_free(approval);
	approval_ask(run);
}
