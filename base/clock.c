/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.c - time, replaceable by tests
 */
#include "base/clock.h"

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "base/compiler.h"

#define WALL_US_MAX	INT64_C(253402300799999999)	/* end of year 9999 */

static _Atomic int64_t frozen_ms = -1;

void clock_test_set_ms(int64_t ms)
{
	atomic_store(&frozen_ms, ms < 0 ? -1 : ms);
}

static int64_t read_us(clockid_t which)
{
	int64_t ms = atomic_load_explicit(&frozen_ms, memory_order_relaxed);
	struct timespec ts;

	if (ms >= 0)
		return ms * 1000;
	REQUIRE(clock_gettime(which, &ts) == 0);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t clock_mono_us(void)
{
	return read_us(CLOCK_MONOTONIC);
}

int64_t clock_mono_ms(void)
{
	return clock_mono_us() / 1000;
}

int64_t clock_wall_us(void)
{
	return read_us(CLOCK_REALTIME);
}

void clock_rfc3339(int64_t wall_us, char out[CLOCK_RFC3339_SIZE])
{
	/* RFC 3339 has four digits for the year and no sign. */
	int64_t us = MIN(MAX(wall_us, 0), WALL_US_MAX);
	time_t s = (time_t)(us / 1000000);
	struct tm tm;
	int n;

	REQUIRE(gmtime_r(&s, &tm) != NULL);
	/* The remainders say to the compiler what gmtime_r() promises. */
	n = snprintf(out, CLOCK_RFC3339_SIZE,
		     "%04u-%02u-%02uT%02u:%02u:%02u.%06uZ",
		     (unsigned)(tm.tm_year + 1900) % 10000u,
		     (unsigned)(tm.tm_mon + 1) % 100u,
		     (unsigned)tm.tm_mday % 100u, (unsigned)tm.tm_hour % 100u,
		     (unsigned)tm.tm_min % 100u, (unsigned)tm.tm_sec % 100u,
		     (unsigned)(us % 1000000));
	REQUIRE(n == CLOCK_RFC3339_SIZE - 1);
}
