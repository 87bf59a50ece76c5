# SPDX-License-Identifier: Apache-2.0
FUZZ_TARGETS += %D%/http1_request_fuzz %D%/http1_answer_fuzz \
	%D%/http1_body_fuzz %D%/sniff_fuzz %D%/socks_fuzz \
	%D%/parent_msg_fuzz

PROXY_FUZZ_LIBS = proxy/libproxy.a rules/librules.a base/libbase.a \
	$(RULES_LIBS) $(BASE_LIBS)

%C%_http1_request_fuzz_SOURCES = %D%/http1_request_fuzz.c $(FUZZ_MAIN)
%C%_http1_request_fuzz_LDFLAGS = $(FUZZ_LINK)
%C%_http1_request_fuzz_LDADD = $(PROXY_FUZZ_LIBS)
%C%_http1_answer_fuzz_SOURCES = %D%/http1_answer_fuzz.c $(FUZZ_MAIN)
%C%_http1_answer_fuzz_LDFLAGS = $(FUZZ_LINK)
%C%_http1_answer_fuzz_LDADD = $(PROXY_FUZZ_LIBS)
%C%_http1_body_fuzz_SOURCES = %D%/http1_body_fuzz.c $(FUZZ_MAIN)
%C%_http1_body_fuzz_LDFLAGS = $(FUZZ_LINK)
%C%_http1_body_fuzz_LDADD = $(PROXY_FUZZ_LIBS)
%C%_sniff_fuzz_SOURCES = %D%/sniff_fuzz.c $(FUZZ_MAIN)
%C%_sniff_fuzz_LDFLAGS = $(FUZZ_LINK)
%C%_sniff_fuzz_LDADD = $(PROXY_FUZZ_LIBS)
%C%_socks_fuzz_SOURCES = %D%/socks_fuzz.c $(FUZZ_MAIN)
%C%_socks_fuzz_LDFLAGS = $(FUZZ_LINK)
%C%_socks_fuzz_LDADD = $(PROXY_FUZZ_LIBS)
%C%_parent_msg_fuzz_SOURCES = %D%/parent_msg_fuzz.c $(FUZZ_MAIN)
%C%_parent_msg_fuzz_LDFLAGS = $(FUZZ_LINK)
%C%_parent_msg_fuzz_LDADD = $(PROXY_FUZZ_LIBS)

FUZZ_TARGETS += %D%/forward_fuzz
%C%_forward_fuzz_SOURCES = %D%/forward_fuzz.c $(FUZZ_MAIN) \
	tests/unit/choppy.c tests/unit/choppy.h
%C%_forward_fuzz_CPPFLAGS = $(AM_CPPFLAGS) $(EVENT_CFLAGS)
%C%_forward_fuzz_LDFLAGS = $(FUZZ_LINK)
%C%_forward_fuzz_LDADD = $(PROXY_FUZZ_LIBS) $(EVENT_LIBS)
