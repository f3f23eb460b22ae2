/* SPDX-License-Identifier: MIT */
/*
 * attach/process/process.c and threads.c on real processes (tests/tools/session_target.c).
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "attach/process/process.h"
#include "attach/process/shadow_stack.h"
#include "attach/process/threads.h"
#include "attach/process/tracer.h"
#include "attach/agent/world.h"

#define ARGV(...) ((char *const[]){ __VA_ARGS__, NULL })

static void start(struct gt_process *process, char *const argv[])
{
	struct gt_message message = { "" };

	if (gt_process_start(process, argv, &message))
		fail_msg("%s", message.text);
}

/* Starts and lets go. */
static void run(struct gt_process *process, char *const argv[])
{
	start(process, argv);
	process->stopped = 0;
	assert_int_equal(gt_thread_detach(process->pid), 0);
}

static int end_of(struct gt_process *process)
{
	int status = 0;

	assert_int_equal(waitpid(process->pid, &status, 0), process->pid);
	gt_process_close(process);
	return status;
}

static void exec_errors_are_those_of_execvp(void **state)
{
	struct gt_message message;
	struct gt_process process;
	int status;

	(void)state;
	assert_int_equal(gt_process_start(&process, ARGV("/nonexistent/program"), &message),
			 GT_ENOENT);
	assert_non_null(strstr(message.text, "No such file"));
	assert_int_equal(gt_process_start(&process, ARGV("no-such-program-in-the-path"), &message),
			 GT_ENOENT);
	assert_int_equal(gt_process_start(&process, ARGV("/etc/passwd"), &message), GT_ECANTRUN);
	assert_int_equal(gt_process_start(&process, ARGV("/tmp"), &message), GT_ECANTRUN);
	/* No child is left. */
	assert_int_equal(waitpid(-1, &status, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void status_is_the_programs(void **state)
{
	struct gt_process process;
	int status;

	(void)state;
	run(&process, ARGV(TARGET, "exit", "42"));
	status = end_of(&process);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 42);
	run(&process, ARGV(TARGET, "kill", "15"));
	status = end_of(&process);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	run(&process, ARGV("sh", "-c", "exit 7")); /* found in the path */
	status = end_of(&process);
	assert_int_equal(WEXITSTATUS(status), 7);
}

static void program_inherits_what_it_would_without_us(void **state)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN }, old;
	sigset_t block, before;
	struct gt_process process;
	char text[64] = "", plain[64] = "";
	FILE *pipe_from_plain = popen(TARGET " inherited", "re");
	int out[2], saved;

	(void)state;
	assert_non_null(fgets(plain, sizeof(plain), pipe_from_plain));
	assert_int_equal(pclose(pipe_from_plain), 0);
	/* A server's library would set these; they are not the program's. */
	sigaction(SIGPIPE, &ignore, &old);
	sigemptyset(&block);
	sigaddset(&block, SIGUSR2);
	sigprocmask(SIG_BLOCK, &block, &before);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	saved = fcntl(1, F_DUPFD_CLOEXEC, 3);
	dup2(out[1], 1);
	run(&process, ARGV(TARGET, "inherited"));
	dup2(saved, 1);
	close(saved);
	assert_int_equal(end_of(&process), 0);
	assert_true(read(out[0], text, sizeof(text) - 1) > 0);
	close(out[0]);
	close(out[1]);
	sigprocmask(SIG_SETMASK, &before, NULL);
	sigaction(SIGPIPE, &old, NULL);
	assert_string_equal(text, plain);
}

static void memory_is_written_over_its_protection(void **state)
{
	struct gt_process process;
	uint64_t entry;
	uint8_t code[4], back[4];

	(void)state;
	start(&process, ARGV(TARGET, "exit", "3"));
	entry = gt_process_auxv(process.pid, AT_ENTRY);
	assert_true(entry != 0);
	assert_int_equal(gt_process_read(&process, entry, code, 4), 0);
	assert_int_equal(gt_process_write(&process, entry, "\x01\x02\x03\x04", 4), 0);
	assert_int_equal(gt_process_read(&process, entry, back, 4), 0);
	assert_memory_equal(back, "\x01\x02\x03\x04", 4);
	assert_int_equal(gt_process_write(&process, entry, code, 4), 0);
	assert_int_equal(gt_process_read(&process, 4096, back, 4), GT_EIO);
	assert_int_equal(gt_thread_detach(process.pid), 0);
	assert_int_equal(WEXITSTATUS(end_of(&process)), 3);
}

