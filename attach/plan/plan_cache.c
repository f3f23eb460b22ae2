/* SPDX-License-Identifier: MIT */
/*
 * Plans on disk: one file an object, below a directory of the user's cache. A plan is found by what
 * it was made of: every loaded byte of the object, its list of functions and their names, its build
 * ID and path, the hooks, and the build of this program that made it. So a plan is never stale; it
 * is only not found any more, and goes when the directory gets too large.
 *
 * The content is not believed: a file that another user could have written is not opened, its
 * checksum must be right, every field is checked, and the bytes that patches replace come from the
 * object itself. A file that cannot be used counts as missing, and is written anew.
 */
#define _GNU_SOURCE /* dl_iterate_phdr, O_PATH */
#include "attach/plan/plan_cache.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CACHE_MAX      (96ull << 20) /* bytes of all plans; the oldest go first */
#define FILE_MAX       (64ull << 20)
#define WORTH_BYTES    (64u << 10) /* of code: what is smaller is planned in no time */
#define NAME_ENDING    ".plan"
#define SCRATCH_ENDING ".new"

/* ---- Keys and checksums ---- */

struct sum {
	uint64_t lane[4];
};

static void sum_begin(struct sum *sum)
{
	static const uint64_t start[4] = { 0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9,
					   0x94d049bb133111eb, 0xd6e8feb86659fd93 };

	memcpy(sum->lane, start, sizeof(start));
}

static uint64_t mix(uint64_t lane, uint64_t word)
{
	lane = (lane ^ word) * 0xff51afd7ed558ccdull;
	return lane ^ lane >> 29;
}

static void sum_bytes(struct sum *sum, const void *data, size_t bytes)
{
	const uint8_t *at = data;
	uint64_t words[4];

	for (; bytes >= sizeof(words); bytes -= sizeof(words), at += sizeof(words)) {
		memcpy(words, at, sizeof(words));
		for (int i = 0; i < 4; i++)
			sum->lane[i] = mix(sum->lane[i], words[i]);
	}
	memset(words, 0, sizeof(words));
	memcpy(words, at, bytes);
	words[3] ^= (uint64_t)bytes << 56;
	for (int i = 0; i < 4; i++)
		sum->lane[i] = mix(sum->lane[i], words[i] + (uint64_t)i);
}

static void sum_end(const struct sum *sum, uint64_t key[2])
{
	key[0] = mix(mix(sum->lane[0], sum->lane[2]), sum->lane[1]);
	key[1] = mix(mix(sum->lane[1], sum->lane[3]), sum->lane[0]);
}

/* The build ID of the program that we are in: another planner makes other plans. */
static int each_own_object(struct dl_phdr_info *info, size_t size, void *data)
{
	const uint64_t here = (uint64_t)(uintptr_t)each_own_object;
	bool mine = false;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD &&
		    here - info->dlpi_addr - info->dlpi_phdr[i].p_vaddr <
			    info->dlpi_phdr[i].p_memsz)
			mine = true;
	for (int i = 0; mine && i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_NOTE)
			sum_bytes(data,
				  (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
				  info->dlpi_phdr[i].p_memsz);
	return mine;
}

/* false: the object's bytes cannot be read. */
static bool make_key(struct gt_plan *plan, uint64_t key[2])
{
	struct gt_object *object = plan->object;
	const uint32_t count = gt_object_function_count(object);
	const uint8_t *build_id;
	const uint32_t id_bytes = gt_object_build_id(object, &build_id);
	const char *path = gt_object_path(object);
	struct sum sum;

	sum_begin(&sum);
	dl_iterate_phdr(each_own_object, &sum);
	sum_bytes(&sum, path, strlen(path));
	sum_bytes(&sum, build_id, id_bytes);
	for (uint32_t i = 0; i < gt_object_segment_count(object); i++) {
		const struct gt_object_segment *segment = gt_object_segment(object, i);
		const uint8_t *bytes =
			gt_object_bytes(object, segment->address, segment->file_bytes);

		if (bytes == NULL && segment->file_bytes)
			return false;
		sum_bytes(&sum, segment, sizeof(segment->address));
		sum_bytes(&sum, bytes != NULL ? bytes : (const uint8_t *)"", segment->file_bytes);
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct gt_object_function *function = gt_object_function(object, i);
		const uint64_t words[2] = { function->address,
					    (uint64_t)function->bytes << 32 | function->flags };

		sum_bytes(&sum, words, sizeof(words));
		sum_bytes(&sum, function->name, strlen(function->name));
	}
	for (uint32_t i = 0; i < plan->hooked_count; i++)
		sum_bytes(&sum, &plan->hooked[i].address, sizeof(plan->hooked[i].address));
	sum_end(&sum, key);
	return true;
}

