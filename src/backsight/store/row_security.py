"""Row-level security on PostgreSQL: a connection sees the rows of one owner, even if a query forgets the owner.

Every transaction sets `backsight.owner`, and a policy on each table compares it with `owner_id`. The policies are
forced, so that they hold for the role that owns the tables too; they do not hold for a superuser. The application
connects as a role that can neither bypass nor change them, which `prepare` makes.

PostgreSQL evaluates a policy before any condition whose function might reveal a row, and `@@` of full-text search is
such a function: under the policy alone, its index would not be used. The function `backsight_words` therefore reads the
words with the rights of the tables' owner and compares the owner itself.
"""

from collections.abc import Iterable

from sqlalchemy import Connection, text

from backsight.core.errors import Refused

SET_OWNER = "SELECT set_config('backsight.owner', %s, true)"
IS_OWNER = "owner_id = current_setting('backsight.owner', true)"
VECTOR_TABLES = "document_meanings_"
"""The names of vector tables: this, and 16 hexadecimal digits."""
FUNCTIONS = (
    "backsight_words(text, boolean, bigint[])",
    "backsight_make_vectors(text, integer)",
    "backsight_index_vectors(text)",
)
WORDS_TABLE = "document_words"


def install(connection: Connection, tables: Iterable[str]) -> None:
    """Create the table of words, the functions and the policies of a new store."""
    schema = quoted(str(connection.execute(text("SELECT current_schema()")).scalar_one()))
    statements = [
        _WORDS_TABLE,
        *(_protection(quoted(table)) for table in (*tables, WORDS_TABLE)),
        f"CREATE POLICY index_reader ON {WORDS_TABLE} FOR SELECT TO CURRENT_USER USING (true)",
        _functions(schema),
        *(f"REVOKE ALL ON FUNCTION {function} FROM PUBLIC" for function in FUNCTIONS),
    ]
    connection.exec_driver_sql(";".join(statements).replace("%", "%%"))


def _protection(table: str) -> str:
    return (
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY; ALTER TABLE {table} FORCE ROW LEVEL SECURITY;"
        f" CREATE POLICY one_owner ON {table} USING ({IS_OWNER})"
    )


_WORDS_TABLE = f"""
CREATE TABLE {WORDS_TABLE} (
    owner_id text COLLATE "C" NOT NULL, number bigint NOT NULL, former boolean NOT NULL, length bigint NOT NULL,
    words tsvector NOT NULL, PRIMARY KEY (owner_id, number)
);
CREATE INDEX {WORDS_TABLE}_found ON {WORDS_TABLE} USING gin (words)
"""


def _functions(schema: str) -> str:
    """The functions that run with the rights of the tables' owner; their search path is fixed."""
    secured = f"SECURITY DEFINER SET search_path = pg_catalog, {schema}, pg_temp"
    row = "w.number, w.former, w.length, CASE WHEN ranked THEN ts_rank('{1,1,1,1}'::float4[], w.words, wanted) END"
    matches = f"SELECT {row} FROM {schema}.{WORDS_TABLE} w WHERE w.owner_id = reader AND w.words @@ wanted"  # noqa: S608
    extension = "SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace"
    return f"""
CREATE FUNCTION backsight_words(query text, ranked boolean, only_numbers bigint[])
RETURNS TABLE (number bigint, former boolean, length bigint, rank real)
LANGUAGE plpgsql STABLE {secured} SET plan_cache_mode = force_custom_plan AS $body$
DECLARE
    wanted tsquery := to_tsquery('simple', query);
    reader text := current_setting('backsight.owner', true);
BEGIN
    IF only_numbers IS NULL THEN
        RETURN QUERY {matches};
    ELSE
        RETURN QUERY {matches} AND w.number = ANY (only_numbers);
    END IF;
END $body$;

CREATE FUNCTION backsight_make_vectors(name text, dimensions integer) RETURNS void
LANGUAGE plpgsql {secured} AS $body$
DECLARE
    extension text := ({extension} WHERE extname = 'vector');
    has_vectors boolean;
BEGIN
    IF name !~ '^{VECTOR_TABLES}[0-9a-f]{{16}}$' THEN RAISE EXCEPTION 'not a table of vectors'; END IF;
    SELECT EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass('{schema}.' || name)
        AND attname = 'embedding' AND NOT attisdropped) INTO has_vectors;
    IF has_vectors THEN RETURN; END IF;
    EXECUTE format('DROP TABLE IF EXISTS {schema}.%I', name);  -- its vectors went with the extension
    EXECUTE format('CREATE TABLE {schema}.%I (owner_id text COLLATE "C" NOT NULL, text_hash text COLLATE "C" NOT NULL,'
        ' passage bigint NOT NULL, embedding %s.halfvec(%s) NOT NULL, PRIMARY KEY (owner_id, text_hash, passage))',
        name, extension, dimensions);
    EXECUTE format('ALTER TABLE {schema}.%1$I ENABLE ROW LEVEL SECURITY; ALTER TABLE {schema}.%1$I FORCE ROW LEVEL'
        ' SECURITY; CREATE POLICY one_owner ON {schema}.%1$I USING ({_in_text(IS_OWNER)});'
        ' GRANT SELECT, INSERT, UPDATE, DELETE ON {schema}.%1$I TO %2$I', name, session_user);
END $body$;

CREATE FUNCTION backsight_index_vectors(name text) RETURNS void
LANGUAGE plpgsql {secured} AS $body$
DECLARE
    extension text := ({extension} WHERE extname = 'vector');
BEGIN
    IF name !~ '^{VECTOR_TABLES}[0-9a-f]{{16}}$' THEN RAISE EXCEPTION 'not a table of vectors'; END IF;
    EXECUTE format('CREATE INDEX IF NOT EXISTS %I ON {schema}.%I USING hnsw (embedding %s.halfvec_cosine_ops)',
        name || '_near', name, extension);
    EXECUTE format('ANALYZE {schema}.%I', name);
    ANALYZE {schema}.document_chunks;
END $body$"""  # noqa: S608 (nothing in it comes from outside)


