-- Stored procedures: several results, output parameters, cursors, handlers.
-- file hit: yes
CREATE TABLE t (id INT PRIMARY KEY, a INT);
INSERT INTO t VALUES (1, 10), (2, 20), (3, 30);
DELIMITER $$
CREATE PROCEDURE one() SELECT * FROM t $$ -- connection: maker
CREATE PROCEDURE two() BEGIN SELECT id FROM t; SELECT a FROM t WHERE id > 1; SELECT 'end'; END $$ -- connection: maker
CREATE PROCEDURE nothing() BEGIN END $$ -- connection: maker
CREATE PROCEDURE outs(IN x INT, OUT y INT, INOUT z INT) BEGIN SET y = x * 2; SET z = z + x; END $$ -- connection: maker
CREATE PROCEDURE outs_and_rows(OUT y INT, OUT s VARCHAR(10)) BEGIN SELECT id FROM t; SET y = 5, s = 'out'; END $$ -- connection: maker
CREATE PROCEDURE writes(v INT) BEGIN INSERT INTO t VALUES (v, v); SELECT ROW_COUNT(); UPDATE t SET a = a + 1; END $$ -- connection: maker
CREATE PROCEDURE fails() BEGIN SELECT 1; INSERT INTO t VALUES (1, 1); SELECT 2; END $$ -- connection: maker
CREATE PROCEDURE catches() BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN SELECT 'caught'; END; INSERT INTO t VALUES (1, 1); SELECT 'not reached'; END $$ -- connection: maker
CREATE PROCEDURE cursors() BEGIN DECLARE done INT DEFAULT 0; DECLARE n INT; DECLARE c CURSOR FOR SELECT a FROM t ORDER BY id; DECLARE CONTINUE HANDLER FOR NOT FOUND SET done = 1; OPEN c; REPEAT FETCH c INTO n; IF NOT done THEN SELECT n; END IF; UNTIL done END REPEAT; CLOSE c; END $$ -- connection: maker
CREATE PROCEDURE settings() BEGIN SET SESSION sql_select_limit = 1; END $$ -- connection: maker
CREATE PROCEDURE dynamic(q TEXT) BEGIN SET @q = q; PREPARE s FROM @q; EXECUTE s; DEALLOCATE PREPARE s; END $$ -- connection: maker
CREATE PROCEDURE recursion(n INT) BEGIN SELECT n; IF n > 0 THEN CALL recursion(n - 1); END IF; END $$ -- connection: maker
DELIMITER ;
SELECT * FROM t;
CALL one();
CALL one;
CALL two();
CALL nothing();
CALL outs(3, @y, @z);
SELECT @y, @z; -- hit: no
SET @z = 10;
CALL outs(3, @y, @z);
SELECT @y, @z; -- hit: no
-- values: 4
CALL outs(?, @y, @z);
CALL outs_and_rows(@y, @s);
SELECT @y, @s; -- hit: no
CALL writes(50);
SELECT * FROM t; -- hit: any
CALL writes(51);
SELECT * FROM t; -- hit: any
CALL fails(); -- error: 1062
SELECT * FROM t; -- hit: any
CALL catches();
CALL cursors();
CALL settings();
SELECT id FROM t; -- hit: any
SET sql_select_limit = DEFAULT;
SELECT id FROM t; -- hit: any
CALL dynamic('SELECT COUNT(*) FROM t');
CALL dynamic('DELETE FROM t WHERE id = 50');
SELECT * FROM t; -- hit: any
SET max_sp_recursion_depth = 5;
CALL recursion(3);
SET max_sp_recursion_depth = 0;
CALL recursion(3); -- error: 1456
SHOW CREATE PROCEDURE one;
SHOW PROCEDURE STATUS LIKE 'one'; -- mask: clock
DROP PROCEDURE one;
CALL one(); -- error: 1305
SELECT * FROM t; -- connection: other
