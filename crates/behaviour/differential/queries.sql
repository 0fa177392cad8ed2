-- Joins, unions, subqueries, derived tables, grouping, ordering, limits.
-- file hit: yes
CREATE TABLE c (id INT PRIMARY KEY, name VARCHAR(20), city VARCHAR(20));
CREATE TABLE o (id INT PRIMARY KEY, c INT, total DECIMAL(8, 2), note VARCHAR(20), KEY (c));
INSERT INTO c VALUES (1, 'Ann', 'Bern'), (2, 'Bob', 'Bonn'), (3, 'Cid', 'Bern'), (4, 'Dan', NULL);
INSERT INTO o VALUES (10, 1, 5.5, 'a'), (11, 1, 7, NULL), (12, 2, 1, 'b'), (13, NULL, 9.99, 'c'), (14, 3, 0, '');
ANALYZE TABLE c, o;
SELECT id FROM o WHERE note = 'ä' OR note = '日本' ORDER BY id;
SELECT c.name, o.total FROM c JOIN o ON o.c = c.id ORDER BY o.id;
SELECT c.name, o.total FROM c LEFT JOIN o ON o.c = c.id ORDER BY c.id, o.id;
SELECT c.name, o.id FROM c RIGHT OUTER JOIN o ON o.c = c.id ORDER BY o.id;
SELECT * FROM c INNER JOIN o USING (id);
SELECT COUNT(*) FROM c CROSS JOIN o;
SELECT * FROM c NATURAL JOIN o;
SELECT a.id, b.id FROM c a, c b WHERE a.city = b.city AND a.id < b.id;
SELECT STRAIGHT_JOIN c.id FROM c JOIN o ON c.id = o.c ORDER BY o.id;
SELECT c.id FROM c LEFT JOIN (o JOIN c AS c2 ON o.c = c2.id) ON o.c = c.id WHERE o.id IS NULL ORDER BY c.id;
SELECT id FROM c UNION SELECT c FROM o ORDER BY id;
SELECT id FROM c UNION ALL SELECT c FROM o ORDER BY 1;
(SELECT id FROM c ORDER BY id LIMIT 1) UNION (SELECT id FROM o ORDER BY id DESC LIMIT 1) ORDER BY id;
SELECT 'x' AS k, id FROM c UNION DISTINCT SELECT 'y', id FROM o ORDER BY k, id LIMIT 3;
SELECT NULL AS n, id FROM c UNION SELECT 1.5, id FROM o ORDER BY id;
SELECT name FROM c WHERE id IN (SELECT c FROM o WHERE total > 1) ORDER BY id;
SELECT name FROM c WHERE id NOT IN (SELECT c FROM o WHERE c IS NOT NULL) ORDER BY id;
SELECT name FROM c WHERE EXISTS (SELECT * FROM o WHERE o.c = c.id AND total > 5);
SELECT name, (SELECT SUM(total) FROM o WHERE o.c = c.id) FROM c ORDER BY id;
SELECT * FROM o WHERE total > ALL (SELECT total FROM o WHERE c = 2) ORDER BY id;
SELECT * FROM o WHERE total = ANY (SELECT MAX(total) FROM o);
SELECT * FROM o WHERE (c, total) = (SELECT c, MIN(total) FROM o WHERE c = 1 GROUP BY c);
SELECT * FROM (SELECT c, SUM(total) AS s FROM o GROUP BY c) AS x ORDER BY s;
SELECT x.name, y.n FROM c AS x JOIN (SELECT c, COUNT(*) AS n FROM o GROUP BY c) AS y ON x.id = y.c ORDER BY x.id;
SELECT city, COUNT(*) FROM c GROUP BY city ORDER BY city;
SELECT city, COUNT(*) AS n FROM c GROUP BY city HAVING n > 1;
SELECT city, COUNT(*) FROM c GROUP BY city WITH ROLLUP;
SELECT LENGTH(city) AS l, GROUP_CONCAT(name ORDER BY name) FROM c GROUP BY l ORDER BY l;
SELECT COUNT(DISTINCT city), COUNT(DISTINCT city, name) FROM c;
SELECT DISTINCT city FROM c ORDER BY city;
SELECT ALL city FROM c ORDER BY id;
SELECT DISTINCTROW city FROM c ORDER BY city;
SELECT * FROM o ORDER BY total DESC, id ASC;
SELECT * FROM o ORDER BY note IS NULL, note, id;
SELECT id AS k FROM o ORDER BY k DESC;
SELECT id FROM o ORDER BY 1 LIMIT 2;
SELECT id FROM o ORDER BY id LIMIT 1, 2;
SELECT id FROM o ORDER BY id LIMIT 2 OFFSET 3;
SELECT id FROM o LIMIT 0;
-- values: 2
SELECT id FROM o ORDER BY id LIMIT ?;
-- values: 1, 2
SELECT id FROM o ORDER BY id LIMIT ?, ?;
SELECT c.*, o.id AS oid FROM c, o WHERE c.id = o.c ORDER BY oid;
SELECT `c`.`id`, c.`name` FROM `d_queries`.`c` ORDER BY id;
SELECT d_queries.c.id FROM d_queries.c ORDER BY id;
SELECT id id2, name AS 'quoted alias', city AS `back tick` FROM c ORDER BY id;
SELECT CASE city WHEN 'Bern' THEN 1 WHEN 'Bonn' THEN 2 ELSE 3 END AS k, id FROM c ORDER BY id;
SELECT IF(total > 5, 'big', 'small'), IFNULL(note, '-'), NULLIF(note, ''), ISNULL(note) FROM o ORDER BY id;
SELECT COALESCE(note, name) FROM c LEFT JOIN o ON o.c = c.id ORDER BY c.id, o.id;
SELECT id FROM o WHERE note <=> NULL ORDER BY id;
SELECT id FROM o WHERE NOT (total > 1 AND note = 'a') OR c IS NULL ORDER BY id;
SELECT id FROM o WHERE total BETWEEN 1 AND 7 AND note LIKE '_' ORDER BY id;
SELECT id FROM o WHERE (c, id) IN ((1, 10), (2, 12)) ORDER BY id;
SELECT id, id IN (10, 11), id NOT BETWEEN 1 AND 11 FROM o ORDER BY id;
SELECT SQL_NO_CACHE id FROM o; -- hit: no
SELECT SQL_CACHE id FROM o; -- servers: mysql-5.6, mysql-5.7, mariadb; hit: any
SELECT SQL_SMALL_RESULT id, COUNT(*) FROM o GROUP BY id; -- hit: any
SELECT SQL_BIG_RESULT c, COUNT(*) FROM o GROUP BY c ORDER BY c; -- hit: any
SELECT SQL_BUFFER_RESULT id FROM o; -- hit: any
SELECT HIGH_PRIORITY id FROM o; -- hit: any
SELECT id FROM o USE INDEX (c) WHERE c = 1 ORDER BY id;
SELECT id FROM o FORCE INDEX (PRIMARY) ORDER BY id;
SELECT id FROM o IGNORE INDEX (c) WHERE c = 1 ORDER BY id;
SELECT /* comment */ id -- trailing
 FROM o # hash
 ORDER BY id;
