"""One adapter for each Python driver: what differs between them, and nothing that is checked."""

import asyncio
import re
import ssl

from environment import HOST, PASSWORD, SCHEMA, TLS, TLS_CA, USER


class Connection:
    """A connection by Python's database API; subclasses change what their driver does otherwise."""

    def __init__(self, driver, port, options):
        self.driver, self.port, self.options = driver, port, options
        self.raw = driver.open(port, **options)

    def reopen(self, **options):
        self.options = {**self.options, **options}
        self.raw = self.driver.open(self.port, **self.options)

    def close(self):
        self.raw.close()

    def ping(self):
        self.raw.ping()

    def server_info(self):
        return self.raw.get_server_info()

    def answer(self, cursor):
        """All that a cursor shows of a result."""
        rows = cursor.fetchall() if cursor.description else []
        return cursor.description, [tuple(row) for row in rows]

    def query(self, text):
        with self.raw.cursor() as cursor:
            cursor.execute(text)
            return self.answer(cursor)

    def run(self, text):
        with self.raw.cursor() as cursor:
            cursor.execute(text)
            return cursor.rowcount, cursor.lastrowid, self.warnings(cursor)

    def warnings(self, cursor):
        return None

    def begin(self):
        self.raw.begin()

    def commit(self):
        self.raw.commit()

    def rollback(self):
        self.raw.rollback()

    def bulk(self, text, rows):
        with self.raw.cursor() as cursor:
            return cursor.executemany(text, rows), cursor.rowcount

    def insert_binary(self, table, number, payload):
        with self.raw.cursor() as cursor:
            cursor.execute(f"INSERT INTO {table} VALUES (%s, %s)", (number, payload))

    def multiple(self, text):
        with self.raw.cursor() as cursor:
            cursor.execute(text)
            seen = [(self.answer(cursor), cursor.rowcount)]
            while cursor.nextset():
                seen.append((self.answer(cursor), cursor.rowcount))
            return seen


class Driver:
    """What a driver can do; `False` gives a `none` in the matrix."""

    connection = Connection
    prepares = False
    slow = False
    streams = True
    loads = True
    multiple = True

    def connect(self, port, **options):
        return self.connection(self, port, options)


# ---- PyMySQL


class PyMySQLConnection(Connection):
    def query(self, text):
        with self.raw.cursor() as cursor:
            cursor.execute(text)
            result = cursor._result
            fields = [vars(field) for field in result.fields] if result.fields else None
            return fields, list(cursor.fetchall()), result.warning_count

    def warnings(self, cursor):
        return cursor._result.warning_count

    def stream(self, text):
        from pymysql.cursors import SSCursor
        with self.raw.cursor(SSCursor) as cursor:
            cursor.execute(text)
            yield from cursor


class PyMySQL(Driver):
    connection = PyMySQLConnection

    def __init__(self):
        import pymysql
        self.module, self.errors = pymysql, pymysql.MySQLError

    def open(self, port, user=USER, password=PASSWORD, schema=SCHEMA, ca=TLS_CA, multiple=False, local=False,
             autocommit=True):
        from pymysql.constants import CLIENT
        security = {"ssl": {"ca": ca, "check_hostname": False}} if TLS else {"ssl_disabled": True}
        return self.module.connect(host=HOST, port=port, user=user, password=password, database=schema, charset="utf8mb4",
                                   autocommit=autocommit, local_infile=local, max_allowed_packet=64 << 20,
                                   client_flag=CLIENT.MULTI_STATEMENTS if multiple else 0, **security)

    def describe(self, error):
        return type(error).__name__, error.args


# ---- mysqlclient


class MySQLClientConnection(Connection):
    def query(self, text):
        self.raw.query(text)
        result = self.raw.store_result()
        if result is None:
            return None, []
        return (result.describe(), result.field_flags(), self.raw.info()), list(result.fetch_row(0))

    def warnings(self, cursor):
        return self.raw.warning_count(), self.raw.info()

    def stream(self, text):
        from MySQLdb.cursors import SSCursor
        cursor = self.raw.cursor(SSCursor)
        cursor.execute(text)
        yield from cursor.fetchall()
        cursor.close()

    def begin(self):
        self.raw.query("BEGIN")


class MySQLClient(Driver):
    connection = MySQLClientConnection

    def __init__(self):
        import MySQLdb
        self.module, self.errors = MySQLdb, MySQLdb.MySQLError

    def open(self, port, user=USER, password=PASSWORD, schema=SCHEMA, ca=TLS_CA, multiple=False, local=False,
             autocommit=True):
        security = {"ssl": {"ca": ca}, "ssl_mode": "VERIFY_CA"} if TLS else {"ssl_mode": "DISABLED"}
        return self.module.connect(host=HOST, port=port, user=user, password=password, database=schema or "",
                                   charset="utf8mb4", autocommit=autocommit, local_infile=int(local),
                                   multi_statements=multiple, **security)

    def describe(self, error):
        return type(error).__name__, error.args


