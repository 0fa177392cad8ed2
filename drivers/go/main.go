// The checks of go-sql-driver/mysql; see ../README.md.
package main

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

func main() {
	mysql.SetLogger(&mysql.NopLogger{})
	check("connect", checkConnect)
	check("auth", checkAuth)
	check("tls", checkTLS)
	check("text", checkText)
	check("prepared", checkPrepared)
	check("transactions", checkTransactions)
	check("transaction_reads", checkTransactionReads)
	check("errors", checkErrors)
	check("large", checkLarge)
	check("multi", checkMulti)
	check("local_infile", checkLocalInfile)
	check("streaming", checkStreaming)
	check("bulk", checkBulk)
	check("results", checkResults)
	check("own_writes", checkOwnWrites)
}

// both compares what is seen directly with what is seen through Remora.
func both(what string, change func(*mysql.Config), observe func(*connection) []string) []string {
	seen := map[string][]string{}
	for _, side := range []string{"direct", "remora"} {
		one := connect(side, change)
		seen[side] = observe(one)
		one.close()
	}
	same(what, strings.Join(seen["remora"], "\n"), strings.Join(seen["direct"], "\n"))
	return seen["direct"]
}

func checkConnect() {
	settings := "SELECT DATABASE(), CURRENT_USER(), @@autocommit, @@sql_mode, @@time_zone, @@character_set_client," +
		" @@collation_connection, @@character_set_results"
	observe := func(c *connection) []string {
		expect(c.PingContext(background) == nil, "no answer to a ping")
		return []string{c.read(settings)}
	}
	both("settings", nil, observe)
	both("found rows and time zone", func(config *mysql.Config) {
		config.ClientFoundRows, config.ParseTime, config.Loc = true, true, time.UTC
		config.Params = map[string]string{"time_zone": "'+03:00'", "sql_mode": "'ANSI'"}
	}, observe)
	both("without a schema", func(config *mysql.Config) { config.DBName = "" }, observe)
	both("compressed", func(config *mysql.Config) {
		expect(config.Apply(mysql.EnableCompression(true)) == nil, "no compression")
	}, observe)
	refusals := []func(*mysql.Config){
		func(config *mysql.Config) { config.Passwd = "wrong" },
		func(config *mysql.Config) { config.User = "nobody" },
		func(config *mysql.Config) { config.DBName = "no_such_schema" },
	}
	for _, change := range refusals {
		refused := map[string]string{}
		for side := range ports {
			one, err := tryConnect(side, change)
			expect(one == nil, "a wrong login was accepted")
			refused[side] = describe(err)
		}
		same("refusal", refused["remora"], refused["direct"])
	}
}

// tryLogIn logs in by an account of one plugin. The driver cuts a zero byte off the end of what a server asks to be
// signed. It takes it for a terminator, and then finds the rest too short for ed25519. That happens in one of 256
// logins of any server's, so such a login is tried again.
func tryLogIn(side, account string) (*connection, error) {
	const triesMax = 8
	for tries := 1; ; tries++ {
		one, err := tryConnect(side, func(config *mysql.Config) {
			config.User, config.Passwd = side+"_"+account, os.Getenv("DRIVER_ACCOUNTS_PASSWORD")
			config.DBName = ""
		})
		if account != "ed25519" || !errors.Is(err, mysql.ErrMalformPkt) || tries == triesMax {
			return one, err
		}
	}
}

func checkAuth() {
	var worked []string
	for _, account := range strings.Fields(os.Getenv("DRIVER_ACCOUNTS")) {
		seen := map[string]string{}
		for side := range ports {
			// The first login of an account may take a longer way than the second.
			for range 2 {
				one, err := tryLogIn(side, account)
				if err != nil {
					seen[side] += describe(err)
					continue
				}
				seen[side] += "logged in as " + value[string](one, "SELECT CURRENT_USER()")
				one.close()
			}
			seen[side] = strings.ReplaceAll(seen[side], side+"_", "")
		}
		same("login by "+account, seen["remora"], seen["direct"])
		if strings.HasPrefix(seen["direct"], "logged in") {
			worked = append(worked, account)
		}
	}
	fmt.Println("plugins", strings.Join(worked, " "))
}

func checkTLS() {
	if !withTLS {
		panic(notThere("the run is without TLS"))
	}
	one := connect("remora", nil)
	var name, cipher string
	err := one.QueryRowContext(background, "SHOW SESSION STATUS LIKE 'Ssl_cipher'").Scan(&name, &cipher)
	expect(err == nil && cipher != "", "the server sees no TLS")
	one.close()
	_, err = tryConnect("remora", func(config *mysql.Config) { config.TLS = trusting(os.Getenv("DRIVER_TLS_WRONG_CA")) })
	expect(err != nil, "a certificate of an unknown authority was accepted")
}

