# SPDX-License-Identifier: GPL-2.0-or-later
"""Both ways to boot, on the kernel that is being tested."""

import os
import re
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest

from lab import boot, measure, paths, process, storage, systems
from lab.boot import BootResult
from lab.build import Kernel
from lab.errors import LabError
from lab.machine import Disk, Machine

pytestmark = pytest.mark.guest

Boot = Callable[..., BootResult]
WAYS = pytest.mark.parametrize("way", [boot.system, boot.exact], ids=["system", "exact"])


@pytest.fixture(scope="module")
def machine(kernel: Kernel) -> Machine:
    memory_mib = 1024 if kernel.flavour.name == "debug" else 512
    return Machine(memory_mib, cpus=1, area_mib=64, args=kernel.target.hasty)


# Boots are what these tests take their time for: each shows as much as it can.
ORDERED = """
echo to-stdout; echo to-stderr >&2; uname -r
grep -c ^processor /proc/cpuinfo
ls /sys/kernel/mm/cma
grep CmaTotal /proc/meminfo
cat /sys/devices/system/node/online /sys/devices/system/node/node*/cpulist
exit 3
"""


@WAYS
def test_machine_is_as_ordered_and_its_output_errors_and_status_come_back(
    way: Boot, kernel: Kernel, machine: Machine
) -> None:
    heard: list[str] = []
    ordered = replace(machine, cpus=3, nodes=2, args=())
    result = way(kernel, ordered, ORDERED, listener=heard.append)
    assert result.status == 3
    words = [word for word in result.output.split() if word != "to-stderr"]
    assert words[:3] == ["to-stdout", kernel.release, "3"]
    assert words[3:] == ["reserved", "CmaTotal:", str(64 * 1024), "kB", "0-1", "0", "1-2"]
    assert "to-stderr" in result.errors + result.output
    assert "to-stdout" in "".join(heard)
    assert result.panic is None
    assert "Linux version" in result.console


MINE = f"of_test={os.getpid()}"  # on the kernel's command line: guests run beside this one


def _crash_qemu() -> None:
    for status in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it ended meanwhile
            words = status.read_bytes().split(b"\0")
            if b"qemu" in words[0] and any(MINE.encode() in word for word in words):
                os.kill(int(status.parent.name), signal.SIGSEGV)


def test_death_of_qemu_is_seen(kernel: Kernel, machine: Machine) -> None:
    heard: list[str] = []
    marked = replace(machine, args=(*machine.args, MINE))

    def crash_the_first(text: str) -> None:
        heard.append(text)
        if len(heard) == 1:
            _crash_qemu()

    script = "echo begun; sleep 2; echo ended"
    result = boot.system(kernel, marked, script, listener=crash_the_first).check()
    assert result.output.split() == ["begun", "ended"]
    assert "".join(heard).count("begun") == 2
    heard.clear()
    result = boot.exact(kernel, marked, "echo begun; while :; do :; done", listener=crash_the_first)
    assert result.signal == signal.SIGSEGV


def _side_by_side(guests: Sequence[Callable[[], BootResult]]) -> list[BootResult]:
    with ThreadPoolExecutor(len(guests)) as pool:
        return [result.check() for result in pool.map(lambda guest: guest(), guests)]


def test_exact_runs_side_by_side_are_bit_identical(kernel: Kernel, machine: Machine) -> None:
    script = "cat /proc/uptime /proc/sys/kernel/random/uuid; dd if=/dev/urandom count=1 | md5sum"
    ordered = replace(machine, cpus=2, args=())
    once, twice = _side_by_side([partial(boot.exact, kernel, ordered, script)] * 2)
    assert once.console == twice.console
    assert once.output == twice.output


def test_kernel_has_as_much_less_memory_as_ordered(kernel: Kernel, machine: Machine) -> None:
    script = "sed -n 's/MemTotal: *\\(.*\\) kB/\\1/p' /proc/meminfo"
    ordered = [replace(machine, cpus=1, less_kib=less_kib) for less_kib in (0, 64)]
    full, less = _side_by_side([partial(boot.exact, kernel, each, script) for each in ordered])
    shadow = 8 if kernel.config.get("CONFIG_KASAN") == "y" else 0  # an eighth, also of what is gone
    assert int(full.output) - int(less.output) == 64 - shadow


