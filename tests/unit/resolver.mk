# SPDX-License-Identifier: Apache-2.0
RESOLVER_TEST_LIBS = resolver/libresolver.a base/libbase.a \
	$(RESOLVER_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
RESOLVER_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(CMOCKA_CFLAGS)

check_PROGRAMS += %D%/dns_msg_test
TESTS += %D%/dns_msg_test
%C%_dns_msg_test_SOURCES = %D%/dns_msg_test.c
%C%_dns_msg_test_CPPFLAGS = $(RESOLVER_TEST_CPPFLAGS)
%C%_dns_msg_test_LDADD = $(RESOLVER_TEST_LIBS)
