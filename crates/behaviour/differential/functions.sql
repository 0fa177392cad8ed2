-- Built-in functions that no other file has, on rows of a table.
-- file hit: yes
CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(40), n DOUBLE, d DATETIME);
INSERT INTO t VALUES (1, 'Hello, World', 3.7, '2024-02-29 13:14:15'), (2, '', -2.5, '1999-12-31 23:59:59'), (3, NULL, NULL, NULL);
SELECT ABS(n), CEIL(n), CEILING(n), FLOOR(n), ROUND(n), ROUND(n, 1), TRUNCATE(n, 0), SIGN(n) FROM t;
SELECT MOD(id, 2), id MOD 2, id DIV 2, POW(id, 2), POWER(2, id), SQRT(id), EXP(0), PI(), LOG(2, 8) FROM t;
SELECT CRC32(s), FORMAT(n, 2), HEX(s), UNHEX(HEX(s)) FROM t;
-- MariaDB describes these columns otherwise from the second execution of a prepared statement on.
SELECT CONV(id, 10, 2), BIN(id), OCT(id) FROM t; -- hit: any
SELECT CHAR_LENGTH(s), CHARACTER_LENGTH(s), ELT(id, 'x', 'y'), FIELD(id, 3, 2, 1), SPACE(id), REPEAT('-', id) FROM t;
SELECT LOWER(s), UPPER(s), REVERSE(s), LEFT(s, 5), RIGHT(s, 5), SUBSTRING(s, 8), INSERT(s, 1, 5, 'Bye') FROM t;
SELECT s LIKE 'H%', s NOT LIKE '%z%', s REGEXP 'W.r', s RLIKE '^H', s SOUNDS LIKE 'Hallo Welt' FROM t;
SELECT CONCAT(s, NULL), CONCAT_WS('-', s, NULL, id), REPLACE(s, 'l', 'L'), TRIM('  x  '), QUOTE(s) FROM t;
SELECT YEAR(d), MONTHNAME(d), DAYNAME(d), DAYOFMONTH(d), HOUR(d), LAST_DAY(d), DATE_FORMAT(d, '%Y/%m') FROM t;
SELECT d + INTERVAL 1 DAY, d - INTERVAL 1 SECOND, DATE_ADD(d, INTERVAL '1 2' DAY_HOUR), INTERVAL 1 YEAR + d FROM t;
SELECT INTERVAL(id, 1, 2, 3), GREATEST(id, n), LEAST(id, 2), NULLIF(id, 2), ISNULL(s), IF(n > 0, 'p', 'n') FROM t;
SELECT id & 3, id | 8, id ^ 1, ~id, id << 4, id >> 1, !id, NOT id, -id, +id FROM t; -- hit: any
SELECT id AND 0, id OR NULL, id XOR 1, id IS TRUE, s IS NOT NULL, NULL <=> NULL, id <> 1, id != 1 FROM t;
SELECT CAST(n AS SIGNED), CAST(id AS CHAR), CAST(d AS DATE), CAST(s AS BINARY(3)), CAST(n AS DECIMAL(5, 1)) FROM t; -- hit: any
SELECT CONVERT(s USING latin1), CONVERT(n, UNSIGNED) FROM t WHERE id = 1;
SELECT COUNT(*), COUNT(s), COUNT(DISTINCT s), SUM(n), AVG(n), MIN(s), MAX(d), GROUP_CONCAT(id ORDER BY id DESC) FROM t;
SELECT BIT_AND(id), BIT_OR(id), BIT_XOR(id), STD(n), STDDEV_POP(n), VAR_SAMP(n) FROM t;
SELECT MD5(s), SHA(s), SHA2(s, 512), TO_BASE64(s), FROM_BASE64(TO_BASE64(s)) FROM t;
SELECT PASSWORD('x'), id FROM t; -- servers: mariadb; hit: any; connection: other
SELECT ENCRYPT('x', 'ab'), id FROM t; -- servers: mariadb; hit: any; connection: other
SELECT INET_ATON('127.0.0.1'), INET_NTOA(2130706433), IS_IPV4('1.2.3.4'), IS_IPV6('::1') FROM t WHERE id = 1; -- hit: any; connection: other
SELECT UNCOMPRESS(COMPRESS(s)), LENGTH(s), OCTET_LENGTH(s), ASCII(s), ORD(s), CHAR(72, 105) FROM t;
SELECT EXTRACTVALUE('<a><b>x</b></a>', '//b'), id FROM t WHERE id = 1; -- hit: any; connection: other
SELECT UPDATEXML('<a>x</a>', '/a', '<b/>'), id FROM t WHERE id = 1; -- hit: any; connection: other
SELECT FIND_IN_SET('b', 'a,b,c'), MAKE_SET(3, 'a', 'b'), EXPORT_SET(5, '1', '0', '', 4), SUBSTRING_INDEX('a.b.c', '.', -2) FROM t;
SELECT WEEK(d, 0), WEEK(d, 1), YEARWEEK(d, 3), TO_DAYS(d), FROM_DAYS(TO_DAYS(d)), TO_SECONDS(d) FROM t;
SELECT MAKEDATE(2024, id), PERIOD_ADD(202312, id), TIMESTAMP(d), TIMESTAMPADD(DAY, id, d), TIMESTAMPDIFF(YEAR, d, '2024-12-31') FROM t;
SELECT GET_FORMAT(DATETIME, 'ISO'), id FROM t; -- hit: any; connection: other
SELECT NAME_CONST('named', 1), id FROM t; -- hit: no; connection: other
SELECT s COLLATE utf8mb4_bin, COLLATION(s), COERCIBILITY(s), CHARSET(n) FROM t;
SELECT ANY_VALUE(s) FROM t; -- servers: mysql-5.7+; hit: any; connection: other
SELECT REGEXP_REPLACE(s, 'o', '0') FROM t; -- servers: mysql-8.0, mariadb; hit: any; connection: other
SELECT NVL(s, 'x') FROM t; -- servers: mariadb; hit: any; connection: other
