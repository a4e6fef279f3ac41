"""Two nodes that meet, by torchrun, a script of Slurm's and a manifest; and the ways in which they don't."""

import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import yaml

from helpers.nodes import symptoms
from helpers.nodes.launchers import launch, read
from helpers.nodes.together import Ended, bearers, end_all, free_port, together
from helpers.nodes.two_nodes import LOCALHOST, two_nodes
from helpers.nodes.worlds import world_of
from helpers.processes import run
from helpers.processes.loopback import loopback
from helpers.ranks import rendezvous
from helpers.ranks.training import train

ROOT = Path(__file__).parents[1]
RECIPES = ROOT / "book" / "framework" / "recipes"
STAND_INS = str(ROOT / "tests" / "stand_ins")
TIMEOUT = 100.0  # seconds; what is meant to end does so in ten on idle cores
TORCHRUNS = str(ROOT / "tests" / "torchruns.py")
HANGS = {("standalone", 0): "(gai error", ("busy", 1): "[c10d]"}  # by node; and what they say meanwhile
SUM = [str(ROOT / "tools" / "under_torchrun.py")]  # adds up the ranks, and checks the sum


@pytest.fixture(autouse=True)
def nothing_is_left(monkeypatch):
    """No launcher's environment; and after each test, also one that failed, no process of it is alive."""
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "GLOO_SOCKET_IFNAME"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    yield
    assert bearers(f"{os.getpid()}-") == []


@functools.cache
def digest(ranks: int, steps: int) -> str:
    """Of one process group on one computer."""
    told = {
        result["digest"] for result in run(train, ranks=ranks, backend="gloo", timeout=TIMEOUT, steps=steps)
    }
    assert len(told) == 1
    return told.pop()


def digests(ended: list[Ended]) -> list[str]:
    """Of every world."""
    return [world.digest for node in ended if (world := world_of(node))]


# Many at once, and none left


def test_together_gives_everybody_back_in_order():
    told = together(
        [["sh", "-c", f"echo $NAME; echo {i} >&2; exit {i}"] for i in (0, 3)], 30, [{"NAME": "a"}, {}]
    )
    assert told == [Ended(0, "a\n", "0\n"), Ended(3, "\n", "3\n")]


def test_together_ends_who_is_late():
    assert together([["sleep", "60"], ["true"]], timeout=0.5)[0] == Ended(None, "", "")


def test_together_ends_what_the_commands_started():
    leaves = "import subprocess, sys; subprocess.Popen(sys.argv[1:], start_new_session=True); print(1)"
    gone = [sys.executable, "-c", leaves, "sleep", "60"]  # an orphan in a session of its own
    assert together([gone], timeout=60) == [Ended(0, "1\n", "")]
    stays = f"{leaves}; print('up', file=sys.stderr, flush=True); import time; time.sleep(60)"
    late = [sys.executable, "-c", stays, "sleep", "60"]
    assert together([late], timeout=60, enough="up")[0].status is None
    assert bearers(f"{os.getpid()}-") == []


def test_together_stops_when_it_has_seen_enough_and_when_it_is_interrupted(monkeypatch):
    says = ["sh", "-c", "echo here it is >&2; exec sleep 60"]
    assert together([says, ["sleep", "60"]], 60, enough="it is") == [
        Ended(None, "", "here it is\n"),
        (None, "", ""),
    ]

    def interrupt(seconds):
        raise KeyboardInterrupt

    monkeypatch.setattr("helpers.nodes.together.time.sleep", interrupt)
    with pytest.raises(KeyboardInterrupt):
        together([["sleep", "60"]])
    assert bearers(f"{os.getpid()}-") == []


def test_together_refuses_what_cannot_be():
    with pytest.raises(ValueError, match="timeout=0: expected seconds above 0"):
        together([["true"]], timeout=0)
    with pytest.raises(ValueError, match="environments: 1 given; expected one for each of 2"):
        together([["true"]] * 2, environments=[{}])


def test_launchers_give_status_and_words_of_each():
    program = "import sys; print(1); print(2, file=sys.stderr); sys.exit(3 * (sys.argv[1:] == ['bad']))"
    own = ["--standalone", "--local-addr=127.0.0.1", "--no-python", sys.executable, "-c", program]
    good, bad, wrong = launch([own, [*own, "bad"], ["--no-such-option"]], 60)
    assert (good, bad[:2]) == (Ended(0, "1\n", "2\n"), (1, "1\n"))
    assert wrong.status == 2 and "usage: " in wrong.err
    with pytest.raises(ValueError, match="timeout=0: expected seconds above 0"):
        launch([own], 0)


