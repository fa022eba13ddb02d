"""Warnings that the site's owners have accepted."""

from pydantic import Field

from hpcsite.site.model.base import CODE, NOT_BLANK, Frozen


class Acknowledgement(Frozen):
    """A warning that is accepted, and why."""

    code: str = Field(pattern=CODE, description="the warning's code", examples=["HPC1401"])
    key: str | None = Field(
        None,
        description="key or host that the warning names; not set: all warnings of the code",
        examples=["site_users[alice].uid"],
    )
    reason: str = Field(pattern=NOT_BLANK, description="why it is accepted")
