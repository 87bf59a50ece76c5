# SPDX-License-Identifier: Apache-2.0
EXTRA_DIST += %D%/architecture.md %D%/design.md
# penstock-audit(5) sends its readers there.
dist_doc_DATA += %D%/reasons.md