// read is one read with its arguments, which make it a prepared one.
type read struct {
	text      string
	arguments []any
}

func fixedReads() (reads []read) {
	file := string(must(os.ReadFile(os.Getenv("DRIVER_READS"))))
	for _, text := range strings.Split(strings.TrimSpace(file), "\n") {
		reads = append(reads, read{text, nil})
	}
	return reads
}

func checkText() {
	queries := func(tables []string) (reads []read) {
		for _, table := range tables {
			reads = append(reads, read{"SELECT * FROM " + table + " ORDER BY id", nil})
			for id := 1; id <= 5; id++ {
				reads = append(reads, read{fmt.Sprintf("SELECT * FROM %s WHERE id = %d", table, id), nil})
			}
		}
		return reads
	}
	cached := append(fixedReads(), queries(tables)...)
	run := func(c *connection, one read) string { return c.read(one.text) }
	compareReads("text", nil, cached, queries(passedTables), run)
}

func checkPrepared() {
	queries := func(tables []string) (reads []read) {
		for _, table := range tables {
			for id := 1; id <= 5; id++ {
				reads = append(reads, read{"SELECT * FROM " + table + " WHERE id = ?", []any{id}})
			}
		}
		return reads
	}
	cached := append(fixedReads(), queries(tables)...)
	cached = append(cached,
		read{"SELECT id, flexible FROM t_strings WHERE flexible = ? OR text_t = ?", []any{"varying", "text"}},
		read{"SELECT id FROM t_decimals WHERE double_f > ? ORDER BY id", []any{0.05}},
		read{"SELECT id FROM t_integers WHERE big_u = ?", []any{uint64(18446744073709551615)}},
		read{"SELECT id FROM t_dates WHERE moment >= ? ORDER BY id", []any{time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)}},
		read{"SELECT id FROM t_blobs WHERE tiny_b = ? OR ? IS NULL ORDER BY id", []any{[]byte{255}, nil}})
	run := func(c *connection, one read) string { return c.readPrepared(one.text, one.arguments...) }
	parsing := func(config *mysql.Config) { config.ParseTime = true }
	compareReads("prepared", parsing, cached, queries(passedTables), run)
}

// compareReads reads directly, and then again and again through Remora, until memory answers what it can.
func compareReads(kind string, change func(*mysql.Config), cached, passed []read, run func(*connection, read) string) {
	all := append(append([]read{}, cached...), passed...)
	direct, remora := connect("direct", change), connect("remora", change)
	defer direct.close()
	defer remora.close()
	var expected []string
	for _, one := range all {
		expected = append(expected, run(direct, one))
	}
	seen, until := 0, time.Now().Add(warmUp)
	for {
		before := hits()
		for index, one := range all {
			same(fmt.Sprint(one), run(remora, one), expected[index])
		}
		seen = max(seen, hitsSince(before, len(cached)))
		if seen == len(cached) || !time.Now().Before(until) {
			break
		}
	}
	fmt.Println("hits", kind, seen, len(cached))
}

func rowsOf(read func(string, ...any) (*sql.Rows, error)) string {
	rows := must(read("SELECT id, value FROM w_transactions ORDER BY id"))
	defer rows.Close()
	seen := ""
	for rows.Next() {
		var id, value int
		expect(rows.Scan(&id, &value) == nil, "not two numbers")
		seen += fmt.Sprintf("(%d %d)", id, value)
	}
	return seen
}

