/* SPDX-License-Identifier: MIT */
/*
 * Where functions begin and end, from the call frame information in .eh_frame (Linux Standard Base,
 * "Exception Frames"; DWARF 5, 6.4). Nearly every x86-64 object has it, stripped or not, as
 * unwinding needs it at run time. Of the rules only the first ones are run, those that hold at the
 * first byte: a CFA other than rsp + 8 there tells the cold part of a function from an entry.
 */
#include "attach/object/object_private.h"

#include <stdlib.h>
#include <string.h>

enum {
	PE_ABSPTR = 0x00,
	PE_UDATA2 = 0x02,
	PE_UDATA4 = 0x03,
	PE_UDATA8 = 0x04,
	PE_SDATA2 = 0x0a,
	PE_SDATA4 = 0x0b,
	PE_SDATA8 = 0x0c,
	PE_PCREL = 0x10,
	PE_DATAREL = 0x30,
	PE_OMIT = 0xff,
};

#define DWARF_RSP 7

/* Bytes that are read front to back; once they are out, `bad` is set and zeroes come. */
struct cursor {
	const uint8_t *at;
	const uint8_t *end;
	uint64_t address; /* of `at` */
	bool bad;
};

struct cie {
	uint64_t offset; /* in the section */
	uint8_t encoding;
	uint8_t lsda_encoding; /* of FDEs' pointer to language-specific data; PE_OMIT: none */
	bool augmented;	       /* 'z': FDEs have augmentation data of stated length */
	bool signal;
	bool usable;
	bool cfa8;
};

struct cies {
	struct cie *list; /* sorted by offset: as they come */
	uint32_t count;
	uint32_t room;
};

static uint64_t take(struct cursor *cursor, uint32_t bytes)
{
	uint64_t value = 0;

	if ((uint64_t)(cursor->end - cursor->at) < bytes) {
		cursor->bad = true;
		return 0;
	}
	memcpy(&value, cursor->at, bytes);
	cursor->at += bytes;
	cursor->address += bytes;
	return value;
}

static void skip(struct cursor *cursor, uint64_t bytes)
{
	if ((uint64_t)(cursor->end - cursor->at) < bytes) {
		cursor->bad = true;
		return;
	}
	cursor->at += bytes;
	cursor->address += bytes;
}

static uint64_t take_leb(struct cursor *cursor)
{
	uint64_t value = 0;
	uint32_t shift = 0;
	uint8_t byte;

	do {
		byte = (uint8_t)take(cursor, 1);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80 && !cursor->bad);
	return value;
}

/* A value of the given format; pcrel is added only where `base` is asked for. */
static uint64_t take_encoded(struct cursor *cursor, uint8_t encoding, bool base, uint64_t data_base)
{
	const uint64_t here = cursor->address;
	uint64_t value;

	switch (encoding & 0x0f) {
	case PE_UDATA2:
		value = take(cursor, 2);
		break;
	case PE_SDATA2:
		value = (uint64_t)(int64_t)(int16_t)take(cursor, 2);
		break;
	case PE_UDATA4:
		value = take(cursor, 4);
		break;
	case PE_SDATA4:
		value = (uint64_t)(int64_t)(int32_t)take(cursor, 4);
		break;
	case PE_ABSPTR:
	case PE_UDATA8:
	case PE_SDATA8:
		value = take(cursor, 8);
		break;
	default:
		cursor->bad = true;
		return 0;
	}
	if (!base)
		return value;
	switch (encoding & 0x70) {
	case 0:
		return value;
	case PE_PCREL:
		return value + here;
	case PE_DATAREL:
		return value + data_base;
	default:
		cursor->bad = true;
		return 0;
	}
}

/*
 * Runs call frame instructions until the first that moves on in the code. register and offset:
 * the CFA's, changed by what is run. An expression gives register ~0.
 */
static void run_first_rules(struct cursor cursor, uint64_t *reg, uint64_t *offset)
{
	while (cursor.at < cursor.end && !cursor.bad) {
		const uint8_t op = (uint8_t)take(&cursor, 1);

		switch (op & 0xc0) {
		case 0x40: /* advance_loc */
			return;
		case 0x80: /* offset */
			take_leb(&cursor);
			continue;
		case 0xc0: /* restore */
			continue;
		default:
			break;
		}
		switch (op) {
		case 0x00: /* nop */
		case 0x0a: /* remember_state */
		case 0x0b: /* restore_state */
			break;
		case 0x06: /* restore_extended */
		case 0x07: /* undefined */
		case 0x08: /* same_value */
		case 0x2e: /* GNU_args_size */
			take_leb(&cursor);
			break;
		case 0x05: /* offset_extended */
		case 0x09: /* register */
		case 0x11: /* offset_extended_sf */
		case 0x14: /* val_offset */
		case 0x15: /* val_offset_sf */
			take_leb(&cursor);
			take_leb(&cursor);
			break;
		case 0x0c: /* def_cfa */
			*reg = take_leb(&cursor);
			*offset = take_leb(&cursor);
			break;
		case 0x0d: /* def_cfa_register */
			*reg = take_leb(&cursor);
			break;
		case 0x0e: /* def_cfa_offset */
			*offset = take_leb(&cursor);
			break;
		case 0x0f: /* def_cfa_expression */
			*reg = UINT64_MAX;
			skip(&cursor, take_leb(&cursor));
			break;
		case 0x10: /* expression */
		case 0x16: /* val_expression */
			take_leb(&cursor);
			skip(&cursor, take_leb(&cursor));
			break;
		default: /* set_loc, advance_loc1/2/4, or what nobody knows */
			return;
		}
	}
}

