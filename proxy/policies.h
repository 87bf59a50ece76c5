/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policies.h - a service's own policies, by the names that runs give
 *
 * Read from the "NAME.ini" files of one directory: at the start by the daemon
 * itself, later by the broker.  Used on the main thread only; what workers get
 * are references to rulesets.
 */
#ifndef PROXY_POLICIES_H
#define PROXY_POLICIES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/str.h"

struct compile;
struct plug_why;
struct ruleset;

#define POLICIES_MAX		1024
#define POLICIES_ENDING		".ini"

struct policy {
	char *name;
	struct str text;
	struct ruleset *rules;		/* one reference */
	bool seen;			/* in the reading that is going on */
	bool gone;			/* its file was not in the last one */
};

struct policies {
	struct policy *policy;
	size_t n;
	const struct parents *parents;	/* that they may name; NULL: none */
};

/* One file of the directory, as it was read. */
struct policy_file {
	struct str name;		/* without directory and ending */
	const char *path;		/* for messages */
	int err;			/* 0, or -errno and no text */
	struct str text;
	struct compile *compiled;	/* NULL: it is yet to be */
};

/* Would it be as it is?  @anew as below. */
bool policies_has(const struct policies *ps, const struct policy_file *file,
		  bool anew);
/**
 * policies_take() - A policy's text, as its file says now
 * @file:	whose @err is 0; rules are taken from @compiled
 * @anew:	count it as another one also where the text is the same
 * @ret:	the policy, seen; set on failure too where there is one by that
 *		name, which then stays as it was
 *
 * Return: 1: it has other rules now; 0: they are the same; -EPROTO or another
 *         -errno with @why
 */
NODISCARD int policies_take(struct policies *ps,
			    const struct policy_file *file, bool anew,
			    struct policy **ret, struct plug_why *why);
/* NULL: there is none of that name. */
struct policy *policies_find(const struct policies *ps, struct str name);
/* How many can be named. */
size_t policies_count(const struct policies *ps);
void policies_done(struct policies *ps);

/* One file of the directory: 0 to go on, or -errno to stop with. */
typedef int policies_list_fn(void *arg, struct str name, const char *path);

/* List each policy file of @dir: 0, what @fn returned, or -errno. */
NODISCARD int policies_list(const char *dir, policies_list_fn *fn, void *arg);

/* 0 to go on, or -errno to stop with. */
typedef int policies_read_fn(void *arg, const struct policy_file *file);

/* The same with its text. */
NODISCARD int policies_read(const char *dir, policies_read_fn *fn, void *arg);

#endif /* PROXY_POLICIES_H */
