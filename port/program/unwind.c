/* SPDX-License-Identifier: MIT */
/*
 * What unwinders and others are told of the agent: see unwind.h.
 */
#include "port/program/unwind.h"
#include "core/record/port.h"

const struct graftrace_region *gt_agent_region(uint64_t address)
{
	for (uint32_t i = 0; i < gt_agent_state.region_count && i < GRAFTRACE_AGENT_REGIONS; i++)
		if (address - gt_agent_state.regions[i].start < gt_agent_state.regions[i].bytes)
			return (const struct graftrace_region *)gt_agent_state.regions[i].start;
	return NULL;
}

/* The image's text, and the table of its unwind data (agent.ld); image.S. */
extern const uint8_t gt_image_start[] __attribute__((visibility("hidden")));
extern const uint8_t gt_image_text_end[] __attribute__((visibility("hidden")));
extern const uint8_t gt_image_eh_frame_hdr[] __attribute__((visibility("hidden")));
extern const uint8_t gt_image_phdrs[] __attribute__((visibility("hidden")));

bool gt_agent_is_image(uint64_t address)
{
	return address - (uint64_t)gt_image_start < (uint64_t)(gt_image_text_end - gt_image_start);
}

struct dl_find_object {
	unsigned long long flags;
	uint64_t map_start;
	uint64_t map_end;
	uint64_t link_map;
	uint64_t eh_frame;
	unsigned long long reserved[7];
};

static const struct graftrace_region_unwind *unwind_data(uint64_t region)
{
	return (const struct graftrace_region_unwind *)(region + GRAFTRACE_REGION_UNWIND_OFFSET);
}

/* Is the address in code with jumps of ours at other places than functions' entries? */
static bool may_be_jump(const struct graftrace_region *region, uint64_t address)
{
	for (uint32_t i = 0; i < region->text_count && i < GRAFTRACE_REGION_TEXTS; i++)
		if (address >= region->texts[i].start && address + 5 <= region->texts[i].end)
			return true;
	return false;
}

/* Returns the region of such a jump; NULL for one at an entry or a hooked function's, which the
 * function's own rules cover. The code must be mapped. */
static const struct graftrace_region *region_of_jump(uint64_t address)
{
	for (uint32_t i = 0; i < gt_agent_state.region_count && i < GRAFTRACE_AGENT_REGIONS; i++) {
		const struct graftrace_region *region =
			(const struct graftrace_region *)gt_agent_state.regions[i].start;
		const uint8_t *jump = (const uint8_t *)address;
		const struct graftrace_patch *patches;
		int32_t distance;
		if (!may_be_jump(region, address) || jump[0] != 0xe9)
			continue;
		memcpy(&distance, jump + 1, sizeof(distance));
		if (gt_agent_region(address + 5 + (uint64_t)(int64_t)distance) != region)
			continue;
		patches = (const struct graftrace_patch *)region->journal;
		for (uint32_t k = region->journal_mains; k < region->journal_used; k++)
			if (patches[k].address == address && patches[k].elsewhere)
				return region;
	}
	return NULL;
}

/* Of a personality routine (Itanium C++ ABI, exception handling, 1.6.2). */
#define CLEANUP_PHASE	2
#define CONTINUE_UNWIND 8

/*
 * name(function, data): makes a call that may throw, counted in the agent's state. name_left(): the
 * personality routine of the frame within it, which an unwinder calls when an exception leaves that: all
 * its instructions stand between the counting up and down. A thread that is cancelled behind one of the two
 * leaves the count too high, never too low.
 */
