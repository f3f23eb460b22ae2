/* SPDX-License-Identifier: MIT */
/*
 * The stop words of a session's writers, which the host writes into the memory of their processes.
 */
#include "attach/session/session_private.h"

uint64_t gt_stop_words_block(const struct gt_session_arena *arena, uint32_t stream, uint64_t block,
			     uint32_t generation, const struct gt_process *process,
			     const struct gt_agent *agent)
{
	uint64_t state = agent->image + agent->header.state_offset;
	uint64_t index = block - 1, chunk, own, address;
	uint32_t its;

	if (index >= GRAFTRACE_BLOCKS * GRAFTRACE_BLOCK_CHUNKS ||
	    gt_process_read(process,
			    state + offsetof(struct graftrace_agent_state, blocks) +
				    index / GRAFTRACE_BLOCKS * sizeof(chunk),
			    &chunk, sizeof(chunk)) ||
	    !chunk)
		return 0;
	address = chunk + index % GRAFTRACE_BLOCKS * GRAFTRACE_BLOCK_BYTES;
	if (gt_process_read(process, address + GRAFTRACE_BLOCK_STREAM, &own, sizeof(own)) ||
	    gt_process_read(process, address + GRAFTRACE_BLOCK_GENERATION, &its, sizeof(its)) ||
	    own != agent->arena + arena->shared.streams_offset +
			    stream * sizeof(struct graftrace_stream) ||
	    its != generation)
		return 0;
	return address;
}

/* Writes a byte of the writer's stop word. False: it cannot be. */
static bool write_byte(struct gt_session *session, const struct gt_session_arena *arena,
		       struct gt_live_writer *writer, enum graftrace_stop_byte byte, uint8_t value)
{
	struct gt_tracee *tracee = gt_follow_find(session, (pid_t)writer->writer.pid);

	if (writer->ended || tracee == NULL || !tracee->has_agent ||
	    tracee->arena != arena->shared.number)
		return false;
	if (!writer->block)
		writer->block = __atomic_load_n(
			&gt_arena_stream(&arena->shared, writer->stream)->block, __ATOMIC_ACQUIRE);
	if (!writer->noted)
		writer->noted = gt_stop_words_block(arena, writer->stream, writer->block,
						    writer->writer.generation, &tracee->process,
						    &tracee->agent);
	return writer->noted &&
	       gt_process_write(&tracee->process, writer->noted + GRAFTRACE_BLOCK_STOP + byte,
				&value, 1) == 0;
}

static int clear_full(struct gt_session *session, struct gt_session_arena *arena)
{
	struct gt_drain *drain = &arena->drain;
	int done = 0;

	if (!__atomic_load_n(&arena->shared.memory->free_count, __ATOMIC_ACQUIRE))
		return 0;
	for (uint32_t i = 0; i < drain->live_count; i++) {
		struct gt_live_writer *writer = &drain->writers[drain->live[i]];
		struct graftrace_stream *stream = gt_arena_stream(&arena->shared, writer->stream);

		if (!__atomic_load_n(&stream->stopped_full, __ATOMIC_ACQUIRE))
			continue;
		/* The flag, then the byte: one that stops between the two is seen the next time. */
		__atomic_store_n(&stream->stopped_full, 0, __ATOMIC_SEQ_CST);
		done += write_byte(session, arena, writer, GRAFTRACE_STOP_BYTE_FULL, 0);
	}
	return done;
}

/* Writers that stopped for lack of room go on. */
int gt_stop_words_clear_full(struct gt_session *session)
{
	int done = 0;

	for (uint32_t i = 0; i < session->arena_count; i++)
		done += clear_full(session, &session->arenas[i]);
	return done;
}

void gt_stop_words_write(struct gt_session *session, enum graftrace_stop_byte byte, uint8_t value)
{
	gt_session_find_writers(session);
	for (uint32_t k = 0; k < session->arena_count; k++) {
		struct gt_drain *drain = &session->arenas[k].drain;

		for (uint32_t i = 0; i < drain->live_count; i++)
			write_byte(session, &session->arenas[k], &drain->writers[drain->live[i]],
				   byte, value);
	}
}

static void write_host(struct gt_session *session, struct gt_session_arena *arena)
{
	const struct graftrace_arena *memory = arena->shared.memory;
	bool off = !__atomic_load_n(&memory->tracing_on, __ATOMIC_RELAXED) &&
		   !__atomic_load_n(&memory->profile, __ATOMIC_RELAXED);
	struct gt_drain *drain = &arena->drain;

	for (uint32_t i = 0; i < drain->live_count; i++) {
		struct gt_live_writer *writer = &drain->writers[drain->live[i]];
		uint8_t value = off ? GRAFTRACE_STOP_OFF : 0;

		if (gt_session_leaves_out(arena, writer->writer.tid))
			value |= GRAFTRACE_STOP_LEFT_OUT;
		write_byte(session, arena, writer, GRAFTRACE_STOP_BYTE_HOST, value);
	}
}

void gt_stop_words_write_host(struct gt_session *session)
{
	gt_session_find_writers(session);
	for (uint32_t i = 0; i < session->arena_count; i++)
		write_host(session, &session->arenas[i]);
}
