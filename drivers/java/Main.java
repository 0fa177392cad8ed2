import static java.util.stream.Collectors.joining;

import java.io.ByteArrayInputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.sql.Types;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.stream.IntStream;

/** {@code Main DRIVER [CHECK…]}: the checks of one JDBC driver; see ../README.md. */
public final class Main {
    public static void main(String[] arguments) {
        var name = arguments[0];
        Session.isMariaDb = name.startsWith("mariadb");
        var checks = new LinkedHashMap<String, Environment.Check>();
        checks.put("connect", Main::connect);
        checks.put("auth", Main::auth);
        checks.put("tls", Main::tls);
        checks.put("text", Main::text);
        checks.put("prepared", Main::prepared);
        checks.put("transactions", Main::transactions);
        checks.put("transaction_reads", Main::transactionReads);
        checks.put("errors", Main::errors);
        checks.put("large", Main::large);
        checks.put("multi", Main::multi);
        checks.put("local_infile", Main::localInfile);
        checks.put("streaming", Main::streaming);
        checks.put("bulk", Main::bulk);
        checks.put("results", Main::results);
        checks.put("own_writes", Main::ownWrites);
        if (name.equals("hibernate")) {
            checks.replaceAll((check, run) -> () -> {
                throw new Environment.NotThere("Connector/J does it for Hibernate");
            });
            checks.put("transaction_reads", Hibernate::transactionReads);
        }
        var wanted = List.of(arguments).subList(1, arguments.length);
        checks.forEach((check, run) -> Environment.check(wanted, check, run));
    }

    private interface Observe {
        List<String> on(Session session) throws Exception;
    }

    private record Read(String text, Object... values) {}

    private interface RunRead {
        String on(Session session, Read read);
    }

    /** What a driver sees through Remora must be what it sees directly. */
    private static void both(String what, Observe observe, String... properties) throws Exception {
        var seen = new HashMap<String, String>();
        for (var side : Environment.SIDES) {
            try (var session = Session.connect(side, properties)) {
                seen.put(side, String.join("\n", observe.on(session)));
            }
        }
        Environment.same(what, seen.get("remora"), seen.get("direct"));
    }

    private static void connect() throws Exception {
        var settings = "SELECT DATABASE(), CURRENT_USER(), @@autocommit, @@sql_mode, @@time_zone, @@character_set_client,"
                + " @@collation_connection, @@character_set_results";
        Observe observe = session -> {
            Environment.expect(session.raw.isValid(5), "no answer to a ping");
            var product = session.raw.getMetaData();
            return List.of(product.getDatabaseProductName(), product.getDatabaseProductVersion(),
                    product.getDefaultTransactionIsolation() + session.raw.getCatalog(), session.read(settings));
        };
        both("settings", observe);
        both("settings with another time zone", observe, "connectionTimeZone", "+03:00", "forceConnectionTimeZoneToSession", "true");
        both("without a schema", session -> List.of(session.read(settings)), "schema", "");
        both("compressed", observe, "useCompression", "true");
        both("tables and columns", session -> {
            var data = session.raw.getMetaData();
            try (var tables = data.getTables(Environment.variable("SCHEMA"), null, "t\\_%", null);
                    var columns = data.getColumns(Environment.variable("SCHEMA"), null, "t\\_names", "%")) {
                return List.of(Session.show(tables), Session.show(columns));
            }
        });
        for (var property : List.of("password", "user", "schema")) {
            var refused = Environment.SIDES.stream().map(side -> {
                try (var session = Session.connect(side, property, "wrong")) {
                    return "none";
                } catch (SQLException error) {
                    return Session.describe(error).replace(Environment.PORTS.get(side), "PORT");
                }
            }).toList();
            Environment.same("refusal", refused.get(1), refused.get(0));
            Environment.expect(!refused.get(0).equals("none"), "a wrong login was accepted");
        }
    }

