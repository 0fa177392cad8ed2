-- Views, triggers, stored functions: reads and writes that name other tables than they touch.
CREATE TABLE t (id INT PRIMARY KEY, a INT);
CREATE TABLE log (n INT AUTO_INCREMENT PRIMARY KEY, what VARCHAR(20), id INT);
INSERT INTO t VALUES (1, 10), (2, 20), (3, 30);
CREATE VIEW v AS SELECT id, a FROM t WHERE a > 10;
CREATE VIEW vv AS SELECT v.id, v.a * 2 AS doubled FROM v;
CREATE VIEW agg AS SELECT COUNT(*) AS c, SUM(a) AS s FROM t;
CREATE ALGORITHM = TEMPTABLE VIEW tt AS SELECT DISTINCT a FROM t;
SELECT * FROM v; -- hit: any
SELECT * FROM vv; -- hit: any
SELECT * FROM agg; -- hit: any
SELECT * FROM tt ORDER BY a; -- hit: any
UPDATE t SET a = 21 WHERE id = 2;
SELECT * FROM v; -- hit: any
SELECT * FROM vv; -- hit: any
SELECT * FROM agg; -- hit: any
UPDATE v SET a = 33 WHERE id = 3;
SELECT * FROM t; -- hit: yes
INSERT INTO v VALUES (4, 40);
SELECT * FROM t; -- hit: yes
DELETE FROM v WHERE id = 4;
SELECT * FROM t; -- hit: yes
INSERT INTO agg VALUES (1, 1); -- error: 1471
ALTER VIEW v AS SELECT id, a, 'extra' AS e FROM t;
SELECT * FROM v; -- hit: any
CREATE OR REPLACE VIEW v AS SELECT id FROM t;
SELECT * FROM v; -- hit: any
SHOW CREATE VIEW v;
DROP VIEW v; -- connection: maker
SELECT * FROM v; -- error: 1146
SELECT * FROM vv; -- error: 1356
DELIMITER $$
CREATE TRIGGER ti AFTER INSERT ON t FOR EACH ROW INSERT INTO log (what, id) VALUES ('insert', NEW.id) $$ -- connection: maker
CREATE TRIGGER tu BEFORE UPDATE ON t FOR EACH ROW BEGIN SET NEW.a = NEW.a + 1; INSERT INTO log (what, id) VALUES ('update', OLD.id); END $$ -- connection: maker
CREATE TRIGGER td AFTER DELETE ON t FOR EACH ROW INSERT INTO log (what, id) VALUES ('delete', OLD.id) $$ -- connection: maker
CREATE FUNCTION f(x INT) RETURNS INT DETERMINISTIC RETURN x * 2 $$ -- connection: maker
CREATE FUNCTION reads_t() RETURNS INT READS SQL DATA RETURN (SELECT SUM(a) FROM t) $$ -- connection: maker
CREATE FUNCTION writes_log(x INT) RETURNS INT MODIFIES SQL DATA BEGIN INSERT INTO log (what, id) VALUES ('function', x); RETURN x; END $$ -- connection: maker
DELIMITER ;
SELECT * FROM log; -- hit: yes
INSERT INTO t VALUES (5, 50);
SELECT * FROM log; -- hit: yes
SELECT * FROM t; -- hit: yes
UPDATE t SET a = 0 WHERE id = 5;
SELECT * FROM log; -- hit: yes
SELECT * FROM t; -- hit: yes
REPLACE INTO t VALUES (5, 55);
SELECT * FROM log; -- hit: yes
DELETE FROM t WHERE id = 5;
SELECT * FROM log; -- hit: yes
DROP TRIGGER ti; -- connection: maker
INSERT INTO t VALUES (6, 60);
SELECT * FROM log; -- hit: yes
SHOW TRIGGERS LIKE 't'; -- mask: clock; servers: mysql-5.6, mysql-5.7, mariadb
SELECT f(id) FROM t; -- hit: no; connection: functions
SELECT reads_t(); -- hit: no; connection: functions
SELECT writes_log(1); -- hit: no; connection: functions
SELECT COUNT(*) FROM log; -- hit: yes
SELECT id FROM t WHERE writes_log(id) > 2; -- hit: no; connection: functions
SELECT COUNT(*) FROM log; -- hit: yes
SELECT f('x') FROM t; -- hit: no; connection: functions; error: none, 1366
SELECT f(); -- error: 1318; connection: functions
SHOW CREATE FUNCTION f;
DROP FUNCTION f; -- connection: maker
SELECT f(1); -- error: 1305; connection: functions
SELECT * FROM t; -- hit: yes
