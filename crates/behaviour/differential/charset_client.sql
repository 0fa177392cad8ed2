-- Client character sets: how the text is read, how the result is written.
-- file hit: yes
CREATE TABLE t (id INT PRIMARY KEY, u VARCHAR(40) CHARACTER SET utf8mb4, l VARCHAR(40) CHARACTER SET latin1, c VARCHAR(40) CHARACTER SET cp1251, b VARBINARY(40), k VARCHAR(40) CHARACTER SET ucs2);
INSERT INTO t VALUES (1, 'plain', 'plain', 'plain', 'plain', 'plain'), (2, 'ä€', 'ä€', 'ж', 'ä', 'ж'), (3, '日本', NULL, 'Щ', X'E4', '日');
SELECT * FROM t;
SELECT u AS 'ü', id AS `日` FROM t WHERE u = 'ä€';
SET NAMES latin1;
SELECT * FROM t;
SELECT id, u FROM t WHERE u = '«E4»'; -- bytes: yes
SELECT '«E4F6FC»', HEX('«E4F6FC»'), id FROM t; -- bytes: yes
SELECT id AS '«E4»' FROM t; -- bytes: yes
INSERT INTO t VALUES (4, '«E4»', '«E4»', 'x', '«E4»', '«E4»'); -- bytes: yes
SELECT u, l, HEX(b), HEX(k) FROM t WHERE id = 4;
SET NAMES cp1251;
SELECT * FROM t;
SELECT id, c FROM t WHERE c = '«E6»'; -- bytes: yes
SELECT '«CFF0E8E2E5F2»', id FROM t; -- bytes: yes
INSERT INTO t VALUES (5, '«E6»', 'x', '«E6»', '«E6»', '«E6»'); -- bytes: yes
SELECT u, c, HEX(b), HEX(k) FROM t WHERE id = 5;
SET NAMES binary;
SELECT * FROM t;
SELECT id, u FROM t WHERE b = '«E4»'; -- bytes: yes
SELECT '«FF00FE»', HEX('«FF00FE»'), id FROM t; -- bytes: yes
SET NAMES koi8r;
SELECT u, c FROM t;
SET NAMES latin2;
SELECT u, l FROM t;
SET NAMES greek;
SELECT u, l FROM t;
SET NAMES utf8;
SELECT * FROM t;
SET NAMES sjis; -- hit: no; connection: sjis
SELECT * FROM t; -- hit: no; connection: sjis
SELECT id, '«93FA»' FROM t; -- bytes: yes; hit: no; connection: sjis
SELECT id, '«955C» FROM t; -- bytes: yes; hit: no; error: 1064; connection: sjis
SELECT id, '«8360»' FROM t; -- bytes: yes; hit: no; connection: sjis
SET NAMES gbk; -- connection: gbk
SELECT * FROM t; -- hit: no; connection: gbk
SELECT id, '«BF5C»' FROM t; -- bytes: yes; hit: no; connection: gbk
SELECT id, '«BF5C»''' FROM t; -- bytes: yes; hit: no; connection: gbk
SELECT u FROM t WHERE u = '«C8D5»'; -- bytes: yes; hit: no; connection: gbk
SET NAMES big5; -- connection: big5
SELECT u, '«A55C»' FROM t; -- bytes: yes; hit: no; connection: big5
SET NAMES utf8mb4;
SELECT * FROM t;
SET character_set_results = NULL;
SELECT * FROM t;
SELECT l, c FROM t;
SET character_set_results = ucs2;
SELECT u FROM t; -- hit: any
SET character_set_results = latin1;
SELECT u, l, c, b FROM t;
SET character_set_results = utf8mb4;
SET character_set_connection = latin1;
SELECT 'ä', HEX('ä'), HEX(CONCAT(id, 'ä')), id FROM t;
SET character_set_connection = ucs2;
SELECT 'ä', HEX('ä'), HEX(id), id FROM t;
SET NAMES utf8mb4;
SET character_set_client = latin1;
SELECT 'ä', HEX('ä'), id FROM t;
SET CHARACTER SET utf8mb4;
SELECT u, 'x' = 'X', id FROM t;
SET NAMES utf8mb4 COLLATE utf8mb4_bin;
SELECT u, 'x' = 'X', id FROM t;
SET NAMES no_such_set; -- error: 1115
SET NAMES utf8mb4 COLLATE latin1_swedish_ci; -- error: 1253
SET character_set_client = ucs2; -- error: 1231
-- A session that reads as another does what it can't read passes through from there on.
SELECT _latin1'«E4»', _cp1251'«E6»', _binary'«FF»', HEX(_ucs2'ab'), id FROM t; -- bytes: yes; error: none, 1300; hit: any
SELECT _latin1 X'E4', _utf8mb4 X'C3A4', _cp1251 X'E6', _ucs2 X'0436', N'n', id FROM t; -- hit: any
SELECT CHARSET(u), CHARSET(l), COLLATION(c), COERCIBILITY(u), CHARSET('x'), CHARSET(id) FROM t;
SELECT CONVERT(u USING latin1), CONVERT(l USING utf8mb4), CONVERT(c USING koi8r), CAST(u AS CHAR CHARACTER SET latin1) FROM t; -- hit: any
SELECT HEX(CONVERT(u USING ucs2)), HEX(CONVERT(u USING utf16)), HEX(CONVERT(u USING utf32)) FROM t; -- hit: any
SELECT CONCAT(u, l), CONCAT(u, b), CONCAT(c, 'ascii') FROM t;
SELECT CONCAT(l, c) FROM t; -- error: none, 1267
\reset; -- servers: mysql-5.7+, mariadb
SELECT u FROM t;
