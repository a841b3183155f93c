"""`specrag vllm`: the commands that are printed are right, and what is started is ended.

The processes here are toys that listen as vLLM does (`toy_vllm`); tests/vllm starts the real thing.
"""

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import typer

from scripts import server_sizes
from specrag.cli import app
from specrag.config import Settings
from specrag.errors import ModelError, ServerUnreachable, UsageError
from specrag.vllm import group
from specrag.vllm.choice import Choice, Model
from specrag.vllm.machine import ENVIRONMENT, find_gpus, find_python, free_ports, share_cores
from specrag.vllm.plan import Plan, is_loopback, make_plan
from specrag.vllm.printed import as_dict, as_shell
from specrag.vllm.server import VllmServer
from specrag.vllm.servers import VllmServers
from tests.toy_vllm import is_running, known, make_toy

ROOT = Path(__file__).resolve().parents[1]
EVERYWHERE = ".".join("0000")
CHOICE = Choice(
    drafter=Model(source="/models/small one", name="small", local=True),
    verifier=Model(source="org/large", name="org/large", local=False),
    cores=(0, 1, 2, 3),
)
GPU = replace(CHOICE, device="gpu")
FOUR = ("0", "1", "2", "3")


def words(plan: Plan, role: str) -> list[str]:
    server = plan.of("verifier" if role == "verifier" else "drafter")[0]
    return list(server.command("python"))


def variable(plan: Plan, number: int, name: str) -> str | None:
    return {one.name: one.value for one in plan.servers[number].environment}.get(name)


def value(of: list[str], flag: str) -> str | None:
    return of[of.index(flag) + 1] if flag in of else None


