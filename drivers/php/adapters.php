<?php
// One adapter for each interface of PHP: what differs between them, and nothing that is checked.

declare(strict_types=1);

/** mysqli. */
final class MysqliDriver
{
    public mysqli $raw;

    public function __construct(int $port, array $options = [])
    {
        mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
        $this->raw = mysqli_init();
        $this->raw->options(MYSQLI_OPT_LOCAL_INFILE, isset($options['local']) ? 1 : 0);
        $flags = $options['found_rows'] ?? false ? MYSQLI_CLIENT_FOUND_ROWS : 0;
        if (variable('TLS') === 'on') {
            $this->raw->ssl_set(null, null, $options['authority'] ?? variable('TLS_CA'), null, null);
            $flags |= MYSQLI_CLIENT_SSL;
        }
        $this->raw->real_connect(variable('HOST'), $options['user'] ?? variable('USER'),
            $options['password'] ?? variable('PASSWORD'), $options['schema'] ?? variable('SCHEMA'), $port, null, $flags);
        $this->raw->set_charset('utf8mb4');
    }

    public static function describe(Throwable $error): array
    {
        return ['error', get_class($error), $error->getCode(), $error instanceof mysqli_sql_exception ? $error->getSqlState() : '',
            $error->getMessage()];
    }

    public function serverInfo(): array
    {
        return [$this->raw->server_info, $this->raw->server_version, $this->raw->character_set_name()];
    }

    private function shown(mysqli_result|bool $result): array
    {
        if (is_bool($result)) {
            return [$this->raw->affected_rows, $this->raw->insert_id, $this->raw->info, $this->raw->warning_count];
        }
        $fields = array_map(function (object $field) {
            unset($field->max_length); // of what is buffered
            return (array) $field;
        }, $result->fetch_fields());
        return [$fields, $result->fetch_all(MYSQLI_NUM), $this->raw->warning_count];
    }

    public function query(string $text): array
    {
        return $this->shown($this->raw->query($text));
    }

    public function execute(string $text, array $values): array
    {
        $statement = $this->raw->prepare($text);
        $statement->execute($values);
        $result = $statement->get_result();
        return $result ? $this->shown($result) : [$statement->affected_rows, $statement->insert_id];
    }

    public function executeLong(string $text, int $id, string $payload): void
    {
        $statement = $this->raw->prepare($text);
        $null = null;
        $statement->bind_param('ib', $id, $null);
        foreach (str_split($payload, 1_000_000) as $piece) {
            $statement->send_long_data(1, $piece);
        }
        $statement->execute();
    }

    public function multiple(string $text): array
    {
        $seen = [];
        $more = $this->raw->multi_query($text);
        while ($more) {
            $result = $this->raw->store_result();
            $seen[] = $this->shown($result === false ? true : $result);
            $more = $this->raw->more_results() && $this->raw->next_result();
        }
        return $seen;
    }

    public function stream(string $text): iterable
    {
        $result = $this->raw->query($text, MYSQLI_USE_RESULT);
        while ($row = $result->fetch_row()) {
            yield $row;
        }
    }

    public function cursor(string $text): ?iterable
    {
        $statement = $this->raw->prepare($text);
        $statement->attr_set(MYSQLI_STMT_ATTR_CURSOR_TYPE, MYSQLI_CURSOR_TYPE_READ_ONLY);
        $statement->attr_set(MYSQLI_STMT_ATTR_PREFETCH_ROWS, 1);
        $statement->execute();
        $statement->bind_result($one, $two, $three);
        while ($statement->fetch()) {
            yield [$one, $two, $three];
        }
    }

    public function quote(string $value): string
    {
        return "'" . $this->raw->real_escape_string($value) . "'";
    }

    public function begin(): void
    {
        $this->raw->begin_transaction();
    }

    public function commit(): void
    {
        $this->raw->commit();
    }

    public function rollback(): void
    {
        $this->raw->rollback();
    }

    public function close(): void
    {
        $this->raw->close();
    }
}

/** PDO, with native prepared statements. */
final class PdoDriver
{
    public ?PDO $raw;