def test_exact_takes_files_programs_and_a_seed(
    kernel: Kernel, machine: Machine, tmp_path: Path
) -> None:
    (tmp_path / "data").write_text("carried along\n")
    files = {"/root/data": tmp_path / "data", **boot.programs(["md5sum"])}
    equipped, prepare = storage.wanted(None, "zram").attached(machine, tmp_path)
    script = f"{prepare} cat /root/data /proc/swaps; /usr/bin/md5sum --version; "
    script += "cat /proc/uptime /proc/sys/kernel/random/uuid"
    guest = partial(boot.exact, kernel, equipped, script, files=files)
    first, other, same = _side_by_side([guest, partial(guest, seed=2), guest])
    assert "carried along" in first.output
    assert "GNU coreutils" in first.output  # not busybox's
    assert "/dev/zram0" in first.output  # swap in memory
    assert same.console == first.console
    assert same.output == first.output
    assert other.output.splitlines()[-1] != first.output.splitlines()[-1]


FOLDER_AND_DISKS = """
cp /run/gcma/share/in /run/gcma/share/out
cat /sys/block/vda/serial; echo; cat /sys/block/vda/size /sys/block/vdb/size
printf hello | dd of=/dev/vda conv=notrunc 2>/dev/null
dd if=/dev/vdb of=/dev/null bs=1M count=8 iflag=direct 2>&1 | tail -n 1
"""


def test_system_has_a_folder_and_disks_in_order(
    kernel: Kernel, machine: Machine, tmp_path: Path
) -> None:
    (tmp_path / "in").write_text("from the host\n")
    image, slow = tmp_path / "image", tmp_path / "slow"
    image.write_bytes(bytes(8 << 20))
    slow.write_bytes(bytes(16 << 20))
    equipped, prepare = storage.wanted(str(image), None).attached(machine, tmp_path)
    disks = (*equipped.disks, Disk(slow, "slow", bytes_per_second=2_000_000))
    script = prepare + FOLDER_AND_DISKS
    result = boot.system(kernel, replace(equipped, disks=disks), script, share=tmp_path).check()
    serial, *sizes, copied = result.output.splitlines()
    assert (tmp_path / "out").read_text() == "from the host\n"
    assert (serial, sizes) == (equipped.disks[0].serial, ["16384", "32768"])
    assert image.read_bytes()[:6] == b"hello\0"  # what is written to an image stays
    assert float(copied.split(", ")[2].split()[0]) > 2.5  # 8 MiB at 2 MB/s, less the burst


@WAYS
def test_hanging_guest_is_ended(way: Boot, kernel: Kernel, machine: Machine) -> None:
    # busy, not asleep: an exact guest that sleeps skips the time
    result = way(kernel, machine, "while :; do :; done", timeout=5)
    assert result.timed_out
    assert result.status is None
    assert result.seconds < 30
    with pytest.raises(LabError, match=r"did not end within \d+ s") as caught:
        result.check()
    assert caught.value.detail


@WAYS
def test_panic_is_reported(way: Boot, kernel: Kernel, machine: Machine) -> None:
    result = way(kernel, machine, "echo c >/proc/sysrq-trigger")
    assert not result.timed_out
    assert result.panic is not None
    assert "sysrq triggered crash" in result.panic.replace("Sysrq", "sysrq")
    with pytest.raises(LabError, match="the kernel reported"):
        result.check()


def test_exact_guest_refuses_disks(kernel: Kernel, machine: Machine, tmp_path: Path) -> None:
    with pytest.raises(LabError, match="repeatability"):
        boot.exact(kernel, replace(machine, disks=(Disk(tmp_path, "x"),)), "true")


# Groups: what tenants may cost others


@pytest.fixture(scope="module")
def groups_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("selftests")
    shutil.copytree(paths.SELFTESTS, folder, dirs_exist_ok=True)
    process.run(["make", "-s", "-C", str(folder / "gcma")])
    return folder / "gcma/gcma_groups"


@dataclass(frozen=True)
class Groups:
    """Groups in a guest whose area is so large that each could think it has room for all nodes."""

    number: int
    limit_kib: int  # 0: none
    files: int  # of each
    limit_of_all_kib: int = 0
    pages_of_file: int = 2

    @property
    def options(self) -> str:
        options = f"-g {self.number} -m {self.limit_kib} -n {self.files}"
        return f"{options} -p {self.limit_of_all_kib} -f {self.pages_of_file}"


