/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_fuzz.c - any bytes as a policy: it is refused with words, or its
 * verdicts
 *                hang together
 *
 * What must hold of every policy that compiles:
 *
 * - what is allowed has a rule and a protocol;
 * - to know the address can only take away, and never changes the protocol;
 * - a name that is allowed on some port may be asked of the DNS, and an address
 *   of it that may be dialled is left in the answer.
 *
 * The questions are made of the policy's own words, so that they hit.
 */
#include <errno.h>
#include <stdint.h>

#include "base/ip_addr.h"
#include "rules/rules.h"

#define WORDS_MAX	64	/* of a policy that are asked about */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct told {
	unsigned errors;
};

static void on_diag(void *arg, const struct rules_diag *d)
{
	struct told *told = arg;

	told->errors += d->severity == RULES_ERROR;
	REQUIRE(d->file && d->message && d->message[0]);
	for (const char *p = d->message; *p; p++)
		REQUIRE((unsigned char)*p >= ' ' && *p != 0x7f);
}

static void check_answer(const struct rules_answer *a)
{
	if (a->reason == REASON_ALLOWED)
		REQUIRE(a->rule && a->protocol && !a->would_deny);
	if (a->would_deny)
		REQUIRE(a->protocol);
}

static void ask_address(const struct ruleset *rs, struct str host,
			uint16_t port, const struct ip_addr *addr,
			const struct rules_answer *before)
{
	struct rules_question q = { .host = host, .addr = addr, .port = port };
	struct rules_answer after;

	rules_judge(rs, &q, &after);
	check_answer(&after);
	REQUIRE(after.reason != REASON_ALLOWED || str_empty(host) ||
		before->reason == REASON_ALLOWED);
	REQUIRE(!rules_passes(&after) || str_empty(host) ||
		rules_passes(before));
	if (after.reason == REASON_ALLOWED && !str_empty(host))
		REQUIRE(after.protocol == before->protocol);
	if (!rules_passes(&after) || str_empty(host))
		return;
	rules_judge_name_addr(rs, &q, &after);
	REQUIRE(rules_passes(&after));
}

static void ask(const struct ruleset *rs, struct str host,
		const struct ip_addr *addr, size_t n_addr)
{
	static const uint16_t ports[] = { 0, 22, 80, 443, 5432, 65535 };
	struct rules_answer name, before;

	for (size_t i = 0; i < ARRAY_SIZE(ports); i++) {
		struct rules_question q = { .host = host, .port = ports[i] };
		enum rules_name_verdict verdict;

		rules_judge(rs, &q, &before);
		check_answer(&before);
		verdict = rules_judge_name(rs, host, 1, &name);
		REQUIRE(!rules_passes(&before) || str_empty(host) ||
			verdict == RULES_NAME_ALLOWED);
		REQUIRE((verdict == RULES_NAME_ALLOWED) ==
			rules_passes(&name));
		for (size_t k = 0; k < n_addr; k++)
			ask_address(rs, host, ports[i], &addr[k], &before);
	}
}

/* Each word as a host, and as an address. */
static void ask_words(const struct ruleset *rs, struct str text)
{
	static const char *const fixed[] = {
		"8.8.8.8", "10.0.0.1", "169.254.169.254", "2600::1", "::1",
		"64:ff9b::a00:1",
	};
	struct ip_addr addr[ARRAY_SIZE(fixed) + 1];
	struct host_name host;
	struct str line, word;
	unsigned words = 0;

	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
		REQUIRE(ip_addr_parse(str_from(fixed[i]), &addr[i]) == 0);
	addr[ARRAY_SIZE(fixed)] = addr[0];
	ask(rs, STR_NONE, addr, ARRAY_SIZE(addr));
	while (str_cut(&text, '\n', &line)) {
		while (words < WORDS_MAX && str_word(&line, &word)) {
			words++;
			if (str_starts(word, STR("*")))
				word = str_make(word.p + 1, word.n - 1);
			if (str_starts(word, STR(".")))
				word = str_make(word.p + 1, word.n - 1);
			if (ip_addr_parse(word, &addr[ARRAY_SIZE(fixed)]) == 0)
				ask(rs, STR_NONE, addr, ARRAY_SIZE(addr));
			if (host_name_parse(word, &host) == 0)
				ask(rs, host_name_str(&host), addr,
				    ARRAY_SIZE(addr));
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	/* Two sources where a NUL, which no policy may hold, parts them. */
	struct str text = str_make(data, n);
	size_t cut = str_chr(text, '\0');
	struct rules_source source[2] = {
		{ .name = "one", .text = str_make(text.p, cut) },
		{ .name = "two", .text = str_make(text.p + MIN(cut + 1, n),
						  n - MIN(cut + 1, n)) },
	};
	struct told told = { 0 };
	struct ruleset *rs = NULL;
	int err;

	err = rules_compile(source, cut < n ? 2 : 1, on_diag, &told, &rs);
	REQUIRE(err == 0 || err == -EINVAL || err == -ENOMEM);
	REQUIRE((err == -EINVAL) == (told.errors > 0));
	REQUIRE((rs != NULL) == (err == 0));
	if (rs) {
		REQUIRE(rules_ref(rs) == rs);
		rules_unref(rs);
		ask_words(rs, text);
	}
	rules_unref(rs);
	return 0;
}