static void remote_calls_leave_no_trace(void **state)
{
	struct gt_message message = { "" };
	struct gt_process process;
	struct gt_remote remote;
	int64_t result;
	const uint64_t none[6] = { 0 };

	(void)state;
	start(&process, ARGV(TARGET, "exit", "5"));
	assert_int_equal(gt_remote_begin(&remote, &process, process.pid, &message), 0);
	assert_int_equal(gt_remote_call(&remote, SYS_getpid, none, &result, &message), 0);
	assert_int_equal(result, process.pid);
	assert_int_equal(gt_remote_call(&remote, 100000, none, &result, &message), 0);
	assert_int_equal(result, -ENOSYS);
	assert_int_equal(gt_remote_end(&remote, &message), 0);
	assert_int_equal(gt_thread_detach(process.pid), 0);
	assert_int_equal(WEXITSTATUS(end_of(&process)), 5);
}

static void sleep_ms(long ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

/* One that stands still, the one at `from` or behind it; 0: all are in the kernel, late. */
static pid_t stopped_one(const struct gt_stopped_threads *threads, size_t from)
{
	for (size_t i = 0; i < threads->count; i++) {
		size_t at = (from + i) % threads->count;

		if (!threads->late[at])
			return threads->tids[at];
	}
	return 0;
}

/* Stops all threads `rounds` times, with a remote call each time. Returns how often it worked. */
static int stop_again_and_again(struct gt_process *process, int rounds, bool call)
{
	struct gt_stopped_threads threads;
	const uint64_t none[6] = { 0 };
	int worked = 0;

	for (int i = 0; i < rounds; i++) {
		struct gt_message message = { "" };
		struct gt_remote remote;
		int64_t result = 0;
		int error = gt_threads_stop(process, &threads, &message);
		pid_t tid;

		if (error == GT_EGONE)
			break;
		assert_int_equal(error, 0);
		tid = call ? stopped_one(&threads, (size_t)i) : 0;
		if (tid) {
			assert_int_equal(gt_remote_begin(&remote, process, tid, &message), 0);
			assert_int_equal(
				gt_remote_call(&remote, SYS_gettid, none, &result, &message), 0);
			assert_int_equal(result, tid);
			assert_int_equal(gt_remote_end(&remote, &message), 0);
		}
		gt_threads_resume(process, &threads);
		worked++;
	}
	return worked;
}

static unsigned threads_of(pid_t pid)
{
	char path[64];
	unsigned count = 0;
	DIR *directory;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	directory = opendir(path);
	assert_non_null(directory);
	for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
		count += entry->d_name[0] != '.';
	closedir(directory);
	return count;
}

static void wait_for_threads(pid_t pid)
{
	for (int round = 0; threads_of(pid) < 2; round++) {
		assert_true(round < 60000);
		sleep_ms(1);
	}
}

static void no_signal_is_lost_or_doubled_when_the_world_stops(void **state)
{
	struct gt_process process;

	(void)state;
	run(&process, ARGV(TARGET, "storm", "50", "400"));
	wait_for_threads(process.pid);
	assert_true(stop_again_and_again(&process, 40, true) > 0);
	assert_int_equal(end_of(&process), 0);
}

static void interrupted_calls_go_on(void **state)
{
	struct gt_process process;

	(void)state;
	run(&process, ARGV(TARGET, "sleeps"));
	for (int i = 0; i < 200; i++) {
		if (!stop_again_and_again(&process, 1, i % 2 == 0))
			break;
		sleep_ms(3);
	}
	assert_int_equal(end_of(&process), 0);
}

static void threads_that_are_born_meanwhile_are_stopped_too(void **state)
{
	struct gt_stopped_threads threads;
	struct gt_message message = { "" };
	struct gt_process process;
	size_t stopped = 0;

	(void)state;
	run(&process, ARGV(TARGET, "births"));
	wait_for_threads(process.pid);
	for (int i = 0; i < 100; i++) {
		int error = gt_threads_stop(&process, &threads, &message);

		if (error)
			fail_msg("%s", message.text);
		for (size_t k = 0; k < threads.count; k++) {
			struct user_regs_struct registers;

			if (threads.late[k])
				continue;
			assert_int_equal(gt_thread_registers(threads.tids[k], &registers), 0);
			stopped++;
		}
		gt_threads_resume(&process, &threads);
	}
	assert_true(stopped > 0);
	kill(process.pid, SIGTERM);
	assert_int_equal(end_of(&process), 0);
}

static void program_that_ends_while_it_is_stopped_keeps_its_status(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		struct gt_process process;

		run(&process, ARGV(TARGET, "exit", "9"));
		stop_again_and_again(&process, 1000, false);
		assert_int_equal(WEXITSTATUS(end_of(&process)), 9);
	}
}

