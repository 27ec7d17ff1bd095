"""Prints a line for each folder: the checks of checkov that fail for its manifests. hardened.py FOLDER..."""

import sys

from checkov.kubernetes.runner import Runner
from checkov.runner_filter import RunnerFilter

for folder in sys.argv[1:]:
    report = Runner().run(root_folder=folder, runner_filter=RunnerFilter(framework=["kubernetes"]))
    print(*sorted({record.check_id for record in report.failed_checks}))
