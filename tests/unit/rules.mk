# SPDX-License-Identifier: Apache-2.0
RULES_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
RULES_TEST_LDADD = rules/librules.a base/libbase.a $(RULES_LIBS) $(BASE_LIBS) \
	$(CMOCKA_LIBS)

check_PROGRAMS += %D%/host_name_test
TESTS += %D%/host_name_test
%C%_host_name_test_SOURCES = %D%/host_name_test.c
%C%_host_name_test_CPPFLAGS = $(RULES_TEST_CPPFLAGS)
%C%_host_name_test_LDADD = $(RULES_TEST_LDADD)
