/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy_answer_fuzz.c - any bytes as a proxy's answer: what is said of it lies
 *                       within it, and what a person is shown is one line
 */
#include <stdint.h>
#include <stdlib.h>

#include "cli/proxy_answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_text(const char *text, size_t cap)
{
	size_t i, n = strnlen(text, cap);

	REQUIRE(n < cap);
	for (i = 0; i < n; i++)
		REQUIRE(text[i] >= 0x20 && text[i] <= 0x7e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct str in = str_make(data, n);
	struct proxy_answer a;
	char small[8], large[512];

	if (proxy_answer_parse(in, &a) == PROXY_ANSWER_DONE) {
		REQUIRE(a.head <= n && a.status <= 999);
		REQUIRE(a.phrase.n == 0 || (a.phrase.p > in.p &&
			a.phrase.p + a.phrase.n < in.p + a.head));
		in = str_make(in.p + a.head, in.n - a.head);
	}
	if (proxy_answer_member(in, STR("message"), large, sizeof(large))) {
		check_text(large, sizeof(large));
		REQUIRE(proxy_answer_member(in, STR("message"), small,
					    sizeof(small)));
		check_text(small, sizeof(small));
		REQUIRE(strncmp(small, large, strlen(small)) == 0);
	}
	return 0;
}
