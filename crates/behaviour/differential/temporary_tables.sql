-- Temporary tables hide others of their name, in their session only.
CREATE TABLE t (id INT PRIMARY KEY, a INT);
INSERT INTO t VALUES (1, 1);
SELECT * FROM t; -- hit: yes
SELECT * FROM t; -- hit: yes; connection: b
CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, other VARCHAR(5));
INSERT INTO t VALUES (7, 'temp');
SELECT * FROM t; -- hit: no
SELECT * FROM t; -- hit: yes; connection: b
UPDATE t SET other = 'upd';
SELECT * FROM t; -- hit: no
INSERT INTO t VALUES (2, 2); -- connection: b
SELECT * FROM t; -- hit: yes; connection: b
SELECT * FROM t; -- hit: no
DROP TEMPORARY TABLE t;
SELECT * FROM t; -- hit: any
CREATE TEMPORARY TABLE tmp AS SELECT * FROM t; -- error: none, 1787
CREATE TEMPORARY TABLE IF NOT EXISTS tmp (id INT, a INT);
SELECT COUNT(*) >= 0 FROM tmp; -- hit: no
SELECT * FROM tmp; -- connection: b; error: 1146
TRUNCATE tmp;
SELECT * FROM tmp; -- hit: no
ALTER TABLE tmp ADD COLUMN b INT;
SELECT * FROM tmp; -- hit: no
SHOW CREATE TABLE tmp;
DROP TABLE tmp;
SELECT * FROM tmp; -- error: 1146
CREATE TEMPORARY TABLE tmp (a INT); -- connection: c
\reset; -- connection: c; servers: mysql-5.7+, mariadb
SELECT * FROM tmp; -- connection: c; error: 1146; servers: mysql-5.7+, mariadb
SELECT * FROM t; -- connection: c; hit: yes; servers: mysql-5.7+, mariadb
