<?php
// php main.php DRIVER [CHECK…]: the checks of one interface of PHP; see ../README.md.

declare(strict_types=1);

require __DIR__ . '/environment.php';
require __DIR__ . '/adapters.php';

final class Checks
{
    public function __construct(private string $driver)
    {
    }

    private function open(string $side, array $options = []): MysqliDriver|PdoDriver
    {
        return new $this->driver(port($side), $options);
    }

    /** The answer, or the error as PHP shows it. */
    private function outcome(callable $run): mixed
    {
        try {
            return $run();
        } catch (mysqli_sql_exception | PDOException $error) {
            return $this->driver::describe($error);
        }
    }

    private static function isError(mixed $outcome): bool
    {
        return is_array($outcome) && ($outcome[0] ?? null) === 'error';
    }

    /** What is seen through Remora must be what is seen directly. */
    private function both(string $what, callable $observe, array $options = []): mixed
    {
        foreach (SIDES as $side) {
            $connection = $this->open($side, $options);
            $seen[$side] = $observe($connection);
            $connection->close();
        }
        same($what, $seen['remora'], $seen['direct']);
        return $seen['direct'];
    }

    private static function run(MysqliDriver|PdoDriver $connection, string ...$texts): void
    {
        array_map($connection->query(...), $texts);
    }

    public function connect(): void
    {
        $settings = 'SELECT DATABASE(), CURRENT_USER(), @@autocommit, @@sql_mode, @@time_zone, @@character_set_client,'
            . ' @@collation_connection, @@character_set_results';
        $observe = fn ($connection) => [$connection->serverInfo(), $connection->query($settings)];
        $this->both('settings', $observe);
        $this->both('found rows', $observe, ['found_rows' => true]);
        $this->both('without a schema', $observe, ['schema' => '']);
        foreach (['password', 'user', 'schema'] as $wrong) {
            $refused = array_map(fn ($side) => $this->outcome(fn () => $this->open($side, [$wrong => 'wrong'])), SIDES);
            same('refusal', $refused[1], $refused[0]);
            expect(self::isError($refused[0]), 'a wrong login was accepted');
        }
    }

    public function auth(): void
    {
        $worked = [];
        // Not ed25519, which mysqlnd doesn't know: what it answers ends MariaDB's server, whose plugin does not expect it.
        foreach (array_diff(words('ACCOUNTS'), ['ed25519']) as $account) {
            foreach (SIDES as $side) {
                $options = ['user' => "{$side}_$account", 'password' => variable('ACCOUNTS_PASSWORD'), 'schema' => ''];
                $login = fn () => $this->open($side, $options)->query('SELECT CURRENT_USER()')[1];
                // The first login of an account may take a longer way than the second.
                $seen[$side] = [$this->outcome($login), $this->outcome($login)];
            }
            same("login by $account", str_replace('remora_', '', show($seen['remora'])), str_replace('direct_', '', show($seen['direct'])));
            if (!self::isError($seen['direct'][0])) {
                $worked[] = $account;
            }
        }
        say('plugins', ...$worked);
    }

    public function tls(): void
    {
        if (variable('TLS') !== 'on') {
            throw new NotThere('the run is without TLS');
        }
        $status = $this->open('remora')->query("SHOW SESSION STATUS LIKE 'Ssl_cipher'");
        expect($status[1][0][1] !== '', 'the server sees no TLS');
        $refused = $this->outcome(fn () => @$this->open('remora', ['authority' => variable('TLS_WRONG_CA')]));
        expect(self::isError($refused), 'a certificate of an unknown authority was accepted');
    }

    public function text(): void
    {
        $queries = function (array $tables): array {
            foreach ($tables as $table) {
                $reads[] = ["SELECT * FROM $table ORDER BY id", []];
                foreach (range(1, 5) as $id) {
                    $reads[] = ["SELECT * FROM $table WHERE id = $id", []];
                }
            }
            return $reads;
        };
        $cached = [...self::fixedReads(), ...$queries(words('TABLES'))];
        $this->reads('text', $cached, $queries(words('PASSED_TABLES')), fn ($connection, $read) => $connection->query($read[0]));
    }