/* body: behind the CIE's id. */
static void read_cie(struct cursor body, struct cie *cie, uint64_t *reg, uint64_t *offset)
{
	const char *augmentation;
	uint8_t version;
	uint64_t length = 0;
	const uint8_t *data;

	cie->encoding = PE_ABSPTR;
	cie->lsda_encoding = PE_OMIT;
	version = (uint8_t)take(&body, 1);
	augmentation = (const char *)body.at;
	while (take(&body, 1) && !body.bad)
		;
	if (body.bad || (version != 1 && version != 3))
		return;
	take_leb(&body); /* code alignment */
	take_leb(&body); /* data alignment: only used by rules that we skip */
	if (version == 1)
		take(&body, 1);
	else
		take_leb(&body);
	if (*augmentation == 'z') {
		cie->augmented = true;
		length = take_leb(&body);
	} else if (*augmentation) {
		return; /* "eh" and its like: not on x86-64 */
	}
	data = body.at;
	for (augmentation += cie->augmented; *augmentation && !body.bad; augmentation++) {
		switch (*augmentation) {
		case 'R':
			cie->encoding = (uint8_t)take(&body, 1);
			break;
		case 'L':
			cie->lsda_encoding = (uint8_t)take(&body, 1);
			break;
		case 'P': {
			const uint8_t encoding = (uint8_t)take(&body, 1);

			if (encoding != PE_OMIT)
				take_encoded(&body, encoding, false, 0);
			break;
		}
		case 'S':
			cie->signal = true;
			break;
		default:
			break;
		}
	}
	if (body.bad || (uint64_t)(body.at - data) > length || cie->encoding & 0x80)
		return;
	skip(&body, length - (uint64_t)(body.at - data));
	cie->usable = !body.bad;
	run_first_rules(body, reg, offset);
}

