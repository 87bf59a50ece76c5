# SPDX-License-Identifier: Apache-2.0
AUDIT_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
AUDIT_TEST_LIBS = audit/libaudit.a base/libbase.a $(AUDIT_LIBS) $(BASE_LIBS) \
	$(CMOCKA_LIBS)

check_PROGRAMS += %D%/record_test
TESTS += %D%/record_test
%C%_record_test_SOURCES = %D%/record_test.c
%C%_record_test_CPPFLAGS = $(AUDIT_TEST_CPPFLAGS)
%C%_record_test_LDADD = $(AUDIT_TEST_LIBS)

check_PROGRAMS += %D%/writer_test
TESTS += %D%/writer_test
%C%_writer_test_SOURCES = %D%/writer_test.c
%C%_writer_test_CPPFLAGS = $(AUDIT_TEST_CPPFLAGS)
%C%_writer_test_LDADD = $(AUDIT_TEST_LIBS)

check_PROGRAMS += %D%/query_test
TESTS += %D%/query_test
%C%_query_test_SOURCES = %D%/query_test.c
%C%_query_test_CPPFLAGS = $(AUDIT_TEST_CPPFLAGS)
%C%_query_test_LDADD = audit/libaudit.a rules/librules.a base/libbase.a \
	$(AUDIT_LIBS) $(RULES_LIBS) $(BASE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += %D%/reasons_doc_test
TESTS += %D%/reasons_doc_test
%C%_reasons_doc_test_SOURCES = %D%/reasons_doc_test.c
%C%_reasons_doc_test_CPPFLAGS = $(AUDIT_TEST_CPPFLAGS)
%C%_reasons_doc_test_LDADD = base/libbase.a $(BASE_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += %D%/audit_relay_test
TESTS += %D%/audit_relay_test
%C%_audit_relay_test_SOURCES = %D%/audit_relay_test.c
%C%_audit_relay_test_CPPFLAGS = $(AUDIT_TEST_CPPFLAGS)
%C%_audit_relay_test_LDADD = $(AUDIT_TEST_LIBS)