    public function prepared(): void
    {
        $queries = function (array $tables): array {
            foreach ($tables as $table) {
                foreach (range(1, 5) as $id) {
                    $reads[] = ["SELECT * FROM $table WHERE id = ?", [$id]];
                }
            }
            return $reads;
        };
        $cached = [...self::fixedReads(), ...$queries(words('TABLES')),
            ['SELECT id, flexible FROM t_strings WHERE flexible = ? OR text_t = ?', ['varying', 'text']],
            ['SELECT id FROM t_decimals WHERE double_f > ? ORDER BY id', [0.05]],
            ['SELECT id FROM t_blobs WHERE tiny_b = ? OR ? IS NULL ORDER BY id', ["\xff", null]]];
        $this->reads('prepared', $cached, $queries(words('PASSED_TABLES')), fn ($connection, $read) => $connection->execute(...$read));
    }

    private static function fixedReads(): array
    {
        $lines = file(variable('READS'), FILE_IGNORE_NEW_LINES | FILE_SKIP_EMPTY_LINES);
        return array_map(fn ($line) => [$line, []], $lines);
    }

    /** Reads directly, and then again and again through Remora, until memory answers what it can. */
    private function reads(string $kind, array $cached, array $passed, callable $run): void
    {
        $all = [...$cached, ...$passed];
        $direct = $this->open('direct');
        $expected = array_map(fn ($read) => $this->outcome(fn () => $run($direct, $read)), $all);
        $remora = $this->open('remora');
        [$seen, $until] = [0, time() + WARM_UP_S];
        do {
            $before = hits();
            foreach ($all as $index => $read) {
                same($read[0], $this->outcome(fn () => $run($remora, $read)), $expected[$index]);
            }
            $seen = max($seen, hitsSince($before, count($cached)));
        } while ($seen < count($cached) && time() < $until);
        say('hits', $kind, (string) $seen, (string) count($cached));
    }

    public function transactions(): void
    {
        [$one, $other] = [$this->open('remora'), $this->open('remora')];
        $rows = fn ($connection) => array_map(
            fn ($row) => array_map(intval(...), $row),
            $connection->query('SELECT id, value FROM w_transactions ORDER BY id')[1]
        );
        $are = function (string $when, array $ones, array $others) use ($rows, $one, $other): void {
            same("$when: own", $rows($one), $ones);
            same("$when: other's", $rows($other), $others);
        };
        self::run($one, 'CREATE TABLE w_transactions (id INT PRIMARY KEY, value INT) ENGINE=InnoDB');
        foreach (range(1, 3) as $_) {
            $are('at first', [], []);
        }
        $one->begin();
        self::run($one, 'INSERT INTO w_transactions VALUES (1, 1)');
        $are('before the rollback', [[1, 1]], []);
        $one->rollback();
        $are('after the rollback', [], []);
        $one->begin();
        self::run($one, 'INSERT INTO w_transactions VALUES (1, 1)', 'SAVEPOINT s', 'INSERT INTO w_transactions VALUES (2, 2)',
            'ROLLBACK TO SAVEPOINT s');
        $one->commit();
        $are('after the commit', [[1, 1]], [[1, 1]]);
        $now = 1;
        foreach (['READ UNCOMMITTED' => 0, 'READ COMMITTED' => 0, 'REPEATABLE READ' => 1] as $level => $behind) {
            self::run($one, "SET SESSION TRANSACTION ISOLATION LEVEL $level");
            $one->begin();
            same($level, $rows($one), [[1, $now]]);
            $now++;
            self::run($other, "UPDATE w_transactions SET value = $now");
            $are($level, [[1, $now - $behind]], [[1, $now]]);
            $one->commit();
            $are("after $level", [[1, $now]], [[1, $now]]);
        }
        self::run($one, 'START TRANSACTION READ ONLY');
        $refused = $this->outcome(fn () => $one->query('INSERT INTO w_transactions VALUES (9, 9)'));
        expect(str_contains(show($refused), '1792'), $refused);
        self::run($one, 'ROLLBACK');
    }

