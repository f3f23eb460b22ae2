/* SPDX-License-Identifier: MIT */
/*
 * The agent as the host side sees it: the image that is put into a process, the regions of stubs
 * beside the code, and the words that the host reads and writes in the process's memory.
 *
 * Image: position independent, no relocations. [0, text_bytes) is mapped read + execute,
 * [text_bytes, image_bytes) read + write; both start on page boundaries and file_bytes of the whole
 * come from the blob (the rest is zero). It starts with struct graftrace_agent_image.
 *
 * Region: for each cluster of objects within 1.9 GB one mapping (read + execute once it is written):
 *	page 0            struct graftrace_region
 *	hot_offset        a copy of the image's hot text (hot_bytes at hot_source)
 *	stubs_offset      stubs, 32 bytes each, 32-byte aligned
 *	anywhere behind   moved code (bodies of unprepared functions)
 *
 * A function's stub, at slot address T (T % 32 == 0), function number n:
 *	T+0   e8 rel32         call  hot + entry
 *	T+5   0f 82 rel32      jc    body             not traced: the return address is in place
 *	T+11  48 8d 64 24 08   lea   8(%rsp),%rsp     flags stay
 *	T+16  e8 rel32         call  body             takes the return slot
 *	T+21  68 imm32         push  $(n << 1 | 1)    (sign-extended)
 *	T+26  e9 rel32         jmp   hot + exit
 *	T+31  cc
 * n is not in the entry's code: n = (T + 5 - region.bias) / 32, so stubs of a region have consecutive
 * numbers. The function's first bytes become `jmp T`; `body` is where it goes on: behind its
 * compiler-made nops or fentry call, or the moved first instructions, which end in a jump back.
 *
 * A hook's stub (agent's own interest in a libc function), 32 bytes:
 *	T+0   68 imm32         push  $site            index into graftrace_agent_state.hooks
 *	T+5   e8 rel32         call  hot + hook
 *	T+10  48 8d 64 24 08   lea   8(%rsp),%rsp
 *	T+15  e9 rel32         jmp   body
 *	T+20  cc …
 *
 * A probe's stub (struct graftrace_probe_site stands behind it). It is entered from the middle of a function,
 * which may have values in the 128 bytes below its stack pointer, and in the flags:
 *	T+0   48 8d 64 24 80   lea   -128(%rsp),%rsp
 *	T+5   e8 rel32         call  hot + event
 *	T+10  48 8d a4 24 80 0 0 0  lea 128(%rsp),%rsp
 *	T+18  e9 rel32         jmp   body
 *	T+23  cc …
 *
 * An event's straight line, where its fields are numbers at hand (struct graftrace_event_line stands before it):
 *	L+0   48 8d 64 24 80   lea   -128(%rsp),%rsp
 *	L+5   e8 rel32         call  hot + place	rcx: the record's place; else goes on at T+5 of the stub
 *	L+10  …                each field into the record
 *	      …                the clock, last; registers and flags as they were
 *	      48 8d a4 24 80 0 0 0  lea 128(%rsp),%rsp
 *	      e9 rel32         jmp   body
 *
 * A system call's place (doc/design/syscalls.md), a multiple of GRAFTRACE_CALL_ALIGNMENT:
 *	T+0    a probe's stub: before the call; goes on at A
 *	T+32   struct graftrace_probe_site: GRAFTRACE_SITE_ENTERS
 *	T+40   48 8d a4 24 80 0 0 0  lea 128(%rsp),%rsp		(where the stub goes on for B)
 *	T+48   e9 rel32         jmp   B
 *	T+64   a probe's stub: behind the call; goes on at R
 *	T+96   struct graftrace_probe_site: GRAFTRACE_SITE_LEAVES
 *	T+128  moved code, up to the call: A syscall; jmp T+64; B syscall; (a number: jmp T+64;) R …
 */
#ifndef GRAFTRACE_AGENT_H
#define GRAFTRACE_AGENT_H

