/* SPDX-License-Identifier: MIT */
/* What library.c and library_cc.cc, linked as shared libraries, offer the programs. */
#ifndef LIBRARY_H
#define LIBRARY_H
#ifdef __cplusplus
extern "C" {
#endif
long library_work(int levels, long (*back)(long));
#ifdef __cplusplus
}
#endif
#endif
