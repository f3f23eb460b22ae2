/* SPDX-License-Identifier: MIT */
/*
 * Static events of a program: C11 and C++17, x86-64, gcc and clang, this header alone. (Of a kernel
 * that embeds the core, with GRAFTRACE_KERNEL defined: event_kernel.h.)
 *
 *	#include <graftrace/event.h>
 *
 *	GRAFTRACE_EVENT(shop, sold, GRAFTRACE_INT(int, count, n), GRAFTRACE_STRING(what, name));
 *
 * leaves a 5-byte nop, a note of SystemTap's form (.note.stapsdt), by which `graftrace record -e
 * shop:sold`, gdb, perf and SystemTap know the place, and a note with the fields' names and types for
 * graftrace. Switched off it costs the nop, and that the values are at hand. There is nothing to link.
 *
 * Fields, 12 at most, in the order of the record:
 *	GRAFTRACE_INT(type, name, value)	any integer, character, bool or enum type
 *	GRAFTRACE_POINTER(name, value)		an address
 *	GRAFTRACE_STRING(name, value)		a const char *: its text is recorded, 63 bytes at most
 *	GRAFTRACE_DOUBLE(name, value)		a double; it is in a vector register, which the kernel's uprobes cannot
 *						fetch: perf takes no event with one, bpftrace the fields before it
 * `name` and the event's two names are plain identifiers. Values are evaluated
 * whether the event is recorded or not: they should have no side effects.
 */
#ifndef GRAFTRACE_EVENT_H
#define GRAFTRACE_EVENT_H

#define GRAFTRACE_EVENT_IS_SIGNED_(type) ((type)-1 < (type)1)

/* A field is (kind, type, name, value). Kinds: I integer, P pointer, S string, D double. */
#define GRAFTRACE_INT(type, name, value) (I, type, name, value)
#define GRAFTRACE_POINTER(name, value)	 (P, const void *, name, value)
#define GRAFTRACE_STRING(name, value)	 (S, const char *, name, value)
#define GRAFTRACE_DOUBLE(name, value)	 (D, double, name, value)

#ifndef GRAFTRACE_KERNEL
/* The argument as SystemTap's note has it: bytes, negative if signed, and where it is. The operand
 * is negated when it is printed. */
#define GRAFTRACE_EVENT_TEXT_I(i) "%n[gt_size" #i "]@%[gt_value" #i "]"
#define GRAFTRACE_EVENT_TEXT_P(i) "8@%[gt_value" #i "]"
#define GRAFTRACE_EVENT_TEXT_S(i) "8@%[gt_value" #i "]"
#define GRAFTRACE_EVENT_TEXT_D(i) "8f@%[gt_value" #i "]"