    public function transactionReads(): void
    {
        $writer = $this->open('direct');
        self::run($writer, 'CREATE TABLE w_reads (id INT PRIMARY KEY, value INT) ENGINE=InnoDB',
            'INSERT INTO w_reads VALUES (1, 0), (2, 0), (3, 0), (4, 0), (5, 0)');
        $observe = function ($connection) use ($writer): array {
            $read = fn (int ...$ids) => array_map(fn ($id) => $connection->query("SELECT value FROM w_reads WHERE id = $id"), $ids);
            self::run($writer, 'UPDATE w_reads SET value = 0');
            $connection->begin();
            $seen = $read(1, 2, 3, 4);
            self::run($writer, 'UPDATE w_reads SET value = 1 WHERE id = 4');
            array_push($seen, ...$read(1, 2, 3, 4));
            $connection->commit();
            $connection->begin();
            array_push($seen, ...$read(1, 2, 3, 4));
            self::run($connection, 'UPDATE w_reads SET value = 2 WHERE id = 5');
            array_push($seen, ...$read(1, 2, 3, 5));
            $connection->commit();
            return $seen;
        };
        [$direct, $remora] = [$this->open('direct'), $this->open('remora')];
        $expected = $observe($direct);
        $values = array_map(fn ($answer) => (int) $answer[1][0][0], $expected);
        same('directly', $values, [...array_fill(0, 11, 0), 1, 0, 0, 0, 2]);
        // Of the rows that nobody changes, all reads but the first of each transaction.
        [$allowed, $seen, $until] = [count($expected) * 5 / 8, 0, time() + WARM_UP_S];
        while ($seen < $allowed && time() < $until) {
            $before = hits();
            same('answers inside transactions', $observe($remora), $expected);
            $seen = max($seen, hitsSince($before, count($expected)));
        }
        say('hits', 'transactions', (string) $seen, (string) count($expected));
    }

    public function errors(): void
    {
        $faulty = ['SELEC 1', 'SELECT * FROM no_such_table', 'SELECT no_such_column FROM t_empty', 'SELECT 1 FROM',
            "INSERT INTO w_errors VALUES (1, 'twice')", 'INSERT INTO w_errors VALUES (NULL, NULL)',
            'INSERT INTO w_errors VALUES (5)', 'SELECT * FROM no_such_schema.t', 'DROP TABLE no_such_table',
            'CALL no_such_procedure()', 'UPDATE w_errors SET id = 2 WHERE id = 1', 'SELECT 18446744073709551615 + 1',
            "SIGNAL SQLSTATE '45123' SET MESSAGE_TEXT = 'größe', MYSQL_ERRNO = 4321", 'SELECT (SELECT id FROM w_errors)'];
        $this->both('errors', function ($connection) use ($faulty): array {
            self::run($connection, 'DROP TABLE IF EXISTS w_errors',
                'CREATE TABLE w_errors (id INT PRIMARY KEY, name VARCHAR(10) NOT NULL) ENGINE=InnoDB',
                "INSERT INTO w_errors VALUES (1, 'once'), (2, 'x')");
            $seen = array_map(fn ($text) => $this->outcome(fn () => $connection->query($text)), $faulty);
            expect(count(array_filter($seen, self::isError(...))) === count($faulty), $seen);
            foreach (array_slice($faulty, 0, 5) as $text) {
                $seen[] = $this->outcome(fn () => $connection->execute($text, []));
            }
            $seen[] = $this->outcome(fn () => $connection->execute('INSERT INTO w_errors VALUES (?, ?)', [1, 'x']));
            $other = $this->open('remora');
            $other->begin();
            self::run($other, "UPDATE w_errors SET name = 'held' WHERE id = 1");
            self::run($connection, 'SET innodb_lock_wait_timeout = 1');
            $timeout = $this->outcome(fn () => $connection->query("UPDATE w_errors SET name = 'y' WHERE id = 1"));
            $other->rollback();
            expect(str_contains(show($timeout), '1205'), $timeout);
            return [...$seen, $timeout];
        });
    }

