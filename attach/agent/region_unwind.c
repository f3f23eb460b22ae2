/* SPDX-License-Identifier: MIT */
/*
 * The unwind data of a region. Where an instruction of ours stands for one of the program, its frame
 * is a step aside: the "caller" is that instruction, with all registers as they are, and the rules of
 * the program's own unwind data say how to go on.
 *
 * A stub (graftrace/agent.h draws it), S being its function's return slot and N the number of bytes
 * into it:
 *
 *	N	rsp	stands for			the return address
 *	0 5 11	S	the function's first byte	in S
 *	16	S + 8	the same			in S, which a signal's handler leaves alone
 *	21	S + 8	the caller, behind its call	in the mirror of S
 *	26	S	the same			in the mirror of S
 *
 * So there is one entry (FDE) for all stubs, of expressions over rip, as linkers make for .plt. The
 * first byte's address is that of the jump to the stub, in the journal: an entry of 32 bytes for a stub of
 * 32. Unwinders look up the byte before a return address, so what is stood for is given plus one.
 *
 * A frame of no size is refused by unwinders, which tell frames by their CFA (private_2 of an
 * exception): at 21 the CFA of the function is S + 8, so the stub's is S + 16, and elsewhere too.
 *
 * An unwinder takes rip from where it found it, each time that a rule asks: the slot, which leaving
 * the process may have put back meanwhile, or a signal's frame, out of whose moved code leaving has
 * taken it. It is at no instruction of ours then; what it has looked up this entry for was a return
 * point, or moved code. So each rule first asks whether rip is in what the entry is for, and says
 * else what holds there: the same as at 21, or rip itself.
 *
 * The moved code has one entry, too, that looks up a table (struct graftrace_places), and the hot text
 * those that the assembler made of arch/x86_64/hot.S, copied from the agent's image.
 */
#include "attach/agent/region.h"

#include <elf.h>
#include <stddef.h>
#include <string.h>

/* What unwind data is made of. */
enum { DEF_CFA_EXPRESSION = 0x0f, EXPRESSION_VALUE = 0x16 };
enum { RSP = 7, RIP = 16 };
enum {
	DEREF = 0x06,
	CONST1 = 0x08,
	CONST4 = 0x0c,
	CONST8 = 0x0e,
	DUP = 0x12,
	DROP = 0x13,
	OVER = 0x14,
	SWAP = 0x16,
	AND = 0x1a,
	MINUS = 0x1c,
	MULTIPLY = 0x1e,
	NOT = 0x20,
	PLUS = 0x22,
	SHL = 0x24,
	SHR = 0x25,
	XOR = 0x27,
	BRANCH = 0x28,
	EQUAL = 0x29,
	AT_LEAST = 0x2a,
	GREATER = 0x2b,
	LESS = 0x2d,
	SKIP = 0x2f,
	LITERAL = 0x30,	 /* + 0 … 31 */
	REGISTER = 0x70, /* + its number; then what is added */
	DEREF_SIZE = 0x94,
};

/* Bytes that grow; what has no room is counted only. */
struct writer {
	uint8_t *bytes;
	size_t used;
	size_t room;
};

static void put(struct writer *writer, const void *bytes, size_t size)
{
	if (size && writer->used <= writer->room && size <= writer->room - writer->used)
		memcpy(writer->bytes + writer->used, bytes, size);
	writer->used += size;
}

static void put8(struct writer *writer, uint8_t value)
{
	put(writer, &value, sizeof(value));
}

static void put32(struct writer *writer, uint64_t value)
{
	uint32_t low = (uint32_t)value;

	put(writer, &low, sizeof(low));
}

static void set32(struct writer *writer, size_t at, uint64_t value)
{
	uint32_t low = (uint32_t)value;

	if (at + sizeof(low) <= writer->room)
		memcpy(writer->bytes + at, &low, sizeof(low));
}

static void constant(struct writer *writer, uint64_t value)
{
	put8(writer, CONST8);
	put(writer, &value, sizeof(value));
}