func checkTransactions() {
	one, other := connect("remora", nil), connect("remora", nil)
	defer one.close()
	defer other.close()
	one.run("CREATE TABLE w_transactions (id INT PRIMARY KEY, value INT) ENGINE=InnoDB")
	outside := func(c *connection) string {
		return rowsOf(func(text string, _ ...any) (*sql.Rows, error) { return c.QueryContext(background, text) })
	}
	for range 3 {
		same("at first", outside(other), "")
	}
	inside := must(one.BeginTx(background, nil))
	must(inside.Exec("INSERT INTO w_transactions VALUES (1, 1)"))
	same("own, before the rollback", rowsOf(inside.Query), "(1 1)")
	same("other's, before the rollback", outside(other), "")
	expect(inside.Rollback() == nil, "no rollback")
	same("after the rollback", outside(one)+outside(other), "")
	inside = must(one.BeginTx(background, nil))
	for _, text := range []string{"INSERT INTO w_transactions VALUES (1, 1)", "SAVEPOINT s",
		"INSERT INTO w_transactions VALUES (2, 2)", "ROLLBACK TO SAVEPOINT s"} {
		must(inside.Exec(text))
	}
	expect(inside.Commit() == nil, "no commit")
	same("after the commit", outside(one)+outside(other), "(1 1)(1 1)")
	now := 1
	levels := []sql.IsolationLevel{sql.LevelReadUncommitted, sql.LevelReadCommitted, sql.LevelRepeatableRead}
	for _, level := range levels {
		inside = must(one.BeginTx(background, &sql.TxOptions{Isolation: level}))
		same(level.String(), rowsOf(inside.Query), fmt.Sprintf("(1 %d)", now))
		now++
		other.run(fmt.Sprintf("UPDATE w_transactions SET value = %d", now))
		visible := now
		if level == sql.LevelRepeatableRead {
			visible--
		}
		same(level.String(), rowsOf(inside.Query), fmt.Sprintf("(1 %d)", visible))
		same(level.String()+", other's", outside(other), fmt.Sprintf("(1 %d)", now))
		expect(inside.Commit() == nil, "no commit")
		same("after "+level.String(), outside(one), fmt.Sprintf("(1 %d)", now))
	}
	inside = must(one.BeginTx(background, &sql.TxOptions{ReadOnly: true}))
	_, err := inside.Exec("INSERT INTO w_transactions VALUES (9, 9)")
	expect(err != nil && strings.Contains(err.Error(), "1792"), err)
	expect(inside.Rollback() == nil, "no rollback")
}

func checkTransactionReads() {
	direct, remora, writer := connect("direct", nil), connect("remora", nil), connect("direct", nil)
	for _, one := range []*connection{direct, remora, writer} {
		defer one.close()
	}
	writer.run("CREATE TABLE w_reads (id INT PRIMARY KEY, value INT) ENGINE=InnoDB",
		"INSERT INTO w_reads VALUES (1, 0), (2, 0), (3, 0), (4, 0), (5, 0)")
	observe := func(c *connection) (seen []string) {
		// A transaction that reads these rows, does something, and reads those. The arguments
		// make the reads prepared ones.
		within := func(options *sql.TxOptions, before []int, between func(*sql.Tx), after []int) {
			inside := must(c.BeginTx(background, options))
			read := func(ids []int) {
				for _, id := range ids {
					seen = append(seen, showRows(must(inside.Query("SELECT value FROM w_reads WHERE id = ?", id))))
				}
			}
			read(before)
			between(inside)
			read(after)
			expect(inside.Commit() == nil, "no commit")
		}
		others := func(*sql.Tx) { writer.run("UPDATE w_reads SET value = 1 WHERE id = 4") }
		own := func(inside *sql.Tx) { must(inside.Exec("UPDATE w_reads SET value = 2 WHERE id = 5")) }
		writer.run("UPDATE w_reads SET value = 0")
		within(&sql.TxOptions{ReadOnly: true}, []int{1, 2, 3, 4}, others, []int{1, 2, 3, 4})
		within(nil, []int{1, 2, 3, 4}, own, []int{1, 2, 3, 5})
		return seen
	}
	expected := observe(direct)
	values := ""
	for _, answer := range expected {
		values += strings.Fields(answer)[len(strings.Fields(answer))-1]
	}
	same("directly", values, "0000000000010002")
	// Of the rows that nobody changes, all reads but the first of each transaction.
	allowed, seen, until := len(expected)*5/8, 0, time.Now().Add(warmUp)
	for seen < allowed && time.Now().Before(until) {
		before := hits()
		same("answers inside transactions", strings.Join(observe(remora), "\n"), strings.Join(expected, "\n"))
		seen = max(seen, hitsSince(before, len(expected)))
	}
	fmt.Println("hits transactions", seen, len(expected))
}

