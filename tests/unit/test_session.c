/* SPDX-License-Identifier: MIT */
/*
 * attach/session/session.c with the real agent in a real program (tests/tools/session_target.c),
 * prepared by the compiler (TARGET) and not (TARGET_PLAIN): what it records, and changes while its
 * threads run.
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attach/agent/handlers.h"
#include "attach/session/session_private.h"
#include "port/host/memory.h"
#include "tests/unit/counting_sink.h"

#define ARGV(...)  ((char *const[]){ __VA_ARGS__, NULL })
#define GLOBS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static struct gt_session_options options_for(char *const argv[])
{
	return (struct gt_session_options){
		.size = sizeof(struct gt_session_options),
		.argv = argv,
		.settings = { .tracer = GRAFTRACE_TRACER_FUNCTION_GRAPH, .on = true },
		.wait_ms = 10000,
		.buffer_bytes = 8 << 20,
		.sink = &sink,
	};
}

/* Makes a list of the settings that a session begins with. */
static void begin_with(struct gt_session_options *options, enum gt_list which,
		       const char *const *words)
{
	gt_trace_settings_fini(&options->settings);
	assert_int_equal(
		gt_trace_settings_append(&options->settings, which, &gt_host_memory, words), 0);
}

static struct gt_session *begin(const struct gt_session_options *options)
{
	struct gt_message message = { "" };
	struct gt_session *session;

	memset(&got, 0, sizeof(got));
	if (gt_session_start(options, &session, &message))
		fail_msg("%s", message.text);
	return session;
}

