/* SPDX-License-Identifier: MIT */
/*
 * Places inside a kernel's functions, in a process: a function that has instructions of each kind has a probe at each of
 * them, computes the same, and is interrupted behind each instruction, where probes come and go. Runs the very text that a
 * kernel links, but for the instructions that only a kernel may use.
 */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include <cmocka.h>
#include "core/record/arch.h"
#include "core/record/kernel.h"
#include "core/record/kernel_place.h"
#include "core/record/kernel_probe.h"
#include "core/record/port.h"

#define RING_BYTES (1u << 20)
#define PLACES	   256
#define TRAP_FLAG  0x100

const char gt_recorder_text_start[1], gt_recorder_text_end[1];

static struct {
	struct gt_thread thread;
	uint64_t clock_add;
} cpu __attribute__((aligned(64)));
static struct gt_context context;
static struct gt_frame frames[16];
static uint8_t stubs[8192] __attribute__((aligned(4096)));
static uint8_t cells[PLACES * GT_PLACE_BYTES] __attribute__((aligned(4096)));
static struct gt_sites sites;
static struct gt_place places[PLACES];
static struct graftrace_kernel_probe *first_probes[1];
static uint8_t probed[1];

/* ---- the port ---- */

uint32_t gt_port_state(void)
{
	return 0;
}

uint32_t gt_port_cpu(void)
{
	return 0;
}

void gt_port_lock(void)
{
}

void gt_port_unlock(void)
{
}

bool gt_port_peek(uint64_t address, uint64_t *value)
{
	(void)address, (void)value;
	return false;
}

bool gt_port_is_stub_return(uint64_t address)
{
	(void)address;
	return false;
}

void gt_port_cpus_stop(void)
{
}

void gt_port_cpus_start(void)
{
}

