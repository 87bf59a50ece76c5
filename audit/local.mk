# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += %D%/libaudit.a
%C%_libaudit_a_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
%C%_libaudit_a_SOURCES = \
	%D%/dest.c %D%/dest.h \
	%D%/query.c %D%/query.h %D%/query_policy.c \
	%D%/record.c %D%/record.h \
	%D%/relay.c %D%/relay.h \
	%D%/sink.c %D%/sink.h %D%/sink_drain.c \
	%D%/writer.c %D%/writer.h

AUDIT_LIBS = $(JANSSON_LIBS) -lpthread
dist_man_MANS += %D%/penstock-audit.5
EXTRA_DIST += %D%/README.md
