/* SPDX-License-Identifier: MIT */
/*
 * Detaching, and what a thread is in the midst of: the registers that signals have interrupted, and whether
 * its frames, walked by their call frame information, show an unwinder at work. Words of a stack alone do
 * not tell: room that a call has not filled keeps return addresses of calls that have long returned.
 *
 * The walk is libdwfl's. It opens the files of the frames' code while the process stands still (0.1 ms and more, then some
 * 5 µs for a frame), so a thread is walked only when its answer matters, and again only when its stack has changed.
 */
#define _GNU_SOURCE
#include "attach/agent/catalog.h"
#include "attach/agent/detach_private.h"
#include "attach/agent/world.h"
#include "attach/process/clock.h"

#include <elfutils/libdwfl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <ucontext.h>

/* Rounds in which a thread in a system call is taken to be in an unwinder: these make short ones (a lock). */
#define WAITS_ROUNDS 10u
#define FRAMES_MOST  4096u
/* So long is walked within one stop; who has not had its turn then has it in the next. */
#define WALKS_NS 20000000ull

/* How DWARF numbers the registers: rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 … r15, rip. */
#define DWARF_REGISTERS 17

struct contexts {
	const struct gt_detach *out;
	const struct gt_map *code; /* looked up last */
	struct user_regs_struct *at;
	size_t count;
};

static bool is_code(const void *data, uint64_t address)
{
	struct contexts *contexts = (struct contexts *)data;

	if (address < 65536 || address >= GT_DETACH_HIGHEST)
		return false;
	if (contexts->code == NULL || address < contexts->code->start ||
	    address >= contexts->code->end)
		contexts->code = gt_maps_find(&contexts->out->maps, address);
	return contexts->code != NULL && contexts->code->executable;
}

static int add_context(void *data, const struct gt_frame_place *frame)
{
	struct contexts *contexts = data;
	greg_t saved[REG_RIP + 1];

	if (gt_process_read(contexts->out->process, frame->rip_at - REG_RIP * sizeof(*saved), saved,
			    sizeof(saved)) == 0)
		contexts->at[contexts->count++] = (struct user_regs_struct){
			.r15 = (uint64_t)saved[REG_R15],
			.r14 = (uint64_t)saved[REG_R14],
			.r13 = (uint64_t)saved[REG_R13],
			.r12 = (uint64_t)saved[REG_R12],
			.rbp = (uint64_t)saved[REG_RBP],
			.rbx = (uint64_t)saved[REG_RBX],
			.r11 = (uint64_t)saved[REG_R11],
			.r10 = (uint64_t)saved[REG_R10],
			.r9 = (uint64_t)saved[REG_R9],
			.r8 = (uint64_t)saved[REG_R8],
			.rax = (uint64_t)saved[REG_RAX],
			.rcx = (uint64_t)saved[REG_RCX],
			.rdx = (uint64_t)saved[REG_RDX],
			.rsi = (uint64_t)saved[REG_RSI],
			.rdi = (uint64_t)saved[REG_RDI],
			.orig_rax = ~0ull,
			.rip = (uint64_t)saved[REG_RIP],
			.rsp = (uint64_t)saved[REG_RSP],
		};
	return contexts->count == GT_DETACH_CONTEXTS;
}

size_t gt_detach_contexts(struct gt_detach *out, pid_t tid,
			  const struct user_regs_struct *registers,
			  struct user_regs_struct all[GT_DETACH_CONTEXTS])
{
	struct gt_seen_thread *seen = gt_detach_seen_thread(out, tid);
	struct contexts contexts = { .out = out, .at = all, .count = 1 };

	all[0] = *registers;
	if (seen != NULL && seen->alone == out->rounds)
		return 1;
	gt_world_thread_frames(out->process, &out->maps, registers, is_code, add_context,
			       &contexts);
	if (seen != NULL && contexts.count == 1)
		seen->alone = out->rounds;
	return contexts.count;
}

/* A file that is mapped as code. */
struct source {
	pid_t pid;
	const struct gt_map *map;
};