#include <stdint.h>
#include <graftrace/arena.h>
#include <graftrace/record.h>

#define GRAFTRACE_AGENT_MAGIC 0x31544e4547415447ull /* "GTAGENT1" */
#define GRAFTRACE_STUB_BYTES  32
#define GRAFTRACE_STUB_RETURN 21 /* offset of the return point in a stub */
#define GRAFTRACE_STUB_LEAVES 26 /* and of the jump to hot + exit */

struct graftrace_agent_image {
	uint64_t magic;
	uint32_t text_bytes;
	uint32_t file_bytes;
	uint32_t image_bytes;
	uint32_t state_offset;	    /* struct graftrace_agent_state */
	uint32_t null_block_offset; /* initial value of gs_base for every thread: image + this */
	uint32_t hot_source;
	uint32_t hot_bytes;
	/* offsets within the hot text */
	uint32_t entry;	     /* an ordinary function */
	uint32_t entry_root; /* a set_graph_function root */
	uint32_t entry_only; /* recorded without its return */
	uint32_t exit;
	uint32_t hook;
	uint32_t entry_trigger; /* a function that stands in the arena's table of triggers */
	uint32_t entry_notrace; /* a function of set_graph_notrace */
	uint32_t entry_silent;	/* patched for the stack traces of others */
	uint32_t entry_nothing; /* not recorded in any way, and needs its real return address */
	uint32_t event;		/* a probe in the middle of a function */
	/* Values of calls: one to six arguments in the general registers that pass them, in their order
	 * (routine n at arguments + (n - 1) * GRAFTRACE_ARGUMENTS_BYTES), and a result in rax. What
	 * a values stub calls where that is all there is to record. */
	uint32_t arguments;
	uint32_t result;
	/* A function whose return a probe waits for: … + enum graftrace_entry * GRAFTRACE_PROBED_BYTES, by what
	 * its entry is besides; not for those that need their real return address. */
	uint32_t entry_probed;
	uint32_t place; /* takes the place of an event's record, for its straight line */
	/* offsets within the image, for graftrace_region */
	uint32_t entry_slow;
	uint32_t exit_slow;
	uint32_t hook_slow;
	uint32_t trap_entry;	/* the handler of SIGTRAP … */
	uint32_t trap_restorer; /* … and what it returns to */
	uint32_t resolver;	/* uint64_t (*)(uint64_t return_slot): where the real address is */
	uint32_t fork_offset;	/* a page; enum graftrace_fork_mark in its first 8 bytes */
	uint32_t eh_frame_hdr;	/* unwind data of the image's text, by the assembler and compiler */
	uint32_t event_slow;	/* for graftrace_region */
	uint32_t turn;	    /* code that waits for another thread, and makes no system call … */
	uint32_t turn_end;  /* … and where it ends */
	uint8_t phdrs[112]; /* two Elf64_Phdr, for dl_iterate_phdr: as in graftrace_region_unwind */
};

/* The host that maps the image has the mark's page wiped by fork (MADV_WIPEONFORK), and sets the mark
 * before traced code can run: a fork's child finds it wiped. */
enum graftrace_fork_mark {
	GRAFTRACE_FORK_CHILD = 0,
	GRAFTRACE_FORK_TOLD = 1,
	GRAFTRACE_FORK_CLAIMED = 2, /* a thread of the child is telling of it */
};

#define GRAFTRACE_PROBED_BYTES	  16
#define GRAFTRACE_ARGUMENTS_BYTES 256
#define GRAFTRACE_ARGUMENTS_MAX	  6

#define GRAFTRACE_REGION_TEXTS 32

