/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seccomp.h - a table of system calls becomes a loaded filter
 *
 * The home of libseccomp.  Callers give a table; foreign ABIs (x32, i386, ...)
 * are killed by every filter made here.
 *
 * Rules for one system call are alternatives: an action is taken when one of
 * its rules holds.  They must not overlap with different actions, and a rule
 * without arguments is the whole of its system call: libseccomp keeps no order.
 * So "only these values" is written as rules for the values that are left out.
 *
 * A rule whose system call this architecture lacks is passed over.  A name that
 * libseccomp does not know at all is too, but in a rule that restricts what is
 * otherwise allowed it is an error (-ENOSYS).
 */
#ifndef BASE_SECCOMP_H
#define BASE_SECCOMP_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

enum seccomp_do {
	SECCOMP_DO_ALLOW,
	SECCOMP_DO_ERRNO,	/* with @err */
	SECCOMP_DO_KILL,	/* the process, SIGSYS */
};

/*
 * An argument test: (arg[index] & mask) == value, or != with @negate.  Where
 * the kernel takes an int, mask with 0xffffffff: it ignores the upper half, and
 * so must the test.  A rule has at most one test with @negate and a mask that
 * is not all ones, and no two tests of one argument.
 */
struct seccomp_arg {
	uint8_t index;
	uint8_t negate;
	uint64_t mask;
	uint64_t value;
};

struct seccomp_rule {
	const char *syscall;	/* by name, as in the manual */
	enum seccomp_do act;
	int err;		/* positive errno for SECCOMP_DO_ERRNO */
	uint8_t nargs;
	struct seccomp_arg arg[3];	/* all must hold */
};

struct seccomp_policy {
	enum seccomp_do otherwise;	/* what no rule names */
	int otherwise_err;
	const struct seccomp_rule *rule;
	size_t n;
};

/**
 * seccomp_load_policy() - Set no_new_privs and load the filter, for all threads
 *
 * libseccomp frees its memory under the new filter, which so must let through
 * what free() calls (munmap, brk, madvise); a filter that is stricter is made
 * by seccomp_compile() and loaded by seccomp_load_compiled().
 *
 * @ret_what:	on failure the system call or step that failed
 * Return: 0 or -errno
 */
NODISCARD int seccomp_load_policy(const struct seccomp_policy *p,
				  const char **ret_what);
struct sock_filter;

/**
 * seccomp_compile() - The same as a BPF program, to be loaded later without
 *                     libseccomp (a struct sock_fprog's contents)
 * @ret_prog:	array of struct sock_filter; the caller frees with mem_free()
 * @ret_n:	its length in instructions
 */
NODISCARD int seccomp_compile(const struct seccomp_policy *p,
			      struct sock_filter **ret_prog, size_t *ret_n,
			      const char **ret_what);

/**
 * seccomp_load_compiled() - Set no_new_privs and load @prog, for all threads
 *
 * Two system calls and nothing else: fit for a child between clone and exec.
 *
 * Return: 0 or -errno
 */
NODISCARD int seccomp_load_compiled(const struct sock_filter *prog, size_t n);

#endif /* BASE_SECCOMP_H */
