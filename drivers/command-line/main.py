"""The checks of libmariadb's command-line client, `mariadb`; see ../README.md.

The program runs it once for each side of a comparison and compares all that it prints.
"""

import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../python"))
sys.argv.insert(1, "mariadb-client")  # where the other programs have the driver's name

from environment import (ACCOUNTS, ACCOUNTS_PASSWORD, HOST, LARGE_LENGTHS, PASSED_TABLES, PASSWORD, PORTS, READS, SCHEMA,
                         TABLES, TLS, TLS_CA, TLS_WRONG_CA, USER, WARM_UP_S, NotThere, check, hits, hits_since, same, say)


def command(side, options, user=USER, password=PASSWORD, schema=SCHEMA, ca=TLS_CA):
    security = [f"--ssl-ca={ca}", "--ssl"] if TLS else ["--skip-ssl"]
    return ["mariadb", "--no-defaults", f"--host={HOST}", f"--port={PORTS[side]}", f"--user={user}", f"--password={password}",
            "--protocol=tcp", "--default-character-set=utf8mb4", "--max-allowed-packet=64M", *security, *options,
            *([schema] if schema else [])]


def client(side, text, *options, **account):
    """What the client prints when it reads this text, in the order in which it prints it; and its exit status."""
    done = subprocess.run(command(side, options, **account), input=text.encode(), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=200)
    return done.returncode, done.stdout


class Talk:
    """A client that is given one text after the other."""

    def __init__(self, side):
        options = ["--unbuffered", "--force", "--skip-column-names"]
        self.process = subprocess.Popen(command(side, options), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT)

    def say(self, text):
        """What it prints until it has read all of the text."""
        self.process.stdin.write(text.encode() + b"\nSELECT 'that was all';\n")
        self.process.stdin.flush()
        lines = []
        while (line := self.process.stdout.readline()) not in (b"that was all\n", b""):
            lines.append(line.decode().strip())
        return lines

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)


def both(what, text, *options, before="", **account):
    """What the client prints through Remora must be what it prints directly. `before` is run apart and not compared."""
    seen = {}
    for side in PORTS:
        client(side, before)
        seen[side] = client(side, text, *options, **account)
    same(what, seen["remora"], seen["direct"])
    return seen["direct"]


def works(what, text, *options, **account):
    status, shown = both(what, text, *options, **account)
    assert status == 0, shown[-500:]
    return shown


def connect():
    settings = ("SELECT DATABASE(), CURRENT_USER(), @@autocommit, @@sql_mode, @@time_zone, @@character_set_client,"
                " @@collation_connection, @@character_set_results;")
    works("settings", settings)
    works("settings when compressed", settings, "--compress")
    works("without a schema", settings, schema=None)
    works("reconnected", f"CONNECT {SCHEMA}\n{settings}\nUSE {SCHEMA}\n{settings}")
    # Its numbers are the connection's, the port, and counters.
    seen = {side: re.sub(rb"[0-9.]+", b"N", client(side, "status")[1]) for side in PORTS}
    same("status", seen["remora"], seen["direct"])
    assert b"Server version" in seen["direct"], seen
    for account in ({"password": "wrong"}, {"user": "nobody"}, {"schema": "no_such_schema"}):
        status, _ = both("refusal", settings, **account)
        assert status != 0, account


def auth():
    worked = []
    for account in ACCOUNTS:
        seen = {}
        for side in PORTS:
            login = dict(user=f"{side}_{account}", password=ACCOUNTS_PASSWORD, schema=None)
            # The first login of an account may take a longer way than the second.
            twice = [client(side, "SELECT CURRENT_USER();", **login) for _ in range(2)]
            seen[side] = repr(twice).replace(f"{side}_", "")
        same(f"login by {account}", seen["remora"], seen["direct"])
        if "(0, " in seen["direct"]:
            worked.append(account)
    say("plugins", " ".join(worked))


def tls():
    if not TLS:
        raise NotThere("the run is without TLS")
    status, shown = client("remora", "SHOW SESSION STATUS LIKE 'Ssl_cipher';", "--skip-column-names")
    assert status == 0 and shown.split(b"\t")[1].strip(), shown
    status, shown = client("remora", "SELECT 1;", "--ssl-verify-server-cert", ca=TLS_WRONG_CA)
    assert status != 0, "a certificate of an unknown authority was accepted"


