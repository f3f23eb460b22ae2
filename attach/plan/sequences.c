/* SPDX-License-Identifier: MIT */
/*
 * Restartable sequences (rseq): code that the kernel takes a thread out of when it is preempted, migrated or
 * signalled there, by the addresses in a descriptor. It goes on at the abort handler then, if the four bytes
 * before that are the signature. So none of a sequence may run elsewhere, the signature stays, and a handler,
 * which tcmalloc's assembly calls a function, is none: the top of the stack is somebody's variable.
 */
#include "attach/plan/plan_private.h"

#include <stdlib.h>
#include <string.h>

#define SIGNATURE	0x53053053u /* glibc's and tcmalloc's */
#define SIGNATURE_BYTES 4u
/* Of the nop that has it as its displacement. */
#define SIGNED_NOP_BYTES 7u
#define SEQUENCE_MOST	 65536u

/* The kernel's struct rseq_cs, linux/rseq.h. */
struct descriptor {
	uint32_t version;
	uint32_t flags;
	uint64_t start;
	uint64_t bytes; /* up to behind the instruction that commits */
	uint64_t abort;
};

struct search {
	const struct gt_object_section *section;
	uint8_t *bytes;
};

/* The addresses stand in the file in a fixed object, in relocations elsewhere. */
static int take(void *data, const struct gt_object_relocation *relocation)
{
	const struct search *search = data;
	const uint64_t at = relocation->address - search->section->address;

	if (relocation->defined && at < search->section->bytes && search->section->bytes - at >= 8)
		memcpy(search->bytes + at, &relocation->value, 8);
	return 0;
}

int gt_plan_keep_sequences(struct gt_plan *plan)
{
	const struct gt_object_section *section =
		gt_object_section_named(plan->object, "__rseq_cs");
	const uint8_t *bytes =
		section != NULL ? gt_object_bytes(plan->object, section->address, section->bytes)
				: NULL;
	struct search search = { section, bytes != NULL ? malloc(section->bytes + 1) : NULL };
	struct descriptor sequence;
	int error;

	if (bytes == NULL)
		return 0;
	if (search.bytes == NULL)
		return GT_ENOMEM;
	memcpy(search.bytes, bytes, section->bytes);
	error = gt_object_each_relocation(plan->object, take, &search);
	for (uint64_t i = 0; !error && i + sizeof(sequence) <= section->bytes;
	     i += sizeof(sequence)) {
		memcpy(&sequence, search.bytes + i, sizeof(sequence));
		/* With the end of the instruction that has stored the descriptor's address. The kernel takes
		 * that away when it meets the thread outside: no jump may be in between. */
		if (sequence.start && sequence.bytes <= SEQUENCE_MOST)
			gt_scan_use(plan->scan, sequence.start - 1, sequence.bytes + 1);
		if (sequence.abort >= SIGNED_NOP_BYTES)
			gt_scan_use(plan->scan, sequence.abort - SIGNED_NOP_BYTES,
				    SIGNED_NOP_BYTES);
	}
	free(search.bytes);
	return error;
}

bool gt_plan_is_abort_handler(struct gt_plan *plan, uint64_t address)
{
	uint64_t room;
	const uint8_t *code = gt_scan_code(plan->scan, address - SIGNATURE_BYTES, &room);
	uint32_t signature;

	if (code == NULL || room <= SIGNATURE_BYTES)
		return false;
	memcpy(&signature, code, sizeof(signature));
	return signature == SIGNATURE;
}
