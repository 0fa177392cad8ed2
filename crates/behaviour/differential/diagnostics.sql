-- What a statement asks about the one before it, hit or not.
-- file hit: yes
-- file repeat: no
CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT);
INSERT INTO t (a) VALUES (1), (2), (3), (4), (5);
SELECT ROW_COUNT(); -- hit: no
SELECT ROW_COUNT(); -- hit: no
SELECT LAST_INSERT_ID(); -- hit: no
SELECT * FROM t; -- repeat: yes
SELECT FOUND_ROWS(); -- hit: no
SELECT * FROM t LIMIT 2; -- repeat: yes
SELECT FOUND_ROWS(); -- hit: no
SELECT FOUND_ROWS(); -- hit: no
SELECT SQL_CALC_FOUND_ROWS * FROM t LIMIT 2; -- hit: no
SELECT FOUND_ROWS(); -- hit: no
SELECT * FROM t WHERE id > 3; -- repeat: yes
SELECT ROW_COUNT(); -- hit: no
SELECT * FROM t WHERE id > 3; -- repeat: yes
SHOW WARNINGS;
SELECT * FROM t WHERE id > 3; -- repeat: yes
SHOW COUNT(*) WARNINGS;
SELECT 1 / 0; -- hit: no
SHOW WARNINGS;
SELECT a FROM t; -- repeat: yes
SHOW WARNINGS;
SELECT @@warning_count; -- hit: no
SELECT CAST('1x' AS SIGNED), a FROM t; -- hit: any
SELECT a FROM t; -- repeat: yes
SHOW WARNINGS;
INSERT IGNORE INTO t VALUES (1, 1);
SHOW WARNINGS;
SELECT a FROM t; -- repeat: yes
GET DIAGNOSTICS @n = NUMBER, @r = ROW_COUNT; -- servers: mysql-5.6+, mariadb
SELECT @n, @r; -- hit: no
SELECT * FROM absent; -- error: 1146
GET DIAGNOSTICS CONDITION 1 @s = RETURNED_SQLSTATE, @m = MESSAGE_TEXT, @e = MYSQL_ERRNO;
SELECT @s, @m, @e; -- hit: no
SELECT a FROM t; -- repeat: yes
SHOW ERRORS;
INSERT INTO t (a) VALUES (6), (7);
SELECT a FROM t; -- repeat: yes
SELECT LAST_INSERT_ID(), ROW_COUNT(); -- hit: no
INSERT INTO t VALUES (100, 100);
SELECT LAST_INSERT_ID(); -- hit: no
UPDATE t SET a = LAST_INSERT_ID(77) WHERE id = 1;
SELECT LAST_INSERT_ID(); -- hit: no
SELECT a FROM t; -- repeat: yes
SELECT LAST_INSERT_ID(); -- hit: no
UPDATE t SET a = a + 1;
SELECT ROW_COUNT(); -- hit: no
UPDATE t SET a = a;
SELECT ROW_COUNT(); -- hit: no
DELETE FROM t WHERE id > 6;
SELECT ROW_COUNT(); -- hit: no
SELECT a FROM t; -- repeat: yes
\ping;
SELECT FOUND_ROWS(); -- hit: no
SELECT a FROM t; -- repeat: yes
SET @x = FOUND_ROWS();
SELECT @x; -- hit: no
SELECT a FROM t; -- repeat: yes
DO FOUND_ROWS();
SELECT a FROM t; -- repeat: yes
INSERT INTO t (a) SELECT FOUND_ROWS();
SELECT a FROM t; -- repeat: yes
SHOW SESSION STATUS LIKE 'Last_query_cost'; -- mask: counters
SELECT a FROM t WHERE id = 9999; -- repeat: yes
SELECT FOUND_ROWS(), ROW_COUNT(); -- hit: no
SELECT a FROM t; -- connection: b; repeat: yes
SELECT FOUND_ROWS(); -- connection: b; hit: no
SELECT SQL_CALC_FOUND_ROWS a FROM t LIMIT 1 UNION SELECT 5; -- hit: no; error: none, 1221, 1064
SELECT FOUND_ROWS(); -- hit: no
