# SPDX-License-Identifier: Apache-2.0
lint_tests = \
	%D%/banned.py \
	%D%/headers.py \
	%D%/layers.py \
	%D%/names.py \
	%D%/reasons.py \
	%D%/selftest.py \
	%D%/sizes.py \
	%D%/style.py
# Emptied where another build of the same sources has run them (scripts/check).
lints_of_check = $(lint_tests)
TESTS += $(lints_of_check)
EXTRA_DIST += $(lint_tests) %D%/lint.py %D%/exempt.txt

# The lints alone; they need nothing built but config.h.
lint: config.h
	$(MAKE) $(AM_MAKEFLAGS) check-TESTS TESTS='$(lint_tests)'
