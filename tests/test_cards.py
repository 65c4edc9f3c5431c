from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest

from gpututor import cards as cards_module
from gpututor.cards import DEFAULT_MACHINE, card, cards, find_card, host, hosts, machine, machine_for, machines
from gpututor.errors import CardNotKnown, DataFileError, HostNotKnown, MachineNotKnown
from gpututor.paths import data_dir

# Their sheets give the fp32 rate for another clock than the tensor rates; the tables note it.
FP32_AT_ANOTHER_CLOCK = {"H100-SXM", "H200-SXM", "B200-SXM"}
CACHES = (cards_module._card_table, cards_module._host_table, cards_module._machine_table)


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """A copy of data/ that a test may damage."""
    folder = tmp_path / "data"
    shutil.copytree(data_dir(), folder)
    monkeypatch.setattr(cards_module, "data_dir", lambda: folder)
    for cached in CACHES:
        cached.cache_clear()
    yield folder
    for cached in CACHES:
        cached.cache_clear()


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


every_card = pytest.mark.parametrize("one", cards().values(), ids=lambda c: c.name)


def test_there_are_25_nvidia_cards_or_more():
    assert sum(not c.compute_capability.startswith("gfx") for c in cards().values()) >= 25


@every_card
def test_fp32_peak_is_two_flop_per_core_and_clock(one):
    by_clock = one.n_sms * one.fp32_cores_per_sm * 2 * one.boost_clock_hz

    assert one.peak("fp32") == pytest.approx(by_clock, rel=0.09 if one.name in FP32_AT_ANOTHER_CLOCK else 0.01)


@every_card
def test_narrower_formats_are_never_slower(one):
    rates = [one.peak(f) for f in ("fp64", "fp32", "tf32", "fp16") if one.peak(f) is not None]

    assert rates == sorted(rates)


@every_card
def test_every_rate_has_a_sustained_share(one):
    assert set(one.sustained) == set(one.peak_flop_per_s)


@every_card
def test_every_figure_names_its_source(one):
    figures = {f"peak_tflops.{f}" for f in one.peak_flop_per_s} | {f"sustained.{f}" for f in one.sustained}
    figures |= {"n_sms", "memory_gib", "bandwidth_gb_per_s", "bandwidth_share", "max_warps_per_sm", "tdp_w", "l2_mib"}

    assert figures <= set(one.sources)
    assert all(len(source) > 5 for source in one.sources.values())


@every_card
def test_the_driver_finds_a_card_by_its_own_name_too(one):
    assert find_card(one.name) is one


def test_the_v100_multiplies_fastest_in_fp16():
    assert card("V100-SXM2-16GB").top_format() == ("fp16", 125e12)


def test_a_card_without_tensor_cores_is_as_fast_in_fp32():
    assert card("GTX-1080Ti").top_format() == ("fp32", 11.3e12)


def test_a_format_that_the_card_lacks_has_no_rate():
    assert card("V100").peak("bf16") is None


