-- Rows of many packets, many rows, many columns; packet numbers that come round to 0.
-- file hit: yes
CREATE TABLE big (id INT PRIMARY KEY, s LONGTEXT, b LONGBLOB);
INSERT INTO big VALUES (1, REPEAT('x', 250), REPEAT('y', 251)), (2, REPEAT('x', 65535), REPEAT('y', 65536)), (3, '', NULL);
SELECT * FROM big;
SELECT s FROM big WHERE id = 1;
SELECT b FROM big WHERE id = 2;
SELECT LENGTH(s), LENGTH(b) FROM big;
SELECT id, REPEAT(s, 10) FROM big;
CREATE TABLE many (id INT PRIMARY KEY, n INT);
INSERT INTO many VALUES (0, 0), (1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 6), (7, 7), (8, 8), (9, 9);
INSERT INTO many SELECT a.id + 10 * b.id + 10, a.id * b.id FROM many a, many b;
SELECT * FROM many;
SELECT COUNT(*) FROM many a, many b;
SELECT a.id, b.n FROM many a JOIN many b ON a.id = b.id ORDER BY a.id LIMIT 250;
SELECT a.id, b.id FROM many a, many b WHERE a.id < 10 ORDER BY a.id, b.id;
SELECT a.id, b.id FROM many a, many b ORDER BY a.id, b.id;
SELECT id FROM many ORDER BY id LIMIT 251;
SELECT id FROM many ORDER BY id LIMIT 100 OFFSET 5;
SELECT id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id, id FROM many WHERE id < 3;
INSERT INTO big VALUES (4, REPEAT('long', 600000), NULL);
-- Larger than what is kept of one result.
SELECT s FROM big WHERE id = 4; -- hit: no
SELECT LENGTH(s), LEFT(s, 10), MD5(s) FROM big WHERE id = 4;
-- 16,777,200, 16,777,215 and 16,777,210 bytes, in the repetitions that the server makes quickest.
-- MySQL 5.6 takes no value longer than a tenth of its log.
INSERT INTO big VALUES (5, REPEAT(REPEAT('z', 4092), 4100), NULL); -- long: yes; error: none, 1118
SELECT s FROM big WHERE id = 5; -- long: yes; hit: no; repeat: no
SELECT REPEAT(REPEAT('q', 4095), 4097) FROM big WHERE id = 1; -- long: yes; hit: no; repeat: no
SELECT REPEAT(REPEAT('q', 10), 1677721), id FROM big WHERE id = 1; -- long: yes; hit: no; repeat: no
