/* SPDX-License-Identifier: MIT */
/*
 * Offsets and constants that the assembly of the recording path shares with C. Checked against the
 * structures by static assertions in recorder.h.
 */
#ifndef GT_CORE_RECORD_LAYOUT_H
#define GT_CORE_RECORD_LAYOUT_H

/* struct gt_thread */
#define GT_THREAD_OWNER		0
#define GT_THREAD_MIRROR	0 /* kernels */
#define GT_THREAD_STOP		8
#define GT_THREAD_TIGHT		13
#define GT_THREAD_CUR		16
#define GT_THREAD_INSIDE	24
#define GT_THREAD_HIGH		32 /* and the epoch behind it: copied to a frame in one go */
#define GT_THREAD_EPOCH		36
#define GT_THREAD_FLOOR		40
#define GT_THREAD_TOP		48
#define GT_THREAD_LIMIT		56
#define GT_THREAD_CUR_PAIR	64
#define GT_THREAD_LOST_FULL	72
#define GT_THREAD_DEPTH_LIMIT	80
#define GT_THREAD_THRESHOLD	88
#define GT_THREAD_RESUME	96
#define GT_THREAD_SCRAP		64 /* programs: see hot.S, W */
#define GT_THREAD_SELF		120
#define GT_THREAD_PROFILE	128
#define GT_THREAD_PROFILE_PAGES 136
#define GT_THREAD_GATE_TOP	208 /* kernels */
#define GT_THREAD_BUSY		216
#define GT_THREAD_GATE		240
#define GT_GATE_CLOSED		0x7fffffffffffffff
#define GT_THREAD_SLOW_STACK	248
#define GT_THREAD_CONTEXT	144
#define GT_THREAD_BYTES		256

/* Behind a kernel's block: 8 bytes that are added to the clock, where CPUs' clocks are apart. */
#define GT_KERNEL_CLOCK_ADD GT_THREAD_BYTES

/* The stop word: one compare tells "record, in this mode". */
/* Its bytes are enum graftrace_stop_byte. */
#define GT_STOP_FULL	      0x00000001 /* byte 0: no room; entries are counted as lost */
#define GT_STOP_HOST	      0x00000100 /* byte 1: tracing_on = 0 */
#define GT_STOP_LEFT_OUT      0x00000200 /* byte 1 too: this thread is not traced */
#define GT_OUTSIDE_GRAPH      1		 /* byte 2: outside the graph functions */
#define GT_OUTSIDE_PAUSED     2		 /* … a kernel paused this context, or cannot record */
#define GT_OUTSIDE_UNLISTED   4 /* … or no call of its thread is to be seen (set_ftrace_pid) */
#define GT_STOP_OUTSIDE_SHIFT 16
#define GT_STOP_OUTSIDE	      (GT_OUTSIDE_GRAPH << GT_STOP_OUTSIDE_SHIFT)
#define GT_STOP_CAUSES	      0x00ffffff
#define GT_STOP_MODE_SHIFT    24 /* byte 3: what the straight line does; 0 = nothing */
#define GT_MODE_FUNCTION      1
#define GT_MODE_GRAPH	      2
#define GT_MODE_THRESHOLD     3 /* graph, but only calls longer than tracing_thresh */
#define GT_MODE_NOP	      4
#define GT_MODE_PROFILE	      5 /* calls are counted in the thread's table, nothing is recorded */
#define GT_MODE_PROFILE_GRAPH 6 /* both */
#define GT_MODE_STACK	      7 /* function, each call with those that are open around it */
#define GT_MODE_NOTRACE	      8 /* below a function of set_graph_notrace; chosen is one of graph */

/* struct gt_frame */
#define GT_FRAME_SLOT	  0
#define GT_FRAME_WORD	  8
#define GT_FRAME_HIGH	  16
#define GT_FRAME_EPOCH	  20
#define GT_FRAME_CHILDREN 24
#define GT_FRAME_BYTES	  32
#define GT_FRAME_SHIFT	  5
/* The slot of a frame that is none, or not yet (in flight). In programs no call lies below it, so none
 * takes the straight line above such a frame: its slow half looks what runs (frames.c). */
#ifdef GT_KERNEL
#define GT_SLOT_UNSET -1
#else
#define GT_SLOT_UNSET 0
#endif

/* Flags in the low byte of a frame's epoch: any of them, as an epoch that is not the running one,
 * takes a return off the straight line. */
#define GT_FRAME_THRESHOLD 1  /* the entry was not recorded: only a long call will be */
#define GT_FRAME_ROOT	   2  /* entered the graph: leaving it goes outside again */
#define GT_FRAME_BOTTOM	   4  /* first call of a context that is no thread's own stack */
#define GT_FRAME_TRIGGER   8  /* something happens if it returns late */
#define GT_FRAME_PROFILE   16 /* counted in the table: its return adds its time there */
#define GT_FRAME_NOTRACE   32 /* of set_graph_notrace: not recorded, nor what it calls */
#define GT_FRAME_SILENT	   64 /* of GT_MODE_STACK: its return is not recorded */
#define GT_FRAME_PROBED \
	128 /* a probe waits for its return, or for that of the call it goes on for */
