# SPDX-License-Identifier: Apache-2.0
# The daemon around the flows.
PROXY_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(EVENT_CFLAGS) \
	$(MNL_CFLAGS)
PROXY_TEST_LIBS = tests/unit/libpluglab.a tests/unit/libproxylab.a proxy/libproxy.a \
	resolver/libresolver.a audit/libaudit.a rules/librules.a base/libbase.a \
	$(PROXY_LIBS) $(RESOLVER_LIBS) $(AUDIT_LIBS) $(RULES_LIBS) $(BASE_LIBS) \
	$(CMOCKA_LIBS)
PROXY_TESTS = %D%/compiler_test %D%/policies_test %D%/broker_test %D%/config_test %D%/host_addrs_test \
	%D%/host_sock_test %D%/isolate_test %D%/listener_test %D%/nflog_test \
	%D%/own_doors_test %D%/strangers_test %D%/client_table_test \
	%D%/plug_check_test %D%/plug_test \
	%D%/plug_users_test %D%/worker_test
check_PROGRAMS += $(PROXY_TESTS)
check_LIBRARIES += %D%/libpluglab.a
%C%_libpluglab_a_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_libpluglab_a_SOURCES = %D%/plug_lab.c %D%/plug_lab.h

TESTS += $(PROXY_TESTS) %D%/penstockd_test.py
EXTRA_DIST += %D%/penstockd_test.py

%C%_compiler_test_SOURCES = %D%/compiler_test.c
%C%_compiler_test_CPPFLAGS = $(PROXY_TEST_CPPFLAGS)
%C%_compiler_test_LDADD = $(PROXY_TEST_LIBS)
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
%C%_plug_check_test_SOURCES = %D%/plug_check_test.c
%C%_plug_check_test_CPPFLAGS = $(PROXY_TEST_CPPFLAGS)
%C%_plug_check_test_LDADD = $(PROXY_TEST_LIBS)
%C%_listener_test_SOURCES = %D%/listener_test.c
%C%_listener_test_CPPFLAGS = $(PROXY_TEST_CPPFLAGS)
%C%_listener_test_LDADD = $(PROXY_TEST_LIBS)
%C%_nflog_test_SOURCES = %D%/nflog_test.c
%C%_nflog_test_CPPFLAGS = $(PROXY_TEST_CPPFLAGS)
%C%_nflog_test_LDADD = $(PROXY_TEST_LIBS)
%C%_plug_test_SOURCES = %D%/plug_test.c
%C%_plug_test_CPPFLAGS = $(PROXY_TEST_CPPFLAGS)
%C%_plug_test_LDADD = $(PROXY_TEST_LIBS)
%C%_plug_users_test_SOURCES = %D%/plug_users_test.c
%C%_plug_users_test_CPPFLAGS = $(PROXY_TEST_CPPFLAGS)
%C%_plug_users_test_LDADD = $(PROXY_TEST_LIBS)
%C%_policies_test_SOURCES = %D%/policies_test.c
%C%_policies_test_CPPFLAGS = $(PROXY_TEST_CPPFLAGS)
%C%_policies_test_LDADD = $(PROXY_TEST_LIBS)
%C%_host_sock_test_SOURCES = %D%/host_sock_test.c
%C%_host_sock_test_CPPFLAGS = $(PROXY_TEST_CPPFLAGS)
%C%_host_sock_test_LDADD = $(PROXY_TEST_LIBS)
%C%_own_doors_test_SOURCES = %D%/own_doors_test.c
%C%_own_doors_test_CPPFLAGS = $(PROXY_TEST_CPPFLAGS)
%C%_own_doors_test_LDADD = $(PROXY_TEST_LIBS)
%C%_client_table_test_SOURCES = %D%/client_table_test.c
%C%_client_table_test_CPPFLAGS = $(PROXY_TEST_CPPFLAGS)
%C%_client_table_test_LDADD = $(PROXY_TEST_LIBS)

%C%_strangers_test_SOURCES = %D%/strangers_test.c
%C%_strangers_test_CPPFLAGS = $(PROXY_TEST_CPPFLAGS)
%C%_strangers_test_LDADD = $(PROXY_TEST_LIBS)

check_PROGRAMS += %D%/handover_test
TESTS += %D%/handover_test
%C%_handover_test_SOURCES = %D%/handover_test.c %D%/rules_kit.h
%C%_handover_test_CPPFLAGS = $(PROXY_TEST_CPPFLAGS)
%C%_handover_test_LDADD = $(PROXY_TEST_LIBS)