def prepare(connection: Connection, role: str, tables: Iterable[str], *, version_table: str) -> None:
    """Make the role of the application, which can use all tables and change none of their definitions."""
    name, current = quoted(role), str(connection.execute(text("SELECT current_user")).scalar_one())
    if role == current:
        raise Refused(
            f"{role!r} is the role of this connection and owns the tables; name another role for the application",
            field="role",
        )
    rights = connection.execute(_ROLE, {"role": role}).first()
    if rights is not None and (rights.rolsuper or rights.rolbypassrls):
        raise Refused(f"{role!r} is a superuser or bypasses row-level security; name another role", field="role")
    schema = quoted(str(connection.execute(text("SELECT current_schema()")).scalar_one()))
    database = quoted(str(connection.execute(text("SELECT current_database()")).scalar_one()))
    vectors = connection.execute(_VECTOR_TABLES, {"pattern": f"^{VECTOR_TABLES}[0-9a-f]{{16}}$"}).scalars()
    used = ", ".join(map(quoted, (*tables, WORDS_TABLE, *vectors)))
    if rights is None:
        create = f"CREATE ROLE {name} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS"
        connection.exec_driver_sql(create)
    for grant in (
        f"CONNECT ON DATABASE {database}",
        f"USAGE ON SCHEMA {schema}",
        f"SELECT, INSERT, UPDATE, DELETE ON {used}",
        f"SELECT ON {quoted(version_table)}",
        *(f"EXECUTE ON FUNCTION {function}" for function in FUNCTIONS),
    ):
        connection.exec_driver_sql(f"GRANT {grant} TO {name}")


def bypasses_policies(connection: Connection) -> bool:
    """Whether the role of this connection sees every owner's rows."""
    return bool(connection.execute(_BYPASSES).scalar_one())


TABLES = text(
    "SELECT relname, pg_has_role(relowner, 'USAGE') FROM pg_class"
    " WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' ORDER BY relname"
)
"""The tables of the store, and whether the role of the connection owns them."""

_ROLE = text("SELECT rolsuper, rolbypassrls FROM pg_roles WHERE rolname = :role")
_BYPASSES = text("SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user")
_VECTOR_TABLES = text(
    "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
    " AND relname ~ :pattern"
)


def quoted(name: str) -> str:
    """A name as an SQL identifier."""
    from sqlalchemy.dialects import postgresql  # slow, and SQLite needs none of it

    return postgresql.dialect().identifier_preparer.quote_identifier(name)  # type: ignore[no-untyped-call]


def _in_text(condition: str) -> str:
    """A condition inside a text in quotes."""
    return condition.replace("'", "''")