# ---- mysql-connector-python, pure and with its C extension


class ConnectorConnection(Connection):
    def query(self, text):
        with self.raw.cursor(buffered=True) as cursor:
            cursor.execute(text)
            return (*self.answer(cursor), cursor.warning_count)

    def execute(self, text, values):
        with self.raw.cursor(prepared=True) as cursor:
            cursor.execute(text, values)
            return self.answer(cursor)

    def server_info(self):
        return self.raw.server_info

    def warnings(self, cursor):
        return cursor.warning_count

    def begin(self):
        self.raw.start_transaction()

    def stream(self, text):
        with self.raw.cursor() as cursor:
            cursor.execute(text)
            yield from cursor

    def bulk(self, text, rows):
        with self.raw.cursor() as cursor:
            cursor.executemany(text, rows)
            return cursor.rowcount, cursor.lastrowid

    def multiple(self, text):
        with self.raw.cursor() as cursor:
            cursor.execute(text)
            return [(self.answer(cursor), cursor.rowcount) for _ in cursor.fetchsets()]


class Connector(Driver):
    connection = ConnectorConnection
    prepares = True
    pure = True
    slow = True

    def __init__(self):
        import mysql.connector
        self.module, self.errors = mysql.connector, mysql.connector.Error

    def open(self, port, user=USER, password=PASSWORD, schema=SCHEMA, ca=TLS_CA, multiple=False, local=False,
             autocommit=True):
        security = {"ssl_ca": ca, "ssl_verify_cert": True} if TLS else {"ssl_disabled": True}
        return self.module.connect(host=HOST, port=port, user=user, password=password, database=schema, use_pure=self.pure,
                                   charset="utf8mb4", collation="utf8mb4_general_ci", autocommit=autocommit, consume_results=True,
                                   allow_local_infile=local, **security)

    def describe(self, error):
        return type(error).__name__, error.errno, error.sqlstate, error.msg


class ConnectorC(Connector):
    pure = False
    slow = False

    def __init__(self):
        super().__init__()
        from _mysql_connector import MySQLInterfaceError  # shown as it is by nextset()
        self.errors = self.module.Error, MySQLInterfaceError

    def describe(self, error):
        if isinstance(error, self.module.Error):
            return super().describe(error)
        return type(error).__name__, error.args, error.errno, error.sqlstate


# ---- aiomysql


class AioConnection(Connection):
    def __init__(self, driver, port, options):
        self.loop = driver.loop
        super().__init__(driver, port, options)

    def wait(self, coroutine):
        return self.loop.run_until_complete(coroutine)

    def close(self):
        self.wait(self.raw.ensure_closed())

    def ping(self):
        self.wait(self.raw.ping())

    async def _query(self, text, see):
        async with self.raw.cursor() as cursor:
            await cursor.execute(text)
            return await see(cursor)

    def query(self, text):
        async def see(cursor):
            result = cursor._result
            fields = [vars(field) for field in result.fields] if result.fields else None
            return fields, await cursor.fetchall(), result.warning_count
        return self.wait(self._query(text, see))

    def run(self, text):
        async def see(cursor):
            return cursor.rowcount, cursor.lastrowid, cursor._result.warning_count
        return self.wait(self._query(text, see))

    def begin(self):
        self.wait(self.raw.begin())

    def commit(self):
        self.wait(self.raw.commit())

    def rollback(self):
        self.wait(self.raw.rollback())

    def stream(self, text):
        from aiomysql import SSCursor

        async def rows():
            async with self.raw.cursor(SSCursor) as cursor:
                await cursor.execute(text)
                return [row async for row in cursor]
        return self.wait(rows())

    def bulk(self, text, rows):
        async def many():
            async with self.raw.cursor() as cursor:
                return await cursor.executemany(text, rows), cursor.rowcount
        return self.wait(many())

    def insert_binary(self, table, number, payload):
        # A literal: aiomysql can't write bytes with this version of PyMySQL.
        self.run(f"INSERT INTO {table} VALUES ({number}, 0x{payload.hex()})")

    def multiple(self, text):
        async def see(cursor):
            seen = [(cursor.description, await cursor.fetchall(), cursor.rowcount)]
            while await cursor.nextset():
                seen.append((cursor.description, await cursor.fetchall(), cursor.rowcount))
            return seen
        return self.wait(self._query(text, see))