struct gt_detach_frames {
	struct gt_detach *out;
	Dwfl *dwfl;
	struct source *sources;
	uint64_t walked_ns; /* in this stop */
	/* Of the walk: */
	const struct user_regs_struct *registers;
	uint64_t last; /* the highest stack pointer that matters */
	const struct gt_map *stack;
	uint64_t read_at; /* the word that was read last, */
	uint64_t read;	  /* … and what is there */
	uint32_t count;
	bool unwinds;
};

static int open_source(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
		       char **file, Elf **elf)
{
	const struct source *source = *data;
	struct stat status;

	(void)module, (void)name, (void)base, (void)file, (void)elf;
	return source != NULL ? gt_catalog_open_mapped(source->pid, source->map, &status) : -1;
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

/* A slot that leads to a stub is read as if it had come back: the walk meets only the program's frames. */
static bool read_word(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *word, void *data)
{
	struct gt_detach_frames *frames = data;
	const struct gt_detach *out = frames->out;
	const struct gt_map *map = gt_maps_find(&out->maps, address);
	uint64_t value, real;

	(void)dwfl;
	if (map == NULL || !map->readable ||
	    gt_process_read(out->process, address, &value, sizeof(value)))
		return false;
	if (gt_detach_is_stub_return(out, value) && gt_detach_has_mirror(out, address) &&
	    gt_process_read(out->process, address ^ GRAFTRACE_MIRROR, &real, sizeof(real)) == 0 &&
	    real)
		value = real;
	frames->read_at = address;
	frames->read = value;
	*word = value;
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *data)
{
	const struct user_regs_struct *from = ((struct gt_detach_frames *)data)->registers;
	const Dwarf_Word registers[DWARF_REGISTERS] = {
		from->rax, from->rdx, from->rcx, from->rbx, from->rsi, from->rdi,
		from->rbp, from->rsp, from->r8,	 from->r9,  from->r10, from->r11,
		from->r12, from->r13, from->r14, from->r15, from->rip,
	};

	return dwfl_thread_state_registers(thread, 0, DWARF_REGISTERS, registers);
}

/* One module for each file that has code: all its mappings that lie side by side. */
static void report_files(struct gt_detach_frames *frames)
{
	const struct gt_maps *maps = &frames->out->maps;
	size_t next;

	dwfl_report_begin(frames->dwfl);
	for (size_t i = 0; i < maps->count; i = next) {
		const struct gt_map *map = &maps->entries[i];
		bool code = map->executable;
		Dwfl_Module *module;
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
		frames->sources[i] = (struct source){ frames->out->process->pid, map };
		dwfl_module_info(module, &data, NULL, NULL, NULL, NULL, NULL, NULL);
		*data = &frames->sources[i];
	}
	dwfl_report_end(frames->dwfl, NULL, NULL);
}

static struct gt_detach_frames *make(struct gt_detach *out)
{
	static const Dwfl_Callbacks files = {
		.find_elf = open_source,
		.find_debuginfo = find_no_debug,
	};
	static const Dwfl_Thread_Callbacks threads = {
		.next_thread = no_thread,
		.get_thread = get_thread,
		.memory_read = read_word,
		.set_initial_registers = set_registers,
	};
	struct gt_detach_frames *frames = calloc(1, sizeof(*frames));

	if (frames == NULL)
		return NULL;
	out->frames = frames;
	frames->out = out;
	frames->sources = calloc(out->maps.count + 1, sizeof(*frames->sources));
	frames->dwfl = frames->sources != NULL ? dwfl_begin(&files) : NULL;
	if (frames->dwfl != NULL) {
		report_files(frames);
		if (!dwfl_attach_state(frames->dwfl, NULL, out->process->pid, &threads, frames)) {
			dwfl_end(frames->dwfl);
			frames->dwfl = NULL;
		}
	}
	return frames;
}

void gt_detach_end_frames(struct gt_detach *out)
{
	if (out->frames == NULL)
		return;
	if (out->frames->dwfl != NULL)
		dwfl_end(out->frames->dwfl);
	free(out->frames->sources);
	free(out->frames);
	out->frames = NULL;
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
	struct gt_detach_frames *frames = data;
	bool activation = false;
	Dwarf_Addr pc;

	if (!dwfl_frame_pc(frame, &pc, &activation) || frames->count++ == FRAMES_MOST)
		return FAILED;
	/* Right behind a call that does not return there may be the next function. */
	if (gt_detach_is_unwinder(frames->out, pc - !activation)) {
		frames->unwinds = true;
		return FOUND;
	}
	if (frames->count > 1 && frames->read == pc && frames->read_at >= frames->last &&
	    frames->read_at < frames->stack->end)
		return FOUND;
	return is_described(frames->out, frames->dwfl, pc - !activation) ? GO_ON : FAILED;
}

/* Whether the walk from these registers, until the stack pointer is above `last`, meets an unwinder; also if it
 * cannot be walked so far. */
static bool walk_unwinds(struct gt_detach_frames *frames, const struct user_regs_struct *registers,
			 uint64_t last)
{
	int result;

	frames->registers = registers;
	frames->last = last;
	frames->stack = gt_maps_find(&frames->out->maps, last);
	frames->read_at = frames->read = 0;
	frames->count = 0;
	frames->unwinds = false;
	if (frames->dwfl == NULL || frames->stack == NULL)
		return true;
	result = dwfl_getthread_frames(frames->dwfl, frames->out->process->pid, look_at_frame,
				       frames);
	return result == GO_ON || result == FOUND ? frames->unwinds : true;
}

/* What the answer of a walk depends on: 64-bit FNV-1a, by words. */
static void add_to_sum(uint64_t *sum, const uint64_t *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		*sum = (*sum ^ words[i]) * 0x100000001b3ull;
}

/* Where the frame of an unwinder can be highest, by the words of all stacks that the thread goes back to: its
 * stack pointer; 0: nowhere. *sum: of all that lies below. */
static uint64_t highest_unwinder(struct gt_detach *out, pid_t tid,
				 const struct user_regs_struct *registers, uint64_t *words,
				 uint64_t *sum)
{
	struct user_regs_struct contexts[GT_DETACH_CONTEXTS];
	const size_t count = gt_detach_contexts(out, tid, registers, contexts);
	uint64_t highest = 0, at = 0;

	*sum = 0xcbf29ce484222325ull;
	for (size_t i = 0; i < count; i++) {
		const size_t have = gt_detach_read_stack(out, &contexts[i], words, &at);
		size_t used = have;

		while (used && !gt_detach_is_unwinder(out, words[used - 1]))
			used--;
		if (used)
			highest = at + used * 8;
		else if (gt_detach_is_unwinder(out, contexts[i].rip))
			highest = contexts[i].rsp;
		add_to_sum(sum, (const uint64_t *)&contexts[i], sizeof(contexts[i]) / 8);
		add_to_sum(sum, words, used);
	}
	return highest;
}

bool gt_detach_only_waits(struct gt_detach *out, pid_t tid,
			  const struct user_regs_struct *registers)
{
	struct gt_seen_thread *seen;
	uint64_t *words, highest, sum, start;

	if ((long)registers->orig_rax < 0 || out->rounds <= WAITS_ROUNDS ||
	    gt_detach_is_ours(out, registers->rip))
		return false;
	seen = gt_detach_seen_thread(out, tid);
	words = malloc(GT_DETACH_STACK_WORDS * sizeof(*words));
	if (seen == NULL || words == NULL) {
		free(words);
		return false;
	}
	highest = highest_unwinder(out, tid, registers, words, &sum);
	free(words);
	if (!highest)
		return true;
	if (seen->walked && seen->sum == sum)
		return !seen->unwinds;
	if (out->frames == NULL && make(out) == NULL)
		return false;
	if (out->frames->walked_ns >= WALKS_NS)
		return false;
	start = gt_monotonic_ns();
	seen->unwinds = walk_unwinds(out->frames, registers, highest);
	seen->walked = true;
	seen->sum = sum;
	out->frames->walked_ns += gt_monotonic_ns() - start;
	return !seen->unwinds;
}
