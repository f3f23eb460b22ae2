/* SPDX-License-Identifier: MIT */
/* Zydis behind the few facts that patching needs; see the header. */
#include "attach/plan/instruction_private.h"

#include <string.h>
#include <Zydis/Zydis.h>

static const ZydisDecoder *decoder(void)
{
	static ZydisDecoder made;
	static bool ready;

	/* Writing the same bytes twice from two threads would do no harm. */
	if (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE)) {
		ZydisDecoderInit(&made, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
		__atomic_store_n(&ready, true, __ATOMIC_RELEASE);
	}
	return &made;
}

static enum gt_instruction_kind kind_of(const ZydisDecodedInstruction *decoded)
{
	const bool relative = decoded->raw.imm[0].is_relative;

	switch (decoded->meta.category) {
	case ZYDIS_CATEGORY_CALL:
		return relative ? GT_INSTRUCTION_CALL : GT_INSTRUCTION_CALL_INDIRECT;
	case ZYDIS_CATEGORY_UNCOND_BR:
		if (decoded->mnemonic == ZYDIS_MNEMONIC_XABORT)
			return GT_INSTRUCTION_OTHER;
		return relative ? GT_INSTRUCTION_JMP : GT_INSTRUCTION_JMP_INDIRECT;
	case ZYDIS_CATEGORY_COND_BR:
		switch (decoded->mnemonic) {
		case ZYDIS_MNEMONIC_LOOP:
		case ZYDIS_MNEMONIC_LOOPE:
		case ZYDIS_MNEMONIC_LOOPNE:
		case ZYDIS_MNEMONIC_JCXZ:
		case ZYDIS_MNEMONIC_JECXZ:
		case ZYDIS_MNEMONIC_JRCXZ:
			return GT_INSTRUCTION_LOOP;
		case ZYDIS_MNEMONIC_XBEGIN:
			return GT_INSTRUCTION_XBEGIN;
		default:
			return relative ? GT_INSTRUCTION_JCC : GT_INSTRUCTION_OTHER;
		}
	case ZYDIS_CATEGORY_RET:
		return GT_INSTRUCTION_RET;
	default:
		break;
	}
	switch (decoded->mnemonic) {
	case ZYDIS_MNEMONIC_XBEGIN:
		return GT_INSTRUCTION_XBEGIN;
	case ZYDIS_MNEMONIC_NOP:
		return GT_INSTRUCTION_NOP;
	case ZYDIS_MNEMONIC_INT3:
		return GT_INSTRUCTION_INT3;
	case ZYDIS_MNEMONIC_ENDBR64:
		return GT_INSTRUCTION_ENDBR64;
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
		return GT_INSTRUCTION_TRAP;
	default:
		return GT_INSTRUCTION_OTHER;
	}
}

/* The memory operand of the ModRM byte. */
static void take_memory(const ZydisDecodedInstruction *decoded, struct gt_instruction *instruction)
{
	const uint8_t mod = decoded->raw.modrm.mod, rm = decoded->raw.modrm.rm;
	uint8_t extend = decoded->raw.rex.B;

	if (decoded->encoding == ZYDIS_INSTRUCTION_ENCODING_VEX)
		extend = decoded->raw.vex.B == 0; /* kept inverted, as it stands in the prefix */
	else if (decoded->encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX)
		extend = decoded->raw.evex.B == 0;
	if (!(decoded->attributes & ZYDIS_ATTRIB_HAS_MODRM) || mod == 3)
		return;
	instruction->memory = true;
	instruction->displacement = (int32_t)decoded->raw.disp.value;
	if (rm == 4) {
		instruction->indexed = decoded->raw.sib.index != 4 || decoded->raw.rex.X;
		if (mod != 0 || decoded->raw.sib.base != 5)
			instruction->base = (uint8_t)(decoded->raw.sib.base | extend << 3);
	} else if (mod == 0 && rm == 5) {
		instruction->rip_offset = decoded->raw.disp.offset;
	} else {
		instruction->base = (uint8_t)(rm | extend << 3);
	}
}

