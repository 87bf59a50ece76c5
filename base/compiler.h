/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compiler.h - the attributes and small macros that every folder uses
 */
#ifndef BASE_COMPILER_H
#define BASE_COMPILER_H

#include <stddef.h>

#define NODISCARD	__attribute__((warn_unused_result))
#define NORETURN	__attribute__((noreturn))
#define UNUSED		__attribute__((unused))
#define PRINTF(a, b)	__attribute__((format(printf, a, b)))
/*
 * Of a large local on a hot path, which is written before it is read: hardened
 * builds clear all others.
 */
#if defined(__has_attribute) && __has_attribute(uninitialized)
#define UNINITIALIZED	__attribute__((uninitialized))
#else
#define UNINITIALIZED
#endif
#define CLEANUP(fn)	__attribute__((cleanup(fn)))

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define BIT(n)		(1u << (n))
/* They evaluate twice what they choose: give them no call that acts or that
 * can answer otherwise the second time. */
#define MIN(a, b)	((a) < (b) ? (a) : (b))
#define MAX(a, b)	((a) > (b) ? (a) : (b))

/* The object that holds @member at @ptr. */
#define container_of(ptr, type, member) \
	((type *)(void *)((char *)(ptr) - offsetof(type, member)))

/*
 * REQUIRE() guards what only our own mistakes can break: it ends the process.
 * No input may ever reach one.
 */
#define REQUIRE(cond) \
	do { \
		if (__builtin_expect(!(cond), 0)) \
			require_failed(#cond, __FILE__, __LINE__); \
	} while (0)

/**
 * require_failed() - Say which condition broke, and abort
 */
NORETURN void require_failed(const char *cond, const char *file, int line);

#endif /* BASE_COMPILER_H */
