-- Character and binary strings, enumerations, sets and bits.
-- file hit: yes
SET sql_mode = '';
CREATE TABLE s (id INT PRIMARY KEY, c CHAR(10), v VARCHAR(100), tt TINYTEXT, tx TEXT, mt MEDIUMTEXT, lt LONGTEXT, b BINARY(5), vb VARBINARY(100), tb TINYBLOB, bl BLOB, mb MEDIUMBLOB, lb LONGBLOB);
INSERT INTO s VALUES (1, 'char', 'varchar', 'tinytext', 'text', 'mediumtext', 'longtext', 'bin', 'varbinary', 'tinyblob', 'blob', 'mediumblob', 'longblob');
INSERT INTO s VALUES (2, '', '', '', '', '', '', '', '', '', '', '', '');
INSERT INTO s VALUES (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO s VALUES (4, 'trailing  ', 'trailing  ', 'x  ', 'x  ', 'x  ', 'x  ', 'x  ', 'x  ', 'x  ', 'x  ', 'x  ', 'x  ');
INSERT INTO s VALUES (5, 'ünïcödé', '日本語 €', 'ß', 'Ω', '😀', '', X'00FF00', X'000102FE', X'FF', X'00', X'C3', X'FFFE');
INSERT INTO s VALUES (6, 'a''b"c', 'back\\slash', 'new\nline', 'tab\tx', 'nul\0x', 'ctrl\Zz', '\r', '%', '_', '''', '"', '`');
SELECT * FROM s;
SELECT c, v FROM s;
SELECT tt, tx, mt, lt FROM s;
SELECT b, vb, tb, bl, mb, lb FROM s;
SELECT LENGTH(c), CHAR_LENGTH(v), BIT_LENGTH(v), OCTET_LENGTH(b), HEX(b), HEX(v) FROM s;
SELECT CONCAT(c, '|', v), CONCAT_WS(',', c, v, NULL, tt), CONCAT(b, c) FROM s;
SELECT UPPER(v), LOWER(v), UCASE(c), LCASE(b) FROM s;
SELECT LEFT(v, 2), RIGHT(v, 2), SUBSTRING(v, 2, 3), SUBSTRING(v FROM 3), MID(v, 1, 1), SUBSTR(v, -2) FROM s;
SELECT TRIM(v), LTRIM(v), RTRIM(v), TRIM(BOTH 'x' FROM tx), TRIM(LEADING 't' FROM tx) FROM s;
SELECT LPAD(c, 12, '*'), RPAD(c, 3, '*'), REPEAT(c, 3), SPACE(3), REVERSE(v) FROM s;
SELECT INSTR(v, 'a'), LOCATE('a', v, 3), POSITION('r' IN v), FIELD(c, 'char', ''), FIND_IN_SET('x', 'a,x') FROM s;
SELECT REPLACE(v, 'a', 'AA'), INSERT(v, 2, 1, '--'), ELT(id, 'a', 'b', 'c'), MAKE_SET(id, 'a', 'b', 'c'), QUOTE(v) FROM s;
SELECT ASCII(v), ORD(v), CHAR(65, 66), CHAR(228 USING latin1), HEX(CHAR(256)) FROM s;
SELECT SUBSTRING_INDEX(v, 'a', 1), SOUNDEX(v), STRCMP(c, v), EXPORT_SET(id, 'Y', 'N', ',', 4) FROM s;
SELECT MD5(v), SHA1(v), SHA2(v, 256), CRC32(v), TO_BASE64(vb), FROM_BASE64('YWJj'), UNHEX('4D79') FROM s;
SELECT v LIKE '%a%', v LIKE 'var\\_%', v NOT LIKE '_', v REGEXP '^v', v LIKE 'x|%' ESCAPE '|' FROM s;
SELECT HEX(COMPRESS(tx)) IS NULL, UNCOMPRESS(COMPRESS(tx)), UNCOMPRESSED_LENGTH(COMPRESS(tx)) FROM s;
SELECT HEX(AES_ENCRYPT(v, 'key')), CAST(AES_DECRYPT(AES_ENCRYPT(v, 'key'), 'key') AS CHAR) FROM s;
SELECT GROUP_CONCAT(c ORDER BY id), GROUP_CONCAT(DISTINCT id % 2 ORDER BY id % 2 SEPARATOR ';'), GROUP_CONCAT(v, '-', id ORDER BY id DESC) FROM s;
SELECT id FROM s WHERE c = 'trailing';
SELECT id FROM s WHERE v = 'trailing';
SELECT id FROM s WHERE vb = 'x';
SELECT id FROM s WHERE v > 'b' ORDER BY v, id;
SELECT id, v FROM s WHERE v = '日本語 €';
SELECT 'adjacent' ' ' 'strings', "double", N'national', _utf8'intro', X'4142', 0x43, b'01000001' FROM s WHERE id = 1; -- hit: any
SELECT CAST(v AS BINARY), CAST(id AS CHAR(2)), CAST(vb AS CHAR), BINARY c FROM s; -- hit: any
SELECT CONVERT(v, CHAR(3)), CONVERT(c USING utf8mb4), CONVERT('12abc', SIGNED) + 0 FROM s WHERE id < 3; -- hit: any
SELECT CONVERT(v USING latin1), CONVERT(v USING ascii) FROM s; -- hit: any
-- values: 'varchar'
SELECT id FROM s WHERE v = ?;
-- values: X'000102FE'
SELECT id FROM s WHERE vb = ?;
-- values: 'it''s'
SELECT id, ? FROM s WHERE id < 3;
-- values: ''
SELECT id FROM s WHERE v = ?;
CREATE TABLE es (id INT PRIMARY KEY, e ENUM('small', 'medium', 'large', '', 'ü'), e2 ENUM('only') NOT NULL, st SET('a', 'b', 'c', 'ü'), st2 SET('x') NOT NULL);
INSERT INTO es VALUES (1, 'small', 'only', 'a', 'x'), (2, 'large', 'only', 'a,b,c', ''), (3, NULL, 'only', NULL, 'x'), (4, '', 'only', '', ''), (5, 'ü', 'only', 'c,ü', 'x'), (6, 'wrong', 'only', 'a,wrong', 'x');
SHOW WARNINGS;
SELECT * FROM es;
SELECT e + 0, st + 0, HEX(st + 0), LENGTH(e) FROM es;
SELECT id FROM es WHERE e = 'large' OR e = 2;
SELECT id FROM es WHERE FIND_IN_SET('b', st);
SELECT id FROM es WHERE st & 4;
SELECT e, COUNT(*) FROM es GROUP BY e ORDER BY e;
SELECT MIN(e), MAX(e), MIN(st), MAX(st) FROM es;
CREATE TABLE bits (id INT PRIMARY KEY, b1 BIT, b8 BIT(8), b17 BIT(17), b64 BIT(64));
INSERT INTO bits VALUES (1, 0, 0, 0, 0), (2, 1, 255, 131071, 18446744073709551615), (3, NULL, NULL, NULL, NULL), (4, b'1', b'10101010', b'10000000000000001', X'8000000000000001'), (5, 1, 0x27, 0x5c5c, 0x2700000000000000);
SELECT * FROM bits;
SELECT b1 + 0, b8 + 0, b17 + 0, b64 + 0, HEX(b64) FROM bits;
SELECT BIN(b8 + 0) FROM bits; -- hit: any
SELECT id FROM bits WHERE b8 = b'10101010';
SELECT BIT_COUNT(b64), b8 & 15, b17 >> 1 FROM bits;
SELECT MAX(b8), MIN(b64), SUM(b8) FROM bits;
CREATE TABLE json_like (id INT PRIMARY KEY, uuid BINARY(16), ip VARBINARY(16));
INSERT INTO json_like VALUES (1, UNHEX('00112233445566778899AABBCCDDEEFF'), INET6_ATON('::1')), (2, UNHEX(REPLACE('550e8400-e29b-41d4-a716-446655440000', '-', '')), INET6_ATON('127.0.0.1'));
SELECT HEX(uuid), INET6_NTOA(ip), INET_NTOA(3232235777), INET_ATON('10.0.0.1') FROM json_like;
SELECT uuid, ip FROM json_like;