select Id from O; -- error: 1146
select ID from o order by Id;
	SELECT	id	FROM	o	ORDER BY id;
SELECT/**/id/**/FROM/**/o;
SELECT /*! id */ FROM o;
SELECT /*! STRAIGHT_JOIN */ a.id FROM o a, o b WHERE a.id = b.id ORDER BY a.id;
SELECT id/*!40001 , total*/ FROM o/*! WHERE note <> '*/' */ORDER BY id;
SELECT id /*! id*/ FROM o /*!50600 ORDER BY id */;
-- values: 10
SELECT id, total FROM o WHERE /*! id = ? */;
SELECT id, total FROM o /*! WHERE id = 10 */;
UPDATE o SET total = total + 1 WHERE id = 10;
SELECT id, total FROM o /*! WHERE id = 10 */;
SELECT id /*!50700 , total */ FROM o; -- hit: no
SELECT id /*!100100 , total */ FROM o; -- error: none, 1064; hit: no
SELECT id /*M! , total */ FROM o; -- hit: no
SELECT id FROM o /*!50600 WHERE id = 10 ; -- error: none, 1064; hit: no
SELECT id FROM o PROCEDURE ANALYSE(); -- servers: mysql-5.6, mysql-5.7, mariadb; hit: no; mask: counters
SELECT id INTO @x FROM o ORDER BY id LIMIT 1; -- hit: no
SELECT @x; -- hit: no
SELECT id, total INTO @a, @b FROM o WHERE id = 10; -- hit: no
SELECT @a, @b; -- hit: no
SELECT id INTO @x FROM o; -- error: 1172; hit: no
SELECT id FROM o INTO OUTFILE '/no/such/directory/file'; -- error: 1, 1290; hit: no
SELECT 1; -- hit: any
SELECT 1 FROM DUAL; -- hit: any
SELECT 1 + 1, 'x', NULL; -- hit: any
SELECT RAND(1), id FROM o ORDER BY id; -- hit: no
SELECT UUID(), id FROM o; -- hit: no; mask: chance
SELECT CONNECTION_ID(), id FROM o; -- hit: no; mask: connection
SELECT USER() = SESSION_USER(), CURRENT_USER(), DATABASE(), SCHEMA(), id FROM o ORDER BY id; -- hit: no
SELECT VERSION(), id FROM o ORDER BY id; -- hit: no
SELECT SLEEP(0), id FROM o ORDER BY id; -- hit: no
SELECT BENCHMARK(1, 1), id FROM o ORDER BY id; -- hit: no
SELECT LOAD_FILE('/no/such/file'), id FROM o ORDER BY id; -- hit: no