    public function __construct(int $port, array $options = [])
    {
        $schema = $options['schema'] ?? variable('SCHEMA');
        $place = 'mysql:host=' . variable('HOST') . ";port=$port;charset=utf8mb4" . ($schema === '' ? '' : ";dbname=$schema");
        $attributes = [
            PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION,
            PDO::ATTR_EMULATE_PREPARES => false,
            PDO::MYSQL_ATTR_LOCAL_INFILE => isset($options['local']),
            PDO::MYSQL_ATTR_FOUND_ROWS => $options['found_rows'] ?? false,
        ];
        if (variable('TLS') === 'on') {
            $attributes[PDO::MYSQL_ATTR_SSL_CA] = $options['authority'] ?? variable('TLS_CA');
        }
        $this->raw = new PDO($place, $options['user'] ?? variable('USER'), $options['password'] ?? variable('PASSWORD'), $attributes);
    }

    public static function describe(Throwable $error): array
    {
        $parts = $error instanceof PDOException ? $error->errorInfo : [];
        return ['error', get_class($error), $error->getCode(), $error->getMessage(), $parts];
    }

    public function serverInfo(): array
    {
        return [$this->raw->getAttribute(PDO::ATTR_SERVER_VERSION), $this->raw->getAttribute(PDO::ATTR_CLIENT_VERSION)];
    }

    private function shown(PDOStatement $statement): array
    {
        $columns = [];
        for ($column = 0; $column < $statement->columnCount(); $column++) {
            $columns[] = $statement->getColumnMeta($column);
        }
        if (!$columns) {
            return [$statement->rowCount(), $this->raw->lastInsertId()];
        }
        return [$columns, $statement->fetchAll(PDO::FETCH_NUM), $statement->rowCount()];
    }

    /** As text: PDO would otherwise prepare it. */
    public function query(string $text): array
    {
        $this->raw->setAttribute(PDO::ATTR_EMULATE_PREPARES, true);
        try {
            return $this->shown($this->raw->query($text));
        } finally {
            $this->raw->setAttribute(PDO::ATTR_EMULATE_PREPARES, false);
        }
    }

    public function execute(string $text, array $values): array
    {
        $statement = $this->raw->prepare($text);
        $statement->execute($values);
        return $this->shown($statement);
    }

    public function executeLong(string $text, int $id, string $payload): void
    {
        $statement = $this->raw->prepare($text);
        $statement->bindValue(1, $id, PDO::PARAM_INT);
        $stream = fopen('php://temp', 'r+');
        fwrite($stream, $payload);
        rewind($stream);
        $statement->bindParam(2, $stream, PDO::PARAM_LOB);
        $statement->execute();
    }

    public function multiple(string $text): array
    {
        $this->raw->setAttribute(PDO::ATTR_EMULATE_PREPARES, true);
        try {
            $statement = $this->raw->query($text);
            $seen = [];
            do {
                $seen[] = $this->shown($statement);
            } while ($statement->nextRowset());
            return $seen;
        } finally {
            $this->raw->setAttribute(PDO::ATTR_EMULATE_PREPARES, false);
        }
    }

    public function stream(string $text): iterable
    {
        $this->raw->setAttribute(PDO::MYSQL_ATTR_USE_BUFFERED_QUERY, false);
        $statement = $this->raw->query($text);
        while ($row = $statement->fetch(PDO::FETCH_NUM)) {
            yield $row;
        }
        $statement->closeCursor();
        $this->raw->setAttribute(PDO::MYSQL_ATTR_USE_BUFFERED_QUERY, true);
    }

    public function cursor(string $text): ?iterable
    {
        return null;
    }

    public function quote(string $value): string
    {
        return $this->raw->quote($value);
    }

    public function begin(): void
    {
        $this->raw->beginTransaction();
    }

    public function commit(): void
    {
        $this->raw->commit();
    }

    public function rollback(): void
    {
        $this->raw->rollBack();
    }

    public function close(): void
    {
        $this->raw = null;
    }
}

const DRIVERS = ['mysqli' => MysqliDriver::class, 'pdo' => PdoDriver::class];