/* Whether rsp may change, or be copied to rbp: a quick look that may say yes too often. */
static bool touches_stack(const ZydisDecodedInstruction *decoded)
{
	switch (decoded->mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
	case ZYDIS_MNEMONIC_POP:
	case ZYDIS_MNEMONIC_PUSHFQ:
	case ZYDIS_MNEMONIC_POPFQ:
	case ZYDIS_MNEMONIC_LEAVE:
	case ZYDIS_MNEMONIC_ENTER:
		return true;
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_LEA:
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_AND:
	case ZYDIS_MNEMONIC_OR:
	case ZYDIS_MNEMONIC_XCHG:
	case ZYDIS_MNEMONIC_CMOVNZ:
	case ZYDIS_MNEMONIC_CMOVZ:
		break;
	default:
		return false;
	}
	return decoded->attributes & ZYDIS_ATTRIB_HAS_MODRM
		       ? decoded->raw.modrm.reg == 4 ||
				 (decoded->raw.modrm.rm == 4 && decoded->raw.modrm.mod == 3)
		       : decoded->mnemonic == ZYDIS_MNEMONIC_XCHG;
}

bool gt_instruction_decode_any(const uint8_t *code, size_t room, uint64_t address,
			       struct gt_instruction *instruction)
{
	ZydisDecodedInstruction decoded;
	const struct ZydisDecodedInstructionRawImm_ *immediate;

	if (ZYAN_FAILED(ZydisDecoderDecodeInstruction(decoder(), NULL, code, room, &decoded)))
		return false;
	memset(instruction, 0, sizeof(*instruction));
	instruction->bytes = decoded.length;
	instruction->kind = (uint8_t)kind_of(&decoded);
	instruction->is_lea = decoded.mnemonic == ZYDIS_MNEMONIC_LEA;
	instruction->stack = touches_stack(&decoded);
	instruction->base = 0xff;
	take_memory(&decoded, instruction);
	instruction->reg = (uint8_t)(decoded.raw.modrm.reg | decoded.raw.rex.R << 3);
	if (instruction->rip_offset)
		instruction->rip_target =
			address + decoded.length + (uint64_t)decoded.raw.disp.value;
	immediate = &decoded.raw.imm[0];
	if (instruction->kind == GT_INSTRUCTION_RET) {
		const bool near_return = decoded.opcode == 0xc2 || decoded.opcode == 0xc3;

		instruction->takes =
			near_return ? (uint16_t)immediate->value.u : GT_INSTRUCTION_FAR;
	}
	if (immediate->is_relative) {
		instruction->target_offset = immediate->offset;
		instruction->target_bytes = immediate->size / 8;
		instruction->target = address + decoded.length + (uint64_t)immediate->value.s;
	} else if (immediate->size >= 32) {
		instruction->immediate_offset = immediate->offset;
		instruction->immediate_bytes = immediate->size / 8;
	}
	return true;
}

bool gt_instruction_decode(const uint8_t *code, size_t room, uint64_t address,
			   struct gt_instruction *instruction)
{
	return gt_instruction_decode_common(code, room, address, instruction) ||
	       gt_instruction_decode_any(code, room, address, instruction);
}

static bool is_register(const ZydisDecodedOperand *operand, ZydisRegister which)
{
	return operand->type == ZYDIS_OPERAND_TYPE_REGISTER && operand->reg.value == which;
}

static uint8_t number_of(ZydisRegister which)
{
	const ZyanI8 number = ZydisRegisterGetId(which);

	return number < 0 ? 0xff : (uint8_t)number;
}

