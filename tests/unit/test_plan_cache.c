/* SPDX-License-Identifier: MIT */
/*
 * Plans on disk: what comes back is what was made; what is broken, of another object, or could be
 * somebody else's, is not believed; the directory does not grow without limit.
 */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach/plan/plan_cache.h"

static char directory[256], libc[4096];
static struct gt_object *object;

static int each_loaded(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	(void)data;
	if (strstr(info->dlpi_name, "/libc.so"))
		snprintf(libc, sizeof(libc), "%s", info->dlpi_name);
	return 0;
}

static int each_file(int (*act)(const char *path))
{
	DIR *stream = opendir(directory);
	struct dirent *entry;
	char path[600];
	int count = 0;

	while (stream && (entry = readdir(stream))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
		count++;
		if (act)
			act(path);
	}
	if (stream)
		closedir(stream);
	return count;
}

static int setup(void **state)
{
	(void)state;
	snprintf(directory, sizeof(directory), "/tmp/graftrace-plans-%d/a/b", (int)getpid());
	dl_iterate_phdr(each_loaded, NULL);
	return gt_object_open(libc, &object, NULL);
}

static int empty(void **state)
{
	(void)state;
	each_file(unlink);
	return 0;
}

static int teardown(void **state)
{
	char *slash;
	int i;

	empty(state);
	gt_object_close(object);
	for (i = 0; i < 3; i++) {
		rmdir(directory);
		slash = strrchr(directory, '/');
		*slash = 0;
	}
	return 0;
}

static struct gt_plan *plan_with(const char *cache)
{
	struct gt_message message = { "" };
	struct gt_plan_entry entry;
	struct gt_plan *plan;
	uint32_t i;

	assert_int_equal(gt_plan_create(object, &plan, &message), 0);
	if (cache)
		gt_plan_use_cache(plan, cache);
	for (i = 0; i < gt_object_function_count(object); i++)
		assert_int_equal(gt_plan_function(plan, i, &entry, &message), 0);
	return plan;
}

static void same_plans(struct gt_plan *a, struct gt_plan *b)
{
	uint32_t i, k, extras = 0;

	for (i = 0; i < gt_object_function_count(object); i++) {
		struct gt_plan_entry x, y;

		assert_int_equal(gt_plan_function(a, i, &x, NULL), 0);
		assert_int_equal(gt_plan_function(b, i, &y, NULL), 0);
		assert_int_equal(x.reason, y.reason);
		assert_int_equal(x.way, y.way);
		assert_int_equal(x.prepared, y.prepared);
		assert_int_equal(x.entry_only, y.entry_only);
		assert_int_equal(x.extra_count, y.extra_count);
		if (x.way == GT_PLAN_NONE)
			continue;
		assert_int_equal(x.patch_address, y.patch_address);
		assert_int_equal(x.body, y.body);
		assert_int_equal(x.patch_bytes, y.patch_bytes);
		assert_int_equal(x.covered_bytes, y.covered_bytes);
		assert_int_equal(x.moved_bytes_max, y.moved_bytes_max);
		assert_int_equal(x.neutral, y.neutral);
		assert_memory_equal(x.original, y.original, sizeof(x.original));
		for (k = 0; k < x.extra_count; k++, extras++)
			assert_memory_equal(gt_plan_extra(a, &x, k), gt_plan_extra(b, &y, k),
					    sizeof(struct gt_plan_extra));
	}
	assert_true(extras > 0);
}

static void what_comes_back_is_what_was_made(void **state)
{
	struct gt_plan *plain = plan_with(NULL), *first, *second;

	(void)state;
	assert_int_equal(each_file(NULL), 0);
	first = plan_with(directory);
	assert_int_equal(each_file(NULL), 1);
	second = plan_with(directory);
	/* No code was decoded for it. */
	assert_true(gt_scan_is_complete(first->scan));
	assert_false(gt_scan_is_complete(second->scan));
	same_plans(plain, first);
	same_plans(plain, second);
	gt_plan_destroy(plain);
	gt_plan_destroy(first);
	gt_plan_destroy(second);
}

static void other_hooks_make_another_plan(void **state)
{
	struct gt_plan_entry entry;
	struct gt_plan *plan;
	uint64_t address;

	(void)state;
	gt_plan_destroy(plan_with(directory));
	assert_int_equal(gt_plan_create(object, &plan, NULL), 0);
	gt_plan_use_cache(plan, directory);
	assert_int_equal(gt_object_symbol(object, "fopen", &address), 0);
	assert_int_equal(gt_plan_hooks(plan, &address, 1, &entry, NULL), 0);
	assert_int_equal(gt_plan_function(plan, 0, &entry, NULL), 0);
	assert_int_equal(gt_plan_all(plan, NULL), 0);
	assert_int_equal(each_file(NULL), 2);
	gt_plan_destroy(plan);
}

static char *content;
static size_t content_bytes;
static char content_path[600];

static int read_content(const char *path)
{
	FILE *file = fopen(path, "r");

	snprintf(content_path, sizeof(content_path), "%s", path);
	content = malloc(32 << 20);
	content_bytes = fread(content, 1, 32 << 20, file);
	fclose(file);
	return 0;
}

static void write_content(size_t bytes)
{
	FILE *file = fopen(content_path, "w");

	assert_int_equal(fwrite(content, 1, bytes, file), bytes);
	fclose(file);
}