uint64_t gt_plan_cache_checksum(const void *data, size_t bytes)
{
	struct sum sum;
	uint64_t key[2];

	sum_begin(&sum);
	sum_bytes(&sum, data, bytes);
	sum_end(&sum, key);
	return key[0] ^ key[1];
}

/* ---- Places ---- */

/* A directory of another user is no place: sudo may keep his HOME, and what root makes there he
 * could not use, or could lead elsewhere. One that is not there yet may be made. */
static bool is_foreign(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && status.st_uid != geteuid();
}

int gt_plan_cache_directory(char *path, size_t size)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int bytes;

	/* The specification of base directories: a relative one is none. */
	if (cache != NULL && *cache == '/' && !is_foreign(cache))
		bytes = snprintf(path, size, "%s/graftrace/plans", cache);
	else if (!(cache != NULL && *cache == '/') && home != NULL && *home == '/' &&
		 !is_foreign(home))
		bytes = snprintf(path, size, "%s/.cache/graftrace/plans", home);
	else
		return GT_ENOENT;
	return bytes < 0 || (size_t)bytes >= size ? GT_ENOENT : 0;
}

/* Makes `name` if it is missing, in a directory of this user's or in one where nobody can take away
 * what is another's (/tmp). */
static bool make_below(int above, const char *name)
{
	struct stat status;

	return fstat(above, &status) == 0 &&
	       (status.st_uid == geteuid() || status.st_mode & S_ISVTX) &&
	       mkdirat(above, name, 0700) == 0;
}

/* The directory `name` below `above`, which is closed; made if it is missing. The last one of a
 * path is this user's alone, and no link; on the way there are no links of other users'. An fd, or
 * -1. */
