"""SQL over a settlement store, with DuckDB where it is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness_lab.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd


def ask(query: str, tables: Mapping[str, Any]) -> pd.DataFrame:
    """Run one query on named Arrow datasets.

    Raises
    ------
    InputError
        If DuckDB is not installed, or does not understand the query.
    """
    try:
        import duckdb
    except ImportError:
        hint = "pip install 'harness-lab[sql]'; scan() and read() need nothing more"
        raise InputError("sql", expected="DuckDB to be installed", got="no module duckdb", hint=hint) from None
    connection = duckdb.connect(":memory:", config={"python_enable_replacements": "false"})
    try:
        for name, table in tables.items():
            connection.register(name, table)
        connection.execute("set enable_external_access = false")
        connection.execute("set lock_configuration = true")
        asked = connection.execute(query)
        answer: pd.DataFrame | None = None if asked is None else asked.df()
    except duckdb.Error as error:
        got = str(error).partition("\n")[0]
        hint = "the tables are nodes and calls, their columns those of the settlement table"
        raise InputError("sql", expected="a query that DuckDB understands", got=got, hint=hint) from None
    finally:
        connection.close()
    if answer is None:
        raise InputError("sql", expected="a query that DuckDB understands", got=query)
    return answer