@pytest.mark.namespace
def test_the_nodes_have_names_and_addresses_and_one_cable():
    shells = len(psutil.Process().children())
    with two_nodes() as nodes:
        for node, other in (nodes, nodes[::-1]):
            script = f"hostname; pwd; getent hosts {other.name}; ip -br -4 address show dev eth0"
            told = together([node.on("sh", "-c", script)])[0]
            assert told.out.split()[:2] == [node.name, os.getcwd()] and told.err == ""
            assert f"{other.address} " in told.out and f"{node.address}/24" in told.out
        serve = (
            "import socket; s = socket.create_server(('', 5000)); s.settimeout(20); print(s.accept()[1][0])"
        )
        call = f"until (echo >/dev/tcp/{nodes[0].address}/5000) 2>&-; do sleep 0.05; done"
        ends = together([nodes[0].on(sys.executable, "-c", serve), nodes[1].on("bash", "-c", call)], 30)
        assert ends[0].out.strip() == nodes[1].address
    assert len(psutil.Process().children()) == shells


# The recipes


def test_the_batch_script_starts_one_torchrun_on_each_node(tmp_path):
    """On every machine, and without torch: a torchrun that says how it was called."""
    script = RECIPES / "many-nodes.sbatch"
    assert subprocess.run(["bash", "-n", script], capture_output=True).stderr == b""
    called = tmp_path / "torchrun"
    called.write_text(
        '#!/bin/sh\necho "$STAND_IN_CPUS CPUs:" "$@"\n[ "$SLURM_NODEID" != "$FAILS" ] || exit 7\n'
        '[ -z "$FAILS" ] || exec sleep 60\n'
    )
    called.chmod(0o755)
    place = {
        "PATH": f"{tmp_path}:{STAND_INS}:{os.environ['PATH']}",
        "STAND_IN_NODES": '[["node1"], ["node2"]]',
    }
    options = (
        "--nproc-per-node=2 --master-addr=node1 --master-port={} -m helpers.ddp --expect-ranks=4 --steps 5"
    )
    # with one that fails, the other is ended, and Slurm hears of it; and two jobs have two ports
    for fails, job, port in (("", "31415", 21415), ("1", "31416", 21416)):
        more = place | {"FAILS": fails, "STAND_IN_JOB_ID": job}
        told = together([["sbatch", str(script), "--steps", "5"]], 60, [more])[0]
        assert told.status == (7 if fails else 0), told.err
        expected = [f"8 CPUs: --nnodes=2 --node-rank={i} {options.format(port)}" for i in (0, 1)]
        if fails:  # perhaps before the other has spoken
            assert expected[1] in told.out
        else:
            assert sorted(told.out.splitlines()) == expected


@pytest.mark.namespace
def test_under_the_stand_ins_the_batch_script_ends_with_the_bits_of_one_process_group():
    with two_nodes() as nodes:
        place = {
            "PATH": f"{Path(sys.executable).parent}:{STAND_INS}:{os.environ['PATH']}",
            "STAND_IN_NODES": json.dumps([[node.name, *node.enter] for node in nodes]),
            "STAND_IN_JOB_ID": "31415",
        }
        ended = together([["sbatch", str(RECIPES / "many-nodes.sbatch"), "--steps", "2"]], TIMEOUT, [place])
    assert digests(ended) == [digest(ranks=4, steps=2)]
    assert "replicas with the bits of rank 0: 4 of 4" in ended[0].out
    assert "4 ranks, float64; on this node, no GPU: 2 on the CPU with gloo\n" in ended[0].out


def manifest() -> tuple[dict, dict]:
    service, job = yaml.safe_load_all((RECIPES / "many-nodes.yaml").read_text())
    return service, job


