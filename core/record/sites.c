/* SPDX-License-Identifier: MIT */
/*
 * The kernel's table of entries and the one who changes them. While text is written all other CPUs
 * stand still with interrupts off, and every entry is one instruction from the boot on: so no CPU
 * can stand between the bytes that are changed. Stubs are never taken away: a call that is open
 * returns through its stub however long ago its function stopped being traced.
 */
#include "core/record/sites.h"
#include "core/record/arch.h"
#include "core/record/port.h"

/* Linkers put entries in the order of the text, mostly: insertion is fast there. */
static void sort(uint64_t *entries, uint32_t count)
{
	for (uint32_t gap = count / 2; gap != 0; gap /= 2) {
		for (uint32_t i = gap; i < count; i++) {
			uint64_t entry = entries[i];
			uint32_t at = i;
			for (; at >= gap && entries[at - gap] > entry; at -= gap)
				entries[at] = entries[at - gap];
			entries[at] = entry;
		}
	}
}

static uint64_t stub_of(const struct gt_sites *sites, uint32_t index)
{
	return sites->stubs + (uint64_t)(index / GT_STUBS_A_PAGE) * GT_STUB_PAGE + GT_STUB_HEAD +
	       index % GT_STUBS_A_PAGE * GT_STUB_BYTES;
}

/* A stub of a function that is off is an ordinary one: a call that is open returns through it. */
static enum graftrace_entry kind_of(uint8_t state)
{
	return state == GRAFTRACE_ENTRY_OFF ? GRAFTRACE_ENTRY_ON : (enum graftrace_entry)state;
}

static void write_stub(const struct gt_sites *sites, uint32_t index, uint8_t state)
{
	uint8_t bytes[GT_STUB_BYTES];
	gt_arch_stub_write(bytes, stub_of(sites, index), index + 1, kind_of(state),
			   sites->entries[index] + GT_SITE_BYTES);
	gt_port_text_write(stub_of(sites, index), bytes, sizeof(bytes));
}

/* Where a function's entry leads that has probes: by their stub to where it would lead else. */
static void write_probe_stub(const struct gt_sites *sites, uint32_t index, uint64_t at)
{
	uint8_t bytes[GT_PROBE_STUB_BYTES];
	gt_arch_probe_stub_write(bytes, at,
				 sites->states[index] == GRAFTRACE_ENTRY_OFF
					 ? sites->entries[index] + GT_SITE_BYTES
					 : stub_of(sites, index) + GT_STUB_START);
	gt_port_text_write(at, bytes, sizeof(bytes));
}

void gt_sites_write(const struct gt_sites *sites, uint32_t index)
{
	const uint64_t probe_stub = sites->probe_stubs + (uint64_t)index * GT_PROBE_STUB_BYTES;
	uint8_t bytes[GT_SITE_BYTES];
	if (sites->probed != NULL && sites->probed[index]) {
		write_probe_stub(sites, index, probe_stub);
		gt_arch_site_jump(bytes, sites->entries[index], probe_stub - GT_STUB_START);
	} else if (sites->states[index] == GRAFTRACE_ENTRY_OFF) {
		gt_arch_site_nop(bytes);
	} else {
		gt_arch_site_jump(bytes, sites->entries[index], stub_of(sites, index));
	}
	gt_port_text_write(sites->entries[index], bytes, sizeof(bytes));
}

void gt_sites_init(struct gt_sites *sites, uint64_t *entries, uint8_t *states, uint32_t count,
		   uint64_t stubs)
{
	uint8_t nop[GT_SITE_BYTES];
	gt_arch_site_nop(nop);
	sort(entries, count);
	sites->entries = entries;
	sites->states = states;
	sites->count = count;
	sites->stubs = stubs;
	sites->probe_stubs = 0;
	sites->probes = NULL;
	sites->probed = NULL;
	gt_arch_stubs_at(stubs, gt_sites_stub_bytes(count));
	for (uint64_t page = 0; page < gt_sites_stub_bytes(count); page += GT_STUB_PAGE) {
		uint8_t bytes[GT_STUB_HEAD];
		gt_arch_stub_head_write(bytes, stubs + page);
		gt_port_text_write(stubs + page, bytes, sizeof(bytes));
	}
	for (uint32_t i = 0; i < count; i++) {
		if (!gt_arch_site_is_room((const uint8_t *)entries[i])) {
			states[i] = GRAFTRACE_ENTRY_NEVER;
			continue;
		}
		states[i] = GRAFTRACE_ENTRY_OFF;
		write_stub(sites, i, GRAFTRACE_ENTRY_OFF);
		gt_port_text_write(entries[i], nop, sizeof(nop));
	}
}

