/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seccomp.h - a table of system calls becomes a loaded filter
 *
 * The home of libseccomp.  Callers give a table; foreign ABIs (x32, i386, ...)
 * are killed by every filter made here.  A rule whose system call does not
 * exist on this architecture is passed over.
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

/* An argument test: (arg[index] & mask) == value, or != with @negate. */
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
 * @ret_what:	on failure the system call or step that failed
 * Return: 0 or -errno
 */
NODISCARD int seccomp_load_policy(const struct seccomp_policy *p,
				  const char **ret_what);
/**
 * seccomp_compile() - The same as a BPF program, to be loaded later without
 *                     libseccomp (a struct sock_fprog's contents)
 * @ret_prog:	array of struct sock_filter; the caller frees with mem_free()
 * @ret_n:	its length in instructions
 */
struct sock_filter;
NODISCARD int seccomp_compile(const struct seccomp_policy *p,
			      struct sock_filter **ret_prog, size_t *ret_n,
			      const char **ret_what);
NODISCARD int seccomp_load_compiled(const struct sock_filter *prog, size_t n);

#endif /* BASE_SECCOMP_H */
