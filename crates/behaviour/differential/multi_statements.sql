-- Several statements in one command.
CREATE TABLE t (id INT PRIMARY KEY, a INT);
INSERT INTO t VALUES (1, 1), (2, 2);
SELECT * FROM t; -- hit: yes
SELECT 1; SELECT 2; -- hit: no; connection: multi
SELECT * FROM t; SELECT a FROM t WHERE id = 1; -- hit: no; connection: multi
INSERT INTO t VALUES (3, 3); SELECT * FROM t; UPDATE t SET a = 9 WHERE id = 1; SELECT * FROM t; -- connection: multi
SELECT * FROM t; -- hit: yes
SELECT 1; SELEC 2; SELECT 3; -- error: 1064; hit: no; connection: multi
SELECT 1; SELECT * FROM absent; SELECT 3; -- error: 1146; hit: no; connection: multi
SELECT * FROM t; -- hit: yes
SELECT * FROM t ; -- hit: yes
SELECT * FROM t;; -- hit: any; error: none, 1064, 1065; connection: multi
SET @x = 5; SELECT @x; SET sql_select_limit = 1; SELECT id FROM t; -- connection: multi
SELECT id FROM t; -- hit: any; connection: multi
SET sql_select_limit = DEFAULT; -- connection: multi
BEGIN; INSERT INTO t VALUES (4, 4); ROLLBACK; -- connection: multi
SELECT * FROM t; -- hit: yes
BEGIN; INSERT INTO t VALUES (4, 4); COMMIT; -- connection: multi
SELECT * FROM t; -- hit: yes
CREATE TABLE u (a INT); INSERT INTO u VALUES (1); SELECT * FROM u; DROP TABLE u; -- connection: multi
SELECT * FROM u; -- error: 1146
/* comment */ SELECT 1; /* another */ SELECT 2; -- hit: no; connection: multi
SELECT ';', id FROM t; -- hit: yes
SELECT 'a;b' AS `c;d`, id FROM t /* ; */; -- hit: yes
# a comment
SELECT a FROM t; -- hit: any; connection: multi
\multi off; -- connection: multi
SELECT 1; SELECT 2; -- error: 1064; hit: no; connection: multi
SELECT * FROM t; -- hit: yes
\multi on; -- connection: multi
SELECT 1; SELECT 2; -- hit: no; connection: multi
SELECT 1; SELECT 2; SELECT 3; -- connection: b; hit: no
SELECT * FROM t; -- connection: b; hit: any
SELECT * FROM t; SELECT COUNT(*) FROM t;
SELECT * FROM t; -- hit: any
