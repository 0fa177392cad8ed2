-- Comparison and order: case, accents, padding, expansions.
-- file hit: yes
CREATE TABLE t (id INT PRIMARY KEY, ci VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci, un VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci, bi VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, l VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_german1_ci, g VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_german2_ci, b VARBINARY(40));
INSERT INTO t VALUES (1, 'a', 'a', 'a', 'a', 'a', 'a'), (2, 'A', 'A', 'A', 'A', 'A', 'A'), (3, 'ä', 'ä', 'ä', 'ä', 'ä', 'ä'), (4, 'ae', 'ae', 'ae', 'ae', 'ae', 'ae'), (5, 'ß', 'ß', 'ß', 'ß', 'ß', 'ß'), (6, 'ss', 'ss', 'ss', 'ss', 'ss', 'ss'), (7, 'z', 'z', 'z', 'z', 'z', 'z'), (8, 'a ', 'a ', 'a ', 'a ', 'a ', 'a '), (9, NULL, NULL, NULL, NULL, NULL, NULL), (10, '', '', '', '', '', '');
SELECT id, ci FROM t ORDER BY ci, id;
SELECT id, un FROM t ORDER BY un, id;
SELECT id, bi FROM t ORDER BY bi, id;
SELECT id, l FROM t ORDER BY l, id;
SELECT id, g FROM t ORDER BY g, id;
SELECT id, b FROM t ORDER BY b, id;
SELECT id FROM t WHERE ci = 'a' ORDER BY id;
SELECT id FROM t WHERE ci = 'A' ORDER BY id;
SELECT id FROM t WHERE un = 'ä' ORDER BY id;
SELECT id FROM t WHERE un = 'SS' ORDER BY id;
SELECT id FROM t WHERE bi = 'a' ORDER BY id;
SELECT id FROM t WHERE g = 'ae' ORDER BY id;
SELECT id FROM t WHERE b = 'a' ORDER BY id;
SELECT id FROM t WHERE ci = 'a' COLLATE utf8mb4_bin ORDER BY id;
SELECT id FROM t WHERE ci COLLATE utf8mb4_unicode_ci = 'ß' ORDER BY id;
SELECT id FROM t WHERE ci LIKE 'A%' ORDER BY id;
SELECT id FROM t WHERE bi LIKE 'A%' ORDER BY id;
SELECT MIN(ci), MAX(un), COUNT(DISTINCT ci), COUNT(DISTINCT un), COUNT(DISTINCT bi), COUNT(DISTINCT g) FROM t;
SELECT COUNT(*) FROM t GROUP BY un ORDER BY un;
SELECT COUNT(*) FROM t GROUP BY b ORDER BY b;
SELECT 'a' = 'A', 'a' = 'ä', 'a' = 'a ', 'a' < 'B', id FROM t WHERE id = 1;
SET collation_connection = utf8mb4_bin;
SELECT 'a' = 'A', 'a' = 'ä', 'a' = 'a ', 'a' < 'B', id FROM t WHERE id = 1;
SET collation_connection = utf8mb4_unicode_ci;
SELECT 'a' = 'A', 'ss' = 'ß', 'a' < 'B', id FROM t WHERE id = 1;
SET collation_connection = latin1_german2_ci;
SELECT 'a' = 'A', 'ae' = 'ä', id FROM t WHERE id = 1;
SET NAMES utf8mb4;
SELECT id FROM t WHERE ci = un; -- error: 1267
SELECT id FROM t WHERE ci = bi COLLATE utf8mb4_general_ci ORDER BY id;
SELECT ci FROM t UNION SELECT un FROM t; -- error: none, 1271
SELECT LOWER(ci), UPPER(ci), LOWER(b) FROM t;
SELECT ci, un FROM t WHERE ci IN ('a', 'ß') ORDER BY id;
SELECT STRCMP(ci, 'A'), STRCMP(bi, 'A'), LOCATE('A', ci), LOCATE('A', bi), REPLACE(ci, 'A', 'x') FROM t ORDER BY id;
SELECT ci REGEXP 'A', bi REGEXP 'A' FROM t ORDER BY id;
ALTER TABLE t MODIFY ci VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
SELECT id FROM t WHERE ci = 'a' ORDER BY id;
SELECT id, ci FROM t ORDER BY ci, id;
ALTER TABLE t CONVERT TO CHARACTER SET latin1;
SELECT * FROM t;
-- A change of the default schema's collation.
ALTER DATABASE CHARACTER SET latin1;
CREATE TABLE dflt (a VARCHAR(10));
INSERT INTO dflt VALUES ('ä');
SELECT HEX(a), CHARSET(a), COLLATION(a) FROM dflt; -- hit: any
ALTER DATABASE CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
SELECT HEX(a), CHARSET(a), COLLATION(a) FROM dflt; -- hit: any
SELECT HEX(WEIGHT_STRING(ci)) FROM t ORDER BY id; -- hit: no; servers: mysql-5.7+, mariadb