#define PUT(writer, ...) \
	put(writer, (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

/* A rule for a register: its value. The expression is filled in between; it finds the CFA on its
 * stack. */
static size_t begin_value(struct writer *writer, uint8_t reg)
{
	PUT(writer, EXPRESSION_VALUE, reg, 0, 0);
	return writer->used;
}

/* The length, before `start`: a number in two bytes of seven bits. */
static void end_value(struct writer *writer, size_t start)
{
	size_t bytes = writer->used - start;

	if (start > writer->room)
		return;
	writer->bytes[start - 2] = (uint8_t)(bytes | 0x80);
	writer->bytes[start - 1] = (uint8_t)(bytes >> 7);
}

/* Where a branch's two bytes stand is filled in when it is known where it leads. */
static size_t branch(struct writer *writer, uint8_t operation)
{
	PUT(writer, operation, 0, 0);
	return writer->used;
}

static void leads_here(struct writer *writer, size_t branch)
{
	if (branch <= writer->room)
		writer->bytes[branch - 2] = (uint8_t)(writer->used - branch);
}

/* Leaves on the stack whether the address that lies on it is one of these. */
static void is_within(struct writer *writer, uint64_t first, uint64_t end)
{
	constant(writer, first);
	PUT(writer, MINUS, DUP, LITERAL + 0, AT_LEAST, SWAP, CONST4);
	put32(writer, end - first);
	PUT(writer, LESS, AND);
}

/* Leaves N on the stack; 21 where rip is in no stub. */
static void place_in_stub(struct writer *writer, const struct gt_region *region)
{
	PUT(writer, REGISTER + RIP, 0);
	is_within(writer, region->stubs, region->moved_first);
	PUT(writer, REGISTER + RIP, 0, LITERAL + 31, AND, LITERAL + 21, MINUS, MULTIPLY,
	    LITERAL + 21, PLUS);
}

static void stub_rules(struct writer *writer, const struct gt_region *region)
{
	size_t value, at_body, done;

	/* rsp + 16 - (N & 24 == 16) * 8 */
	PUT(writer, DEF_CFA_EXPRESSION, 0, 0);
	value = writer->used;
	PUT(writer, REGISTER + RSP, 16);
	place_in_stub(writer, region);
	PUT(writer, LITERAL + 24, AND, LITERAL + 16, EQUAL, LITERAL + 3, SHL, MINUS);
	end_value(writer, value);
	/* CFA - 16 + (N > 16) * 8 */
	value = begin_value(writer, RSP);
	PUT(writer, LITERAL + 16, MINUS);
	place_in_stub(writer, region);
	PUT(writer, LITERAL + 16, GREATER, LITERAL + 3, SHL, PLUS);
	end_value(writer, value);
	value = begin_value(writer, RIP);
	place_in_stub(writer, region);
	PUT(writer, LITERAL + 16, GREATER);
	at_body = branch(writer, BRANCH);
	PUT(writer, DROP, REGISTER + RIP, 0, LITERAL + 31, NOT, AND);
	constant(writer, region->journal - region->stubs);
	PUT(writer, PLUS, DEREF, LITERAL + 1, PLUS);
	done = branch(writer, SKIP);
	leads_here(writer, at_body);
	PUT(writer, LITERAL + 16, MINUS);
	constant(writer, GRAFTRACE_MIRROR);
	PUT(writer, XOR, DEREF);
	leads_here(writer, done);
	end_value(writer, value);
}

/* Leaves on the stack: the word of the table, as an address; and whether it is one of a
 * graftrace_places. */
static void look_up_place(struct writer *writer, const struct gt_region *region)
{
	PUT(writer, REGISTER + RIP, 0);
	constant(writer, region->moved_first);
	PUT(writer, MINUS, LITERAL + 4, SHR, LITERAL + 2, SHL);
	constant(writer, region->places);
	PUT(writer, PLUS, DEREF_SIZE, 4);
	constant(writer, region->start - GRAFTRACE_PLACES_BIAS);
	PUT(writer, PLUS, DUP);
	constant(writer, region->start);
	PUT(writer, AT_LEAST, OVER);
	constant(writer, region->start + region->bytes);
	PUT(writer, LESS, AND);
}

/* From a graftrace_places' address its byte for rip. */
static void read_place(struct writer *writer)
{
	PUT(writer, LITERAL + (uint8_t)offsetof(struct graftrace_places, at), PLUS, REGISTER + RIP,
	    0, LITERAL + 15, AND, PLUS, DEREF_SIZE, 1);
}

/* Branches if rip is in the moved code. */
static size_t branch_in_moved(struct writer *writer, const struct gt_region *region)
{
	PUT(writer, REGISTER + RIP, 0);
	is_within(writer, region->moved_first, region->moved_end);
	return branch(writer, BRANCH);
}

/* What an emulated call has pushed by then. */
static void pushed_rule(struct writer *writer, const struct gt_region *region)
{
	size_t value = begin_value(writer, RSP), inside, by_table, elsewhere, done;

	inside = branch_in_moved(writer, region);
	PUT(writer, LITERAL + 0);
	elsewhere = branch(writer, SKIP);
	leads_here(writer, inside);
	look_up_place(writer, region);
	by_table = branch(writer, BRANCH);
	PUT(writer, DROP, LITERAL + 0);
	done = branch(writer, SKIP);
	leads_here(writer, by_table);
	read_place(writer);
	/* a pushed word, or the red zone */
	PUT(writer, DUP, LITERAL + 7, SHR, LITERAL + 3, SHL, SWAP, CONST1, GRAFTRACE_PLACES_BELOW,
	    EQUAL, LITERAL + 7, SHL, PLUS);
	leads_here(writer, done);
	leads_here(writer, elsewhere);
	PUT(writer, PLUS);
	end_value(writer, value);
}

static void moved_rules(struct writer *writer, const struct gt_region *region)
{
	static const uint8_t cfa[] = { REGISTER + RSP, 0 };
	size_t value, inside, by_table, elsewhere, done;

	PUT(writer, DEF_CFA_EXPRESSION, sizeof(cfa));
	put(writer, cfa, sizeof(cfa));
	pushed_rule(writer, region);
	value = begin_value(writer, RIP);
	inside = branch_in_moved(writer, region);
	PUT(writer, REGISTER + RIP, 0);
	elsewhere = branch(writer, SKIP);
	leads_here(writer, inside);
	look_up_place(writer, region);
	by_table = branch(writer, BRANCH);
	PUT(writer, REGISTER + RIP, 0, LITERAL + 15, AND);
	done = branch(writer, SKIP);
	leads_here(writer, by_table);
	PUT(writer, DUP);
	read_place(writer);
	PUT(writer, DUP, CONST1, GRAFTRACE_PLACES_BELOW, EQUAL, LITERAL + 0, EQUAL, LITERAL + 0,
	    SWAP, MINUS, AND);
	PUT(writer, CONST1, 0x7f, AND, SWAP, DEREF_SIZE, 4);
	constant(writer, region->start - GRAFTRACE_PLACES_BIAS);
	PUT(writer, PLUS);
	leads_here(writer, done);
	PUT(writer, PLUS);
	leads_here(writer, elsewhere);
	PUT(writer, LITERAL + 1, PLUS);
	end_value(writer, value);
}

/* jmp to somewhere: rip + 5 + its displacement, 32 bits with a sign. If that is not in the region,
 * the jump has gone meanwhile: rip itself. */
static void jump_rules(struct writer *writer, const struct gt_region *region)
{
	size_t value = begin_value(writer, RIP), leads;

	PUT(writer, DROP, REGISTER + RIP, 5, REGISTER + RIP, 1, DEREF_SIZE, 4);
	constant(writer, 0x80000000);
	PUT(writer, XOR);
	constant(writer, 0x80000000);
	PUT(writer, MINUS, PLUS, DUP);
	is_within(writer, region->start, region->start + region->bytes);
	leads = branch(writer, BRANCH);
	PUT(writer, DROP, REGISTER + RIP, 0);
	leads_here(writer, leads);
	end_value(writer, value);
}

static void pad_entry(struct writer *writer, size_t start)
{
	while ((writer->used - start) % 8 != 4) /* the length itself does not count */
		put8(writer, 0);
	set32(writer, start, writer->used - start - 4);
}

struct unwind_data {
	struct writer frames;
	struct writer table; /* .eh_frame_hdr: for each entry where it begins, and where it is */
	uint64_t frames_at;
	uint64_t table_at;
	uint32_t count;
};

static void list(struct unwind_data *data, uint64_t first, size_t entry)
{
	put32(&data->table, first - data->table_at);
	put32(&data->table, data->frames_at + entry - data->table_at);
	data->count++;
}

/* An FDE of the CIE at 0; its rules follow. */
static size_t begin_entry(struct unwind_data *data, uint64_t first, uint64_t end)
{
	struct writer *frames = &data->frames;
	size_t start = frames->used;

	list(data, first, start);
	put32(frames, 0);
	put32(frames, frames->used);
	put32(frames, first - (data->frames_at + frames->used));
	put32(frames, end - first);
	put8(frames, 0);
	return start;
}

static bool read32(const uint8_t *image, size_t size, uint64_t at, uint32_t *value)
{
	if (at > size || size - at < sizeof(*value))
		return false;
	memcpy(value, image + at, sizeof(*value));
	return true;
}

/* The CIE at `from` of the image is copied once. */
static int copy_common(struct unwind_data *data, const uint8_t *image, size_t size, uint64_t from)
{
	const uint8_t *made = data->frames.bytes;
	uint32_t bytes, known;
	size_t at = 0;

	if (!read32(image, size, from, &bytes) || bytes > 256 || from + 4 + bytes > size)
		return -1;
	for (; at + 4 + bytes <= data->frames.used && at + 4 + bytes <= data->frames.room;
	     at += 4 + known) {
		memcpy(&known, made + at, sizeof(known));
		if (known == bytes && memcmp(made + at, image + from, 4 + bytes) == 0)
			return (int)at;
	}
	at = data->frames.used;
	put(&data->frames, image + from, 4 + bytes);
	return (int)at;
}

/* Everything of the image's text that stands in the hot text. Its table, sorted by address, tells where. */
static int copy_hot_entries(struct unwind_data *data, const struct gt_region *region,
			    const struct graftrace_agent_image *header, const uint8_t *image,
			    size_t size)
{
	const uint64_t table = header->eh_frame_hdr, hot = header->hot_source;
	uint32_t count;

	if (!read32(image, size, table + 8, &count))
		return GT_EFORMAT;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t first, entry, bytes, common;
		uint64_t at;
		size_t start;
		int cie;

		if (!read32(image, size, table + 12 + i * 8ull, &first) ||
		    !read32(image, size, table + 16 + i * 8ull, &entry))
			return GT_EFORMAT;
		at = (uint32_t)(table + first) - hot;
		entry = (uint32_t)table + entry;
		if (at >= header->hot_bytes)
			continue;
		if (!read32(image, size, entry, &bytes) ||
		    !read32(image, size, entry + 4ull, &common) || bytes > 4096 ||
		    entry + 4ull + bytes > size || bytes < 16)
			return GT_EFORMAT;
		cie = copy_common(data, image, size, entry + 4ull - common);
		if (cie < 0)
			return GT_EFORMAT;
		start = data->frames.used;
		at += region->start + GRAFTRACE_REGION_HOT_OFFSET;
		list(data, at, start);
		put(&data->frames, image + entry, 4 + bytes);
		set32(&data->frames, start + 4, start + 4 - (uint64_t)cie);
		set32(&data->frames, start + 8, at - (data->frames_at + start + 8));
	}
	return 0;
}

static void put_program_headers(const struct gt_region *region,
				struct graftrace_region_unwind *unwind)
{
	const uint64_t header = GRAFTRACE_REGION_UNWIND_OFFSET +
				offsetof(struct graftrace_region_unwind, eh_frame_hdr);
	Elf64_Phdr headers[2] = {
		{
			.p_type = PT_LOAD,
			.p_flags = PF_R | PF_X,
			.p_filesz = region->bytes,
			.p_memsz = region->bytes,
			.p_align = 4096,
		},
		{
			.p_type = PT_GNU_EH_FRAME,
			.p_flags = PF_R,
			.p_offset = header,
			.p_vaddr = header,
			.p_paddr = header,
			.p_filesz = sizeof(unwind->eh_frame_hdr),
			.p_memsz = sizeof(unwind->eh_frame_hdr),
			.p_align = 4,
		},
	};

	_Static_assert(sizeof(headers) <= sizeof(unwind->phdrs), "two program headers");
	memcpy(unwind->phdrs, headers, sizeof(headers));
}

/* For one that is asked for by its address only: there is no table, and the entry has all that is in
 * reach. What it leads to is no return address: a signal's frame. */
static int put_jump(const struct gt_region *region, struct graftrace_region_unwind *unwind)
{
	static const uint8_t cie[] = {
		0,    0,    0,	  0,	  /* length */
		0,    0,    0,	  0,	  /* a CIE */
		1,    'z',  'R',  'S', 0, /* version, augmentation: a signal's frame */
		1,    0x78,		  /* code and data alignment: 1, -8 */
		16,   1,    0x1b,	  /* return address column; FDEs: pcrel sdata4 */
		0x0c, RSP,  0,		  /* def_cfa rsp, 0 */
	};
	const uint32_t from_header = offsetof(struct graftrace_region_unwind, jump_frame) -
				     offsetof(struct graftrace_region_unwind, jump_hdr);
	struct writer header = { unwind->jump_hdr, 0, sizeof(unwind->jump_hdr) };
	struct writer frame = { unwind->jump_frame, 0, sizeof(unwind->jump_frame) };
	const uint64_t at = region->start + GRAFTRACE_REGION_UNWIND_OFFSET +
			    offsetof(struct graftrace_region_unwind, jump_frame);
	/* No rule holds before the entry begins: it must not begin below 0. */
	const uint64_t first = at > GT_REGION_REACH ? at - GT_REGION_REACH : 1;
	size_t start;

	PUT(&header, 1, 0x1b, 0xff, 0xff); /* version; pcrel sdata4; no table */
	put32(&header, from_header - 4);
	put(&frame, cie, sizeof(cie));
	pad_entry(&frame, 0);
	start = frame.used;
	put32(&frame, 0);
	put32(&frame, frame.used);
	put32(&frame, first - (at + frame.used));
	put32(&frame, at + GT_REGION_REACH - first); /* as signed: more still */
	put8(&frame, 0);
	jump_rules(&frame, region);
	pad_entry(&frame, start);
	put32(&frame, 0);
	return frame.used > frame.room ? GT_ENOSPC : 0;
}

int gt_region_unwind(const struct gt_region *region, const struct graftrace_agent_image *header,
		     const uint8_t *image, size_t size, struct graftrace_region_unwind *unwind)
{
	static const uint8_t cie[] = {
		0,    0,    0,	  0, /* length */
		0,    0,    0,	  0, /* a CIE */
		1,    'z',  'R',  0, /* version, augmentation */
		1,    0x78,	     /* code and data alignment: 1, -8 */
		16,   1,    0x1b,    /* return address column; FDEs: pcrel sdata4 */
		0x0c, 7,    8,	     /* def_cfa rsp, 8 */
		0x90, 1,	     /* offset rip, cfa - 8 */
	};
	const uint64_t at = region->start + GRAFTRACE_REGION_UNWIND_OFFSET;
	struct unwind_data data = {
		.frames = { unwind->eh_frame, 0, sizeof(unwind->eh_frame) },
		.table = { unwind->eh_frame_hdr, 0, sizeof(unwind->eh_frame_hdr) },
		.frames_at = at + offsetof(struct graftrace_region_unwind, eh_frame),
		.table_at = at + offsetof(struct graftrace_region_unwind, eh_frame_hdr),
	};
	size_t start;
	int error = 0;

	memset(unwind, 0, sizeof(*unwind));
	put_program_headers(region, unwind);
	error = put_jump(region, unwind);
	PUT(&data.table, 1, 0x1b, 3, 0x3b); /* version; pcrel sdata4, udata4, datarel sdata4 */
	put32(&data.table, data.frames_at - (data.table_at + 4));
	put32(&data.table, 0);
	put(&data.frames, cie, sizeof(cie));
	pad_entry(&data.frames, 0);
	/* By rising addresses. */
	if (!error && header->eh_frame_hdr)
		error = copy_hot_entries(&data, region, header, image, size);
	start = begin_entry(&data, region->stubs, region->moved_first);
	stub_rules(&data.frames, region);
	pad_entry(&data.frames, start);
	start = begin_entry(&data, region->moved_first, region->moved_end);
	moved_rules(&data.frames, region);
	pad_entry(&data.frames, start);
	put32(&data.frames, 0);
	set32(&data.table, 8, data.count);
	if (data.frames.used > data.frames.room || data.table.used > data.table.room)
		return GT_ENOSPC;
	return error;
}
