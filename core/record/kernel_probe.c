/* SPDX-License-Identifier: MIT */
/*
 * Dynamic probes of a kernel: see kernel_probe.h. What gt_glue_event calls runs with interrupts off; an NMI may come
 * between any two instructions, with probes of its own: lists change only while every CPU stands still, and calls whose
 * return is waited for are noted and forgotten by compare and exchange, each by the stack that it is on.
 */
#include "core/record/kernel_probe.h"
#include "core/record/arch.h"
#include "core/record/event.h"
#include "core/record/kernel.h"
#include "core/record/kernel_event.h"
#include "core/record/kernel_place.h"
#include "core/record/port.h"

#define RELAXED __ATOMIC_RELAXED
#define PAGE	4096ull
#define RSP	4

static struct gt_sites *table; /* NULL: this kernel has no probes */

/* Called from glue.S only. */
void gt_agent_event(struct gt_event_frame *frame) __attribute__((visibility("hidden")));

/* ---- memory, as probe_fetch.h asks for it ---- */

/* Below the stack pointer there is nothing of the function's: kernels have no red zone. */
static bool is_on_stack(uint64_t address, uint64_t bytes, uint64_t sp)
{
	const struct gt_context *context = gt_arch_block()->context;

	return context != NULL && sp >= context->low && sp < context->high && address >= sp &&
	       address < context->high && bytes <= context->high - address;
}

static bool is_constant(uint64_t address, uint64_t bytes)
{
	(void)address;
	(void)bytes;
	return false;
}

static bool fetch(uint64_t address, void *out, uint64_t bytes, uint64_t sp)
{
	if (!is_on_stack(address, bytes, sp))
		return gt_port_peek_bytes(address, out, bytes);
	for (uint64_t i = 0; i < bytes; i++)
		((uint8_t *)out)[i] = ((const volatile uint8_t *)address)[i];
	return true;
}

/* A kernel's code leaves them alone, but for what saves them. */
static uint64_t vector_register(unsigned number)
{
	(void)number;
	return 0;
}

/* Where the address is that the call of that slot returns to in the end: there, or, where a traced call has gone on as
 * this one by a jump, in the mirror. The slot then has that call's stub, whose frame is known by it. */
static uint64_t *return_place(uint64_t slot)
{
	uint64_t *const place = (uint64_t *)slot;

	return gt_port_is_stub_return(*place) ? (uint64_t *)gt_kernel_mirror(slot) : place;
}

static uint64_t caller_of(const struct gt_event_frame *frame, bool returned)
{
	const uint64_t slot = frame->registers[RSP];

	(void)returned;
	return gt_probes_return_address(slot, *return_place(slot));
}

static uint32_t copy_name(char *out, uint32_t room)
{
	const char *name = gt_port_comm();
	uint32_t i = 0;

	for (; i + 1 < 16 && i + 1 < room && name[i] != 0; i++)
		out[i] = name[i];
	out[i] = 0;
	return i + 1;
}

#include "core/record/probe_fetch.h"

/* ---- events ---- */

static void happen(struct graftrace_kernel_probe *probe, const struct gt_event_frame *frame,
		   uint64_t saved)
{
	const uint32_t number = probe->fetch->event;
	struct gt_thread *thread = gt_arch_block();
	const bool has_rules = gt_event_has_rules(number);
	struct gt_event event;

	__atomic_fetch_add(&probe->hits, 1, RELAXED);
	if (!has_rules && gt_event_is_stopped(thread))
		return;
	gather(frame, probe->fetch, &event);
	gt_kernel_event_conclude(thread, &event, saved);
}

static bool is_of_return(const struct graftrace_kernel_probe *probe)
{
	return probe->fetch->flags & GRAFTRACE_PROBE_RETURN;
}

/* Those of one place that are of its returns, or the others. */
static void happen_all(struct graftrace_kernel_probe *probe, bool returned,
		       const struct gt_event_frame *frame, uint64_t saved)
{
	const struct gt_thread *thread = gt_arch_block();

	if (thread != NULL && (thread->outside & GT_OUTSIDE_PAUSED || thread->unlisted))
		return;
	for (; probe != NULL; probe = probe->next)
		if (is_of_return(probe) != returned)
			continue;
		else if (thread == NULL || thread->busy != 0)
			__atomic_fetch_add(&probe->missed, 1, RELAXED);
		else
			happen(probe, frame, saved);
}

/* ---- returns that are waited for ---- */

#define CALLS  1024u /* of all functions, at once */
#define WINDOW 32u   /* places that are looked at for a slot */

#define TAKEN 1 /* as a slot: of nobody yet */

/* A call. What is left by a jump, or by the thread's end, stays until its slot is used again. */
static struct call {
	uint64_t slot;	  /* 0: this one is free */
	uint64_t address; /* that it returns to */
	uint64_t
		order; /* the newest of one slot returns first: a call may have jumped to another one */
	uint32_t function;
	uint32_t unused;
} calls[CALLS];
static uint64_t last_order;

static struct call *call_at(uint64_t slot, uint32_t step)
{
	const uint64_t first = (slot >> 3) * 0x9e3779b97f4a7c15ull >> 40;

	return &calls[(first + step) % CALLS];
}

/* The newest of the slot among those with a lower order; NULL: none. */
static struct call *find_call(uint64_t slot, uint64_t order)
{
	struct call *found = NULL;

	for (uint32_t i = 0; i < WINDOW; i++) {
		struct call *call = call_at(slot, i);

		if (__atomic_load_n(&call->slot, __ATOMIC_ACQUIRE) == slot && call->order < order &&
		    (found == NULL || call->order > found->order))
			found = call;
	}
	return found;
}

static void forget(struct call *call)
{
	__atomic_store_n(&call->slot, 0, __ATOMIC_RELEASE);
}

