# SPDX-License-Identifier: Apache-2.0
FUZZ_TARGETS += %D%/ini_fuzz %D%/ip_addr_fuzz %D%/json_fuzz

%C%_ini_fuzz_SOURCES = %D%/ini_fuzz.c $(FUZZ_MAIN)
%C%_ini_fuzz_LDFLAGS = $(FUZZ_LINK)
%C%_ini_fuzz_LDADD = base/libbase.a $(BASE_LIBS)

%C%_ip_addr_fuzz_SOURCES = %D%/ip_addr_fuzz.c $(FUZZ_MAIN)
%C%_ip_addr_fuzz_LDFLAGS = $(FUZZ_LINK)
%C%_ip_addr_fuzz_LDADD = base/libbase.a $(BASE_LIBS)

%C%_json_fuzz_SOURCES = %D%/json_fuzz.c $(FUZZ_MAIN)
%C%_json_fuzz_LDFLAGS = $(FUZZ_LINK)
%C%_json_fuzz_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS)
%C%_json_fuzz_LDADD = base/libbase.a $(BASE_LIBS) $(JANSSON_LIBS)