    public function large(): void
    {
        $lengths = array_map(intval(...), words('LARGE_LENGTHS'));
        $payload = str_repeat(implode('', array_map(chr(...), range(0, 255))), 78_126);
        $this->both('large rows', function ($connection) use ($lengths, $payload): array {
            foreach ($lengths as $length) {
                $value = $connection->query("SELECT LEFT(data, $length) FROM large WHERE id = 1")[1][0][0];
                expect(strlen($value) === $length, 'another length');
                $seen[] = sha1($value);
            }
            self::run($connection, 'DROP TABLE IF EXISTS w_large', 'CREATE TABLE w_large (id INT PRIMARY KEY, data LONGBLOB) ENGINE=InnoDB',
                'INSERT INTO w_large VALUES (1, _binary ' . $connection->quote($payload) . ')');
            $connection->execute('INSERT INTO w_large VALUES (?, ?)', [2, $payload]);
            $connection->executeLong('INSERT INTO w_large VALUES (?, ?)', 3, $payload);
            foreach ([1, 2, 3] as $id) {
                expect($connection->query("SELECT data FROM w_large WHERE id = $id")[1][0][0] === $payload, "text: row $id");
                $row = $connection->execute('SELECT data FROM w_large WHERE id = ?', [$id])[1][0];
                expect($row[0] === $payload, "prepared: row $id");
            }
            return $seen;
        });
    }

    public function multi(): void
    {
        $this->both('multi-statements', function ($connection): array {
            self::run($connection, 'DROP TABLE IF EXISTS w_multi', 'CREATE TABLE w_multi (id INT PRIMARY KEY) ENGINE=InnoDB',
                'DROP PROCEDURE IF EXISTS two_results',
                'CREATE PROCEDURE two_results() BEGIN SELECT 1; SELECT COUNT(*) FROM w_multi; END');
            $ids = 'SELECT id FROM w_multi ORDER BY id';
            $seen = [$connection->multiple("SELECT 1 AS a; INSERT INTO w_multi VALUES (1), (2); $ids; UPDATE w_multi SET id = 3 WHERE id = 2")];
            array_push($seen, $connection->query($ids), $connection->query($ids), $connection->query($ids));
            $seen[] = $this->outcome(fn () => $connection->multiple('SELECT 1; SELECT * FROM no_such_table; SELECT 2'));
            $seen[] = $connection->multiple('UPDATE w_multi SET id = 4 WHERE id = 3; CALL two_results()');
            $seen[] = $connection->query($ids);
            return $seen;
        });
    }

    public function localInfile(): void
    {
        $file = tempnam(sys_get_temp_dir(), 'remora-drivers-');
        file_put_contents($file, implode('', array_map(fn ($n) => "$n\tline $n\n", range(1, 5000))));
        try {
            $this->both('LOAD DATA LOCAL', function ($connection) use ($file): array {
                self::run($connection, 'DROP TABLE IF EXISTS w_local', 'CREATE TABLE w_local (id INT PRIMARY KEY, name VARCHAR(20)) ENGINE=InnoDB');
                $total = 'SELECT COUNT(*), SUM(id), MAX(name) FROM w_local';
                $seen = array_map($connection->query(...), [$total, $total, $total, "LOAD DATA LOCAL INFILE '$file' INTO TABLE w_local", $total]);
                expect((int) $seen[4][1][0][0] === 5000, $seen[4]);
                return $seen;
            }, ['local' => true]);
        } finally {
            unlink($file);
        }
    }

    public function streaming(): void
    {
        $text = 'SELECT id, name, amount FROM many ORDER BY id';
        $this->both('streamed rows', function ($connection) use ($text): array {
            foreach ([$connection->stream(...), $connection->stream(...), $connection->cursor(...)] as $open) {
                $rows = $open($text);
                if ($rows === null) {
                    continue;
                }
                [$count, $hash] = [0, ''];
                foreach ($rows as $row) {
                    $hash = md5($hash . implode(' ', $row));
                    $count++;
                }
                expect($count === 16_384, "$count rows");
                $seen[] = $hash;
            }
            return $seen;
        });
    }

