# SPDX-License-Identifier: Apache-2.0
base_tests = \
	%D%/buf_test \
	%D%/clock_test \
	%D%/fd_test \
	%D%/hash_test \
	%D%/id_test \
	%D%/ini_test \
	%D%/ip_addr_test \
	%D%/ip_class_test \
	%D%/json_test \
	%D%/log_test \
	%D%/mem_account_test \
	%D%/mem_test \
	%D%/reason_test \
	%D%/seccomp_test \
	%D%/str_test \
	%D%/utf8_test
check_PROGRAMS += $(base_tests)
TESTS += $(base_tests)

%C%_buf_test_SOURCES = %D%/buf_test.c
%C%_buf_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_buf_test_LDADD = base/libbase.a $(BASE_LIBS) $(CMOCKA_LIBS)

%C%_clock_test_SOURCES = %D%/clock_test.c
%C%_clock_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_clock_test_LDADD = base/libbase.a $(BASE_LIBS) $(CMOCKA_LIBS)

%C%_fd_test_SOURCES = %D%/fd_test.c
%C%_fd_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_fd_test_LDADD = base/libbase.a $(BASE_LIBS) $(CMOCKA_LIBS)

%C%_hash_test_SOURCES = %D%/hash_test.c
%C%_hash_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_hash_test_LDADD = base/libbase.a $(BASE_LIBS) $(CMOCKA_LIBS)

%C%_id_test_SOURCES = %D%/id_test.c
%C%_id_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_id_test_LDADD = base/libbase.a $(BASE_LIBS) $(CMOCKA_LIBS)

%C%_ini_test_SOURCES = %D%/ini_test.c
%C%_ini_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_ini_test_LDADD = base/libbase.a $(BASE_LIBS) $(CMOCKA_LIBS)

%C%_ip_addr_test_SOURCES = %D%/ip_addr_test.c
%C%_ip_addr_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_ip_addr_test_LDADD = base/libbase.a $(BASE_LIBS) $(CMOCKA_LIBS)

%C%_ip_class_test_SOURCES = %D%/ip_class_test.c
%C%_ip_class_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_ip_class_test_LDADD = base/libbase.a $(BASE_LIBS) $(CMOCKA_LIBS)

%C%_json_test_SOURCES = %D%/json_test.c
%C%_json_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS) $(JANSSON_CFLAGS)
%C%_json_test_LDADD = base/libbase.a $(BASE_LIBS) $(CMOCKA_LIBS) $(JANSSON_LIBS)

%C%_log_test_SOURCES = %D%/log_test.c
%C%_log_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_log_test_LDADD = base/libbase.a $(BASE_LIBS) $(CMOCKA_LIBS)

%C%_mem_account_test_SOURCES = %D%/mem_account_test.c
%C%_mem_account_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_mem_account_test_LDADD = base/libbase.a $(BASE_LIBS) $(CMOCKA_LIBS)

%C%_mem_test_SOURCES = %D%/mem_test.c
%C%_mem_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_mem_test_LDADD = base/libbase.a $(BASE_LIBS) $(CMOCKA_LIBS)

%C%_reason_test_SOURCES = %D%/reason_test.c
%C%_reason_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_reason_test_LDADD = base/libbase.a $(BASE_LIBS) $(CMOCKA_LIBS)

%C%_seccomp_test_SOURCES = %D%/seccomp_test.c
%C%_seccomp_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_seccomp_test_LDADD = base/libbase.a $(BASE_LIBS) $(CMOCKA_LIBS)

%C%_str_test_SOURCES = %D%/str_test.c
%C%_str_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_str_test_LDADD = base/libbase.a $(BASE_LIBS) $(CMOCKA_LIBS)

%C%_utf8_test_SOURCES = %D%/utf8_test.c
%C%_utf8_test_CPPFLAGS = $(AM_CPPFLAGS) $(CMOCKA_CFLAGS)
%C%_utf8_test_LDADD = base/libbase.a $(BASE_LIBS) $(CMOCKA_LIBS)
