/* SPDX-License-Identifier: MIT */
/*
 * Detaching, and whether frames show an unwinder at work: walks by their call frame information, over what was copied
 * of threads that wait (detach_frames.c).
 *
 * The walk is libdwfl's, and takes what the program has mapped: files that somebody may shorten meanwhile (SIGBUS), rules
 * that want any amount of time and memory. So it is made in a child of ours, between two rounds, with limits and
 * without root's rights. What it does not answer in time counts as an unwinder: the thread is waited for.
 */
#define _GNU_SOURCE
#include "attach/agent/catalog.h"
#include "attach/agent/detach_private.h"
#include "attach/process/clock.h"
#include "attach/process/credentials.h"

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FRAMES_MOST 4096u
/* Of CPU time; some 0.1 ms and 5 µs a frame are usual. It may have to wait for processors, and for files. */
#define WALKS_MS      100u
#define WALKS_MOST_MS 1000u
#define TRIES	      3u
#define MEMORY_BYTES  (256ull << 20)

/* How DWARF numbers the registers: rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 … r15, rip. */
#define DWARF_REGISTERS 17

struct frames {
	struct gt_detach *out;
	Dwfl *dwfl;
	int *files; /* by mapping: descriptors of those with code; -1: it cannot be opened */
	/* Of one walk: */
	const struct gt_detach_walk *walk;
	const struct gt_map *stack; /* where it ends */
	uint64_t read_at;	    /* the word that was read last, */
	uint64_t read;		    /* … and what is there */
	uint32_t count;
	bool unwinds;
	bool failed; /* a word was wanted that was not copied: libdwfl takes that for the outermost frame */
};

static int open_file(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
		     char **file, Elf **elf)
{
	const int *opened = *data;

	(void)module, (void)name, (void)base, (void)file, (void)elf;
	return opened != NULL ? *opened : -1;
}

static int find_no_debug(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
			 const char *file, const char *link, GElf_Word sum, char **found)
{
	(void)module, (void)data, (void)name, (void)base, (void)file, (void)link, (void)sum;
	(void)found;
	return -1;
}

static pid_t no_thread(Dwfl *dwfl, void *data, void **thread)
{
	(void)dwfl, (void)data, (void)thread;
	return 0;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *data, void **thread)
{
	(void)dwfl, (void)tid;
	*thread = data;
	return true;
}

static const uint64_t *copied(const struct gt_detach_walk *walk, uint64_t address)
{
	for (size_t i = 0; i < walk->count; i++)
		if (address % 8 == 0 && (address - walk->stacks[i].at) / 8 < walk->stacks[i].count)
			return &walk->stacks[i].words[(address - walk->stacks[i].at) / 8];
	return NULL;
}

/* A slot that leads to a stub is read as if it had come back: the walk meets only the program's frames. */
static bool read_word(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *word, void *data)
{
	struct frames *frames = data;
	const struct gt_detach *out = frames->out;
	const uint64_t *value = copied(frames->walk, address);
	uint64_t real;

	(void)dwfl;
	/* Words of unwinders lie below walk->last: this frame is the first above, and large. */
	if (value == NULL) {
		if (address < frames->walk->last || address >= frames->stack->end)
			frames->failed = true;
		return false;
	}
	*word = *value;
	if (gt_detach_is_stub_return(out, *word) && gt_detach_has_mirror(out, address) &&
	    gt_process_read(out->process, address ^ GRAFTRACE_MIRROR, &real, sizeof(real)) == 0 &&
	    real)
		*word = real;
	frames->read_at = address;
	frames->read = *word;
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *data)
{
	const struct user_regs_struct *from = &((struct frames *)data)->walk->registers;
	const Dwarf_Word registers[DWARF_REGISTERS] = {
		from->rax, from->rdx, from->rcx, from->rbx, from->rsi, from->rdi,
		from->rbp, from->rsp, from->r8,	 from->r9,  from->r10, from->r11,
		from->r12, from->r13, from->r14, from->r15, from->rip,
	};

	return dwfl_thread_state_registers(thread, 0, DWARF_REGISTERS, registers);
}

/* One module for each file that has code: all its mappings that lie side by side. */
static void report_files(struct frames *frames)
{
	const struct gt_maps *maps = &frames->out->maps;
	size_t next;

	dwfl_report_begin(frames->dwfl);
	for (size_t i = 0; i < maps->count; i = next) {
		const struct gt_map *map = &maps->entries[i];
		bool code = map->executable;
		Dwfl_Module *module;
		struct stat status;
		void **data;

		for (next = i + 1; next < maps->count; next++) {
			const struct gt_map *more = &maps->entries[next];

			if (!map->inode || more->inode != map->inode ||
			    more->device_major != map->device_major ||
			    more->device_minor != map->device_minor)
				break;
			code = code || more->executable;
		}
		if (!map->inode || !code)
			continue;
		module = dwfl_report_module(frames->dwfl, map->path, map->start,
					    maps->entries[next - 1].end);
		if (module == NULL)
			continue;
		frames->files[i] = gt_catalog_open_mapped(frames->out->process->pid, map, &status);
		dwfl_module_info(module, &data, NULL, NULL, NULL, NULL, NULL, NULL);
		*data = &frames->files[i];
	}
	dwfl_report_end(frames->dwfl, NULL, NULL);
}

