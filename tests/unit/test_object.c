/* SPDX-License-Identifier: MIT */
/*
 * Objects as they are on this machine (this program, the kernel's vdso, the C library), and broken
 * ones made of this program by changing bytes.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>
#include <cmocka.h>

#include "attach/object/libraries.h"
#include "attach/object/object.h"
#include "attach/plan/plan.h"

/* Two names, and one with a version and a leading underscore. */
__attribute__((noinline, used)) int plainly_named(int x)
{
	return x + (int)getpid();
}
int _other_name(int x) __attribute__((alias("plainly_named")));
int plainly_named_too(int x) __attribute__((alias("plainly_named")));

/* Data that the linker puts into the symbol table, but no function. */
int some_data = 5;

struct bytes {
	const uint8_t *data;
	uint64_t size;
};

static int read_bytes(void *data, uint64_t offset, void *buffer, size_t bytes)
{
	const struct bytes *from = data;

	if (offset > from->size || bytes > from->size - offset)
		return GT_ECUT;
	memcpy(buffer, from->data + offset, bytes);
	return 0;
}

static struct bytes load_file(const char *path)
{
	struct bytes loaded = { NULL, 0 };
	FILE *file = fopen(path, "rb");
	uint8_t *data;

	assert_non_null(file);
	fseek(file, 0, SEEK_END);
	loaded.size = (uint64_t)ftell(file);
	rewind(file);
	data = malloc(loaded.size);
	assert_non_null(data);
	assert_int_equal(fread(data, 1, loaded.size, file), loaded.size);
	fclose(file);
	loaded.data = data;
	return loaded;
}

/* The kernel's own small object, as a file would have it: in memory it is complete. */
static struct bytes vdso_bytes(void)
{
	const uint8_t *start = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	Elf64_Ehdr header;

	assert_non_null(start);
	memcpy(&header, start, sizeof(header));
	return (struct bytes){ start, header.e_shoff + header.e_shnum * sizeof(Elf64_Shdr) };
}

static struct gt_object *open_object(const char *path)
{
	struct gt_message message = { "" };
	struct gt_object *object = NULL;

	if (gt_object_open(path, &object, &message) != 0)
		fail_msg("%s", message.text);
	return object;
}

static void a_function_is_found_with_its_best_name_and_size(void **state)
{
	struct gt_object *object = open_object("/proc/self/exe");
	const struct gt_object_function *function;
	uint64_t address, other;
	uint32_t index, inside;

	(void)state;
	assert_int_equal(gt_object_symbol(object, "_other_name", &other), 0);
	assert_int_equal(gt_object_symbol(object, "plainly_named", &address), 0);
	assert_int_equal(address, other);
	assert_int_equal(gt_object_function_at(object, address, &index), 0);
	function = gt_object_function(object, index);
	assert_int_equal(function->address, address);
	assert_string_equal(function->name, "plainly_named");
	assert_string_equal(gt_object_function_name(object, index), "plainly_named");
	assert_true(function->flags & GT_FUNCTION_SYMBOL && function->flags & GT_FUNCTION_SIZED);
	assert_true(function->bytes > 5);
	assert_int_equal(gt_object_function_at(object, address + function->bytes - 1, &inside), 0);
	assert_int_equal(inside, index);
	assert_int_equal(gt_object_symbol(object, "some_data", &address), 0);
	assert_int_equal(gt_object_function_at(object, address, &index), GT_ENOENT);
	assert_int_equal(gt_object_symbol(object, "no_such_name", &address), GT_ENOENT);
	gt_object_close(object);
}

static void functions_are_sorted_and_do_not_overlap(void **state)
{
	struct gt_object *object = open_object("/proc/self/exe");
	uint32_t i;

	(void)state;
	assert_true(gt_object_function_count(object) > 20);
	for (i = 0; i + 1 < gt_object_function_count(object); i++) {
		const struct gt_object_function *function = gt_object_function(object, i);

		assert_true(function->address + function->bytes <= function[1].address);
		assert_non_null(function->name);
	}
	gt_object_close(object);
}

