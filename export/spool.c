/* SPDX-License-Identifier: MIT */
/*
 * Pieces in a temporary file: see spool.h. Each piece in the file has the offset of the lane's
 * piece before it; copying reverses the chain first.
 */
#define _GNU_SOURCE
#include "export/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOWHERE UINT64_MAX

struct piece {
	uint64_t before; /* offset of the lane's piece before this one; NOWHERE: none */
	uint32_t used;
	char bytes[GT_SPOOL_PIECE - 16];
};

struct gt_spool_lane {
	struct piece *piece; /* the one being filled; NULL: none yet */
	uint32_t pieces;     /* number of pieces in the file */
};

void gt_spool_init(struct gt_spool *spool)
{
	*spool = (struct gt_spool){ .fd = -1 };
}

static int fail(struct gt_spool *spool, int error)
{
	spool->error = error;
	return GT_EIO;
}

static int open_file(struct gt_spool *spool)
{
	const char *directory = getenv("TMPDIR");
	FILE *file;

	if (spool->fd >= 0)
		return 0;
	spool->fd = open(directory != NULL && *directory ? directory : "/tmp",
			 O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
	if (spool->fd >= 0)
		return 0;
	file = tmpfile(); /* for a file system without O_TMPFILE */
	if (file == NULL)
		return fail(spool, errno);
	spool->fd = fcntl(fileno(file), F_DUPFD_CLOEXEC, 3);
	fclose(file);
	return spool->fd >= 0 ? 0 : fail(spool, errno);
}

static int put_away(struct gt_spool *spool, struct gt_spool_lane *lane)
{
	uint64_t place = spool->file_bytes;
	size_t done = 0;
	int error = open_file(spool);

	if (error != 0)
		return error;
	while (done < sizeof(*lane->piece)) {
		ssize_t wrote = pwrite(spool->fd, (char *)lane->piece + done,
				       sizeof(*lane->piece) - done, (off_t)(place + done));

		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote <= 0)
			return fail(spool, wrote < 0 ? errno : EIO);
		done += (size_t)wrote;
	}
	spool->file_bytes += sizeof(*lane->piece);
	lane->piece->before = place;
	lane->piece->used = 0;
	lane->pieces++;
	return 0;
}

static struct gt_spool_lane *lane_of(struct gt_spool *spool, uint32_t number)
{
	if (number >= spool->count) {
		uint32_t count = number + 1 > spool->count * 2 ? number + 1 : spool->count * 2;
		struct gt_spool_lane *lanes = realloc(spool->lanes, count * sizeof(*lanes));

		if (lanes == NULL)
			return NULL;
		memset(lanes + spool->count, 0, (count - spool->count) * sizeof(*lanes));
		spool->lanes = lanes;
		spool->count = count;
	}
	struct gt_spool_lane *lane = &spool->lanes[number];
	if (lane->piece == NULL) {
		lane->piece = malloc(sizeof(*lane->piece));
		if (lane->piece == NULL)
			return NULL;
		lane->piece->before = NOWHERE;
		lane->piece->used = 0;
	}
	return lane;
}

int gt_spool_add(struct gt_spool *spool, uint32_t number, const void *bytes, size_t count)
{
	struct gt_spool_lane *lane = lane_of(spool, number);
	const char *from = bytes;

	if (lane == NULL)
		return GT_ENOMEM;
	while (count > 0) {
		size_t room = sizeof(lane->piece->bytes) - lane->piece->used;
		size_t part = count < room ? count : room;

		memcpy(lane->piece->bytes + lane->piece->used, from, part);
		lane->piece->used += (uint32_t)part;
		from += part;
		count -= part;
		if (lane->piece->used == sizeof(lane->piece->bytes)) {
			int error = put_away(spool, lane);

			if (error != 0)
				return error;
		}
	}
	return 0;
}

static int read_piece(struct gt_spool *spool, uint64_t place, struct piece *piece)
{
	ssize_t count = pread(spool->fd, piece, sizeof(*piece), (off_t)place);

	return count == (ssize_t)sizeof(*piece) ? 0 : fail(spool, count < 0 ? errno : EIO);
}

int gt_spool_copy(struct gt_spool *spool, uint32_t number, struct gt_out *out)
{
	struct gt_spool_lane *lane = number < spool->count ? &spool->lanes[number] : NULL;
	struct piece piece;
	uint64_t *places, place;
	int error = 0;

	if (lane == NULL || lane->piece == NULL)
		return 0;
	places = malloc((lane->pieces + 1u) * sizeof(*places));
	if (places == NULL)
		return GT_ENOMEM;
	place = lane->piece->before;
	for (uint32_t i = lane->pieces; i > 0 && error == 0; i--) {
		places[i - 1] = place;
		if (i > 1) {
			error = read_piece(spool, place, &piece);
			place = piece.before;
		}
	}
	for (uint32_t i = 0; i < lane->pieces && error == 0; i++) {
		error = read_piece(spool, places[i], &piece);
		if (error == 0)
			gt_out_bytes(out, piece.bytes, piece.used);
	}
	free(places);
	if (error == 0)
		gt_out_bytes(out, lane->piece->bytes, lane->piece->used);
	return error == 0 && out->error ? GT_EIO : error;
}

void gt_spool_fini(struct gt_spool *spool)
{
	for (uint32_t i = 0; i < spool->count; i++)
		free(spool->lanes[i].piece);
	free(spool->lanes);
	if (spool->fd >= 0)
		close(spool->fd);
	gt_spool_init(spool);
}
