"""Config files: what is read, what is refused and how, and repeats that are made once."""

import csv
import json
import tomllib
from pathlib import Path

import pytest

from vflnn.runs import ConfigError, load_config, run_config
from vflnn.runs.cli import main
from vflnn.runs.results import Results
from vflnn.runs.training import train_once

SMALL = """
results = "{folder}"
seeds = [0, 1]

[data]
name = "breast_cancer"

[model]
bottom = "LogisticRegression"

[training]
epochs = 2
batch_size = 128
target = 0.6

[[run]]
name = "agg"

[[run]]
name = "split"
model.top = "linear"
training.lr = 0.02
"""


def written(folder, text, name="config.toml"):
    path = folder / name
    path.write_text(text.replace("{folder}", str(folder / "out")))
    return path


@pytest.fixture
def small(tmp_path):
    return written(tmp_path, SMALL)


def refused(folder, old, new):
    assert old in SMALL
    with pytest.raises(ConfigError) as caught:
        load_config(written(folder, SMALL.replace(old, new)))
    return str(caught.value)


def test_runs_take_the_shared_tables_and_change_some_of_them(small):
    config = load_config(small)
    agg, split = config.runs
    assert (agg.model.top, split.model.top, agg.training.lr, split.training.lr) == (
        "sum",
        "linear",
        0.01,
        0.02,
    )
    assert agg.training.epochs == split.training.epochs == 2 and config.seeds == (0, 1)


def test_models_are_found_however_their_names_are_spelt(small):
    small.write_text(small.read_text().replace('"LogisticRegression"', '"logistic-regression"'))
    _, plan, _ = train_once(load_config(small).runs[0], 0)
    assert plan.own.model.factory == "logistic-regression"


