-- Errors: the server's own number, state and words, and a session that goes on after them.
-- file hit: yes
CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(5) NOT NULL, u INT UNSIGNED, UNIQUE KEY (u));
INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2);
SELEC 1; -- error: 1064; connection: other
SELECT FROM t; -- error: 1064
SELECT * FROM t WHERE; -- error: 1064
SELECT 'unfinished FROM t; -- error: 1064; connection: other
SELECT * FROM absent; -- error: 1146
SELECT absent FROM t; -- error: 1054
SELECT t.id FROM t AS x; -- error: 1054
SELECT * FROM no_such_schema.t; -- error: 1049, 1146
SELECT id, id FROM t a, t b; -- error: 1052
SELECT no_such_function(1) FROM t; -- error: 1305; hit: no; connection: other
SELECT MAX(1, 2) FROM t; -- error: 1064
SELECT ABS() FROM t; -- error: 1582
SELECT (SELECT id FROM t) FROM t; -- error: 1242
SELECT (SELECT id, u FROM t) FROM t; -- error: 1241
SELECT id FROM t UNION SELECT id, u FROM t; -- error: 1222
SELECT * FROM t GROUP BY absent; -- error: 1054
SELECT * FROM t ORDER BY 99; -- error: 1054
SELECT id FROM t HAVING absent > 1; -- error: 1054
SELECT SUM(MAX(id)) FROM t; -- error: 1111
SELECT id FROM t WHERE MAX(id) > 1; -- error: 1111
SELECT * FROM t LIMIT -1; -- error: 1064
INSERT INTO t VALUES (1, 'dup', 3); -- error: 1062
INSERT INTO t VALUES (3, 'dup', 2); -- error: 1062
INSERT INTO t VALUES (3, 'c'); -- error: 1136
INSERT INTO t (id, nothing) VALUES (3, 'c'); -- error: 1054
INSERT INTO t (id, id) VALUES (3, 3); -- error: 1110
INSERT INTO absent VALUES (1); -- error: 1146
SET sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ZERO_DATE,NO_ZERO_IN_DATE';
INSERT INTO t VALUES (4, 'too long', 4); -- error: 1406
INSERT INTO t VALUES (4, 'd', -1); -- error: 1264
INSERT INTO t VALUES (4, NULL, 4); -- error: 1048
INSERT INTO t (id) VALUES (4); -- error: 1364
INSERT INTO t VALUES ('x', 'd', 4); -- error: 1366
INSERT INTO t VALUES (1 / 0, 'd', 4); -- error: 1365
UPDATE t SET s = 'too long' WHERE id = 1; -- error: 1406
UPDATE t SET u = u - 10; -- error: 1690
SELECT 1 / 0, id FROM t; -- hit: any
SHOW WARNINGS;
SELECT CAST('x' AS SIGNED), id FROM t; -- hit: any
SHOW WARNINGS;
CREATE TABLE d (a DATE);
INSERT INTO d VALUES ('2024-02-30'); -- error: 1292
INSERT INTO d VALUES ('0000-00-00'); -- error: 1292
SET sql_mode = '';
INSERT INTO t VALUES (4, 'too long', -4);
SHOW WARNINGS;
INSERT INTO t VALUES (5, NULL, 5); -- error: 1048
INSERT INTO t (id) VALUES (5);
SHOW WARNINGS;
INSERT INTO t VALUES ('6x', 1, '66x');
SHOW WARNINGS;
INSERT INTO d VALUES ('2024-02-30'), ('nothing');
SHOW WARNINGS;
SELECT * FROM d;
SELECT * FROM t;
SELECT 1 / 0, id FROM t;
INSERT IGNORE INTO t VALUES (1, 'x', 9), (7, 'seven', 7);
SHOW WARNINGS;
SELECT COUNT(*) FROM t;
CREATE TABLE t (a INT); -- error: 1050
CREATE TABLE IF NOT EXISTS t (a INT);
SHOW WARNINGS;
DROP TABLE absent; -- error: 1051; connection: other
DROP TABLE IF EXISTS absent; -- connection: other
SHOW WARNINGS;
ALTER TABLE t ADD COLUMN id INT; -- error: 1060
ALTER TABLE t DROP COLUMN absent; -- error: 1091
ALTER TABLE t ADD PRIMARY KEY (u); -- error: 1068
CREATE INDEX u ON t (u); -- error: 1061
CREATE TABLE bad (a VARCHAR(1000000)); -- error: none, 1074
CREATE TABLE bad2 (a INT, PRIMARY KEY (b)); -- error: 1072
CREATE TABLE bad3 (a NOTATYPE); -- error: 1064, 4161
CREATE DATABASE d_errors; -- error: 1007
DROP DATABASE no_such_schema; -- error: 1008; connection: other
USE no_such_schema; -- error: 1049
CREATE TABLE parent (id INT PRIMARY KEY) ENGINE=InnoDB;
CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id)) ENGINE=InnoDB;
INSERT INTO child VALUES (1, 1); -- error: 1452
INSERT INTO parent VALUES (1);
INSERT INTO child VALUES (1, 1);
DELETE FROM parent; -- error: 1451
DROP TABLE parent; -- error: 1217, 1451, 3730; connection: other
CREATE TABLE bad4 (a INT, FOREIGN KEY (a) REFERENCES absent (b)) ENGINE=InnoDB; -- error: 1005, 1215, 1824
SET no_such_variable = 1; -- error: 1193; connection: other
SET sql_mode = 'NO_SUCH_MODE'; -- error: 1231; connection: other
SET GLOBAL autocommit_ = 1; -- error: 1193; connection: other
SET @@session.version = 'x'; -- error: 1238; connection: other
SET time_zone = 'Nowhere/At_all'; -- error: 1298; connection: other
CALL absent(); -- error: 1305; connection: other
DROP PROCEDURE absent; -- error: 1305; connection: other
SELECT * FROM t;
SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'my own words', MYSQL_ERRNO = 5000; -- error: 5000; connection: other
SIGNAL SQLSTATE '01000' SET MESSAGE_TEXT = 'a warning'; -- connection: other
SHOW WARNINGS;
KILL 4294967295; -- error: 1094
LOCK TABLES absent READ; -- error: 1146; connection: other
PREPARE s FROM 'SELECT FROM'; -- error: 1064; connection: other
EXECUTE absent; -- error: 1243; connection: other
DEALLOCATE PREPARE absent; -- error: 1243; connection: other
SELECT * FROM t WHERE id = 1;
SHOW ERRORS;
SHOW COUNT(*) WARNINGS;
SELECT @@warning_count, @@error_count; -- hit: no