func checkErrors() {
	faulty := []string{"SELEC 1", "SELECT * FROM no_such_table", "SELECT no_such_column FROM t_empty", "SELECT 1 FROM",
		"INSERT INTO w_errors VALUES (1, 'twice')", "INSERT INTO w_errors VALUES (NULL, NULL)",
		"INSERT INTO w_errors VALUES (5)", "SELECT * FROM no_such_schema.t", "DROP TABLE no_such_table",
		"CALL no_such_procedure()", "UPDATE w_errors SET id = 2 WHERE id = 1", "SELECT 18446744073709551615 + 1",
		"SIGNAL SQLSTATE '45123' SET MESSAGE_TEXT = 'größe', MYSQL_ERRNO = 4321", "SELECT (SELECT id FROM w_errors)"}
	both("errors", nil, func(c *connection) (seen []string) {
		c.run("DROP TABLE IF EXISTS w_errors", "CREATE TABLE w_errors (id INT PRIMARY KEY, name VARCHAR(10) NOT NULL) ENGINE=InnoDB",
			"INSERT INTO w_errors VALUES (1, 'once'), (2, 'x')")
		for _, text := range faulty {
			seen = append(seen, c.read(text))
			expect(strings.Contains(seen[len(seen)-1], "error "), text)
		}
		for _, text := range faulty[:5] {
			seen = append(seen, c.readPrepared(text))
		}
		seen = append(seen, c.write("INSERT INTO w_errors VALUES (?, ?)", 1, "x"))
		other := connect("remora", nil)
		defer other.close()
		holding := must(other.BeginTx(background, nil))
		must(holding.Exec("UPDATE w_errors SET name = 'held' WHERE id = 1"))
		c.run("SET innodb_lock_wait_timeout = 1")
		timeout := c.write("UPDATE w_errors SET name = 'y' WHERE id = 1")
		expect(strings.Contains(timeout, "1205"), timeout)
		expect(holding.Rollback() == nil, "no rollback")
		return append(seen, timeout)
	})
}

func checkLarge() {
	payload := make([]byte, 256*78_126)
	for index := range payload {
		payload[index] = byte(index)
	}
	both("large rows", nil, func(c *connection) (seen []string) {
		for _, length := range largeLengths() {
			data := value[[]byte](c, fmt.Sprintf("SELECT LEFT(data, %d) FROM large WHERE id = 1", length))
			expect(len(data) == length, "another length")
			seen = append(seen, digest(data))
		}
		c.run("DROP TABLE IF EXISTS w_large", "CREATE TABLE w_large (id INT PRIMARY KEY, data LONGBLOB) ENGINE=InnoDB")
		c.run(fmt.Sprintf("INSERT INTO w_large VALUES (1, 0x%x)", payload))
		must(c.ExecContext(background, "INSERT INTO w_large VALUES (?, ?)", 2, payload))
		expect(digest(value[[]byte](c, "SELECT data FROM w_large WHERE id = 1")) == digest(payload), "text: another value")
		read := value[[]byte](c, "SELECT data FROM w_large WHERE id = ?", 2)
		expect(digest(read) == digest(payload), "prepared: another value")
		return seen
	})
}

func checkMulti() {
	both("multi-statements", func(config *mysql.Config) { config.MultiStatements = true }, func(c *connection) []string {
		c.run("DROP TABLE IF EXISTS w_multi; CREATE TABLE w_multi (id INT PRIMARY KEY) ENGINE=InnoDB",
			"DROP PROCEDURE IF EXISTS two_results",
			"CREATE PROCEDURE two_results() BEGIN SELECT 1; SELECT COUNT(*) FROM w_multi; END")
		ids := "SELECT id FROM w_multi ORDER BY id"
		return []string{
			c.read("SELECT 1 AS a; INSERT INTO w_multi VALUES (1), (2); SELECT id FROM w_multi ORDER BY id"),
			c.read(ids), c.read(ids), c.read(ids),
			c.write("UPDATE w_multi SET id = 3 WHERE id = 2; INSERT INTO w_multi VALUES (7)"), c.read(ids),
			c.read("SELECT 1; SELECT * FROM no_such_table; SELECT 2"),
			c.read("UPDATE w_multi SET id = 4 WHERE id = 3; CALL two_results()"), c.read(ids),
		}
	})
}

func checkLocalInfile() {
	file := must(os.CreateTemp("", "remora-drivers-*.tsv"))
	defer os.Remove(file.Name())
	for number := 1; number <= 5000; number++ {
		fmt.Fprintf(file, "%d\tline %d\n", number, number)
	}
	expect(file.Close() == nil, "can't write the file")
	mysql.RegisterLocalFile(file.Name())
	both("LOAD DATA LOCAL", nil, func(c *connection) []string {
		c.run("DROP TABLE IF EXISTS w_local", "CREATE TABLE w_local (id INT PRIMARY KEY, name VARCHAR(20)) ENGINE=InnoDB")
		total := "SELECT COUNT(*), SUM(id), MAX(name) FROM w_local"
		seen := []string{c.read(total), c.read(total), c.read(total),
			c.write("LOAD DATA LOCAL INFILE '" + file.Name() + "' INTO TABLE w_local"), c.read(total),
			c.write("LOAD DATA LOCAL INFILE '/not/registered' INTO TABLE w_local"), c.read(total)}
		expect(value[int](c, "SELECT COUNT(*) FROM w_local") == 5000, seen)
		return seen
	})
}

