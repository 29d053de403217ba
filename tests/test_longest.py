# SPDX-License-Identifier: GPL-2.0-or-later
"""The longest path through machine code: branches, calls, loops, what is never called."""

import pytest

from lab.compactfit.longest import Code, Longest, UnboundedError

TEXT = """
0000000000001000 <leaf>:
    1000:	mov    %edi,%eax
    1002:	ret

0000000000001010 <copy.isra.0>:
    1010:	mov    %edi,%eax
    1012:	mov    %edi,%eax
    1014:	ret

0000000000001020 <branch>:
    1020:	test   %edi,%edi
    1022:	je     1030 <branch+0x10>
    1024:	call   1000 <leaf>
    1029:	lock addl $0x1,(%rdi)
    102c:	ret
    1030:	jmp    1010 <copy.isra.0>

0000000000001040 <loop>:
    1040:	xor    %eax,%eax
    1042:	add    $0x1,%eax
    1044:	cmp    %edi,%eax
    1046:	jne    1042 <loop+0x2>
    1048:	jmp    1050 <loop+0x10>
    104a:	nop
    104c:	ret
    1050:	jmp    104c <loop+0xc>

0000000000001060 <hook>:
    1060:	test   %edi,%edi
    1062:	je     1068 <hook+0x8>
    1064:	call   *%rax
    1066:	nop
    1068:	ret

0000000000001070 <table>:
    1070:	notrack jmp *%rax

0000000000001080 <itself>:
    1080:	test   %edi,%edi
    1082:	je     1088 <itself+0x8>
    1084:	call   1080 <itself>
    1088:	ret
"""


def test_the_longer_of_two_ways_is_taken() -> None:
    # test, je, call, leaf's two, lock addl, ret
    assert Longest(Code.read(TEXT)).of("branch") == 7
    # by the jump to copy, as calls of leaf are never
    assert Longest(Code.read(TEXT), never={"leaf"}).of("branch") == 6
    assert Longest(Code.read(TEXT), free={"leaf"}).of("branch") == 6


def test_what_is_never_called_may_have_a_name_of_the_compilers() -> None:
    assert Longest(Code.read(TEXT), never={"copy", "leaf"}).of("branch") < 0


def test_a_loop_goes_back_as_often_as_it_is_told() -> None:
    # a jump back that closes no loop is none
    assert Longest(Code.read(TEXT), rounds={"loop": 0}).of("loop") == 7
    assert Longest(Code.read(TEXT), rounds={"loop": 10}).of("loop") == 7 + 3 * 10


def test_what_has_no_limit_is_an_error() -> None:
    code = Code.read(TEXT)
    with pytest.raises(UnboundedError, match="loop has a loop"):
        Longest(code, rounds={"branch": 1}).of("loop")
    with pytest.raises(UnboundedError, match="table jumps"):
        Longest(code).of("table")
    with pytest.raises(UnboundedError, match="itself calls itself"):
        Longest(code).of("itself")
    with pytest.raises(UnboundedError, match="between loop and branch"):
        Longest(code).exits("loop", "branch")


def test_a_call_by_a_pointer_takes_what_it_is_told() -> None:
    assert Longest(Code.read(TEXT)).of("hook") == 3
    assert Longest(Code.read(TEXT), pointed=10).of("hook") == 2 + 11 + 2


def test_exits_are_the_fewest_and_the_most_instructions() -> None:
    assert Longest(Code.read(TEXT)).exits("branch", "copy.isra.0") == (3, 3)