static char state_of(pid_t pid)
{
	char path[64], text[512];
	const char *name_end;
	ssize_t bytes;
	int file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(file >= 0);
	bytes = read(file, text, sizeof(text) - 1);
	close(file);
	assert_true(bytes > 0);
	text[bytes] = '\0';
	name_end = strrchr(text, ')');
	assert_non_null(name_end);
	return name_end[2];
}

/* It waits in vfork: it has slept deeply for longer than a page from the disk takes. */
static void wait_for_vfork(pid_t pid)
{
	for (int round = 0, deep = 0; deep < 10; round++) {
		assert_true(round < 6000);
		deep = state_of(pid) == 'D' ? deep + 1 : 0;
		sleep_ms(10);
	}
}

static int stop_in_vain(void *data)
{
	struct gt_stopped_threads threads;
	struct gt_message message = { "" };
	int error = gt_world_stop(data, &threads, 50, &message);

	assert_non_null(strstr(message.text, "vfork"));
	return error;
}

static int call_in_the_killed(void *data)
{
	struct gt_process *process = data;
	struct gt_stopped_threads threads;
	struct gt_message message = { "" };
	struct gt_remote remote;
	const uint64_t none[6] = { 0 };
	int64_t result;
	int error;

	assert_int_equal(gt_threads_stop(process, &threads, &message), 0);
	assert_true(threads.count > 1);
	assert_int_equal(gt_remote_begin(&remote, process, process->pid, &message), 0);
	kill(process->pid, SIGKILL);
	error = gt_remote_call(&remote, SYS_getpid, none, &result, &message);
	gt_threads_resume(process, &threads);
	return error;
}

/* The end of its first thread is told behind those of the others, which wait for us. */
static void a_call_in_a_process_that_is_killed_fails(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		struct gt_process process;

		run(&process, ARGV(TARGET, "busy", "50"));
		wait_for_threads(process.pid);
		assert_int_equal(gt_tracer_run(call_in_the_killed, &process), GT_EGONE);
		assert_int_equal(WTERMSIG(end_of(&process)), SIGKILL);
	}
}

struct stopping {
	struct gt_process process;
	bool goes_on;
};

static int stop_in_a_call(void *data)
{
	struct stopping *stopping = data;
	struct gt_process *process = &stopping->process;
	struct gt_stopped_threads threads;
	struct gt_message message = { "" };
	struct gt_remote remote;
	const uint64_t none[6] = { 0 };
	int64_t result;

	assert_int_equal(gt_threads_stop(process, &threads, &message), 0);
	assert_int_equal(gt_remote_begin(&remote, process, process->pid, &message), 0);
	kill(process->pid, SIGSTOP);
	assert_int_equal(gt_remote_call(&remote, SYS_getpid, none, &result, &message), 0);
	if (stopping->goes_on)
		kill(process->pid, SIGCONT);
	assert_int_equal(gt_remote_call(&remote, SYS_getpid, none, &result, &message), 0);
	assert_int_equal(gt_remote_end(&remote, &message), 0);
	gt_threads_resume(process, &threads);
	return 0;
}

/* By others, while a thread makes a call for us: SIGSTOP is met there, as no mask holds it back. */
static void who_is_stopped_in_a_call_is_continued_by_its_sigcont(void **state)
{
	struct stopping stopping = { .goes_on = true };

	(void)state;
	for (int i = 0; i < 5; i++) {
		run(&stopping.process, ARGV(TARGET, "busy", "100"));
		wait_for_threads(stopping.process.pid);
		assert_int_equal(gt_tracer_run(stop_in_a_call, &stopping), 0);
		for (int round = 0; round < 20; round++) {
			assert_int_not_equal(state_of(stopping.process.pid), 'T');
			sleep_ms(1);
		}
		kill(stopping.process.pid, SIGKILL);
		end_of(&stopping.process);
	}
}