    public function bulk(): void
    {
        $this->both('bulk insert', function ($connection): array {
            self::run($connection, 'DROP TABLE IF EXISTS w_bulk', 'CREATE TABLE w_bulk (id INT PRIMARY KEY, name VARCHAR(20), value INT) ENGINE=InnoDB');
            $total = 'SELECT COUNT(*), SUM(id), SUM(value), MAX(name) FROM w_bulk';
            $seen = array_map($connection->query(...), [$total, $total, $total]);
            // PHP has no way of its own: one statement is executed again and again.
            $connection->begin();
            $statement = $connection->raw->prepare('INSERT INTO w_bulk VALUES (?, ?, ?)');
            foreach (range(1, 2000) as $number) {
                $statement->execute([$number, "row $number", $number % 7 ?: null]);
            }
            $connection->commit();
            $seen[] = $connection->query($total);
            expect((int) $seen[3][1][0][0] === 2000, $seen);
            return $seen;
        });
    }

    public function results(): void
    {
        $writes = ['INSERT INTO w_results (value) VALUES (1)', 'INSERT INTO w_results (value) VALUES (2), (3), (4)',
            'UPDATE w_results SET value = 9 WHERE id > 1', 'UPDATE w_results SET value = 9', 'DELETE FROM w_results WHERE id = 4',
            'INSERT INTO w_results VALUES (1, 1) ON DUPLICATE KEY UPDATE value = 8', 'REPLACE INTO w_results VALUES (2, 2)',
            'INSERT IGNORE INTO w_results VALUES (1, 1)', 'SHOW WARNINGS', 'SELECT LAST_INSERT_ID()'];
        $reads = ['SELECT id, value FROM w_results ORDER BY id', 'SELECT FOUND_ROWS(), ROW_COUNT()',
            "SELECT value / 0, CAST(CONCAT(value, 'x') AS SIGNED) FROM w_results ORDER BY id", 'SHOW WARNINGS'];
        foreach ([false, true] as $found) {
            $this->both('results', function ($connection) use ($writes, $reads): array {
                self::run($connection, 'DROP TABLE IF EXISTS w_results',
                    'CREATE TABLE w_results (id INT AUTO_INCREMENT PRIMARY KEY, value TINYINT) ENGINE=InnoDB');
                $seen = array_map($connection->query(...), [...$writes, ...$reads, ...$reads, ...$reads]);
                $seen[] = $connection->execute('INSERT INTO w_results (value) VALUES (?), (?)', [1, 2]);
                return $seen;
            }, ['found_rows' => $found]);
        }
    }

    public function ownWrites(): void
    {
        $connection = $this->open('remora');
        self::run($connection, 'CREATE TABLE w_own (id INT PRIMARY KEY, value INT) ENGINE=InnoDB', 'INSERT INTO w_own VALUES (1, 0), (2, 0)');
        foreach (range(1, 500) as $number) {
            self::run($connection, "UPDATE w_own SET value = $number WHERE id = 1");
            $connection->execute('UPDATE w_own SET value = ? WHERE id = ?', [$number, 2]);
            foreach ([1, 2] as $_) {
                $text = $connection->query('SELECT value FROM w_own WHERE id = 1')[1][0][0];
                expect((int) $text === $number, "text: $text instead of $number");
                $prepared = $connection->execute('SELECT value FROM w_own WHERE id = ?', [2])[1][0][0];
                expect((int) $prepared === $number, "prepared: $prepared instead of $number");
            }
        }
    }
}

$checks = new Checks(DRIVERS[$argv[1]]);
$wanted = array_slice($argv, 2);
foreach (['connect', 'auth', 'tls', 'text', 'prepared', 'transactions', 'transaction_reads', 'errors', 'large', 'multi',
    'local_infile', 'streaming', 'bulk', 'results', 'own_writes'] as $name) {
    check($wanted, $name, [$checks, lcfirst(str_replace('_', '', ucwords($name, '_')))]);
}