void gt_instruction_stack_any(const uint8_t *code, size_t room, struct gt_stack_effect *effect)
{
	ZydisDecodedInstruction decoded;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	const ZydisDecodedOperand *to = &operands[0], *from = &operands[1];
	const ZydisRegister stack = ZYDIS_REGISTER_RSP;

	memset(effect, 0, sizeof(*effect));
	effect->loaded_from = 0xff;
	effect->saved_to = 0xff;
	if (ZYAN_FAILED(ZydisDecoderDecodeFull(decoder(), code, room, &decoded, operands))) {
		effect->unknown = true;
		return;
	}
	switch (decoded.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
	case ZYDIS_MNEMONIC_PUSHFQ:
		effect->delta = -(int32_t)(decoded.operand_width / 8);
		return;
	case ZYDIS_MNEMONIC_POP:
	case ZYDIS_MNEMONIC_POPFQ:
		effect->delta = decoded.operand_width / 8;
		effect->unknown = is_register(to, stack);
		effect->loads_stack = effect->unknown;
		return;
	case ZYDIS_MNEMONIC_LEAVE:
		effect->from_frame = true;
		effect->delta = 8;
		return;
	case ZYDIS_MNEMONIC_ENTER:
		effect->unknown = true;
		return;
	case ZYDIS_MNEMONIC_CALL:
	case ZYDIS_MNEMONIC_RET:
	case ZYDIS_MNEMONIC_SYSCALL:
		return;
	default:
		break;
	}
	if (decoded.operand_count_visible >= 2 && is_register(to, stack)) {
		if (decoded.mnemonic == ZYDIS_MNEMONIC_CMP ||
		    decoded.mnemonic == ZYDIS_MNEMONIC_TEST)
			return;
		if ((decoded.mnemonic == ZYDIS_MNEMONIC_SUB ||
		     decoded.mnemonic == ZYDIS_MNEMONIC_ADD) &&
		    from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
			const int32_t value = (int32_t)from->imm.value.s;

			effect->delta = decoded.mnemonic == ZYDIS_MNEMONIC_SUB ? -value : value;
			return;
		}
		if (decoded.mnemonic == ZYDIS_MNEMONIC_LEA &&
		    from->mem.index == ZYDIS_REGISTER_NONE) {
			effect->delta = (int32_t)from->mem.disp.value;
			if (from->mem.base == stack)
				return;
			effect->from_frame = from->mem.base == ZYDIS_REGISTER_RBP;
			effect->unknown = !effect->from_frame;
			return;
		}
		if (decoded.mnemonic == ZYDIS_MNEMONIC_MOV &&
		    is_register(from, ZYDIS_REGISTER_RBP)) {
			effect->from_frame = true;
			return;
		}
		effect->unknown = true;
		if (decoded.mnemonic != ZYDIS_MNEMONIC_MOV &&
		    decoded.mnemonic != ZYDIS_MNEMONIC_XCHG)
			return;
		effect->loads_stack = true;
		if (from->type == ZYDIS_OPERAND_TYPE_REGISTER)
			effect->loaded_from = number_of(from->reg.value);
		else
			effect->loads_stack =
				from->mem.base != ZYDIS_REGISTER_RBP && from->mem.base != stack;
		return;
	}
	if (decoded.mnemonic == ZYDIS_MNEMONIC_XCHG && is_register(from, stack)) {
		effect->unknown = true;
		effect->loads_stack = true;
		return;
	}
	if ((decoded.mnemonic == ZYDIS_MNEMONIC_MOV && is_register(from, stack)) ||
	    (decoded.mnemonic == ZYDIS_MNEMONIC_LEA && from->mem.base == stack)) {
		if (to->type == ZYDIS_OPERAND_TYPE_REGISTER)
			effect->saved_to = number_of(to->reg.value);
		effect->sets_frame = decoded.mnemonic == ZYDIS_MNEMONIC_MOV &&
				     is_register(to, ZYDIS_REGISTER_RBP);
		return;
	}
	/* Whatever else writes rsp. */
	for (uint8_t i = 0; i < decoded.operand_count; i++)
		if (is_register(&operands[i], stack) &&
		    operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			effect->unknown = true;
}

void gt_instruction_stack(const uint8_t *code, size_t room, struct gt_stack_effect *effect)
{
	if (!gt_instruction_stack_common(code, room, effect))
		gt_instruction_stack_any(code, room, effect);
}