static void who_is_stopped_in_a_call_stays_stopped(void **state)
{
	struct stopping stopping = { .goes_on = false };

	(void)state;
	run(&stopping.process, ARGV(TARGET, "busy", "50"));
	wait_for_threads(stopping.process.pid);
	assert_int_equal(gt_tracer_run(stop_in_a_call, &stopping), 0);
	for (int round = 0; state_of(stopping.process.pid) != 'T'; round++) {
		assert_true(round < 10000);
		sleep_ms(1);
	}
	sleep_ms(100);
	assert_int_equal(state_of(stopping.process.pid), 'T');
	kill(stopping.process.pid, SIGKILL);
	end_of(&stopping.process);
}

/* Nobody asks for it again, and whoever asked lives on: it goes on all the same. */
static void a_thread_that_could_not_be_stopped_goes_on_when_it_is_back(void **state)
{
	struct gt_process process;

	(void)state;
	run(&process, ARGV(TARGET, "vfork", "3000"));
	wait_for_vfork(process.pid);
	assert_int_equal(gt_tracer_run(stop_in_vain, &process), GT_EBUSY);
	assert_int_equal(WEXITSTATUS(end_of(&process)), 7);
}

static bool wants_any(const void *data, uint64_t rip)
{
	(void)data;
	(void)rip;
	return true;
}

static int count_frame(void *data, const struct gt_frame_place *place)
{
	(void)place;
	++*(int *)data;
	return 0;
}

static int keep_first_frame(void *data, const struct gt_frame_place *place)
{
	*(struct gt_frame_place *)data = *place;
	return 1;
}

static uint64_t start_of_stack(const struct gt_process *process, uint64_t word)
{
	struct gt_message message;
	struct gt_maps maps;
	const struct gt_map *stack;
	uint64_t start;

	assert_int_equal(gt_process_maps(process->pid, &maps, &message), 0);
	stack = gt_maps_find(&maps, word);
	assert_non_null(stack);
	start = stack->start;
	gt_maps_free(&maps);
	return start;
}

/* Words below the stack, where it would grow to, that could be a signal frame's return address. */
static void a_stack_that_is_looked_at_does_not_grow(void **state)
{
	volatile uint64_t words[64] = { 0 };
	const uint64_t at = (uint64_t)words;
	struct gt_message message;
	/* No old words on the stack: a restorer's address is one that counts. */
	struct gt_process self = { .pid = getpid() }, process = { .pid = 0 };
	struct gt_maps maps;
	uint64_t start = start_of_stack(&self, at);
	int frames = 0, gate[2];
	pid_t child;

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		words[i] = start - (1 << 20) - i * 4096;
	assert_int_equal(pipe(gate), 0);
	child = fork();
	if (child == 0) {
		char end;

		close(gate[1]);
		_exit(read(gate[0], &end, 1) != 0);
	}
	close(gate[0]);
	assert_int_equal(gt_process_open(&process, child, &message), 0);
	assert_int_equal(gt_process_maps(child, &maps, &message), 0);
	assert_int_equal(
		gt_world_signal_frames(&process, &maps, at, wants_any, count_frame, &frames), 0);
	assert_int_equal(frames, 0);
	assert_int_equal(start_of_stack(&process, at), start);
	gt_maps_free(&maps);
	close(gate[1]);
	assert_int_equal(end_of(&process), 0);
}

/* What a thread is on its way back to, by the signal frames that it stands before. */
static uint64_t goes_back_to(struct gt_process *process)
{
	struct user_regs_struct registers;
	struct gt_maps maps;
	struct gt_frame_place found = { 0 };

	assert_int_equal(gt_thread_registers(process->pid, &registers), 0);
	assert_int_equal(gt_process_maps(process->pid, &maps, NULL), 0);
	gt_world_thread_frames(process, &maps, &registers, wants_any, keep_first_frame, &found);
	gt_maps_free(&maps);
	return found.rip;
}