/* Page 0 of a region; written by the host through /proc/PID/mem. */
struct graftrace_region {
	uint64_t bias; /* stubs' address + 5 - 32 * number of the first function */
	uint64_t reserved0;
	uint64_t entry_slow; /* absolute: image + entry_slow */
	uint64_t exit_slow;
	uint64_t hook_slow;
	uint64_t state; /* absolute: image + state_offset */
	/* The journal: the original bytes of the program's code that this region's patches replace,
	 * so that a later host can restore them from this memory alone. An entry is written before
	 * the code and stays; it is valid while the code is `patched`. */
	uint64_t journal;	/* address of struct graftrace_patch[] */
	uint32_t journal_mains; /* the first entries: one for each stub, in order; bytes 0 = none */
	uint32_t journal_room;	/* entries that there is room for */
	uint32_t journal_used;	/* entries; those after the mains are appended, entry then count */
	uint32_t text_count;	/* entries of `texts` in use */
	uint64_t event_slow;
	uint64_t reserved[6];
	/* Ranges of code with patches elsewhere than at the starts of functions, which the appended
	 * entries of the journal have. For threads that are interrupted just before such a patch
	 * (port/program/hooks.c). */
	struct {
		uint64_t start;
		uint64_t end;
	} texts[GRAFTRACE_REGION_TEXTS];
};

/* The rest of page 0: unwind data for [region, region + bytes), found by _dl_find_object and
 * dl_iterate_phdr through the agent's hooks; made by the host (attach/agent/region_unwind.c). */
#define GRAFTRACE_REGION_UNWIND_OFFSET 1024
GRAFTRACE_STATIC_ASSERT(sizeof(struct graftrace_region) <= GRAFTRACE_REGION_UNWIND_OFFSET,
			"page 0");
struct graftrace_region_unwind {
	uint8_t phdrs[112]; /* two Elf64_Phdr (PT_LOAD, PT_GNU_EH_FRAME), for dl_iterate_phdr */
	uint8_t eh_frame_hdr[256];
	uint8_t eh_frame[2560];
	/* Of one jump, wherever it stands: it stands for what it leads to. */
	uint8_t jump_hdr[16];
	uint8_t jump_frame[128];
};

/*
 * Which instruction of the program an instruction among the moved code stands for: 4 bytes for each
 * 16 of it, from region.places on. 2 GB less than that, from the region's start, is
 *  - an address outside of the region: the instruction at N of the 16 is the one at N from there;
 *  - the address of a graftrace_places inside it.
 */
#define GRAFTRACE_PLACES_BYTES 16
#define GRAFTRACE_PLACES_BIAS  0x80000000ull
struct graftrace_places {
	uint32_t base;			    /* an address, as above */
	uint8_t at[GRAFTRACE_PLACES_BYTES]; /* what is to be added for each byte … */
};
#define GRAFTRACE_PLACES_PUSHED 0x80 /* … and whether one word has been pushed besides */
/* Alone: nothing is to be added, and the stack pointer lies GRAFTRACE_RED_ZONE bytes lower. */
#define GRAFTRACE_PLACES_BELOW 0x7f
#define GRAFTRACE_RED_ZONE     128 /* below the stack pointer a function may keep values */

/* One patch of the program's code. */
struct graftrace_patch {
	uint64_t address;
	uint8_t bytes;	   /* of both, <= 8; 0 = none */
	uint8_t neutral;   /* `patched` may also be one 5-byte nop: a function that is off */
	uint8_t elsewhere; /* it stands in the midst of code, and not at a function's entry */
	uint8_t pad[5];
	uint8_t original[8];
	uint8_t patched[8];
};

GRAFTRACE_STATIC_ASSERT(sizeof(struct graftrace_patch) == 32, "a patch is 32 bytes");

#define GRAFTRACE_REGION_HOT_OFFSET   4096
#define GRAFTRACE_REGION_STUBS_OFFSET (4096 + 8192)