static void a_program_knows_what_it_is(void **state)
{
	struct gt_object *object = open_object("/proc/self/exe");
	const uint8_t *build_id;
	uint32_t i;
	bool libc = false;

	(void)state;
	assert_true(gt_object_is_program(object));
	assert_false(gt_object_is_loader(object));
	assert_int_equal(gt_object_build_id(object, &build_id), 20);
	assert_non_null(gt_object_interpreter(object));
	for (i = 0; i < gt_object_needed_count(object); i++)
		libc = libc || strcmp(gt_object_needed(object, i), "libc.so.6") == 0;
	assert_true(libc);
	gt_object_close(object);
}

static void the_loader_is_told_from_other_libraries(void **state)
{
	struct gt_object *program = open_object("/proc/self/exe"), *object;
	struct gt_message message = { "" };
	struct gt_libraries libraries;
	uint32_t i, loaders = 0;

	(void)state;
	assert_int_equal(gt_libraries_find(program, &libraries, &message), 0);
	for (i = 0; i < libraries.count; i++) {
		assert_non_null(libraries.list[i].path);
		object = open_object(libraries.list[i].path);
		loaders += gt_object_is_loader(object);
		assert_false(gt_object_is_program(object));
		gt_object_close(object);
	}
	assert_int_equal(loaders, 1);
	gt_libraries_free(&libraries);
	gt_object_close(program);
}

static void code_bytes_are_those_in_memory(void **state)
{
	struct gt_object *object = open_object("/proc/self/exe");
	const struct gt_object_segment *last =
		gt_object_segment(object, gt_object_segment_count(object) - 1);
	uint64_t address, end = last->address + last->memory_bytes;

	(void)state;
	assert_int_equal(gt_object_symbol(object, "plainly_named", &address), 0);
	assert_memory_equal(gt_object_bytes(object, address, 16), (void *)plainly_named, 16);
	assert_true(gt_object_segment(object, 0)->address <= address && address < end);
	assert_null(gt_object_bytes(object, end + 8192, 1));
	assert_null(gt_object_bytes(object, address, 1ull << 40));
	gt_object_close(object);
}

/* Reads a file, and adds up what is read of a part of it. */
struct counted {
	struct bytes bytes;
	uint64_t start, end; /* of the part */
	uint64_t count;
};

static int read_counted(void *data, uint64_t offset, void *buffer, size_t bytes)
{
	struct counted *counted = data;
	const uint64_t from = offset > counted->start ? offset : counted->start;
	const uint64_t to = offset + bytes < counted->end ? offset + bytes : counted->end;

	counted->count += to > from ? to - from : 0;
	return read_bytes(&counted->bytes, offset, buffer, bytes);
}

/* Of libraries that are not traced nobody asks for code, which is most of them. */
static void code_is_not_read_before_it_is_asked_for(void **state)
{
	struct gt_object *object = open_object("/proc/self/exe");
	struct gt_message message = { "" };
	struct counted counted = { .bytes = load_file("/proc/self/exe") };
	const struct gt_object_segment *code = NULL;
	uint32_t i;

	(void)state;
	for (i = 0; i < gt_object_segment_count(object); i++)
		if (gt_object_segment(object, i)->execute)
			code = gt_object_segment(object, i);
	assert_non_null(code);
	counted.start = code->file_offset;
	counted.end = code->file_offset + code->file_bytes;
	gt_object_close(object);
	assert_int_equal(gt_object_open_read("program", read_counted, &counted, counted.bytes.size,
					     false, &object, &message),
			 0);
	assert_true(gt_object_function_count(object) > 20);
	assert_in_range(counted.count, 16, (counted.end - counted.start) / 4);
	gt_object_close(object);
	free((void *)counted.bytes.data);
}

