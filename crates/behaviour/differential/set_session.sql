-- Session settings that change answers from one statement to the next.
-- file hit: yes
CREATE TABLE t (id INT PRIMARY KEY, a INT, c CHAR(5), s VARCHAR(200));
INSERT INTO t VALUES (1, 7, 'x', 'aaa'), (2, -1, '', 'b'), (3, NULL, NULL, NULL);
SELECT a / 3, AVG(a) FROM t GROUP BY a ORDER BY a;
SET div_precision_increment = 10;
SELECT a / 3, AVG(a) FROM t GROUP BY a ORDER BY a;
SET div_precision_increment = DEFAULT;
SELECT a / 3, AVG(a) FROM t GROUP BY a ORDER BY a;
-- Remora may ask for the session's counters here, 11 rows at most: it does when definitions aren't
-- known for a moment, as when the log comes late. A smaller limit cuts that answer, and then nothing
-- is looked up. So hits are expected only above it.
CREATE TABLE many (id INT PRIMARY KEY);
INSERT INTO many VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), (15), (16);
SET sql_select_limit = 12;
SELECT id FROM many ORDER BY id;
SELECT id FROM many ORDER BY id LIMIT 14;
SET sql_select_limit = 1;
SELECT id FROM t ORDER BY id; -- hit: any
SELECT id FROM t ORDER BY id LIMIT 2; -- hit: any
SET sql_select_limit = DEFAULT;
SELECT id FROM many ORDER BY id;
SELECT id FROM t ORDER BY id;
SET group_concat_max_len = 6;
SELECT GROUP_CONCAT(s ORDER BY id) FROM t; -- hit: any
SET SESSION group_concat_max_len = DEFAULT;
SELECT GROUP_CONCAT(s ORDER BY id) FROM t;
SET sql_mode = 'PAD_CHAR_TO_FULL_LENGTH';
SELECT c, LENGTH(c) FROM t;
SET sql_mode = 'ANSI_QUOTES';
SELECT "id", 'id' FROM t;
SELECT "id" FROM t WHERE "c" = 'x';
SET sql_mode = 'PIPES_AS_CONCAT';
SELECT id || '-' || s FROM t;
SET sql_mode = 'NO_BACKSLASH_ESCAPES';
SELECT 'a\n', id FROM t;
SELECT 'a\', id FROM t;
SET sql_mode = 'IGNORE_SPACE'; -- connection: space
SELECT COUNT (*) FROM t; -- connection: space; hit: any
SET sql_mode = 'HIGH_NOT_PRECEDENCE';
SELECT NOT a BETWEEN -5 AND 5 FROM t;
SET sql_mode = 'NO_UNSIGNED_SUBTRACTION';
SELECT CAST(0 AS UNSIGNED) - id FROM t;
SET sql_mode = 'ANSI';
SELECT "id" || 'x' FROM t;
SET sql_mode = 'TRADITIONAL';
SELECT id, a FROM t;
SET sql_mode = 'ORACLE'; -- servers: mariadb; connection: oracle
SELECT id FROM t; -- servers: mariadb; hit: any; connection: oracle
SET sql_mode = DEFAULT;
SELECT id || s FROM t; -- hit: any
SET SESSION sql_mode = CONCAT(@@sql_mode, ',ONLY_FULL_GROUP_BY');
SELECT s, COUNT(*) FROM t GROUP BY id; -- error: none, 1055
SELECT s, a FROM t GROUP BY c; -- error: none, 1055
SET sql_mode = '';
SELECT a FROM t GROUP BY c ORDER BY c;
SET autocommit = 0;
SELECT id FROM t; -- hit: any
SET autocommit = 1;
SELECT id FROM t;
SET @v = 3;
SELECT @v, id FROM t; -- hit: no
SELECT @w := id FROM t ORDER BY id; -- hit: no
SELECT @w, @unset; -- hit: no
SELECT @@sql_mode, @@session.autocommit, @@global.max_connections; -- hit: no
SET @a = 1, @b = (SELECT MAX(id) FROM t), @c = 'text';
SELECT @a, @b, @c; -- hit: no
SET max_sort_length = 64;
SELECT s FROM t ORDER BY s;
SET max_sort_length = DEFAULT;
SET default_week_format = 3;
SELECT WEEK('2024-12-30'), id FROM t;
SET default_week_format = DEFAULT;
SET sql_big_selects = 0, max_join_size = 2;
SELECT COUNT(*) FROM t a, t b, t c; -- error: 1104
SET sql_big_selects = 1, max_join_size = DEFAULT;
SELECT COUNT(*) FROM t a, t b, t c;
SET sql_safe_updates = 1;
UPDATE t SET a = 1; -- error: 1175
SELECT id FROM t;
SET sql_safe_updates = 0;
SET sql_auto_is_null = 1;
SELECT id FROM t WHERE id IS NULL; -- hit: no
SET sql_auto_is_null = 0;
SELECT id FROM t WHERE id IS NULL;
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
SELECT id FROM t;
SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE;
SELECT id FROM t; -- hit: no
SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ;
SELECT id FROM t;
SET SESSION TRANSACTION READ ONLY;
SELECT id FROM t; -- hit: any
INSERT INTO t VALUES (9, 9, 'x', 'x'); -- error: 1792
SET SESSION TRANSACTION READ WRITE;
SET NAMES utf8mb4, sql_select_limit = 13;
SELECT id FROM many ORDER BY id;
SET sql_select_limit = DEFAULT;
SET STATEMENT sql_select_limit = 1 FOR SELECT id FROM t ORDER BY id; -- servers: mariadb
SELECT /*+ SET_VAR(sql_select_limit=1) */ id FROM t ORDER BY id; -- servers: mysql-8.0; hit: any
SET foreign_key_checks = 0;
SELECT id FROM t;
SET foreign_key_checks = 1;
SET session_track_schema = 1; -- servers: mysql-5.7+, mariadb
SET session_track_system_variables = '*'; -- servers: mysql-5.7+, mariadb
SET time_zone = '+01:00'; -- servers: mysql-5.7+, mariadb
USE d_set_session; -- servers: mysql-5.7+, mariadb
SELECT id FROM t; -- servers: mysql-5.7+, mariadb
SET session_track_state_change = 1; -- servers: mysql-5.7+, mariadb
SET @x = 1; -- servers: mysql-5.7+, mariadb
SELECT id, s FROM t; -- servers: mysql-5.7+, mariadb
SET session_track_transaction_info = 'CHARACTERISTICS'; -- servers: mysql-5.7+, mariadb
START TRANSACTION; -- servers: mysql-5.7+, mariadb
SELECT id FROM t; -- servers: mysql-5.7+, mariadb; hit: no
COMMIT; -- servers: mysql-5.7+, mariadb
\reset; -- servers: mysql-5.7+, mariadb
SELECT id FROM t;
SET NAMES utf8mb4;
SET session_track_gtids = OWN_GTID; -- servers: mysql-5.7+
INSERT INTO t VALUES (10, 10, 'x', 'x'); -- servers: mysql-5.7+; mask: place
SELECT id FROM t;
