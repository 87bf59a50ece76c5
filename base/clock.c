/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.c - time, replaceable by tests
 */
#include "base/clock.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"

#define DAY_S		86400
#define DAYS_400_YEARS	146097
#define DAYS_TO_1970	719468	/* from the first of March of the year 0 */
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

struct date {
	uint32_t year, month, day;
};

/*
 * The day that is @days behind the first of 1970, in the Gregorian calendar.
 * Years are counted from March, so that the leap day is the last of its year;
 * months from March on then begin at the days (153 * month + 2) / 5.
 */
static struct date date_of(uint32_t days)
{
	uint32_t since = days + DAYS_TO_1970;
	uint32_t era = since / DAYS_400_YEARS, day = since % DAYS_400_YEARS;
	uint32_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
	uint32_t month;

	day -= 365 * year + year / 4 - year / 100;
	month = (5 * day + 2) / 153;
	return (struct date){
		.year = era * 400 + year + (month >= 10),
		.month = month < 10 ? month + 3 : month - 9,
		.day = day - (153 * month + 2) / 5 + 1,
	};
}

static void put_digits(char *out, uint32_t v, unsigned n)
{
	while (n-- > 0) {
		out[n] = (char)('0' + v % 10);
		v /= 10;
	}
}

void clock_rfc3339(int64_t wall_us, char out[CLOCK_RFC3339_SIZE])
{
	/* RFC 3339 has four digits for the year and no sign. */
	uint64_t us = (uint64_t)MIN(MAX(wall_us, 0), WALL_US_MAX);
	uint32_t s = (uint32_t)(us / 1000000 % DAY_S);
	struct date date = date_of((uint32_t)(us / 1000000 / DAY_S));

	put_digits(out, date.year, 4);
	put_digits(out + 5, date.month, 2);
	put_digits(out + 8, date.day, 2);
	put_digits(out + 11, s / 3600, 2);
	put_digits(out + 14, s / 60 % 60, 2);
	put_digits(out + 17, s % 60, 2);
	put_digits(out + 20, (uint32_t)(us % 1000000), 6);
	out[4] = out[7] = '-';
	out[10] = 'T';
	out[13] = out[16] = ':';
	out[19] = '.';
	out[26] = 'Z';
	out[27] = '\0';
}

void clock_imf(int64_t wall_s, char out[CLOCK_IMF_SIZE])
{
	static const char days[] = "ThuFriSatSunMonTueWed";
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	uint64_t at = (uint64_t)MIN(MAX(wall_s, 0), WALL_US_MAX / 1000000);
	uint32_t day = (uint32_t)(at / DAY_S), s = (uint32_t)(at % DAY_S);
	struct date date = date_of(day);

	memcpy(out, "ddd, dd mmm yyyy hh:mm:ss GMT", CLOCK_IMF_SIZE);
	memcpy(out, days + 3 * (day % 7), 3);
	put_digits(out + 5, date.day, 2);
	memcpy(out + 8, months + 3 * (date.month - 1), 3);
	put_digits(out + 12, date.year, 4);
	put_digits(out + 17, s / 3600, 2);
	put_digits(out + 20, s / 60 % 60, 2);
	put_digits(out + 23, s % 60, 2);
}

const char *clock_imf_now(void)
{
	static _Thread_local char text[CLOCK_IMF_SIZE];
	static _Thread_local int64_t written_s = -1;
	int64_t now = clock_wall_s();

	if (now != written_s) {
		clock_imf(now, text);
		written_s = now;
	}
	return text;
}