    private static void auth() throws Exception {
        var worked = new ArrayList<String>();
        for (var account : Environment.words("ACCOUNTS")) {
            var seen = new HashMap<String, String>();
            for (var side : Environment.SIDES) {
                // The first login of an account may take a longer way than the second.
                var both = login(side, account) + login(side, account);
                seen.put(side, both.replace(side + "_", "").replace(Environment.PORTS.get(side), "PORT"));
            }
            Environment.same("login by " + account, seen.get("remora"), seen.get("direct"));
            if (!seen.get("direct").startsWith("error")) {
                worked.add(account);
            }
        }
        System.out.println("plugins " + String.join(" ", worked));
    }

    private static String login(String side, String account) {
        var password = Environment.variable("ACCOUNTS_PASSWORD");
        try (var session = Session.connect(side, "user", side + "_" + account, "password", password, "schema", "")) {
            return session.read("SELECT CURRENT_USER()");
        } catch (SQLException error) {
            return Session.describe(error);
        }
    }

    private static void tls() throws Exception {
        if (!Environment.TLS) {
            throw new Environment.NotThere("the run is without TLS");
        }
        try (var session = Session.connect("remora");
                var statement = session.raw.createStatement();
                var rows = statement.executeQuery("SHOW SESSION STATUS LIKE 'Ssl_cipher'")) {
            Environment.expect(rows.next() && !rows.getString(2).isEmpty(), "the server sees no TLS");
        }
        try (var session = Session.connect("remora", "authority", Environment.variable("TLS_WRONG_CA"))) {
            throw new AssertionError("a certificate of an unknown authority was accepted");
        } catch (SQLException refused) {
            Environment.expect(refused.getMessage() != null, refused);
        }
    }

    private static List<Read> fixedReads() throws Exception {
        var lines = Files.readAllLines(Path.of(Environment.variable("READS")));
        return new ArrayList<>(lines.stream().filter(line -> !line.isBlank()).map(Read::new).toList());
    }

    private static void text() throws Exception {
        var cached = fixedReads();
        cached.addAll(textReads(Environment.TABLES));
        reads("text", cached, textReads(Environment.PASSED_TABLES), (session, read) -> session.read(read.text()));
    }

    private static List<Read> textReads(List<String> tables) {
        var reads = new ArrayList<Read>();
        for (var table : tables) {
            reads.add(new Read("SELECT * FROM " + table + " ORDER BY id"));
            IntStream.range(1, 6).forEach(id -> reads.add(new Read("SELECT * FROM " + table + " WHERE id = " + id)));
        }
        return reads;
    }

    private static void prepared() throws Exception {
        var cached = fixedReads();
        cached.addAll(preparedReads(Environment.TABLES));
        cached.add(new Read("SELECT id, flexible FROM t_strings WHERE flexible = ? OR text_t = ?", "varying", "text"));
        cached.add(new Read("SELECT id FROM t_decimals WHERE double_f > ? ORDER BY id", 0.05));
        cached.add(new Read("SELECT id FROM t_decimals WHERE long_d < ? ORDER BY id", new java.math.BigDecimal("1.5")));
        cached.add(new Read("SELECT id FROM t_dates WHERE moment >= ? ORDER BY id", Timestamp.valueOf("2000-01-01 00:00:00")));
        cached.add(new Read("SELECT id FROM t_blobs WHERE tiny_b = ? OR ? IS NULL ORDER BY id", new byte[] {-1}, null));
        reads("prepared", cached, preparedReads(Environment.PASSED_TABLES),
                (session, read) -> session.execute(read.text(), read.values()));
    }

    private static List<Read> preparedReads(List<String> tables) {
        var reads = new ArrayList<Read>();
        for (var table : tables) {
            IntStream.range(1, 6).forEach(id -> reads.add(new Read("SELECT * FROM " + table + " WHERE id = ?", id)));
        }
        return reads;
    }

