-- Common table expressions and window functions.
-- file servers: mysql-8.0, mariadb
-- file hit: yes
CREATE TABLE e (id INT PRIMARY KEY, boss INT, dept VARCHAR(5), pay DECIMAL(8, 2));
INSERT INTO e VALUES (1, NULL, 'top', 900), (2, 1, 'a', 500), (3, 1, 'b', 450), (4, 2, 'a', 300), (5, 2, 'a', 300), (6, 3, 'b', 250), (7, 6, 'b', NULL);
WITH x AS (SELECT id, pay FROM e WHERE pay > 300) SELECT * FROM x ORDER BY id;
WITH a AS (SELECT id FROM e), b AS (SELECT id + 1 AS id FROM a) SELECT a.id, b.id FROM a JOIN b ON a.id = b.id ORDER BY a.id;
WITH RECURSIVE tree AS (SELECT id, boss, 0 AS depth FROM e WHERE boss IS NULL UNION ALL SELECT e.id, e.boss, depth + 1 FROM e JOIN tree ON e.boss = tree.id) SELECT * FROM tree ORDER BY id;
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10) SELECT SUM(i), COUNT(*) FROM n JOIN e ON e.id = n.i;
SELECT * FROM (WITH x AS (SELECT id FROM e) SELECT MAX(id) AS m FROM x) AS y;
SELECT id FROM e WHERE id IN (WITH x AS (SELECT boss FROM e) SELECT boss FROM x) ORDER BY id;
WITH e AS (SELECT 1 AS hides) SELECT * FROM e; -- hit: any
WITH x AS (SELECT * FROM absent) SELECT * FROM x; -- error: 1146
SELECT id, ROW_NUMBER() OVER (ORDER BY id) FROM e ORDER BY id;
SELECT id, RANK() OVER (ORDER BY pay DESC), DENSE_RANK() OVER (ORDER BY pay DESC) FROM e ORDER BY id;
SELECT id, SUM(pay) OVER (PARTITION BY dept ORDER BY id) FROM e ORDER BY id;
SELECT id, AVG(pay) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM e ORDER BY id;
SELECT id, LAG(pay) OVER (ORDER BY id), LEAD(pay, 2) OVER (ORDER BY id) FROM e ORDER BY id;
SELECT id, FIRST_VALUE(pay) OVER w, LAST_VALUE(pay) OVER w, NTH_VALUE(pay, 2) OVER w FROM e WINDOW w AS (PARTITION BY dept ORDER BY id) ORDER BY id;
SELECT id, NTILE(3) OVER (ORDER BY id), PERCENT_RANK() OVER (ORDER BY pay), CUME_DIST() OVER (ORDER BY pay) FROM e ORDER BY id;
SELECT id, COUNT(*) OVER (), MAX(pay) OVER (PARTITION BY boss) FROM e ORDER BY id;
SELECT dept, SUM(SUM(pay)) OVER (ORDER BY dept) FROM e GROUP BY dept ORDER BY dept;
SELECT id, STDDEV(pay) OVER (ORDER BY id RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM e ORDER BY id;
SELECT id FROM e WHERE ROW_NUMBER() OVER (ORDER BY id) = 1; -- error: 3593, 4015
INSERT INTO e VALUES (8, 1, 'a', 1000);
SELECT id, RANK() OVER (ORDER BY pay DESC) FROM e ORDER BY id;
WITH x AS (SELECT id, pay FROM e WHERE pay > 300) SELECT * FROM x ORDER BY id;
WITH x AS (SELECT MAX(id) AS m FROM e) DELETE e FROM e JOIN x ON e.id = x.m; -- servers: mysql-8.0; hit: any
SELECT COUNT(*) FROM e;
SELECT * FROM e EXCEPT SELECT * FROM e WHERE dept = 'a' ORDER BY id; -- servers: mariadb; hit: any
SELECT * FROM e INTERSECT SELECT * FROM e WHERE dept = 'a' ORDER BY id; -- servers: mariadb; hit: any
VALUES (1, 2), (3, 4); -- servers: mariadb; hit: any
VALUES ROW(1, 2), ROW(3, 4); -- servers: mysql-8.0; hit: any
TABLE e; -- servers: mysql-8.0; hit: any
SELECT e.id, l.m FROM e, LATERAL (SELECT MAX(pay) AS m FROM e AS x WHERE x.boss = e.id) AS l ORDER BY e.id; -- servers: mysql-8.0; hit: any
