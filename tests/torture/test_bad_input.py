"""What a user can type, and write into a plan: a mistake ends in one line that says what and where, and nothing is spoilt."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from command import Call
from desk import RUN, refuse
from lengthlab.report.result_table import results

LOOP = "it is a link that leads to itself"
IN_THE_WAY = "a file is in the way of a folder"
EMPTY = "an empty name"
NOT_TEXT = "is not text: save it as UTF-8"
NO_DEVICE = "cpu always is"

TYPED: list[tuple[str, ...]] = [
    # commands and options that are not there, or not whole
    ("frob", "'frob'", "lengthlab --help"),
    ("trian plan.toml", "'trian'"),
    ("train", "RUN.TOML"),
    ("train plan.toml extra", "extra"),
    ("train plan.toml --sede 4", "--sede"),
    ("train plan.toml --sett batch=4", "--sett", "'--set'"),
    ("train plan.toml --set", "--set", "argument"),
    ("train plan.toml --json=yes", "--json", "value"),
    ("evaluate", "RUN"),
    ("evaluate RUN", "--lengths"),
    ("evaluate RUN --length 4", "--length", "'--lengths'"),
    ("evaluate RUN more --lengths 4", "more"),
    ("report", "RUNS"),
    ("delay", "MODEL"),
    ("check", "MODEL"),
    ("tasks modulo recall", "recall"),
    ("models lstm lstm", "lstm"),
    ("experiments demo far", "far"),
    ("demo now", "now"),
    ("reproduce", "name a study", "dat"),
    ("reproduce --check far far", "far"),
    # files
    ("train ''", "RUN.TOML", EMPTY),
    ("train nowhere.toml", "nowhere.toml", "No such file"),
    ("train -", "-: No such file"),
    ("train folder.toml", "folder.toml", "not a folder"),
    ("train loop.toml", "loop.toml", LOOP),
    ("train file/plan.toml", "file/plan.toml", IN_THE_WAY),
    ("train binary.toml", "binary.toml", NOT_TEXT),
    ("train makers.py", "makers.py is not valid TOML"),
    (f"train {'x' * 300}.toml", "give it a shorter name"),
    # places
    ("train plan.toml --store ''", "--store", EMPTY),
    ("train plan.toml --store file", "store 'file'", IN_THE_WAY),
    ("train plan.toml --store file/runs", "store 'file/runs'", IN_THE_WAY),
    ("train plan.toml --store loop", "store 'loop'", LOOP),
    ("train plan.toml --store loop/runs", "store 'loop/runs'", LOOP),
    ("train plan.toml --store dangling", "store 'dangling'", IN_THE_WAY),
    ("demo --store file", "store 'file'", IN_THE_WAY),
    ("demo --store loop", "store 'loop'", LOOP),
    ("demo --store ''", "--store", EMPTY),
    ("evaluate RUN --lengths 4 --store ''", "--store", EMPTY),
    ("evaluate abc --lengths 4 --store nowhere", "no store at 'nowhere'"),
    ("evaluate abc --lengths 4 --store file", "no store at 'file'"),
    ("evaluate abc --lengths 4 --store loop", "no store at 'loop'"),
    ("evaluate abc --lengths 4 --store empty", "no run in 'empty'", "'abc'"),
    ("report RUN --out ''", "--out", EMPTY),
    ("report RUN --out file", "--out 'file'", IN_THE_WAY),
    ("report RUN --out file/x", "--out 'file/x'", IN_THE_WAY),
    ("report RUN --out loop", "--out 'loop'", LOOP),
    ("report RUN --out dangling", "--out 'dangling'", IN_THE_WAY),
    ("report RUN --json --out file", "--out 'file'"),
    ("bench --out ''", "--out", EMPTY),
    ("bench --out file", "--out 'file'", IN_THE_WAY),
    ("bench --out loop", "--out 'loop'", LOOP),
    ("reproduce far --from published --out ''", "--out", EMPTY),
    ("reproduce far --from published --out file", "--out 'file'", IN_THE_WAY),
    ("reproduce far --from published --out loop", "--out 'loop'", LOOP),
    ("reproduce far --from published --page ''", "--page", EMPTY),
    ("reproduce far --from published --page .", "--page", "ends in .md"),
    ("reproduce far --from published --page far.html", "far.html", "ends in .md"),
    ("reproduce far --from published --page .md", "--page", "ends in .md"),
    ("reproduce far --from published --page folder.md", "--page", "folder.md"),
    ("reproduce far --from published --page file/far.md", "--page", "'file/far'", IN_THE_WAY),
    ("reproduce far --from published --page file.md", "--page", "'file'", IN_THE_WAY),
    ("reproduce far --from published --store file", "store 'file'", IN_THE_WAY),
    ("reproduce far --from published --store loop", "store 'loop'", LOOP),
    ("reproduce far --from published --store ''", "--store", EMPTY),
    ("reproduce far --store file", "store 'file'", IN_THE_WAY),
    # runs
    ("evaluate '' --lengths 4", "name a run"),
    ("evaluate zzz --lengths 4", "'zzz'", "'runs'"),
    ("evaluate . --lengths 4", "'.'"),
    ("evaluate plan.toml --lengths 4", "'plan.toml'"),
    ("evaluate runs/zzz --lengths 4", "'runs/zzz' is no run folder"),
    ("rules loops runs/zzz --lengths 4", "'runs/zzz' is no run folder"),
    ("rules square runs/zzz", "'runs/zzz' is no run folder"),
    ("rules square runs/zzz --half 5 --steps 3", "--half and --steps: not for RUNS"),
    ("rules square --model empty --steps 3", "--steps: not for --model"),
    ("rules square --epochs 3", "--epochs: not for our models"),
    ("why runs/zzz", "'runs/zzz' is no run folder"),
    ("report ''", "neither a run folder nor a store"),
    ("report nowhere", "'nowhere' is neither"),
    ("report file", "'file' is neither"),
    ("report loop", "'loop' is neither"),
    ("report empty", "no runs in empty"),
    ("report RUN nowhere", "'nowhere' is neither"),
    # numbers
    *(
        (f"evaluate RUN --lengths={bad}", "--lengths", f"'{bad}'")
        for bad in ("0", "-4", "4,", "four", "4;8", "1.5", "1e-3", "1e", "1e999", "nan")
    ),
    ("evaluate RUN --lengths ''", "--lengths", "whole numbers from 1"),
    ("evaluate RUN --lengths 17", "length 17", "task.keys"),
    ("evaluate RUN --lengths 4,99999999999999999999", "length 99999999999999999999", "task.keys"),
    *((f"evaluate RUN --lengths 4 --samples {bad}", "--samples", bad) for bad in ("0", "-1", "many", "1.5", "1e9", "nan")),
    *((f"train plan.toml --workers {bad}", "--workers", bad) for bad in ("0", "-1", "two", "1.5", "nan", "inf")),
    *((f"demo --seed {bad}", "--seed", bad) for bad in ("-1", "x", "1.5", "nan")),
    ("demo --seed ''", "--seed"),
    ("demo --seed 99999999999999999999", "seed must be at most"),
    *((f"reproduce far --seeds {bad}", "--seeds", bad) for bad in ("0", "-1", "x", "1.5", "99999999999999999999")),
    *((f"delay hybrid-block --length {bad}", "--length", bad) for bad in ("0", "-1", "ten", "1.5", "nan")),
    *((f"worker runs --lease {bad}", "--lease", bad) for bad in ("0", "-1", "soon", "nan", "inf", "99999")),
    *((f"launch ray plan.toml --lease {bad}", "--lease", bad) for bad in ("0", "nan", "inf")),
    *((f"rules square --model empty --{option} nan", f"--{option}", "no number") for option in ("lr", "epochs")),
    # devices and choices
    *((f"train plan.toml --device '{bad}'", f"device '{bad}'", NO_DEVICE) for bad in ("", "gpu", "cuda:99", "cuda:-1", "meta")),
    ("demo --device abacus", "'abacus'", NO_DEVICE),
    ("demo --device ''", "device ''", NO_DEVICE),
    ("bench --device abacus", "'abacus'", NO_DEVICE),
    ("bench --device ''", "device ''", NO_DEVICE),
    ("evaluate RUN --lengths 4 --device abacus", "'abacus'", NO_DEVICE),
    ("evaluate RUN --lengths 8 --device abacus", "'abacus'", NO_DEVICE),
    ("reproduce far --device abacus", "'abacus'", NO_DEVICE),
    ("reproduce far --device ''", "device ''", NO_DEVICE),
    *((f"train plan.toml --precision '{bad}'", "--precision", "'fp32', 'tf32', 'bf16'") for bad in ("fp16", "", "32")),
    ("reproduce far --precision fp64", "'fp64'", "'fp32', 'tf32', 'bf16'"),
    ("bench --size huge", "'huge'", "'paper', 'demo'"),
    ("bench --size ''", "--size", "'paper', 'demo'"),
    ("bench --part on", "unknown part 'on'", "did you mean 'one'?"),
    ("bench --part one,", "unknown part ''"),
    ("bench --part ''", "unknown part ''", "suite"),
    # names
    ("tasks modulo-recal", "'modulo-recal'", "did you mean 'modulo-recall'?"),
    ("tasks ''", "unknown task ''", "modulo-recall"),
    ("tasks ünï", "'ünï'"),
    ("tasks mixture", "'mixture' needs 'tasks'", "tasks = …"),
    ("tasks --set keys=8", "--set needs the NAME of a task"),
    ("tasks modulo --set kyes=8", "'task.kyes'", "did you mean 'keys'?"),
    ("models --set width=8", "--set needs the NAME of a model"),
    ("reproduce demo", "lengthlab demo"),
    ("train plan.toml --set 'grid.schedule.lr=[1e-3]'", "stands in [grid] of plan.toml"),
    *(
        (f"train plan.toml --queue {given}", "--queue trains nothing", given.split()[0])
        for given in ("--workers 2", "--precision bf16", "--open", "--json", "--track wandb", "--launch ray")
    ),
    *(
        (f"reproduce far --queue {given}", "--queue trains nothing", given.split()[0])
        for given in ("--precision bf16", "--track wandb", "--out here", "--page here.md", "--from published", "--launch ray")
    ),
    ("reproduce --check --queue", "it takes no other option"),
    *((f"worker runs --most {bad}", "--most", bad) for bad in ("0", "-1", "all", "1.5")),
    *((f"delay --survey {given}", "not for --survey") for given in ("--json", "--length 8", "--modules attn")),
    ("delay --survey --page ''", "--page", EMPTY),
    ("delay --survey --page empty", "--page is a file, and empty is a folder"),
    ("models lstn", "'lstn'", "did you mean 'lstm'?"),
    ("models ''", "unknown model ''"),
    ("models model", "needs 'width' and 'body'"),
    ("models causal-lm", "needs 'config'"),
    ("models makers.py:MADE", "made already", "name its class"),
    ("models makers.py:five", "made an int", "not a model"),
    ("check makers.py:uncalled", "gives a class", "call it there"),
    ("experiments dmeo", "'dmeo'", "did you mean 'demo'?"),
    ("experiments ''", "unknown experiment ''", "my_study.py:STUDY"),
    ("experiments makers.py:small", "is a function, not a Study"),
    ("reproduce fra", "'fra'", "did you mean 'far'?"),
    ("reproduce ''", "unknown study ''", "my_study.py:STUDY"),
    ("reproduce makers.py:small", "is a function, not a Study"),
    ("reproduce makers.py:small --check", "is a function, not a Study"),
    ("reproduce far --size huge", "no size 'huge'", "cpu, gpu"),
    ("reproduce far --size ''", "no size ''", "cpu, gpu"),
    ("reproduce far --part x", "no part 'x'", "far"),
    ("reproduce far --part ''", "no part ''", "far"),
    ("reproduce far --from published --size paper", "no size 'paper'", "cpu, gpu"),
    ("delay ''", "'' is no model here", "my_model.py:make"),
    ("delay nowhere", "'nowhere' is no model here", "my_model.py:make"),
    ("delay file", "'file' is no model here"),
    ("delay lstm", "no softmax attention", "modules="),
    ("delay hybrid-block --modules nothing", "'nothing'", "attention"),
    ("delay hybrid-block --modules ''", "named ''", "attention"),
    ("delay empty", "empty/config.json"),
    ("delay nowhere.json", "nowhere.json"),
    ("check ''", "'' is no model here", "my_model.py:make"),
    ("check nowhere", "'nowhere' is no model here"),
    ("check empty", "empty/config.json"),
    ("check makers.py:five", "made an int", "nn.Module"),
    ("check makers.py:MADE", "made already", "a function that makes it"),
    # a file of one's own, and what in it
    *(
        (f"{word} makers.py", "'makers.py' is a file", "makers.py:Net", "makers.py:small")
        for word in ("tasks", "models", "delay")
    ),
    ("check makers.py:", "'makers.py:' is a file", "makers.py:Net or makers.py:small or makers.py:five"),
    ("experiments makers.py", "'makers.py' is a file", "makers.py:small"),
    ("reproduce makers.py", "'makers.py' is a file", "makers.py:small"),
    ("tasks makers.py:smal", "has no 'smal'", "did you mean 'small'?"),
    ("tasks makers.py:small", "made a Model", "not a task"),
    ("tasks nowhere.py:Mine", "'nowhere.py:Mine' cannot be read", "No such file"),
    ("tasks folder.py:Mine", "'folder.py:Mine' cannot be read", "not a folder"),
    ("tasks loop.py:Mine", "'loop.py:Mine' cannot be read", LOOP),
    ("tasks binary.py:Mine", "binary.py", NOT_TEXT),
    ("models binary.py:make", "binary.py", NOT_TEXT),
    ("delay loop.py:make", "'loop.py:make' cannot be read", LOOP),
    ("reproduce nowhere.py:STUDY", "'nowhere.py:STUDY' cannot be read"),
    # what a study is read from
    *((f"reproduce far --from {bad}", f"no folder '{bad}'") for bad in ("nowhere", "file", "loop", "plan.toml")),
    ("reproduce far --from ''", "--from", EMPTY),
    ("reproduce far --from empty", "'empty' holds neither far/results.jsonl nor"),
    ("reproduce far --from runs", "no rows of experiment 'far'", "runs"),
    ("reproduce far --have nowhere", "no folder 'nowhere'"),
    ("reproduce far --have file", "no folder 'file'"),
    ("reproduce far --have ''", "--have", EMPTY),
    ("reproduce far --from published --device cpu", "--from trains nothing", "--device"),
    ("reproduce far --from published --device ''", "--from trains nothing", "--device"),
    ("reproduce far --from published --precision fp32", "--from trains nothing", "--precision"),
    ("reproduce far --from published --have published", "--from trains nothing", "--have"),
    ("reproduce far --check --seeds 3", "--check", "takes no other option"),
]


@pytest.mark.parametrize("case", TYPED, ids=lambda case: case[0][:60])
def test_what_is_typed_wrongly_is_refused(call: Call, desk: Path, case: tuple[str, ...]) -> None:
    if "cuda" in case[0] and torch.cuda.device_count() > 99:
        pytest.skip("this machine has that many")
    refuse(call, desk, case[0], case[1:])


SET: list[tuple[str, ...]] = [
    # out of range
    *((f"task.{name}={bad}", f"task.{name} must be at least") for name in ("modulus", "values", "keys") for bad in (0, -2)),
    *(
        (f"task.{name}=9999999999", f"task.{name} = 9999999999 would need at least 600 GB of memory")
        for name in ("modulus", "values", "keys")
    ),
    *(
        (f"model.{name}={bad}", f"model.{name} must be at least")
        for name in ("width", "blocks", "heads", "mlp")
        for bad in (0, -1)
    ),
    ("model.blocks=9999999", "model.blocks must be at most 1,000"),
    ("model.width=99999999999", "'hybrid-block' cannot be built", "EB of memory"),
    ("model.heads=3", "heads = 3", "width = 16"),
    *((f"model.scores={{name='log-n', first={bad}}}", "scores.first must be", bad) for bad in ("0", "nan", "inf")),
    *((f"model.positions={{name='rope', base={bad}}}", "positions.base must be", bad) for bad in ("-1", "nan", "inf")),
    *((f"schedule.{name}={bad}", f"schedule.{name} must be at least 1 step") for name in ("first", "joint") for bad in (0, -5)),
    ("schedule.last=-1", "schedule.last must be at least 0"),
    ("schedule.joint=99999999999999999999", "length must be at most"),
    ("schedule.first={accuracy=0}", "schedule.first", "accuracy must be above 0"),
    *((f"schedule.first={{{name}=0}}", "schedule.first", f"{name} must be at least 1") for name in ("times", "looks", "every")),
    ("schedule.first={limit=-1}", "limit must be at least 1"),
    *((f"schedule.first='{bad} epochs'", "schedule.first", bad) for bad in ("0", "-1", "inf", "nan", "some")),
    *((f"schedule.lr={bad}", "schedule.lr must be", bad) for bad in ("-1", "nan", "inf")),
    ("schedule.first_lr=-1", "schedule.lr must be at least 0, not -1"),
    ("batch=0", "batch must be at least 1, not 0"),
    ("batch=-4", "batch must be at least 1, not -4"),
    ("batch=99999999999999999999", "batch must be at most", "99999999999999999999"),
    ("seed=-1", "seed must be at least 0, not -1"),
    ("seed=99999999999999999999", "seed must be at most"),
    ("seeds=[0, -1]", "seed must be at least 0, not -1"),
    ("seeds=[]", "at least one seed"),
    ("seeds=[0, 1, 0]", "[0, 1, 0] has one twice"),
    *((f"lengths={bad}", "lengths must be", bad) for bad in ("[0, 4]", "[-1, 4]", "[4, 1]")),
    ("lengths=[4]", "lengths must be [shortest, longest]"),
    ("lengths=[1, 17]", "length 17", "task.keys"),
    ("evaluate=[0]", "length 0"),
    ("evaluate=[4, -8]", "length -8"),
    ("evaluate=[4, 17]", "length 17", "task.keys"),
    ("task.keys=3", "length 4", "task.keys"),
    *((f"optimizer.beta2={bad}", "optimizer.beta2 must be at least 0 and less than 1", bad) for bad in ("1", "-0.1", "nan")),
    *((f"optimizer.clip={bad}", "optimizer.clip must be", bad) for bad in ("-1", "nan", "inf")),
    *((f"optimizer={{name='adamw', decay={bad}}}", "optimizer.decay must be", bad) for bad in ("-1", "nan", "inf")),
    # of another kind
    ("task.modulus=2.5", "task.modulus must be a whole number, not 2.5"),
    ("task.keys='many'", "task.keys must be a whole number, not 'many'"),
    ("task.values=true", "task.values must be a whole number, not True"),
    ("model.width=true", "model.width must be a whole number, not True"),
    ("model.positions=5", "model.positions must be a name", "not 5"),
    ("model.positions.base=2", "model.positions must be a name", "{'base': 2}"),
    ("model={width=16}", "model must be a name", "{'width': 16}"),
    ("schedule.lr='fast'", "unknown rate 'fast'", "cosine"),
    ("schedule.first='5 years'", "schedule.first must be a number of steps", "'5 years'"),
    ("schedule.first=true", "schedule.first must be a number of steps", "True"),
    ("schedule.first={looks=true}", "schedule.first.looks must be a whole number", "True"),
    ("schedule.asks='modulo'", "schedule.asks must be a list", "'modulo'"),
    ("schedule.asks=[1]", "schedule.asks must be a text", "1"),
    ("schedule.covers=['part']", "schedule.covers must be", "['part']"),
    ("task.name=['modulo']", "task must be a name", "['modulo']"),
    ("task=5", "task must be a name", "5"),
    ("batch=[4]", "batch must be a whole number", "[4]"),
    ("batch=4.0", "batch must be a whole number", "4.0"),
    ("batch=", "batch must be a whole number", "''"),
    ("batch=nan", "batch must be a whole number", "nan"),
    ("batch=2026-01-01", "batch must be a whole number", "2026"),
    ("lengths=4", "lengths must be", "4"),
    ("seeds=0", "seeds must be a list", "0"),
    ("seed='zero'", "must be a whole number", "'zero'"),
    ("evaluate=[4.5]", "evaluate must be a whole number", "4.5"),
    ("evaluate=4", "evaluate must be a list", "4"),
    ("optimizer=5", "optimizer must be a table with beta1", "5"),
    # names that are not there
    ("task.name=modulo-recal", "did you mean 'modulo-recall'?"),
    ("model.name=sandwhich", "did you mean 'sandwich'?"),
    ("schedule.name=delay", "did you mean 'delayed'?"),
    ("model.positions=ropes", "did you mean 'rope'?"),
    ("model.scores=logn", "did you mean 'log-n'?"),
    ("model.norm=rms", "did you mean 'rms-norm'?"),
    ("optimizer=adamm", "did you mean 'adam'?"),
    ("schedule.asks=['modul']", "'modul'", "modulo, recall"),
    ("schedule.covers=everything", "'part', 'sublayers' or 'function'"),
    ("schedule.first={question='modul'}", "'modul'", "modulo"),
    ("task.modullus=2", "task.modullus", "did you mean 'modulus'?"),
    ("model.widht=8", "model.widht", "did you mean 'width'?"),
    ("schedule.frist=5", "schedule.frist", "did you mean 'first'?"),
    ("schedule.first={limits=500}", "did you mean 'limit'?"),
    ("bacth=4", "did you mean 'batch'?"),
    ("optimizer.beta3=0.9", "did you mean 'beta2'?"),
    ("task=''", "modulo-recall"),
    ("model={name='lstm', width=16}", "'lstm'", "attention"),
    ("schedule.lr={name='cosine'}", "schedule.lr 'cosine' needs 'peak'", "peak = …"),
    ("schedule.lr={attention=1e-3}", "schedule.lr by part needs a 'rest'"),
    ("schedule.lr={rest=1e-3, nothing=1e-3}", "'nothing'", "attention"),
    ("schedule={name='schedule', phases=[]}", "at least one phase"),
    ("schedule={name='schedule', phases=[{}]}", "needs 'length'", "length = …"),
    ("schedule={name='schedule', phases=[{length=5, of=['attention']}]}", "did you mean 'off'?"),
    ("schedule={name='schedule', phases=[{length=5, off='attention'}]}", "schedule.phases.off must be a list", "'attention'"),
    ("schedule={name='schedule', phases=[{length=5, lengths=[4]}]}", "lengths", "must be"),
    ("task={name='mixture', tasks=['modulo']}", "two tasks or more"),
    ("task={name='mixture', tasks=['modulo', 'sum']}", "unknown task 'sum'"),
    ("task={name='mixture', tasks=['modulo', 'recall'], weights=[1, -1]}", "task.weights", "-1"),
    ("task={name='mixture', tasks='modulo'}", "task.tasks must be a list"),
    # what a --set itself gets wrong
    ("", "key=value"),
    ("=", "key=value"),
    ("batch", "--set batch", "key=value"),
    ("=4", "--set =4", "key=value"),
    ("batch.size=4", "batch.size", "batch is 4, which has no keys"),
    ("task.name.first=1", "task.name.first", "which has no keys"),
    ("lengths.first=1", "lengths.first", "which has no keys"),
    (".=1", "unknown key ''"),
    ("run.batch=4", "unknown key 'run'", "batch"),
    ("task.modulus=2\nbatch=7", "a --set of its own"),
    ("ünï=4", "'ünï'"),
]


@pytest.mark.parametrize("case", SET, ids=lambda case: case[0][:60])
def test_what_is_set_wrongly_is_refused(call: Call, desk: Path, case: tuple[str, ...]) -> None:
    refuse(call, desk, f'train plan.toml --set "{case[0]}"', ("plan.toml, run 1: ", *case[1:]))


PLANS: list[tuple[str | bytes, ...]] = [
    ("[[run]\n", "not valid TOML"),
    ("", "no [[run]] table"),
    ("# nothing yet\n", "no [[run]] table"),
    ("run = [1, 2]\n", "no [[run]] table"),
    ("run = 'x'\n", "no [[run]] table"),
    ("[run]\nbatch = 4\n", "run 1: 'task' is missing"),
    ("[[run]]\nbatch = 4\n", "run 1: 'task' is missing"),
    ("[[runs]]\nbatch = 4\n", "'runs'", "[[run]]"),
    ("batch = 4\n" + RUN, "'batch'", "[[run]]"),
    (RUN + "batch = 5\n", "not valid TOML", "line 9"),
    (RUN + "\x00", "not valid TOML"),
    (RUN + "[run.task]\nkeys = 1\n", "not valid TOML"),
    (RUN.replace("[[run]]", "[[run.run]]"), "unknown key 'run'"),
    (RUN.replace("lengths = [1, 4]", "lengths = [1, 4"), "not valid TOML"),
    (RUN.replace("batch", '"\\u001b[31m"'), r"'\x1b[31m'"),
    (RUN.replace("batch", "bätch"), "not valid TOML", "line 7"),
    (RUN.replace("task =", "tsk ="), "did you mean 'task'?"),
    (RUN.replace("schedule =", "sched ="), "did you mean 'schedule'?"),
    (RUN.replace('name = "modulo-recall", ', ""), "task must be a name"),
    (RUN.replace('"modulo-recall"', "5"), "task must be a name"),
    (RUN + "seed = 1\nseeds = [1]\n", "'seed' or 'seeds', not both"),
    (RUN + 'seeds = "all"\n', "seeds must be a list"),
    (RUN + 'optimizer = { name = "sgd" }\n', "unknown optimizer 'sgd'", "adamw"),
    (RUN + RUN.replace("batch = 4", "batch = 0"), "run 2: batch"),
    (RUN.replace("[[run]]", "[run]").replace("batch = 4", "batch = 0"), "run 1: batch must be at least 1, not 0"),
    ("\ufeff" + RUN.replace("batch = 4", "batch = 0"), "run 1: batch must be at least 1, not 0"),
    (RUN.replace("batch = 4", "batch = 0").replace("\n", "\r\n"), "run 1: batch must be at least 1, not 0"),
    ("x = " + "[" * 5000 + "]" * 5000, "not valid TOML", "recursion"),
    (RUN.encode("utf-16"), NOT_TEXT),
    (RUN.replace("task =", "täsk =").encode("latin-1"), NOT_TEXT),
    (b"PK\x03\x04\xff\xff", NOT_TEXT),
]


@pytest.mark.parametrize("case", PLANS, ids=lambda case: repr(case[0])[:60])
def test_a_file_that_is_no_plan_is_refused(call: Call, desk: Path, case: tuple[str | bytes, ...]) -> None:
    text, *says = case
    (desk / "bad.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    refuse(call, desk, "train bad.toml", ("bad.toml", *map(str, says)))


@pytest.mark.parametrize("text", ["\ufeff" + RUN, RUN.replace("[[run]]", "[run]"), RUN + RUN], ids=["mark", "one", "twice"])
def test_a_mark_of_an_editor_one_table_and_a_run_named_twice_do_no_harm(call: Call, desk: Path, text: str) -> None:
    (desk / "odd.toml").write_text(text, encoding="utf-8")
    done = call("train", "odd.toml")
    assert done.code == 0, done.err
    assert len(results(desk / "runs").curves) == 1