    /** Reads directly, and then again and again through Remora, until memory answers what it can. */
    private static void reads(String kind, List<Read> cached, List<Read> passed, RunRead run) throws Exception {
        var all = new ArrayList<>(cached);
        all.addAll(passed);
        try (var direct = Session.connect("direct"); var remora = Session.connect("remora")) {
            var expected = all.stream().map(read -> run.on(direct, read)).toList();
            var until = Instant.now().plus(Environment.WARM_UP);
            int seen = 0;
            do {
                int before = Environment.hits();
                for (int index = 0; index < all.size(); index++) {
                    Environment.same(all.get(index).text(), run.on(remora, all.get(index)), expected.get(index));
                }
                seen = Math.max(seen, Environment.hitsSince(before, cached.size()));
            } while (seen < cached.size() && Instant.now().isBefore(until));
            System.out.println("hits " + kind + " " + seen + " " + cached.size());
        }
    }

    private static String rows(Session session) throws SQLException {
        try (var statement = session.raw.createStatement();
                var rows = statement.executeQuery("SELECT id, value FROM w_transactions ORDER BY id")) {
            var seen = "";
            while (rows.next()) {
                seen += "(" + rows.getInt(1) + " " + rows.getInt(2) + ")";
            }
            return seen;
        }
    }

    private static void transactions() throws Exception {
        try (var one = Session.connect("remora"); var other = Session.connect("remora")) {
            one.run("CREATE TABLE w_transactions (id INT PRIMARY KEY, value INT) ENGINE=InnoDB");
            for (int again = 0; again < 3; again++) {
                Environment.same("at first", rows(other), "");
            }
            one.raw.setAutoCommit(false);
            one.run("INSERT INTO w_transactions VALUES (1, 1)");
            Environment.same("before the rollback", rows(one) + "/" + rows(other), "(1 1)/");
            one.raw.rollback();
            Environment.same("after the rollback", rows(one) + rows(other), "");
            one.run("INSERT INTO w_transactions VALUES (1, 1)");
            var savepoint = one.raw.setSavepoint("s");
            one.run("INSERT INTO w_transactions VALUES (2, 2)");
            one.raw.rollback(savepoint);
            one.raw.commit();
            Environment.same("after the commit", rows(one) + "/" + rows(other), "(1 1)/(1 1)");
            one.raw.commit();
            int now = 1;
            for (int level : List.of(Connection.TRANSACTION_READ_UNCOMMITTED, Connection.TRANSACTION_READ_COMMITTED,
                    Connection.TRANSACTION_REPEATABLE_READ)) {
                one.raw.setTransactionIsolation(level);
                Environment.same("level " + level, rows(one), "(1 " + now + ")");
                other.run("UPDATE w_transactions SET value = " + ++now);
                int visible = level == Connection.TRANSACTION_REPEATABLE_READ ? now - 1 : now;
                Environment.same("level " + level, rows(one) + rows(other), "(1 " + visible + ")(1 " + now + ")");
                one.raw.commit();
                Environment.same("after level " + level, rows(one), "(1 " + now + ")");
                one.raw.commit();
            }
            // Connector/J begins a read-only transaction then; MariaDB's connector only remembers it.
            one.raw.setReadOnly(true);
            if (Session.isMariaDb) {
                one.run("START TRANSACTION READ ONLY");
            }
            var refused = one.read("INSERT INTO w_transactions VALUES (9, 9)");
            Environment.expect(refused.startsWith("error"), refused);
            one.raw.rollback();
            one.raw.setReadOnly(false);
            one.raw.setAutoCommit(true);
            Environment.same("at the end", rows(one), "(1 " + now + ")");
        }
    }

    /** Transactions as Spring begins and ends them on a connection. */
    private record Transactions(Session session) implements TransactionReads.Side {
        @Override
        public List<String> within(boolean readOnly, List<Integer> before, Environment.Check between, List<Integer> after)
                throws Exception {
            session.raw.setReadOnly(readOnly);
            session.raw.setAutoCommit(false);
            var seen = new ArrayList<String>();
            before.forEach(id -> seen.add(session.execute("SELECT value FROM w_reads WHERE id = ?", id)));
            between.run();
            after.forEach(id -> seen.add(session.execute("SELECT value FROM w_reads WHERE id = ?", id)));
            session.raw.commit();
            session.raw.setAutoCommit(true);
            session.raw.setReadOnly(false);
            return seen;
        }

