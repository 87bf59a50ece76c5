# SPDX-License-Identifier: Apache-2.0
RESOLVER_TEST_LIBS = resolver/libresolver.a base/libbase.a \
	$(RESOLVER_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
RESOLVER_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS) $(CMOCKA_CFLAGS)

check_PROGRAMS += %D%/dns_msg_test
TESTS += %D%/dns_msg_test
%C%_dns_msg_test_SOURCES = %D%/dns_msg_test.c
%C%_dns_msg_test_CPPFLAGS = $(RESOLVER_TEST_CPPFLAGS)
%C%_dns_msg_test_LDADD = $(RESOLVER_TEST_LIBS)

check_PROGRAMS += %D%/dns_rdata_test
TESTS += %D%/dns_rdata_test
%C%_dns_rdata_test_SOURCES = %D%/dns_rdata_test.c
%C%_dns_rdata_test_CPPFLAGS = $(RESOLVER_TEST_CPPFLAGS)
%C%_dns_rdata_test_LDADD = $(RESOLVER_TEST_LIBS)

check_PROGRAMS += %D%/name_map_test
TESTS += %D%/name_map_test
%C%_name_map_test_SOURCES = %D%/name_map_test.c
%C%_name_map_test_CPPFLAGS = $(RESOLVER_TEST_CPPFLAGS)
%C%_name_map_test_LDADD = $(RESOLVER_TEST_LIBS)

check_PROGRAMS += %D%/name_pins_test
TESTS += %D%/name_pins_test
%C%_name_pins_test_SOURCES = %D%/name_pins_test.c
%C%_name_pins_test_CPPFLAGS = $(RESOLVER_TEST_CPPFLAGS)
%C%_name_pins_test_LDADD = $(RESOLVER_TEST_LIBS)

check_PROGRAMS += %D%/dns_cache_test
TESTS += %D%/dns_cache_test
%C%_dns_cache_test_SOURCES = %D%/dns_cache_test.c
%C%_dns_cache_test_CPPFLAGS = $(RESOLVER_TEST_CPPFLAGS)
%C%_dns_cache_test_LDADD = $(RESOLVER_TEST_LIBS)

check_PROGRAMS += %D%/dns_servers_test
TESTS += %D%/dns_servers_test
%C%_dns_servers_test_SOURCES = %D%/dns_servers_test.c
%C%_dns_servers_test_CPPFLAGS = $(RESOLVER_TEST_CPPFLAGS)
%C%_dns_servers_test_LDADD = $(RESOLVER_TEST_LIBS)

check_PROGRAMS += %D%/dns_budget_test
TESTS += %D%/dns_budget_test
%C%_dns_budget_test_SOURCES = %D%/dns_budget_test.c %D%/rules_kit.h
%C%_dns_budget_test_CPPFLAGS = $(RESOLVER_TEST_CPPFLAGS)
%C%_dns_budget_test_LDADD = $(DOOR_TEST_LIBS)

RESOLVER_TEST_KIT = %D%/resolver_kit.c %D%/resolver_kit.h \
	%D%/dns_lab.c %D%/dns_lab.h

check_PROGRAMS += %D%/resolver_test
TESTS += %D%/resolver_test
%C%_resolver_test_SOURCES = %D%/resolver_test.c $(RESOLVER_TEST_KIT)
%C%_resolver_test_CPPFLAGS = $(RESOLVER_TEST_CPPFLAGS)
%C%_resolver_test_LDADD = $(DOOR_TEST_LIBS)

check_PROGRAMS += %D%/rules_dns_test
TESTS += %D%/rules_dns_test
%C%_rules_dns_test_SOURCES = %D%/rules_dns_test.c
%C%_rules_dns_test_CPPFLAGS = $(RULES_TEST_CPPFLAGS)
%C%_rules_dns_test_LDADD = $(RULES_TEST_LDADD)

check_PROGRAMS += %D%/resolver_hostile_test
TESTS += %D%/resolver_hostile_test
%C%_resolver_hostile_test_SOURCES = %D%/resolver_hostile_test.c \
	$(RESOLVER_TEST_KIT)
%C%_resolver_hostile_test_CPPFLAGS = $(RESOLVER_TEST_CPPFLAGS)
%C%_resolver_hostile_test_LDADD = $(DOOR_TEST_LIBS)

check_PROGRAMS += %D%/resolver_tls_test
TESTS += %D%/resolver_tls_test
%C%_resolver_tls_test_SOURCES = %D%/resolver_tls_test.c \
	%D%/tls_lab.c %D%/tls_lab.h $(RESOLVER_TEST_KIT)
%C%_resolver_tls_test_CPPFLAGS = $(RESOLVER_TEST_CPPFLAGS) $(OPENSSL_CFLAGS)
%C%_resolver_tls_test_LDADD = $(DOOR_TEST_LIBS) $(OPENSSL_LIBS)

check_PROGRAMS += %D%/rules_name_addr_test
TESTS += %D%/rules_name_addr_test
%C%_rules_name_addr_test_SOURCES = %D%/rules_name_addr_test.c
%C%_rules_name_addr_test_CPPFLAGS = $(RULES_TEST_CPPFLAGS)
%C%_rules_name_addr_test_LDADD = $(RULES_TEST_LDADD)

