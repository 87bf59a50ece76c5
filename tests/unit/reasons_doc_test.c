/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reasons_doc_test.c - docs/reasons.md explains every reason, and no other
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/reason.h"

#define DOC_MAX	(1u << 20)

static void open_doc(struct buf *out)
{
	const char *top = getenv("top_srcdir");
	char path[4096];
	int fd, n;

	n = snprintf(path, sizeof(path), "%s/docs/reasons.md", top ? top : ".");
	assert_true(n > 0 && (size_t)n < sizeof(path));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fd_read_all(fd, out), 0);
	close(fd);
}

static bool is_heading(struct str line, struct str *ret_word)
{
	if (!str_starts(line, STR("### ")))
		return false;
	*ret_word = str_make(line.p + 4, line.n - 4);
	return true;
}

static void every_reason_has_one_heading_and_no_heading_is_left(void **state)
{
	struct buf doc = BUF_INIT(DOC_MAX);
	unsigned seen[REASONS] = { 0 };
	struct str rest, line, word;
	int i;

	(void)state;
	open_doc(&doc);
	rest = buf_str(&doc);
	while (str_cut(&rest, '\n', &line)) {
		if (!is_heading(line, &word))
			continue;
		enum reason r = reason_by_word(word);

		if (r == REASONS)
			fail_msg("'%.*s' is no reason", STR_ARG(word));
		seen[r]++;
	}
	for (i = 0; i < REASONS; i++)
		if (seen[i] != 1)
			fail_msg("'%s' is explained %u times",
				 reason_word((enum reason)i), seen[i]);
	buf_done(&doc);
}

/* "Seen as: HTTP 403, DNS extended error 15, ..." of the reason above it. */
static void check_seen(enum reason r, struct str line)
{
	const struct reason_info *info = reason_info(r);
	struct str part;
	char http[32], ede[32];
	bool has_http = false;

	assert_true(snprintf(http, sizeof(http), "HTTP %u", info->http_status) >
		    0);
	assert_true(snprintf(ede, sizeof(ede), "DNS extended error %u",
			     info->ede) > 0);
	line = str_make(line.p + 9, line.n - 10);	/* "Seen as: " and "." */
	while (str_cut(&line, ',', &part)) {
		part = str_trim(part);
		if (str_starts(part, STR("HTTP "))) {
			assert_true(str_eq(part, str_from(http)));
			has_http = true;
		} else if (str_starts(part, STR("DNS "))) {
			assert_true(str_eq(part, str_from(ede)));
		}
	}
	assert_int_equal(has_http, info->http_status != 0);
}

static void what_is_seen_is_what_the_table_says(void **state)
{
	struct buf doc = BUF_INIT(DOC_MAX);
	struct str rest, line, word;
	enum reason r = REASONS;
	unsigned checked = 0;

	(void)state;
	open_doc(&doc);
	rest = buf_str(&doc);
	while (str_cut(&rest, '\n', &line)) {
		if (is_heading(line, &word))
			r = reason_by_word(word);
		if (!str_starts(line, STR("Seen as: ")))
			continue;
		assert_true(r < REASONS);
		check_seen(r, line);
		checked++;
	}
	assert_true(checked > REASONS / 2);
	buf_done(&doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			every_reason_has_one_heading_and_no_heading_is_left),
		cmocka_unit_test(what_is_seen_is_what_the_table_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
