# SPDX-License-Identifier: Apache-2.0
# The daemon around the flows.
PROXY_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(EVENT_CFLAGS) \
	$(MNL_CFLAGS)
PROXY_TEST_LIBS = tests/unit/libproxylab.a proxy/libproxy.a \
	resolver/libresolver.a audit/libaudit.a rules/librules.a base/libbase.a \
	$(PROXY_LIBS) $(RESOLVER_LIBS) $(AUDIT_LIBS) $(RULES_LIBS) $(BASE_LIBS) \
	$(CMOCKA_LIBS)
PROXY_TESTS = %D%/broker_test %D%/config_test %D%/host_addrs_test \
	%D%/isolate_test \
	%D%/worker_test
check_PROGRAMS += $(PROXY_TESTS)
TESTS += $(PROXY_TESTS)

%C%_broker_test_SOURCES = %D%/broker_test.c
%C%_broker_test_CPPFLAGS = $(PROXY_TEST_CPPFLAGS)
%C%_broker_test_LDADD = $(PROXY_TEST_LIBS)
%C%_config_test_SOURCES = %D%/config_test.c
%C%_config_test_CPPFLAGS = $(PROXY_TEST_CPPFLAGS)
%C%_config_test_LDADD = $(PROXY_TEST_LIBS)
%C%_host_addrs_test_SOURCES = %D%/host_addrs_test.c
%C%_host_addrs_test_CPPFLAGS = $(PROXY_TEST_CPPFLAGS)
%C%_host_addrs_test_LDADD = $(PROXY_TEST_LIBS)
%C%_isolate_test_SOURCES = %D%/isolate_test.c
%C%_isolate_test_CPPFLAGS = $(PROXY_TEST_CPPFLAGS)
%C%_isolate_test_LDADD = $(PROXY_TEST_LIBS)
%C%_worker_test_SOURCES = %D%/worker_test.c
%C%_worker_test_CPPFLAGS = $(PROXY_TEST_CPPFLAGS)
%C%_worker_test_LDADD = $(PROXY_TEST_LIBS)
