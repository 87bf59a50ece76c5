# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += %D%/libbase.a
%C%_libbase_a_CPPFLAGS = $(AM_CPPFLAGS) $(INIH_CFLAGS) $(SECCOMP_CFLAGS)
%C%_libbase_a_SOURCES = \
	%D%/buf.c %D%/buf.h \
	%D%/clock.c %D%/clock.h \
	%D%/compiler.h \
	%D%/fd.c %D%/fd.h \
	%D%/files.c %D%/files.h \
	%D%/hash.c %D%/hash.h \
	%D%/id.c %D%/id.h \
	%D%/ini.c %D%/ini.h \
	%D%/ip_addr.c %D%/ip_addr.h \
	%D%/ip_class.c %D%/ip_class.h \
	%D%/json.c %D%/json.h \
	%D%/list.h \
	%D%/log.c %D%/log.h \
	%D%/mem.c %D%/mem.h \
	%D%/mem_account.c %D%/mem_account.h \
	%D%/reason.c %D%/reason.h \
	%D%/seccomp.c %D%/seccomp.h \
	%D%/str.c %D%/str.h \
	%D%/utf8.c %D%/utf8.h

BASE_LIBS = $(INIH_LIBS) $(SECCOMP_LIBS)
EXTRA_DIST += %D%/README.md
