// node main.mjs DRIVER [CHECK…]: the checks of one Node driver; see ../README.md.

import { createHash } from "node:crypto";
import { createReadStream, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { drivers } from "./adapters.mjs";
import * as env from "./environment.mjs";
import { NotThere, account, check, expect, hits, hitsSince, largeLengths, ports, same, say, schema } from "./environment.mjs";

const driver = drivers[process.argv[2]];

const digest = (bytes) => [bytes.length, createHash("sha1").update(bytes).digest("hex")];

/** The answer, or the error as the driver shows it. */
async function outcome(run) {
  try {
    return { answer: await run() };
  } catch (error) {
    return { error: driver.describe(error) };
  }
}

/** What a driver sees through Remora must be what it sees directly. */
async function both(what, observe, options) {
  const seen = {};
  for (const side of ["direct", "remora"]) {
    const connection = await driver.connect(ports[side], options);
    try {
      seen[side] = await observe(connection, side);
    } finally {
      await connection.close();
    }
  }
  same(what, seen.remora, seen.direct);
  return seen.direct;
}

async function run(connection, ...texts) {
  for (const text of texts) await connection.query(text);
}

async function value(connection, text) {
  return (await connection.query(text)).rows[0][0];
}

const checks = {
  async connect() {
    const settings = "SELECT DATABASE(), CURRENT_USER(), @@autocommit, @@sql_mode, @@time_zone, @@character_set_client,"
      + " @@collation_connection, @@character_set_results";
    await both("settings", async (connection) => {
      await connection.ping();
      const before = await connection.query(settings);
      await connection.query("SET @left_over = 1, SESSION sql_mode = ''");
      // MariaDB's driver refuses it on MySQL by itself.
      const change = await outcome(() => connection.changeUser({ ...account, database: schema }));
      return [before, change, await connection.query(settings), await connection.query("SELECT @left_over")];
    });
    await both("without a schema", (connection) => connection.query(settings), { database: null });
    for (const options of [{ password: "wrong" }, { user: "nobody" }, { database: "no_such_schema" }]) {
      const refused = {};
      for (const side of Object.keys(ports)) {
        refused[side] = await outcome(async () => (await driver.connect(ports[side], options)).close());
      }
      same("refusal", refused.remora, refused.direct);
      expect(refused.direct.error, "a wrong login was accepted");
    }
  },

  async auth() {
    const worked = [];
    for (const name of env.accounts) {
      const seen = {};
      for (const side of Object.keys(ports)) {
        // The first login of an account may take a longer way than the second.
        const login = async () => {
          const options = { user: `${side}_${name}`, password: env.accountsPassword, database: null };
          const connection = await driver.connect(ports[side], options);
          const user = await value(connection, "SELECT CURRENT_USER()");
          await connection.close();
          return user;
        };
        const twice = [await outcome(login), await outcome(login)];
        seen[side] = JSON.parse(JSON.stringify(twice).replaceAll(`${side}_`, ""));
      }
      same(`login by ${name}`, seen.remora, seen.direct);
      if (seen.direct[0].answer) worked.push(name);
    }
    say("plugins", ...worked);
  },

  async tls() {
    if (!env.tls) throw new NotThere("the run is without TLS");
    const connection = await driver.connect(ports.remora);
    const status = await connection.query("SHOW SESSION STATUS LIKE 'Ssl_cipher'");
    await connection.close();
    expect(status.rows[0][1], "the server sees no TLS");
    const refused = await outcome(async () => (await driver.connect(ports.remora, { ca: env.wrongAuthority })).close());
    expect(refused.error, "a certificate of an unknown authority was accepted");
  },

  async text() {
    const queries = (tables) => tables.flatMap((table) => [
      [`SELECT * FROM ${table} ORDER BY id`],
      ...[1, 2, 3, 4, 5].map((id) => [`SELECT * FROM ${table} WHERE id = ${id}`]),
    ]);
    const cached = [...env.reads.map((text) => [text]), ...queries(env.tables)];
    await reads("text", cached, queries(env.passedTables), (connection, [text]) => connection.query(text));
  },

  async prepared() {
    const queries = (tables) => tables.flatMap((table) =>
      [1, 2, 3, 4, 5].map((id) => [`SELECT * FROM ${table} WHERE id = ?`, [id]]));
    const cached = [...env.reads.map((text) => [text, []]), ...queries(env.tables),
      ["SELECT id, flexible FROM t_strings WHERE flexible = ? OR text_t = ?", ["varying", "text"]],
      ["SELECT id FROM t_decimals WHERE double_f > ? ORDER BY id", [0.05]],
      ["SELECT id FROM t_integers WHERE big = ?", [9223372036854775807n]],
      ["SELECT id FROM t_dates WHERE moment >= ? ORDER BY id", [new Date("2000-01-01T00:00:00Z")]],
      ["SELECT id FROM t_blobs WHERE tiny_b = ? OR ? IS NULL ORDER BY id", [Buffer.from([255]), null]]];
    const run = (connection, read) => connection.execute(...read);
    await reads("prepared", cached, queries(env.passedTables), run);
  },

  async transactions() {
    const [one, other] = [await driver.connect(ports.remora), await driver.connect(ports.remora)];
    const read = async (connection) => (await connection.query("SELECT id, value FROM w_transactions ORDER BY id")).rows;
    const reads = async (ones, others, when) => {
      same(`${when}: own`, await read(one), ones);
      same(`${when}: other`, await read(other), others);
    };
    await run(one, "CREATE TABLE w_transactions (id INT PRIMARY KEY, value INT) ENGINE=InnoDB");
    for (let again = 0; again < 3; again++) await reads([], [], "at first");
    await one.begin();
    await run(one, "INSERT INTO w_transactions VALUES (1, 1)");
    await reads([[1, 1]], [], "before the rollback");
    await one.rollback();
    await reads([], [], "after the rollback");
    await one.begin();
    await run(one, "INSERT INTO w_transactions VALUES (1, 1)", "SAVEPOINT s", "INSERT INTO w_transactions VALUES (2, 2)",
      "ROLLBACK TO SAVEPOINT s");
    await one.commit();
    await reads([[1, 1]], [[1, 1]], "after the commit");
    let now = 1;
    for (const [level, repeats] of [["READ UNCOMMITTED", false], ["READ COMMITTED", false], ["REPEATABLE READ", true]]) {
      await run(one, `SET SESSION TRANSACTION ISOLATION LEVEL ${level}`);
      await one.begin();
      same(level, await read(one), [[1, now]]);
      await run(other, `UPDATE w_transactions SET value = ${++now}`);
      await reads([[1, repeats ? now - 1 : now]], [[1, now]], level);
      await one.commit();
      await reads([[1, now]], [[1, now]], `after ${level}`);
    }
    await run(one, "START TRANSACTION READ ONLY");
    const refused = await outcome(() => run(one, "INSERT INTO w_transactions VALUES (9, 9)"));
    expect(refused.error?.includes(1792), refused);
    await one.rollback();
    await one.close();
    await other.close();
  },

  async transaction_reads() {
    const writer = await driver.connect(ports.direct);
    await run(writer, "CREATE TABLE w_reads (id INT PRIMARY KEY, value INT) ENGINE=InnoDB",
      "INSERT INTO w_reads VALUES (1, 0), (2, 0), (3, 0), (4, 0), (5, 0)");
    const observe = async (connection) => {
      const seen = [];
      const read = async (...ids) => {
        for (const id of ids) seen.push(await connection.query(`SELECT value FROM w_reads WHERE id = ${id}`));
      };
      await run(writer, "UPDATE w_reads SET value = 0");
      await connection.begin();
      await read(1, 2, 3, 4);
      await run(writer, "UPDATE w_reads SET value = 1 WHERE id = 4");
      await read(1, 2, 3, 4);
      await connection.commit();
      await connection.begin();
      await read(1, 2, 3, 4);
      await run(connection, "UPDATE w_reads SET value = 2 WHERE id = 5");
      await read(1, 2, 3, 5);
      await connection.commit();
      return seen;
    };
    const [direct, remora] = [await driver.connect(ports.direct), await driver.connect(ports.remora)];
    const expected = await observe(direct);
    same("directly", expected.map((answer) => answer.rows[0][0]), [...Array(11).fill(0), 1, 0, 0, 0, 2]);
    // Of the rows that nobody changes, all reads but the first of each transaction.
    const [allowed, until] = [(expected.length * 5) / 8, Date.now() + env.warmUpMs];
    let seen = 0;
    while (seen < allowed && Date.now() < until) {
      const before = await hits();
      same("answers inside transactions", await observe(remora), expected);
      seen = Math.max(seen, await hitsSince(before, expected.length));
    }
    for (const connection of [direct, remora, writer]) await connection.close();
    say("hits", "transactions", seen, expected.length);
  },

  async errors() {
    const faulty = ["SELEC 1", "SELECT * FROM no_such_table", "SELECT no_such_column FROM t_empty", "SELECT 1 FROM",
      "INSERT INTO w_errors VALUES (1, 'twice')", "INSERT INTO w_errors VALUES (NULL, NULL)",
      "INSERT INTO w_errors VALUES (5)", "SELECT * FROM no_such_schema.t", "DROP TABLE no_such_table",
      "CALL no_such_procedure()", "UPDATE w_errors SET id = 2 WHERE id = 1", "SELECT 18446744073709551615 + 1",
      "SIGNAL SQLSTATE '45123' SET MESSAGE_TEXT = 'größe', MYSQL_ERRNO = 4321", "SELECT (SELECT id FROM w_errors)"];
    await both("errors", async (connection) => {
      await run(connection, "DROP TABLE IF EXISTS w_errors",
        "CREATE TABLE w_errors (id INT PRIMARY KEY, name VARCHAR(10) NOT NULL) ENGINE=InnoDB",
        "INSERT INTO w_errors VALUES (1, 'once'), (2, 'x')");
      const seen = [];
      for (const text of faulty) seen.push(await outcome(() => connection.query(text)));
      expect(seen.every((one) => one.error), seen);
      for (const text of faulty.slice(0, 5)) seen.push(await outcome(() => connection.execute(text, [])));
      seen.push(await outcome(() => connection.execute("INSERT INTO w_errors VALUES (?, ?)", [1, "x"])));
      seen.push(await lockTimeout(connection));
      return seen;
    });
  },

  async large() {
    const payload = Buffer.alloc(256 * 78_126, Buffer.from(Uint8Array.from({ length: 256 }, (_, i) => i)));
    await both("large rows", async (connection) => {
      const seen = [];
      for (const length of largeLengths) {
        seen.push(digest(await value(connection, `SELECT LEFT(data, ${length}) FROM large WHERE id = 1`)));
      }
      expect(seen.length > 0 && seen.every((one, index) => one[0] === largeLengths[index]), seen);
      await run(connection, "DROP TABLE IF EXISTS w_large", "CREATE TABLE w_large (id INT PRIMARY KEY, data LONGBLOB) ENGINE=InnoDB");
      await connection.insertBinary("w_large", 1, payload);
      expect(payload.equals(await value(connection, "SELECT data FROM w_large WHERE id = 1")), "text: another value");
      await connection.execute("INSERT INTO w_large VALUES (?, ?)", [2, payload]);
      const row = (await connection.execute("SELECT data FROM w_large WHERE id = ?", [2])).rows[0];
      expect(payload.equals(row[0]), "prepared: another value");
      return seen;
    });
  },

  async multi() {
    await both("multi-statements", async (connection) => {
      await run(connection, "DROP TABLE IF EXISTS w_multi", "CREATE TABLE w_multi (id INT PRIMARY KEY) ENGINE=InnoDB",
        "DROP PROCEDURE IF EXISTS two_results",
        "CREATE PROCEDURE two_results() BEGIN SELECT 1; SELECT COUNT(*) FROM w_multi; END");
      const seen = [await connection.multiple("SELECT 1 AS a; INSERT INTO w_multi VALUES (1), (2);"
        + " SELECT id FROM w_multi ORDER BY id; UPDATE w_multi SET id = 3 WHERE id = 2")];
      for (let again = 0; again < 3; again++) seen.push(await connection.query("SELECT id FROM w_multi ORDER BY id"));
      seen.push(await outcome(() => connection.multiple("SELECT 1; SELECT * FROM no_such_table; SELECT 2")));
      seen.push(await connection.multiple("UPDATE w_multi SET id = 4 WHERE id = 3; CALL two_results()"));
      seen.push(await connection.query("SELECT id FROM w_multi ORDER BY id"));
      return seen;
    }, { multiple: true });
  },

  async local_infile() {
    const directory = mkdtempSync(join(tmpdir(), "remora-drivers-"));
    const file = join(directory, "lines.tsv");
    writeFileSync(file, Array.from({ length: 5000 }, (_, i) => `${i + 1}\tline ${i + 1}\n`).join(""));
    const total = "SELECT COUNT(*), SUM(id), MAX(name) FROM w_local";
    try {
      await both("LOAD DATA LOCAL", async (connection) => {
        await run(connection, "DROP TABLE IF EXISTS w_local",
          "CREATE TABLE w_local (id INT PRIMARY KEY, name VARCHAR(20)) ENGINE=InnoDB", total, total, total);
        const seen = [await load(connection, `LOAD DATA LOCAL INFILE '${file}' INTO TABLE w_local`)];
        seen.push(await connection.query(total));
        expect(Number(seen[1].rows[0][0]) === 5000, seen);
        return seen;
      }, { local: true });
    } finally {
      rmSync(directory, { recursive: true });
    }
  },

  async streaming() {
    await both("streamed rows", async (connection) => {
      const seen = [];
      for (const text of ["SELECT id, name, amount FROM many ORDER BY id", "SELECT id, name, amount FROM many ORDER BY id",
        "SELECT m.id, n.name FROM many m JOIN many n USING (id) ORDER BY id"]) {
        const hash = createHash("sha1");
        let count = 0;
        for await (const row of connection.stream(text)) {
          hash.update(JSON.stringify(row));
          count++;
        }
        expect(count === 16_384, `${count} rows`);
        seen.push(hash.digest("hex"));
      }
      return seen;
    });
  },

  async bulk() {
    const rows = Array.from({ length: 2000 }, (_, i) => [i + 1, `row ${i + 1}`, (i + 1) % 7 || null]);
    const total = "SELECT COUNT(*), SUM(id), SUM(value), MAX(name) FROM w_bulk";
    await both("bulk insert", async (connection) => {
      await run(connection, "DROP TABLE IF EXISTS w_bulk",
        "CREATE TABLE w_bulk (id INT PRIMARY KEY, name VARCHAR(20), value INT) ENGINE=InnoDB", total, total, total);
      const seen = [await connection.bulk("w_bulk", rows), await connection.query(total)];
      expect(Number(seen[1].rows[0][0]) === 2000, seen);
      seen.push(await outcome(() => connection.bulk("w_bulk", rows.slice(0, 3))));
      return seen;
    });
  },

  async results() {
    const writes = ["INSERT INTO w_results (value) VALUES (1)", "INSERT INTO w_results (value) VALUES (2), (3), (4)",
      "UPDATE w_results SET value = 9 WHERE id > 1", "UPDATE w_results SET value = 9", "DELETE FROM w_results WHERE id = 4",
      "INSERT INTO w_results VALUES (1, 1) ON DUPLICATE KEY UPDATE value = 8", "REPLACE INTO w_results VALUES (2, 2)",
      "INSERT IGNORE INTO w_results VALUES (1, 1)", "SHOW WARNINGS", "SELECT LAST_INSERT_ID()"];
    const reads = ["SELECT id, value FROM w_results ORDER BY id", "SELECT FOUND_ROWS(), ROW_COUNT()",
      "SELECT value / 0, CAST(CONCAT(value, 'x') AS SIGNED) FROM w_results ORDER BY id", "SHOW WARNINGS"];
    await both("results", async (connection) => {
      await run(connection, "DROP TABLE IF EXISTS w_results",
        "CREATE TABLE w_results (id INT AUTO_INCREMENT PRIMARY KEY, value TINYINT) ENGINE=InnoDB");
      const seen = [];
      for (const text of [...writes, ...reads, ...reads, ...reads]) seen.push(await connection.query(text));
      seen.push(await connection.execute("INSERT INTO w_results (value) VALUES (?), (?)", [1, 2]));
      return seen;
    });
  },

  async own_writes() {
    const connection = await driver.connect(ports.remora);
    await run(connection, "CREATE TABLE w_own (id INT PRIMARY KEY, value INT) ENGINE=InnoDB", "INSERT INTO w_own VALUES (1, 0), (2, 0)");
    for (let number = 1; number <= 500; number++) {
      await run(connection, `UPDATE w_own SET value = ${number} WHERE id = 1`);
      for (let again = 0; again < 2; again++) {
        same("text", await value(connection, "SELECT value FROM w_own WHERE id = 1"), number);
      }
      await connection.execute("UPDATE w_own SET value = ? WHERE id = ?", [number, 2]);
      for (let again = 0; again < 2; again++) {
        const { rows } = await connection.execute("SELECT value FROM w_own WHERE id = ?", [2]);
        same("prepared", rows[0][0], number);
      }
    }
    await connection.close();
  },
};

/** Reads directly, and then again and again through Remora, until memory answers what it can. */
async function reads(kind, cached, passed, run) {
  const all = [...cached, ...passed];
  const direct = await driver.connect(ports.direct);
  const expected = [];
  for (const read of all) expected.push(await outcome(() => run(direct, read)));
  await direct.close();
  const remora = await driver.connect(ports.remora);
  const until = Date.now() + env.warmUpMs;
  let seen = 0;
  do {
    const before = await hits();
    for (const [index, read] of all.entries()) {
      same(String(read), await outcome(() => run(remora, read)), expected[index]);
    }
    seen = Math.max(seen, await hitsSince(before, cached.length));
  } while (seen < cached.length && Date.now() < until);
  await remora.close();
  say("hits", kind, seen, cached.length);
}

/** LOAD DATA LOCAL; mysql2 wants to be given the file as a stream. */
async function load(connection, text) {
  if (driver !== drivers.mysql2) return connection.query(text);
  const [answer] = await connection.raw.query({ sql: text, infileStreamFactory: (path) => createReadStream(path) });
  return { ...answer };
}

async function lockTimeout(connection) {
  const other = await driver.connect(ports.remora);
  await other.begin();
  await run(other, "UPDATE w_errors SET name = 'held' WHERE id = 1");
  await run(connection, "SET innodb_lock_wait_timeout = 1");
  const seen = await outcome(() => connection.query("UPDATE w_errors SET name = 'y' WHERE id = 1"));
  await other.rollback();
  await other.close();
  expect(seen.error?.includes(1205), seen);
  return seen;
}

for (const [name, run] of Object.entries(checks)) await check(name, run);