DOOR_TEST_LIBS = resolver/libresolver.a audit/libaudit.a \
	rules/librules.a base/libbase.a $(RESOLVER_LIBS) $(AUDIT_LIBS) \
	$(RULES_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
DOOR_TEST_LAB = %D%/dns_door_lab.c %D%/dns_door_lab.h \
	%D%/dns_lab.c %D%/dns_lab.h

check_PROGRAMS += %D%/dns_door_test
TESTS += %D%/dns_door_test
%C%_dns_door_test_SOURCES = %D%/dns_door_test.c $(DOOR_TEST_LAB)
%C%_dns_door_test_CPPFLAGS = $(RESOLVER_TEST_CPPFLAGS)
%C%_dns_door_test_LDADD = $(DOOR_TEST_LIBS)

check_PROGRAMS += %D%/dns_door_ipv6_test
TESTS += %D%/dns_door_ipv6_test
%C%_dns_door_ipv6_test_SOURCES = %D%/dns_door_ipv6_test.c $(DOOR_TEST_LAB)
%C%_dns_door_ipv6_test_CPPFLAGS = $(RESOLVER_TEST_CPPFLAGS)
%C%_dns_door_ipv6_test_LDADD = $(DOOR_TEST_LIBS)

check_PROGRAMS += %D%/dns_door_real_test
TESTS += %D%/dns_door_real_test
%C%_dns_door_real_test_SOURCES = %D%/dns_door_real_test.c $(DOOR_TEST_LAB)
%C%_dns_door_real_test_CPPFLAGS = $(RESOLVER_TEST_CPPFLAGS)
%C%_dns_door_real_test_LDADD = $(DOOR_TEST_LIBS)

check_PROGRAMS += %D%/dns_door_budget_test
TESTS += %D%/dns_door_budget_test
%C%_dns_door_budget_test_SOURCES = %D%/dns_door_budget_test.c $(DOOR_TEST_LAB)
%C%_dns_door_budget_test_CPPFLAGS = $(RESOLVER_TEST_CPPFLAGS)
%C%_dns_door_budget_test_LDADD = $(DOOR_TEST_LIBS)

# The scheduler is the real one.
check_PROGRAMS += %D%/dns_door_turn_test
TESTS += %D%/dns_door_turn_test
%C%_dns_door_turn_test_SOURCES = %D%/dns_door_turn_test.c $(DOOR_TEST_LAB)
%C%_dns_door_turn_test_CPPFLAGS = $(RESOLVER_TEST_CPPFLAGS)
%C%_dns_door_turn_test_LDADD = proxy/libproxy.a $(DOOR_TEST_LIBS)

check_PROGRAMS += %D%/dns_door_hostile_test
TESTS += %D%/dns_door_hostile_test
%C%_dns_door_hostile_test_SOURCES = %D%/dns_door_hostile_test.c \
	$(DOOR_TEST_LAB)
%C%_dns_door_hostile_test_CPPFLAGS = $(RESOLVER_TEST_CPPFLAGS)
%C%_dns_door_hostile_test_LDADD = $(DOOR_TEST_LIBS)

check_PROGRAMS += %D%/dns_door_tcp_test
TESTS += %D%/dns_door_tcp_test
%C%_dns_door_tcp_test_SOURCES = %D%/dns_door_tcp_test.c $(DOOR_TEST_LAB)
%C%_dns_door_tcp_test_CPPFLAGS = $(RESOLVER_TEST_CPPFLAGS)
%C%_dns_door_tcp_test_LDADD = $(DOOR_TEST_LIBS)

# Another codec reads the same messages; skipped where dnspython is missing.
check_PROGRAMS += %D%/dns_oracle
TESTS += %D%/dns_oracle_test.py
EXTRA_DIST += %D%/dns_oracle_test.py
%C%_dns_oracle_SOURCES = %D%/dns_oracle.c
%C%_dns_oracle_CPPFLAGS = $(AM_CPPFLAGS)
%C%_dns_oracle_LDADD = resolver/libresolver.a base/libbase.a $(BASE_LIBS)

check_PROGRAMS += %D%/dns_door_types_test
TESTS += %D%/dns_door_types_test
%C%_dns_door_types_test_SOURCES = %D%/dns_door_types_test.c $(DOOR_TEST_LAB)
%C%_dns_door_types_test_CPPFLAGS = $(RESOLVER_TEST_CPPFLAGS)
%C%_dns_door_types_test_LDADD = $(DOOR_TEST_LIBS)

check_PROGRAMS += %D%/dns_query_test
TESTS += %D%/dns_query_test
%C%_dns_query_test_SOURCES = %D%/dns_query_test.c $(DOOR_TEST_LAB)
%C%_dns_query_test_CPPFLAGS = $(RESOLVER_TEST_CPPFLAGS)
%C%_dns_query_test_LDADD = $(DOOR_TEST_LIBS)

check_PROGRAMS += %D%/dns_repeats_test
TESTS += %D%/dns_repeats_test
%C%_dns_repeats_test_SOURCES = %D%/dns_repeats_test.c
%C%_dns_repeats_test_CPPFLAGS = $(RESOLVER_TEST_CPPFLAGS)
%C%_dns_repeats_test_LDADD = $(RESOLVER_TEST_LIBS)