static const struct cie *find_cie(const struct cies *cies, uint64_t offset)
{
	uint32_t low = 0, high = cies->count;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (cies->list[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low < cies->count && cies->list[low].offset == offset ? &cies->list[low] : NULL;
}

static int add_cie(struct cies *cies, uint64_t offset, struct cursor body)
{
	uint64_t reg = UINT64_MAX, cfa_offset = 0;
	struct cie *cie;

	if (cies->count == cies->room) {
		const uint32_t room = cies->room ? cies->room * 2 : 16;
		struct cie *grown = realloc(cies->list, room * sizeof(*grown));

		if (grown == NULL)
			return GT_ENOMEM;
		cies->list = grown;
		cies->room = room;
	}
	cie = &cies->list[cies->count++];
	memset(cie, 0, sizeof(*cie));
	cie->offset = offset;
	read_cie(body, cie, &reg, &cfa_offset);
	cie->cfa8 = reg == DWARF_RSP && cfa_offset == 8;
	return 0;
}

/*
 * Whether a function's language-specific data has a table of types: it catches exceptions. Data
 * without one only cleans up, which C does too. (Itanium C++ ABI, "Exception Handling Tables")
 */
static bool has_types(struct gt_object *object, uint64_t address)
{
	struct cursor data = { .address = address };
	uint8_t encoding;
	uint64_t room = 16;

	while (room && (data.at = gt_object_bytes(object, address, room)) == NULL)
		room /= 2;
	data.end = data.at + room;
	encoding = (uint8_t)take(&data, 1); /* of where landing pads begin */
	if (encoding != PE_OMIT)
		take_encoded(&data, encoding, false, 0);
	encoding = (uint8_t)take(&data, 1);
	return !data.bad && encoding != PE_OMIT;
}

static int add_frame(struct gt_object *object, struct gt_frames *frames, uint32_t *room,
		     const struct cie *cie, struct cursor body, uint64_t data_base)
{
	uint64_t reg = cie->cfa8 ? DWARF_RSP : UINT64_MAX, offset = 8, address, bytes;
	struct gt_frame *frame;

	address = take_encoded(&body, cie->encoding, true, data_base);
	bytes = take_encoded(&body, cie->encoding, false, 0);
	if (cie->augmented) {
		const uint64_t length = take_leb(&body);
		struct cursor data = body;

		skip(&body, length);
		/* A relative pointer of 0 says that this function has none. */
		if (cie->lsda_encoding != PE_OMIT && !(cie->lsda_encoding & 0x80) &&
		    !frames->catches && !body.bad &&
		    take_encoded(&(struct cursor){ data.at, body.at, data.address, false },
				 cie->lsda_encoding, false, 0)) {
			data.end = body.at;
			frames->catches = has_types(
				object, take_encoded(&data, cie->lsda_encoding, true, data_base));
		}
	}
	if (body.bad || bytes == 0 || address == 0 || address + bytes < address)
		return 0;
	run_first_rules(body, &reg, &offset);
	if (frames->count == *room) {
		const uint32_t more = *room ? *room * 2 : 1024;
		struct gt_frame *grown = realloc(frames->frames, more * sizeof(*grown));

		if (grown == NULL)
			return GT_ENOMEM;
		frames->frames = grown;
		*room = more;
	}
	frame = &frames->frames[frames->count++];
	frame->address = address;
	frame->bytes = bytes;
	frame->cfa8 = reg == DWARF_RSP && offset == 8;
	frame->signal = cie->signal;
	return 0;
}

/* The section: by its header, or where PT_GNU_EH_FRAME points, up to its segment's end. */
static bool find_section(struct gt_object *object, uint64_t *address, uint64_t *bytes,
			 uint64_t *data_base)
{
	const struct gt_object_section *section = gt_object_section_named(object, ".eh_frame");
	uint32_t i;

	*data_base = 0;
	for (i = 0; i < object->header.e_phnum; i++) {
		const Elf64_Phdr *header = &object->program_headers[i];
		struct cursor cursor = { .address = header->p_vaddr };
		uint8_t encoding;

		if (header->p_type != PT_GNU_EH_FRAME)
			continue;
		*data_base = header->p_vaddr;
		cursor.at = gt_object_bytes(object, header->p_vaddr, header->p_filesz);
		if (cursor.at == NULL || section != NULL)
			break;
		cursor.end = cursor.at + header->p_filesz;
		take(&cursor, 1);
		encoding = (uint8_t)take(&cursor, 1);
		take(&cursor, 2);
		*address = take_encoded(&cursor, encoding, true, header->p_vaddr);
		if (cursor.bad || encoding == PE_OMIT)
			return false;
		for (i = 0; i < object->segment_count; i++) {
			const struct gt_object_segment *segment = &object->segments[i];

			if (*address >= segment->address &&
			    *address - segment->address < segment->file_bytes) {
				*bytes = segment->file_bytes - (*address - segment->address);
				return true;
			}
		}
		return false;
	}
	if (section == NULL)
		return false;
	*address = section->address;
	*bytes = section->bytes;
	return true;
}

static int compare_frames(const void *a, const void *b)
{
	const struct gt_frame *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

int gt_object_load_frames(struct gt_object *object, struct gt_frames *frames,
			  struct gt_message *message)
{
	uint64_t address, bytes, data_base, last = 0;
	struct cies cies = { 0 };
	struct cursor section;
	const uint8_t *start;
	bool sorted = true;
	uint32_t room = 0;
	int error = 0;

	memset(frames, 0, sizeof(*frames));
	if (!find_section(object, &address, &bytes, &data_base))
		return 0;
	start = gt_object_bytes(object, address, bytes);
	if (start == NULL)
		return 0;
	section = (struct cursor){ .at = start, .end = start + bytes, .address = address };
	while (!error && section.end - section.at >= 4) {
		const uint64_t record = (uint64_t)(section.at - start);
		uint64_t length = take(&section, 4), id_at, id;
		struct cursor body;

		if (length == 0) {
			/* The terminator; some linkers leave one in the middle. */
			if (gt_object_section_named(object, ".eh_frame") == NULL)
				break;
			continue;
		}
		if (length == 0xffffffff)
			length = take(&section, 8);
		if (section.bad || length < 4 || length > (uint64_t)(section.end - section.at))
			break;
		body = section;
		body.end = body.at + length;
		skip(&section, length);
		id_at = (uint64_t)(body.at - start);
		id = take(&body, 4);
		if (id == 0) {
			error = add_cie(&cies, record, body);
		} else if (id <= id_at) {
			const struct cie *cie = find_cie(&cies, id_at - id);

			if (cie != NULL && cie->usable)
				error = add_frame(object, frames, &room, cie, body, data_base);
		}
	}
	free(cies.list);
	if (error) {
		free(frames->frames);
		memset(frames, 0, sizeof(*frames));
		return gt_fail(message, error, "'%s': no memory for call frames", object->path);
	}
	for (uint32_t i = 0; i < frames->count; i++) {
		sorted = sorted && frames->frames[i].address >= last;
		last = frames->frames[i].address;
	}
	if (!sorted)
		qsort(frames->frames, frames->count, sizeof(*frames->frames), compare_frames);
	return 0;
}