static void names_of_libraries_are_had_without_functions(void **state)
{
	struct gt_object *object, *whole = open_object("/proc/self/exe");
	struct gt_message message = { "" };
	uint32_t i;

	(void)state;
	assert_int_equal(gt_object_open_names("/proc/self/exe", &object, &message), 0);
	assert_int_equal(gt_object_function_count(object), 0);
	assert_string_equal(gt_object_interpreter(object), gt_object_interpreter(whole));
	assert_true(gt_object_needed_count(object) > 0);
	assert_int_equal(gt_object_needed_count(object), gt_object_needed_count(whole));
	for (i = 0; i < gt_object_needed_count(object); i++)
		assert_string_equal(gt_object_needed(object, i), gt_object_needed(whole, i));
	gt_object_close(object);
	gt_object_close(whole);
	assert_int_equal(gt_object_open_names("/nowhere", &object, &message), GT_ENOENT);
}

static void an_image_in_memory_is_read_by_its_addresses(void **state)
{
	const struct bytes vdso = vdso_bytes();
	struct gt_message message = { "" };
	struct gt_object *object;
	uint64_t address;
	uint32_t index;

	(void)state;
	assert_int_equal(gt_object_open_read("[vdso]", read_bytes, (void *)&vdso, vdso.size, true,
					     &object, &message),
			 0);
	assert_int_equal(gt_object_symbol(object, "__vdso_clock_gettime", &address), 0);
	assert_int_equal(gt_object_function_at(object, address, &index), 0);
	assert_string_equal(gt_object_soname(object), "linux-vdso.so.1");
	gt_object_close(object);
}