MAY_CLING = 1 << 20  # bytes: what reclaim left by chance
# Without tenants, too, one of some 40 is killed, at one limit and not at the next: inodes are freed
# after a grace period of RCU, so reclaim may have freed all that it can and see nothing of it.
MAY_BE_KILLED = 2
# The smallest in which groups live without tenants, and most or not so frugally with a fault:
# a credit of the area's size (all three notice), of all tenants or beyond a parent's limit (below).
GROUPS = {
    "one": [Groups(1, kib, 7_000) for kib in range(8 * 1024, 9 * 1024 + 1, 256)],
    "many": [Groups(80, 2 * 1024, 100)],
    "below one limit": [Groups(40, 0, 150, 8 * 1024, 8)],
}
LARGE_GROUPS = {
    "one": [Groups(1, kib, 11_000) for kib in range(12 * 1024, 13 * 1024 + 1, 256)],
    "many": [Groups(200, 2 * 1024, 100)],
    "below one limit": [Groups(40, 0, 300, 10 * 1024, 8)],
}


def _groups_live(kernel: Kernel, program: Path, policy: str) -> dict[str, str]:
    """What gcma_groups says of each, in one exact guest: nothing else disturbs its figures."""
    soak = os.environ.get("GCMA_SOAK") == "1"
    groups = LARGE_GROUPS if soak else GROUPS
    memory_mib, area_mib = (2560, 512) if soak else (1536, 384)
    machine = Machine(memory_mib, cpus=1, area_mib=area_mib, policy=policy)
    files = {"/root/gcma_groups": program, **boot.programs([str(program), "mkfs.ext4"])}
    lines = [
        f"echo == {name}; {'; '.join(f'/root/gcma_groups {each.options}' for each in several)}"
        for name, several in groups.items()
    ]
    area = "/sys/kernel/mm/cma/reserved/stores"
    script = "; ".join([*lines, f"echo == stores; [ ! -e {area} ] || cat {area}"])
    result = boot.exact(kernel, machine, script, files=files, timeout=600).check()
    return measure.sections(result.output)


