-- Transactions: status flags, visibility, savepoints, implicit commits.
CREATE TABLE t (id INT PRIMARY KEY, a INT) ENGINE=InnoDB;
INSERT INTO t VALUES (1, 1), (2, 2);
SELECT * FROM t; -- hit: yes
BEGIN;
SELECT * FROM t; -- hit: any
INSERT INTO t VALUES (3, 3);
SELECT * FROM t; -- hit: no
SELECT * FROM t; -- hit: any; connection: b
ROLLBACK;
SELECT * FROM t; -- hit: yes
START TRANSACTION;
UPDATE t SET a = 10 WHERE id = 1;
SAVEPOINT one;
UPDATE t SET a = 20 WHERE id = 1;
SELECT a FROM t WHERE id = 1; -- hit: no
ROLLBACK TO SAVEPOINT one;
SELECT a FROM t WHERE id = 1; -- hit: no
RELEASE SAVEPOINT one;
ROLLBACK TO one; -- error: 1305
COMMIT;
SELECT a FROM t WHERE id = 1; -- hit: yes
SELECT a FROM t WHERE id = 1; -- hit: yes; connection: b
START TRANSACTION READ ONLY;
SELECT * FROM t; -- hit: any
INSERT INTO t VALUES (9, 9); -- error: 1792
COMMIT;
START TRANSACTION WITH CONSISTENT SNAPSHOT;
UPDATE t SET a = 11 WHERE id = 1; -- connection: b
SELECT a FROM t WHERE id = 1; -- hit: no
COMMIT;
SELECT a FROM t WHERE id = 1; -- hit: yes
BEGIN;
CREATE TABLE implicit_commit (a INT);
SELECT a FROM t WHERE id = 1; -- hit: yes
ROLLBACK;
SET autocommit = 0;
INSERT INTO t VALUES (4, 4);
SELECT COUNT(*) FROM t; -- hit: no
SELECT COUNT(*) FROM t; -- connection: b; hit: any
COMMIT;
SELECT COUNT(*) FROM t; -- hit: no
SET autocommit = 1;
SELECT COUNT(*) FROM t; -- hit: yes
COMMIT AND CHAIN;
SELECT COUNT(*) FROM t; -- hit: any
ROLLBACK AND NO CHAIN;
BEGIN WORK;
INSERT INTO t VALUES (5, 5);
COMMIT WORK;
SELECT * FROM t; -- hit: yes
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
BEGIN;
SELECT a FROM t WHERE id = 1; -- hit: any
UPDATE t SET a = 12 WHERE id = 1; -- connection: b
SELECT a FROM t WHERE id = 1; -- hit: any
COMMIT;
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;
BEGIN;
SELECT a FROM t WHERE id = 1; -- hit: any
UPDATE t SET a = 13 WHERE id = 1; -- connection: b
SELECT a FROM t WHERE id = 1; -- hit: any
COMMIT;
SELECT a FROM t WHERE id = 1; -- hit: yes
SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED;
SELECT a FROM t WHERE id = 1; -- hit: no
SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ;
SELECT a FROM t WHERE id = 1 FOR UPDATE; -- hit: no
SELECT a FROM t WHERE id = 1 LOCK IN SHARE MODE; -- hit: no
SELECT a FROM t WHERE id = 1 FOR UPDATE SKIP LOCKED; -- hit: no; servers: mysql-8.0, mariadb
SELECT a FROM t WHERE id = 1 FOR SHARE; -- hit: no; servers: mysql-8.0
SET innodb_lock_wait_timeout = 1; -- connection: b
BEGIN;
UPDATE t SET a = 14 WHERE id = 1;
UPDATE t SET a = 15 WHERE id = 1; -- connection: b; error: 1205
SELECT a FROM t WHERE id = 1; -- connection: b; hit: any
ROLLBACK;
SELECT a FROM t WHERE id = 1; -- hit: yes
XA START 'x';
INSERT INTO t VALUES (6, 6);
XA END 'x';
XA PREPARE 'x';
XA COMMIT 'x';
SELECT COUNT(*) FROM t; -- hit: any
XA START 'y';
SELECT COUNT(*) FROM t; -- hit: any
COMMIT; -- error: 1399
XA END 'y';
XA ROLLBACK 'y';
SELECT COUNT(*) FROM t; -- hit: any
XA ROLLBACK 'absent'; -- error: 1397
