-- HANDLER, LOCK TABLES, user locks, FLUSH.
CREATE TABLE t (id INT PRIMARY KEY, a INT, KEY (a));
INSERT INTO t VALUES (1, 30), (2, 20), (3, 10);
CREATE TABLE u (id INT PRIMARY KEY);
INSERT INTO u VALUES (1);
SELECT * FROM t ORDER BY id; -- hit: yes
HANDLER t OPEN;
HANDLER t READ FIRST;
HANDLER t READ NEXT;
HANDLER t READ `PRIMARY` = (3);
HANDLER t READ a FIRST WHERE id < 3 LIMIT 2;
HANDLER t READ a LAST;
HANDLER t CLOSE;
HANDLER t READ FIRST; -- error: 1109
HANDLER t OPEN AS h;
HANDLER h READ `PRIMARY` >= (2) LIMIT 5;
HANDLER h CLOSE;
LOCK TABLES t READ;
SELECT * FROM t ORDER BY id; -- hit: no
SELECT * FROM u; -- hit: no; error: 1100
INSERT INTO t VALUES (4, 4); -- error: 1099
UNLOCK TABLES;
SELECT * FROM t ORDER BY id; -- hit: yes
SELECT * FROM u; -- hit: yes
LOCK TABLES t WRITE, u READ;
INSERT INTO t VALUES (4, 4);
SELECT * FROM t ORDER BY id; -- hit: no
SELECT * FROM u; -- hit: no
INSERT INTO u VALUES (2); -- error: 1099
UNLOCK TABLES;
SELECT * FROM t ORDER BY id; -- hit: yes
SELECT * FROM t ORDER BY id; -- connection: b; hit: yes
SELECT GET_LOCK('differential', 0); -- hit: no
SELECT IS_FREE_LOCK('differential'), IS_USED_LOCK('differential') = CONNECTION_ID(); -- hit: no
SELECT GET_LOCK('differential', 0), id FROM t; -- connection: b; hit: no
SELECT RELEASE_LOCK('differential'); -- hit: no; connection: b
SELECT RELEASE_LOCK('differential'); -- hit: no
SELECT RELEASE_ALL_LOCKS(); -- hit: no; servers: mysql-5.7+, mariadb
DO GET_LOCK('x', 0);
DO RELEASE_LOCK('x');
FLUSH TABLES;
SELECT * FROM t ORDER BY id; -- hit: yes
FLUSH TABLES WITH READ LOCK;
SELECT * FROM t ORDER BY id; -- hit: any
INSERT INTO t VALUES (5, 5); -- error: 1223
UNLOCK TABLES;
SELECT * FROM t ORDER BY id; -- hit: yes
FLUSH STATUS;
FLUSH PRIVILEGES;
FLUSH NOTHING_KNOWN; -- error: 1064
SELECT * FROM t ORDER BY id; -- hit: yes