#define GRAFTRACE_EVENT_OPERAND_I(i, type, value)                                          \
	[gt_size##i] "n"((GRAFTRACE_EVENT_IS_SIGNED_(type) ? 1 : -1) * (int)sizeof(type)), \
		[gt_value##i] "nor"((type)(value))
#define GRAFTRACE_EVENT_OPERAND_P(i, type, value) [gt_value##i] "nor"((type)(value))
#define GRAFTRACE_EVENT_OPERAND_S(i, type, value) [gt_value##i] "nor"((type)(value))
#define GRAFTRACE_EVENT_OPERAND_D(i, type, value) [gt_value##i] "x"((type)(value))

#define GRAFTRACE_EVENT_TEXT_(i, kind, type, name, value) GRAFTRACE_EVENT_TEXT_##kind(i)
#define GRAFTRACE_EVENT_NAME_(i, kind, type, name, value) #type " " #name ";"
#define GRAFTRACE_EVENT_OPERAND_(i, kind, type, name, value) \
	GRAFTRACE_EVENT_OPERAND_##kind(i, type, value)
#endif

#define GRAFTRACE_EVENT_UNPACK_(...)	   __VA_ARGS__
#define GRAFTRACE_EVENT_APPLY_(macro, ...) macro(__VA_ARGS__)
#define GRAFTRACE_EVENT_ONE_(macro, i, field) \
	GRAFTRACE_EVENT_APPLY_(macro, i, GRAFTRACE_EVENT_UNPACK_ field)

/* m of each field, s() between them. */
/* clang-format off */
#define GRAFTRACE_EVENT_EACH_1(m, s, a)	      GRAFTRACE_EVENT_ONE_(m, 1, a)
#define GRAFTRACE_EVENT_EACH_2(m, s, a, ...)  GRAFTRACE_EVENT_ONE_(m, 2, a) s() GRAFTRACE_EVENT_EACH_1(m, s, __VA_ARGS__)
#define GRAFTRACE_EVENT_EACH_3(m, s, a, ...)  GRAFTRACE_EVENT_ONE_(m, 3, a) s() GRAFTRACE_EVENT_EACH_2(m, s, __VA_ARGS__)
#define GRAFTRACE_EVENT_EACH_4(m, s, a, ...)  GRAFTRACE_EVENT_ONE_(m, 4, a) s() GRAFTRACE_EVENT_EACH_3(m, s, __VA_ARGS__)
#define GRAFTRACE_EVENT_EACH_5(m, s, a, ...)  GRAFTRACE_EVENT_ONE_(m, 5, a) s() GRAFTRACE_EVENT_EACH_4(m, s, __VA_ARGS__)
#define GRAFTRACE_EVENT_EACH_6(m, s, a, ...)  GRAFTRACE_EVENT_ONE_(m, 6, a) s() GRAFTRACE_EVENT_EACH_5(m, s, __VA_ARGS__)
#define GRAFTRACE_EVENT_EACH_7(m, s, a, ...)  GRAFTRACE_EVENT_ONE_(m, 7, a) s() GRAFTRACE_EVENT_EACH_6(m, s, __VA_ARGS__)
#define GRAFTRACE_EVENT_EACH_8(m, s, a, ...)  GRAFTRACE_EVENT_ONE_(m, 8, a) s() GRAFTRACE_EVENT_EACH_7(m, s, __VA_ARGS__)
#define GRAFTRACE_EVENT_EACH_9(m, s, a, ...)  GRAFTRACE_EVENT_ONE_(m, 9, a) s() GRAFTRACE_EVENT_EACH_8(m, s, __VA_ARGS__)
#define GRAFTRACE_EVENT_EACH_10(m, s, a, ...) GRAFTRACE_EVENT_ONE_(m, 10, a) s() GRAFTRACE_EVENT_EACH_9(m, s, __VA_ARGS__)
#define GRAFTRACE_EVENT_EACH_11(m, s, a, ...) GRAFTRACE_EVENT_ONE_(m, 11, a) s() GRAFTRACE_EVENT_EACH_10(m, s, __VA_ARGS__)
#define GRAFTRACE_EVENT_EACH_12(m, s, a, ...) GRAFTRACE_EVENT_ONE_(m, 12, a) s() GRAFTRACE_EVENT_EACH_11(m, s, __VA_ARGS__)
/* clang-format on */
#define GRAFTRACE_EVENT_PICK_(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, name, ...) name
#define GRAFTRACE_EVENT_EACH_(m, s, ...)                                                     \
	GRAFTRACE_EVENT_PICK_(__VA_ARGS__, GRAFTRACE_EVENT_EACH_12, GRAFTRACE_EVENT_EACH_11, \
			      GRAFTRACE_EVENT_EACH_10, GRAFTRACE_EVENT_EACH_9,               \
			      GRAFTRACE_EVENT_EACH_8, GRAFTRACE_EVENT_EACH_7,                \
			      GRAFTRACE_EVENT_EACH_6, GRAFTRACE_EVENT_EACH_5,                \
			      GRAFTRACE_EVENT_EACH_4, GRAFTRACE_EVENT_EACH_3,                \
			      GRAFTRACE_EVENT_EACH_2, GRAFTRACE_EVENT_EACH_1, )              \
	(m, s, __VA_ARGS__)
#define GRAFTRACE_EVENT_BLANK_() " "
#define GRAFTRACE_EVENT_NOTHING_()
#define GRAFTRACE_EVENT_COMMA_() ,

#ifdef GRAFTRACE_KERNEL
#include <graftrace/event_kernel.h>
#else

/* The nop, and the two notes. The base is where the notes can be told by that the object was moved
 * after they were made (prelink). */
#define GRAFTRACE_EVENT_ASM_(system, name, texts, names)                      \
	"990:	.byte 0x0f, 0x1f, 0x44, 0, 0\n"                                 \
	"	.pushsection .note.stapsdt,\"?\",@note\n"                           \
	"	.balign 4\n"                                                        \
	"	.4byte 992f-991f, 994f-993f, 3\n"                                   \
	"991:	.asciz \"stapsdt\"\n"                                           \
	"992:	.balign 4\n"                                                    \
	"993:	.8byte 990b, _.stapsdt.base, 0\n"                               \
	"	.asciz \"" #system "\"\n"                                     \
	"	.asciz \"" #name "\"\n"                                       \
	"	.asciz \"" texts "\"\n"                                       \
	"994:	.balign 4\n"                                                    \
	"	.popsection\n"                                                      \
	"	.pushsection .note.graftrace,\"?\",@note\n"                         \
	"	.balign 4\n"                                                        \
	"	.4byte 992f-991f, 994f-993f, 1\n"                                   \
	"991:	.asciz \"graftrace\"\n"                                         \
	"992:	.balign 4\n"                                                    \
	"993:	.8byte 990b, _.stapsdt.base\n"                                  \
	"	.asciz \"" names "\"\n"                                       \
	"994:	.balign 4\n"                                                    \
	"	.popsection\n"                                                      \
	"	.ifndef _.stapsdt.base\n"                                           \
	"	.pushsection .stapsdt.base,\"aG\",@progbits,.stapsdt.base,comdat\n" \
	"	.weak _.stapsdt.base\n"                                             \
	"	.hidden _.stapsdt.base\n"                                           \
	"_.stapsdt.base: .space 1\n"                                          \
	"	.size _.stapsdt.base, 1\n"                                          \
	"	.popsection\n"                                                      \
	"	.endif\n"

/* An event without fields. */
#define GRAFTRACE_EVENT0(system, name) \
	__asm__ __volatile__(GRAFTRACE_EVENT_ASM_(system, name, "", ""))

#define GRAFTRACE_EVENT(system, name, ...)                                                         \
	__asm__ __volatile__(                                                                      \
		GRAFTRACE_EVENT_ASM_(system, name,                                                 \
				     GRAFTRACE_EVENT_EACH_(GRAFTRACE_EVENT_TEXT_,                  \
							   GRAFTRACE_EVENT_BLANK_, __VA_ARGS__),   \
				     GRAFTRACE_EVENT_EACH_(GRAFTRACE_EVENT_NAME_,                  \
							   GRAFTRACE_EVENT_NOTHING_, __VA_ARGS__)) \
		:                                                                                  \
		: GRAFTRACE_EVENT_EACH_(GRAFTRACE_EVENT_OPERAND_, GRAFTRACE_EVENT_COMMA_,          \
					__VA_ARGS__)                                               \
		: "memory")

#endif
#endif