        @Override
        public void write() throws SQLException {
            session.run("UPDATE w_reads SET value = 2 WHERE id = 5");
        }
    }

    private static void transactionReads() throws Exception {
        try (var direct = Session.connect("direct", Session.AS_IT_COMES);
                var remora = Session.connect("remora", Session.AS_IT_COMES)) {
            TransactionReads.check(new Transactions(direct), new Transactions(remora));
        }
    }

    private static void errors() throws Exception {
        var faulty = List.of("SELEC 1", "SELECT * FROM no_such_table", "SELECT no_such_column FROM t_empty", "SELECT 1 FROM",
                "INSERT INTO w_errors VALUES (1, 'twice')", "INSERT INTO w_errors VALUES (NULL, NULL)",
                "INSERT INTO w_errors VALUES (5)", "SELECT * FROM no_such_schema.t", "DROP TABLE no_such_table",
                "CALL no_such_procedure()", "UPDATE w_errors SET id = 2 WHERE id = 1", "SELECT 18446744073709551615 + 1",
                "SIGNAL SQLSTATE '45123' SET MESSAGE_TEXT = 'größe', MYSQL_ERRNO = 4321", "SELECT (SELECT id FROM w_errors)");
        both("errors", session -> {
            session.run("DROP TABLE IF EXISTS w_errors",
                    "CREATE TABLE w_errors (id INT PRIMARY KEY, name VARCHAR(10) NOT NULL) ENGINE=InnoDB",
                    "INSERT INTO w_errors VALUES (1, 'once'), (2, 'x')");
            var seen = new ArrayList<>(faulty.stream().map(session::read).toList());
            Environment.expect(seen.stream().allMatch(one -> one.contains("error ")), seen);
            faulty.subList(0, 5).forEach(text -> seen.add(session.execute(text)));
            seen.add(session.execute("INSERT INTO w_errors VALUES (?, ?)", 1, "x"));
            try (var other = Session.connect("remora")) {
                other.raw.setAutoCommit(false);
                other.run("UPDATE w_errors SET name = 'held' WHERE id = 1");
                session.run("SET innodb_lock_wait_timeout = 1");
                seen.add(session.read("UPDATE w_errors SET name = 'y' WHERE id = 1"));
                other.raw.rollback();
            }
            Environment.expect(seen.get(seen.size() - 1).contains("1205"), seen);
            return seen;
        });
    }

    private static byte[] bytes(Session session, String text) throws SQLException {
        try (var statement = session.raw.createStatement(); var rows = statement.executeQuery(text)) {
            Environment.expect(rows.next(), "no row");
            return rows.getBytes(1);
        }
    }

    private static void large() throws Exception {
        var payload = new byte[256 * 78_126];
        for (int index = 0; index < payload.length; index++) {
            payload[index] = (byte) index;
        }
        both("large rows", session -> {
            var seen = new ArrayList<String>();
            for (int length : Environment.LARGE_LENGTHS) {
                var data = bytes(session, "SELECT LEFT(data, " + length + ") FROM large WHERE id = 1");
                Environment.expect(data.length == length, data.length);
                seen.add(Environment.digest(data));
            }
            session.run("DROP TABLE IF EXISTS w_large", "CREATE TABLE w_large (id INT PRIMARY KEY, data LONGBLOB) ENGINE=InnoDB");
            session.execute("INSERT INTO w_large VALUES (?, ?)", 1, payload);
            // As a stream: in pieces, before the statement is executed.
            session.execute("INSERT INTO w_large VALUES (?, ?)", 2, new ByteArrayInputStream(payload));
            for (int id = 1; id <= 2; id++) {
                var data = bytes(session, "SELECT data FROM w_large WHERE id = " + id);
                Environment.same("row " + id, Environment.digest(data), Environment.digest(payload));
                seen.add(session.execute("SELECT data, id FROM w_large WHERE id = ?", id));
            }
            return seen;
        });
    }