void gt_port_text_write(uint64_t address, const void *bytes, size_t count)
{
	const uint64_t page = address & ~4095ull;

	if (mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
		_exit(99);
	memcpy((void *)address, bytes, count);
}

/* ---- what is probed ---- */

extern uint64_t subject_data[4];
extern const uint8_t subject[], subject_end[], subject_sti[], subject_event[], subject_unknown[];
uint64_t run_subject(uint64_t a, uint64_t b, uint64_t *flags);

/* No red zone, as in a kernel. run_subject puts the flags where they are asked for. */
__asm__(".pushsection .text\n"
	"	.p2align 12\n"
	"run_subject:\n"
	"	push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
	"	push %rdx\n"
	"	call subject\n"
	"	pushf; pop %rcx\n"
	"	pop %rdx\n"
	"	mov %rcx, (%rdx)\n"
	"	cld\n"
	"	pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
	"	ret\n"
	"helper:	lea 7(%rax,%rdi), %rax\n"
	"	stc\n"
	"	ret\n"
	"subject:\n"
	"	.byte 0x0f, 0x1f, 0x44, 0, 0\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	sub $64, %rsp\n"
	"	mov $0x1234567890abcdef, %rax\n" /* movabs */
	"	mov %rdi, -8(%rbp)\n"
	"	add %rsi, %rax\n"
	"	adc $3, %rax\n"
	"	mov subject_data(%rip), %rcx\n" /* relative to rip */
	"	lea subject_data(%rip), %r12\n"
	"	addq $5, subject_data+8(%rip)\n"
	"	cmpl $0x1000000, subject_data(%rip)\n"
	"	adc %rcx, %rax\n"
	"	call helper\n" /* its carry arrives */
	"	adc $0, %rax\n"
	"	lea helper(%rip), %r13\n"
	"	call *%r13\n"
	"	adc $0, %rax\n"
	"	call *subject_pointer(%rip)\n"
	"	mov %r13, (%rsp)\n"
	"	mov %r13, 40(%rsp)\n"
	"	call *(%rsp)\n"
	"	call *40(%rsp)\n"
	"	call *-24(%rbp)\n"
	"	lea 1f(%rip), %r14\n"
	"	jmp *%r14\n"
	"	ud2\n"
	"1:	mov $5, %ecx\n"
	"2:	add %rcx, %rax\n"
	"	rol $3, %rax\n"
	"	dec %ecx\n"
	"	jnz 2b\n" /* short, back */
	"	cmp $1, %ecx\n"
	"	jb 3f\n" /* short, taken */
	"	xor %eax, %eax\n"
	"3:	.byte 0x0f, 0x84; .long 4f - . - 4\n" /* je, long, not taken */
	"	.byte 0x0f, 0x85; .long 4f - . - 4\n" /* jne, long, taken */
	"	xor %eax, %eax\n"
	"4:	jmp 5f\n"
	"	xor %eax, %eax\n"
	"5:	.byte 0xe9; .long 6f - . - 4\n"
	"	xor %eax, %eax\n"
	"6:	push %rsp\n"
	"	pop %rdx\n"
	"	sub %rsp, %rdx\n" /* 0 */
	"	add %rdx, %rax\n"
	"	stc\n"
	"	pushf\n"
	"	popq %rdx\n"
	"	and $0xcd5, %edx\n"
	"	add %rdx, %rax\n"
	"	mov %rax, %rbx\n"
	"	lea -64(%rbp), %rdi\n"
	"	mov $0x5a, %eax\n"
	"	mov $16, %ecx\n"
	"	rep stosb\n"
	"	lea -48(%rbp), %rsi\n"
	"	lea -33(%rbp), %rdi\n"
	"	dec %rsi\n"
	"	std\n"
	"	mov $15, %ecx\n"
	"	rep movsb\n"
	"	cld\n"
	"	mov %rbx, %rax\n"
	"	add -40(%rbp), %rax\n"
	"	mov $9, %edx\n"
	"	lock xadd %rdx, subject_data+16(%rip)\n"
	"	lock cmpxchg %rdx, subject_data+24(%rip)\n"
	"	xchg %rdx, %rbx\n"
	"	pause\n"
	"	nop\n"
	"	movzbl -61(%rbp), %edx\n"
	"	imul %rdx, %rax\n"
	"	bswap %rax\n"
	"	cmp %rax, %rbx\n"
	"	seto %dl\n"
	"	jmp 7f\n"
	"subject_sti:	sti\n"
	"	.byte 0x2e, 0xfb\n" /* cs sti */
	"	hlt\n"
	"subject_event:	.byte 0x0f, 0x1f, 0x44, 0, 0\n"
	"7:	mov -8(%rbp), %rsi\n"
	"	sub $1, %rax\n"
	"	leave\n"
	"	ret\n"
	"subject_unknown:	sldt %eax\n"
	"	ret\n"
	"subject_end:\n"
	".popsection\n"
	".pushsection .data\n"
	"subject_data:	.quad 0x77, 1, 2, 3\n"
	"subject_pointer: .quad helper\n"
	".popsection\n");

static const struct graftrace_event_site event = { .address = (uint64_t)subject_event };

/* ---- probes ---- */

static const struct graftrace_probe fetch = { .event = 1 };
static struct graftrace_kernel_probe probes[PLACES], *list[PLACES];
static uint32_t probe_count;

static enum graftrace_kernel_place find(uint64_t address, uint32_t *place)
{
	return gt_places_find((uint64_t)subject, (uint64_t)subject_end, address, place);
}

static void set_all(bool on)
{
	for (uint32_t i = 0; i < probe_count; i++)
		probes[i].wanted = on;
	gt_probes_apply(&sites, list, probe_count, true);
}

static int set_up(void **state)
{
	static uint64_t entries[1], stack[512];
	static uint8_t states[1];
	const uint64_t low = (uint64_t)stack, bytes = gt_kernel_arena_bytes(RING_BYTES, 4096, 1);
	struct graftrace_arena *arena =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_true(arena != MAP_FAILED);
	gt_kernel_arena_init(arena, RING_BYTES, 4096, 1);
	entries[0] = (uint64_t)subject;
	gt_sites_init(&sites, entries, states, 1, (uint64_t)stubs);
	sites.event_sites = &event;
	sites.event_site_count = 1;
	gt_probes_init(&sites, (uint64_t)stubs + 4096, first_probes, probed);
	gt_places_init(&sites, (uint64_t)cells, places, PLACES);
	gt_port_text_write((uint64_t)cells, cells, 1);
	for (uint64_t page = 4096; page < sizeof(cells); page += 4096)
		gt_port_text_write((uint64_t)cells + page - 1, cells + page - 1, 1);
	gt_kernel_context_init(&context, 1, low, low + sizeof(stack), frames, 16);
	assert_int_equal(syscall(SYS_arch_prctl, ARCH_SET_GS, &cpu.thread), 0);
	assert_true(gt_kernel_cpu_start(&cpu.thread, 0, &context, "cpu"));
	return 0;
}

/* ---- the processor's exceptions ---- */

static bool interrupting;
static uint32_t interrupts, moved;

static bool is_in(uint64_t address, const void *first, uint64_t bytes)
{
	return address - (uint64_t)first < bytes;
}

/* Another CPU lets all stand still here, and takes the probes away or puts them back. */
static void interrupt(uint64_t rip)
{
	const bool in_cell = is_in(rip, cells, sizeof(cells));

	if (!in_cell && !is_in(rip, subject, (uint64_t)(subject_end - subject)))
		return;
	moved += in_cell;
	set_all(interrupts++ % 3 != 0);
	assert_true(is_in(gt_places_origin(rip), subject, (uint64_t)(subject_end - subject)));
	assert_true(in_cell || gt_places_origin(rip) == rip);
}

static void on_trap(int signal, siginfo_t *info, void *data)
{
	greg_t *registers = ((ucontext_t *)data)->uc_mcontext.gregs;
	uint64_t to;

	(void)signal;
	if (info->si_code == SI_KERNEL) {
		to = gt_places_trap((uint64_t)registers[REG_RIP] - 1);
		if (to == 0)
			_exit(98);
		registers[REG_RIP] = (greg_t)to;
	} else if (interrupting) {
		interrupt((uint64_t)registers[REG_RIP]);
	}
}

/* ---- runs ---- */

struct outcome {
	uint64_t result, flags, data[4];
};

static struct outcome run(bool steps)
{
	struct outcome outcome = { 0 };

	memcpy(subject_data, (const uint64_t[4]){ 0x77, 1, 2, 3 }, sizeof(subject_data));
	if (steps)
		__asm__ volatile("pushf; orl $0x100, (%%rsp); popf" ::: "memory", "cc");
	outcome.result = run_subject(3, 4, &outcome.flags);
	if (steps)
		__asm__ volatile("pushf; andl $~0x100, (%%rsp); popf" ::: "memory", "cc");
	outcome.flags &= ~(uint64_t)TRAP_FLAG;
	memcpy(outcome.data, subject_data, sizeof(outcome.data));
	return outcome;
}

static struct outcome expected;

static void there_is_a_place_where_an_instruction_begins(void **state)
{
	struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	uint32_t counts[8] = { 0 }, place;

	(void)state;
	assert_int_equal(sigaction(SIGTRAP, &action, NULL), 0);
	expected = run(false);
	for (uint64_t at = (uint64_t)subject + 1; at < (uint64_t)subject_unknown; at++) {
		const enum graftrace_kernel_place found = find(at, &place);

		counts[found]++;
		if (found != GRAFTRACE_KERNEL_PLACE_OK)
			continue;
		list[probe_count] = &probes[probe_count];
		probes[probe_count++] = (struct graftrace_kernel_probe){
			.address = at, .function = 1, .place = place, .fetch = &fetch
		};
	}
	assert_int_equal(find((uint64_t)subject_sti, &place), GRAFTRACE_KERNEL_PLACE_UNMOVABLE);
	assert_int_equal(find((uint64_t)subject_event, &place), GRAFTRACE_KERNEL_PLACE_PATCHED);
	assert_int_equal(find((uint64_t)subject_unknown, &place), GRAFTRACE_KERNEL_PLACE_UNKNOWN);
	assert_int_equal(find((uint64_t)subject_unknown + 3, &place),
			 GRAFTRACE_KERNEL_PLACE_UNKNOWN);
	assert_int_equal(counts[GRAFTRACE_KERNEL_PLACE_UNMOVABLE], 4); /* ud2, sti, cs sti, hlt */
	assert_int_equal(counts[GRAFTRACE_KERNEL_PLACE_PATCHED], 1);
	assert_int_equal(counts[GRAFTRACE_KERNEL_PLACE_OK], probe_count);
	assert_int_equal(counts[GRAFTRACE_KERNEL_PLACE_OK] +
				 counts[GRAFTRACE_KERNEL_PLACE_BOUNDARY],
			 (uint64_t)(subject_unknown - subject) - 1 - 5);
	assert_int_equal(probe_count, 79);
}

/* Met as often as is expected, by what the instructions do. */
static void check_hits(uint64_t times)
{
	uint32_t met = 0;

	for (uint32_t i = 0; i < probe_count; i++) {
		const uint64_t hits = probes[i].hits / times;

		assert_int_equal(probes[i].missed, 0);
		assert_true(hits == 0 || hits == 1 || hits == 5);
		met += hits == 1;
		probes[i].hits = 0;
	}
	assert_int_equal(met, probe_count - 4 - 4);
}

static void each_instruction_does_the_same_elsewhere(void **state)
{
	struct outcome outcome;

	(void)state;
	set_all(true);
	for (uint32_t i = 0; i < probe_count; i++)
		assert_int_equal(*(const uint8_t *)probes[i].address, GT_ARCH_TRAP);
	outcome = run(false);
	assert_memory_equal(&outcome, &expected, sizeof(outcome));
	check_hits(1);
	/* Others are found though bytes of theirs are traps, and those again. */
	for (uint32_t i = 0; i < probe_count; i++) {
		uint32_t place;

		assert_int_equal(find(probes[i].address, &place), GRAFTRACE_KERNEL_PLACE_OK);
		assert_int_equal(place, probes[i].place);
		assert_int_equal(find(probes[i].address + 1, &place) == GRAFTRACE_KERNEL_PLACE_OK,
				 i + 1 < probe_count &&
					 probes[i + 1].address == probes[i].address + 1);
	}
	set_all(false);
	outcome = run(false);
	assert_memory_equal(&outcome, &expected, sizeof(outcome));
	for (uint32_t i = 0; i < probe_count; i++)
		assert_int_equal(probes[i].hits, 0);
}

static void one_at_a_time_is_met(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < probe_count; i++) {
		struct outcome outcome;

		probes[i].wanted = 1;
		gt_probes_apply(&sites, list, probe_count, true);
		outcome = run(false);
		assert_memory_equal(&outcome, &expected, sizeof(outcome));
		probes[i].wanted = 0;
	}
	gt_probes_apply(&sites, list, probe_count, true);
	check_hits(1);
}