def _figures(text: str) -> Counter[str]:
    """The sums of all that ran."""
    lines = re.findall(r"figures: (.*)", text)
    assert lines, text
    sums: Counter[str] = Counter()
    for line in lines:
        sums.update({key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", line)})
    return sums


@pytest.fixture(scope="module")
def lives(kernel: Kernel, groups_program: Path) -> dict[str, dict[str, str]]:
    """What gcma_groups says, by policy and groups."""
    if kernel.flavour.name == "debug":
        pytest.skip("KASAN's redzones and quarantine are kernel memory of groups too")
    policies = ("none", "gcma")
    with ThreadPoolExecutor(len(policies)) as pool:
        texts = pool.map(lambda policy: _groups_live(kernel, groups_program, policy), policies)
        return dict(zip(policies, texts, strict=True))


@pytest.mark.long
@pytest.mark.parametrize("name", GROUPS)
def test_groups_live_with_tenants_as_without(lives: dict[str, dict[str, str]], name: str) -> None:
    without, tenants = (_figures(lives[policy][name]) for policy in ("none", "gcma"))
    assert int(lives["gcma"]["stores"]) > 0  # or there was nothing to live with
    assert without["killed"] <= MAY_BE_KILLED
    assert tenants["killed"] <= MAY_BE_KILLED
    assert tenants["kernel"] <= 1.1 * without["kernel"] + MAY_CLING


# Charged to a group, so that nothing else is pushed out: least of all the programs on the 9p root
TENANTS = """
dd if=/dev/zero of=/mnt/file bs=1M count=32 2>/dev/null
sync
echo 1 >/proc/sys/vm/drop_caches
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/job
sh -c 'echo 0 >/sys/fs/cgroup/job/cgroup.procs; cat /mnt/file >/dev/null'
echo 24M >/sys/fs/cgroup/job/memory.reclaim
cat /sys/kernel/mm/cma/reserved/tenants_file /proc/swaps
"""


def test_a_file_on_a_fresh_disk_beside_swap_becomes_tenants_under_memory_pressure(
    kernel: Kernel, machine: Machine, tmp_path: Path
) -> None:
    if not kernel.has(systems.GCMA):
        pytest.skip("this kernel has no tenants")
    wanted = storage.wanted("128M", "32M")
    equipped, prepare = wanted.attached(replace(machine, policy="gcma"), tmp_path)
    output = boot.system(kernel, equipped, prepare + TENANTS).check().output
    tenants, *swaps = output.splitlines()
    assert int(tenants) > 4096  # pages, of 6,144
    assert re.match(r"/dev/vd[ab]\s+partition\s+3\d{4}\b", swaps[-1])


HIBERNATES_SECONDS = 900  # the debug kernel, beside other work
# tmpfs is swapped out, to the area only unless the policy is to write it; the file is evicted.
HIBERNATES = """
mkswap {swap} >/dev/null; swapon {swap}
mkdir /mnt; mount -t ext4 {disk} /mnt
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/job; echo $$ >/sys/fs/cgroup/job/cgroup.procs
cd /sys/kernel/mm/cma/reserved; echo {policy} >swap_policy; echo always >admission
dd if=/dev/urandom of=/tmp/memory bs=1M count=12 2>/dev/null
dd if=/dev/urandom of=/mnt/file bs=1M count=8 2>/dev/null
sync; md5sum /tmp/memory /mnt/file
for i in 1 2 3 4; do echo 24M >/sys/fs/cgroup/job/memory.reclaim; sleep 1; done 2>/dev/null
echo tenants $(cat tenants_file tenants_swap tenants_dirty); sync
echo shutdown >/sys/power/disk; echo disk >/sys/power/state
echo tenants $(cat tenants_file tenants_swap tenants_dirty)
md5sum /tmp/memory /mnt/file
echo 4096 >/sys/kernel/debug/cma/reserved/alloc && cat available_pages
"""


@pytest.mark.parametrize("policy", ["write-through", "put-back", "move-aside"])
def test_a_hibernated_system_comes_back_as_it_was(
    kernel: Kernel, machine: Machine, tmp_path: Path, policy: str
) -> None:
    if "CONFIG_HIBERNATION=y" not in (kernel.objects / ".config").read_text():
        pytest.skip("this kernel does not hibernate")
    disk, swap = (tmp_path / name for name in ("disk", "swap"))
    for image, mib in ((disk, 64), (swap, 1024)):
        with image.open("wb") as file:
            file.truncate(mib << 20)
    process.run(["mkfs.ext4", "-q", str(disk)])
    nodes = {"disk": "/dev/vda", "swap": "/dev/vdb"}
    sleeper = replace(
        machine,
        memory_mib=1536,
        policy="gcma",
        disks=(Disk(disk, "disk"), Disk(swap, "swap")),
        args=(*machine.args, f"resume={nodes['swap']}"),
    )
    script = HIBERNATES.format(policy=policy, **nodes)
    before = boot.alone(kernel, sleeper, script, timeout=HIBERNATES_SECONDS)
    assert not before.timed_out
    assert (before.panic, before.status) == (None, None)  # it is off before its script ends
    after = boot.alone(kernel, sleeper, script, timeout=HIBERNATES_SECONDS).check()
    memory, file, first = before.output.splitlines()
    second, *sums, available = after.output.splitlines()
    files, swapped, dirty = map(int, first.split()[1:])
    assert files > 1024  # pages, of 2,048
    assert swapped > 2048  # of 3,072
    assert dirty > 2048 if policy != "write-through" else not dirty
    assert second.split()[3] == "0"  # they were put back before
    assert sums == [memory, file]
    assert int(available) == (machine.area_mib << 8) - 4096


def test_guests_run_side_by_side(kernel: Kernel, machine: Machine) -> None:
    scripts = [f"echo {number}; echo {number} >&2; sleep 1; echo {number}" for number in "01"]
    guests = [partial(boot.system, kernel, machine, script) for script in scripts]
    results = _side_by_side(guests)
    for number, result in zip("01", results, strict=True):
        assert set((result.output + result.errors).split()) == {number}


def test_status_works_in_a_small_guest(kernel: Kernel, machine: Machine) -> None:
    small = replace(machine, memory_mib=384 if kernel.flavour.name != "debug" else 1024)
    launcher = paths.REPO / "gcma"
    subprocess.run([launcher, "status", "--sysfs", paths.REPO], check=True)  # Python compiles it
    result = boot.system(kernel, small, f"{launcher} status").check()
    assert "reserved" in result.output
    assert not result.errors  # nothing warns of a configuration folder