/* Whether the file as it is now is taken; the plan is right in any case. */
static bool is_taken(struct gt_plan *plain)
{
	struct gt_plan *plan = plan_with(directory);
	const bool taken = !gt_scan_is_complete(plan->scan);

	same_plans(plain, plan);
	gt_plan_destroy(plan);
	return taken;
}

static void a_broken_file_is_made_anew(void **state)
{
	struct gt_plan *plain = plan_with(NULL);
	size_t i;

	(void)state;
	gt_plan_destroy(plan_with(directory));
	each_file(read_content);
	for (i = 0; i < 6; i++) {
		const size_t at = i * (content_bytes / 6) + i;

		content[at] ^= 0x10;
		write_content(content_bytes);
		content[at] ^= 0x10;
		assert_false(is_taken(plain));
		assert_true(is_taken(plain));
	}
	write_content(content_bytes / 2);
	assert_false(is_taken(plain));
	write_content(0);
	assert_false(is_taken(plain));
	write_content(20);
	assert_false(is_taken(plain));
	free(content);
	gt_plan_destroy(plain);
}

/* With a checksum that is right: what is taken then may be nonsense, but harmless nonsense. */
static void hostile_fields_do_no_harm(void **state)
{
	struct gt_cache_header header;
	uint64_t random = 88172645463325252ull;
	uint32_t i, k, taken = 0;

	(void)state;
	gt_plan_destroy(plan_with(directory));
	each_file(read_content);
	for (i = 0; i < 300; i++) {
		uint8_t *copy = malloc(content_bytes);
		struct gt_plan *plan;

		memcpy(copy, content, content_bytes);
		memcpy(&header, copy, sizeof(header));
		for (k = 0; k < 1 + i % 3; k++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			copy[sizeof(header) + random % (content_bytes - sizeof(header))] ^=
				(uint8_t)(1u << (random >> 40 & 7));
		}
		if (i % 7 == 0)
			header.extras += (uint32_t)(random >> 44);
		header.checksum = gt_plan_cache_checksum(copy + sizeof(header),
							 content_bytes - sizeof(header));
		memcpy(copy, &header, sizeof(header));
		assert_int_equal(gt_plan_create(object, &plan, NULL), 0);
		taken += gt_plan_cache_take(plan, copy, content_bytes, header.key);
		for (k = 0; k < plan->entry_count; k++) {
			uint8_t out[GT_PLAN_MOVED_MAX];
			const struct gt_plan_entry *entry = &plan->entries[k];

			if (entry->moved_bytes_max)
				assert_int_equal(gt_plan_move(plan, entry, 0,
							      entry->patch_address + 4096, out,
							      entry->moved_bytes_max, NULL),
						 entry->moved_bytes_max);
		}
		gt_plan_destroy(plan);
		free(copy);
	}
	assert_true(taken < 300);
	free(content);
}

static int make_writable(const char *path)
{
	return chmod(path, 0666);
}

static int make_link(const char *path)
{
	char other[700];

	snprintf(other, sizeof(other), "%s.away", path);
	return rename(path, other) || symlink(other, path);
}

static void a_file_that_others_could_have_written_is_not_opened(void **state)
{
	struct gt_plan *plain = plan_with(NULL);

	(void)state;
	gt_plan_destroy(plan_with(directory));
	assert_true(is_taken(plain));
	each_file(make_writable);
	assert_false(is_taken(plain));
	each_file(make_link);
	assert_false(is_taken(plain));
	gt_plan_destroy(plain);
}

static void the_oldest_plans_go_when_there_are_too_many(void **state)
{
	const struct timespec old[2] = { { 1000, 0 }, { 1000, 0 } };
	struct stat status;
	char path[600];
	int i, fd;

	(void)state;
	gt_plan_destroy(plan_with(directory));
	each_file(unlink);
	for (i = 0; i < 14; i++) {
		snprintf(path, sizeof(path), "%s/%032x.plan", directory, i);
		fd = open(path, O_WRONLY | O_CREAT, 0600);
		assert_int_equal(posix_fallocate(fd, 0, 8 << 20), 0);
		if (i < 5)
			futimens(fd, old);
		close(fd);
	}
	gt_plan_destroy(plan_with(directory));
	for (i = 0; i < 5; i++) {
		snprintf(path, sizeof(path), "%s/%032x.plan", directory, i);
		assert_int_not_equal(stat(path, &status), 0);
	}
	assert_int_equal(each_file(NULL), 9);
}

static void without_a_place_plans_are_made_each_time(void **state)
{
	struct gt_plan *plain = plan_with(NULL), *plan = plan_with("/dev/null/nowhere");

	(void)state;
	same_plans(plain, plan);
	gt_plan_destroy(plan);
	gt_plan_destroy(plain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_comes_back_is_what_was_made, empty),
		cmocka_unit_test_setup(other_hooks_make_another_plan, empty),
		cmocka_unit_test_setup(a_broken_file_is_made_anew, empty),
		cmocka_unit_test_setup(hostile_fields_do_no_harm, empty),
		cmocka_unit_test_setup(a_file_that_others_could_have_written_is_not_opened, empty),
		cmocka_unit_test_setup(the_oldest_plans_go_when_there_are_too_many, empty),
		cmocka_unit_test_setup(without_a_place_plans_are_made_each_time, empty),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