def test_the_manifest_agrees_with_itself():
    service, job = manifest()
    assert (service["kind"], job["kind"], job["spec"]["completionMode"]) == ("Service", "Job", "Indexed")
    assert service["spec"]["clusterIP"] == "None" and service["spec"]["publishNotReadyAddresses"] is True
    name, pod = job["metadata"]["name"], job["spec"]["template"]["spec"]
    assert (
        service["spec"]["selector"] == {"job-name": name} and pod["subdomain"] == service["metadata"]["name"]
    )
    container = pod["containers"][0]
    command, nodes = container["command"][-1], job["spec"]["completions"]
    assert (
        pod["restartPolicy"] == "Never" and job["spec"]["backoffLimit"] == 0
    )  # who restarts one restarts all
    assert [volume["emptyDir"] for volume in pod["volumes"]] == [{"medium": "Memory"}]
    assert re.search(r" --master-port=\d+ ", command)
    assert container["command"][:2] == ["sh", "-c"] and job["spec"]["parallelism"] == nodes == 2
    assert f"--nnodes={nodes} " in command and f"--master-addr={name}-0.{pod['subdomain']} " in command
    gpus = container["resources"]["limits"]["nvidia.com/gpu"]
    assert f"--nproc-per-node={gpus} " in command and f"--expect-ranks={nodes * gpus} " in command
    assert {mount["name"] for mount in container["volumeMounts"]} == {
        volume["name"] for volume in pod["volumes"]
    }


@pytest.mark.namespace
def test_with_what_the_manifest_promises_its_command_ends_with_the_bits_of_one_process_group():
    """The index, the host name, and a name of pod 0 that comes late, as names of pods do."""
    service, job = manifest()
    name, command = job["metadata"]["name"], list(job["spec"]["template"]["spec"]["containers"][0]["command"])
    assert command[-1].endswith(" --steps 200")
    command[-1] = command[-1].replace("--steps 200", "--steps 2")
    names = (f"{name}-0", f"{name}-1")
    own_name_only = LOCALHOST + "10.77.0.1 small-gpt-0\n10.77.0.2 small-gpt-1\n"
    assert "small-gpt-0" in names
    with two_nodes(names, own_name_only) as nodes:
        known = f"sleep 1; echo {nodes[0].address} {names[0]}.{service['metadata']['name']} >>/etc/hosts"
        pods = [node.on(*command) for node in nodes] + [node.on("sh", "-c", known) for node in nodes]
        path = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        index = [path | {"JOB_COMPLETION_INDEX": str(i % 2)} for i in range(4)]
        ended = together(pods, TIMEOUT, index)
    assert digests(ended) == [digest(ranks=4, steps=2)]


def test_what_says_nothing_by_itself_is_refused_two_worlds_and_nodes_with_other_options():
    port = free_port()
    bens = ["--standalone", "--local-addr=127.0.0.1", "-m", "helpers.ddp", "--expect-ranks", "2"]
    master = ["--nnodes=2", "--master-addr=127.0.0.1", f"--master-port={port}"]
    seeds = [[*master, f"--node-rank={i}", "-m", "helpers.ddp", "--seed", str(i)] for i in (0, 1)]
    ended = launch([bens, bens, *seeds], TIMEOUT, {"GLOO_SOCKET_IFNAME": loopback() or ""})
    assert [(node.status, node.out) for node in ended] == [(1, "")] * 4, ended
    words = ["expect ranks 2: this world has 1; "] * 2
    words += ["seed 0 on rank 0, 1 on rank 1: expected the same on all ranks"] * 2
    for node, said in zip(ended, words, strict=True):
        assert node.err.count(f"python -m helpers.ddp: {said}") == 1, node.err


# The traps


BUSY_PORT = 29501
BUSY = """
import socket, sys
held = socket.create_server(("", int(sys.argv[1])))
print("held", flush=True)
sys.stdin.read()  # until whoever started this has ended
"""


