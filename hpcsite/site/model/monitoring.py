"""Monitoring and where its alerts go."""

from typing import Self

from pydantic import Field, model_validator

from hpcsite.site.model.base import EMAIL, WEB_ADDRESS, Frozen, Name, one_of, require_one


class Receiver(Frozen):
    """Who is told of an alert."""

    model_config = one_of("email", "webhook")

    name: Name = Field(description="the receiver's name", examples=["operators"])
    email: str | None = Field(None, pattern=EMAIL, description="address that gets a mail")
    webhook: str | None = Field(
        None, pattern=WEB_ADDRESS, description="in place of email: address that is called"
    )

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        require_one(self, "email", "webhook")
        return self


class Monitoring(Frozen):
    """What Prometheus keeps, and who is told of alerts."""

    retention_days: int | None = Field(
        None, ge=1, description="how long measurements are kept; not set: Prometheus's own default"
    )
    scrape_interval_s: int | None = Field(
        None, ge=1, description="seconds between measurements; not set: Prometheus's own default"
    )
    receivers: tuple[Receiver, ...] = Field((), description="receivers of alerts")
