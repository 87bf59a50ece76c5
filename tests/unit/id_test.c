/* SPDX-License-Identifier: Apache-2.0 */
/*
 * id_test.c - identifiers and random bytes
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/id.h"

#define EPOCH_MS	INT64_C(1700000000123)

static void an_id_is_a_version_7_uuid_of_its_time(void **state)
{
	char text[ID_TEXT_SIZE];
	struct id id;

	(void)state;
	clock_test_set_ms(EPOCH_MS);
	id_new(&id);
	clock_test_set_ms(-1);
	id_text(&id, text);
	assert_int_equal(strlen(text), 36);
	/* 1700000000123 is 0x018bcfe5687b */
	assert_memory_equal(text, "018bcfe5-687b-7", 15);
	for (size_t i = 0; i < 36; i++) {
		if (i == 8 || i == 13 || i == 18 || i == 23)
			assert_int_equal(text[i], '-');
		else
			assert_non_null(strchr("0123456789abcdef", text[i]));
	}
	assert_non_null(strchr("89ab", text[19]));
}

static void ids_of_a_thread_are_in_strict_order(void **state)
{
	struct id last, now;

	(void)state;
	clock_test_set_ms(EPOCH_MS + 60000);
	id_new(&last);
	/* More than the twelve bits of the fraction, in one instant. */
	for (int i = 0; i < 10000; i++) {
		if (i == 5000)
			clock_test_set_ms(EPOCH_MS + 55000);
		id_new(&now);
		assert_true(memcmp(now.b, last.b, 8) > 0);
		last = now;
	}
	clock_test_set_ms(-1);
}

static void a_clock_that_was_set_back_far_is_followed(void **state)
{
	struct id id;
	char text[ID_TEXT_SIZE];

	(void)state;
	clock_test_set_ms(EPOCH_MS + 3600000);
	id_new(&id);
	clock_test_set_ms(EPOCH_MS);
	id_new(&id);
	clock_test_set_ms(-1);
	id_text(&id, text);
	assert_memory_equal(text, "018bcfe5-687b-7", 15);
}

static bool same_random(const struct id *a, const struct id *b)
{
	return memcmp(a->b + 8, b->b + 8, 8) == 0;
}

static void a_forked_process_never_makes_its_parents_ids(void **state)
{
	struct id mine, *child;
	int status;
	long pid;

	(void)state;
	child = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(child != MAP_FAILED);
	id_new(&mine);
	/* Bare clone(2), as the launcher uses it: no handler of libc runs. */
	pid = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid == 0) {
		id_new(child);
		_exit(0);
	}
	assert_true(pid > 0);
	id_new(&mine);
	assert_int_equal(waitpid((pid_t)pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(child->b[6] >> 4, 7);
	assert_false(same_random(&mine, child));
	munmap(child, 4096);
}

static void random_hex_has_two_digits_a_byte(void **state)
{
	char a[2 * 33 + 2], b[2 * 33 + 2];

	(void)state;
	memset(a, '#', sizeof(a));
	id_random_hex(a, 33);
	assert_int_equal(strlen(a), 66);
	assert_int_equal(strspn(a, "0123456789abcdef"), 66);
	assert_int_equal(a[67], '#');
	id_random_hex(b, 33);
	assert_string_not_equal(a, b);
	id_random_hex(a, 0);
	assert_string_equal(a, "");
}

static void random_bytes_fill_all_they_are_asked_for(void **state)
{
	uint8_t b[2000] = { 0 };
	unsigned zeros = 0;

	(void)state;
	random_bytes(b, sizeof(b) - 1);
	for (size_t i = 0; i < sizeof(b) - 1; i++)
		zeros += b[i] == 0;
	/* 8 are to be expected; 100 happen less than once in 2^200 runs. */
	assert_true(zeros < 100);
	assert_int_equal(b[sizeof(b) - 1], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_id_is_a_version_7_uuid_of_its_time),
		cmocka_unit_test(ids_of_a_thread_are_in_strict_order),
		cmocka_unit_test(a_clock_that_was_set_back_far_is_followed),
		cmocka_unit_test(a_forked_process_never_makes_its_parents_ids),
		cmocka_unit_test(random_hex_has_two_digits_a_byte),
		cmocka_unit_test(random_bytes_fill_all_they_are_asked_for),
	};

	return cmocka_run_group_tests_name("id", tests, NULL, NULL);
}
