-- SHOW, DESCRIBE, EXPLAIN, information_schema.
-- file hit: no
CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT NOT NULL DEFAULT 3, s VARCHAR(20) COMMENT 'text', KEY (a)) COMMENT = 'a table';
INSERT INTO t (a, s) VALUES (1, 'x'), (2, 'y'), (3, 'z');
ANALYZE TABLE t;
SHOW TABLES; -- mask: plan
SHOW FULL TABLES; -- mask: plan
SHOW TABLES LIKE 't%'; -- mask: plan
SHOW COLUMNS FROM t; -- mask: plan
SHOW FULL COLUMNS FROM t; -- mask: plan
DESCRIBE t; -- mask: plan
DESC t a; -- mask: plan
EXPLAIN t; -- mask: plan
SHOW INDEX FROM t; -- mask: plan
SHOW CREATE TABLE t;
SHOW CREATE DATABASE d_show_explain;
SHOW DATABASES LIKE 'd_show%'; -- mask: plan
SHOW CHARACTER SET LIKE 'utf8mb4'; -- mask: plan
SHOW COLLATION LIKE 'latin1%'; -- mask: plan
SHOW ENGINES;
SHOW VARIABLES LIKE 'sql_mode';
SHOW SESSION VARIABLES LIKE 'autocommit';
SHOW GLOBAL VARIABLES LIKE 'version%';
SHOW STATUS LIKE 'Threads_created'; -- mask: counters
SHOW TABLE STATUS LIKE 't'; -- mask: clock
SHOW OPEN TABLES FROM d_show_explain; -- mask: counters
SHOW PRIVILEGES;
SHOW GRANTS;
SHOW PLUGINS;
SHOW BINARY LOGS; -- mask: place
SHOW MASTER STATUS; -- mask: place
SHOW EVENTS; -- mask: plan
SHOW TRIGGERS; -- mask: plan
SHOW PROCEDURE STATUS LIKE 'absent%'; -- mask: plan
SHOW FUNCTION STATUS LIKE 'absent%'; -- mask: plan
SHOW WARNINGS;
SHOW ERRORS;
SHOW COUNT(*) ERRORS;
SHOW NONSENSE; -- error: 1064
SHOW CREATE TABLE absent; -- error: 1146
EXPLAIN SELECT * FROM t;
EXPLAIN SELECT * FROM t WHERE id = 1;
SHOW WARNINGS;
EXPLAIN SELECT * FROM t WHERE a = 2;
EXPLAIN EXTENDED SELECT s FROM t WHERE a > 1; -- servers: mysql-5.6, mysql-5.7, mariadb
SHOW WARNINGS;
EXPLAIN FORMAT=JSON SELECT * FROM t; -- mask: counters
EXPLAIN UPDATE t SET a = 1 WHERE id = 1;
EXPLAIN DELETE FROM t WHERE id = 1;
ANALYZE SELECT * FROM t; -- servers: mariadb
EXPLAIN ANALYZE SELECT * FROM t; -- servers: mysql-8.0; mask: duration
SELECT TABLE_NAME, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'd_show_explain'; -- mask: plan
SELECT COLUMN_NAME, DATA_TYPE, COLUMN_KEY FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'd_show_explain' ORDER BY ORDINAL_POSITION; -- mask: plan
SELECT INDEX_NAME, COLUMN_NAME FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = 'd_show_explain' ORDER BY INDEX_NAME, SEQ_IN_INDEX; -- mask: plan
SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'd_show_explain'; -- mask: plan
SELECT ID = CONNECTION_ID() FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID(); -- prepared: no; mask: plan
SELECT User FROM mysql.user WHERE User = 'nobody at all'; -- mask: plan
HELP 'SELECT'; -- mask: counters
SELECT * FROM t; -- hit: yes
ALTER TABLE t COMMENT = 'another';
SHOW CREATE TABLE t;
SHOW FULL PROCESSLIST; -- mask: sessions; servers: mysql-5.6; error: none
SET sql_quote_show_create = 0;
SHOW CREATE TABLE t;
SET sql_quote_show_create = 1;
