-- Plain reads.
-- file hit: yes
CREATE TABLE t (a INT PRIMARY KEY, s VARCHAR(40), n INT NULL);
INSERT INTO t VALUES (1, 'one', NULL), (2, 'two', 20), (3, '', -3);
SELECT * FROM t;
SELECT s, a FROM t WHERE a = 2;
SELECT COUNT(*), MIN(n), MAX(s), AVG(n), SUM(a) FROM t;
SELECT * FROM t WHERE a > 100;
-- values: 2
SELECT * FROM t WHERE a = ?;
SELECT NOW(), a FROM t; -- hit: no; mask: clock