/*
 * Probes. Behind the stub of a place stands its struct graftrace_probe_site, in the region, which the
 * program cannot write to; it leads to what is recorded there. Each argument is one field of the
 * event, fetched by a short program of its own: where the value begins (`place`), then `step_count`
 * dereferences, each of the address value + step. All but the last one read 8 bytes, the last one what
 * `take` says: a number of `bytes` bytes, or a text or an array that begins at that address. What
 * cannot be read is said to be so (graftrace_special_word's faults), and does no harm.
 */
enum graftrace_probe_place {
	GRAFTRACE_PLACE_UNKNOWN = 0,  /* cannot be told: the field is said to be unreadable */
	GRAFTRACE_PLACE_REGISTER = 1, /* general register `base`, from bit `value` on */
	GRAFTRACE_PLACE_CONSTANT = 2, /* `value` itself */
	GRAFTRACE_PLACE_MEMORY = 3,   /* at base + (index << shift) + value */
	GRAFTRACE_PLACE_VECTOR = 4,   /* the low half of vector register `base` */
	GRAFTRACE_PLACE_COMM = 5,     /* the thread's name; only as a text */
	/* Where the function returns to: at its entry and at its return, whatever stands there. */
	GRAFTRACE_PLACE_CALLER = 6,
};

enum graftrace_probe_take {
	GRAFTRACE_TAKE_NUMBER = 0,
	GRAFTRACE_TAKE_STRING = 1,  /* the text at the address that the value is */
	GRAFTRACE_TAKE_ARRAY = 2,   /* `count` numbers of `bytes` bytes there, behind each other */
	GRAFTRACE_TAKE_STRINGS = 3, /* … addresses of texts there */
};

#define GRAFTRACE_NO_REGISTER 0xff

struct graftrace_probe_argument {
	uint8_t place; /* enum graftrace_probe_place */
	uint8_t bytes; /* 1, 2, 4, 8 */
	uint8_t is_signed;
	uint8_t take; /* enum graftrace_probe_take */
	uint8_t base; /* a register as instructions number them, or GRAFTRACE_NO_REGISTER */
	uint8_t index;
	uint8_t shift;
	uint8_t step_count;
	int64_t value;
	uint16_t first_step; /* of the probe's steps */
	uint8_t count;	     /* of an array */
	uint8_t bit_count;   /* of a bit-field: so many bits … */
	uint8_t bit_first;   /* … from this one on; bit_count 0: all of the number */
	uint8_t reserved[3];
};

GRAFTRACE_STATIC_ASSERT(sizeof(struct graftrace_probe_argument) == 24, "an argument is 24 bytes");

/* In front of an event's straight line, which is aligned to GRAFTRACE_STUB_BYTES. */
struct graftrace_event_line {
	uint64_t bytes;	 /* of the record; 0: the probe's stub is to do it all */
	uint64_t head;	 /* the record's first word … */
	uint64_t number; /* … and its third, without faults */
	uint64_t slow;	 /* address of the call in the probe's stub */
};

#define GRAFTRACE_LINE_BELOW  5	 /* from here on in the line the stack pointer is lowered … */
#define GRAFTRACE_LINE_RETURN 10 /* … where its first call returns to */

GRAFTRACE_STATIC_ASSERT(sizeof(struct graftrace_event_line) == 32, "the line begins behind it");

struct graftrace_probe_site {
	uint64_t first; /* address of a struct graftrace_probe, 0: nothing is recorded */
};

/* Instead of an address: the stubs of a system call (struct graftrace_syscall tells what is recorded). */
#define GRAFTRACE_SITE_ENTERS	 1u
#define GRAFTRACE_SITE_LEAVES	 2u
#define GRAFTRACE_CALL_TWICE	 40u
#define GRAFTRACE_CALL_LEAVES	 64u
#define GRAFTRACE_CALL_BYTES	 128u
#define GRAFTRACE_CALL_ALIGNMENT 128u
/* Of A in the moved code: where B stands behind it. */
#define GRAFTRACE_CALL_B 7u
/* … and R, which is where the stub behind the call goes on. */
#define GRAFTRACE_CALL_R 22u