def text():
    def queries(tables):
        return [query for table in tables for query in
                [f"SELECT * FROM {table} ORDER BY id"] + [f"SELECT * FROM {table} WHERE id = {number}" for number in (1, 2, 3, 4, 5)]]

    cached = READS + queries(TABLES)
    prepared = ["PREPARE s FROM 'SELECT * FROM t_integers WHERE id = ?'", "SET @id = 4", "EXECUTE s USING @id",
                "EXECUTE s USING @id", "DEALLOCATE PREPARE s"]
    script = ";\n".join(cached + queries(PASSED_TABLES) + prepared) + ";\n"
    expected = client("direct", script, "--column-type-info", "--binary-as-hex")
    seen, until = 0, time.monotonic() + WARM_UP_S
    while True:
        before = hits()
        same("reads", client("remora", script, "--column-type-info", "--binary-as-hex"), expected)
        seen = max(seen, hits_since(before, len(cached)))
        if seen == len(cached) or time.monotonic() >= until:
            break
    assert expected[0] == 0, expected[1][-500:]
    say("hits", "text", seen, len(cached))


def prepared():
    raise NotThere("the client sends text only")


def transactions():
    read = "SELECT id, value FROM w_transactions ORDER BY id;"
    one, other = Talk("remora"), Talk("remora")
    one.say("CREATE TABLE w_transactions (id INT PRIMARY KEY, value INT) ENGINE=InnoDB;")

    def are(when, ones, others):
        same(f"{when}: own", one.say(read), ones)
        same(f"{when}: other's", other.say(read), others)

    for _ in range(3):
        are("at first", [], [])
    one.say("BEGIN; INSERT INTO w_transactions VALUES (1, 1);")
    are("before the rollback", ["1\t1"], [])
    one.say("ROLLBACK;")
    are("after the rollback", [], [])
    one.say("BEGIN; INSERT INTO w_transactions VALUES (1, 1); SAVEPOINT s; INSERT INTO w_transactions VALUES (2, 2);"
            " ROLLBACK TO SAVEPOINT s; COMMIT;")
    are("after the commit", ["1\t1"], ["1\t1"])
    now = 1
    for level, behind in (("READ UNCOMMITTED", 0), ("READ COMMITTED", 0), ("REPEATABLE READ", 1)):
        same(level, one.say(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}; BEGIN; {read}"), [f"1\t{now}"])
        now += 1
        other.say(f"UPDATE w_transactions SET value = {now};")
        are(level, [f"1\t{now - behind}"], [f"1\t{now}"])
        one.say("COMMIT;")
        are(f"after {level}", [f"1\t{now}"], [f"1\t{now}"])
    refused = one.say("START TRANSACTION READ ONLY; INSERT INTO w_transactions VALUES (9, 9);")
    assert "1792" in " ".join(refused), refused
    one.close()
    other.close()


def transaction_reads():
    raise NotThere("the client begins no transactions by itself")


def errors():
    faulty = ["SELEC 1", "SELECT * FROM no_such_table", "SELECT no_such_column FROM t_empty", "SELECT 1 FROM",
              "INSERT INTO w_errors VALUES (1, 'twice')", "INSERT INTO w_errors VALUES (NULL, NULL)",
              "INSERT INTO w_errors VALUES (5)", "SELECT * FROM no_such_schema.t", "DROP TABLE no_such_table",
              "CALL no_such_procedure()", "UPDATE w_errors SET id = 2 WHERE id = 1", "SELECT 18446744073709551615 + 1",
              "SIGNAL SQLSTATE '45123' SET MESSAGE_TEXT = 'größe', MYSQL_ERRNO = 4321", "SELECT (SELECT id FROM w_errors)"]
    before = ("DROP TABLE IF EXISTS w_errors; CREATE TABLE w_errors (id INT PRIMARY KEY, name VARCHAR(10) NOT NULL) ENGINE=InnoDB;"
              "INSERT INTO w_errors VALUES (1, 'once'), (2, 'x');")
    _, shown = both("errors", ";\n".join(faulty) + ";\n", "--force", "--show-warnings", before=before)
    assert len(re.findall(rb"^ERROR ", shown, re.M)) == len(faulty), shown


def large():
    works("large rows", "".join(f"SELECT LEFT(data, {length}) FROM large WHERE id = 1;\n" for length in LARGE_LENGTHS), "--quick")
    payload = (bytes(range(256)) * 40_000).hex()  # of 20 MB as text
    shown = works("large statements", "DROP TABLE IF EXISTS w_large; CREATE TABLE w_large (id INT PRIMARY KEY, data LONGBLOB) ENGINE=InnoDB;"
                  f"INSERT INTO w_large VALUES (1, 0x{payload});\nSELECT LENGTH(data), MD5(data) FROM w_large;\n")
    assert b"10240000" in shown, shown


def multi():
    ids = "SELECT id FROM w_multi ORDER BY id"
    works("multi-statements", f"""DROP TABLE IF EXISTS w_multi; CREATE TABLE w_multi (id INT PRIMARY KEY) ENGINE=InnoDB;
        DROP PROCEDURE IF EXISTS two_results;
        DELIMITER //
        CREATE PROCEDURE two_results() BEGIN SELECT 1; SELECT COUNT(*) FROM w_multi; END//
        SELECT 1 AS a; INSERT INTO w_multi VALUES (1), (2); {ids}; UPDATE w_multi SET id = 3 WHERE id = 2//
        {ids}// {ids}// {ids}//
        UPDATE w_multi SET id = 4 WHERE id = 3; CALL two_results()//
        {ids}//
        """)
    both("an error in the middle", "DELIMITER //\nSELECT 1; SELECT * FROM no_such_table; SELECT 2//\nSELECT 3//\n", "--force")


def local_infile():
    total = "SELECT COUNT(*), SUM(id), MAX(name) FROM w_local;"
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
        file.writelines(f"{number}\tline {number}\n" for number in range(1, 5001))
        file.flush()
        before = "DROP TABLE IF EXISTS w_local; CREATE TABLE w_local (id INT PRIMARY KEY, name VARCHAR(20)) ENGINE=InnoDB;"
        shown = works("LOAD DATA LOCAL", f"{total} {total} {total} LOAD DATA LOCAL INFILE '{file.name}' INTO TABLE w_local; {total}",
                      "--local-infile=1", "-v", before=before)
    assert b"5000" in shown, shown
    both("a file that is not there", f"LOAD DATA LOCAL INFILE '/no/such/file' INTO TABLE w_local; {total}", "--local-infile=1", "--force")


def streaming():
    script = "SELECT id, name, amount FROM many ORDER BY id;\n" * 2
    shown = works("rows one by one", script + "SELECT m.id, n.name FROM many m JOIN many n USING (id) ORDER BY id;\n", "--quick")
    assert shown.count(b"\n") == 3 * (16_384 + 1), shown.count(b"\n")


def bulk():
    total = "SELECT COUNT(*), SUM(id), SUM(value), MAX(name) FROM w_bulk;\n"
    script = "DROP TABLE IF EXISTS w_bulk; CREATE TABLE w_bulk (id INT PRIMARY KEY, name VARCHAR(20), value INT) ENGINE=InnoDB;\n"
    script += total * 3 + "BEGIN;\n"
    script += "".join(f"INSERT INTO w_bulk VALUES ({n}, 'row {n}', {n % 7 or 'NULL'});\n" for n in range(1, 2001))
    assert b"2000" in works("bulk insert", script + f"COMMIT;\n{total}")


def results():
    writes = ["INSERT INTO w_results (value) VALUES (1)", "INSERT INTO w_results (value) VALUES (2), (3), (4)",
              "UPDATE w_results SET value = 9 WHERE id > 1", "UPDATE w_results SET value = 9", "DELETE FROM w_results WHERE id = 4",
              "INSERT INTO w_results VALUES (1, 1) ON DUPLICATE KEY UPDATE value = 8", "REPLACE INTO w_results VALUES (2, 2)",
              "INSERT IGNORE INTO w_results VALUES (1, 1)", "SHOW WARNINGS", "SELECT LAST_INSERT_ID()"]
    reads = ["SELECT id, value FROM w_results ORDER BY id", "SELECT FOUND_ROWS(), ROW_COUNT()",
             "SELECT value / 0, CAST(CONCAT(value, 'x') AS SIGNED) FROM w_results ORDER BY id", "SHOW WARNINGS"]
    before = ("DROP TABLE IF EXISTS w_results;"
              "CREATE TABLE w_results (id INT AUTO_INCREMENT PRIMARY KEY, value TINYINT) ENGINE=InnoDB;")
    script = ";\n".join(writes + reads * 3) + ";\n"
    for options in ([], ["--show-warnings"]):
        works("results", script, "-vv", *options, before=before)


def own_writes():
    script = "CREATE TABLE w_own (id INT PRIMARY KEY, value INT) ENGINE=InnoDB; INSERT INTO w_own VALUES (1, 0);\n"
    read = "SELECT value FROM w_own WHERE id = 1;\n"
    script += "".join(f"UPDATE w_own SET value = {number} WHERE id = 1;\n{read}{read}" for number in range(1, 501))
    status, shown = client("remora", script, "--skip-column-names")
    assert status == 0, shown[-500:]
    same("values read", shown.split(), [b"%d" % number for number in range(1, 501) for _ in range(2)])


for function in (connect, auth, tls, text, prepared, transactions, transaction_reads, errors, large, multi, local_infile,
                 streaming, bulk, results, own_writes):
    check(function.__name__, function)