func checkStreaming() {
	texts := []string{"SELECT id, name, amount FROM many ORDER BY id", "SELECT id, name, amount FROM many ORDER BY id",
		"SELECT m.id, n.name FROM many m JOIN many n USING (id) ORDER BY id"}
	both("streamed rows", nil, func(c *connection) (seen []string) {
		for _, text := range texts {
			seen = append(seen, digest([]byte(c.read(text))))
		}
		// Given up in the middle: the driver reads to the end, or drops the connection.
		rows := must(c.QueryContext(background, texts[0]))
		expect(rows.Next() && rows.Close() == nil, "no first row")
		return append(seen, c.read("SELECT COUNT(*) FROM many"))
	})
}

func checkBulk() {
	both("bulk insert", nil, func(c *connection) []string {
		c.run("DROP TABLE IF EXISTS w_bulk", "CREATE TABLE w_bulk (id INT PRIMARY KEY, name VARCHAR(20), value INT) ENGINE=InnoDB")
		total := "SELECT COUNT(*), SUM(id), SUM(value), MAX(name) FROM w_bulk"
		seen := []string{c.read(total), c.read(total), c.read(total)}
		inside := must(c.BeginTx(background, nil))
		statement := must(inside.Prepare("INSERT INTO w_bulk VALUES (?, ?, ?)"))
		for number := 1; number <= 2000; number++ {
			value := sql.NullInt64{Int64: int64(number % 7), Valid: number%7 != 0}
			must(statement.Exec(number, fmt.Sprintf("row %d", number), value))
		}
		expect(inside.Commit() == nil, "no commit")
		expect(value[int](c, "SELECT COUNT(*) FROM w_bulk") == 2000, "not 2000 rows")
		return append(seen, c.read(total))
	})
}

func checkResults() {
	reads := []string{"SELECT id, value FROM w_results ORDER BY id", "SELECT FOUND_ROWS(), ROW_COUNT()",
		"SELECT value / 0, CAST(CONCAT(value, 'x') AS SIGNED) FROM w_results ORDER BY id", "SHOW WARNINGS"}
	writes := []string{"INSERT INTO w_results (value) VALUES (1)", "INSERT INTO w_results (value) VALUES (2), (3), (4)",
		"UPDATE w_results SET value = 9 WHERE id > 1", "UPDATE w_results SET value = 9", "DELETE FROM w_results WHERE id = 4",
		"INSERT INTO w_results VALUES (1, 1) ON DUPLICATE KEY UPDATE value = 8", "REPLACE INTO w_results VALUES (2, 2)",
		"INSERT IGNORE INTO w_results VALUES (1, 1)"}
	observe := func(c *connection) (seen []string) {
		c.run("DROP TABLE IF EXISTS w_results",
			"CREATE TABLE w_results (id INT AUTO_INCREMENT PRIMARY KEY, value TINYINT) ENGINE=InnoDB")
		for _, text := range writes {
			seen = append(seen, c.write(text))
		}
		seen = append(seen, c.read("SHOW WARNINGS"), c.read("SELECT LAST_INSERT_ID()"))
		for range 3 {
			for _, text := range reads {
				seen = append(seen, c.read(text))
			}
		}
		return append(seen, c.write("INSERT INTO w_results (value) VALUES (?), (?)", 1, 2))
	}
	both("results", nil, observe)
	both("results with found rows", func(config *mysql.Config) { config.ClientFoundRows = true }, observe)
}

func checkOwnWrites() {
	c := connect("remora", nil)
	defer c.close()
	c.run("CREATE TABLE w_own (id INT PRIMARY KEY, value INT) ENGINE=InnoDB", "INSERT INTO w_own VALUES (1, 0), (2, 0)")
	for number := 1; number <= 500; number++ {
		c.run(fmt.Sprintf("UPDATE w_own SET value = %d WHERE id = 1", number))
		for range 2 {
			seen := value[int](c, "SELECT value FROM w_own WHERE id = 1")
			expect(seen == number, fmt.Sprintf("text: %d instead of %d", seen, number))
		}
		must(c.ExecContext(background, "UPDATE w_own SET value = ? WHERE id = ?", number, 2))
		for range 2 {
			seen := value[int](c, "SELECT value FROM w_own WHERE id = ?", 2)
			expect(seen == number, fmt.Sprintf("prepared: %d instead of %d", seen, number))
		}
	}
}