/* A killed host leaves a thread parked there, and a handler's `ret` leads there. */
static void a_thread_that_goes_back_from_a_handler_still_has_its_frame(void **state)
{
	const uint64_t none[6] = { 0 };
	struct gt_process process;
	struct gt_remote remote;
	int64_t result;
	uint64_t place;
	int status;

	(void)state;
	run(&process, ARGV(TARGET, "busy", "20"));
	sleep_ms(100); /* the C library is there */
	assert_int_equal(gt_thread_stop(process.pid, 0, NULL), 0);
	assert_int_equal(gt_remote_begin(&remote, &process, process.pid, NULL), 0);
	assert_int_not_equal(remote.frame, 0);
	assert_int_equal(gt_remote_call(&remote, SYS_getpid, none, &result, NULL), 0);
	place = goes_back_to(&process);
	assert_true(place == remote.saved.rip || place == remote.saved.rip - 2);
	/* The `ret`, and the first of the two instructions that it leads to. */
	for (int step = 0; step < 2; step++) {
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, process.pid, 0, 0), 0);
		assert_int_equal(waitpid(process.pid, &status, __WALL), process.pid);
		assert_true(WIFSTOPPED(status));
		assert_int_equal(goes_back_to(&process), place);
	}
	kill(process.pid, SIGKILL);
	assert_int_equal(WTERMSIG(end_of(&process)), SIGKILL);
}

static void a_shadow_stack_is_known_by_the_status_of_a_thread(void **state)
{
	(void)state;
	assert_true(gt_shadow_stack_is_on("Name:\tx\nx86_Thread_features:\tshstk \n"
					  "x86_Thread_features_locked:\tshstk wrss \n"));
	assert_true(gt_shadow_stack_is_on("Name:\tx\nx86_Thread_features:\twrss shstk"));
	assert_false(gt_shadow_stack_is_on("Name:\tx\nx86_Thread_features:\t\n"
					   "x86_Thread_features_locked:\tshstk wrss \n"));
	assert_false(gt_shadow_stack_is_on("Name:\tshstk\nx86_Thread_features:\tshstk2 wrss\n"));
	assert_false(gt_shadow_stack_is_on("Name:\tx\nThreads:\t1\n"));
}

static void a_process_is_kept_from_switching_a_shadow_stack_on(void **state)
{
	struct gt_process process;
	struct gt_remote remote;
	char text[16384];

	(void)state;
	start(&process, ARGV("/bin/true"));
	assert_int_equal(gt_remote_begin(&remote, &process, process.pid, NULL), 0);
	assert_int_equal(gt_shadow_stack_forbid(&remote, NULL), 0);
	assert_int_equal(gt_remote_end(&remote, NULL), 0);
	/* A kernel that has none says nothing of it. */
	snprintf(text, sizeof(text), "/proc/%d/status", (int)process.pid);
	FILE *status = fopen(text, "r");
	assert_non_null(status);
	text[fread(text, 1, sizeof(text) - 1, status)] = 0;
	fclose(status);
	assert_int_equal(strstr(text, "x86_Thread_features_locked") != NULL,
			 strstr(text, "x86_Thread_features_locked:\tshstk") != NULL);
	process.stopped = 0;
	assert_int_equal(gt_thread_detach(process.pid), 0);
	assert_int_equal(end_of(&process), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stack_that_is_looked_at_does_not_grow),
		cmocka_unit_test(exec_errors_are_those_of_execvp),
		cmocka_unit_test(status_is_the_programs),
		cmocka_unit_test(program_inherits_what_it_would_without_us),
		cmocka_unit_test(memory_is_written_over_its_protection),
		cmocka_unit_test(remote_calls_leave_no_trace),
		cmocka_unit_test(no_signal_is_lost_or_doubled_when_the_world_stops),
		cmocka_unit_test(interrupted_calls_go_on),
		cmocka_unit_test(threads_that_are_born_meanwhile_are_stopped_too),
		cmocka_unit_test(a_thread_that_could_not_be_stopped_goes_on_when_it_is_back),
		cmocka_unit_test(a_call_in_a_process_that_is_killed_fails),
		cmocka_unit_test(who_is_stopped_in_a_call_is_continued_by_its_sigcont),
		cmocka_unit_test(who_is_stopped_in_a_call_stays_stopped),
		cmocka_unit_test(program_that_ends_while_it_is_stopped_keeps_its_status),
		cmocka_unit_test(a_thread_that_goes_back_from_a_handler_still_has_its_frame),
		cmocka_unit_test(a_shadow_stack_is_known_by_the_status_of_a_thread),
		cmocka_unit_test(a_process_is_kept_from_switching_a_shadow_stack_on),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
