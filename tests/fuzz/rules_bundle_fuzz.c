/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_bundle_fuzz.c - any bytes as a policy of many parts
 *
 * It is refused with words, or it is written and read again as it was; and
 * whatever its parts say, it compiles or is refused with words.
 */
#include <errno.h>
#include <stdint.h>

#include "rules/rules_bundle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void on_diag(void *arg, const struct rules_diag *d)
{
	unsigned *errors = arg;

	*errors += d->severity == RULES_ERROR;
	REQUIRE(d->file && d->message && d->message[0]);
}

static void check_again(const struct rules_bundle *b)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(1 << 22);
	CLEANUP(rules_bundle_done) struct rules_bundle again =
		RULES_BUNDLE_INIT;

	if (b->n < 2)
		return;
	REQUIRE(rules_bundle_write(b->source, b->n, &text) == 0);
	REQUIRE(rules_bundle_read(buf_str(&text), "p", &again) == 0);
	REQUIRE(again.n == b->n);
	for (size_t i = 0; i < b->n; i++) {
		const struct rules_source *x = &b->source[i];
		const struct rules_source *y = &again.source[i];

		REQUIRE(x->kind == y->kind && x->parent == y->parent &&
			x->line == y->line && x->same == y->same &&
			str_eq(x->word, y->word) && str_eq(x->text, y->text) &&
			str_eq(str_from(x->name), str_from(y->name)));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	CLEANUP(rules_bundle_done) struct rules_bundle b = RULES_BUNDLE_INIT;
	CLEANUP(rules_unrefp) struct ruleset *rs = NULL;
	unsigned errors = 0;
	int err = rules_bundle_read(str_make(data, n), "p", &b);

	REQUIRE(err == 0 || err == -EINVAL || err == -ENOMEM);
	if (err == 0)
		check_again(&b);
	err = rules_compile_text(str_make(data, n), "p", on_diag, &errors, &rs);
	REQUIRE(err == 0 || err == -EINVAL || err == -ENOMEM);
	REQUIRE((err == -EINVAL) == (errors > 0));
	return 0;
}
