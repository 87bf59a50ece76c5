/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_time.c - when a rule ends: RFC 3339, and nothing that is nearly it
 *
 * "2027-06-30", "2027-06-30T18:00:00Z", "2027-06-30t18:00:00.25+02:00".  A time
 * without a zone is refused: the reader's and the machine's need not be one.
 */
#include <errno.h>

#include "rules/rules_value.h"

#define DAY_S	86400

static int refuse(const char **ret_why, const char *why)
{
	*ret_why = why;
	return -EINVAL;
}

static bool skip(struct str *rest, char c)
{
	if (str_empty(*rest) || rest->p[0] != c)
		return false;
	*rest = str_make(rest->p + 1, rest->n - 1);
	return true;
}

/* Exactly @digits of them, from @least to @most. */
static bool number(struct str *rest, size_t digits, int least, int most,
		   int *ret)
{
	int value = 0;

	if (rest->n < digits)
		return false;
	for (size_t i = 0; i < digits; i++) {
		if (!ascii_is_digit(rest->p[i]))
			return false;
		value = 10 * value + (rest->p[i] - '0');
	}
	*rest = str_make(rest->p + digits, rest->n - digits);
	*ret = value;
	return value >= least && value <= most;
}

static bool is_leap(int year)
{
	return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int days_in(int year, int month)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30,
				    31 };

	return days[month - 1] + (month == 2 && is_leap(year));
}

/* Days since the epoch. */
static bool date(struct str *rest, int64_t *ret)
{
	int year, month, day;
	int64_t days = 0;

	if (!number(rest, 4, 1970, 9999, &year) || !skip(rest, '-') ||
	    !number(rest, 2, 1, 12, &month) || !skip(rest, '-') ||
	    !number(rest, 2, 1, days_in(year, month), &day))
		return false;
	for (int y = 1970; y < year; y++)
		days += 365 + is_leap(y);
	for (int m = 1; m < month; m++)
		days += days_in(year, m);
	*ret = days + day - 1;
	return true;
}

static bool time_of_day(struct str *rest, int64_t *ret)
{
	int hour, minute, second;

	/* 60 is a leap second (RFC 3339 5.6); the clock has none. */
	if (!number(rest, 2, 0, 23, &hour) || !skip(rest, ':') ||
	    !number(rest, 2, 0, 59, &minute) || !skip(rest, ':') ||
	    !number(rest, 2, 0, 60, &second))
		return false;
	if (skip(rest, '.')) {
		if (str_empty(*rest) || !ascii_is_digit(rest->p[0]))
			return false;
		while (!str_empty(*rest) && ascii_is_digit(rest->p[0]))
			skip(rest, rest->p[0]);
	}
	*ret = 3600 * hour + 60 * minute + MIN(second, 59);
	return true;
}

/* Seconds that the zone is ahead of UTC. */
static bool zone(struct str *rest, int64_t *ret)
{
	int hours, minutes;
	bool behind;

	*ret = 0;
	if (skip(rest, 'Z') || skip(rest, 'z'))
		return true;
	behind = skip(rest, '-');
	if (!behind && !skip(rest, '+'))
		return false;
	if (!number(rest, 2, 0, 23, &hours) || !skip(rest, ':') ||
	    !number(rest, 2, 0, 59, &minutes))
		return false;
	*ret = (behind ? -1 : 1) * (3600 * hours + 60 * minutes);
	return true;
}

int rules_time_parse(struct str word, int64_t *ret, const char **ret_why)
{
	static const char form[] = "is no time; write a date (2027-06-30) or a "
		"date with time and zone (2027-06-30T18:00:00Z)";
	int64_t days, seconds = 0, ahead = 0;

	if (!date(&word, &days))
		return refuse(ret_why, form);
	if (!str_empty(word)) {
		if (!skip(&word, 'T') && !skip(&word, 't'))
			return refuse(ret_why, form);
		if (!time_of_day(&word, &seconds))
			return refuse(ret_why, form);
		if (str_empty(word))
			return refuse(ret_why, "has no zone; write 'Z' behind "
				      "it for UTC, or +HH:MM");
		if (!zone(&word, &ahead) || !str_empty(word))
			return refuse(ret_why, form);
	}
	*ret = days * DAY_S + seconds - ahead;
	return 0;
}