#define COUNTED_CALL(name, counter)                                                              \
	__attribute__((visibility("hidden"))) int name##_left(int version, int actions);         \
	int name##_left(int version, int actions)                                                \
	{                                                                                        \
		(void)version;                                                                   \
		if (actions & CLEANUP_PHASE)                                                     \
			__atomic_fetch_sub(&gt_agent_state.counter, 1, __ATOMIC_SEQ_CST);        \
		return CONTINUE_UNWIND;                                                          \
	}                                                                                        \
	static __attribute__((noinline)) void name##_inner(void (*function)(void *), void *data) \
	{                                                                                        \
		/* 0x1b: DW_EH_PE_pcrel | DW_EH_PE_sdata4 */                                     \
		__asm__ volatile(".cfi_personality 0x1b, " #name "_left");                       \
		function(data);                                                                  \
		__asm__ volatile(""); /* it is no tail call */                                   \
	}                                                                                        \
	static void name(void (*function)(void *data), void *data)                               \
	{                                                                                        \
		__atomic_fetch_add(&gt_agent_state.counter, 1, __ATOMIC_SEQ_CST);                \
		name##_inner(function, data);                                                    \
		__atomic_fetch_sub(&gt_agent_state.counter, 1, __ATOMIC_SEQ_CST);                \
	}

/* Our code stays mapped while one is under way. The program's exceptions find their way through the
 * agent's frames by our hooks: while one of the first is under way these stay, too. */
COUNTED_CALL(call_program, called_out)
COUNTED_CALL(call_walk, walking)
COUNTED_CALL(call_lookup, looking)

/* The program's own code: asks the loader first, since the code may have been unmapped. */
static int on_find_outside(struct gt_hook_frame *frame, struct dl_find_object *found,
			   const struct graftrace_hook_site *site)
{
	int (*body)(uint64_t, struct dl_find_object *) =
		(int (*)(uint64_t, struct dl_find_object *))site->body;
	const struct graftrace_region *region;
	bool may_be = false;
	for (uint32_t i = 0; i < gt_agent_state.region_count && i < GRAFTRACE_AGENT_REGIONS; i++) {
		region = (const struct graftrace_region *)gt_agent_state.regions[i].start;
		may_be = may_be || may_be_jump(region, frame->rdi);
	}
	if (!may_be)
		return 0;
	__atomic_fetch_add(&gt_agent_state.looking, 1, __ATOMIC_SEQ_CST);
	int result = body(frame->rdi, found);
	__atomic_fetch_sub(&gt_agent_state.looking, 1, __ATOMIC_SEQ_CST);
	frame->rax = (uint64_t)(int64_t)result;
	region = result == 0 ? region_of_jump(frame->rdi) : NULL;
	if (region != NULL)
		found->eh_frame = (uint64_t)unwind_data((uint64_t)region)->jump_hdr;
	return 1;
}

int gt_unwind_find_object(struct gt_hook_frame *frame, const struct graftrace_hook_site *site)
{
	const struct graftrace_region *region = gt_agent_region(frame->rdi);
	struct dl_find_object *found = (struct dl_find_object *)frame->rsi;
	if (region == NULL && !gt_agent_is_image(frame->rdi))
		return on_find_outside(frame, found, site);
	memset(found, 0, sizeof(*found));
	frame->rax = 0;
	if (region == NULL) {
		found->map_start = (uint64_t)gt_image_start;
		found->map_end = (uint64_t)gt_image_text_end;
		found->eh_frame = (uint64_t)gt_image_eh_frame_hdr;
		return 1;
	}
	found->map_start = (uint64_t)region;
	for (uint32_t i = 0; i < gt_agent_state.region_count; i++)
		if (gt_agent_state.regions[i].start == (uint64_t)region)
			found->map_end = (uint64_t)region + gt_agent_state.regions[i].bytes;
	found->eh_frame = (uint64_t)unwind_data((uint64_t)region)->eh_frame_hdr;
	return 1;
}

struct dl_phdr_info {
	uint64_t address;
	const char *name;
	const void *headers;
	uint16_t header_count;
	uint64_t adds, subs;
	uint64_t tls_module, tls_data;
};

typedef int phdr_callback(struct dl_phdr_info *info, size_t bytes, void *data);

struct phdr_call {
	phdr_callback *callback;
	void *data;
	int (*body)(phdr_callback *callback, void *data);
	uint64_t adds, subs;
	size_t bytes;
	int result;
	bool unwinder; /* it copies what it is told */
	bool late;     /* not made: the agent is taken out */
};

/* index: of the page's headers. */
static int tell_of(struct phdr_call *call, uint32_t index, uint64_t address, const void *headers)
{
	const struct graftrace_told *told = (const struct graftrace_told *)gt_agent_state.told;
	struct dl_phdr_info info = { 0 };
	info.address = address;
	info.name = "[graftrace]";
	info.headers = headers;
	info.header_count = 2;
	if (told != NULL && !call->unwinder) {
		__atomic_store_n(&gt_agent_state.told_others, 1, __ATOMIC_RELAXED);
		info.name = told->name;
		info.headers = told->headers[index];
	}
	info.adds = call->adds;
	info.subs = call->subs;
	return call->callback(&info, call->bytes < sizeof(info) ? call->bytes : sizeof(info),
			      call->data);
}

static int on_phdr(struct dl_phdr_info *info, size_t bytes, void *data)
{
	struct phdr_call *call = data;
	call->bytes = bytes;
	if (bytes >= offsetof(struct dl_phdr_info, tls_module)) {
		call->adds = info->adds;
		call->subs = info->subs;
	}
	return call->callback(info, bytes, call->data);
}

/* The first of a second iteration, which ends with it. */
static int on_phdr_again(struct dl_phdr_info *info, size_t bytes, void *data)
{
	struct phdr_call *call = data;
	(void)info, (void)bytes;
	for (uint32_t i = 0; call->result == 0 && i < gt_agent_state.region_count; i++)
		call->result = tell_of(call, i + 1, gt_agent_state.regions[i].start,
				       unwind_data(gt_agent_state.regions[i].start)->phdrs);
	if (call->result == 0)
		call->result = tell_of(call, 0, (uint64_t)gt_image_start, gt_image_phdrs);
	return 1;
}

/* The C library holds its lock while it calls callbacks: those of several threads do not run at once, and some
 * have data that rely on that. So those that tell of the agent are called by it, too. The agent comes last:
 * many take the first object for the program, and sanitizers the second one for themselves. */
static void iterate(void *data)
{
	struct phdr_call *call = data;
	call->result = call->body(on_phdr, call);
	if (call->result == 0)
		call->body(on_phdr_again, call);
}

/* While the agent is taken out no more such calls begin. */
static void iterate_unless_leaving(void *data)
{
	struct phdr_call *call = data;
	call->late = __atomic_load_n(&gt_agent_state.leaving, __ATOMIC_SEQ_CST);
	if (!call->late)
		iterate(call);
}

static bool is_unwinder(uint64_t address)
{
	for (uint32_t i = 0; i < GRAFTRACE_AGENT_UNWINDERS; i++)
		if (address >= gt_agent_state.unwinders[i].start &&
		    address < gt_agent_state.unwinders[i].end)
			return true;
	return false;
}

/* An unwinder's callback ends soon and throws nothing. Any other one may be an unwinder's that is not known. */
int gt_unwind_iterate_phdr(struct gt_hook_frame *frame, const struct graftrace_hook_site *site)
{
	struct phdr_call call = { .callback = (phdr_callback *)frame->rdi,
				  .data = (void *)frame->rsi,
				  .body = (int (*)(phdr_callback *, void *))site->body,
				  .unwinder = is_unwinder(frame->rdi) };
	if (call.unwinder)
		call_lookup(iterate, &call);
	else
		call_program(iterate_unless_leaving, &call);
	frame->rax = (uint64_t)(int64_t)call.result;
	return !call.late;
}

typedef int frame_callback(void *context, void *data);

struct walk {
	frame_callback *callback;
	void *data;
	uint64_t (*ip)(void *context);
	int (*body)(frame_callback *callback, void *data);
	bool begun;
	int result;
};

static int on_frame(void *context, void *data)
{
	struct walk *walk = data;
	uint64_t ip = walk->ip(context);
	if (gt_agent_region(ip) != NULL || gt_agent_is_image(ip) || region_of_jump(ip) != NULL)
		return 0;
	/* The first frame is that of the hook's stub: it stands for the hooked function. */
	if (!walk->begun) {
		walk->begun = true;
		return 0;
	}
	return walk->callback(context, walk->data);
}

static void walk_stack(void *data)
{
	struct walk *walk = data;
	walk->result = walk->body(on_frame, walk);
}

static void call_walk_stack(void *data)
{
	call_walk(walk_stack, data);
}

/* The unwinder sees our own frames: this hook's, and those of open calls. */
int gt_unwind_backtrace(struct gt_hook_frame *frame, const struct graftrace_hook_site *site)
{
	struct walk walk = { .callback = (frame_callback *)frame->rdi,
			     .data = (void *)frame->rsi,
			     .ip = (uint64_t(*)(void *))site->argument,
			     .body = (int (*)(frame_callback *, void *))site->body };
	if (walk.ip == NULL)
		return 0;
	call_program(call_walk_stack, &walk);
	frame->rax = (uint64_t)(int64_t)walk.result;
	return 1;
}
