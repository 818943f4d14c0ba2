/* What a session writes: to its running cell, or, between two cells, to whichever comes next. */
#include "part.h"
#include "sessions.h"

static bool runs_code(const struct session *session)
{
	return session->cell && session->cell->task == CELL_CODE;
}

struct output *session_output(struct session *session, enum interpreter_stream stream)
{
	if (!runs_code(session))
		return &session->stray[stream];
	return stream == STREAM_STDOUT ? &session->cell->stdout_ : &session->cell->stderr_;
}

static void on_trim(struct timer *timer)
{
	struct session *session = container_of(timer, struct session, trim);
	uint64_t began = event_now();

	session_trim_transcripts(session);
	party_took(session->tenant.party, event_now() - began);
}

void session_trim_transcripts(struct session *session)
{
	bool more = false;

	for (int i = STREAM_STDOUT; i <= STREAM_STDERR; i++)
		more |= transcript_trim(&session->transcripts[i],
					session_output(session, (enum interpreter_stream)i)->known);
	/* In the next round. */
	if (more)
		(void)timer_set(session_loop(session), &session->trim, event_now(), on_trim);
}

void session_on_output(struct session *session, enum interpreter_stream stream, struct bytes data)
{
	struct output *output = session_output(session, stream);
	uint64_t at = output->total;
	size_t most = output->most;

	output_add(output, data);
	if (!runs_code(session)) {
		session_trim_transcripts(session);
		return;
	}
	/* The next router has to know how much of it is kept. */
	if (output->most != most)
		warden_touch(session->warden);
	session_trim_transcripts(session);
	if (promise_stream(session->cell->reply.promise, stream == STREAM_STDOUT ? PROMISE_STDOUT : PROMISE_STDERR,
			   at, data) == CLIENT_E_WAITS)
		interpreter_pause(session->live, true);
}

void session_drop_stray(struct session *session)
{
	for (int i = 0; i < 2; i++) {
		output_deinit(&session->stray[i]);
		session->transcripts[i].begin = session->transcripts[i].end;
		session->words[i].size = 0;
	}
	warden_touch(session->warden);
}

void session_on_words(struct session *session, enum interpreter_stream stream, struct bytes data)
{
	(void)msgpack_sbuffer_write(&session->words[stream], data.data, data.size);
	session_on_output(session, stream, data);
}