/* Behind it `argument_count` struct graftrace_probe_argument, then the steps, int64_t each. */
struct graftrace_probe {
	uint64_t next;	/* address of the next one at the same place, 0: this is the last */
	uint32_t event; /* its number in records */
	uint16_t argument_count;
	uint16_t flags; /* GRAFTRACE_PROBE_… */
};

/* It stands behind the function's return: there is one word more on the stack than the function had,
 * in the place of its return address. */
#define GRAFTRACE_PROBE_RETURN 1u
/* It is of a call: `event` is GRAFTRACE_VALUES | …, and what is before it is no probe's stub but
 *	T+0   e8 rel32         call  hot + event, arguments or result
 *	T+5   e9 rel32         jmp   hot + entry, or hot + exit
 * which the function's stub calls in the place of hot + entry, or jumps to in that of hot + exit. A text
 * at address 0 is none, and is no fault. */
#define GRAFTRACE_PROBE_OF_CALL 2u
#define GRAFTRACE_PROBE_OF_ROOT 4u /* … of a function of set_graph_function */

GRAFTRACE_STATIC_ASSERT(sizeof(struct graftrace_probe) == 16, "a probe is 16 bytes and arguments");

#define GRAFTRACE_PROBE_STEPS 64 /* of a probe, at most */

enum graftrace_hook {
	GRAFTRACE_HOOK_LONGJMP =
		1, /* longjmp, _longjmp, siglongjmp, __longjmp_chk: rdi = jmp_buf */
	GRAFTRACE_HOOK_UNWIND_SETIP = 2, /* _Unwind_SetIP; argument = address of _Unwind_GetCFA */
	GRAFTRACE_HOOK_SETCONTEXT = 3,	 /* setcontext: rdi = ucontext */
	GRAFTRACE_HOOK_SWAPCONTEXT = 4,	 /* swapcontext: rsi = ucontext */
	GRAFTRACE_HOOK_DEBUG_STATE =
		5,		 /* _dl_debug_state (r_debug.r_brk); argument = r_debug or 0 */
	GRAFTRACE_HOOK_EXEC = 6, /* execve, execveat, fexecve */
	GRAFTRACE_HOOK_FIND_OBJECT = 7,	 /* _dl_find_object */
	GRAFTRACE_HOOK_ITERATE_PHDR = 8, /* dl_iterate_phdr */
	/* _Unwind_Backtrace: its callback is not told of our frames; argument = address of
	 * _Unwind_GetIP */
	GRAFTRACE_HOOK_UNWIND_BACKTRACE = 9,
	/* Called where no open call can lie below: a thread's clean-up, when what it was in ended
	 * by pthread_exit or cancellation. */
	GRAFTRACE_HOOK_LEAVE = 10,
	/* __tsan_func_entry: rdi = return address of the function that begins; a stub's becomes the
	 * real one, so that ThreadSanitizer's reports name callers. */
	GRAFTRACE_HOOK_TSAN = 11,
	/* sigaction: edi = signal, rsi = the new one or 0. signal(3) calls it too. */
	GRAFTRACE_HOOK_SIGACTION = 12,
	/* For breakpoints only (struct graftrace_traps): functions that can block SIGTRAP, or ask for
	 * it. */
	GRAFTRACE_HOOK_SIGMASK = 13,	/* pthread_sigmask, sigprocmask: edi = how, rsi, rdx */
	GRAFTRACE_HOOK_WAITMASK = 14,	/* the masks of sigsuspend, ppoll and their kind; argument
					 * = which of the arguments it is, from 0 */
	GRAFTRACE_HOOK_SIGPENDING = 15, /* sigpending: rdi */
	GRAFTRACE_HOOK_SIGWAIT = 16,	/* sigwait, sigwaitinfo, sigtimedwait: rdi = set */
	GRAFTRACE_HOOK_SYSCALL = 17,	/* syscall: rdi = number, rsi … = arguments */
	/* prctl: edi = what, rsi and rdx. It may be a sandbox that the thread is about to enter. */
	GRAFTRACE_HOOK_THREAD = 19, /* pthread_create */
	GRAFTRACE_HOOK_PRCTL = 18,
	/* getcontext: as swapcontext it saves where it returns to, which must be no stub. */
	GRAFTRACE_HOOK_GETCONTEXT = 20,
	/* clone: rdi = function, rsi = stack, edx = flags, rcx = argument */
	GRAFTRACE_HOOK_CLONE = 21,
	GRAFTRACE_HOOK_ARCH_PRCTL = 22, /* arch_prctl: edi = what, rsi = address */
	GRAFTRACE_HOOK_MLOCKALL = 23,	/* mlockall: edi = flags */
};

