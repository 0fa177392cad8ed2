-- Definitions, and reads before and after each of them.
-- file hit: yes
CREATE TABLE t (id INT PRIMARY KEY, a INT);
INSERT INTO t VALUES (1, 10), (2, 20);
SELECT * FROM t;
ALTER TABLE t ADD COLUMN b VARCHAR(10) DEFAULT 'new';
SELECT * FROM t;
ALTER TABLE t ADD COLUMN first_one INT DEFAULT 7 FIRST;
SELECT * FROM t;
ALTER TABLE t MODIFY a BIGINT UNSIGNED;
SELECT * FROM t;
ALTER TABLE t CHANGE b renamed VARCHAR(20);
SELECT * FROM t;
ALTER TABLE t ALTER COLUMN a SET DEFAULT 5;
ALTER TABLE t DROP COLUMN first_one;
SELECT * FROM t;
CREATE INDEX i ON t (a);
SELECT id FROM t WHERE a = 10;
DROP INDEX i ON t;
SELECT id FROM t WHERE a = 10;
ALTER TABLE t ADD UNIQUE KEY (a), COMMENT = 'commented';
SELECT id, a FROM t ORDER BY a;
ALTER TABLE t RENAME TO u;
SELECT * FROM t; -- error: 1146
SELECT * FROM u;
RENAME TABLE u TO t;
SELECT * FROM t;
CREATE TABLE other LIKE t;
SELECT * FROM other;
INSERT INTO other SELECT id + 10, a, renamed FROM t;
SELECT * FROM other;
RENAME TABLE t TO x, other TO t, x TO other;
SELECT * FROM t;
SELECT * FROM other;
TRUNCATE TABLE t;
SELECT * FROM t;
TRUNCATE other;
SELECT COUNT(*) FROM other;
DROP TABLE t, other; -- connection: other
SELECT * FROM t; -- error: 1146
CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(5));
SELECT * FROM t;
CREATE TABLE p (id INT, y INT) PARTITION BY RANGE (y) (PARTITION p0 VALUES LESS THAN (2000), PARTITION p1 VALUES LESS THAN MAXVALUE);
INSERT INTO p VALUES (1, 1999), (2, 2001);
-- MySQL 5.6 lets triggers that aren't known yet set the next transaction, and a read of partitions may use none.
COMMIT;
SELECT * FROM p ORDER BY id;
SELECT * FROM p PARTITION (p1); -- hit: any
ALTER TABLE p TRUNCATE PARTITION p0;
COMMIT;
SELECT * FROM p ORDER BY id;
ALTER TABLE p DROP PARTITION p1;
COMMIT;
SELECT * FROM p ORDER BY id;
CREATE TABLE g (a INT, b INT AS (a * 2) VIRTUAL, c INT AS (a + 1) PERSISTENT); -- servers: mariadb
CREATE TABLE g (a INT, b INT AS (a * 2) VIRTUAL, c INT AS (a + 1) STORED); -- servers: mysql-5.7+
INSERT INTO g (a) VALUES (1), (2); -- servers: mysql-5.7+, mariadb
SELECT * FROM g ORDER BY a; -- servers: mysql-5.7+, mariadb; hit: any
CREATE TABLE c (a INT CHECK (a > 0), b INT DEFAULT 3);
INSERT INTO c (a) VALUES (1);
SELECT * FROM c;
CREATE TABLE m (id INT PRIMARY KEY, v INT) ENGINE=MyISAM;
INSERT INTO m VALUES (1, 1);
SELECT * FROM m; -- hit: no
CREATE TABLE mem (id INT PRIMARY KEY, v INT) ENGINE=MEMORY;
INSERT INTO mem VALUES (1, 1);
SELECT * FROM mem; -- hit: any
ALTER TABLE m ENGINE=InnoDB;
SELECT * FROM m;
CREATE TABLE `odd name``s` (`select` INT PRIMARY KEY, `a b` INT, `ü` INT);
INSERT INTO `odd name``s` VALUES (1, 2, 3);
SELECT * FROM `odd name``s`; -- hit: any
SELECT `select`, `a b`, `ü` FROM `odd name``s` AS `x y`; -- hit: any
CREATE DATABASE d_ddl_two;
CREATE TABLE d_ddl_two.t (a INT PRIMARY KEY);
INSERT INTO d_ddl_two.t VALUES (42);
SELECT * FROM d_ddl_two.t;
SELECT t.id, two.a FROM t RIGHT JOIN d_ddl_two.t AS two ON t.id = two.a;
USE d_ddl_two;
SELECT * FROM t;
SELECT DATABASE(), a FROM t; -- hit: no
USE d_ddl;
SELECT * FROM t;
DROP DATABASE d_ddl_two; -- connection: other
SELECT * FROM d_ddl_two.t; -- error: 1049, 1146
ANALYZE TABLE t;
CHECK TABLE t;
OPTIMIZE TABLE t;
REPAIR TABLE t;
CHECKSUM TABLE t;
ALTER TABLE t ORDER BY s; -- error: none, 1105
FLUSH TABLES t;
SELECT * FROM t;
CREATE SEQUENCE sq START WITH 5; -- servers: mariadb
SELECT NEXT VALUE FOR sq; -- servers: mariadb; hit: no
SELECT NEXTVAL(sq), LASTVAL(sq); -- servers: mariadb; hit: no
CREATE TABLE v (a INT) WITH SYSTEM VERSIONING; -- servers: mariadb
INSERT INTO v VALUES (1); -- servers: mariadb
SELECT a FROM v; -- servers: mariadb; hit: any
SELECT COUNT(*) FROM v FOR SYSTEM_TIME ALL; -- servers: mariadb; hit: no
