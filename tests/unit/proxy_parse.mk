# SPDX-License-Identifier: Apache-2.0
check_PROGRAMS += %D%/http1_test
TESTS += %D%/http1_test
%C%_http1_test_SOURCES = %D%/http1_test.c
%C%_http1_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_http1_test_LDADD = proxy/libproxy.a base/libbase.a $(BASE_LIBS) \
	$(CMOCKA_LIBS)

check_PROGRAMS += %D%/http1_body_test
TESTS += %D%/http1_body_test
%C%_http1_body_test_SOURCES = %D%/http1_body_test.c
%C%_http1_body_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_http1_body_test_LDADD = proxy/libproxy.a base/libbase.a $(BASE_LIBS) \
	$(CMOCKA_LIBS)

check_PROGRAMS += %D%/refusal_test
TESTS += %D%/refusal_test
%C%_refusal_test_SOURCES = %D%/refusal_test.c
%C%_refusal_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
%C%_refusal_test_LDADD = proxy/libproxy.a base/libbase.a $(BASE_LIBS) \
	$(CMOCKA_LIBS) $(JANSSON_LIBS)

check_PROGRAMS += %D%/http1_target_test
TESTS += %D%/http1_target_test
%C%_http1_target_test_SOURCES = %D%/http1_target_test.c
%C%_http1_target_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_http1_target_test_LDADD = proxy/libproxy.a rules/librules.a \
	base/libbase.a $(RULES_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += %D%/sniff_test
TESTS += %D%/sniff_test
%C%_sniff_test_SOURCES = %D%/sniff_test.c
%C%_sniff_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_sniff_test_LDADD = proxy/libproxy.a rules/librules.a base/libbase.a \
	$(RULES_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += %D%/socks_test
TESTS += %D%/socks_test
%C%_socks_test_SOURCES = %D%/socks_test.c
%C%_socks_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_socks_test_LDADD = proxy/libproxy.a rules/librules.a base/libbase.a \
	$(RULES_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

forward_tests = %D%/forward_test %D%/forward_refusal_test %D%/forward_end_test \
	%D%/forward_strict_test %D%/forward_final_test \
	%D%/forward_close_test %D%/forward_stream_test
FORWARD_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(EVENT_CFLAGS)
FORWARD_LDADD = proxy/libproxy.a rules/librules.a base/libbase.a \
	$(EVENT_LIBS) $(RULES_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)
FORWARD_KIT = %D%/forward_kit.c %D%/forward_kit.h
check_PROGRAMS += $(forward_tests)
TESTS += $(forward_tests)
%C%_forward_test_SOURCES = %D%/forward_test.c $(FORWARD_KIT)
%C%_forward_test_CPPFLAGS = $(FORWARD_CPPFLAGS)
%C%_forward_test_LDADD = $(FORWARD_LDADD)
%C%_forward_refusal_test_SOURCES = %D%/forward_refusal_test.c $(FORWARD_KIT)
%C%_forward_refusal_test_CPPFLAGS = $(FORWARD_CPPFLAGS)
%C%_forward_refusal_test_LDADD = $(FORWARD_LDADD)
%C%_forward_final_test_SOURCES = %D%/forward_final_test.c $(FORWARD_KIT)
%C%_forward_final_test_CPPFLAGS = $(FORWARD_CPPFLAGS)
%C%_forward_final_test_LDADD = $(FORWARD_LDADD)
%C%_forward_close_test_SOURCES = %D%/forward_close_test.c $(FORWARD_KIT)
%C%_forward_close_test_CPPFLAGS = $(FORWARD_CPPFLAGS)
%C%_forward_close_test_LDADD = $(FORWARD_LDADD)
%C%_forward_stream_test_SOURCES = %D%/forward_stream_test.c $(FORWARD_KIT) \
	%D%/choppy.c %D%/choppy.h
%C%_forward_stream_test_CPPFLAGS = $(FORWARD_CPPFLAGS)
%C%_forward_stream_test_LDADD = $(FORWARD_LDADD)
%C%_forward_strict_test_SOURCES = %D%/forward_strict_test.c $(FORWARD_KIT)
%C%_forward_strict_test_CPPFLAGS = $(FORWARD_CPPFLAGS)
%C%_forward_strict_test_LDADD = $(FORWARD_LDADD)
%C%_forward_end_test_SOURCES = %D%/forward_end_test.c $(FORWARD_KIT)
%C%_forward_end_test_CPPFLAGS = $(FORWARD_CPPFLAGS)
%C%_forward_end_test_LDADD = $(FORWARD_LDADD)

# What the differential tests ask.
check_PROGRAMS += %D%/forward_dump
%C%_forward_dump_SOURCES = %D%/forward_dump.c
%C%_forward_dump_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS)
%C%_forward_dump_LDADD = proxy/libproxy.a rules/librules.a base/libbase.a \
	$(EVENT_LIBS) $(RULES_LIBS) $(BASE_LIBS)
TESTS += %D%/forward_differential.py
EXTRA_DIST += %D%/forward_differential.py
check_PROGRAMS += %D%/http1_dump
%C%_http1_dump_SOURCES = %D%/http1_dump.c
%C%_http1_dump_LDADD = proxy/libproxy.a rules/librules.a base/libbase.a \
	$(RULES_LIBS) $(BASE_LIBS)
TESTS += %D%/http1_differential.py
EXTRA_DIST += %D%/http1_differential.py

check_PROGRAMS += %D%/parent_msg_test
TESTS += %D%/parent_msg_test
%C%_parent_msg_test_SOURCES = %D%/parent_msg_test.c
%C%_parent_msg_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_parent_msg_test_LDADD = proxy/libproxy.a rules/librules.a \
	base/libbase.a $(RULES_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += %D%/parents_test
TESTS += %D%/parents_test
%C%_parents_test_SOURCES = %D%/parents_test.c
%C%_parents_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_parents_test_LDADD = proxy/libproxy.a resolver/libresolver.a \
	rules/librules.a base/libbase.a $(RULES_LIBS) $(BASE_LIBS) \
	$(CMOCKA_LIBS)