def launches(first: str, second: str) -> dict[str, list[list[str]]]:
    """What torchrun is told on each node, by name. The nodes' names have no addresses; these are them."""
    here, there = f"--local-addr={first}", f"--local-addr={second}"
    host, guest = "--rdzv-conf=is_host=1,join_timeout={}", "--rdzv-conf=is_host=0,join_timeout={}"

    def static(number: int, address: str, port: int, *options: str) -> list[str]:
        master = [f"--master-addr={address}", f"--master-port={port}"]
        return ["--nnodes=2", f"--node-rank={number}", *master, *options]

    def c10d(address: str, port: int, *options: str, nodes: int | str = 2) -> list[str]:
        return [f"--nnodes={nodes}", "--rdzv-backend=c10d", f"--rdzv-endpoint={address}:{port}", *options]

    return {
        "standalone": [["--standalone"]],
        "standalone by address": [["--standalone", "--local-addr=127.0.0.1"]] * 2,
        "c10d": [c10d(first, 29410, nodes=1), c10d(second, 29410, there, nodes=1)],
        "c10d by address": [
            c10d(second, 29420, guest.format(60), here),
            c10d(second, 29420, host.format(60), there),
        ],
        "static": [static(0, first, 29430), static(1, first, 29430, "--nproc-per-node=3")],
        "busy": [static(0, first, BUSY_PORT), static(1, first, BUSY_PORT, "--rdzv-conf=timeout=2")],
        "other job": [
            c10d(first, 29440, host.format(3), here, "--rdzv-id=a"),
            c10d(first, 29440, guest.format(3), there, "--rdzv-id=b"),
        ],
        "other count": [
            c10d(first, 29450, host.format(3), here),
            c10d(first, 29450, guest.format(3), there, nodes=3),
        ],
        "one or two": [
            c10d("localhost", 29480, "--local-addr=127.0.0.1", "--rdzv-conf=last_call_timeout=1", nodes="1:2")
        ]
        * 2,
        "same number": [static(0, first, 29460, "--rdzv-conf=timeout=5")] * 2,
        "localhost": [static(i, "127.0.0.1", 29470, "--rdzv-conf=timeout=3") for i in (0, 1)],
    }


CURE = {"GLOO_SOCKET_IFNAME": "eth0"}


def group_of_two(name: str, rank: int, master: str, interface: dict[str, str], port: int) -> dict:
    """A job for tests/torchruns.py: a gloo group without torchrun, which hangs or fails without the cure."""
    who = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": master, "MASTER_PORT": str(port)}
    seen = None if interface == CURE else "connectFullMesh failed"
    return {"name": name, "arguments": SUM, "environment": who | interface, "seen": seen, "anywhere": True}


def torchruns(folder: Path, meeting: Path, jobs: list[dict]) -> list[str]:
    """The command that runs these jobs on one of two nodes."""
    limit = str(int(TIMEOUT) + 20)
    return [sys.executable, TORCHRUNS, str(folder), str(meeting), "2", limit, json.dumps(jobs)]


@pytest.fixture(scope="module")
def ended(tmp_path_factory) -> dict[str, list[Ended]]:
    """How every launch ended on the nodes that took part."""
    folders = [tmp_path_factory.mktemp(name) for name in ("alpha", "beta")]
    meeting = tmp_path_factory.mktemp("meeting")
    with two_nodes(hosts=LOCALHOST) as nodes:
        first = nodes[0].address
        told = launches(first, nodes[1].address)
        commands = []
        for i, (node, folder) in enumerate(zip(nodes, folders, strict=True)):
            jobs = [
                {
                    "name": name,
                    "arguments": [*options[i], "-m", "helpers.nodes.who"],
                    "seen": HANGS.get((name, i)),
                }
                for name, options in told.items()
                if i < len(options)
            ]
            for name, interface in (("gloo", {}), ("gloo by interface", CURE)):
                jobs.append(group_of_two(name, i, first, interface, 29490 + len(interface)))
            commands.append(node.on(*torchruns(folder, meeting, jobs)))
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        holder = subprocess.Popen(nodes[0].on(sys.executable, "-c", BUSY, str(BUSY_PORT)), **pipes)
        try:
            holder.stdout.readline()
            assert [node.status for node in together(commands, TIMEOUT)] == [0, 0]
        finally:
            holder.communicate()

    both = dict.fromkeys(("gloo", "gloo by interface"), folders)
    taken = {name: folders[: len(options)] for name, options in told.items()} | both
    return {name: [read(folder, name) for folder in where] for name, where in taken.items()}


def causes(ended: list[Ended]) -> list[str]:
    found = [symptoms.explain(node.err) for node in ended]
    return [symptom.cause if symptom else node.err for symptom, node in zip(found, ended, strict=True)]


@pytest.mark.namespace
def test_a_name_without_an_address_hangs_or_raises_and_addresses_cure_it(ended):
    assert [node.status for node in ended["standalone"]] == [None] and ended["standalone"][0].out == ""
    assert [node.status for node in ended["c10d"]] == [1, 1]  # also with --local-addr alone, on the second
    assert causes(ended["standalone"] + ended["c10d"]) == ["a name without an address"] * 3
    for name in ("standalone by address", "c10d by address", "static"):
        assert [node.status for node in ended[name]] == [0, 0], ended[name]


