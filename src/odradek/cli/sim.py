"""`odradek sim`: whole clusters under virtual time. The simulation itself is odradek.sim's."""

import typer

app = typer.Typer()
