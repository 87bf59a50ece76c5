/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_samples.h - requests that two policies may judge differently
 */
#ifndef RULES_RULES_SAMPLES_H
#define RULES_RULES_SAMPLES_H

#include "base/compiler.h"
#include "base/mem.h"
#include "base/str.h"
#include "rules/rules.h"

/* Patterns of allows, and of denies, up to which they are paired. */
#define RULES_SAMPLES_PAIRED	64

/**
 * rules_samples() - One path that no pattern is made for, one of each pattern,
 *                   and of each of an allow with each of a deny one that both
 *                   may take
 * @arena:	theirs
 * @ret:	percent-encoded, sorted, each once; the caller's, mem_free()
 *
 * None where no rule of @set speaks of methods or paths.
 * Return: 0 or -ENOMEM
 */
NODISCARD int rules_samples(const struct ruleset *const set[2],
			    struct arena *arena, struct str **ret,
			    size_t *ret_n);
/* Methods that are named, and one that is not; the same otherwise. */
NODISCARD int rules_sample_methods(const struct ruleset *const set[2],
				   struct str **ret, size_t *ret_n);

#endif /* RULES_RULES_SAMPLES_H */