static void names_are_demangled_without_parameters(void **state)
{
	static const char *const names[][2] = {
		{ "_ZN5space5thing4growERSt6vectorIiSaIiEE", "space::thing::grow" },
		{ "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad" },
		{ "_RNvNtCs1234_7mycrate5inner4walk", "mycrate::inner::walk" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		char *plain = gt_object_demangle(names[i][0]);

		assert_non_null(plain);
		assert_string_equal(plain, names[i][1]);
		free(plain);
	}
	assert_null(gt_object_demangle("main"));
	assert_null(gt_object_demangle("_Znonsense!"));
	assert_null(gt_object_demangle(""));
}

/* Opens bytes as a file and as an image, and asks for everything. 0, or the error. */
static int use(const struct bytes *bytes)
{
	struct gt_message message;
	struct gt_object *object;
	uint32_t i;
	int error = 0, memory;

	for (memory = 0; memory < 2; memory++) {
		message.text[0] = 0;
		error = gt_object_open_read("broken", read_bytes, (void *)bytes, bytes->size,
					    memory, &object, &message);
		if (error) {
			assert_int_not_equal(message.text[0], 0);
			assert_non_null(strstr(message.text, "broken"));
			continue;
		}
		for (i = 0; i < gt_object_function_count(object); i++)
			assert_non_null(gt_object_function_name(object, i));
		gt_object_close(object);
	}
	return error;
}

static void a_file_cut_anywhere_is_refused_or_read(void **state)
{
	const struct bytes whole = load_file("/proc/self/exe");
	struct bytes cut = whole;
	uint64_t size;

	(void)state;
	for (size = 0; size < whole.size; size += size < 1200 ? 23 : whole.size / 23) {
		/* Memory of its own, so that a sanitizer sees a byte too many. */
		uint8_t *copy = malloc(size + 1);

		assert_non_null(copy);
		memcpy(copy, whole.data, size);
		cut.data = copy;
		cut.size = size;
		use(&cut);
		free(copy);
	}
	free((void *)whole.data);
}

static void changed_headers_and_tables_do_no_harm(void **state)
{
	/* A small object with everything: headers, sections, symbols, call frames, code. */
	const struct bytes whole = vdso_bytes();
	struct bytes changed = whole;
	uint8_t *copy = malloc(whole.size);
	Elf64_Ehdr header;
	uint64_t at, step;
	uint32_t value;

	(void)state;
	assert_non_null(copy);
	changed.data = copy;
	memcpy(&header, whole.data, sizeof(header));
	for (value = 0; value < 3; value++) {
		const uint8_t with[] = { 0xff, 0x80, 0x00 };

		/* The ELF header and the program headers, byte by byte ... */
		for (at = 0; at < sizeof(header) + header.e_phnum * sizeof(Elf64_Phdr); at++) {
			memcpy(copy, whole.data, whole.size);
			copy[at] = with[value];
			use(&changed);
		}
		/* ... the rest here and there. */
		step = whole.size / 500;
		for (at = 0; at < whole.size; at += step) {
			memcpy(copy, whole.data, whole.size);
			memset(copy + at, with[value], at + 8 < whole.size ? 8 : 1);
			use(&changed);
		}
	}
	/* Section headers that lead nowhere: the file is read without them. */
	memcpy(copy, whole.data, whole.size);
	memset(copy + offsetof(Elf64_Ehdr, e_shoff), 0xff, 8);
	assert_int_not_equal(use(&changed), 1);
	free(copy);
}

static void a_program_without_section_headers_keeps_its_functions(void **state)
{
	const struct bytes whole = load_file("/proc/self/exe");
	struct gt_object *with = open_object("/proc/self/exe"), *without;
	struct gt_message message = { "" };
	uint32_t i, index, missing = 0;

	(void)state;
	memset((uint8_t *)whole.data + offsetof(Elf64_Ehdr, e_shoff), 0, 8);
	memset((uint8_t *)whole.data + offsetof(Elf64_Ehdr, e_shnum), 0, 2);
	assert_int_equal(gt_object_open_read("sstripped", read_bytes, (void *)&whole, whole.size,
					     false, &without, &message),
			 0);
	for (i = 0; i < gt_object_function_count(with); i++) {
		const struct gt_object_function *function = gt_object_function(with, i);

		if (function->flags & GT_FUNCTION_FRAME &&
		    gt_object_function_at(without, function->address, &index) != 0)
			missing++;
	}
	assert_int_equal(missing, 0);
	assert_int_equal(gt_object_needed_count(without), gt_object_needed_count(with));
	gt_object_close(without);
	gt_object_close(with);
	free((void *)whole.data);
}

static void bad_paths_are_told_apart(void **state)
{
	struct gt_message message = { "" };
	struct gt_object *object;

	(void)state;
	assert_int_equal(gt_object_open("/nowhere/at/all", &object, &message), GT_ENOENT);
	assert_null(object);
	assert_int_equal(gt_object_open("/", &object, &message), GT_ENOTSUP);
	assert_non_null(strstr(message.text, "directory"));
	assert_int_equal(gt_object_open("/dev/null", &object, &message), GT_ENOTSUP);
	assert_int_equal(gt_object_open("/proc/self/cmdline", &object, &message), GT_EFORMAT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_is_found_with_its_best_name_and_size),
		cmocka_unit_test(functions_are_sorted_and_do_not_overlap),
		cmocka_unit_test(a_program_knows_what_it_is),
		cmocka_unit_test(the_loader_is_told_from_other_libraries),
		cmocka_unit_test(code_bytes_are_those_in_memory),
		cmocka_unit_test(code_is_not_read_before_it_is_asked_for),
		cmocka_unit_test(names_of_libraries_are_had_without_functions),
		cmocka_unit_test(an_image_in_memory_is_read_by_its_addresses),
		cmocka_unit_test(names_are_demangled_without_parameters),
		cmocka_unit_test(a_file_cut_anywhere_is_refused_or_read),
		cmocka_unit_test(changed_headers_and_tables_do_no_harm),
		cmocka_unit_test(a_program_without_section_headers_keeps_its_functions),
		cmocka_unit_test(bad_paths_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
