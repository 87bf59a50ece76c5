# SPDX-License-Identifier: Apache-2.0
# One target a parser, NAME_fuzz.c with LLVMFuzzerTestOneInput().  Configured
# with --enable-fuzz (clang) it is a fuzzer:
#
#	tests/fuzz/NAME_fuzz tests/fuzz/corpus/NAME
#
# else it replays corpus/NAME, as a part of `make check`.
EXTRA_DIST += %D%/corpus

if FUZZ
FUZZ_MAIN =
FUZZ_LINK = $(AM_LDFLAGS) -fsanitize=fuzzer
else
FUZZ_MAIN = %D%/replay_main.c
FUZZ_LINK = $(AM_LDFLAGS)
TESTS += $(FUZZ_TARGETS)
endif

FUZZ_TARGETS = %D%/record_fuzz %D%/dns_question_fuzz %D%/dns_answer_fuzz \
	%D%/rules_fuzz %D%/rules_host_fuzz
check_PROGRAMS += $(FUZZ_TARGETS)

%C%_record_fuzz_SOURCES = %D%/record_fuzz.c $(FUZZ_MAIN)
%C%_record_fuzz_LDFLAGS = $(FUZZ_LINK)
%C%_record_fuzz_LDADD = audit/libaudit.a base/libbase.a $(AUDIT_LIBS) \
	$(BASE_LIBS)

%C%_dns_question_fuzz_SOURCES = %D%/dns_question_fuzz.c $(FUZZ_MAIN)
%C%_dns_question_fuzz_LDFLAGS = $(FUZZ_LINK)
%C%_dns_question_fuzz_LDADD = resolver/libresolver.a base/libbase.a \
	$(BASE_LIBS)

%C%_dns_answer_fuzz_SOURCES = %D%/dns_answer_fuzz.c $(FUZZ_MAIN)
%C%_dns_answer_fuzz_LDFLAGS = $(FUZZ_LINK)
%C%_dns_answer_fuzz_LDADD = resolver/libresolver.a base/libbase.a \
	$(BASE_LIBS)

%C%_rules_fuzz_SOURCES = %D%/rules_fuzz.c $(FUZZ_MAIN)
%C%_rules_fuzz_LDFLAGS = $(FUZZ_LINK)
%C%_rules_fuzz_LDADD = rules/librules.a base/libbase.a $(RULES_LIBS) \
	$(BASE_LIBS)

%C%_rules_host_fuzz_SOURCES = %D%/rules_host_fuzz.c $(FUZZ_MAIN)
%C%_rules_host_fuzz_LDFLAGS = $(FUZZ_LINK)
%C%_rules_host_fuzz_LDADD = rules/librules.a base/libbase.a $(RULES_LIBS) \
	$(BASE_LIBS)
