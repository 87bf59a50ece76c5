# SPDX-License-Identifier: Apache-2.0
# The way of the bytes: dialling, relaying, connections.
check_LIBRARIES += %D%/libproxylab.a
%C%_libproxylab_a_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(EVENT_CFLAGS)
%C%_libproxylab_a_SOURCES = %D%/proxy_lab.c %D%/proxy_lab.h

check_PROGRAMS += %D%/quota_test
TESTS += %D%/quota_test
%C%_quota_test_SOURCES = %D%/quota_test.c %D%/rules_kit.h
%C%_quota_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_quota_test_LDADD = proxy/libproxy.a rules/librules.a base/libbase.a \
	$(RULES_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += %D%/sched_test
TESTS += %D%/sched_test
%C%_sched_test_SOURCES = %D%/sched_test.c
%C%_sched_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(EVENT_CFLAGS)
%C%_sched_test_LDADD = proxy/libproxy.a base/libbase.a $(EVENT_LIBS) \
	$(BASE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += %D%/half_test
TESTS += %D%/half_test
%C%_half_test_SOURCES = %D%/half_test.c
%C%_half_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(EVENT_CFLAGS)
%C%_half_test_LDADD = tests/unit/libproxylab.a proxy/libproxy.a \
	rules/librules.a base/libbase.a $(RULES_LIBS) \
	$(EVENT_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += %D%/relay_test
TESTS += %D%/relay_test
%C%_relay_test_SOURCES = %D%/relay_test.c
%C%_relay_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(EVENT_CFLAGS)
%C%_relay_test_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=recv
%C%_relay_test_LDADD = tests/unit/libproxylab.a proxy/libproxy.a \
	rules/librules.a base/libbase.a $(RULES_LIBS) \
	$(EVENT_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += %D%/dial_test
TESTS += %D%/dial_test
%C%_dial_test_SOURCES = %D%/dial_test.c
%C%_dial_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(EVENT_CFLAGS)
%C%_dial_test_LDADD = tests/unit/libproxylab.a proxy/libproxy.a \
	resolver/libresolver.a rules/librules.a base/libbase.a $(RULES_LIBS) \
	$(EVENT_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += %D%/dial_marks_test
TESTS += %D%/dial_marks_test
%C%_dial_marks_test_SOURCES = %D%/dial_marks_test.c
%C%_dial_marks_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(EVENT_CFLAGS)
%C%_dial_marks_test_LDADD = tests/unit/libproxylab.a $(PROXY_TEST_LIBS)

check_PROGRAMS += %D%/marks_test
TESTS += %D%/marks_test
%C%_marks_test_SOURCES = %D%/marks_test.c
%C%_marks_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(EVENT_CFLAGS)
%C%_marks_test_LDADD = tests/unit/libproxylab.a proxy/libproxy.a \
	base/libbase.a $(EVENT_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += %D%/conn_test
TESTS += %D%/conn_test
%C%_conn_test_SOURCES = %D%/conn_test.c %D%/conn_kit.c %D%/conn_kit.h
%C%_conn_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(EVENT_CFLAGS)
%C%_conn_test_LDADD = tests/unit/libproxylab.a proxy/libproxy.a \
	resolver/libresolver.a audit/libaudit.a rules/librules.a \
	base/libbase.a $(PROXY_LIBS) $(RESOLVER_LIBS) $(AUDIT_LIBS) \
	$(RULES_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += %D%/conn_memory_test
TESTS += %D%/conn_memory_test
%C%_conn_memory_test_SOURCES = %D%/conn_memory_test.c %D%/conn_kit.c \
	%D%/conn_kit.h
%C%_conn_memory_test_CPPFLAGS = $(%C%_conn_test_CPPFLAGS)
%C%_conn_memory_test_LDADD = $(%C%_conn_test_LDADD)

check_PROGRAMS += %D%/conn_limits_test
TESTS += %D%/conn_limits_test
%C%_conn_limits_test_SOURCES = %D%/conn_limits_test.c %D%/conn_kit.c \
	%D%/conn_kit.h
%C%_conn_limits_test_CPPFLAGS = $(%C%_conn_test_CPPFLAGS)
%C%_conn_limits_test_LDADD = $(%C%_conn_test_LDADD)

check_PROGRAMS += %D%/conn_times_test
TESTS += %D%/conn_times_test
%C%_conn_times_test_SOURCES = %D%/conn_times_test.c %D%/conn_kit.c \
	%D%/conn_kit.h
%C%_conn_times_test_CPPFLAGS = $(%C%_conn_test_CPPFLAGS)
%C%_conn_times_test_LDADD = $(%C%_conn_test_LDADD)

check_PROGRAMS += %D%/conn_tunnels_test
TESTS += %D%/conn_tunnels_test
%C%_conn_tunnels_test_SOURCES = %D%/conn_tunnels_test.c %D%/conn_kit.c \
	%D%/conn_kit.h
%C%_conn_tunnels_test_CPPFLAGS = $(%C%_conn_test_CPPFLAGS)
%C%_conn_tunnels_test_LDADD = $(%C%_conn_test_LDADD)

check_PROGRAMS += %D%/fair_test
TESTS += %D%/fair_test
%C%_fair_test_SOURCES = %D%/fair_test.c %D%/conn_kit.c %D%/conn_kit.h
%C%_fair_test_CPPFLAGS = $(%C%_conn_test_CPPFLAGS)
%C%_fair_test_LDADD = $(%C%_conn_test_LDADD)

check_PROGRAMS += %D%/conn_names_test
TESTS += %D%/conn_names_test
%C%_conn_names_test_SOURCES = %D%/conn_names_test.c %D%/conn_kit.c %D%/conn_kit.h
%C%_conn_names_test_CPPFLAGS = $(%C%_conn_test_CPPFLAGS)
%C%_conn_names_test_LDADD = $(%C%_conn_test_LDADD)

check_PROGRAMS += %D%/conn_pool_test
TESTS += %D%/conn_pool_test
%C%_conn_pool_test_SOURCES = %D%/conn_pool_test.c %D%/conn_kit.c %D%/conn_kit.h
%C%_conn_pool_test_CPPFLAGS = $(%C%_conn_test_CPPFLAGS)
%C%_conn_pool_test_LDADD = $(%C%_conn_test_LDADD)

check_PROGRAMS += %D%/conn_http_test
TESTS += %D%/conn_http_test
%C%_conn_http_test_SOURCES = %D%/conn_http_test.c %D%/conn_kit.c %D%/conn_kit.h
%C%_conn_http_test_CPPFLAGS = $(%C%_conn_test_CPPFLAGS)
%C%_conn_http_test_LDADD = $(%C%_conn_test_LDADD)

check_PROGRAMS += %D%/conn_rejudge_test
TESTS += %D%/conn_rejudge_test
%C%_conn_rejudge_test_SOURCES = %D%/conn_rejudge_test.c %D%/conn_kit.c \
	%D%/conn_kit.h
%C%_conn_rejudge_test_CPPFLAGS = $(%C%_conn_test_CPPFLAGS)
%C%_conn_rejudge_test_LDADD = $(%C%_conn_test_LDADD)

check_PROGRAMS += %D%/conn_socks_test
TESTS += %D%/conn_socks_test
%C%_conn_socks_test_SOURCES = %D%/conn_socks_test.c %D%/conn_kit.c \
	%D%/conn_kit.h
%C%_conn_socks_test_CPPFLAGS = $(%C%_conn_test_CPPFLAGS)
%C%_conn_socks_test_LDADD = $(%C%_conn_test_LDADD)

check_PROGRAMS += %D%/conn_parent_test
TESTS += %D%/conn_parent_test
%C%_conn_parent_test_SOURCES = %D%/conn_parent_test.c %D%/conn_kit.c \
	%D%/conn_kit.h
%C%_conn_parent_test_CPPFLAGS = $(%C%_conn_test_CPPFLAGS)
%C%_conn_parent_test_LDADD = $(%C%_conn_test_LDADD)
