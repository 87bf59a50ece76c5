/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_kit.h - compile a policy in a test, and keep what was said of it
 */
#ifndef TESTS_UNIT_RULES_KIT_H
#define TESTS_UNIT_RULES_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/buf.h"
#include "rules/rules.h"

/* All diagnostics of a compilation as lines "FILE:LINE:COLUMN: WORD: TEXT". */
struct told {
	struct buf text;
	unsigned errors, warnings;
};

static inline void told_one(void *arg, const struct rules_diag *d)
{
	struct told *told = arg;
	int err;

	if (d->severity == RULES_ERROR)
		told->errors++;
	else
		told->warnings++;
	err = buf_printf(&told->text, "%s:%u:%u: %s: %s\n", d->file, d->line,
			 d->column, d->severity == RULES_ERROR ? "error" :
			 "warning", d->message);
	assert_int_equal(err, 0);
}

/* NULL when it was refused. */
static inline struct ruleset *compile_told(const char *text, struct told *told)
{
	struct rules_source source = { .name = "p.ini", .text = str_from(text) };
	struct ruleset *rs = NULL;
	int err;

	*told = (struct told){ .text = BUF_INIT(1 << 20) };
	err = rules_compile(&source, 1, told_one, told, &rs);
	if (err) {
		assert_null(rs);
		assert_true(told->errors > 0);
		return NULL;
	}
	assert_non_null(rs);
	assert_int_equal(told->errors, 0);
	return rs;
}

/* The text must be without error; what was warned of is let go. */
static inline struct ruleset *compile_good(const char *text)
{
	struct ruleset *rs;
	struct told told;

	rs = compile_told(text, &told);
	if (!rs)
		fail_msg("refused: %s", buf_cstr(&told.text));
	buf_done(&told.text);
	return rs;
}

/* @host: a name, an address, or NULL; @addr: an address, or NULL. */
static inline struct rules_answer ask(const struct ruleset *rs,
				      const char *host, unsigned port,
				      const char *addr)
{
	struct rules_question q = {
		.host = str_from(host), .port = (uint16_t)port, .now = 1,
	};
	struct rules_answer a;
	struct ip_addr parsed;

	if (addr) {
		if (ip_addr_parse(str_from(addr), &parsed))
			fail_msg("bad address '%s' in the test", addr);
		q.addr = &parsed;
	}
	rules_judge(rs, &q, &a);
	return a;
}

struct verdict {
	const char *host;		/* NULL: no name */
	unsigned port;
	const char *addr;		/* NULL: not resolved */
	enum reason reason;
	const char *rule;		/* NULL: none */
	const char *protocol;		/* NULL: none */
};

static inline void check_verdicts(const struct ruleset *rs,
				  const struct verdict *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct rules_answer a = ask(rs, v[i].host, v[i].port,
					    v[i].addr);
		const char *rule = a.rule ? a.rule : "(none)";
		const char *protocol = a.protocol ? a.protocol->name :
						    "(none)";

		if (a.reason != v[i].reason ||
		    strcmp(rule, v[i].rule ? v[i].rule : "(none)") != 0 ||
		    strcmp(protocol, v[i].protocol ? v[i].protocol :
						     "(none)") != 0)
			fail_msg("verdict %zu, %s port %u at %s: "
				 "%s by %s as %s",
				 i, v[i].host ? v[i].host : "(no name)",
				 v[i].port, v[i].addr ? v[i].addr : "?",
				 reason_word(a.reason), rule, protocol);
	}
}

#endif /* TESTS_UNIT_RULES_KIT_H */
