// One adapter for each driver: what differs between them, and nothing that is checked.

import { createRequire } from "node:module";
import { account, authority, host, schema, tls } from "./environment.mjs";

const require = createRequire(process.env.DRIVER_INSTALLED + "/node/");

const mysql2 = {
  streams: true,
  loads: true,

  async connect(port, { user, password, database, ca, multiple } = {}) {
    const { createConnection } = require("mysql2/promise");
    const raw = await createConnection({
      host, port, ...account, ...(user && { user }), ...(password !== undefined && { password }),
      database: database === undefined ? schema : database, timezone: "Z", rowsAsArray: true,
      supportBigNumbers: true, multipleStatements: multiple, charset: "utf8mb4",
      ssl: tls ? { ca: ca ?? authority, verifyIdentity: false } : undefined,
    });
    return new MySql2(raw);
  },

  describe: (error) => [error.code, error.errno, error.sqlState, error.sqlMessage ?? error.message],
};

class MySql2 {
  constructor(raw) {
    this.raw = raw;
  }

  /** The parts of a column's definition. */
  static column(field) {
    const { name, orgName, table, orgTable, schema, characterSet, columnLength, columnType, flags, decimals, encoding } = field;
    return { name, orgName, table, orgTable, schema, characterSet, columnLength, columnType, flags, decimals, encoding };
  }

  static answer([rows, fields]) {
    return fields ? { fields: fields.map((f) => MySql2.column(f)), rows } : { ...rows };
  }

  async query(text) {
    return MySql2.answer(await this.raw.query(text));
  }

  async execute(text, values) {
    return MySql2.answer(await this.raw.execute(text, values));
  }

  async multiple(text) {
    const [results, fields] = await this.raw.query(text);
    return { results, fields: fields.map((of) => of?.map?.((f) => MySql2.column(f)) ?? of) };
  }

  stream(text) {
    return this.raw.connection.query(text).stream();
  }

  async bulk(table, rows) {
    return MySql2.answer(await this.raw.query(`INSERT INTO ${table} VALUES ?`, [rows]));
  }

  async insertBinary(table, id, payload) {
    await this.raw.query(`INSERT INTO ${table} VALUES (?, ?)`, [id, payload]);
  }

  begin() {
    return this.raw.beginTransaction();
  }

  commit() {
    return this.raw.commit();
  }

  rollback() {
    return this.raw.rollback();
  }

  ping() {
    return this.raw.ping();
  }

  changeUser(options) {
    return this.raw.changeUser(options);
  }

  close() {
    return this.raw.end();
  }
}

const mariadb = {
  streams: true,
  loads: true,

  async connect(port, { user, password, database, ca, multiple, local } = {}) {
    const raw = await require("mariadb").createConnection({
      host, port, ...account, ...(user && { user }), ...(password !== undefined && { password }),
      database: (database === undefined ? schema : database) ?? undefined, timezone: "Z", rowsAsArray: true,
      multipleStatements: multiple, permitLocalInfile: local, charset: "utf8mb4", allowPublicKeyRetrieval: true,
      ssl: tls ? { ca: ca ?? authority, checkServerIdentity: () => undefined } : false, maxAllowedPacket: 64 << 20,
    });
    return new MariaDb(raw);
  },

  // The text in the message begins with the connection's number.
  describe: (error) => [error.code, error.errno, error.sqlState, error.sqlMessage ?? error.message],
};

class MariaDb {
  constructor(raw) {
    this.raw = raw;
  }

  static column(field) {
    return {
      name: field.name(), orgName: field.orgName(), table: field.table(), orgTable: field.orgTable(), schema: field.db(),
      collation: field.collation?.name, columnLength: field.columnLength, columnType: field.columnType,
      type: field.type, flags: field.flags, scale: field.scale,
    };
  }

  static answer(result) {
    if (!Array.isArray(result)) return result;
    return { fields: result.meta?.map((field) => MariaDb.column(field)), rows: [...result] };
  }

  async query(text) {
    return MariaDb.answer(await this.raw.query(text));
  }

  async execute(text, values) {
    return MariaDb.answer(await this.raw.execute(text, values));
  }

  async multiple(text) {
    const results = await this.raw.query(text);
    return results.map((result) => MariaDb.answer(result));
  }

  stream(text) {
    return this.raw.queryStream(text);
  }

  async bulk(table, rows) {
    return MariaDb.answer(await this.raw.batch(`INSERT INTO ${table} VALUES (?, ?, ?)`, rows));
  }

  async insertBinary(table, id, payload) {
    await this.raw.query(`INSERT INTO ${table} VALUES (?, ?)`, [id, payload]);
  }

  begin() {
    return this.raw.beginTransaction();
  }

  commit() {
    return this.raw.commit();
  }

  rollback() {
    return this.raw.rollback();
  }

  ping() {
    return this.raw.ping();
  }

  changeUser(options) {
    return this.raw.changeUser(options);
  }

  close() {
    return this.raw.end();
  }
}

export const drivers = { mysql2, "mariadb-node": mariadb };