struct graftrace_hook_site {
	uint64_t kind;	   /* enum graftrace_hook */
	uint64_t body;	   /* where the hooked function goes on (address in a region) */
	uint64_t argument; /* as the kind says */
};

/*
 * Breakpoints. An int3 kills a process that has SIGTRAP blocked. So while `active` the program's mask
 * and action of SIGTRAP are not given to the kernel: they are kept here (and in the thread block), and
 * given back at the end.
 */
#define GRAFTRACE_TRAPS	      1024 /* breakpoints at most, a power of 2 */
#define GRAFTRACE_TRAP_SIGNAL 5
struct graftrace_traps {
	uint32_t active;   /* the host has set the action of SIGTRAP */
	uint32_t sequence; /* of `handler` … `mask`: odd while they are written */
	uint64_t handler;  /* what the program has set: SIG_DFL 0, SIG_IGN 1, … */
	uint64_t flags;	   /* SA_… */
	uint64_t restorer; /* … of the kernel's structure */
	uint64_t mask;
	uint64_t in_masks; /* bit n - 1: SIGTRAP was taken out of the mask of signal n's handler */
	uint64_t scratch[8]; /* the host's, for its system calls */
	/* By hash of the address (GRAFTRACE_TRAP_HASH), then the next ones; address 0: free. An
	 * entry is written before the breakpoint is, stub first, and stays. */
	struct {
		uint64_t address; /* of the int3 */
		uint64_t stub;
	} table[GRAFTRACE_TRAPS];
};
#define GRAFTRACE_TRAP_HASH(address) \
	((uint32_t)((uint64_t)(address)*0x9e3779b97f4a7c15ull >> 48) % GRAFTRACE_TRAPS)

#define GRAFTRACE_BLOCK_BYTES  256
#define GRAFTRACE_BLOCKS       256
#define GRAFTRACE_BLOCK_CHUNKS 128

#define GRAFTRACE_AGENT_RESOLVERS 4
#define GRAFTRACE_AGENT_REGIONS	  32
#define GRAFTRACE_AGENT_HOOKS	  256
#define GRAFTRACE_AGENT_CONSTANTS 64
#define GRAFTRACE_AGENT_UNWINDERS 16

#define GRAFTRACE_PASSING UINT64_MAX /* see graftrace_agent_state.passing */

/* The agent's state in the process. The host fills the first part before any traced call runs, adds
 * regions and hooks later (entry first, then the count), and reads the rest. */
struct graftrace_agent_state {
	uint64_t magic;	     /* GRAFTRACE_AGENT_MAGIC once the host has filled it */
	uint64_t arena;	     /* address of the arena in this process */
	uint64_t image;	     /* address of the image */
	uint64_t flags;	     /* GRAFTRACE_AGENT_… */
	uint64_t stack_low;  /* the initial thread's stack: lowest address it may grow to … */
	uint64_t stack_high; /* … and its end. 0: unknown */
	uint64_t tsc_per_ms;
	/* The number of what the host has noted of this process, which a forked child has, too; 0: it is being
	 * changed. Only the host's. */
	uint64_t notes;
	uint32_t region_count;
	uint32_t hook_count;
	struct {
		uint64_t start;
		uint64_t bytes;
	} regions[GRAFTRACE_AGENT_REGIONS];
	struct graftrace_hook_site hooks[GRAFTRACE_AGENT_HOOKS];

