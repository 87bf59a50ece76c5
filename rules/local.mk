# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += %D%/librules.a
%C%_librules_a_CPPFLAGS = $(AM_CPPFLAGS) $(MD_CFLAGS)
%C%_librules_a_SOURCES = \
	%D%/host_name.c %D%/host_name.h

RULES_LIBS = $(MD_LIBS)
EXTRA_DIST += %D%/README.md
