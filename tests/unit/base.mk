# SPDX-License-Identifier: Apache-2.0
check_PROGRAMS += %D%/str_test
TESTS += %D%/str_test
%C%_str_test_SOURCES = %D%/str_test.c
%C%_str_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_str_test_LDADD = base/libbase.a $(BASE_LIBS) $(CMOCKA_LIBS)