static int enter(int above, const char *name, bool last)
{
	struct stat status;
	int fd = -1;

	if (fstatat(above, name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
		if (errno != ENOENT || (!make_below(above, name) && errno != EEXIST))
			goto out;
		last = true; /* what was just made is no link */
	} else if (S_ISLNK(status.st_mode) && status.st_uid != 0 && status.st_uid != geteuid()) {
		goto out;
	}
	fd = openat(above, name, O_DIRECTORY | O_CLOEXEC | (last ? O_RDONLY | O_NOFOLLOW : O_PATH));
	if (fd >= 0 && last &&
	    (fstat(fd, &status) != 0 || status.st_uid != geteuid() || status.st_mode & 022)) {
		close(fd);
		fd = -1;
	}
out:
	close(above);
	return fd;
}

/* Makes the directory and those above it. An fd, or -1. */
static int open_directory(const char *path)
{
	char part[4096];
	char *name, *rest;
	int fd = open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (strlen(path) >= sizeof(part)) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	strcpy(part, path);
	for (name = strtok_r(part, "/", &rest); name != NULL && fd >= 0;) {
		char *next = strtok_r(NULL, "/", &rest);

		fd = enter(fd, name, next == NULL);
		name = next;
	}
	return fd;
}

static void file_name(const uint64_t key[2], const char *ending, char name[64])
{
	snprintf(name, 64, "%016llx%016llx%s", (unsigned long long)key[0],
		 (unsigned long long)key[1], ending);
}

/* ---- Reading ---- */

/* What is left of a file's content. */
struct content {
	const uint8_t *at;
	size_t left;
};

static const void *take(struct content *content, size_t bytes)
{
	const uint8_t *at = content->at;

	if (bytes > content->left)
		return NULL;
	content->at += bytes;
	content->left -= bytes;
	return at;
}

static const uint8_t *code_at(struct gt_plan *plan, uint64_t address, uint64_t bytes)
{
	uint64_t room;
	const uint8_t *code = gt_scan_code(plan->scan, address, &room);

	return code != NULL && room >= bytes ? code : NULL;
}

static bool take_extra(struct gt_plan *plan, struct content *content,
		       const struct gt_plan_entry *entry)
{
	struct gt_plan_extra *extra = &plan->extras[plan->extra_count];
	const uint8_t *code;
	struct gt_cache_extra from;
	const void *raw = take(content, sizeof(from));
	uint32_t bytes;
	bool block;

	if (raw == NULL)
		return false;
	memcpy(&from, raw, sizeof(from));
	block = from.kind == GT_EXTRA_BLOCK;
	bytes = block ? from.covered : from.bytes;
	code = code_at(plan, from.address, bytes);
	if (code == NULL || from.kind > GT_EXTRA_BLOCK || bytes > GT_PLAN_ORIGINAL_MAX ||
	    (block ? from.covered < 10 : from.covered || from.bytes < 2 || from.bytes > 8) ||
	    ((from.kind == GT_EXTRA_JUMP || from.kind == GT_EXTRA_STUB || block) &&
	     from.bytes != 5) ||
	    (from.kind == GT_EXTRA_BRANCH && from.bytes < 5) ||
	    (from.target && from.target >= entry->moved_bytes_max))
		return false;
	memset(extra, 0, sizeof(*extra));
	extra->address = from.address;
	extra->kind = from.kind;
	extra->bytes = from.bytes;
	extra->covered = from.covered;
	extra->target = from.target;
	memcpy(extra->replacement, from.replacement, sizeof(extra->replacement));
	memcpy(extra->original, code, bytes);
	plan->extra_count++;
	return true;
}

static bool take_entry(struct gt_plan *plan, uint32_t index, const struct gt_cache_entry *from,
		       struct content *extras, struct gt_plan_entry *entry)
{
	const struct gt_object_function *function = gt_object_function(plan->object, index);
	uint8_t moved[GT_PLAN_MOVED_MAX], jump[8];
	const uint8_t *code;

	memset(entry, 0, sizeof(*entry));
	if (from->way > GT_PLAN_SHORT || from->prepared > GT_PREPARED_CYG || from->entry_only > 1 ||
	    from->reason >= GT_REASON_COUNT || from->behind > GT_ENDBR64_BYTES ||
	    from->covered_bytes > GT_PLAN_ORIGINAL_MAX || from->neutral > from->covered_bytes ||
	    (from->way == GT_PLAN_NONE && (from->extra_count || from->moved_bytes)))
		return false;
	entry->function = index;
	entry->way = from->way;
	entry->prepared = from->prepared;
	entry->entry_only = from->entry_only;
	entry->patch_bytes = from->patch_bytes;
	entry->covered_bytes = from->covered_bytes;
	entry->moved_bytes_max = from->moved_bytes;
	entry->neutral = from->neutral;
	entry->extra_first = plan->extra_count;
	entry->address = function->address;
	entry->patch_address = function->address + from->behind;
	entry->body = from->body ? entry->patch_address + from->body : 0;
	entry->reason = from->reason;
	for (uint32_t i = 0; i < from->extra_count; i++) {
		if (!take_extra(plan, extras, entry))
			return false;
		entry->extra_count++;
	}
	if (entry->way == GT_PLAN_NONE)
		return true;
	code = code_at(plan, entry->patch_address, entry->covered_bytes);
	if (code == NULL || entry->patch_bytes != (entry->way == GT_PLAN_SHORT ? 2 : 5) ||
	    entry->covered_bytes < entry->patch_bytes)
		return false;
	memcpy(entry->original, code, entry->covered_bytes);
	if (gt_plan_jump(plan, entry, 0, entry->patch_address + 4096, jump))
		return false;
	if (entry->way == GT_PLAN_NOPS || entry->way == GT_PLAN_FENTRY)
		return !entry->moved_bytes_max && code_at(plan, entry->body, 1) != NULL &&
		       entry->body - entry->patch_address <= 256;
	/* Whoever makes room for the moved code relies on its length. */
	return !entry->body && gt_plan_move(plan, entry, 0, entry->patch_address + 4096, moved,
					    sizeof(moved), NULL) == entry->moved_bytes_max;
}

bool gt_plan_cache_take(struct gt_plan *plan, const uint8_t *bytes, size_t size,
			const uint64_t key[2])
{
	const uint32_t count = gt_object_function_count(plan->object);
	const uint32_t old_extras = plan->extra_count, old_entries = plan->entry_count;
	struct content content = { bytes, size }, extras;
	struct gt_cache_header header;
	const uint8_t *entries;

	if (size < sizeof(header))
		return false;
	memcpy(&header, take(&content, sizeof(header)), sizeof(header));
	if (memcmp(header.magic, GT_CACHE_MAGIC, sizeof(GT_CACHE_MAGIC)) != 0 ||
	    header.version != GT_CACHE_VERSION ||
	    memcmp(header.key, key, sizeof(header.key)) != 0 || header.functions != count ||
	    header.checksum != gt_plan_cache_checksum(content.at, content.left))
		return false;
	entries = take(&content, (size_t)count * sizeof(struct gt_cache_entry));
	extras = content;
	if (entries == NULL ||
	    take(&content, (size_t)header.extras * sizeof(struct gt_cache_extra)) == NULL)
		return false;
	extras.left -= content.left;
	if (content.left)
		goto none;
	if (!gt_plan_reserve(plan, count, header.extras))
		goto none;
	for (uint32_t i = 0; i < count; i++) {
		struct gt_cache_entry from;
		struct gt_plan_entry entry;

		memcpy(&from, entries + (size_t)i * sizeof(from), sizeof(from));
		if (!take_entry(plan, i, &from, &extras, &entry))
			goto none;
		/* What was planned before stays as it was told. */
		if (plan->planned[i] == GT_PLAN_NO_ENTRY)
			gt_plan_keep(plan, &entry, NULL);
	}
	if (extras.left)
		goto none;
	return true;

none:
	for (uint32_t i = old_entries; i < plan->entry_count; i++)
		plan->planned[plan->entries[i].function] = GT_PLAN_NO_ENTRY;
	plan->entry_count = old_entries;
	plan->extra_count = old_extras;
	return false;
}

static uint8_t *read_whole(int fd, size_t bytes)
{
	uint8_t *content = malloc(bytes + 1);
	size_t done = 0;

	while (content != NULL && done < bytes) {
		const ssize_t got = pread(fd, content + done, bytes - done, (off_t)done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			free(content);
			return NULL;
		}
		done += (size_t)got;
	}
	return content;
}

bool gt_plan_cache_load(struct gt_plan *plan)
{
	struct stat status;
	uint8_t *content = NULL;
	bool found = false;
	char name[64];
	int fd;

	if (plan->cache == NULL)
		return false;
	/* What is planned before the rest is known by its index only: all or nothing again. */
	if (gt_scan_code_bytes(plan->scan) < WORTH_BYTES || !make_key(plan, plan->cache_key)) {
		free(plan->cache);
		plan->cache = NULL;
		return false;
	}
	plan->cache_fd = open_directory(plan->cache);
	if (plan->cache_fd < 0)
		return false;
	file_name(plan->cache_key, NAME_ENDING, name);
	fd = openat(plan->cache_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return false;
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
	    !(status.st_mode & 022) && status.st_size > 0 && (uint64_t)status.st_size <= FILE_MAX)
		content = read_whole(fd, (size_t)status.st_size);
	found = content != NULL &&
		gt_plan_cache_take(plan, content, (size_t)status.st_size, plan->cache_key);
	free(content);
	if (found)
		futimens(fd, NULL); /* used: the oldest go first */
	close(fd);
	return found;
}

/* ---- Writing ---- */

struct aged {
	char name[64];
	uint64_t bytes;
	int64_t changed; /* ns */
};

static int by_age(const void *left, const void *right)
{
	const struct aged *a = left, *b = right;

	return a->changed < b->changed ? -1 : a->changed > b->changed;
}

static bool has_ending(const char *name, const char *ending)
{
	const size_t bytes = strlen(name), more = strlen(ending);

	return bytes == 32 + more && strcmp(name + 32, ending) == 0 &&
	       strspn(name, "0123456789abcdef") == 32;
}

/* Takes the oldest plans away until there is room; and what a killed writer has left behind. */
static void make_room(int directory)
{
	struct aged *list = NULL;
	size_t count = 0, room = 0;
	uint64_t total = 0;
	const int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	struct stat status;

	if (fd >= 0 && stream == NULL)
		close(fd);
	while (stream != NULL && (entry = readdir(stream)) != NULL) {
		const bool scratch = has_ending(entry->d_name, SCRATCH_ENDING);

		if ((!scratch && !has_ending(entry->d_name, NAME_ENDING)) ||
		    fstatat(directory, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !S_ISREG(status.st_mode))
			continue;
		if (scratch) {
			if (time(NULL) - status.st_mtime > 600)
				unlinkat(directory, entry->d_name, 0);
			continue;
		}
		if (count == room) {
			struct aged *grown = realloc(list, (room + 256) * sizeof(*list));

			if (grown == NULL)
				break;
			list = grown;
			room += 256;
		}
		snprintf(list[count].name, sizeof(list[count].name), "%.63s", entry->d_name);
		list[count].bytes = (uint64_t)status.st_blocks * 512;
		list[count].changed =
			(int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec;
		total += list[count++].bytes;
	}
	if (stream != NULL)
		closedir(stream);
	if (total > CACHE_MAX) {
		qsort(list, count, sizeof(*list), by_age);
		for (size_t i = 0; i < count && total > CACHE_MAX / 4 * 3; i++)
			if (unlinkat(directory, list[i].name, 0) == 0)
				total -= list[i].bytes;
	}
	free(list);
}

struct output {
	uint8_t *bytes;
	size_t used;
};

static void put(struct output *output, const void *data, size_t bytes)
{
	memcpy(output->bytes + output->used, data, bytes);
	output->used += bytes;
}

static void put_plan(const struct gt_plan *plan, struct output *output,
		     struct gt_cache_header *header)
{
	const uint32_t count = gt_object_function_count(plan->object);

	for (uint32_t i = 0; i < count; i++) {
		const struct gt_plan_entry *entry = &plan->entries[plan->planned[i]];
		struct gt_cache_entry to = {
			.body = entry->body ? (uint32_t)(entry->body - entry->patch_address) : 0,
			.way = entry->way,
			.prepared = entry->prepared,
			.entry_only = entry->entry_only,
			.behind = (uint8_t)(entry->patch_address - entry->address),
			.patch_bytes = entry->patch_bytes,
			.covered_bytes = entry->covered_bytes,
			.moved_bytes = entry->moved_bytes_max,
			.extra_count = entry->extra_count,
			.neutral = entry->neutral,
			.reason = entry->reason,
		};

		if (entry->way == GT_PLAN_NONE)
			to.patch_bytes = to.covered_bytes = to.moved_bytes = to.neutral = 0;
		put(output, &to, sizeof(to));
		header->extras += entry->extra_count;
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct gt_plan_entry *entry = &plan->entries[plan->planned[i]];

		for (uint32_t k = 0; k < entry->extra_count; k++) {
			const struct gt_plan_extra *extra = gt_plan_extra(plan, entry, k);
			struct gt_cache_extra to = { .address = extra->address,
						     .kind = extra->kind,
						     .bytes = extra->bytes,
						     .covered = extra->covered,
						     .target = extra->target };

			memcpy(to.replacement, extra->replacement, sizeof(to.replacement));
			put(output, &to, sizeof(to));
		}
	}
}

static bool write_whole(int fd, const uint8_t *bytes, size_t size)
{
	while (size) {
		const ssize_t put = write(fd, bytes, size);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return false;
		bytes += put;
		size -= (size_t)put;
	}
	return true;
}

/* Under another name first: whoever reads finds the whole file, or none. */
static void write_file(const struct gt_plan *plan, const uint8_t *bytes, size_t size)
{
	const uint64_t scratch_key[2] = { plan->cache_key[0] ^ (uint64_t)getpid(),
					  plan->cache_key[1] };
	char name[64], scratch[64];
	int fd;

	file_name(plan->cache_key, NAME_ENDING, name);
	file_name(scratch_key, SCRATCH_ENDING, scratch);
	fd = openat(plan->cache_fd, scratch, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
		    0600);
	if (fd < 0)
		return;
	if (!write_whole(fd, bytes, size) ||
	    renameat(plan->cache_fd, scratch, plan->cache_fd, name))
		unlinkat(plan->cache_fd, scratch, 0);
	close(fd);
}

void gt_plan_cache_store(struct gt_plan *plan)
{
	const uint32_t count = gt_object_function_count(plan->object);
	struct gt_cache_header header = { .version = GT_CACHE_VERSION, .functions = count };
	struct output output = { 0 };
	size_t room = sizeof(header) + (size_t)count * sizeof(struct gt_cache_entry) +
		      (size_t)plan->extra_count * sizeof(struct gt_cache_extra);

	if (plan->cache == NULL || plan->cache_fd < 0 || room > FILE_MAX)
		return;
	output.bytes = malloc(room);
	if (output.bytes == NULL)
		return;
	output.used = sizeof(header);
	memcpy(header.magic, GT_CACHE_MAGIC, sizeof(GT_CACHE_MAGIC));
	memcpy(header.key, plan->cache_key, sizeof(header.key));
	put_plan(plan, &output, &header);
	header.checksum =
		gt_plan_cache_checksum(output.bytes + sizeof(header), output.used - sizeof(header));
	memcpy(output.bytes, &header, sizeof(header));
	write_file(plan, output.bytes, output.used);
	make_room(plan->cache_fd);
	free(output.bytes);
}