class TestPlan:
    def test_scores_do_not_depend_on_the_cache_and_greedy_stays_greedy(self) -> None:
        plan = make_plan(CHOICE)
        drafter, verifier = words(plan, "drafter"), words(plan, "verifier")
        assert "--no-enable-prefix-caching" in verifier
        assert "--enable-prefix-caching" in drafter
        for command in (drafter, verifier):
            assert value(command, "--generation-config") == "vllm"
            assert value(command, "--max-logprobs") == "20"

    def test_the_app_calls_the_models_as_the_servers_do(self) -> None:
        plan = make_plan(replace(CHOICE, replicas=2))
        assert plan.variables == {
            "SPECRAG_DRAFTER": "small",
            "SPECRAG_DRAFTER_URL": "http://127.0.0.1:8001/v1,http://127.0.0.1:8002/v1",
            "SPECRAG_VERIFIER": "org/large",
            "SPECRAG_VERIFIER_URL": "http://127.0.0.1:8100/v1",
        }
        assert value(words(plan, "drafter"), "--served-model-name") == "small"
        assert value(words(plan, "verifier"), "--served-model-name") == "org/large"

    def test_servers_on_one_cpu_have_cores_and_memory_of_their_own(self) -> None:
        plan = make_plan(CHOICE)
        assert [variable(plan, number, "VLLM_CPU_OMP_THREADS_BIND") for number in (0, 1)] == ["0,1", "2,3"]
        assert variable(plan, 0, "VLLM_CPU_KVCACHE_SPACE") == "1"
        assert value(words(plan, "drafter"), "--dtype") == "float32"
        assert not plan.in_turn
        assert share_cores((0,), 2) == ((), ())

    def test_only_a_folder_is_served_without_the_hub(self) -> None:
        plan = make_plan(CHOICE)
        assert variable(plan, 0, "HF_HUB_OFFLINE") == "1"
        assert variable(plan, 1, "HF_HUB_OFFLINE") is None

    def test_one_gpu_is_shared_and_the_servers_start_in_turn(self) -> None:
        """Two that load at once spoil each other's measurement of the free memory."""
        plan = make_plan(replace(GPU, gpus=FOUR[:1], replicas=2))
        shares = [
            float(value(list(one.command("p")), "--gpu-memory-utilization") or 0) for one in plan.servers
        ]
        assert plan.in_turn
        assert sum(shares) <= 0.9
        assert shares[0] == shares[1] > 0.1
        assert [variable(plan, number, "CUDA_VISIBLE_DEVICES") for number in range(3)] == ["0", "0", "0"]

    def test_a_large_verifier_takes_its_gpus_and_drafters_take_the_others(self) -> None:
        plan = make_plan(replace(GPU, gpus=FOUR, tensor_parallel=2, replicas=2, quantization="awq"))
        assert [variable(plan, number, "CUDA_VISIBLE_DEVICES") for number in range(3)] == ["2", "3", "0,1"]
        verifier = words(plan, "verifier")
        assert value(verifier, "--tensor-parallel-size") == "2"
        assert value(verifier, "--quantization") == "awq"
        assert value(verifier, "--gpu-memory-utilization") == "0.85"
        assert int(value(verifier, "--max-num-batched-tokens") or 0) >= 16 * 200
        assert "--quantization" not in words(plan, "drafter")
        assert "--tensor-parallel-size" not in words(plan, "drafter")
        assert not plan.in_turn

    def test_more_drafters_than_free_gpus_share_them(self) -> None:
        plan = make_plan(replace(GPU, gpus=FOUR[:2], replicas=2))
        shares = [
            float(value(list(one.command("p")), "--gpu-memory-utilization") or 0)
            for one in plan.of("drafter")
        ]
        assert [variable(plan, number, "CUDA_VISIBLE_DEVICES") for number in range(3)] == ["1", "1", "0"]
        assert plan.in_turn
        assert sum(shares) <= 0.9

    def test_gpus_keep_the_names_that_they_were_given(self) -> None:
        """Numbered from 0 again, a server would run on a GPU that belongs to somebody else."""
        plan = make_plan(replace(GPU, gpus=("5", "GPU-7f", "6"), tensor_parallel=2))
        assert [variable(plan, number, "CUDA_VISIBLE_DEVICES") for number in range(2)] == ["6", "5,GPU-7f"]

    def test_a_plan_for_another_machine_names_no_gpus(self) -> None:
        plan = make_plan(replace(GPU, gpus=(), tensor_parallel=4))
        assert variable(plan, 0, "CUDA_VISIBLE_DEVICES") is None
        assert value(words(plan, "verifier"), "--tensor-parallel-size") == "4"

    def test_a_machine_for_one_role_gives_it_everything(self) -> None:
        drafters = make_plan(replace(GPU, gpus=FOUR[:2], replicas=2, only="drafter", drafter_port=8100))
        assert [server.role for server in drafters.servers] == ["drafter", "drafter"]
        assert [variable(drafters, number, "CUDA_VISIBLE_DEVICES") for number in (0, 1)] == ["0", "1"]
        assert not drafters.in_turn
        assert "--gpu-memory-utilization" not in words(drafters, "drafter")
        assert "SPECRAG_VERIFIER_URL" not in drafters.variables
        verifier = make_plan(replace(GPU, gpus=FOUR[:2], tensor_parallel=2, only="verifier"))
        assert value(words(verifier, "verifier"), "--gpu-memory-utilization") == "0.85"
        assert list(verifier.variables) == ["SPECRAG_VERIFIER", "SPECRAG_VERIFIER_URL"]
        assert (
            variable(make_plan(replace(CHOICE, only="verifier")), 0, "VLLM_CPU_OMP_THREADS_BIND") == "0,1,2,3"
        )

    @pytest.mark.parametrize(
        ("choice", "message"),
        [
            (replace(CHOICE, verifier_port=8001), "8001"),
            (replace(CHOICE, drafter_port=65535, replicas=2), "would end at port 65536"),
            (replace(CHOICE, tensor_parallel=2), "--tensor-parallel"),
            (replace(GPU, gpus=FOUR[:2], tensor_parallel=4), "4 GPUs and this machine has 2"),
            (replace(GPU, gpus=FOUR[:1], memory=(0.6, 0.6)), "--gpu-memory"),
        ],
    )
    def test_what_cannot_work_is_refused_before_anything_starts(self, choice: Choice, message: str) -> None:
        with pytest.raises(UsageError, match=message):
            make_plan(choice)

    def test_addresses(self) -> None:
        everywhere = make_plan(replace(CHOICE, host=EVERYWHERE))
        assert value(words(everywhere, "drafter"), "--host") == EVERYWHERE
        assert everywhere.servers[-1].url == "http://127.0.0.1:8100/v1"
        assert everywhere.elsewhere == {
            "SPECRAG_DRAFTER_URL": "http://THIS_MACHINE:8001/v1",
            "SPECRAG_VERIFIER_URL": "http://THIS_MACHINE:8100/v1",
        }
        assert make_plan(CHOICE).elsewhere == {}
        assert make_plan(replace(CHOICE, host="::")).servers[-1].url == "http://[::1]:8100/v1"
        assert is_loopback("localhost")
        assert is_loopback("::1")
        assert not is_loopback(EVERYWHERE)
        assert not is_loopback("gpu-7")