def test_json_says_the_same_as_toml(small, tmp_path):
    whole = tomllib.loads(small.read_text())
    other = written(tmp_path, json.dumps(whole), "config.json")
    assert load_config(other).runs == load_config(small).runs


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("epochs = 2", "epoch = 2", "[training] has no key 'epoch'; did you mean 'epochs'?"),
        ("seeds", "sedes", "the file has no key 'sedes'; did you mean 'seeds'?"),
        ("model.top", "modle.top", "run 2 has no key 'modle'; did you mean 'model'?"),
        ("LogisticRegression", "LogisticRegresion", "did you mean 'LogisticRegression'?"),
        ("breast_cancer", "brest_cancer", "did you mean 'breast_cancer'?"),
        ('"linear"', '"linaer"', "did you mean 'linear'?"),
        ("epochs = 2", 'epochs = "2"', "training.epochs must be int, got '2'"),
        ("epochs = 2", "epochs = 0", "training.epochs must be at least 1, got 0"),
        ("target = 0.6", "target = nan", "training.target must be at least 0, got nan"),
        (
            'name = "breast_cancer"',
            'name = "breast_cancer"\nlimit = -1',
            "data.limit must be at least 0, got -1",
        ),
        ("[training]", "cut_width = -1\n[training]", "model.cut_width must be at least 0, got -1"),
        ("epochs = 2", 'protocol = "fedsdg"', "did you mean 'fedsgd'?"),
        ("epochs = 2", 'optimizer = "adm"', "optimizer 'adm' is unknown"),
        ("epochs = 2", "optimizer_options = {momentun = 1.0}", "momentun"),
        ("epochs = 2", 'scheduler = "inverse_root"', "did you mean 'inverse_sqrt'?"),
        ("epochs = 2", "protocol_options = {steps = 3}", "has no option 'steps'"),
        ("seeds = [0, 1]", "seeds = [0, 0]", "every seed once"),
        ("seeds = [0, 1]", "seeds = [-1]", "whole numbers from 0 on"),
        ('name = "split"', 'name = "agg"', "two runs are called 'agg'"),
        ('name = "breast_cancer"', "", "[data] needs 'name'"),
        ("epochs = 2", 'loss = "Cross_Entropy"', "did you mean 'cross_entropy'?"),
        ("epochs = 2", 'device = "gpu"', 'device must be "cpu", "cuda"'),
        ("epochs = 2", "lr = 0.0", "lr must be a positive number, got 0.0"),
        ("epochs = 2", 'protocol = "topk"\ncompressor = "topk"', "compresses already: leave compressor out"),
        (
            "epochs = 2",
            "compressor_options = {ratio = 0.5}",
            "compressor_options are there, and no compressor",
        ),
        (
            "epochs = 2",
            'scheduler = "StepLR"\nscheduler_options = {step_size = 0}',
            "scheduler 'StepLR' with",
        ),
        ("[model]", "[model", "is not TOML"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place_and_the_nearest_right_name(tmp_path, old, new, message):
    told = refused(tmp_path, old, new)
    assert message in told and "config.toml" in told


def test_a_file_that_is_not_there_is_refused_by_name(tmp_path):
    with pytest.raises(ConfigError, match=r"nothing\.toml cannot be read"):
        load_config(tmp_path / "nothing.toml")


def test_results_hold_figures_settings_and_versions_and_are_made_once(small):
    said = []
    results = run_config(load_config(small), say=said.append)
    table = list(csv.DictReader((small.parent / "out" / "results.csv").open()))
    made = [(row["run"], row["seed"]) for row in table]
    assert made == [("agg", "0"), ("split", "0"), ("agg", "1"), ("split", "1")]
    assert table[1]["model.top"] == "linear" and table[1]["training.lr"] == "0.02" and table[0]["vfltree"]
    assert all(0.3 < float(row["score"]) <= 1 and float(row["sent_mib_per_round"]) > 0 for row in table)
    again = []
    assert run_config(load_config(small), say=again.append).records == results.records
    assert all("made already" in line for line in again) and len(said) == len(again) == 4


def test_another_setting_is_another_result(small):
    run_config(load_config(small), say=lambda text: None)
    small.write_text(small.read_text().replace("epochs = 2", "epochs = 1"))
    config = load_config(small)
    assert Results(config.results).of(config.runs[0], config.seeds) == []


def test_a_line_that_an_interrupt_cut_off_is_made_again(small):
    config = load_config(small)
    run_config(config, say=lambda text: None)
    lines = config.results / "results.jsonl"
    lines.write_text(lines.read_text()[:-20])
    assert len(Results(config.results).records) == 3
    run_config(config, say=lambda text: None)
    assert len(Results(config.results).of(config.runs[1], config.seeds)) == 2


def test_a_run_without_its_data_is_left_out_and_the_others_are_made(tmp_path, monkeypatch):
    monkeypatch.setenv("VFL_DATA_HOME", str(tmp_path))
    text = SMALL.replace('name = "split"', 'name = "split"\ndata.name = "cora"').replace("[0, 1]", "[0]")
    said = []
    results = run_config(load_config(written(tmp_path, text)), say=said.append)
    assert [record["run"] for record in results.records] == ["agg"]
    assert "left out" in said[1] and "cora" in said[1].lower()


@pytest.mark.parametrize("top", ["sum", "graph"])
def test_a_data_set_with_graphs_is_trained_on_whole(tmp_path, data_home, monkeypatch, top):
    if not (data_home / "cora").is_dir():
        pytest.skip(f"Cora's files are not in {data_home}/cora")
    monkeypatch.setenv("VFL_DATA_HOME", str(data_home))
    text = f"""
        [data]
        name = "cora"
        [model]
        bottom = "GCN"
        bottom_options = {{dropout = 0.0}}
        top = "{top}"
        [training]
        epochs = 3
        batch_size = 0
    """
    run = load_config(written(tmp_path, text)).runs[0]
    _, plan, trained = train_once(run, 0)
    assert plan.settings.batch_size is None and trained.result.scores.shape == (2708, 7)
    assert trained.result.epoch_score[-1] > 0.2


def test_only_the_first_rows_are_trained_on_and_tested(small):
    small.write_text(small.read_text().replace("[data]", "[data]\nlimit = 50\ntest_limit = 20"))
    _, plan, trained = train_once(load_config(small).runs[0], 0)
    assert plan.settings.n_samples == len(plan.labels) == 50 and trained.result.scores.shape == (20, 2)


def test_a_seed_trains_the_same_network_every_time(small):
    run = load_config(small).runs[0]
    one, other, third = (train_once(run, seed)[-1].result.scores.tobytes() for seed in (3, 3, 4))
    assert one == other != third


def test_the_command_line_runs_checks_lists_and_says_what_is_wrong(small, tmp_path, capsys):
    assert main(["run", str(small), "--check"]) == 0
    assert "2 runs (agg, split) with seeds 0, 1" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()
    assert main(["run", str(small)]) == 0
    assert "results.csv" in capsys.readouterr().out
    assert main(["list"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in ("mnist", "ResNet-18", "fedsgd", "cross_entropy"))
    assert main(["run", str(tmp_path / "no.toml")]) == 1
    assert "error:" in capsys.readouterr().err


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parents[2] / "examples" / "configs").glob("*.toml")), ids=str
)
def test_configs_that_ship_are_right(path):
    assert load_config(path).runs


def test_a_loss_of_log_probabilities_needs_a_top_that_gives_them(small):
    small.write_text(small.read_text().replace("[training]", '[training]\nloss = "nll"'))
    with pytest.raises(ValueError, match="'nll' takes log-probabilities, and top 'sum' gives scores"):
        train_once(load_config(small).runs[0], 0)
