/* SPDX-License-Identifier: MIT */
/* Short names of real C++ and Rust functions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "export/short_names.h"

static void brackets_and_what_goes_without_saying_are_left_out(void **state)
{
	static const char *const names[][2] = {
		{ "main", "main" },
		{ "std::vector<int, std::allocator<int> >::push_back",
		  "std::vector<…>::push_back" },
		{ "std::_Rb_tree<std::__cxx11::basic_string<char, std::char_traits<char>, "
		  "std::allocator<char> >, std::pair<int, int> >::_M_erase",
		  "std::_Rb_tree<…>::_M_erase" },
		{ "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> "
		  ">::_M_append",
		  "std::string::_M_append" },
		{ "std::basic_ostream<char, std::char_traits<char> >& std::operator<< "
		  "<std::char_traits<char> >",
		  "std::ostream& std::operator<< <…>" },
		{ "a::operator->", "a::operator->" },
		{ "a::b<(c)1>::operator<", "a::b<…>::operator<" },
		{ "my_operator<int>::run", "my_operator<…>::run" },
		{ "(anonymous namespace)::helper", "helper" },
		{ "<alloc::vec::Vec<T,A> as core::ops::drop::Drop>::drop",
		  "<Vec<…> as Drop>::drop" },
		{ "<gimli::read::unit::Unit<R>>::entries", "<Unit<…>>::entries" },
		{ "core::ptr::drop_in_place<std::thread::Builder>", "core::ptr::drop_in_place<…>" },
		{ "<&T as core::fmt::Debug>::fmt", "<&T as Debug>::fmt" },
		{ "f<never closed", "f<…>" },
		{ "", "" },
		{ "<", "<…>" },
		{ ">>", ">>" },
	};
	char brief[GT_SHORT_NAME_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		gt_short_name(names[i][0], brief);
		assert_string_equal(brief, names[i][1]);
	}
}

static void the_method_is_never_cut_off(void **state)
{
	static const struct {
		const char *full;
		uint32_t columns;
		const char *cut;
	} names[] = {
		{ "std::_Rb_tree<…>::_M_erase", 26, "std::_Rb_tree<…>::_M_erase" },
		{ "std::_Rb_tree<…>::_M_erase", 20, "std::_Rb_…::_M_erase" },
		{ "std::_Rb_tree<…>::_M_erase", 12, "s…::_M_erase" },
		{ "std::_Rb_tree<…>::_M_erase", 10, "_M_erase" },
		{ "std::_Rb_tree<…>::_M_erase", 5, "_M_e…" },
		{ "a_plain_long_name_of_c", 10, "a_plain_l…" },
		{ "a::b::operator<<", 13, "a…::operator<<" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char text[64];

		strcpy(text, names[i].full);
		gt_cut_middle(text, names[i].columns);
		if (i + 1 < sizeof(names) / sizeof(names[0]))
			assert_string_equal(text, names[i].cut);
		assert_true(gt_text_columns(text) <= names[i].columns);
	}
}

static void long_names_end_at_the_room_that_there_is(void **state)
{
	char full[3 * GT_SHORT_NAME_MAX], brief[GT_SHORT_NAME_MAX];

	(void)state;
	memset(full, 'x', sizeof(full) - 1);
	full[sizeof(full) - 1] = '\0';
	gt_short_name(full, brief);
	assert_int_equal(strlen(brief), GT_SHORT_NAME_MAX - 1);
	memset(full, '<', sizeof(full) - 1);
	gt_short_name(full, brief);
	assert_string_equal(brief, "<…>");
}

static void kept_names_stay(void **state)
{
	struct gt_short_names names = { .names = NULL };
	const char *plain = "main";

	(void)state;
	assert_ptr_equal(gt_short_names_keep(&names, 1, plain), plain);
	const char *first = gt_short_names_keep(&names, 2, "a<int>::b");
	for (uint32_t i = 3; i < 1000; i++)
		gt_short_names_keep(&names, i, "c<d>");
	assert_string_equal(first, "a<…>::b");
	assert_ptr_equal(gt_short_names_keep(&names, 2, "a<int>::b"), first);
	assert_string_equal(gt_short_names_keep(&names, UINT32_MAX, "a<int>"), "a<int>");
	gt_short_names_fini(&names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(brackets_and_what_goes_without_saying_are_left_out),
		cmocka_unit_test(the_method_is_never_cut_off),
		cmocka_unit_test(long_names_end_at_the_room_that_there_is),
		cmocka_unit_test(kept_names_stay),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