class TestMachine:
    @pytest.mark.parametrize(
        ("script", "count"),
        [
            ("echo 'GPU 0: NVIDIA L4 (UUID: GPU-1)'; echo 'GPU 1: NVIDIA L4 (UUID: GPU-2)'", 2),
            ("echo 'NVIDIA-SMI has failed because it could not talk to the driver.'; exit 9", 0),
            ("echo 'GPU 0: a driver that fails afterwards'; exit 15", 0),
        ],
    )
    def test_only_gpus_that_answer_count(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, count: int
    ) -> None:
        """The tool is often installed on machines whose driver is not."""
        tool = tmp_path / "nvidia-smi"
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        assert len(find_gpus()) == count

    @pytest.mark.parametrize(
        ("given", "gpus"),
        [
            ("1", ("1",)),
            ("3, 0", ("3", "0")),
            ("GPU-b2,MIG-c3", ("GPU-b2", "MIG-c3")),
            ("1,7,0", ("1",)),
            ("", ()),
            ("-1", ()),
            ("GPU-of-another-machine", ()),
        ],
    )
    def test_only_gpus_that_are_left_to_us_are_used(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, gpus: tuple[str, ...]
    ) -> None:
        """As CUDA reads its variable: the first that does not exist ends the list."""
        lines = [f"GPU {number}: NVIDIA L4 (UUID: GPU-{'abcd'[number]}{number + 1})" for number in range(4)]
        lines.append("  MIG 1g.10gb Device 0: (UUID: MIG-c3)")
        tool = tmp_path / "nvidia-smi"
        tool.write_text("#!/bin/sh\n" + "".join(f"echo '{line}'\n" for line in lines))
        tool.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", given)
        assert find_gpus() == gpus

    def test_without_the_tool_there_are_none(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        assert find_gpus() == ()

    def test_the_environment_is_found_where_the_script_puts_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Through its link: resolved, it would be the system's Python, which has no vLLM."""
        script = (ROOT / "scripts" / "vllm_environment.sh").read_text(encoding="utf-8")
        assert f"venv={ENVIRONMENT}\n" in script
        monkeypatch.chdir(tmp_path)
        assert find_python() is None
        (tmp_path / ENVIRONMENT / "bin").mkdir(parents=True)
        link = tmp_path / ENVIRONMENT / "bin" / "python"
        link.symlink_to(sys.executable)
        assert find_python() == link


class TestPrinted:
    def test_what_is_printed_is_what_a_shell_runs(self) -> None:
        """Quotes, line ends and reasons between the commands must not change a word."""
        plan = make_plan(CHOICE)
        text = as_shell(plan, python="/venv/bin/python", keyed=("drafter", "verifier"))
        commands = text.replace("\\\n", " ").splitlines()
        (drafter,) = [line for line in commands if "--port 8001" in line]
        read = shlex.split(drafter)
        first = read.index("/venv/bin/python")
        assert tuple(read[first:]) == plan.servers[0].command("/venv/bin/python")
        assert "VLLM_CPU_KVCACHE_SPACE=1" in read[:first]
        assert "VLLM_API_KEY=$SPECRAG_DRAFTER_KEY" in read[:first]
        assert "export SPECRAG_DRAFTER=small" in commands
        assert subprocess.run(["sh", "-n", "-c", text], check=False).returncode == 0

    def test_an_app_on_another_machine_is_told_another_address(self) -> None:
        open_one = as_shell(make_plan(replace(CHOICE, host=EVERYWHERE)), python="python", keyed=())
        assert "export SPECRAG_DRAFTER_URL=http://127.0.0.1:8001/v1\n" in open_one
        assert "#   export SPECRAG_DRAFTER_URL=http://THIS_MACHINE:8001/v1\n" in open_one
        assert "THIS_MACHINE" not in as_shell(make_plan(CHOICE), python="python", keyed=())

    def test_every_flag_has_its_reason(self) -> None:
        text = as_shell(make_plan(CHOICE), python="python", keyed=())
        for flag in make_plan(CHOICE).servers[-1].flags:
            assert f"#   {' '.join(flag.words)}: {flag.reason}" in text

    def test_the_document(self) -> None:
        document = as_dict(make_plan(CHOICE), python="python")
        assert document["schema"] == "specrag.vllm/1"
        assert [server["role"] for server in document["servers"]] == ["drafter", "verifier"]
        assert document["servers"][1]["key_setting"] == "SPECRAG_VERIFIER_KEY"
        assert json.loads(json.dumps(document)) == document
        assert document["elsewhere"] == {}
        open_one = as_dict(make_plan(replace(CHOICE, host=EVERYWHERE)), python="python")
        assert open_one["elsewhere"]["SPECRAG_VERIFIER_URL"] == "http://THIS_MACHINE:8100/v1"


class TestPage:
    """docs/servers.md says what the code does."""

    page = (ROOT / "docs" / "servers.md").read_text(encoding="utf-8")

    def test_its_tables_are_the_arithmetic_of_the_script(self) -> None:
        assert server_sizes.sizes() in self.page
        assert server_sizes.counts() in self.page

    def test_the_arithmetic_meets_what_is_known(self) -> None:
        """Files of Qwen2.5-72B-Instruct-AWQ: 41.6 GB; vLLM put 23,296 tokens of SmolLM2 in fp32 into a GiB."""
        shapes = {shape.name: shape for shape in server_sizes.SHAPES}
        assert shapes["Qwen2.5-72B"].weights_gb(quantised=True) == pytest.approx(41.6, abs=0.2)
        assert shapes["Llama-3.1-70B"].weights_gb(quantised=False) == pytest.approx(2 * 70.55, abs=0.1)
        assert 2**30 // (2 * 30 * 3 * 64 * 4) // 128 * 128 == 23_296

    def test_every_flag_of_the_commands_is_explained(self) -> None:
        plan = make_plan(replace(GPU, gpus=FOUR, tensor_parallel=2))
        for server in (*plan.servers, *make_plan(CHOICE).servers):
            for flag in server.flags:
                assert flag.words[0] in self.page, flag

    def test_every_setting_and_option_that_it_names_exists(self) -> None:
        fields = {f"SPECRAG_{name.upper()}" for name in Settings.model_fields}
        named = set(re.findall(r"SPECRAG_[A-Z_]+", self.page))
        assert named
        assert named <= fields
        options = {
            word
            for line in self.page.split("| option |")[1].split("\n\n")[0].splitlines()
            for word in re.findall(r"`(--[a-z-]+)", line)
        }
        known = {name for parameter in _options() for name in parameter}
        assert len(options) > 8
        assert options <= known


def _options() -> list[list[str]]:
    command = typer.main.get_command(app)
    return [list(parameter.opts) for parameter in command.commands["vllm"].params]  # type: ignore[attr-defined]


@pytest.fixture
def toys(tmp_path: Path) -> VllmServers:
    first, second = free_ports(2)
    plan = make_plan(replace(CHOICE, drafter_port=first, verifier_port=second))
    return VllmServers(plan, python=make_toy(tmp_path), logs=tmp_path, keys={"verifier": "secret-7"})


class TestServers:
    def test_they_start_tell_how_busy_they_are_and_leave_nothing(self, toys: VllmServers) -> None:
        with toys:
            assert (
                toys.drafter.running() == 3
            )  # running and waiting; the reasons of waiting do not count again
            assert toys.drafter.url.endswith(f":{toys.drafter.plan.port}/v1")
            assert toys.verifier.model == "org/large"
            pids = [pid for server in toys.all for pid in known(server)["pids"]]
            assert all(map(is_running, pids))
        assert not any(map(is_running, pids))
        with pytest.raises(ServerUnreachable):
            toys.drafter.running()

    def test_a_key_reaches_its_server_only_and_never_a_command_line(
        self, toys: VllmServers, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SPECRAG_VERIFIER_KEY", "secret-7")
        monkeypatch.setenv("VLLM_API_KEY", "secret-8")
        monkeypatch.setenv("PYTHONPATH", "/somewhere")
        with toys:
            drafter, verifier = known(toys.drafter), known(toys.verifier)
        assert verifier["environment"]["VLLM_API_KEY"] == "secret-7"
        assert "secret-" not in json.dumps(drafter)
        assert "secret-7" not in json.dumps(verifier["words"])
        assert "PYTHONPATH" not in drafter["environment"]

    def test_a_killed_server_starts_again_at_its_address(self, toys: VllmServers) -> None:
        with toys:
            before = known(toys.drafter)["pids"]
            toys.drafter.kill()
            assert not any(map(is_running, before))
            assert not toys.drafter.alive
            assert toys.verifier.alive
            toys.drafter.start()
            toys.drafter.wait_ready(20)
            assert toys.drafter.running() == 3
            assert known(toys.drafter)["pids"] != before

    def test_one_that_dies_at_its_start_says_why_and_the_other_is_ended(
        self, toys: VllmServers, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        toys.drafter.start()
        toys.drafter.wait_ready(20)
        pids = known(toys.drafter)["pids"]
        monkeypatch.setenv("TOY_FAILS", "1")
        with pytest.raises(ModelError, match=r"verifier's server at .* ended with status 3") as told:
            toys.start(20)
        assert "ValueError: this toy does not know the architecture" in str(told.value)
        assert not any(map(is_running, pids))

    def test_a_port_in_use_is_not_taken_for_our_server(self, toys: VllmServers) -> None:
        with socket.socket() as stranger:
            stranger.bind(("127.0.0.1", toys.drafter.plan.port))
            stranger.listen()
            with pytest.raises(UsageError, match="is taken"):
                toys.start(20)

    @pytest.mark.parametrize(
        ("host", "message"),
        [
            ("no-such-host.invalid", "neither an address nor a name that this machine knows"),
            ("192.0.2.1", "not an address of this machine"),
        ],
    )
    def test_a_host_that_is_not_ours_is_said_to_be_that(
        self, tmp_path: Path, host: str, message: str
    ) -> None:
        """192.0.2.1 is for documentation: no machine has it."""
        plan = make_plan(replace(CHOICE, host=host))
        with pytest.raises(UsageError, match=message):
            VllmServers(plan, python=make_toy(tmp_path), logs=tmp_path).start(5)

    def test_one_that_neither_answers_nor_stops_is_given_up(self, tmp_path: Path) -> None:
        deaf = tmp_path / "deaf"
        deaf.write_text("#!/bin/sh\ntrap '' TERM\nsleep 600 & wait\n")
        deaf.chmod(0o755)
        server = VllmServer(
            make_plan(replace(CHOICE, drafter_port=free_ports(1)[0])).servers[0],
            python=deaf,
            log=tmp_path / "log",
        )
        server.start()
        pid = server.pid
        with pytest.raises(ServerUnreachable, match="did not answer within 0 s"):
            server.wait_ready(0.3)
        server.stop(0.1)
        assert pid is not None
        assert not is_running(pid)

    def test_an_interpreter_that_is_not_there(self, toys: VllmServers, tmp_path: Path) -> None:
        with pytest.raises(ModelError, match="cannot be run"):
            VllmServers(toys.plan, python=tmp_path / "nothing", logs=tmp_path).start(5)
        with pytest.raises(ModelError, match="not a Python"):
            find_python(tmp_path / "nothing")

    def test_a_group_that_is_gone_is_ended_at_once(self) -> None:
        with subprocess.Popen(["true"], start_new_session=True) as process:
            process.wait()
        assert group.end(process.pid, within_s=0)


@dataclass(frozen=True)
class CommandLine:
    folder: Path
    model: Path
    ports: tuple[int, ...]

    def words(self, *more: str) -> list[str]:
        ports = ["--drafter-port", str(self.ports[0]), "--verifier-port", str(self.ports[1])]
        models = ["--drafter", str(self.model), "--verifier", "org/large", "--device", "cpu"]
        return [sys.executable, "-m", "specrag", "vllm", *models, *ports, *more]

    def environment(self, **more: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SPECRAG_")}
        return kept | {"SPECRAG_HOME": str(self.folder)} | more

    def __call__(self, *more: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.words(*more),
            cwd=ROOT,
            env=self.environment(**environment),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


@pytest.fixture
def command(tmp_path: Path) -> CommandLine:
    model = tmp_path / "small model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    (model / "model.safetensors").write_bytes(b"")
    return CommandLine(tmp_path, model, free_ports(2))


@contextmanager
def started(command: CommandLine, *more: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        command.words("--start", *more),
        cwd=ROOT,
        env=command.environment(**environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


class TestCommand:
    def test_it_prints_what_to_run(self, command: CommandLine) -> None:
        told = command("--json", "--python", sys.executable)
        assert told.returncode == 0, told.stderr
        document = json.loads(told.stdout)
        drafter, verifier = document["servers"]
        assert drafter["model"] == str(command.model)
        assert drafter["served_name"] == "small model"
        assert verifier["model"] == "org/large"
        assert drafter["command"][:3] == [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
        assert document["variables"]["SPECRAG_VERIFIER_URL"] == f"http://127.0.0.1:{command.ports[1]}/v1"

    def test_a_key_is_not_printed_and_an_open_server_is_warned_of(self, command: CommandLine) -> None:
        keyed = {"SPECRAG_DRAFTER_KEY": "secret-1", "SPECRAG_VERIFIER_KEY": "secret-2"}
        told = command("--host", EVERYWHERE, **keyed)
        assert told.returncode == 0, told.stderr
        assert "secret" not in told.stdout + told.stderr
        assert 'VLLM_API_KEY="$SPECRAG_VERIFIER_KEY"' in told.stdout
        assert "Warning" not in told.stderr
        assert f"Warning: anyone who reaches {EVERYWHERE}" in command("--host", EVERYWHERE).stderr
        assert "Warning" not in command().stderr
        empty = command("--host", EVERYWHERE, SPECRAG_DRAFTER_KEY="", SPECRAG_VERIFIER_KEY="secret-2")
        assert "set SPECRAG_DRAFTER_KEY" in empty.stderr
        assert "SPECRAG_VERIFIER_KEY" not in empty.stderr

    @pytest.mark.parametrize(
        ("words", "code", "message"),
        [
            (("--device", "tpu"), 2, "--device is cpu or gpu"),
            (("--device", "gpu", "--start"), 2, "nvidia-smi finds no GPU"),
            (("--drafter-port", "65535", "--replicas", "2"), 2, "would end at port 65536"),
            (("--only", "both"), 2, "--only is drafter or verifier"),
            (("--gpu-memory", "much"), 2, "two shares"),
            (("--gpu-memory", "0,2"), 2, "above 0 and at most 1"),
            (("--drafter", "no-such-model"), 1, "There is no model 'no-such-model'"),
        ],
    )
    def test_a_wrong_choice_is_one_sentence(
        self, command: CommandLine, words: tuple[str, ...], code: int, message: str
    ) -> None:
        told = command(*words, CUDA_VISIBLE_DEVICES="")
        assert told.returncode == code
        assert message in told.stderr
        assert "Traceback" not in told.stderr

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
    def test_a_signal_ends_every_process(self, command: CommandLine, number: signal.Signals) -> None:
        before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests themselves may run under nohup
        try:
            self._ends_every_process(command, number)
        finally:
            signal.signal(signal.SIGHUP, before)

    def _ends_every_process(self, command: CommandLine, number: signal.Signals) -> None:
        with started(command, "--python", str(make_toy(command.folder))) as process:
            assert process.stdout is not None
            told = [process.stdout.readline() for _ in range(4)]
            pids = [
                pid
                for port in command.ports
                for pid in json.loads((command.folder / "vllm" / f"toy-{port}.json").read_text())["pids"]
            ]
            assert all(map(is_running, pids))
            process.send_signal(number)
            _, complaints = process.communicate(timeout=60)
        assert told[0] == "export SPECRAG_DRAFTER='small model'\n"
        assert process.returncode == 130
        assert not any(map(is_running, pids))
        assert "Traceback" not in complaints

    def test_a_crash_is_told_and_mended_and_a_second_ends_all(self, command: CommandLine) -> None:
        """With one drafter of two gone, the command would otherwise take all the others away."""
        with started(command, "--python", str(make_toy(command.folder))) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            for _ in range(4):
                process.stdout.readline()
            (command.folder / "vllm" / "toy-fails").touch()
            drafter, verifier = (
                json.loads((command.folder / "vllm" / f"toy-{port}.json").read_text())["pids"]
                for port in command.ports
            )
            os.kill(verifier[0], signal.SIGKILL)
            _, complaints = process.communicate(timeout=60)
        assert "verifier's server at" in complaints
        assert "was ended by SIGKILL" in complaints
        assert "starting again" in complaints
        assert "ValueError: this toy does not know the architecture" in complaints
        assert process.returncode == 1
        assert "Traceback" not in complaints
        assert not any(map(is_running, [*drafter, *verifier]))

    def test_a_server_that_dies_at_its_start_is_told_with_its_last_words(self, command: CommandLine) -> None:
        """This interpreter has no vLLM, which is a real way to die."""
        told = command("--start", "--python", sys.executable)
        assert told.returncode == 1
        assert "ended with status 1" in told.stderr
        assert "No module named 'vllm'" in told.stderr or "No module named vllm" in told.stderr
        assert "Traceback" not in told.stdout

    def test_without_vllm_it_says_how_to_get_it(self, command: CommandLine, tmp_path: Path) -> None:
        done = subprocess.run(
            command.words("--start"),
            cwd=tmp_path,
            env=command.environment(PYTHONPATH=str(ROOT)),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 1
        assert "scripts/vllm_environment.sh" in done.stderr
