# SPDX-License-Identifier: Apache-2.0
# One target a parser, NAME_fuzz.c with LLVMFuzzerTestOneInput().  Configured
# with --enable-fuzz (clang) it is a fuzzer:
#
#	tests/fuzz/NAME_fuzz tests/fuzz/corpus/NAME
#
# or `make fuzz` for FUZZ_SECONDS each, else it replays corpus/NAME and texts
# made from it, as a part of `make check`.
EXTRA_DIST += %D%/corpus
CLEANFILES += %D%/*.input %D%/found-*
FUZZ_SECONDS = 60

# What is found stays in the build's tests/fuzz; the corpus is not touched.
.PHONY: fuzz
fuzz: $(FUZZ_TARGETS)
	@for t in $(FUZZ_TARGETS); do \
		name=`basename $$t _fuzz`; \
		new=`mktemp -d` && echo "fuzz: $$name" && \
		./$$t -max_total_time=$(FUZZ_SECONDS) -timeout=10 \
			-artifact_prefix=%D%/found-$$name- \
			$$new $(srcdir)/%D%/corpus/$$name; \
		status=$$?; rm -rf "$$new"; \
		test $$status -eq 0 || exit $$status; \
	done

if FUZZ
FUZZ_MAIN =
FUZZ_LINK = $(AM_LDFLAGS) -fsanitize=fuzzer
else
FUZZ_MAIN = %D%/replay_main.c
FUZZ_LINK = $(AM_LDFLAGS)
TESTS += $(FUZZ_TARGETS)
endif

FUZZ_TARGETS = %D%/record_fuzz %D%/dns_question_fuzz %D%/dns_answer_fuzz \
	%D%/rules_fuzz %D%/rules_host_fuzz %D%/rules_path_fuzz \
	%D%/rules_bundle_fuzz
check_PROGRAMS += $(FUZZ_TARGETS)
include tests/fuzz/base.mk

%C%_record_fuzz_SOURCES = %D%/record_fuzz.c $(FUZZ_MAIN)
%C%_record_fuzz_LDFLAGS = $(FUZZ_LINK)
%C%_record_fuzz_LDADD = audit/libaudit.a rules/librules.a base/libbase.a \
	$(AUDIT_LIBS) $(RULES_LIBS) $(BASE_LIBS)

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

%C%_rules_path_fuzz_SOURCES = %D%/rules_path_fuzz.c $(FUZZ_MAIN)
%C%_rules_path_fuzz_LDFLAGS = $(FUZZ_LINK)
%C%_rules_path_fuzz_LDADD = rules/librules.a base/libbase.a $(RULES_LIBS) \
	$(BASE_LIBS)

%C%_rules_bundle_fuzz_SOURCES = %D%/rules_bundle_fuzz.c $(FUZZ_MAIN)
%C%_rules_bundle_fuzz_LDFLAGS = $(FUZZ_LINK)
%C%_rules_bundle_fuzz_LDADD = rules/librules.a base/libbase.a $(RULES_LIBS) \
	$(BASE_LIBS)
include tests/fuzz/proxy.mk
include tests/fuzz/daemon.mk