static void probes_may_come_and_go_behind_each_instruction(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 12; round++) {
		struct outcome outcome;

		interrupts = round;
		set_all(true);
		interrupting = true;
		outcome = run(true);
		interrupting = false;
		assert_memory_equal(&outcome, &expected, sizeof(outcome));
		assert_true(interrupts > 100);
	}
	assert_true(moved > 300);
	set_all(false);
}

static void a_trap_that_is_no_places_is_left_to_others(void **state)
{
	(void)state;
	assert_int_equal(gt_places_trap((uint64_t)subject), 0);
	assert_int_equal(gt_places_trap(0), 0);
	/* One that was taken away leads on all the same: a CPU may have met it before. */
	assert_true(is_in(gt_places_trap(probes[3].address), cells, sizeof(cells)));
}

static void there_is_no_place_when_all_are_taken(void **state)
{
	uint32_t place;

	(void)state;
	for (uint32_t i = 0; i < PLACES; i++)
		if (places[i].address == 0)
			places[i].address = 1 + i;
	assert_int_equal(find(probes[0].address, &place), GRAFTRACE_KERNEL_PLACE_OK);
	assert_int_equal(gt_places_find((uint64_t)run_subject, (uint64_t)subject,
					(uint64_t)run_subject + 1, &place),
			 GRAFTRACE_KERNEL_PLACE_FULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_is_a_place_where_an_instruction_begins),
		cmocka_unit_test(each_instruction_does_the_same_elsewhere),
		cmocka_unit_test(one_at_a_time_is_met),
		cmocka_unit_test(probes_may_come_and_go_behind_each_instruction),
		cmocka_unit_test(a_trap_that_is_no_places_is_left_to_others),
		cmocka_unit_test(there_is_no_place_when_all_are_taken),
	};
	return cmocka_run_group_tests(tests, set_up, NULL);
}
