/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock_test.c - time and its text
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"

static void assert_text(int64_t us, const char *want)
{
	char text[CLOCK_RFC3339_SIZE];

	clock_rfc3339(us, text);
	assert_string_equal(text, want);
}

static void time_is_written_as_rfc_3339_in_utc(void **state)
{
	(void)state;
	assert_text(0, "1970-01-01T00:00:00.000000Z");
	assert_text(1709251199999999, "2024-02-29T23:59:59.999999Z");
	assert_text(1795995067412345, "2026-11-29T23:31:07.412345Z");
	assert_text(253402300799999999, "9999-12-31T23:59:59.999999Z");
}

/* Another calendar says the same of each day for 600 years, and at the end. */
static void every_day_has_the_date_of_the_calendar(void **state)
{
	char want[CLOCK_RFC3339_SIZE];

	(void)state;
	for (int64_t day = 0; day < 2932897; day++) {
		struct tm tm;
		time_t s;

		if (day == 600 * 366)
			day = 2932897 - 600 * 366;
		s = (time_t)(day * 86400 + day % 86400);
		assert_non_null(gmtime_r(&s, &tm));
		assert_int_equal(strftime(want, sizeof(want),
					  "%Y-%m-%dT%H:%M:%S.000000Z", &tm),
				 CLOCK_RFC3339_SIZE - 1);
		assert_text((int64_t)s * 1000000, want);
	}
}

static void time_that_has_no_text_is_bounded(void **state)
{
	(void)state;
	assert_text(-1, "1970-01-01T00:00:00.000000Z");
	assert_text(INT64_MIN, "1970-01-01T00:00:00.000000Z");
	assert_text(INT64_MAX, "9999-12-31T23:59:59.999999Z");
}

static void a_frozen_clock_stands_until_it_is_thawed(void **state)
{
	(void)state;
	clock_test_set_ms(42);
	assert_int_equal(clock_mono_ms(), 42);
	assert_int_equal(clock_mono_us(), 42000);
	assert_int_equal(clock_wall_us(), 42000);
	clock_test_set_ms(43);
	assert_int_equal(clock_mono_ms(), 43);
	clock_test_set_ms(-1);
	/* Any real clock is long past the year 2001. */
	assert_true(clock_wall_us() > 1000000000000000);
}

static void the_monotonic_clock_never_goes_back(void **state)
{
	int64_t last = clock_mono_us();

	(void)state;
	for (int i = 0; i < 1000; i++) {
		int64_t now = clock_mono_us();

		assert_true(now >= last);
		last = now;
	}
}

/* RFC 9110 5.6.7, and a leap day. */
static void the_date_of_http_is_written_in_full(void **state)
{
	static const struct { int64_t s; const char *text; } cases[] = {
		{ 0, "Thu, 01 Jan 1970 00:00:00 GMT" },
		{ 784111777, "Sun, 06 Nov 1994 08:49:37 GMT" },
		{ 1709251199, "Thu, 29 Feb 2024 23:59:59 GMT" },
		{ -5, "Thu, 01 Jan 1970 00:00:00 GMT" },
		{ INT64_MAX, "Fri, 31 Dec 9999 23:59:59 GMT" },
	};
	char out[CLOCK_IMF_SIZE];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		clock_imf(cases[i].s, out);
		assert_string_equal(out, cases[i].text);
	}
}

static void the_date_of_now_is_written_anew_when_its_second_is_over(
	void **state)
{
	const char *now;

	(void)state;
	clock_test_set_ms(784111777000);
	now = clock_imf_now();
	assert_string_equal(now, "Sun, 06 Nov 1994 08:49:37 GMT");
	clock_test_set_ms(784111777999);
	assert_string_equal(clock_imf_now(), "Sun, 06 Nov 1994 08:49:37 GMT");
	clock_test_set_ms(784111778000);
	assert_ptr_equal(clock_imf_now(), now);
	assert_string_equal(now, "Sun, 06 Nov 1994 08:49:38 GMT");
	/* A clock that is set back is followed. */
	clock_test_set_ms(0);
	assert_string_equal(clock_imf_now(), "Thu, 01 Jan 1970 00:00:00 GMT");
	clock_test_set_ms(-1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_is_written_as_rfc_3339_in_utc),
		cmocka_unit_test(the_date_of_http_is_written_in_full),
		cmocka_unit_test(
			the_date_of_now_is_written_anew_when_its_second_is_over),
		cmocka_unit_test(every_day_has_the_date_of_the_calendar),
		cmocka_unit_test(time_that_has_no_text_is_bounded),
		cmocka_unit_test(a_frozen_clock_stands_until_it_is_thawed),
		cmocka_unit_test(the_monotonic_clock_never_goes_back),
	};

	return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
