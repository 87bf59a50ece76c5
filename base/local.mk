# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += %D%/libbase.a
%C%_libbase_a_CPPFLAGS = $(AM_CPPFLAGS) $(INIH_CFLAGS) $(SECCOMP_CFLAGS)
%C%_libbase_a_SOURCES = \
	%D%/compiler.h %D%/list.h \
	%D%/str.c %D%/str.h

BASE_LIBS = $(INIH_LIBS) $(SECCOMP_LIBS)
EXTRA_DIST += %D%/README.md