@pytest.mark.namespace
def test_with_an_address_for_the_master_gloo_still_looks_up_its_own_name(ended):
    assert [node.status for node in ended["gloo by interface"]] == [0, 0]
    assert 0 not in [node.status for node in ended["gloo"]]
    assert "an interface that leads to nobody" in causes(ended["gloo"]), ended["gloo"]


@pytest.mark.namespace
@pytest.mark.parametrize("name", ["standalone by address", "one or two"])
def test_two_nodes_can_be_two_worlds_and_nobody_complains(name, ended):
    told = [node.out for node in ended[name]]
    line = "{} GROUP_RANK=0 LOCAL_RANK=0 RANK=0 WORLD_SIZE=1 MASTER_ADDR=127.0.0.1\n"
    assert told == [line.format("alpha"), line.format("beta")]
    assert [symptoms.explain(node.err) for node in ended[name]] == [None, None]


def test_a_restart_is_handed_the_store_of_before_unless_c10d_is_told_not_to():
    """torch 2.13. With --master-addr the variable changes nothing."""
    ports = [free_port(), free_port()]
    c10d = ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{ports[0]}", "--local-addr=127.0.0.1"]
    static = ["--master-addr=127.0.0.1", f"--master-port={ports[1]}"]
    program = ["--nproc-per-node=1", "--max-restarts=1", str(ROOT / "tests" / "restarted.py")]
    ended = launch([[*c10d, *program]], TIMEOUT)
    apart = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    ended += launch([[*how, *program] for how in (c10d, static)], TIMEOUT, apart)
    told = [(node.status, node.out.strip()) for node in ended]
    assert told == [(0, f"the store {which}") for which in ("of before", "of its own", "of before")]


@pytest.mark.namespace
def test_with_c10d_the_endpoint_does_not_make_rank_0_but_the_address_string(ended):
    first, second = ended["c10d by address"]  # the endpoint is on the second
    assert " RANK=0 WORLD_SIZE=2 MASTER_ADDR=10.77.0.1" in first.out and " RANK=1 " in second.out


@pytest.mark.namespace
def test_unequal_nodes_make_a_world_as_large_as_equal_ones(ended):
    told = [re.findall(r"LOCAL_RANK=(\d) RANK=(\d) WORLD_SIZE=4", node.out) for node in ended["static"]]
    assert [sorted(node) for node in told] == [[("0", "0")], [("0", "1"), ("1", "2"), ("2", "3")]]


@pytest.mark.namespace
def test_a_busy_port_is_named_on_the_first_node_and_the_second_waits_for_whoever_has_it(ended):
    first, second = ended["busy"]
    assert first.status == 1 and causes([first]) == ["a busy port"]
    assert second.status is None and symptoms.explain(second.err) is None  # beyond its own time-out


@pytest.mark.namespace
def test_nodes_of_two_jobs_wait_for_each_other(ended):
    nodes = ended["other job"]
    assert all(node.status for node in nodes) and "".join(node.out for node in nodes) == ""
    assert "nodes that wait for others" in causes(nodes)


@pytest.mark.namespace
def test_nodes_that_count_differently_meet_or_wait(ended):
    """Who comes last decides: is it the one that counts two, both are there; else each waits for a third."""
    nodes = ended["other count"]
    if all(node.status for node in nodes):
        assert "nodes that wait for others" in causes(nodes)
    else:
        assert ["WORLD_SIZE=2" in node.out for node in nodes] == [True, True], nodes


@pytest.mark.namespace
def test_two_nodes_with_one_number_wait_for_the_other(ended):
    assert [node.status for node in ended["same number"]] == [1, 1]
    assert causes(ended["same number"]) == ["two nodes with one node rank"] * 2


@pytest.mark.namespace
def test_on_127_0_0_1_the_first_waits_for_the_second_and_the_second_for_a_master(ended):
    assert [node.status for node in ended["localhost"]] == [1, 1]
    assert causes(ended["localhost"]) == ["fewer nodes than --nnodes", "nobody at the master's address"]


DOCKER = "ip link add docker0 type veth && ip address add 172.17.0.1/16 dev docker0 && ip link set docker0 up"


