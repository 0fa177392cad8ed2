-- PREPARE and EXECUTE as text.
-- file prepared: no
CREATE TABLE t (id INT PRIMARY KEY, a INT, s VARCHAR(20));
INSERT INTO t VALUES (1, 1, 'x'), (2, 2, 'y');
SELECT * FROM t; -- hit: yes
PREPARE q FROM 'SELECT * FROM t WHERE id = ?';
SET @id = 1;
EXECUTE q USING @id;
SET @id = 2;
EXECUTE q USING @id;
EXECUTE q; -- error: 1210
PREPARE w FROM 'INSERT INTO t VALUES (?, ?, ?)';
SET @a = 3, @b = 3, @c = 'z';
EXECUTE w USING @a, @b, @c;
SELECT * FROM t; -- hit: any
EXECUTE w USING @a, @b, @c; -- error: 1062
PREPARE u FROM 'UPDATE t SET a = a + 1';
EXECUTE u;
SELECT * FROM t; -- hit: any
SET @text = 'DELETE FROM t WHERE id = 3';
PREPARE d FROM @text;
EXECUTE d;
SELECT * FROM t; -- hit: any
DEALLOCATE PREPARE d;
EXECUTE d; -- error: 1243
DROP PREPARE u;
PREPARE s FROM 'SET SESSION sql_select_limit = 1';
EXECUTE s;
SELECT id FROM t; -- hit: any
SET sql_select_limit = DEFAULT;
SELECT id FROM t; -- hit: any
PREPARE sh FROM 'SHOW TABLES';
EXECUTE sh;
PREPARE c FROM 'CREATE TABLE made (a INT)';
EXECUTE c;
SELECT * FROM made; -- hit: any
EXECUTE IMMEDIATE 'SELECT COUNT(*) FROM t'; -- servers: mariadb
EXECUTE IMMEDIATE 'INSERT INTO t VALUES (?, 9, ''im'')' USING 9; -- servers: mariadb
SELECT * FROM t; -- hit: any
SELECT * FROM t; -- connection: b; hit: yes
