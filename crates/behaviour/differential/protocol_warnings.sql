-- Commands whose answers carry a count of warnings, after a hit and after a statement that left some.
CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(10));
INSERT INTO t VALUES (1, 'a'), (2, 'b');
INSERT IGNORE INTO t VALUES (1, 'x'), (2, 'y');
\ping;
\use d_protocol_warnings;
INSERT IGNORE INTO t VALUES (1, 'x'), (2, 'y');
SELECT * FROM t; -- hit: yes
\ping;
INSERT IGNORE INTO t VALUES (1, 'x'), (2, 'y');
SELECT * FROM t; -- hit: yes
\use d_protocol_warnings;
INSERT IGNORE INTO t VALUES (1, 'x'), (2, 'y');
SELECT * FROM t; -- hit: yes
SELECT * FROM t; -- hit: yes; connection: multi
INSERT IGNORE INTO t VALUES (1, 'x'), (2, 'y'); -- connection: multi
SELECT * FROM t; -- hit: yes; connection: multi
\multi on; -- connection: multi
INSERT IGNORE INTO t VALUES (1, 'x'), (2, 'y');
SELECT * FROM t; -- hit: yes
\fields t;
INSERT IGNORE INTO t VALUES (1, 'x'), (2, 'y');
SELECT * FROM t; -- hit: yes
USE d_protocol_warnings;
INSERT IGNORE INTO t VALUES (1, 'x'), (2, 'y');
SELECT * FROM t; -- hit: yes
SET @x = 1;
INSERT IGNORE INTO t VALUES (1, 'x'), (2, 'y');
SELECT * FROM t; -- hit: yes
\use no_such_schema; -- error: 1049
SHOW WARNINGS;
SELECT * FROM t LIMIT 1; -- hit: yes
\use d_protocol_warnings;
SELECT FOUND_ROWS(); -- hit: no; repeat: no
INSERT IGNORE INTO t VALUES (1, 'x'), (2, 'y');
SELECT * FROM t; -- hit: yes
COMMIT;
INSERT IGNORE INTO t VALUES (1, 'x'), (2, 'y');
SELECT * FROM t; -- hit: yes
\reset; -- servers: mysql-5.7+, mariadb
