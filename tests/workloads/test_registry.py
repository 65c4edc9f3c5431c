"""Workloads by name: each can be found, and a name spelt otherwise finds the one that is meant."""

from __future__ import annotations

import pytest

from gpututor.errors import WorkloadNotKnown
from gpututor.workloads.registry import MODULES, _in, find, workloads


@pytest.mark.parametrize("module", MODULES)
def test_every_listed_module_holds_workloads(module):
    assert list(_in(module))


@pytest.mark.parametrize("module", MODULES)
def test_no_two_workloads_have_one_name(module):
    assert [one.name for one in _in(module) if workloads()[one.name] is not one] == []


@pytest.mark.parametrize("name", workloads())
def test_a_workload_is_found_by_its_own_name(name):
    assert find(name).name == name


@pytest.mark.parametrize(
    ("written", "meant"), [("ResNet-50", "resnet50"), ("BERT_large_SQuAD", "bert-large-squad"), ("GNMT", "gnmt")]
)
def test_case_hyphens_and_underscores_make_no_difference(written, meant):
    assert find(written).name == meant


def test_an_unknown_name_lists_near_ones():
    with pytest.raises(WorkloadNotKnown, match=r"no workload is called \"resnet51\"\. Did you mean .*resnet50"):
        find("resnet51")
