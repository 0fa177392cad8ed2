-- Commands that are no queries, and what they leave behind.
CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(10));
INSERT INTO t VALUES (1, 'a'), (2, 'b');
\ping;
SELECT * FROM t; -- hit: yes
\fields t;
\use d_protocol;
SELECT * FROM t; -- hit: yes
\use information_schema;
SELECT SCHEMA(); -- hit: no
SELECT * FROM d_protocol.t; -- hit: yes
\use d_protocol;
\use no_such_schema; -- error: 1049
SELECT * FROM t; -- hit: yes
BEGIN;
\ping;
\reset; -- servers: mysql-5.7+, mariadb
SELECT * FROM t; -- hit: any
ROLLBACK;
SELECT * FROM t; -- hit: yes
SET @x = 1;
\reset; -- servers: mysql-5.7+, mariadb
SELECT @x; -- hit: no
SELECT * FROM t; -- hit: yes
SELECT * FROM t WHERE id = 1; -- hit: yes
-- values: 1
SELECT * FROM t WHERE id = ?; -- hit: yes
-- values: '1'
SELECT * FROM t WHERE id = ?; -- hit: yes
-- values: 1.0
SELECT * FROM t WHERE id = ?; -- hit: yes
-- values: 1u
SELECT * FROM t WHERE id = ?; -- hit: yes
-- values: NULL
SELECT * FROM t WHERE id = ?; -- hit: yes
-- values: 'a', 1
SELECT *, ? FROM t WHERE id = ?; -- hit: yes
-- values: 1
SELECT ?, id FROM t; -- hit: yes
-- values: NULL
SELECT ?, id FROM t; -- hit: yes
-- values: X'ff00'
SELECT HEX(?), id FROM t; -- hit: any; prepared: yes
UPDATE t SET s = 'c' WHERE id = 1;
-- values: 1
SELECT * FROM t WHERE id = ?; -- hit: yes