static uint64_t now_ms(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

static void poll_for(struct gt_session *session, uint64_t ms)
{
	uint64_t start = now_ms();

	while (now_ms() - start < ms)
		assert_int_equal(gt_session_poll(session, 5, NULL), 1);
}

static uint64_t words_of(struct gt_session *session)
{
	struct gt_session_totals totals;

	gt_session_totals(session, &totals);
	return totals.words;
}

/* Polls until more was recorded. */
static void poll_for_more(struct gt_session *session)
{
	uint64_t before = words_of(session), start = now_ms();

	while (words_of(session) == before) {
		assert_true(now_ms() - start < 20000);
		assert_int_equal(gt_session_poll(session, 5, NULL), 1);
	}
}

/* Polls until nothing more comes: what was closed before the change goes out first. */
static void poll_until_still(struct gt_session *session)
{
	uint64_t start = now_ms(), before;

	do {
		assert_true(now_ms() - start < 20000);
		before = words_of(session);
		poll_for(session, 60);
	} while (words_of(session) != before);
}

/* Polls until a function is seen called more often. */
static void poll_for_entries(struct gt_session *session, const char *name)
{
	uint64_t before = entries_of(name), start = now_ms();

	while (entries_of(name) == before) {
		assert_true(now_ms() - start < 20000);
		poll_for(session, 10);
	}
}

/* Polls until a function is not called any more, as far as is recorded. */
static void poll_until_silent(struct gt_session *session, const char *name)
{
	uint64_t start = now_ms(), before;

	do {
		assert_true(now_ms() - start < 20000);
		before = entries_of(name);
		poll_for_more(session);
		poll_for(session, 60);
	} while (entries_of(name) != before);
}

/* Polls to the end; returns the status. */
static int finish(struct gt_session *session)
{
	int status;

	while (gt_session_poll(session, 100, NULL) > 0)
		;
	status = gt_session_exit_status(session);
	gt_session_destroy(session);
	return status;
}

static void every_call_of_every_thread_is_recorded(void **state)
{
	struct gt_session_options options = options_for(ARGV(TARGET, "calls", "20000", "8"));
	struct gt_session *session = begin(&options);

	(void)state;
	assert_int_equal(finish(session), 0);
	assert_int_equal(entries_of("outer"), 160000);
	assert_int_equal(returns_of("outer"), 160000);
	assert_int_equal(entries_of("work"), 320000);
	assert_int_equal(returns_of("work"), 320000);
	assert_true(got.ended >= 9);
}

static void functions_that_nobody_prepared_are_recorded(void **state)
{
	struct gt_session_options options = options_for(ARGV(TARGET_PLAIN, "calls", "1000", "2"));

	(void)state;
	assert_int_equal(finish(begin(&options)), 0);
	assert_int_equal(entries_of("work"), 4000);
	assert_int_equal(returns_of("outer"), 2000);
}

static void filters_of_the_start_hold(void **state)
{
	struct gt_session_options options = options_for(ARGV(TARGET, "calls", "100", "2"));

	(void)state;
	begin_with(&options, GT_LIST_FILTER, GLOBS("w*k"));
	assert_int_equal(finish(begin(&options)), 0);
	assert_int_equal(entries_of("work"), 400);
	assert_int_equal(entries_of("outer"), 0);
	begin_with(&options, GT_LIST_NOTRACE, GLOBS("work"));
	assert_int_equal(finish(begin(&options)), 0);
	assert_int_equal(entries_of("work"), 0);
	assert_int_equal(entries_of("outer"), 200);
	begin_with(&options, GT_LIST_GRAPH, GLOBS("outer"));
	assert_int_equal(finish(begin(&options)), 0);
	assert_int_equal(entries_of("work"), 400);
	assert_int_equal(entries_of("main"), 0);
	gt_trace_settings_fini(&options.settings);
}

static void killed_program_keeps_its_trace(void **state)
{
	struct gt_session_options options = options_for(ARGV(TARGET, "busy", "2"));
	struct gt_session *session = begin(&options);
	uint64_t before;
	int status;

	(void)state;
	poll_for_entries(session, "outer");
	before = entries_of("outer");
	poll_for(session, 20);
	assert_int_equal(gt_session_signal(session, SIGKILL), 0);
	status = finish(session);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_true(entries_of("outer") > before);
	/* What ran when it died had not returned: one call a thread at most, at each depth. */
	assert_true(entries_of("outer") - returns_of("outer") <= 2);
}

static void tracing_goes_off_and_on(void **state)
{
	struct gt_session_options options = options_for(ARGV(TARGET, "busy", "2"));
	struct gt_session *session = begin(&options);
	int i;

	(void)state;
	for (i = 0; i < 5; i++) {
		poll_for_more(session);
		gt_session_set_tracing_on(session, false);
		assert_false(gt_session_tracing_on(session));
		poll_until_still(session);
		gt_session_set_tracing_on(session, true);
	}
	gt_session_signal(session, SIGTERM);
	assert_int_equal(finish(session), 0);
}

static int set_filters(struct gt_session *session, const char *const *filter,
		       const char *const *notrace, const char *const *graph,
		       struct gt_message *message)
{
	const char *const *lists[] = { filter, notrace, graph };
	struct gt_trace_settings settings = { .tracer = GRAFTRACE_TRACER_NOP };
	int error;

	for (int i = 0; i < 3; i++)
		assert_int_equal(gt_word_list_create(&gt_host_memory, lists[i], &settings.lists[i]),
				 0);
	error = gt_session_set_filters(session, &settings, message);
	gt_trace_settings_fini(&settings);
	return error;
}

static void change_filters(char *const argv[])
{
	struct gt_session_options options = options_for(argv);
	struct gt_message message = { "" };
	struct gt_session *session;
	int i;

	session = begin(&options);
	poll_for_more(session);
	for (i = 0; i < 30; i++) {
		int error = i % 3 == 0 ? set_filters(session, GLOBS("outer"), NULL, NULL, &message)
			    : i % 3 == 1
				    ? set_filters(session, NULL, GLOBS("outer"), NULL, &message)
				    : set_filters(session, NULL, NULL, NULL, &message);

		if (error)
			fail_msg("%s", message.text);
		poll_for(session, 3);
	}
	assert_int_equal(set_filters(session, GLOBS("outer"), NULL, NULL, NULL), 0);
	poll_until_silent(session, "work");
	assert_int_equal(set_filters(session, NULL, NULL, NULL, NULL), 0);
	poll_for_entries(session, "work");
	gt_session_signal(session, SIGTERM);
	assert_int_equal(finish(session), 0);
}

static void filters_change_while_threads_run(void **state)
{
	(void)state;
	change_filters(ARGV(TARGET, "busy", "4"));
}

static void filters_change_while_unprepared_code_runs(void **state)
{
	(void)state;
	change_filters(ARGV(TARGET_PLAIN, "busy", "4"));
}

static void graph_roots_change_while_threads_run(void **state)
{
	struct gt_session_options options = options_for(ARGV(TARGET, "busy", "2"));
	struct gt_session *session = begin(&options);
	int i;

	(void)state;
	for (i = 0; i < 10; i++) {
		assert_int_equal(
			set_filters(session, NULL, NULL, i & 1 ? NULL : GLOBS("work"), NULL), 0);
		poll_for(session, 10);
	}
	assert_int_equal(set_filters(session, NULL, NULL, GLOBS("work"), NULL), 0);
	poll_until_silent(session, "outer");
	gt_session_signal(session, SIGTERM);
	assert_int_equal(finish(session), 0);
}

static void tracer_changes_while_threads_run(void **state)
{
	struct gt_session_options options = options_for(ARGV(TARGET, "busy", "2"));
	struct gt_session *session = begin(&options);
	int i;

	(void)state;
	for (i = 0; i < 30; i++) {
		assert_int_equal(
			gt_session_set_tracer(session, (enum graftrace_tracer)(i % 3), NULL), 0);
		poll_for(session, 5);
	}
	assert_int_equal(gt_session_set_tracer(session, GRAFTRACE_TRACER_NOP, NULL), 0);
	poll_until_still(session);
	assert_int_equal(gt_session_set_tracer(session, GRAFTRACE_TRACER_FUNCTION_GRAPH, NULL), 0);
	poll_for_more(session);
	gt_session_signal(session, SIGTERM);
	assert_int_equal(finish(session), 0);
}

static void glob_that_matches_nothing_is_refused(void **state)
{
	struct gt_session_options options = options_for(ARGV(TARGET, "busy", "1"));
	struct gt_session *session = begin(&options);
	struct gt_message message = { "" };

	(void)state;
	poll_for_more(session); /* it is ready for its SIGTERM */
	assert_int_equal(set_filters(session, GLOBS("no_such_*"), NULL, NULL, &message), GT_EINVAL);
	assert_non_null(strstr(message.text, "no_such_*"));
	gt_session_signal(session, SIGTERM);
	assert_int_equal(finish(session), 0);
}

static int look_at(void *data, uint32_t number, const struct gt_function *function, bool enabled)
{
	int *seen = data;

	assert_true(number > 0);
	if (strcmp(function->name, "work") == 0)
		*seen += enabled ? 1 : 100;
	if (strcmp(function->name, "outer") == 0)
		*seen += enabled ? 1000 : 10;
	return 0;
}

static void functions_are_listed_with_what_is_traced(void **state)
{
	struct gt_session_options options = options_for(ARGV(TARGET, "busy", "1"));
	struct gt_session *session;
	int seen = 0;

	(void)state;
	begin_with(&options, GT_LIST_FILTER, GLOBS("work"));
	session = begin(&options);
	gt_trace_settings_fini(&options.settings);
	poll_for_more(session);
	assert_int_equal(gt_session_each_function(session, look_at, &seen), 0);
	assert_int_equal(seen, 11);
	gt_session_signal(session, SIGTERM);
	assert_int_equal(finish(session), 0);
}

static void ring_is_read_while_it_is_written(void **state)
{
	struct gt_session_options options = options_for(ARGV(TARGET, "busy", "2"));
	struct gt_session *session;
	struct gt_target *target;
	uint64_t consumed = 0, looked_at = 0;
	void *buffer;
	int round;

	(void)state;
	options.mode = GRAFTRACE_MODE_RING;
	options.sink = NULL;
	options.buffer_bytes = 1 << 20;
	session = begin(&options);
	target = gt_session_target(session);
	buffer = malloc(target->sub_buffer_bytes);
	for (round = 0; round < 200; round++) {
		uint32_t i, writers = target->ring->writer_count(target);

		for (i = 0; i < writers; i++) {
			struct gt_writer writer;
			uint64_t sequence;

			assert_int_equal(target->ring->writer(target, i, &writer), 0);
			for (sequence = writer.first; sequence < writer.next; sequence++) {
				const struct graftrace_sub_buffer *sub_buffer;
				int64_t words = target->ring->sub_buffer(target, i, sequence,
									 buffer, &sub_buffer);

				assert_true(words >= 0 || words == GT_ENOENT);
				looked_at += words > 0;
				if (words > 0 && sub_buffer->used &&
				    target->ring->consume(target, i, sequence) == 0)
					consumed++;
			}
		}
		assert_int_equal(gt_session_poll(session, 1, NULL), 1);
	}
	assert_true(looked_at > consumed);
	assert_true(consumed > 300); /* more than it holds: writers went on */
	free(buffer);
	gt_session_signal(session, SIGTERM);
	assert_int_equal(finish(session), 0);
}

static void clock_is_the_monotonic_one(void **state)
{
	struct gt_session_options options = options_for(ARGV(TARGET, "busy", "1"));
	struct gt_session *session = begin(&options);
	struct gt_target *target = gt_session_target(session);
	struct timespec time;
	uint64_t ns, told;

	(void)state;
	poll_for_more(session);
	poll_for(session, 100);
	clock_gettime(CLOCK_MONOTONIC, &time);
	told = gt_clock_ns(&target->clock, __builtin_ia32_rdtsc());
	ns = (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
	assert_in_range(told, ns - 1000000, ns + 1000000000);
	gt_session_signal(session, SIGTERM);
	assert_int_equal(finish(session), 0);
}

static void program_that_cannot_run_is_said(void **state)
{
	struct gt_session_options options = options_for(ARGV("/nonexistent"));
	struct gt_message message = { "" };
	struct gt_session *session;

	(void)state;
	assert_int_equal(gt_session_start(&options, &session, &message), GT_ENOENT);
	assert_non_null(strstr(message.text, "/nonexistent"));
	options.argv = ARGV(TARGET, "exit", "0");
	options.buffer_bytes = 10;
	assert_int_equal(gt_session_start(&options, &session, &message), GT_EINVAL);
}

/* Another process traces the program, so that it cannot be stopped; ended by end_other(). */
static pid_t trace_by_another(pid_t pid)
{
	int ready[2];
	pid_t other;
	char byte;

	assert_int_equal(pipe(ready), 0);
	other = fork();
	if (other == 0) {
		if (ptrace(PTRACE_SEIZE, pid, 0, 0) == 0 && write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return other;
}

static void end_other(pid_t other)
{
	kill(other, SIGKILL);
	assert_int_equal(waitpid(other, NULL, 0), other);
}

static bool asks_for(struct gt_session *session, uint32_t who, const char *filter, uint32_t depth)
{
	struct gt_trace_settings asked = gt_session_asked(session, who);
	const struct gt_word_list *list = asked.lists[GT_LIST_FILTER];
	const bool is_so = list != NULL && list->count == 1 &&
			   strcmp(list->words[0], filter) == 0 && asked.max_depth == depth;

	gt_trace_settings_fini(&asked);
	return is_so;
}

static struct gt_trace_settings instance_settings(const char *filter, uint32_t depth)
{
	const char *const words[] = { filter, NULL };
	struct gt_trace_settings settings = { .tracer = GRAFTRACE_TRACER_FUNCTION_GRAPH,
					      .on = true,
					      .max_depth = depth };

	assert_int_equal(
		gt_word_list_create(&gt_host_memory, words, &settings.lists[GT_LIST_FILTER]), 0);
	return settings;
}

static int ask(struct gt_session *session, uint32_t who, const char *filter, uint32_t depth)
{
	struct gt_trace_settings settings = instance_settings(filter, depth);
	struct gt_message message = { "" };
	const int error = gt_session_ask(session, who, &settings, &message);

	gt_trace_settings_fini(&settings);
	return error;
}

static void settings_are_all_new_where_patching_fails(void **state)
{
	struct gt_session_options options = options_for(ARGV(TARGET, "busy", "1"));
	struct gt_session *session = begin(&options);
	struct gt_message message = { "" };
	uint32_t who;
	pid_t other;

	(void)state;
	poll_for_more(session);
	assert_int_equal(set_filters(session, GLOBS("work"), NULL, NULL, &message), 0);
	assert_int_equal(gt_session_join(session, &who, &message), 0);
	assert_int_equal(ask(session, who, "work", 2), 0);
	other = trace_by_another(gt_session_pid(session));
	assert_true(ask(session, who, "outer", 3) < 0);
	assert_true(asks_for(session, who, "outer", 3));
	assert_true(set_filters(session, GLOBS("main"), NULL, NULL, &message) < 0);
	assert_true(asks_for(session, 0, "main", 0));
	assert_int_equal(ask(session, who, "no_such_*", 4), GT_EINVAL);
	assert_true(asks_for(session, who, "outer", 3));
	end_other(other);
	assert_int_equal(ask(session, who, "work", 1), 0);
	gt_session_signal(session, SIGTERM);
	assert_int_equal(finish(session), 0);
}

/* Another client may remove a trigger while one looks at it. */
static void trigger_that_was_read_keeps_its_glob(void **state)
{
	const struct gt_trigger work = { .glob = "work", .action = GT_TRIGGER_TRACEOFF };
	struct gt_session_options options = options_for(ARGV(TARGET, "busy", "1"));
	struct gt_session *session = begin(&options);
	struct gt_message message = { "" };
	struct gt_trigger read;
	char glob[16];
	bool spent;

	(void)state;
	poll_for_more(session);
	assert_int_equal(gt_session_trigger_add(session, &work, &message), 0);
	assert_int_equal(gt_session_trigger_get(session, 0, &read, &spent, glob, sizeof(glob)), 0);
	assert_int_equal(gt_session_trigger_remove(session, &work, &message), 0);
	assert_ptr_equal(read.glob, glob);
	assert_string_equal(glob, "work");
	gt_session_signal(session, SIGTERM);
	assert_int_equal(finish(session), 0);
}

static uint32_t count_slots(struct gt_session *session, enum graftrace_mail_state state)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < session->arenas[0].shared.mail_count; i++)
		count += gt_arena_mail(&session->arenas[0].shared, i)->state == state;
	return count;
}

/* A letter that no memory has. */
static void post(struct gt_session *session, uint32_t slot, pid_t pid)
{
	struct graftrace_mail *mail = gt_arena_mail(&session->arenas[0].shared, slot);

	mail->kind = GRAFTRACE_MAIL_OBJECTS;
	mail->pid = mail->tid = (uint32_t)pid;
	mail->state = GRAFTRACE_MAIL_POSTED;
}

/* A process that has ended; waited for, or not yet. */
static pid_t start_ended(bool waited)
{
	siginfo_t info;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	assert_true(pid > 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | (waited ? 0 : WNOWAIT)), 0);
	return pid;
}

/* They post no letter and free no slot; senders that live free theirs themselves. */
static void slots_of_senders_that_have_ended_are_freed(void **state)
{
	struct gt_session_options options = options_for(ARGV(TARGET, "busy", "1"));
	const pid_t gone = start_ended(true), zombie = start_ended(false);
	struct gt_session *session = begin(&options);
	uint32_t slots, i;

	(void)state;
	poll_for_more(session);
	pthread_mutex_lock(&session->lock);
	slots = session->arenas[0].shared.mail_count;
	assert_int_equal(count_slots(session, GRAFTRACE_MAIL_FREE), slots);
	post(session, 0, getpid());
	post(session, 1, 0);
	for (i = 2; i < slots; i++)
		post(session, i, i % 2 ? gone : zombie);
	assert_int_equal(gt_mail_read(session), slots);
	assert_int_equal(gt_mail_read(session), 0);
	assert_int_equal(count_slots(session, GRAFTRACE_MAIL_FREE), slots - 2);
	for (i = 0; i < 2; i++)
		assert_int_equal(gt_arena_mail(&session->arenas[0].shared, i)->state,
				 GRAFTRACE_MAIL_ANSWERED);
	pthread_mutex_unlock(&session->lock);
	assert_int_equal(waitpid(zombie, NULL, 0), zombie);
	gt_session_signal(session, SIGTERM);
	assert_int_equal(finish(session), 0);
}

/* Their letters stay in the memory that they shared with their parent, who sends more letters there. */
static void slots_of_killed_vfork_children_are_used_again(void **state)
{
	struct gt_session_options options = options_for(ARGV(TARGET, "killed_vforks", "200"));
	struct gt_session *session;
	uint64_t start = now_ms();
	uint32_t most = 0;

	(void)state;
	options.wait_ms = 1;
	session = begin(&options);
	/* The host is slow: many are killed before their letters are read. */
	while (returns_of("work") == 0) {
		uint32_t posted;

		assert_true(now_ms() - start < 20000);
		usleep(50000);
		posted = count_slots(session, GRAFTRACE_MAIL_POSTED);
		most = posted > most ? posted : most;
		assert_int_equal(gt_session_poll(session, 0, NULL), 1);
	}
	poll_for(session, 50);
	assert_true(most > 1);
	assert_int_equal(count_slots(session, GRAFTRACE_MAIL_CLAIMED), 0);
	assert_true(count_slots(session, GRAFTRACE_MAIL_FREE) >=
		    session->arenas[0].shared.mail_count / 2);
	gt_session_signal(session, SIGTERM);
	assert_int_equal(finish(session), 0);
}

static uint32_t state_of(const struct gt_letter *letter)
{
	return __atomic_load_n(&gt_arena_mail(&letter->arena->shared, letter->slot)->state,
			       __ATOMIC_ACQUIRE);
}

/* Its sender waits, or does not wait any more. */
static bool is_unread(const struct gt_letter *letter)
{
	const uint32_t state = state_of(letter);

	return state == GRAFTRACE_MAIL_POSTED || state == GRAFTRACE_MAIL_ABANDONED;
}

/* The host lives: else senders do not wait for it after a while. */
static void beat(struct gt_session *session)
{
	__atomic_fetch_add(&gt_session_settings(session)->heartbeat, 1, __ATOMIC_RELAXED);
}

static struct gt_letter answered; /* by answer_pending() */
static bool answers;		  /* the next handler does */

/* Answers the last letter that is pending, as when its process is left, and waits until there is another one in its
 * slot. */
static void answer_pending(struct gt_session *session)
{
	const uint64_t start = now_ms();
	struct gt_letter now;

	answered = session->hits.pending[session->hits.pending_count - 1].letter;
	now = answered;
	gt_mail_answer_waiting(session, (pid_t)answered.text.pid);
	while (now.text.ticket == answered.text.ticket || !is_unread(&answered)) {
		assert_true(now_ms() - start < 20000);
		usleep(100);
		beat(session);
		if (!gt_mail_read_letter(session, &now, (pid_t)answered.text.pid))
			now = answered;
	}
}

static void on_hit(void *data, const struct gt_trigger_hit *hit)
{
	struct gt_session *session = data;

	(void)hit;
	pthread_mutex_lock(&session->lock);
	if (answers)
		answer_pending(session);
	answers = false;
	pthread_mutex_unlock(&session->lock);
}

static void letter_in_the_slot_of_an_answered_one_is_read(void **state)
{
	const struct gt_trigger work = { .glob = "work", .action = GT_TRIGGER_SNAPSHOT };
	struct gt_session_options options = options_for(ARGV(TARGET, "busy", "1"));
	struct gt_session *session;
	struct gt_message message = { "" };
	uint64_t start;

	(void)state;
	options.wait_ms = 1; /* while nobody takes what is recorded */
	session = begin(&options);
	poll_for_more(session);
	assert_int_equal(gt_session_trigger_handler(session, on_hit, session), 0);
	assert_int_equal(gt_session_trigger_add(session, &work, &message), 0);
	pthread_mutex_lock(&session->lock);
	for (start = now_ms(); session->hits.pending_count == 0 && now_ms() - start < 30000;) {
		usleep(100);
		beat(session);
		assert_true(gt_mail_read(session) >= 0);
	}
	assert_true(session->hits.pending_count > 0);
	pthread_mutex_unlock(&session->lock);
	answers = true; /* while the handler runs */
	gt_session_run_handlers(session);
	pthread_mutex_lock(&session->lock);
	assert_true(is_unread(&answered));
	assert_true(gt_mail_read(session) > 0);
	assert_true(gt_session_is_pending(session, answered.arena, answered.slot));
	answer_pending(session); /* before it runs */
	assert_false(gt_session_is_pending(session, answered.arena, answered.slot));
	assert_true(gt_mail_read(session) > 0);
	assert_true(gt_session_is_pending(session, answered.arena, answered.slot));
	pthread_mutex_unlock(&session->lock);
	gt_session_run_handlers(session);
	assert_int_equal(gt_session_trigger_remove(session, &work, &message), 0);
	assert_int_equal(gt_session_trigger_handler(session, NULL, NULL), 0);
	gt_session_signal(session, SIGTERM);
	assert_int_equal(finish(session), 0);
}

/* The filter names a field that the event does not have, which is known once the program is. */
static struct gt_session_options options_that_do_not_fit(char *const argv[])
{
	static const char *const probes[] = { "p:unit/worked " TARGET ":work value=%di:s32", NULL };
	static const char *const events[] = { "unit:worked", NULL };
	static const char *const filters[] = { "unit:worked", "other > 3", NULL };
	struct gt_session_options options = options_for(argv);

	options.probes = probes;
	begin_with(&options, GT_LIST_EVENTS, events);
	options.event_filters = filters;
	return options;
}

static void program_with_a_filter_that_does_not_fit_is_ended(void **state)
{
	struct gt_session_options options = options_that_do_not_fit(ARGV(TARGET, "busy", "1"));
	struct gt_message message = { "" };
	struct gt_session *session;

	(void)state;
	assert_int_equal(gt_session_start(&options, &session, &message), GT_EINVAL);
	gt_trace_settings_fini(&options.settings);
	assert_non_null(strstr(message.text, "other"));
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* there is no child */
}

/* Whether the process has mapped the recorder's memory. */
static bool has_agent(pid_t pid)
{
	char path[64], line[1024];
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	file = fopen(path, "re");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file) != NULL)
		found |= strstr(line, "memfd:graftrace") != NULL;
	fclose(file);
	return found;
}

