"""The schema of a new store."""

from itertools import groupby

from sqlalchemy import text

from backsight.memory import Memory


def test_indexes_are_created_in_the_order_of_their_names(memory: Memory) -> None:
    if memory.database.url.get_backend_name() != "sqlite":
        return  # PostgreSQL compares costs, not the order of creation
    statement = "SELECT tbl_name, name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL ORDER BY rowid"
    with memory.reading() as connection:
        created = [(table, name) for table, name in connection.execute(text(statement))]
    by_table = [[name for _, name in group] for _, group in groupby(created, key=lambda row: row[0])]
    assert any(len(names) > 2 for names in by_table)
    assert all(names == sorted(names) for names in by_table)