@pytest.fixture(scope="module")
def debian(tmp_path_factory) -> dict[str, list[Ended]]:
    """How it ended on two nodes with Debian's hosts file, in which a host's name has 127.0.1.1.

    docker0 has one address on all computers.
    """
    folders = [tmp_path_factory.mktemp(name) for name in ("alpha", "beta")]
    meeting = tmp_path_factory.mktemp("meeting")
    interfaces = {"by name": {}, "docker0": {"GLOO_SOCKET_IFNAME": "docker0"}, "cure": CURE}
    hosts = {"c10d": ("", ""), "c10d told who is host": (",is_host=1", ",is_host=0")}
    with two_nodes(hosts=LOCALHOST + "127.0.1.1 alpha beta\n") as nodes:
        assert [e.status for e in together([node.on("sh", "-c", DOCKER) for node in nodes])] == [0, 0]
        first, commands = nodes[0].address, []
        for rank, node in enumerate(nodes):
            jobs = [
                group_of_two(name, rank, first, interface, 29561 + i)
                for i, (name, interface) in enumerate(interfaces.items())
            ]
            for port, (name, told) in enumerate(hosts.items(), 29571):
                how = [f"--rdzv-endpoint={first}:{port}", f"--local-addr={node.address}"]
                how.append(f"--rdzv-conf=read_timeout={1 if name == 'c10d' else 60}{told[rank]}")
                program = ["-m", "helpers.nodes.who"]
                arguments = ["--nnodes=2", "--rdzv-backend=c10d", *how, *program]
                jobs.append({"name": name, "arguments": arguments, "seen": None})
            commands.append(node.on(*torchruns(folders[rank], meeting, jobs)))
        together(commands, TIMEOUT)
    return {name: [read(folder, name) for folder in folders] for name in (*interfaces, *hosts)}


@pytest.mark.namespace
def test_an_interface_that_leads_to_nobody_is_named_and_another_one_cures_it(debian):
    assert [node.status for node in debian["cure"]] == [0, 0]
    for nodes in (debian["by name"], debian["docker0"]):
        assert 0 not in [node.status for node in nodes]
        assert "an interface that leads to nobody" in causes(nodes), nodes


@pytest.mark.namespace
def test_with_c10d_nobody_hosts_the_store_where_a_name_has_127_0_1_1_until_told(debian):
    assert [node.status for node in debian["c10d"]] == [1, 1]
    assert causes(debian["c10d"]) == ["nobody at the master's address"] * 2
    assert [node.status for node in debian["c10d told who is host"]] == [0, 0]


def test_every_symptom_is_found_where_it_stands_and_only_there():
    for symptom in symptoms.SYMPTOMS:
        text = (
            "[W1 socket.cpp:1] "
            + symptom.says.replace("...", "127.0.0.1, 29500")
            + " (most recent call first)"
        )
        assert symptoms.explain(text) == symptom and symptoms.words(text)
    assert symptoms.explain("step 200: loss 2.1; Warning: the hostname cannot be retrieved. err=-3") is None
    assert symptoms.words("") == ""


def test_a_name_that_became_known_is_no_cause():
    unknown = "addresses of (pod-0, 29500) cannot be retrieved (gai error: -2)\n"
    assert symptoms.explain(unknown).cause == "a name without an address"
    late = "timed out after 1000ms while trying to connect to ({}, 29500)"
    assert symptoms.explain(unknown + late.format("pod-0")).cause == "a name without an address"
    assert symptoms.explain(unknown + late.format("10.0.0.1")).cause == "nobody at the master's address"
    too_few = "waiting for clients. 1/2 clients joined"
    assert symptoms.explain(unknown + too_few).cause == "fewer nodes than --nnodes"


def test_somebody_who_does_not_end_is_reported(monkeypatch):
    monkeypatch.setattr("helpers.nodes.together.bearers", lambda mark: [psutil.Process()])
    monkeypatch.setattr("psutil.Process.kill", lambda self: None)
    monkeypatch.setattr("psutil.wait_procs", lambda left, timeout: None)
    with pytest.raises(RuntimeError, match=f"processes that don't end: .{os.getpid()}"):
        end_all("anybody", patience=0.01)


def test_node_ranks_follow_the_address_strings_whoever_comes_first():
    orders = [["node9", "node10", "gpu2"], ["gpu2", "node10", "node9"]]
    expected = {"node9": 2, "node10": 1, "gpu2": 0}
    assert list(run(rendezvous.node_ranks, ranks=2, backend="gloo", orders=orders)) == [expected] * 2