	/* The agent's, read by the host that takes everything out again. */
	uint64_t mappings;     /* address of the first struct graftrace_mappings, 0 = none */
	uint64_t mirror_table; /* struct graftrace_granule[mirror_size] */
	uint64_t mirror_size;
	uint32_t
		called_out; /* calls of the program under way that the agent has made, but for `looking` */
	uint32_t sandboxed; /* 1: a filter may forbid the agent's system calls, it makes none */
	/* The host's, while it passes the arena: sockets that it has made the process open, each
	 * with its inode (a number alone may be another file's by now). inode 0: none; but with
	 * the first descriptor GRAFTRACE_PASSING their numbers, -1 where there are none yet, are two
	 * int32_t at the address that stands there as the first inode. */
	struct {
		uint64_t descriptor;
		uint64_t inode;
	} passing[2];
	struct graftrace_traps traps;
	/* Words of the program that hold the address of `resolver`; 0: no more. Noted first. */
	uint64_t resolvers[GRAFTRACE_AGENT_RESOLVERS];
	/* The agent's: where its thread blocks lie, GRAFTRACE_BLOCKS of GRAFTRACE_BLOCK_BYTES at
	 * each address; 0: no more. Here and in the blocks the host looks for what it may write to,
	 * not in the arena. */
	uint64_t blocks[GRAFTRACE_BLOCK_CHUNKS];
	uint32_t
		deserted; /* 1: the arena's host has died, and a later host cleans up: no thread waits
			    * for an answer */
	uint32_t walking; /* of called_out: walks over a stack (GRAFTRACE_HOOK_UNWIND_BACKTRACE) */
	/* The agent's: what slot of the same number of the arena's mail is about. */
	struct graftrace_letter letters[GRAFTRACE_ARENA_MAIL];
	/* The host's: read-only memory that stays for as long as the program runs, of the program's file
	 * and of libraries that it cannot unload. What lies there is read without a system call. */
	uint32_t constant_count;
	uint32_t constant_reserved;
	struct {
		uint64_t start;
		uint64_t end;
	} constants[GRAFTRACE_AGENT_CONSTANTS];
	uint32_t
		suspends; /* the host's. 1: contexts that a signal preempted may wait in memory, with no
			    * thread that runs them */
	/* The host's: the process's number as itself sees it (getpid), which a child on the same memory
	 * has not; after a fork the parent's. 0: unknown */
	uint32_t process;
	/* The host's: code of unwinders, of libraries and of those that are linked in (-static,
	 * -static-libgcc). Who takes the agent out, a later host, too, waits for threads that unwind.
	 * end 0: none */
	struct {
		uint64_t start;
		uint64_t end;
	} unwinders[GRAFTRACE_AGENT_UNWINDERS];
	/* Calls under way that the agent has made for unwinders: they end soon. */
	uint32_t looking;
	/* The host's, while it takes the agent out. 1: no more calls begin that count in `called_out` and
	 * call the program. */
	uint32_t leaving;
	uint64_t told; /* address of the struct graftrace_told; 0: it could not be mapped */
	/* The agent's. 1: others than unwinders, which copy what they use, were told of it, or of an earlier agent by
	 * it: it stays. */
	uint32_t told_others;
	uint32_t reserved1;
};

/*
 * What dl_iterate_phdr tells of the agent, but for the addresses: a page of its own, read-only for the
 * program. It stays mapped after the agent, since whoever was told may keep the pointers, which are good
 * until a dlclose for those of libraries. A later host uses it again.
 */
