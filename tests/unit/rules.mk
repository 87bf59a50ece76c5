# SPDX-License-Identifier: Apache-2.0
RULES_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
RULES_TEST_LDADD = rules/librules.a base/libbase.a $(RULES_LIBS) $(BASE_LIBS) \
	$(CMOCKA_LIBS)
EXTRA_DIST += %D%/rules_kit.h

rules_tests = %D%/host_idn_test %D%/host_name_test %D%/host_table_test \
	%D%/rules_allow_test %D%/rules_bundle_test \
	%D%/rules_check_test %D%/rules_diff_test \
	%D%/rules_expiry_test %D%/rules_list_test %D%/rules_parent_test \
	%D%/rules_load_test %D%/rules_path_test %D%/rules_request_test \
	%D%/rules_manual_test %D%/rules_match_test %D%/rules_property_test \
	%D%/rules_target_test %D%/rules_value_test
check_PROGRAMS += $(rules_tests)
TESTS += $(rules_tests)
%C%_host_name_test_SOURCES = %D%/host_name_test.c
%C%_host_name_test_CPPFLAGS = $(RULES_TEST_CPPFLAGS)
%C%_host_name_test_LDADD = $(RULES_TEST_LDADD)
%C%_host_table_test_SOURCES = %D%/host_table_test.c
%C%_host_table_test_CPPFLAGS = $(RULES_TEST_CPPFLAGS)
%C%_host_table_test_LDADD = $(RULES_TEST_LDADD)
%C%_rules_diff_test_SOURCES = %D%/rules_diff_test.c
%C%_rules_diff_test_CPPFLAGS = $(RULES_TEST_CPPFLAGS)
%C%_rules_diff_test_LDADD = $(RULES_TEST_LDADD)
%C%_rules_list_test_SOURCES = %D%/rules_list_test.c
%C%_rules_list_test_CPPFLAGS = $(RULES_TEST_CPPFLAGS)
%C%_rules_list_test_LDADD = $(RULES_TEST_LDADD)
%C%_rules_match_test_SOURCES = %D%/rules_match_test.c
%C%_rules_match_test_CPPFLAGS = $(RULES_TEST_CPPFLAGS)
%C%_rules_match_test_LDADD = $(RULES_TEST_LDADD)
%C%_rules_target_test_SOURCES = %D%/rules_target_test.c
%C%_rules_target_test_CPPFLAGS = $(RULES_TEST_CPPFLAGS)
%C%_rules_target_test_LDADD = $(RULES_TEST_LDADD)
%C%_rules_value_test_SOURCES = %D%/rules_value_test.c
%C%_rules_value_test_CPPFLAGS = $(RULES_TEST_CPPFLAGS)
%C%_rules_value_test_LDADD = $(RULES_TEST_LDADD)
%C%_rules_check_test_SOURCES = %D%/rules_check_test.c
%C%_rules_check_test_CPPFLAGS = $(RULES_TEST_CPPFLAGS)
%C%_rules_check_test_LDADD = $(RULES_TEST_LDADD)
%C%_rules_property_test_SOURCES = %D%/rules_property_test.c
%C%_rules_property_test_CPPFLAGS = $(RULES_TEST_CPPFLAGS)
%C%_rules_property_test_LDADD = $(RULES_TEST_LDADD)
%C%_rules_allow_test_SOURCES = %D%/rules_allow_test.c
%C%_rules_allow_test_CPPFLAGS = $(RULES_TEST_CPPFLAGS)
%C%_rules_allow_test_LDADD = $(RULES_TEST_LDADD)
%C%_rules_manual_test_SOURCES = %D%/rules_manual_test.c
%C%_rules_manual_test_CPPFLAGS = $(RULES_TEST_CPPFLAGS)
%C%_rules_manual_test_LDADD = $(RULES_TEST_LDADD)
%C%_rules_bundle_test_SOURCES = %D%/rules_bundle_test.c
%C%_rules_bundle_test_CPPFLAGS = $(RULES_TEST_CPPFLAGS)
%C%_rules_bundle_test_LDADD = $(RULES_TEST_LDADD)
%C%_rules_expiry_test_SOURCES = %D%/rules_expiry_test.c
%C%_rules_expiry_test_CPPFLAGS = $(RULES_TEST_CPPFLAGS)
%C%_rules_expiry_test_LDADD = $(RULES_TEST_LDADD)
%C%_rules_load_test_SOURCES = %D%/rules_load_test.c
%C%_rules_load_test_CPPFLAGS = $(RULES_TEST_CPPFLAGS)
%C%_rules_load_test_LDADD = $(RULES_TEST_LDADD)
%C%_rules_path_test_SOURCES = %D%/rules_path_test.c
%C%_rules_path_test_CPPFLAGS = $(RULES_TEST_CPPFLAGS)
%C%_rules_path_test_LDADD = $(RULES_TEST_LDADD)
%C%_rules_request_test_SOURCES = %D%/rules_request_test.c
%C%_rules_request_test_CPPFLAGS = $(RULES_TEST_CPPFLAGS)
%C%_rules_request_test_LDADD = $(RULES_TEST_LDADD)
%C%_host_idn_test_SOURCES = %D%/host_idn_test.c
%C%_host_idn_test_CPPFLAGS = $(RULES_TEST_CPPFLAGS)
%C%_host_idn_test_LDADD = $(RULES_TEST_LDADD)
%C%_rules_parent_test_SOURCES = %D%/rules_parent_test.c
%C%_rules_parent_test_CPPFLAGS = $(RULES_TEST_CPPFLAGS)
%C%_rules_parent_test_LDADD = $(RULES_TEST_LDADD)
