"""An archive becomes one job for each of its files.

The files are among the copies before their jobs are written, all in one step: a program that is killed while
it unpacks does so again, and no file of the archive is there twice.
"""

import shutil
from dataclasses import replace

from specrag.config import Settings
from specrag.ingest.archive import Member, is_archive, unpack
from specrag.ingest.jobs.folder import JobFolder, not_copied
from specrag.ingest.jobs.state import Job, new_id, waiting


def is_one(job: Job, folder: JobFolder) -> bool:
    """Whether a job is an archive to unpack; those within archives are not."""
    return job.archive is None and is_archive(folder.path(job.id), job.state.name)


def members_of(job: Job, folder: JobFolder, settings: Settings) -> list[Job]:
    """One job for each file of an archive, whose copies are in place.

    Raises:
        DocumentError: the archive cannot be unpacked.
        TransientError: the disk is full.
    """
    into = folder.unpacking(job.id)
    made: list[Job] = []
    try:
        for number, member in enumerate(unpack(folder.path(job.id), job.state.name, settings, into), start=1):
            made.append(_described(job, member, number))
            member.path.replace(folder.path(made[-1].id))
    except OSError as error:
        folder.remove(*(item.id for item in made))
        raise not_copied(job.state.name, error) from error
    finally:
        shutil.rmtree(into, ignore_errors=True)
    return made


def _described(job: Job, member: Member, number: int) -> Job:
    state = replace(job.state, id=new_id(), name=member.name, **{**waiting(), "attempts": 0})
    return replace(job, state=state, archive=job.id, part=number, size=member.path.stat().st_size)
