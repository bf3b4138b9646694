"""The gate: granted, refused for success, refused for the interval; and what it says."""

from __future__ import annotations

import pytest

from asap_core.evaluation.comparison import arm_figures, best_seed, paired
from asap_core.evaluation.gate import gate
from tests.evaluation.made_results import STARTS, made_result

BETTER = {"vanilla": [120.0], "finetune_only": [110.0, 111.0, 112.0], "asap": [90.0, 91.0, 92.0]}


def test_clearly_better_is_granted() -> None:
    verdict = gate(made_result(BETTER), 0.02, 0.95)
    assert verdict.granted
    assert verdict.as_dict()["verdict"] == "granted"
    assert set(verdict.intervals) == {"asap − finetune_only", "asap − vanilla"}


def test_worse_than_vanilla_is_refused_with_the_interval() -> None:
    verdict = gate(made_result({**BETTER, "vanilla": [80.0]}), 0.02, 0.95)
    assert not verdict.granted
    assert "against vanilla: E_g_mpjpe difference 11.0 [" in verdict.reason
    assert "allowed up to +1.6 mm" in verdict.reason


def test_within_the_margin_is_granted_and_beyond_it_refused() -> None:
    close = {"vanilla": [100.0], "finetune_only": [100.0, 100.0, 100.0], "asap": [101.0, 101.0, 101.0]}
    assert gate(made_result(close), 0.02, 0.95).granted
    assert not gate(made_result(close), 0.005, 0.95).granted


def test_lower_success_is_refused_whatever_the_error() -> None:
    verdict = gate(made_result(BETTER, {"asap": 0.75}), 0.02, 0.95)
    assert not verdict.granted
    assert "success 0.750 is lower than 1.000" in verdict.reason


def test_policy_that_never_succeeds_is_refused_whatever_its_controls_do() -> None:
    verdict = gate(made_result(BETTER, {"asap": 0.0, "vanilla": 0.0, "finetune_only": 0.0}), 0.02, 0.95)
    assert not verdict.granted
    assert "asap succeeds in no run on the target" in verdict.reason


def test_seeds_that_disagree_are_refused() -> None:
    """A mean of −10 mm over three seeds says little when they lie 60 mm apart."""
    verdict = gate(made_result({**BETTER, "asap": [60.0, 100.0, 140.0]}), 0.02, 0.95)
    assert not verdict.granted
    assert "3 units" in verdict.reason


def test_pairing_is_by_start_and_clustered_by_seed() -> None:
    result = made_result(BETTER, spread=50.0)
    difference = paired(result, "target", "asap", "finetune_only", "E_g_mpjpe", 0.95)
    assert difference.n == 3
    assert difference.mean == pytest.approx(-20.0, abs=0.2)
    assert difference.high - difference.low < 1.0
    single = paired(made_result({**BETTER, "asap": [90.0]}, spread=50.0), "target", "asap", "vanilla", "success", 0.95)
    assert single.n == STARTS


def test_arms_with_other_seeds_cannot_be_paired() -> None:
    with pytest.raises(ValueError, match="cannot be paired"):
        paired(made_result({**BETTER, "asap": [1.0, 2.0]}), "target", "asap", "finetune_only", "E_mpjpe", 0.95)


def test_best_seed_and_means() -> None:
    result = made_result({**BETTER, "asap": [93.0, 90.0, 92.0]})
    assert best_seed(result, "asap") == 1
    assert arm_figures(result, "target", 0.95)["asap"]["E_g_mpjpe"].mean == pytest.approx(91.67, abs=0.1)
    assert arm_figures(result, "target", 0.95)["vanilla"]["E_g_mpjpe"].n == STARTS