/* Takes a free one for the slot, which it has not got yet: an NMI may look at calls in between. NULL: none is near. */
static struct call *take_call(uint64_t slot)
{
	for (uint32_t i = 0; i < WINDOW; i++) {
		struct call *call = call_at(slot, i);
		uint64_t free = 0;

		if (__atomic_compare_exchange_n(&call->slot, &free, TAKEN, false, __ATOMIC_ACQUIRE,
						RELAXED))
			return call;
	}
	return NULL;
}

/* Calls of the function that are waited for. */
static uint32_t open_calls(uint32_t function)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < CALLS; i++)
		count += __atomic_load_n(&calls[i].slot, RELAXED) != 0 &&
			 calls[i].function == function;
	return count;
}

/* The most that the function's probes of returns allow; 0: any number. *any: it has some. */
static uint32_t most_of(const struct graftrace_kernel_probe *probe, bool *any)
{
	bool unlimited = false;
	uint32_t most = 0;

	for (*any = false; probe != NULL; probe = probe->next) {
		if (!is_of_return(probe))
			continue;
		*any = true;
		unlimited |= probe->max_active == 0;
		most = probe->max_active > most ? probe->max_active : most;
	}
	return unlimited ? 0 : most;
}

static void miss(struct graftrace_kernel_probe *probe)
{
	for (; probe != NULL; probe = probe->next)
		if (is_of_return(probe))
			__atomic_fetch_add(&probe->missed, 1, RELAXED);
}

/* At the entry of a call of which the return is waited for. */
static void wait_for_return(struct graftrace_kernel_probe *first, uint32_t function, uint64_t slot,
			    uint32_t most)
{
	uint64_t *const place = return_place(slot);
	struct call *call;

	/* What is noted of this slot is of calls that were left long ago, unless such a call, whose return is waited
	 * for, has jumped here. */
	if (*place != (uint64_t)gt_arch_probe_return)
		while ((call = find_call(slot, ~0ull)) != NULL)
			forget(call);
	if (most != 0 && open_calls(function) >= most)
		call = NULL;
	else
		call = take_call(slot);
	if (call == NULL) {
		miss(first);
		return;
	}
	call->address = *place;
	call->function = function;
	call->order = __atomic_add_fetch(&last_order, 1, RELAXED);
	__atomic_store_n(&call->slot, slot, __ATOMIC_RELEASE);
	__atomic_store_n(place, (uint64_t)gt_arch_probe_return, __ATOMIC_RELEASE);
}

uint64_t gt_probes_return_address(uint64_t slot, uint64_t value)
{
	const struct call *call;

	for (uint64_t order = ~0ull; value == (uint64_t)gt_arch_probe_return; order = call->order) {
		call = find_call(slot, order);
		if (call == NULL)
			break;
		value = call->address;
	}
	return value;
}

/* ---- what the glue calls ---- */

static void enter(struct gt_event_frame *frame, uint64_t saved)
{
	const uint32_t index = (uint32_t)((frame->stub - table->probe_stubs) / GT_PROBE_STUB_BYTES);
	struct graftrace_kernel_probe *first = table->probes[index];
	const uint64_t slot = (uint64_t)(&frame->stub + 1);
	bool any;
	const uint32_t most = most_of(first, &any);

	frame->registers[RSP] = slot;
	happen_all(first, false, frame, saved);
	if (any)
		wait_for_return(first, index + 1, slot, most);
}

static void pass(struct gt_event_frame *frame, const struct gt_place *place, uint64_t saved)
{
	frame->registers[RSP] = (uint64_t)(&frame->stub + 1);
	happen_all(place->first, false, frame, saved);
}

static void leave(struct gt_event_frame *frame, uint64_t saved)
{
	uint64_t *slot = &frame->stub + 1;
	struct call *call = find_call((uint64_t)slot, ~0ull);
	const uint32_t index = call->function - 1;

	*slot = call->address;
	forget(call);
	frame->registers[RSP] = (uint64_t)slot;
	happen_all(table->probes[index], true, frame, saved);
}

void gt_agent_event(struct gt_event_frame *frame)
{
	const uint64_t saved = gt_arch_interrupts_off();
	const struct gt_place *place = gt_places_of_cell(frame->stub);

	if (place != NULL)
		pass(frame, place, saved);
	else if (frame->stub == (uint64_t)gt_arch_probe_returned)
		leave(frame, saved);
	else
		enter(frame, saved);
	gt_arch_interrupts_restore(saved);
}

/* ---- changes ---- */

void gt_probes_init(struct gt_sites *sites, uint64_t stubs, struct graftrace_kernel_probe **places,
		    uint8_t *patched)
{
	sites->probe_stubs = stubs;
	sites->probes = places;
	sites->probed = patched;
	table = sites;
}

void gt_probes_apply(struct gt_sites *sites, struct graftrace_kernel_probe *const *probes,
		     uint32_t count, bool on)
{
	gt_port_cpus_stop();
	for (uint32_t i = 0; i < sites->count; i++)
		sites->probes[i] = NULL;
	gt_places_clear();
	for (uint32_t i = count; on && i-- > 0;) {
		struct graftrace_kernel_probe *probe = probes[i];
		struct graftrace_kernel_probe **first =
			probe->place != 0 ? gt_places_list(probe->place)
					  : &sites->probes[probe->function - 1];

		if (!probe->wanted)
			continue;
		probe->next = *first;
		*first = probe;
	}
	for (uint32_t i = 0; i < sites->count; i++) {
		const bool probed = sites->probes[i] != NULL;

		if (sites->probed[i] == probed)
			continue;
		sites->probed[i] = probed;
		gt_sites_write(sites, i);
	}
	gt_places_write();
	gt_port_cpus_start();
}
