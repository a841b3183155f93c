"""The traps of the algorithm, each as a small change that builds it into the source.

`docs/traps.md` explains them for people; `scripts/check_traps.py` builds each one in and sees that its test
fails. A change is given as exact text: when the source moves on, `tests/test_traps_page.py` says which change
no longer matches.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Text of one file, and what stands there instead when the trap is built in."""

    path: str
    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trap:
    """One way to fall into trap `number` of docs/traps.md, and the test that has to fail then."""

    number: int
    name: str
    changes: tuple[Change, ...]
    test: str
    """As pytest names it."""
    limit_s: float = 120
    """A test that does not end in this time has noticed the trap too."""


def _trap(number: int, name: str, path: str, old: str, new: str, test: str) -> Trap:  # noqa: PLR0917 - a table
    return Trap(number=number, name=name, changes=(Change(path=path, old=old, new=new),), test=test)


_CONTRACT = "tests/contracts/test_language_model.py::"

TRAPS: tuple[Trap, ...] = (
    _trap(
        1,
        "a product of probabilities instead of their mean",
        "specrag/scoring.py",
        "math.exp(math.fsum(logprobs) / len(logprobs))",
        "math.exp(math.fsum(logprobs))",
        "tests/test_scoring.py::test_a_long_draft_is_not_punished_for_its_length",
    ),
    _trap(
        1,
        "the raw sums are not kept",
        "specrag/draft.py",
        "answer=sum(answered) if answered else None,",
        "answer=None,",
        "tests/test_traps.py::test_the_raw_sums_stay_in_the_trace",
    ),
    Trap(
        number=2,
        name="the verifier's label inside the span of the answer",
        changes=(
            Change(
                path="specrag/prompts.py",
                old="                    Segment(text=READ_ANSWER_LABEL),\n"
                '                    Segment(text=f" {answer}", span="answer"),\n',
                new='                    Segment(text=f"{READ_ANSWER_LABEL} {answer}", span="answer"),\n',
            ),
        ),
        test=_CONTRACT + "test_scores_cover_the_marked_spans_and_nothing_else[scripted]",
    ),
    _trap(
        2,
        "the drafter's label counted as if it had been written",
        "specrag/models/rows.py",
        "        if self._forced:\n            return self._forced.popleft()\n        best,",
        "        if self._forced:\n"
        "            from specrag.models.base import Piece\n"
        "            part, text = self._guide.line.part, self._text_of(self._forced[0])\n"
        "            emit((self.index, Piece(part=part, text=text, logprob=0.0)))\n"
        "            return self._forced.popleft()\n        best,",
        "tests/test_rows.py::test_a_newline_ends_the_line_and_the_label_is_forced_and_not_counted",
    ),
    _trap(
        2,
        "joined text is tokenised anew",
        "specrag/models/render.py",
        "        return assembled(template, turns, self.encode)\n",
        "        found = assembled(template, turns, self.encode)\n"
        "        text = self._tokenizer.decode(found.ids)\n"
        "        return Rendered(ids=tuple(self._encode_template(text)), spans=found.spans)\n",
        "tests/test_traps.py::test_a_span_is_its_own_tokens_where_joined_text_would_be_cut_elsewhere",
    ),
    _trap(
        3,
        "rho_draft measured by the verifier, under its prompt",
        "specrag/verify.py",
        "            self_containment=self_containment(answer, rationale),\n",
        "            self_containment=self_containment(answer, rationale),\n"
        "            draft=self_containment(answer, rationale),\n",
        "tests/test_traps.py::test_each_score_comes_from_the_model_and_the_prompt_it_is_named_after",
    ),
    _trap(
        3,
        "decoding from another prompt than the trace shows",
        "specrag/models/local.py",
        "self._engine.begin([row.ids for row in rows], room)",
        "self._engine.begin([row.ids[len(row.ids) // 2 :] for row in rows], room)",
        _CONTRACT + "test_the_drafters_probabilities_are_those_of_its_own_prompt[shipped]",
    ),
    _trap(
        4,
        "P(Yes) alone",
        "specrag/scoring.py",
        'choice.get("yes", 0.0) / total',
        'choice.get("yes", 0.0)',
        "tests/test_scoring.py::test_self_reflection_is_yes_over_yes_and_no",
    ),
    _trap(
        4,
        "one spelling of Yes",
        "specrag/prompts.py",
        '"yes": ("Yes", " Yes", "yes", " yes")',
        '"yes": ("Yes",)',
        "tests/test_traps.py::test_an_option_counts_however_the_model_spells_it[yes-yes]",
    ),
    Trap(
        number=5,
        name="Yes looked for in the prompt",
        changes=(
            Change(
                path="specrag/models/local.py",
                old="logits[row_of[len(item.ids) - 1]]",
                new='logits[row_of[item.ids.index(self._renderer.encode("Yes")[0]) - 1]]',
            ),
            Change(
                path="specrag/models/local.py",
                old="return sorted(marked | {len(item.ids) - 1})",
                new="return sorted(marked | set(range(len(item.ids))))",
            ),
        ),
        test=_CONTRACT + "test_yes_is_read_after_the_statement_and_over_all_spellings[padded]",
    ),
    _trap(
        6,
        "the first draft always wins",
        "specrag/decide.py",
        "    best = first.members[0]\n    contest =",
        '    best = int(__import__("numpy").argmax(pool.strength for pool in pools))\n    contest =',
        "tests/test_decide.py::test_the_best_draft_wins_in_every_position[2]",
    ),
    Trap(
        number=7,
        name="draw until there are m unique subsets",
        changes=(
            Change(
                path="specrag/draws.py",
                old="    for _ in range(50 * m):\n        if len(chosen) == wanted:",
                new="    while True:\n        if len(chosen) == m:",
            ),
        ),
        test="tests/test_partition.py::test_fewer_unique_subsets_than_asked_end_and_are_said",
        limit_s=20,
    ),
    _trap(
        7,
        "nobody hears of a passage that is in every draft",
        "specrag/partition.py",
        "singletons=tuple(passages[row].id for row in alone)",
        "singletons=()",
        "tests/test_partition.py::test_a_singleton_cluster_is_said",
    ),
    _trap(
        8,
        "equal answers compete",
        "specrag/decide.py",
        "groups.setdefault(normalise_answer(drafts[index].answer) or drafts[index].answer, [])",
        "groups.setdefault(str(index), [])",
        "tests/test_decide.py::test_equal_answers_are_pooled_and_the_best_of_them_speaks",
    ),
    _trap(
        9,
        "an abstention takes part in the contest",
        "specrag/decide.py",
        "if draft.usable and not draft.abstained]",
        "if draft.usable]",
        "tests/test_decide.py::test_an_abstention_never_wins_by_likelihood",
    ),
    _trap(
        9,
        "an abstention is taken for an answer",
        "specrag/draft.py",
        "abstained=is_abstention(answer),",
        "abstained=False,",
        "tests/test_speculative.py::test_all_abstain",
    ),
    _trap(
        10,
        "a draft that fails ends the run",
        "specrag/draft.py",
        "    error = end.error\n",
        "    error = end.error\n    if error:\n        raise RuntimeError(error)\n",
        "tests/test_speculative.py::test_one_failed_draft_never_sinks_a_run",
    ),
    _trap(
        10,
        "a failed draft takes part in the contest",
        "specrag/types.py",
        'return self.finish_reason in ("stop", "length") and bool(self.answer.strip())',
        "return True",
        "tests/test_decide.py::test_a_failed_draft_does_not_sink_the_others",
    ),
    _trap(
        11,
        "padding on the left without positions of its own",
        "specrag/models/engine.py",
        "positions[row, width - len(ids) :] = torch.arange(len(ids))",
        "positions[row] = torch.arange(width)",
        "tests/test_traps.py::test_padding_changes_no_prediction",
    ),
    _trap(
        11,
        "padding that can be seen",
        "specrag/models/engine.py",
        "mask[row, width - len(ids) :] = 1",
        "mask[row] = 1",
        "tests/test_traps.py::test_padding_changes_no_prediction",
    ),
    _trap(
        11,
        "positions that run on from one branch to the next",
        "specrag/models/tree.py",
        "positions += range(begin, end)",
        "positions += range(start, start + end - begin)",
        "tests/test_tree.py::test_every_token_sees_its_own_sequence_and_nothing_else",
    ),
    Trap(
        number=12,
        name="a baseline that reads fewer passages",
        changes=(
            Change(
                path="specrag/pipelines/standard.py",
                old="from collections.abc import AsyncGenerator\n",
                new="from collections.abc import AsyncGenerator\nfrom dataclasses import replace\n",
            ),
            Change(
                path="specrag/pipelines/standard.py",
                old="        tools = self._tools\n",
                new="        fewer = self._tools.settings.model_copy(update={'retrieve': 2})\n"
                "        tools = replace(self._tools, settings=fewer)\n",
            ),
        ),
        test="tests/contracts/test_pipelines.py::test_all_read_the_same_passages",
    ),
    _trap(
        12,
        "a baseline with the smaller model",
        "specrag/pipelines/standard.py",
        'role="verifier", how=how',
        'role="drafter", how=how',
        "tests/contracts/test_pipelines.py::test_tokens_are_charged_to_the_model_that_writes_them[standard]",
    ),
)
