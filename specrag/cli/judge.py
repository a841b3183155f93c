"""The judge of `specrag eval`, from the settings and the options that stand in for them."""

from specrag.config import Settings
from specrag.errors import UsageError
from specrag.evaluation.judge.answers import AnswerExaminer
from specrag.evaluation.judge.case import Examiner
from specrag.evaluation.judge.chat import Chat
from specrag.evaluation.judge.faithfulness import FaithfulnessExaminer
from specrag.evaluation.judge.panel import Panel
from specrag.models.server.access import access_of


def panel_of(settings: Settings, *, ragas: bool) -> Panel | None:
    """Who judges, or None if nobody does.

    Raises:
        UsageError: the address, the model or a package is missing or wrong.
    """
    access = access_of(settings, "judge")
    if access is None:
        if settings.judge or ragas:
            wanting = "--judge-model" if settings.judge else "--ragas"
            raise UsageError(f"{wanting} wants a judge: give the address of its server with --judge URL.")
        return None
    if not settings.judge:
        raise UsageError("The judge has no model: name one that its server has with --judge-model NAME.")
    chat = Chat(access, longest_s=settings.deadline_s)
    examiners: list[Examiner] = [AnswerExaminer(chat)]
    if ragas:
        examiners.append(FaithfulnessExaminer(chat))
    return Panel(chat, examiners)
