"""What a deploy would do, found out in check mode: nothing is changed, here or on a host.

`make` runs the check, `collect` reads its events, `rules` says what it means for nodes and jobs,
`fingerprint` tells whether a stored plan still holds, `text` writes it for a person.
"""
