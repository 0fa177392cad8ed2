import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.sql.Blob;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.SQLWarning;
import java.sql.Statement;
import java.util.HexFormat;
import java.util.Properties;

/** A connection of one of the two drivers, and how what it shows becomes text. */
final class Session implements AutoCloseable {
    /** Chosen by the program's argument. */
    static boolean isMariaDb;
    /** Both connectors' default: a connection prepares on the server only if it is told to. */
    static final String[] AS_IT_COMES = {"useServerPrepStmts", "false"};

    final Connection raw;

    private Session(Connection raw) {
        this.raw = raw;
    }

    /** Connects; the words are properties and their values in turn, which win over the usual ones. */
    static Session connect(String side, String... words) throws SQLException {
        var properties = new Properties();
        properties.put("user", Environment.variable("USER"));
        properties.put("password", Environment.variable("PASSWORD"));
        properties.put("schema", Environment.variable("SCHEMA"));
        properties.put("useServerPrepStmts", "true");
        properties.put("allowPublicKeyRetrieval", "true");
        properties.put("sslMode", Environment.TLS ? (isMariaDb ? "verify-ca" : "VERIFY_CA") : isMariaDb ? "disable" : "DISABLED");
        if (isMariaDb) {
            properties.put("maxAllowedPacket", "67108864");
        } else {
            properties.put("trustCertificateKeyStoreUrl", "");
        }
        trust(properties, Environment.variable("TLS_CA"));
        for (int index = 0; index < words.length; index += 2) {
            if (words[index].equals("authority")) {
                trust(properties, words[index + 1]);
            } else {
                properties.put(words[index], words[index + 1]);
            }
        }
        var schema = properties.remove("schema");
        var kind = isMariaDb ? "mariadb" : "mysql";
        var place = Environment.variable("HOST") + ":" + Environment.PORTS.get(side);
        return new Session(DriverManager.getConnection("jdbc:" + kind + "://" + place + "/" + schema, properties));
    }

    private static void trust(Properties properties, String file) {
        if (!Environment.TLS) {
            properties.remove("trustCertificateKeyStoreUrl");
        } else if (isMariaDb) {
            properties.put("serverSslCert", file);
        } else {
            properties.put("trustCertificateKeyStoreUrl", TrustStore.of(file));
            properties.put("trustCertificateKeyStorePassword", TrustStore.PASSWORD);
            properties.put("fallbackToSystemTrustStore", "false");
        }
    }

    @Override
    public void close() throws SQLException {
        raw.close();
    }

    void run(String... texts) throws SQLException {
        try (var statement = raw.createStatement()) {
            for (var text : texts) {
                statement.execute(text);
            }
        }
    }

    /** All results of a text, with everything that the driver tells of their columns, or the error. */
    String read(String text) {
        try (var statement = raw.createStatement()) {
            return all(statement, statement.execute(text, Statement.RETURN_GENERATED_KEYS));
        } catch (SQLException | RuntimeException error) {
            return describe(error);
        }
    }

    /** The same by a prepared statement. */
    String execute(String text, Object... values) {
        try (var statement = raw.prepareStatement(text)) {
            return all(statement, fill(statement, values).execute());
        } catch (SQLException | RuntimeException error) {
            return describe(error);
        }
    }

    static PreparedStatement fill(PreparedStatement statement, Object... values) throws SQLException {
        for (int index = 0; index < values.length; index++) {
            statement.setObject(index + 1, values[index]);
        }
        return statement;
    }

    static String describe(Exception error) {
        if (error instanceof SQLException of) {
            // MariaDB's connector writes the connection's number before the message.
            var message = String.valueOf(of.getMessage()).replaceAll("\\(conn=\\d+\\)", "");
            return "error " + of.getErrorCode() + " " + of.getSQLState() + " " + message + " " + of.getClass().getSimpleName();
        }
        return "error " + error;
    }

    private static String all(Statement statement, boolean isResult) throws SQLException {
        var shown = new StringBuilder();
        try {
            while (true) {
                if (isResult) {
                    try (var rows = statement.getResultSet()) {
                        shown.append(show(rows));
                    }
                } else if (statement.getUpdateCount() >= 0) {
                    shown.append(statement.getUpdateCount()).append(" rows");
                    try (var keys = statement.getGeneratedKeys()) {
                        while (keys.next()) {
                            shown.append(", id ").append(keys.getString(1));
                        }
                    } catch (SQLException none) {
                        shown.append(", no ids");
                    }
                } else {
                    break;
                }
                shown.append('\n');
                for (SQLWarning one = statement.getWarnings(); one != null; one = one.getNextWarning()) {
                    shown.append(describe(one)).append('\n');
                }
                isResult = statement.getMoreResults();
            }
        } catch (SQLException error) {
            shown.append(describe(error));
        }
        return shown.toString();
    }

    static String show(ResultSet rows) throws SQLException {
        var shown = new StringBuilder();
        var columns = rows.getMetaData();
        for (int column = 1; column <= columns.getColumnCount(); column++) {
            shown.append(String.join(" ", columns.getColumnLabel(column), columns.getColumnName(column),
                    columns.getTableName(column), columns.getCatalogName(column), columns.getColumnTypeName(column),
                    columns.getColumnClassName(column), "" + columns.getColumnType(column),
                    "" + columns.getPrecision(column), "" + columns.getScale(column),
                    "" + columns.getColumnDisplaySize(column), "" + columns.isNullable(column),
                    "" + columns.isAutoIncrement(column), "" + columns.isSigned(column),
                    "" + columns.isCaseSensitive(column), "\n"));
        }
        while (rows.next()) {
            for (int column = 1; column <= columns.getColumnCount(); column++) {
                shown.append(value(rows, column)).append('\n');
            }
        }
        return shown.toString();
    }

    /** A value as object, as text and as bytes; a conversion that the driver refuses is a value too. */
    private static String value(ResultSet rows, int column) {
        var shown = new StringBuilder();
        try {
            var object = rows.getObject(column);
            if (object instanceof byte[] bytes) {
                shown.append(bytes.length > 1000 ? Environment.digest(bytes) : HexFormat.of().formatHex(bytes));
            } else if (object instanceof Blob blob) {
                shown.append("Blob ").append(Environment.digest(blob.getBytes(1, (int) blob.length())));
            } else if (object instanceof BigDecimal number) {
                shown.append(number.toPlainString());
            } else if (object != null) {
                var text = object.toString();
                shown.append(object.getClass().getSimpleName()).append(' ');
                shown.append(text.length() > 1000 ? Environment.digest(text.getBytes(StandardCharsets.UTF_8)) : text);
            }
        } catch (Exception error) {
            shown.append(describe(error));
        }
        try {
            var text = rows.getString(column);
            var isLong = text != null && text.length() > 1000;
            shown.append(" | ").append(isLong ? Environment.digest(text.getBytes(StandardCharsets.UTF_8)) : text);
        } catch (Exception error) {
            shown.append(describe(error));
        }
        return shown.toString();
    }
}