void gt_sites_rewrite(struct gt_sites *sites)
{
	for (uint32_t i = 0; i < sites->count; i++)
		if (sites->states[i] != GRAFTRACE_ENTRY_NEVER)
			write_stub(sites, i, sites->states[i]);
}

uint32_t gt_sites_apply(struct gt_sites *sites, const uint8_t *wanted)
{
	uint32_t changed = 0;
	gt_port_cpus_stop();
	for (uint32_t i = 0; i < sites->count; i++) {
		uint8_t state = sites->states[i];
		if (state == wanted[i] || state == GRAFTRACE_ENTRY_NEVER ||
		    wanted[i] == GRAFTRACE_ENTRY_NEVER)
			continue;
		if (wanted[i] != GRAFTRACE_ENTRY_OFF && kind_of(state) != kind_of(wanted[i]))
			write_stub(sites, i, wanted[i]);
		sites->states[i] = wanted[i];
		gt_sites_write(sites, i);
		if (wanted[i] == GRAFTRACE_ENTRY_OFF && kind_of(state) != GRAFTRACE_ENTRY_ON)
			write_stub(sites, i, GRAFTRACE_ENTRY_OFF);
		changed++;
	}
	gt_port_cpus_start();
	return changed;
}

/* ---- static events ---- */

static int compare(const char *a, const char *b)
{
	while (*a != 0 && *a == *b) {
		a++;
		b++;
	}
	return (uint8_t)*a - (uint8_t)*b;
}

static int compare_events(const struct graftrace_kernel_event *a,
			  const struct graftrace_kernel_event *b)
{
	int systems = compare(a->system, b->system);
	return systems != 0 ? systems : compare(a->name, b->name);
}

/* Where the event stands among those that are known, or belongs. */
static uint32_t place_of(const struct gt_sites *sites, const struct graftrace_kernel_event *event)
{
	uint32_t i = 0;
	while (i < sites->event_count && compare_events(sites->events[i], event) < 0)
		i++;
	return i;
}

void gt_sites_events_init(struct gt_sites *sites, const struct graftrace_event_site *rows,
			  uint32_t count, struct graftrace_kernel_event **events, uint8_t *states)
{
	sites->event_sites = rows;
	sites->event_site_count = count;
	sites->event_count = 0;
	sites->events = events;
	sites->event_states = states;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t place = place_of(sites, rows[i].event);
		if (place < sites->event_count && compare_events(events[place], rows[i].event) == 0)
			continue;
		for (uint32_t at = sites->event_count++; at > place; at--)
			events[at] = events[at - 1];
		events[place] = rows[i].event;
	}
	for (uint32_t i = 0; i < sites->event_count; i++)
		states[i] = 0;
	for (uint32_t i = 0; i < count; i++)
		rows[i].event->number = place_of(sites, rows[i].event) + 1;
}

uint32_t gt_sites_apply_events(struct gt_sites *sites, const uint8_t *wanted)
{
	uint32_t changed = 0;
	gt_port_cpus_stop();
	for (uint32_t i = 0; i < sites->event_site_count; i++) {
		const struct graftrace_event_site *row = &sites->event_sites[i];
		const uint32_t index = row->event->number - 1;
		uint8_t bytes[GT_SITE_BYTES];
		if (!wanted[index] == !sites->event_states[index])
			continue;
		if (wanted[index])
			gt_arch_site_jump(bytes, row->address, row->on - GT_STUB_START);
		else
			gt_arch_site_nop(bytes);
		gt_port_text_write(row->address, bytes, sizeof(bytes));
		changed++;
	}
	for (uint32_t i = 0; i < sites->event_site_count; i++) {
		struct graftrace_kernel_event *event = sites->event_sites[i].event;
		event->wanted = wanted[event->number - 1];
	}
	for (uint32_t i = 0; i < sites->event_count; i++)
		sites->event_states[i] = wanted[i] != 0;
	gt_port_cpus_start();
	return changed;
}

bool gt_sites_is_stub_return(const struct gt_sites *sites, uint64_t address)
{
	uint64_t offset = address - sites->stubs, in_page = offset % GT_STUB_PAGE;
	return offset < gt_sites_stub_bytes(sites->count) && in_page >= GT_STUB_HEAD &&
	       (in_page - GT_STUB_HEAD) % GT_STUB_BYTES == GT_STUB_RETURN;
}