/* Starts a program that nobody traces; it is executed when this returns. */
static pid_t start_busy(void)
{
	int ends[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		execl(TARGET, TARGET, "busy", "1", NULL);
		_exit(127);
	}
	assert_true(pid > 0);
	close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 0);
	close(ends[0]);
	return pid;
}

static void end_busy(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void process_with_a_filter_that_does_not_fit_is_left(void **state)
{
	struct gt_session_options options = options_that_do_not_fit(NULL);
	struct gt_message message = { "" };
	struct gt_session *session;
	pid_t pid = start_busy();

	(void)state;
	options.pids = &pid;
	options.pid_count = 1;
	assert_int_equal(gt_session_start(&options, &session, &message), GT_EINVAL);
	gt_trace_settings_fini(&options.settings);
	assert_non_null(strstr(message.text, "other"));
	assert_false(has_agent(pid));
	end_busy(pid);
}

/* The linker puts these before the library's (meson.build). */
static bool fails;		/* from now on: */
static struct gt_tracee **list; /* this list of processes does not grow */
static bool no_handlers, fails_after_begin;
void *__real_realloc(void *old, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
int __real_gt_signals_handlers(struct gt_tracee *tracee, uint64_t signals, uint64_t handlers[64],
			       struct gt_message *message);
int __wrap_gt_signals_handlers(struct gt_tracee *tracee, uint64_t signals, uint64_t handlers[64],
			       struct gt_message *message);
int __real_gt_tracee_begin(struct gt_tracee *tracee, pid_t tid, const struct gt_arena *arena,
			   struct gt_catalog *catalog, const struct gt_selection *selection,
			   uint64_t tsc_per_ms, const struct gt_sink *told,
			   struct gt_message *message);
int __wrap_gt_tracee_begin(struct gt_tracee *tracee, pid_t tid, const struct gt_arena *arena,
			   struct gt_catalog *catalog, const struct gt_selection *selection,
			   uint64_t tsc_per_ms, const struct gt_sink *told,
			   struct gt_message *message);

void *__wrap_realloc(void *old, size_t bytes)
{
	const bool grows = old == list && (old != NULL || bytes == 16 * sizeof(*list));

	return fails && grows ? NULL : __real_realloc(old, bytes);
}

int __wrap_gt_tracee_begin(struct gt_tracee *tracee, pid_t tid, const struct gt_arena *arena,
			   struct gt_catalog *catalog, const struct gt_selection *selection,
			   uint64_t tsc_per_ms, const struct gt_sink *told,
			   struct gt_message *message)
{
	const int error = __real_gt_tracee_begin(tracee, tid, arena, catalog, selection, tsc_per_ms,
						 told, message);

	fails = fails_after_begin;
	return error;
}

int __wrap_gt_signals_handlers(struct gt_tracee *tracee, uint64_t signals, uint64_t handlers[64],
			       struct gt_message *message)
{
	if (no_handlers)
		return gt_fail(message, GT_EIO, "no handlers");
	return __real_gt_signals_handlers(tracee, signals, handlers, message);
}

static void program_that_has_no_room_in_the_list_is_ended(void **state)
{
	struct gt_session_options options = options_for(ARGV(TARGET, "busy", "1"));
	struct gt_message message = { "" };
	struct gt_session *session;

	(void)state;
	list = NULL;
	fails_after_begin = true;
	assert_int_equal(gt_session_start(&options, &session, &message), GT_ENOMEM);
	fails = fails_after_begin = false;
	assert_non_null(strstr(message.text, "memory"));
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* there is no child */
}

/* Attaches to a process as to one that comes later: where it fails the session goes on without it. */
static void attach_in_vain(struct gt_session *session, pid_t pid, int error, const char *why)
{
	struct gt_message message = { "" };

	pthread_mutex_lock(&session->lock);
	assert_int_equal(gt_session_attach_one(session, pid, &message), error);
	assert_null(gt_follow_find(session, pid));
	pthread_mutex_unlock(&session->lock);
	assert_string_equal(message.text, why);
	assert_false(has_agent(pid));
}

static void process_that_cannot_be_taken_in_is_left(void **state)
{
	struct gt_session_options options = options_for(ARGV(TARGET, "busy", "1"));
	struct gt_message message = { "" };
	struct gt_session *session;
	const pid_t pid = start_busy();

	(void)state;
	options.stop_signals = 1ull << (SIGUSR1 - 1);
	options.wait_ms = 1; /* nobody polls: a thread that waited for room could not be left */
	session = begin(&options);
	poll_for_more(session);
	no_handlers = true;
	attach_in_vain(session, pid, GT_EIO, "no handlers");
	no_handlers = false;
	session->tracees.room = session->tracees.count;
	list = session->tracees.list;
	fails = true;
	attach_in_vain(session, pid, GT_ENOMEM, "no memory for a process");
	fails = false;
	pthread_mutex_lock(&session->lock);
	assert_int_equal(gt_session_attach_one(session, pid, &message), 0);
	assert_non_null(gt_follow_find(session, pid));
	pthread_mutex_unlock(&session->lock);
	end_busy(pid);
	gt_session_signal(session, SIGTERM);
	assert_int_equal(finish(session), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call_of_every_thread_is_recorded),
		cmocka_unit_test(functions_that_nobody_prepared_are_recorded),
		cmocka_unit_test(filters_of_the_start_hold),
		cmocka_unit_test(killed_program_keeps_its_trace),
		cmocka_unit_test(tracing_goes_off_and_on),
		cmocka_unit_test(filters_change_while_threads_run),
		cmocka_unit_test(filters_change_while_unprepared_code_runs),
		cmocka_unit_test(graph_roots_change_while_threads_run),
		cmocka_unit_test(tracer_changes_while_threads_run),
		cmocka_unit_test(glob_that_matches_nothing_is_refused),
		cmocka_unit_test(functions_are_listed_with_what_is_traced),
		cmocka_unit_test(ring_is_read_while_it_is_written),
		cmocka_unit_test(program_with_a_filter_that_does_not_fit_is_ended),
		cmocka_unit_test(process_with_a_filter_that_does_not_fit_is_left),
		cmocka_unit_test(program_that_has_no_room_in_the_list_is_ended),
		cmocka_unit_test(process_that_cannot_be_taken_in_is_left),
		cmocka_unit_test(settings_are_all_new_where_patching_fails),
		cmocka_unit_test(trigger_that_was_read_keeps_its_glob),
		cmocka_unit_test(slots_of_senders_that_have_ended_are_freed),
		cmocka_unit_test(slots_of_killed_vfork_children_are_used_again),
		cmocka_unit_test(letter_in_the_slot_of_an_answered_one_is_read),
		cmocka_unit_test(clock_is_the_monotonic_one),
		cmocka_unit_test(program_that_cannot_run_is_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
