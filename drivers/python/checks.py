"""The checks of the matrix for a driver with Python's database API; an adapter (adapters.py) hides what differs."""

import os
import tempfile
import time

from environment import (ACCOUNTS, ACCOUNTS_PASSWORD, LARGE_LENGTHS, PASSED_TABLES, PORTS, READS, TABLES, TLS, TLS_WRONG_CA,
                         WARM_UP_S, NotThere, check, hits, hits_since, same, say)


class Checks:
    def __init__(self, driver):
        self.driver = driver

    def run(self):
        for name in ("connect", "auth", "tls", "text", "prepared", "transactions", "transaction_reads", "errors",
                     "large", "multi", "local_infile", "streaming", "bulk", "results", "own_writes"):
            check(name, getattr(self, name))

    def both(self, what, observe, **options):
        """What a driver sees through Remora must be what it sees directly."""
        seen = {}
        for side in ("direct", "remora"):
            connection = self.driver.connect(PORTS[side], **options)
            try:
                seen[side] = observe(connection)
            finally:
                connection.close()
        same(what, seen["remora"], seen["direct"])
        return seen["direct"]

    def error(self, function):
        """The error as the driver shows it; no error is a value of its own."""
        try:
            return ("no error", function())
        except self.driver.errors as error:
            return self.driver.describe(error)
        except (ValueError, TypeError, OverflowError) as error:  # a value that the driver can't convert
            return type(error).__name__, str(error)

    # ---- the checks, in the order of the matrix

    def connect(self):
        def greeting(connection):
            connection.ping()
            return connection.server_info(), connection.query(
                "SELECT DATABASE(), CURRENT_USER(), @@autocommit, @@sql_mode, @@time_zone,"
                " @@character_set_client, @@collation_connection, @@character_set_results")

        self.both("settings", greeting)
        self.both("without a schema", greeting, schema=None)
        for options in ({"password": "wrong"}, {"user": "nobody"}, {"schema": "no_such_schema"}):
            refused = {
                side: self.error(lambda: self.driver.connect(port, **options).close())
                for side, port in PORTS.items()
            }
            same(f"refusal of {options}", refused["remora"], refused["direct"])
            assert refused["direct"][0] != "no error", options

    def auth(self):
        worked = []
        for account in ACCOUNTS:
            seen = {}
            for side, port in PORTS.items():
                # The first login of an account may take a longer way than the second.
                def login():
                    connection = self.driver.connect(port, user=f"{side}_{account}",
                                                     password=ACCOUNTS_PASSWORD, schema=None)
                    try:
                        return connection.query("SELECT CURRENT_USER()")[1]
                    finally:
                        connection.close()
                seen[side] = repr([self.error(login), self.error(login)]).replace(f"{side}_", "")
            same(f"login by {account}", seen["remora"], seen["direct"])
            if "no error" in seen["direct"]:
                worked.append(account)
        say("plugins", " ".join(worked))

    def tls(self):
        if not TLS:
            raise NotThere("the run is without TLS")
        connection = self.driver.connect(PORTS["remora"])
        cipher = connection.query("SHOW SESSION STATUS LIKE 'Ssl_cipher'")[1]
        connection.close()
        assert cipher[0][1], "the server sees no TLS"
        refused = self.error(lambda: self.driver.connect(PORTS["remora"], ca=TLS_WRONG_CA).close())
        assert refused[0] != "no error", "a certificate of an unknown authority was accepted"

    def text(self):
        def queries(tables):
            for table in tables:
                yield f"SELECT * FROM {table} ORDER BY id", ()
                for number in (1, 2, 3, 4, 5):
                    yield f"SELECT * FROM {table} WHERE id = {number}", ()

        cached = [(query, ()) for query in READS] + list(queries(TABLES))
        self.reads("text", cached, list(queries(PASSED_TABLES)), lambda connection, query, _: connection.query(query))

    def prepared(self):
        if not self.driver.prepares:
            raise NotThere("the driver has no prepared statements")
        def queries(tables):
            return [(f"SELECT * FROM {table} WHERE id = ?", (number,)) for table in tables for number in (1, 2, 3, 4, 5)]

        cached = [(query, ()) for query in READS] + queries(TABLES) + [
            ("SELECT id, flexible FROM t_strings WHERE flexible = ? OR text_t = ?", ("varying", "text")),
            ("SELECT id FROM t_decimals WHERE double_f > ? ORDER BY id", (0.05,)),
            ("SELECT id FROM t_blobs WHERE tiny_b = ? OR ? IS NULL ORDER BY id", (b"\xff", None))]
        self.reads("prepared", cached, queries(PASSED_TABLES), lambda connection, *read: connection.execute(*read))

    def reads(self, kind, cached, passed, run):
        """Reads directly, and then again and again through Remora, until memory answers what it can."""
        direct = self.driver.connect(PORTS["direct"])
        expected = [self.error(lambda: run(direct, *read)) for read in cached + passed]
        direct.close()
        remora = self.driver.connect(PORTS["remora"])
        seen, until = 0, time.monotonic() + WARM_UP_S
        while True:
            before = hits()
            for read, answer in zip(cached + passed, expected):
                same(repr(read), self.error(lambda: run(remora, *read)), answer)
            seen = max(seen, hits_since(before, len(cached)))
            if seen == len(cached) or time.monotonic() >= until:
                break
        remora.close()
        say("hits", kind, seen, len(cached))

    def transactions(self):
        one, other = (self.driver.connect(PORTS["remora"]) for _ in range(2))
        one.run("CREATE TABLE w_transactions (id INT PRIMARY KEY, value INT) ENGINE=InnoDB")
        rows = "SELECT id, value FROM w_transactions ORDER BY id"
        read = lambda connection: [tuple(row) for row in connection.query(rows)[1]]
        for _ in range(3):
            assert read(other) == []
        one.begin()
        one.run("INSERT INTO w_transactions VALUES (1, 1)")
        assert read(one) == [(1, 1)] and read(other) == [], "before the rollback"
        one.rollback()
        assert read(one) == [] and read(other) == [], "after a rollback"
        one.begin()
        one.run("INSERT INTO w_transactions VALUES (1, 1)")
        one.run("SAVEPOINT s")
        one.run("INSERT INTO w_transactions VALUES (2, 2)")
        one.run("ROLLBACK TO SAVEPOINT s")
        one.commit()
        assert read(one) == [(1, 1)] and read(other) == [(1, 1)], "after a commit"
        value = 1
        for level, repeats in (("READ UNCOMMITTED", 0), ("READ COMMITTED", 0), ("REPEATABLE READ", 1), ("SERIALIZABLE", 1)):
            one.run(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
            set_level = one.query("SHOW VARIABLES WHERE Variable_name IN ('tx_isolation', 'transaction_isolation')")[1]
            assert set_level[0][1] == level.replace(" ", "-"), set_level
            one.begin()
            if level != "SERIALIZABLE":  # there a read would lock the row
                assert read(one) == [(1, value)], level
                other.run(f"UPDATE w_transactions SET value = {value + 1}")
                value += 1
                assert read(other) == [(1, value)], level
            assert read(one) == [(1, value - repeats if level != "SERIALIZABLE" else value)], level
            one.commit()
            assert read(one) == [(1, value)], f"after {level}"
        one.run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        one.run("START TRANSACTION READ ONLY")
        refused = self.error(lambda: one.run("INSERT INTO w_transactions VALUES (9, 9)"))
        assert "1792" in repr(refused), refused
        one.rollback()
        one.close()
        other.close()

    def transaction_reads(self):
        writer = self.driver.connect(PORTS["direct"])
        writer.run("CREATE TABLE w_reads (id INT PRIMARY KEY, value INT) ENGINE=InnoDB")
        writer.run("INSERT INTO w_reads VALUES (1, 0), (2, 0), (3, 0), (4, 0), (5, 0)")

        def observe(connection):
            def read(*ids):
                return [connection.query(f"SELECT value FROM w_reads WHERE id = {number}") for number in ids]

            writer.run("UPDATE w_reads SET value = 0")
            seen = read(1, 2, 3, 4)
            writer.run("UPDATE w_reads SET value = 1 WHERE id = 4")
            seen += read(1, 2, 3, 4)
            connection.commit()
            seen += read(1, 2, 3, 4)
            connection.run("UPDATE w_reads SET value = 2 WHERE id = 5")
            seen += read(1, 2, 3, 5)
            connection.commit()
            return seen

        # Python's drivers begin a transaction with the first statement, unless told not to.
        direct, remora = (self.driver.connect(PORTS[side], autocommit=False) for side in ("direct", "remora"))
        expected = observe(direct)
        values = [answer[1][0][0] for answer in expected]
        assert values == [0] * 11 + [1] + [0] * 3 + [2], values
        # Of the rows that nobody changes, all reads but the first of each transaction.
        allowed, seen, until = len(expected) * 5 // 8, 0, time.monotonic() + WARM_UP_S
        while seen < allowed and time.monotonic() < until:
            before = hits()
            same("answers inside transactions", observe(remora), expected)
            seen = max(seen, hits_since(before, len(expected)))
        for connection in (direct, remora, writer):
            connection.close()
        say("hits", "transactions", seen, len(expected))

    def errors(self):
        faulty = ["SELEC 1", "SELECT * FROM no_such_table", "SELECT no_such_column FROM t_empty", "SELECT 1 FROM",
                  "INSERT INTO w_errors VALUES (1, 'twice')", "INSERT INTO w_errors VALUES (NULL, NULL)",
                  "INSERT INTO w_errors VALUES (5)", "SELECT * FROM no_such_schema.t", "DROP TABLE no_such_table",
                  "CALL no_such_procedure()", "UPDATE w_errors SET id = 2 WHERE id = 1", "SELECT 18446744073709551615 + 1",
                  "SIGNAL SQLSTATE '45123' SET MESSAGE_TEXT = 'größe', MYSQL_ERRNO = 4321", "SELECT (SELECT id FROM w_errors)"]

        def observe(connection):
            connection.run("DROP TABLE IF EXISTS w_errors")
            connection.run("CREATE TABLE w_errors (id INT PRIMARY KEY, name VARCHAR(10) NOT NULL) ENGINE=InnoDB")
            connection.run("INSERT INTO w_errors VALUES (1, 'once'), (2, 'x')")
            seen = [self.error(lambda: connection.query(text)) for text in faulty]
            assert all(one[0] != "no error" for one in seen), seen
            if self.driver.prepares:
                seen += [self.error(lambda: connection.execute(text, ())) for text in faulty[:5]]
                seen.append(self.error(lambda: connection.execute("INSERT INTO w_errors VALUES (?, ?)", (1, "x"))))
            seen.append(self.lock_timeout(connection))
            return seen

        self.both("errors", observe)

    def lock_timeout(self, connection):
        other = self.driver.connect(PORTS["remora"])
        other.begin()
        other.run("UPDATE w_errors SET name = 'held' WHERE id = 1")
        connection.run("SET innodb_lock_wait_timeout = 1")
        seen = self.error(lambda: connection.run("UPDATE w_errors SET name = 'y' WHERE id = 1"))
        other.rollback()
        other.close()
        assert "1205" in repr(seen), seen
        return seen

    def large(self):
        texts = [f"SELECT LEFT(data, {length}) FROM large WHERE id = 1" for length in LARGE_LENGTHS]
        payload = bytes(range(256)) * 78_126  # 20 MB of all bytes

        def observe(connection):
            seen = []
            for text in texts:
                value = bytes(connection.query(text)[1][0][0])
                seen.append((len(value), hash(value)))
            connection.run("DROP TABLE IF EXISTS w_large")
            connection.run("CREATE TABLE w_large (id INT PRIMARY KEY, data LONGBLOB) ENGINE=InnoDB")
            connection.insert_binary("w_large", 1, payload)
            seen.append(hash(bytes(connection.query("SELECT data FROM w_large WHERE id = 1")[1][0][0])) == hash(payload))
            if self.driver.prepares:
                connection.execute("INSERT INTO w_large VALUES (?, ?)", (2, payload))
                row = connection.execute("SELECT data FROM w_large WHERE id = ?", (2,))[1][0]
                seen.append(bytes(row[0]) == payload)
            return seen

        seen = self.both("large rows", observe)
        assert [length for length, _ in seen[:len(texts)]] == LARGE_LENGTHS and seen[len(texts)] is True, seen

    def multi(self):
        if not self.driver.multiple:
            raise NotThere("the driver has no multi-statements")

        def observe(connection):
            connection.run("DROP TABLE IF EXISTS w_multi")
            connection.run("CREATE TABLE w_multi (id INT PRIMARY KEY) ENGINE=InnoDB")
            connection.run("DROP PROCEDURE IF EXISTS two_results")
            connection.run("CREATE PROCEDURE two_results() BEGIN SELECT 1; SELECT COUNT(*) FROM w_multi; END")
            text = "SELECT 1 AS a; INSERT INTO w_multi VALUES (1), (2); SELECT id FROM w_multi ORDER BY id; UPDATE w_multi SET id = 3 WHERE id = 2"
            seen = [connection.multiple(text), connection.query("SELECT id FROM w_multi ORDER BY id")]
            seen.append(self.error(lambda: connection.multiple("SELECT 1; SELECT * FROM no_such_table; SELECT 2")))
            connection.close()
            connection.reopen(multiple=True)
            seen.append(connection.multiple("CALL two_results()"))
            seen.append(connection.query("SELECT id FROM w_multi ORDER BY id"))
            return seen

        self.both("multi-statements", observe, multiple=True)

    def local_infile(self):
        if not self.driver.loads:
            raise NotThere("the driver has no LOAD DATA LOCAL")
        with tempfile.NamedTemporaryFile("w", suffix=".tsv", delete=False) as file:
            os.chmod(file.name, 0o644)
            file.writelines(f"{number}\tline {number}\n" for number in range(1, 5001))

        def observe(connection):
            connection.run("DROP TABLE IF EXISTS w_local")
            connection.run("CREATE TABLE w_local (id INT PRIMARY KEY, name VARCHAR(20)) ENGINE=InnoDB")
            total = "SELECT COUNT(*), SUM(id), MAX(name) FROM w_local"
            seen = [connection.query(total) for _ in range(3)]
            seen.append(connection.run(f"LOAD DATA LOCAL INFILE '{file.name}' INTO TABLE w_local"))
            seen.append(connection.query(total))
            seen.append(self.error(lambda: connection.run("LOAD DATA LOCAL INFILE '/no/such/file' INTO TABLE w_local")))
            connection.close()
            connection.reopen(local=True)
            seen.append(connection.query(total))
            return seen

        try:
            seen = self.both("LOAD DATA LOCAL", observe, local=True)
            assert "5000" in repr(seen[4]), seen[4]
        finally:
            os.unlink(file.name)

    def streaming(self):
        if not self.driver.streams:
            raise NotThere("the driver has no streaming")

        def observe(connection):
            seen = []
            for text in ("SELECT id, name, amount FROM many ORDER BY id", "SELECT m.id, n.name FROM many m JOIN many n USING (id) ORDER BY id"):
                rows = [tuple(row) for row in connection.stream(text)]
                seen.append((len(rows), hash(tuple(map(repr, rows)))))
            return seen

        assert self.both("streamed rows", lambda connection: observe(connection) + observe(connection))[0][0] == 16_384

    def bulk(self):
        rows = [(number, f"row {number}", number % 7 or None) for number in range(1, 2001)]

        def observe(connection):
            connection.run("DROP TABLE IF EXISTS w_bulk")
            connection.run("CREATE TABLE w_bulk (id INT PRIMARY KEY, name VARCHAR(20), value INT) ENGINE=InnoDB")
            total = "SELECT COUNT(*), SUM(id), SUM(value), MAX(name) FROM w_bulk"
            seen = [connection.query(total) for _ in range(3)]
            seen += [connection.bulk("INSERT INTO w_bulk (id, name, value) VALUES (%s, %s, %s)", rows), connection.query(total)]
            return seen + [self.error(lambda: connection.bulk("INSERT INTO w_bulk (id, name, value) VALUES (%s, %s, %s)", rows[:3]))]

        assert "2000" in repr(self.both("bulk insert", observe)[-2])

    def results(self):
        def observe(connection):
            connection.run("DROP TABLE IF EXISTS w_results")
            connection.run("CREATE TABLE w_results (id INT AUTO_INCREMENT PRIMARY KEY, value TINYINT) ENGINE=InnoDB")
            seen = [connection.run(text) for text in (
                "INSERT INTO w_results (value) VALUES (1)", "INSERT INTO w_results (value) VALUES (2), (3), (4)",
                "UPDATE w_results SET value = 9 WHERE id > 1", "UPDATE w_results SET value = 9",
                "DELETE FROM w_results WHERE id = 4", "INSERT INTO w_results VALUES (1, 1) ON DUPLICATE KEY UPDATE value = 8",
                "REPLACE INTO w_results VALUES (2, 2)", "INSERT IGNORE INTO w_results VALUES (1, 1)")]
            seen.append(connection.query("SHOW WARNINGS"))
            seen.append(connection.query("SELECT LAST_INSERT_ID()"))
            for _ in range(3):
                seen.append(connection.query("SELECT id, value FROM w_results ORDER BY id"))
                seen.append(connection.query("SELECT FOUND_ROWS(), ROW_COUNT()"))
                seen.append(connection.query("SELECT value / 0, CAST(CONCAT(value, 'x') AS SIGNED) FROM w_results ORDER BY id"))
                seen.append(connection.query("SHOW WARNINGS"))
            return seen

        self.both("results", observe)

    def own_writes(self):
        connection = self.driver.connect(PORTS["remora"])
        connection.run("CREATE TABLE w_own (id INT PRIMARY KEY, value INT) ENGINE=InnoDB")
        connection.run("INSERT INTO w_own VALUES (1, 0), (2, 0)")
        # The pure connector's prepared statements wait 40 ms each for a delayed acknowledgement, also directly.
        last_prepared = 500 if not self.driver.slow else 50
        for number in range(1, 501):
            connection.run(f"UPDATE w_own SET value = {number} WHERE id = 1")
            for _ in range(2):
                seen = connection.query("SELECT value FROM w_own WHERE id = 1")[1][0][0]
                assert seen == number, f"{seen} instead of {number}"
            if self.driver.prepares and number <= last_prepared:
                connection.execute("UPDATE w_own SET value = ? WHERE id = ?", (number, 2))
                for _ in range(2):
                    seen = connection.execute("SELECT value FROM w_own WHERE id = ?", (2,))[1][0][0]
                    assert seen == number, f"prepared: {seen} instead of {number}"
        connection.close()
