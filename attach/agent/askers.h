/* SPDX-License-Identifier: MIT */
/*
 * Functions that ask who called them (__builtin_return_address, setjmp and its kind), where filters leave
 * them untraced. Reached by a jump through a pointer from a traced function they would find that one's stub in
 * their return slot. So as soon as an object has a traced function with such a jump, they get stubs, too,
 * which record nothing and give the real address back (doc/design/patching.md). Under the session's lock.
 */
#ifndef GT_ATTACH_ASKERS_H
#define GT_ATTACH_ASKERS_H

#include "attach/agent/catalog.h"

/* Finds such functions in the file, at the first call: reads the code of all its functions. GT_ENOMEM. */
int gt_askers_find(struct gt_catalog_file *file);
/* Whether function `index` is one of them; false before gt_askers_find(). */
bool gt_askers_has(const struct gt_catalog_file *file, uint32_t index);

#endif
