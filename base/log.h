/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h - the operational log: what the operator of the process should read
 *
 * Lines go to stderr with the program's name, or with a "<n>" journald prefix
 * when the process runs under systemd (JOURNAL_STREAM).  Bytes from outside
 * are escaped (control bytes, DEL, non-ASCII as \xNN), a line is cut at
 * LOG_LINE_MAX.  It is not the audit record: that is audit/record.h.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>

#include "base/compiler.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG, LOG_LEVELS };

#define LOG_LINE_MAX	1024

void log_init(const char *program, enum log_level level);
void log_set_level(enum log_level level);
bool log_wants(enum log_level level);
void log_line(enum log_level level, const char *fmt, ...) PRINTF(2, 3);

#define log_error(...)	log_line(LOG_ERROR, __VA_ARGS__)
#define log_warn(...)	log_line(LOG_WARN, __VA_ARGS__)
#define log_info(...)	log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...) \
	do { \
		if (log_wants(LOG_DEBUG)) \
			log_line(LOG_DEBUG, __VA_ARGS__); \
	} while (0)

/* Every line there as well; -1: no longer. */
void log_copy_to(int fd);
/* Does standard error lead to the journal? */
bool log_is_journal(void);

#endif /* BASE_LOG_H */
