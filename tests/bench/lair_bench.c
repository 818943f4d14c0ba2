/* What a client of Lair waits for, measured by one that adds next to nothing itself: each line of the output is one
 * sample, in microseconds. usage: lair_bench SOCKET MEASURE PROFILE COUNT GAP_US [CODE]. CODE is of "exec"; of
 * "calls" it is a cell that calls tools.echo and prints the samples. */
#include "clock.h"
#include "lair.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct bench {
	struct lair *lair;
	const char *profile, *code;
	long count, gap_us;
};

static void fail(struct bench *bench, const char *what)
{
	fprintf(stderr, "lair_bench: %s: %s\n", what, lair_error(bench->lair));
	exit(EXIT_FAILURE);
}

static void finish(struct bench *bench, int started, struct lair_call *call, const char *what)
{
	if (started || lair_wait(call, 120))
		fail(bench, what);
}

static void run(struct bench *bench, const char *session, const char *code)
{
	struct lair_exec exec = {.session = session, .profile = bench->profile, .code = lair_text(code)};
	struct lair_call *call = NULL;
	int r;

	r = lair_exec(bench->lair, &call, &exec);
	finish(bench, r, call, "exec");
	if (lair_result(call)->returncode != 0) {
		fprintf(stderr, "lair_bench: %.*s\n", (int)lair_result(call)->err.size,
			lair_result(call)->err.data);
		exit(EXIT_FAILURE);
	}
	lair_call_free(call);
}

static void shutdown_session(struct bench *bench, const char *session)
{
	struct lair_call *call = NULL;
	int r = lair_shutdown(bench->lair, &call, session);

	finish(bench, r, call, "shutdown");
	lair_call_free(call);
}

/* ---- measures: each returns the microseconds of one sample ---- */

static double measure_open(struct bench *bench)
{
	double began = now_us(), took;

	run(bench, "bench-open", bench->code);
	took = now_us() - began;
	shutdown_session(bench, "bench-open");
	return took;
}

static double measure_oneshot(struct bench *bench)
{
	double began = now_us();

	run(bench, NULL, bench->code);
	return now_us() - began;
}

static double measure_exec(struct bench *bench)
{
	double began = now_us();

	run(bench, "bench", bench->code);
	return now_us() - began;
}

static double measure_reset(struct bench *bench)
{
	struct lair_call *call = NULL;
	double began = now_us();
	int r;

	r = lair_reset(bench->lair, &call, "bench");
	finish(bench, r, call, "reset");
	run(bench, "bench", "1+1");
	lair_call_free(call);
	return now_us() - began;
}

/* Of a cell that has its checkpoint by then. */
static double measure_undo(struct bench *bench)
{
	struct lair_call *call = NULL;
	double began;
	int r;

	run(bench, "bench", bench->code);
	pause_us(bench->gap_us);
	began = now_us();
	r = lair_undo(bench->lair, &call, "bench", 1, false);
	finish(bench, r, call, "undo");
	lair_call_free(call);
	return now_us() - began;
}

static void on_output(struct lair_call *call, enum lair_stream stream, struct lair_text data, void *userdata)
{
	(void)call;
	(void)stream;
	(void)data;
	*(bool *)userdata = true;
}

static double measure_interrupt(struct bench *bench)
{
	bool began_to_run = false;
	struct lair_exec exec = {.session = "bench",
				 .profile = bench->profile,
				 .code = lair_text("print(1)\nwhile True: pass"),
				 .on_output = on_output,
				 .userdata = &began_to_run};
	struct lair_call *cell = NULL, *call = NULL;
	double began;
	int r;

	if (lair_exec(bench->lair, &cell, &exec))
		fail(bench, "exec");
	while (!began_to_run && lair_outcome(cell) == -EINPROGRESS)
		(void)lair_wait(cell, 0.001);
	pause_us(2000);
	began = now_us();
	r = lair_interrupt(bench->lair, &call, "bench");
	finish(bench, r, cell, "interrupt");
	began = now_us() - began;
	finish(bench, 0, call, "interrupt");
	lair_call_free(call);
	lair_call_free(cell);
	return began;
}

/* ---- functions ---- */

static void on_call(struct lair_call *call, struct lair_calling *calling, void *userdata)
{
	(void)call;
	(void)userdata;
	if (lair_return(calling, lair_text("7")))
		exit(EXIT_FAILURE);
}

/* A cell that may call tools.echo, which answers at once; its output. */
static struct lair_call *run_offering(struct bench *bench, const char *code)
{
	static const struct lair_function echo = {
		.name = "echo", .schema = "{\"properties\": {\"x\": {\"type\": \"integer\"}}}", .doc = "x."};
	struct lair_exec exec = {.session = "bench",
				 .profile = bench->profile,
				 .code = lair_text(code),
				 .functions = &echo,
				 .n_functions = 1,
				 .on_call = on_call};
	struct lair_call *call = NULL;
	int r = lair_exec(bench->lair, &call, &exec);

	finish(bench, r, call, "exec");
	if (lair_result(call)->returncode != 0) {
		fprintf(stderr, "lair_bench: %.*s\n", (int)lair_result(call)->err.size,
			lair_result(call)->err.data);
		exit(EXIT_FAILURE);
	}
	return call;
}

static double measure_offer(struct bench *bench)
{
	double began = now_us();

	lair_call_free(run_offering(bench, bench->code));
	return now_us() - began;
}

/* The cell takes the time itself, and prints as many samples as it likes. */
static void measure_calls(struct bench *bench)
{
	struct lair_call *call = run_offering(bench, bench->code);

	fwrite(lair_result(call)->out.data, 1, lair_result(call)->out.size, stdout);
	lair_call_free(call);
}

static const struct {
	const char *name;
	double (*fn)(struct bench *bench);
	bool session; /* works on one session, which is made first */
} measures[] = {
	{"open", measure_open, false},		{"oneshot", measure_oneshot, false},
	{"exec", measure_exec, true},		{"reset", measure_reset, true},
	{"interrupt", measure_interrupt, true}, {"offer", measure_offer, true},
	{"undo", measure_undo, true},		{"calls", NULL, true},
};

static int bench_run(struct bench *bench, size_t measure)
{
	if (measures[measure].session)
		run(bench, "bench", "1+1");
	for (long i = 0; i < bench->count; i++) {
		pause_us(bench->gap_us);
		if (measures[measure].fn)
			printf("%.1f\n", measures[measure].fn(bench));
		else
			measure_calls(bench);
	}
	if (measures[measure].session)
		shutdown_session(bench, "bench");
	return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char *argv[])
{
	struct bench bench = {.lair = NULL};
	struct lair_options options = {.no_start = true};
	int status = EXIT_FAILURE;

	if (argc < 6) {
		fputs("usage: lair_bench SOCKET MEASURE PROFILE COUNT GAP_US [CODE]\n", stderr);
		return EXIT_FAILURE;
	}
	options.socket = argv[1];
	bench.profile = argv[3];
	bench.count = strtol(argv[4], NULL, 10);
	bench.gap_us = strtol(argv[5], NULL, 10);
	bench.code = argc > 6 ? argv[6] : "1+1";
	if (lair_new(&bench.lair, &options) || lair_connect(bench.lair))
		fail(&bench, "connect");
	for (size_t i = 0; i < sizeof(measures) / sizeof(measures[0]); i++)
		if (strcmp(argv[2], measures[i].name) == 0)
			status = bench_run(&bench, i);
	lair_free(bench.lair);
	return status;
}
