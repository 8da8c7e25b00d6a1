"""Holds the transformed templates against the topology, both ways, and shows that each rule would notice: a project that breaks
it is refused by it and by no other. python tests/sam/topology/check.py"""

import copy
import json
import os
import sys
from pathlib import Path

# The translator would look one up and ask the network for it.
os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")

from broken import BROKEN
from permissions import functions_may_do_what_they_do
from rules import RULES, Project
from transformed import read

ROOT = Path(__file__).parents[3]
TOPOLOGY = Path(__file__).parent / "topology.json"
CALLS = Path(__file__).parents[1] / "calls.json"
ALL_RULES = [*RULES, functions_may_do_what_they_do]


def main() -> None:
    project = Project(
        read(ROOT / "template.yaml"), json.loads(TOPOLOGY.read_text()), json.loads(CALLS.read_text())
    )
    failures = [f"{rule.__name__}: {finding}" for rule, findings in judge(project).items() for finding in findings]
    untested = set(ALL_RULES) - {rule for rule, _ in BROKEN}
    failures += [f"{rule.__name__}: no broken project" for rule in untested]
    for rule, mutation in [] if failures else BROKEN:
        mutant = Project(project.stack.copy(), copy.deepcopy(project.topology), copy.deepcopy(project.calls))
        mutation(mutant)
        refusing = [other.__name__ for other, findings in judge(mutant).items() if findings]
        if refusing != [rule.__name__]:
            failures.append(f"{mutation.__name__} is refused by {refusing} instead of {rule.__name__} alone")
    if failures:
        sys.exit("\n".join(failures))
    resources = len(project.stack.resources)
    print(f"{len(ALL_RULES)} rules hold for {resources} resources; {len(BROKEN)} broken projects are refused by theirs alone")


def judge(project: Project) -> dict:
    return {rule: list(rule(project)) for rule in ALL_RULES}


if __name__ == "__main__":
    main()