static bool begin(struct frames *frames)
{
	static const Dwfl_Callbacks files = {
		.find_elf = open_file,
		.find_debuginfo = find_no_debug,
	};

	frames->files = calloc(frames->out->maps.count + 1, sizeof(*frames->files));
	frames->dwfl = frames->files != NULL ? dwfl_begin(&files) : NULL;
	if (frames->dwfl == NULL)
		return false;
	report_files(frames);
	return true;
}

/* Reads the first of the files. */
static bool attach(struct frames *frames)
{
	static const Dwfl_Thread_Callbacks threads = {
		.next_thread = no_thread,
		.get_thread = get_thread,
		.memory_read = read_word,
		.set_initial_registers = set_registers,
	};

	return dwfl_attach_state(frames->dwfl, NULL, frames->out->process->pid, &threads, frames);
}

/* Code that the program has made itself: no file describes its frames. */
static bool is_made(const struct gt_detach *out, uint64_t place)
{
	const struct gt_map *map = gt_maps_find(&out->maps, place);

	return map != NULL && map->executable && !gt_detach_is_ours(out, place) &&
	       (!map->inode || strncmp(map->path, "/memfd:", 7) == 0);
}

/* Whether it can be told where the caller's frame is: by call frame information, or in code that the program has made
 * by rbp, as libdwfl does without. Elsewhere that would be a mere guess. */
static bool is_described(const struct gt_detach *out, Dwfl *dwfl, uint64_t place)
{
	Dwfl_Module *module = dwfl_addrmodule(dwfl, place);
	Dwarf_Addr bias = 0;
	Dwarf_CFI *rules = module != NULL ? dwfl_module_eh_cfi(module, &bias) : NULL;
	Dwarf_Frame *frame;

	if (rules == NULL || dwarf_cfi_addrframe(rules, place - bias, &frame) != 0)
		return is_made(out, place);
	free(frame);
	return true;
}

enum { GO_ON = DWARF_CB_OK, FOUND = DWARF_CB_ABORT, FAILED };

/* FOUND: `unwinds` has the answer. */
static int look_at_frame(Dwfl_Frame *frame, void *data)
{
	struct frames *frames = data;
	bool activation = false;
	Dwarf_Addr pc;

	if (!dwfl_frame_pc(frame, &pc, &activation) || frames->count++ == FRAMES_MOST)
		return FAILED;
	/* Right behind a call that does not return there may be the next function. */
	if (gt_detach_is_unwinder(frames->out, pc - !activation)) {
		frames->unwinds = true;
		return FOUND;
	}
	if (frames->count > 1 && frames->read == pc && frames->read_at >= frames->walk->last &&
	    frames->read_at < frames->stack->end)
		return FOUND;
	return is_described(frames->out, frames->dwfl, pc - !activation) ? GO_ON : FAILED;
}

/* Whether the walk, until the stack pointer is above walk->last, meets an unwinder; also if it cannot be walked so
 * far. */
static bool unwinds(struct frames *frames, const struct gt_detach_walk *walk)
{
	int result;

	frames->walk = walk;
	frames->stack = gt_maps_find(&frames->out->maps, walk->last);
	frames->read_at = frames->read = 0;
	frames->count = 0;
	frames->unwinds = frames->failed = false;
	if (frames->stack == NULL)
		return true;
	result = dwfl_getthread_frames(frames->dwfl, frames->out->process->pid, look_at_frame,
				       frames);
	return result == FOUND || (result == GO_ON && !frames->failed) ? frames->unwinds : true;
}

enum answer { UNKNOWN, WAITS, UNWINDS };

/* So much more memory than there is already, unless graftrace may have less. */
static void limit_memory(void)
{
	struct rlimit limit;
	unsigned long long pages = 0, bytes;
	FILE *file = fopen("/proc/self/statm", "re");

	if (file == NULL || fscanf(file, "%llu", &pages) != 1 || getrlimit(RLIMIT_AS, &limit) != 0)
		_exit(1);
	bytes = pages * (unsigned long long)sysconf(_SC_PAGESIZE) + MEMORY_BYTES;
	if (bytes < limit.rlim_cur)
		limit.rlim_cur = limit.rlim_max = bytes;
	if (setrlimit(RLIMIT_AS, &limit) != 0)
		_exit(1);
}

