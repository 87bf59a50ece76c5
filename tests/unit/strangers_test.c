/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strangers_test.c - what others than clients do costs a bounded number of records
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/fd.h"
#include "proxy/sandbox.h"
#include "proxy/strangers.h"
#include "proxy/worker.h"

#define FLUSH_MS	5000

static struct lab {
	struct worker *worker;
	struct audit_writer *writer;
	struct sandbox s;
	struct strangers *st;
	struct buf text;
	int records;
} lab;

static int open_lab(void **state)
{
	static const struct record_labels labels = { .run = "r1" };

	(void)state;
	lab = (struct lab){ .text = BUF_INIT(1u << 20) };
	assert_int_equal(worker_new(0, &lab.worker), 0);
	assert_int_equal(audit_writer_new(&lab.writer), 0);
	lab.records = memfd_create("records", MFD_CLOEXEC);
	assert_true(lab.records >= 0);
	assert_int_equal(audit_sink_new(lab.writer, dup(lab.records), &labels,
					&lab.s.sink), 0);
	lab.s.worker = lab.worker;
	assert_int_equal(strangers_new(&lab.s, REASON_CLIENT_NOT_ALLOWED,
				       &lab.st), 0);
	return 0;
}

static int close_lab(void **state)
{
	(void)state;
	strangers_free(lab.st);
	audit_sink_free(lab.s.sink);
	audit_writer_free(lab.writer, FLUSH_MS);
	worker_free(lab.worker);
	buf_done(&lab.text);
	close(lab.records);
	return 0;
}

static void note(const char *from, unsigned times, bool tcp)
{
	struct ip_endpoint src, at;

	assert_int_equal(ip_endpoint_parse(str_from(from), 0, &src), 0);
	assert_int_equal(ip_endpoint_parse(STR("192.0.2.1:3128"), 0, &at), 0);
	while (times-- > 0)
		strangers_note(lab.st, &src, &at, tcp);
}

/* Everything that was written, and how many lines that is. */
static unsigned lines(void)
{
	unsigned n = 0;
	size_t i;

	assert_int_equal(audit_sink_flush(lab.s.sink, FLUSH_MS), 0);
	buf_consume(&lab.text, lab.text.n);
	assert_int_equal(lseek(lab.records, 0, SEEK_SET), 0);
	assert_int_equal(fd_read_all(lab.records, &lab.text), 0);
	for (i = 0; i < lab.text.n; i++)
		n += lab.text.p[i] == '\n';
	assert_int_equal(buf_add_char(&lab.text, '\0'), 0);
	return n;
}

static void the_first_of_each_is_told_at_once_and_the_rest_together(
	void **state)
{
	(void)state;
	note("192.0.2.70:1000", 500, true);
	note("[::ffff:192.0.2.70]:2000", 1, true);
	note("[2001:db8::70]:1000", 1, true);
	note("192.0.2.70:1000", 3, false);
	assert_int_equal(lines(), 3);
	assert_non_null(strstr(lab.text.p, "\"client_not_allowed\""));
	assert_non_null(strstr(lab.text.p, "\"src\":\"192.0.2.70:1000\""));
	assert_non_null(strstr(lab.text.p, "\"transport\":\"udp\""));
	assert_null(strstr(lab.text.p, "\"count\""));
	strangers_free(lab.st);
	lab.st = NULL;
	/* The mapped one is the same; who came once has nothing left to tell. */
	assert_int_equal(lines(), 5);
	assert_non_null(strstr(lab.text.p, "\"count\":500"));
	assert_non_null(strstr(lab.text.p, "\"count\":2"));
}

static void any_number_of_addresses_costs_a_bounded_number_of_records(
	void **state)
{
	char from[32];
	unsigned i;

	(void)state;
	for (i = 0; i < 20000; i++) {
		assert_true(snprintf(from, sizeof(from), "10.0.%u.%u:1",
				     i / 250, i % 250) > 0);
		note(from, 1, false);
	}
	assert_int_equal(lines(), STRANGERS_MAX);
	strangers_free(lab.st);
	lab.st = NULL;
	assert_int_equal(lines(), STRANGERS_MAX + 1);
	assert_non_null(strstr(lab.text.p, "\"count\":19936"));
}

#define IN_LAB(f)	cmocka_unit_test_setup_teardown(f, open_lab, close_lab)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_LAB(the_first_of_each_is_told_at_once_and_the_rest_together),
		IN_LAB(any_number_of_addresses_costs_a_bounded_number_of_records),
	};

	return cmocka_run_group_tests_name("strangers", tests, NULL, NULL);
}