    /** MariaDB's connector waits for ever here, also without Remora. */
    private static String call(Session session) throws SQLException {
        try (var call = session.raw.prepareCall("{CALL two_results(?)}")) {
            call.registerOutParameter(1, Types.INTEGER);
            var seen = "";
            for (boolean more = call.execute(); more; more = call.getMoreResults()) {
                seen += Session.show(call.getResultSet());
            }
            return seen + "out " + call.getInt(1);
        }
    }

    private static void multi() throws Exception {
        both("multi-statements", session -> {
            session.run("DROP TABLE IF EXISTS w_multi; CREATE TABLE w_multi (id INT PRIMARY KEY) ENGINE=InnoDB",
                    "DROP PROCEDURE IF EXISTS two_results",
                    "CREATE PROCEDURE two_results(OUT n INT) BEGIN SELECT 1; SELECT COUNT(*) FROM w_multi; SET n = 7; END");
            var ids = "SELECT id FROM w_multi ORDER BY id";
            var seen = new ArrayList<>(List.of(
                    session.read("SELECT 1 AS a; INSERT INTO w_multi VALUES (1), (2); " + ids
                            + "; UPDATE w_multi SET id = 3 WHERE id = 2"),
                    session.read(ids), session.read(ids), session.read(ids),
                    session.read("SELECT 1; SELECT * FROM no_such_table; SELECT 2")));
            seen.add(Session.isMariaDb ? session.read("CALL two_results(@n)") : call(session));
            seen.add(session.read(ids));
            return seen;
        }, "allowMultiQueries", "true");
    }

    private static void localInfile() throws Exception {
        var file = Files.createTempFile("remora-drivers-", ".tsv");
        try {
            Files.writeString(file, IntStream.rangeClosed(1, 5000).mapToObj(n -> n + "\tline " + n + "\n").collect(joining()));
            both("LOAD DATA LOCAL", session -> {
                session.run("DROP TABLE IF EXISTS w_local", "CREATE TABLE w_local (id INT PRIMARY KEY, name VARCHAR(20)) ENGINE=InnoDB");
                var total = "SELECT COUNT(*), SUM(id), MAX(name) FROM w_local";
                var seen = List.of(session.read(total), session.read(total), session.read(total),
                        session.read("LOAD DATA LOCAL INFILE '" + file + "' INTO TABLE w_local"), session.read(total),
                        session.read("LOAD DATA LOCAL INFILE '/no/such/file' INTO TABLE w_local"), session.read(total));
                Environment.expect(seen.get(4).contains("5000"), seen.get(4));
                return seen;
            }, "allowLoadLocalInfile", "true", "allowLocalInfile", "true");
        } finally {
            Files.delete(file);
        }
    }

    private static String stream(Statement statement, String text) throws SQLException {
        try (var rows = statement.executeQuery(text)) {
            int count = 0;
            int hash = 0;
            for (; rows.next(); count++) {
                hash = 31 * hash + (rows.getString(1) + rows.getString(2)).hashCode();
            }
            Environment.expect(count == 16_384, count);
            return count + " rows " + hash;
        }
    }

    private static void streaming() throws Exception {
        var text = "SELECT id, name, amount FROM many ORDER BY id";
        both("rows one by one", session -> {
            var seen = new ArrayList<String>();
            try (var statement = session.raw.createStatement()) {
                statement.setFetchSize(Session.isMariaDb ? 100 : Integer.MIN_VALUE);
                for (int again = 0; again < 3; again++) {
                    seen.add(stream(statement, text));
                }
            }
            return seen;
        });
        both("rows by a cursor", session -> {
            var seen = new ArrayList<String>();
            try (var statement = session.raw.prepareStatement(text)) {
                statement.setFetchSize(500);
                for (int again = 0; again < 3; again++) {
                    try (var rows = statement.executeQuery()) {
                        seen.add(Environment.digest(Session.show(rows).getBytes()));
                    }
                }
                // Given up in the middle.
                try (var rows = statement.executeQuery()) {
                    Environment.expect(rows.next(), "no row");
                }
            }
            seen.add(session.read("SELECT COUNT(*) FROM many"));
            return seen;
        }, "useCursorFetch", "true");
    }

