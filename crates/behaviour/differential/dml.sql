-- Writes of every form, each followed by a read that must show it.
-- file hit: yes
CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT, s VARCHAR(20));
SELECT * FROM t;
INSERT INTO t VALUES (1, 10, 'one');
SELECT * FROM t;
INSERT INTO t (a, s) VALUES (20, 'two'), (30, 'three');
SELECT LAST_INSERT_ID(); -- hit: no
SELECT * FROM t;
INSERT t SET a = 40, s = 'four';
SELECT * FROM t;
INSERT INTO t (a, s) SELECT a + 100, s FROM t WHERE id < 3;
SELECT * FROM t;
INSERT INTO t VALUES (1, 11, 'dup') ON DUPLICATE KEY UPDATE a = a + 1, s = VALUES(s);
SELECT * FROM t;
REPLACE INTO t VALUES (2, 22, 'replaced'), (50, 50, 'fifty');
SELECT * FROM t;
UPDATE t SET a = a + 1;
SELECT * FROM t;
UPDATE t SET a = a;
SELECT * FROM t;
UPDATE t SET s = 'limited' ORDER BY id DESC LIMIT 2;
SELECT * FROM t;
UPDATE t SET s = 'none' WHERE id = 9999;
SELECT * FROM t;
CREATE TABLE u (id INT PRIMARY KEY, v INT);
INSERT INTO u VALUES (1, 1), (2, 2), (3, 3);
UPDATE t, u SET t.a = u.v, u.v = u.v * 10 WHERE t.id = u.id;
SELECT * FROM t;
SELECT * FROM u;
UPDATE t JOIN u ON t.id = u.id SET t.s = 'joined';
SELECT t.s, u.v FROM t JOIN u ON t.id = u.id ORDER BY t.id;
DELETE FROM t WHERE id = 3;
SELECT * FROM t;
DELETE FROM t ORDER BY id DESC LIMIT 1;
SELECT * FROM t;
DELETE t, u FROM t JOIN u ON t.id = u.id WHERE u.v > 10;
SELECT * FROM t;
SELECT * FROM u;
DELETE FROM u USING u JOIN t ON u.id = t.id;
SELECT * FROM u;
DELETE FROM t;
SELECT * FROM t;
INSERT INTO t (a) VALUES (1);
SELECT * FROM t;
INSERT IGNORE INTO t VALUES (1, 1, 'x'), (1, 2, 'y');
SHOW WARNINGS;
SELECT COUNT(*) FROM t;
INSERT LOW_PRIORITY INTO t (a) VALUES (2);
INSERT HIGH_PRIORITY INTO t (a) VALUES (3);
UPDATE LOW_PRIORITY t SET a = 0 WHERE a = 3;
DELETE QUICK FROM t WHERE a = 0;
SELECT a FROM t ORDER BY id;
INSERT INTO t () VALUES ();
SELECT COUNT(*), COUNT(a) FROM t;
INSERT INTO t (a, s) VALUES (DEFAULT, DEFAULT(s));
SELECT COUNT(*) FROM t WHERE a IS NULL;
INSERT INTO t (a) VALUES (7) RETURNING id, a; -- servers: mariadb
DELETE FROM t WHERE a = 7 RETURNING a; -- servers: mariadb
REPLACE INTO t VALUES (77, 7, 'r') RETURNING *; -- servers: mariadb
SELECT * FROM t ORDER BY id;
-- values: 500, 'with values'
INSERT INTO t (a, s) VALUES (?, ?);
-- values: 500
SELECT a, s FROM t WHERE a = ?;
-- values: 'changed', 500
UPDATE t SET s = ? WHERE a = ?;
-- values: 500
SELECT a, s FROM t WHERE a = ?;
-- values: 500
DELETE FROM t WHERE a = ?;
-- values: 500
SELECT a, s FROM t WHERE a = ?;
DO SLEEP(0);
INSERT INTO u VALUES (9, 9) AS n ON DUPLICATE KEY UPDATE v = n.v; -- servers: mysql-8.0
SELECT * FROM u;
LOAD DATA INFILE '/no/such/file' INTO TABLE t; -- error: 13, 29, 1290
INSERT INTO t (a) VALUES (1) ; -- hit: any
SELECT COUNT(*) FROM t;