/* Both: nobody but a return probe knows of the call, and no reader is to. */
#define GT_FRAME_HIDDEN (GT_FRAME_THRESHOLD | GT_FRAME_SILENT)
#define GT_EPOCH_STEP	256

/* gt_thread.resume: what has to be said before the next record. */
#define GT_RESUME_MISSED  1 /* returns went unrecorded: how deep it is */
#define GT_RESUME_CONTEXT 2 /* another context runs */
#define GT_RESUME_DEPTH	  4 /* … and who reads this writer's records cannot know how deep it is */

/* Kinds of entry that the slow path is told: enum graftrace_entry, for assembly. */
#define GT_ENTRY_ON	 1
#define GT_ENTRY_ROOT	 2
#define GT_ENTRY_ONLY	 3
#define GT_ENTRY_NOTRACE 5
#define GT_ENTRY_SILENT	 6
#define GT_ENTRY_TRIGGER 7
#define GT_ENTRY_NOTHING 8
#define GT_ENTRY_PROBED	 16 /* or'ed to the others: a probe waits for its return */

/* struct gt_context */
#define GT_CONTEXT_FRAMES 0
#define GT_CONTEXT_HIDES  121

/* The head of a LONG_RETURN event: graftrace_special_word(EVENT, LONG_RETURN << 16 | 3). */
#define GT_LONG_RETURN_WORD 0xfffffe0c00010003

/* graftrace_special_word(EVENT, 0), and types of events for assembly. */
#define GT_VALUES_WORD	   0xfffffe0c00000000
#define GT_EVENT_ARGUMENTS 9
#define GT_EVENT_RESULT	   10

/* A kernel's stub (arch/x86_64/hot_kernel.S has the picture): where an entry jumps to, where its
 * body returns to, where an untraced call goes on, and the body's address. Stubs stand by the page,
 * behind a copy of the straight lines that they share: what stays in a page an emulator (QEMU)
 * follows at no cost, and it has a place of its own for each of the 64 parts of a page. */
#define GT_STUB_PAGE	 4096
#define GT_STUB_HEAD	 384
#define GT_STUB_BYTES	 64
#define GT_STUBS_A_PAGE	 58
#define GT_STUB_WORD	 0
#define GT_STUB_START	 8
#define GT_STUB_RETURN	 15
#define GT_STUB_UNTRACED 30
#define GT_STUB_BODY	 35

/* … and of the stub of a function's probes (kernel_probe.h) */
#define GT_PROBE_STUB_BYTES  16
#define GT_PROBE_STUB_CALLED 5

/* … and of the cell of a place inside a function (kernel_place.h) */
#define GT_PLACE_BYTES 64

/* The mirror of a return slot lies at slot XOR (1 << GT_MIRROR_BIT | GT_MIRROR_TURN): that of 64
 * KiB at their address XOR 1 << GT_MIRROR_BIT, with its halves the other way round. A processor
 * that predicts a cache line's way from its address (AMD's, since Zen) has one prediction for two
 * lines whose addresses differ in high bits alone: a call that writes to both in turns cost 15 ns
 * more.
 *
 * In kernels it lies at slot XOR 1 << GT_MIRROR_BIT, and GT_KERNEL_MIRROR_SKEW bytes further
 * (gt_kernel_mirror): a stack's pages and their twins are used in turns at every call, and what
 * looks translations up by the low bits of a page's number, as QEMU does, has but one place for
 * both otherwise. */
#define GT_MIRROR_BIT	      46
#define GT_MIRROR_TURN	      0x8000
#define GT_KERNEL_MIRROR_SKEW 0x20000

/* struct graftrace_profile_entry, and how a function's number finds its own: 16 to a page */
#define GT_PROFILE_HITS		0
#define GT_PROFILE_TICKS	8
#define GT_PROFILE_SELF		16
#define GT_PROFILE_SQUARES	24 /* two words */
#define GT_PROFILE_SELF_SQUARES 40 /* two words */
#define GT_PROFILE_LAST		56
#define GT_PROFILE_BUCKETS	64  /* of 64 bits, by the duration's highest bit */
#define GT_PROFILE_LONG_BUCKETS 224 /* … of 32 */
#define GT_PROFILE_BYTES_SHIFT	8
#define GT_PROFILE_SHIFT	4
#define GT_PROFILE_LEAST	5
#define GT_PROFILE_LONG		25
#define GT_PROFILE_MOST		32

/* struct graftrace_region */
#define GT_REGION_BIAS	     0
#define GT_REGION_ENTRY_SLOW 16
#define GT_REGION_EXIT_SLOW  24
#define GT_REGION_HOOK_SLOW  32
#define GT_REGION_STATE	     40
#define GT_REGION_EVENT_SLOW 72

/* struct graftrace_event_line, before the straight line of an event; where its first call returns to */
#define GT_LINE_BYTES  0
#define GT_LINE_HEAD   8
#define GT_LINE_NUMBER 16
#define GT_LINE_SLOW   24
#define GT_LINE_RETURN 42

/* struct graftrace_arena */
#define GT_ARENA_HAS_RULES 1272

/* struct graftrace_agent_state */
#define GT_STATE_ARENA	      8
#define GT_STATE_REGION_COUNT 64
#define GT_STATE_REGIONS      72

#endif