class Aio(Driver):
    connection = AioConnection

    def __init__(self):
        import aiomysql
        import pymysql
        self.module, self.errors = aiomysql, pymysql.MySQLError
        self.loop = asyncio.new_event_loop()

    def open(self, port, user=USER, password=PASSWORD, schema=SCHEMA, ca=TLS_CA, multiple=False, local=False,
             autocommit=True):
        from pymysql.constants import CLIENT
        security = None
        if TLS:
            security = ssl.create_default_context(cafile=ca)
            security.check_hostname = False
        return self.loop.run_until_complete(self.module.connect(
            host=HOST, port=port, user=user, password=password, db=schema, charset="utf8mb4", autocommit=autocommit,
            local_infile=local, client_flag=CLIENT.MULTI_STATEMENTS if multiple else 0, ssl=security))

    def describe(self, error):
        return type(error).__name__, error.args


# ---- SQLAlchemy, on PyMySQL


class AlchemyConnection(Connection):
    def query(self, text):
        if text.startswith("SELECT * FROM t_") and text.endswith("ORDER BY id"):
            return self.reflected(text.split()[3])
        result = self.raw.exec_driver_sql(text.replace("%", "%%"))
        if not result.returns_rows:
            return None, []
        return result.cursor.description, [tuple(row) for row in result.all()]

    def reflected(self, name):
        """The same table through its reflected definition, so that SQLAlchemy's own types convert it."""
        import sqlalchemy
        table = self.driver.table(self.raw, name)
        rows = self.raw.execute(sqlalchemy.select(table).order_by(table.c.id)).all()
        columns = [re.sub(r" at 0x\w+", "", repr(column)) for column in table.columns]
        return columns, [tuple(row) for row in rows]

    def run(self, text):
        result = self.raw.exec_driver_sql(text)
        return result.rowcount, result.lastrowid if result.context.isinsert else None

    def close(self):
        self.raw.invalidate()
        self.raw.close()

    def ping(self):
        self.raw.connection.dbapi_connection.ping()

    def server_info(self):
        return self.raw.dialect.server_version_info, self.raw.dialect.is_mariadb

    def begin(self):
        self.raw.exec_driver_sql("START TRANSACTION")

    def commit(self):
        self.raw.exec_driver_sql("COMMIT")

    def rollback(self):
        self.raw.exec_driver_sql("ROLLBACK")

    def stream(self, text):
        with self.raw.execution_options(stream_results=True, yield_per=500).exec_driver_sql(text) as result:
            yield from result

    def bulk(self, text, rows):
        return self.raw.exec_driver_sql(text, rows).rowcount

    def insert_binary(self, table, number, payload):
        import sqlalchemy
        self.raw.execute(sqlalchemy.text(f"INSERT INTO {table} VALUES (:id, :data)"), {"id": number, "data": payload})


class AlchemySession(Connection):
    """A session, which begins a transaction when it is first used, and again after each commit."""

    def query(self, text):
        result = self.raw.execute(self.driver.module.text(text))
        return result.cursor.description, [tuple(row) for row in result.all()]

    def run(self, text):
        return self.raw.execute(self.driver.module.text(text)).rowcount

    def close(self):
        self.raw.close()
        self.raw.get_bind().dispose()


class Alchemy(Driver):
    multiple = False

    def __init__(self):
        import sqlalchemy
        self.module, self.errors = sqlalchemy, sqlalchemy.exc.DBAPIError
        self.tables = {}

    def open(self, port, user=USER, password=PASSWORD, schema=SCHEMA, ca=TLS_CA, multiple=False, local=False,
             autocommit=True):
        security = {"ssl": {"ca": ca, "check_hostname": False}} if TLS else {"ssl_disabled": True}
        url = self.module.URL.create("mysql+pymysql", user, password, HOST, port, schema, {"charset": "utf8mb4"})
        arguments = {"local_infile": local, "max_allowed_packet": 64 << 20, **security}
        if not autocommit:
            from sqlalchemy.orm import Session
            return Session(self.module.create_engine(url, connect_args=arguments))
        engine = self.module.create_engine(url, isolation_level="AUTOCOMMIT", pool_pre_ping=True, connect_args=arguments)
        return engine.connect()

    def connect(self, port, **options):
        connection = AlchemyConnection if options.get("autocommit", True) else AlchemySession
        return connection(self, port, options)

    def table(self, connection, name):
        """The table as reflected through this connection, once."""
        key = connection.engine.url.port, name
        if key not in self.tables:
            self.tables[key] = self.module.Table(name, self.module.MetaData(), autoload_with=connection)
        return self.tables[key]

    def describe(self, error):
        return type(error).__name__, type(error.orig).__name__, error.orig.args


DRIVERS = {
    "pymysql": PyMySQL,
    "mysqlclient": MySQLClient,
    "connector-python": Connector,
    "connector-python-c": ConnectorC,
    "aiomysql": Aio,
    "sqlalchemy": Alchemy,
}