@pytest.mark.parametrize(
    ("driver_name", "name"),
    [
        ("Tesla V100-SXM2-16GB", "V100-SXM2-16GB"),
        ("Tesla V100-SXM2-32GB", "V100-SXM2-32GB"),
        ("Tesla K80", "K80-half"),
        ("Tesla T4", "T4"),
        ("NVIDIA T4", "T4"),
        ("GeForce GTX 1080 Ti", "GTX-1080Ti"),
        ("NVIDIA GeForce RTX 3090", "RTX-3090"),
        ("NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB"),
        ("NVIDIA A100 80GB PCIe", "A100-PCIe-80GB"),
        ("NVIDIA A10G", "A10G"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA H100 80GB HBM3", "H100-SXM"),
        ("NVIDIA H100 PCIe", "H100-PCIe"),
        ("A100-SXM-80GB", "A100-SXM4-80GB"),
        ("Quadro RTX 8000", "Quadro-RTX-8000"),
        ("NVIDIA RTX A6000", "RTX-A6000"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX-6000-Ada"),
        ("NVIDIA TITAN Xp", "TITAN-Xp"),
    ],
)
def test_a_card_is_found_by_the_name_that_the_driver_gives(driver_name, name):
    assert find_card(driver_name) is card(name)


@pytest.mark.parametrize(
    "driver_name",
    ["NVIDIA GeForce RTX 3090 Ti", "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "L40", ""],
)
def test_a_similar_name_is_not_taken_for_a_card_we_know(driver_name):
    assert find_card(driver_name) is None


@pytest.mark.parametrize("name", ["v100", "V100", " V100-SXM2-16GB ", "v100-sxm2-16gb"])
def test_a_card_answers_to_its_short_name_in_any_case(name):
    assert card(name).name == "V100-SXM2-16GB"


def test_an_unknown_card_names_near_matches():
    with pytest.raises(CardNotKnown, match=r'no card is called "A100-80". Did you mean A100-SXM4-80GB'):
        card("A100-80")


def test_an_unknown_host_names_near_matches():
    known = next(iter(hosts()))

    with pytest.raises(HostNotKnown, match=f'no host is called "{known}x". Did you mean .*{known}'):
        host(known + "x")


def test_an_unknown_machine_names_near_matches():
    with pytest.raises(MachineNotKnown, match=r'no machine is called "p3.2xlage". Did you mean p3.2xlarge'):
        machine("p3.2xlage")


def test_the_default_machine_is_one_v100_for_3_06_dollars():
    ours = machine(DEFAULT_MACHINE)

    assert (ours.card.name, ours.n_cards, ours.host.n_cpus, ours.usd_per_hour) == ("V100-SXM2-16GB", 1, 8, 3.06)
    assert "E5-2686 v4" in ours.host.cpu


def test_a_card_hour_is_the_machine_hour_shared_by_its_cards():
    assert machine("p3.8xlarge").usd_per_card_hour == pytest.approx(3.06)


@pytest.mark.parametrize(
    ("card_name", "machine_name", "usd_per_hour"),
    [
        pytest.param("V100", "p3.2xlarge", 3.06, id="one card beats an eighth of a larger machine"),
        pytest.param("T4", "g4dn.xlarge", 0.526, id="the cheaper of two"),
        pytest.param("A100", "one card of p4d.24xlarge", 32.77 / 8, id="rented only in eights"),
        pytest.param("RTX-3090", "desktop-RTX-3090", None, id="owned"),
        pytest.param("A40", "own A40 server", None, id="rented by nobody"),
    ],
)
def test_each_card_has_a_machine_to_run_in(card_name, machine_name, usd_per_hour):
    chosen = machine_for(card_name)

    assert (chosen.name, chosen.n_cards) == (machine_name, 1)
    assert chosen.usd_per_hour == (None if usd_per_hour is None else pytest.approx(usd_per_hour))


@every_card
def test_a_machine_that_was_made_up_for_a_card_is_found_again_by_its_name(one):
    assert machine(machine_for(one.name).name) == machine_for(one.name)


@pytest.mark.parametrize("one", machines().values(), ids=lambda m: m.name)
def test_a_price_says_what_price_it_is_and_who_says_so(one):
    assert (one.usd_per_hour is None) == (one.price_basis == "no price")
    assert one.usd_per_hour is None or one.sources["usd_per_hour"]


def test_a_list_that_a_caller_changes_leaves_the_table_alone():
    cards().clear()

    assert card("V100")


def test_cards_agree_with_the_table_of_published_figures(shared):
    published = {row["gpu_key"]: row for row in rows(shared / "measured" / "gpu_facts.csv")}

    for name, row in published.items():
        if name == "MI250":
            continue  # ours is one of its two dies
        ours = card(name)
        assert ours.n_sms == int(row["sm"]), name
        assert ours.peak("fp32") == pytest.approx(1e12 * float(row["fp32_tflops"])), name
        assert ours.bandwidth_bytes_per_s == pytest.approx(1e9 * float(row["bw_gbs"])), name
        assert ours.memory_bytes == 2**30 * int(row["mem_gb"]), name
        assert str(ours.max_warps_per_sm) == row["max_warps_per_sm"] or not row["max_warps_per_sm"], name


def test_prices_agree_with_the_published_ones(shared):
    for row in rows(shared / "measured" / "cloud_prices.csv"):
        if "capacity block" not in row["instance"]:
            assert machine(row["instance"]).usd_per_hour == float(row["usd_per_hour"]), row["instance"]


@pytest.mark.parametrize(
    ("file", "old", "new", "sentence"),
    [
        pytest.param(
            "cards.toml",
            "n_sms = 80",
            'n_sms = "80"',
            r"data/cards\.toml, card 'V100-SXM2-16GB', n_sms: holds '80', where a whole number is needed",
            id="text for a number",
        ),
        pytest.param("cards.toml", "n_sms = 80\n", "", r"V100-SXM2-16GB', n_sms: missing", id="missing"),
        pytest.param("cards.toml", "n_sms = 80", "n_sms = 0", r"n_sms: is 0, and a count is at least 1", id="zero"),
        pytest.param("cards.toml", "n_sms = 80", "n_sms = true", r"n_sms: holds True", id="a truth value is no count"),
        pytest.param("cards.toml", "tdp_w = 70", "tdp_w = nan", r"'T4', tdp_w: is nan, and it", id="nan"),
        pytest.param("cards.toml", "tdp_w = 70", "tdp = 70", r"'T4', tdp: is not a field we know", id="misspelt"),
        pytest.param("cards.toml", "fp32 = 0.53", "fp32 = 49", r"'T4'.sustained, fp32: is 49, and", id="percent"),
        pytest.param("cards.toml", "fp32 = 8.1", "fp31 = 8.1", r"'T4', peak_tflops: names fp31", id="format"),
        pytest.param("cards.toml", '"Tesla T4"]', '"L4"]', r"already stands for", id="one name for two cards"),
        pytest.param("cards.toml", 'capability = "7.5"', 'capability = "7.6"', r"is 7\.6, which has no", id="limits"),
        pytest.param("cards.toml", "# GPUs.", "GPUs.", r"cards\.toml is not a TOML file", id="not TOML"),
        pytest.param(
            "machines.toml",
            'card = "T4"',
            'card = "T5"',
            r"data/machines\.toml, machine 'g4dn.xlarge', card: is \"T5\", which data/cards\.toml does not hold",
            id="a card that isn't there",
        ),
        pytest.param("machines.toml", 'pcie4 = "', 'pcie4 = "x', r"generic_hosts, pcie4: is \"xe", id="no such host"),
        pytest.param("machines.toml", "= 3.06", "= -3.06", r"p3.2xlarge', usd_per_hour: is -3\.06", id="negative"),
        pytest.param("hosts.toml", "n_cpus = ", "n_cpus = 0.5 # ", r"n_cpus: holds 0\.5", id="half a CPU"),
    ],
)
def test_a_damaged_table_is_refused_by_file_entry_and_field(tables, file, old, new, sentence):
    edit(tables / file, old, new)

    with pytest.raises(DataFileError, match=sentence):
        (cards(), machines())


def test_a_missing_table_says_what_to_do(tables):
    (tables / "cards.toml").unlink()

    with pytest.raises(DataFileError, match=r"can't read .*cards\.toml: No such file or directory; install"):
        cards()