/* The child has what it needs, and nobody waits for it who waits for the end of a pipe of ours. */
static void close_others(struct gt_process *process)
{
	const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd < 3; fd++)
		if (dup2(nothing, fd) < 0)
			_exit(1);
	if (process->memory != 3 && dup2(process->memory, 3) < 0)
		_exit(1);
	process->memory = 3;
	close_range(4, ~0u, 0);
}

/* The kernel forgets that when the child becomes another user. */
static void end_with(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
		_exit(1);
}

/* From root to the user whose files they are, which are open by now. A root of fewer rights (of a container) may not
 * be able to, and need not for a program of its own. */
static void become(const struct gt_credentials *user)
{
	if (geteuid() != 0 || user->uids[1] == 0)
		return;
	if (setgroups(0, NULL) != 0 ||
	    setresgid(user->gids[1], user->gids[1], user->gids[1]) != 0 ||
	    setresuid(user->uids[1], user->uids[1], user->uids[1]) != 0)
		_exit(1);
}

/* In the child. Each answer is given at once. */
static void answer_all(struct gt_detach *out, const struct gt_credentials *user, pid_t parent,
		       volatile uint8_t *answers)
{
	struct frames frames = { .out = out };

	end_with(parent);
	prctl(PR_SET_DUMPABLE, 0); /* SIGBUS leaves no core file */
	close_others(out->process);
	limit_memory();
	if (!begin(&frames))
		return;
	become(user);
	end_with(parent);
	if (!attach(&frames))
		return;
	for (size_t i = 0; i < out->wanted_count; i++)
		answers[i] = unwinds(&frames, &out->wanted[i]) ? UNWINDS : WAITS;
}

/* CPU time of the child, in ms. */
static uint64_t cpu_ms(pid_t child)
{
	struct timespec time;
	clockid_t clock;

	if (clock_getcpuclockid(child, &clock) != 0 || clock_gettime(clock, &time) != 0)
		return 0;
	return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

/* Ends a child that has used its time. One that hangs in the kernel, with a file, is not waited for. */
static void wait_for(pid_t child)
{
	const struct timespec pause = { 0, 200000 };
	const uint64_t begun = gt_monotonic_ms();
	uint64_t killed = 0;

	while (waitpid(child, NULL, WNOHANG) == 0 &&
	       (!killed || gt_monotonic_ms() - killed < WALKS_MS)) {
		if (!killed &&
		    (cpu_ms(child) >= WALKS_MS || gt_monotonic_ms() - begun >= WALKS_MOST_MS)) {
			kill(child, SIGKILL);
			killed = gt_monotonic_ms();
		}
		nanosleep(&pause, NULL);
	}
}

/* False: there is no child. */
static bool ask_child(struct gt_detach *out, volatile uint8_t *answers)
{
	const pid_t parent = getpid();
	struct gt_credentials user;
	sigset_t all, before;
	pid_t child;

	if (gt_credentials_read(out->process->pid, &user) != 0)
		return false;

	/* No handler of ours runs in the child. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	child = fork();
	if (child == 0) {
		answer_all(out, &user, parent, answers);
		_exit(0);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	gt_credentials_free(&user);
	if (child > 0)
		wait_for(child);
	return child > 0;
}

/* The first that has no answer is what the child could not do, maybe for want of a processor; those behind it are
 * asked again. */
static void take_answers(struct gt_detach *out, const volatile uint8_t *answers)
{
	bool failed = false;

	for (size_t i = 0; i < out->wanted_count; i++) {
		const struct gt_detach_walk *walk = &out->wanted[i];
		struct gt_seen_thread *seen = gt_detach_seen_thread(out, walk->tid);

		if (seen == NULL || (answers[i] == UNKNOWN && failed))
			continue;
		failed = failed || answers[i] == UNKNOWN;
		if (answers[i] == UNKNOWN && ++seen->tries < TRIES)
			continue;
		seen->walked = true;
		seen->unwinds = answers[i] != WAITS;
		seen->sum = walk->sum;
	}
}

void gt_detach_walk(struct gt_detach *out)
{
	uint8_t *answers;

	if (!out->wanted_count)
		return;
	answers = mmap(NULL, GT_DETACH_WALKS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	if (answers != MAP_FAILED && gt_process_maps(out->process->pid, &out->maps, NULL) == 0) {
		if (ask_child(out, answers))
			take_answers(out, answers);
		gt_maps_free(&out->maps);
	}
	if (answers != MAP_FAILED)
		munmap(answers, GT_DETACH_WALKS);
	for (size_t i = 0; i < out->wanted_count; i++)
		gt_detach_free_walk(&out->wanted[i]);
	out->wanted_count = 0;
}