#define GRAFTRACE_TOLD_MAGIC 0x31444c4f54544721ull /* "!GTTOLD1" */
#define GRAFTRACE_TOLD_BYTES 4096
struct graftrace_told {
	uint64_t magic;
	char name[16];
	/* Two Elf64_Phdr each: the image's, then those of the regions in their order. */
	uint8_t headers[1 + GRAFTRACE_AGENT_REGIONS][112];
};
GRAFTRACE_STATIC_ASSERT(sizeof(struct graftrace_told) <= GRAFTRACE_TOLD_BYTES, "it is a page");

/* Memory that the agent has mapped for itself. A page each, linked; it lists itself too. */
#define GRAFTRACE_MAPPINGS 254
struct graftrace_mappings {
	uint64_t next;
	uint64_t used; /* entries that are or were in use */
	struct {
		uint64_t start; /* 0: free */
		uint64_t bytes;
	} entries[GRAFTRACE_MAPPINGS];
};

/* 64 KiB of a stack that have their mirror. */
struct graftrace_granule {
	uint64_t key;  /* (address of the stack >> 16) + 2; 0, 1: no entry */
	uint64_t uses; /* contexts that use it; bit 63: an unreadable mapping was there before */
};

#define GRAFTRACE_MIRROR_BIT	46 /* a granule's mirror lies at its address XOR 1 << this … */
#define GRAFTRACE_MIRROR_TURN	0x8000 /* … and a word's at its own XOR this as well */
#define GRAFTRACE_MIRROR	(1ull << GRAFTRACE_MIRROR_BIT | GRAFTRACE_MIRROR_TURN)
#define GRAFTRACE_GRANULE_SHIFT 16
#define GRAFTRACE_GRANULE_TAKEN (1ull << 63)

#define GRAFTRACE_AGENT_FSGSBASE    1 /* wrgsbase may be used (AT_HWCAP2 bit 1) */
#define GRAFTRACE_AGENT_PLAIN_LOCKS 2 /* a filter may forbid futexes that lend priority */

/* The bytes of a thread's stop word: each has one writer at a time, and none disturbs another's. All
 * zero but the mode: the thread records. */
enum graftrace_stop_byte {
	GRAFTRACE_STOP_BYTE_FULL = 0,	 /* no room: the agent sets it, the host clears it */
	GRAFTRACE_STOP_BYTE_HOST = 1,	 /* the host's: GRAFTRACE_STOP_… */
	GRAFTRACE_STOP_BYTE_OUTSIDE = 2, /* the agent's: outside the graph functions */
	/* What the straight line does. The host writes 0: the thread reads tracer, max_depth and
	 * threshold in the arena anew. */
	GRAFTRACE_STOP_BYTE_MODE = 3,
};

/* Words of a thread block (graftrace_stream.block) that the host may write, or read. */
#define GRAFTRACE_BLOCK_STREAM	   112 /* uint64_t; the address of its stream, 0 = none */
#define GRAFTRACE_BLOCK_GENERATION 164 /* uint32_t; of the stream, when it was claimed */
#define GRAFTRACE_BLOCK_STOP	   8   /* uint32_t; its bytes are enum graftrace_stop_byte */

#define GRAFTRACE_BLOCK_TRAP \
	248 /* uint32_t; 1: the program believes to have SIGTRAP blocked in this \
	     * thread, 2: one has come since (GRAFTRACE_TRAP_…) */
#define GRAFTRACE_BLOCK_VERIFY 180 /* uint32_t; 1: slots of open calls are looked at first */
#define GRAFTRACE_TRAP_BLOCKED 1
#define GRAFTRACE_TRAP_PENDING 2

#define GRAFTRACE_BLOCK_LOST \
	72 /* uint64_t, kernels only: entries dropped while full, beside those of the stream */

/*
 * Changing the tracer, max_graph_depth or tracing_thresh while threads run: write the arena's
 * fields first, then 0 to byte 3 of the stop word of every live block (graftrace_stream.block).
 * Each thread then reads the settings at its next traced call. A thread that is being born reads
 * them after it has published its block.
 */

#endif