    private static void bulk() throws Exception {
        for (var property : List.of("rewriteBatchedStatements", "useBulkStmts", "cachePrepStmts")) {
            both("bulk insert with " + property, session -> {
                session.run("DROP TABLE IF EXISTS w_bulk", "CREATE TABLE w_bulk (id INT PRIMARY KEY, name VARCHAR(20), value INT) ENGINE=InnoDB");
                var total = "SELECT COUNT(*), SUM(id), SUM(value), MAX(name) FROM w_bulk";
                var seen = new ArrayList<>(List.of(session.read(total), session.read(total), session.read(total)));
                try (var statement = session.raw.prepareStatement("INSERT INTO w_bulk VALUES (?, ?, ?)")) {
                    for (int number = 1; number <= 2000; number++) {
                        Session.fill(statement, number, "row " + number, number % 7 == 0 ? null : number % 7).addBatch();
                    }
                    seen.add(IntStream.of(statement.executeBatch()).distinct().boxed().map(String::valueOf).collect(joining(",")));
                }
                seen.add(session.read(total));
                Environment.expect(seen.get(4).contains("2000"), seen);
                return seen;
            }, property, "true");
        }
    }

    private static void results() throws Exception {
        var writes = List.of("INSERT INTO w_results (value) VALUES (1)", "INSERT INTO w_results (value) VALUES (2), (3), (4)",
                "UPDATE w_results SET value = 9 WHERE id > 1", "UPDATE w_results SET value = 9", "DELETE FROM w_results WHERE id = 4",
                "INSERT INTO w_results VALUES (1, 1) ON DUPLICATE KEY UPDATE value = 8", "REPLACE INTO w_results VALUES (2, 2)",
                "INSERT IGNORE INTO w_results VALUES (1, 1)", "SELECT LAST_INSERT_ID()");
        var reads = List.of("SELECT id, value FROM w_results ORDER BY id", "SELECT FOUND_ROWS(), ROW_COUNT()",
                "SELECT value / 0, CAST(CONCAT(value, 'x') AS SIGNED) FROM w_results ORDER BY id", "SHOW WARNINGS");
        for (var affected : List.of("true", "false")) {
            both("results", session -> {
                session.run("DROP TABLE IF EXISTS w_results",
                        "CREATE TABLE w_results (id INT AUTO_INCREMENT PRIMARY KEY, value TINYINT) ENGINE=InnoDB");
                var seen = new ArrayList<>(writes.stream().map(session::read).toList());
                for (int again = 0; again < 3; again++) {
                    reads.forEach(text -> seen.add(session.read(text)));
                }
                seen.add(session.execute("INSERT INTO w_results (value) VALUES (?), (?)", 1, 2));
                return seen;
            }, "useAffectedRows", affected);
        }
    }

    private static void ownWrites() throws Exception {
        try (var session = Session.connect("remora")) {
            session.run("CREATE TABLE w_own (id INT PRIMARY KEY, value INT) ENGINE=InnoDB", "INSERT INTO w_own VALUES (1, 0), (2, 0)");
            try (var text = session.raw.createStatement();
                    var write = session.raw.prepareStatement("UPDATE w_own SET value = ? WHERE id = ?");
                    var read = session.raw.prepareStatement("SELECT value FROM w_own WHERE id = ?")) {
                for (int number = 1; number <= 500; number++) {
                    text.executeUpdate("UPDATE w_own SET value = " + number + " WHERE id = 1");
                    Session.fill(write, number, 2).executeUpdate();
                    for (int again = 0; again < 2; again++) {
                        try (var one = text.executeQuery("SELECT value FROM w_own WHERE id = 1");
                                var two = Session.fill(read, 2).executeQuery()) {
                            Environment.expect(one.next() && one.getInt(1) == number, "text: not " + number);
                            Environment.expect(two.next() && two.getInt(1) == number, "prepared: not " + number);
                        }
                    }
                }
            }
        }
    }
}
