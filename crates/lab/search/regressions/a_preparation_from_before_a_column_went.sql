-- # MySQL 8.0 looks at the collations of an older preparation before it notices that a column
-- # is gone, and then gives another error than for a new preparation.
-- servers: mysql-8.0
-- race
-- setup
CREATE TABLE t1 (id BIGINT NOT NULL, h VARCHAR(20) CHARACTER SET ascii COLLATE ascii_general_ci NULL, s INT GENERATED ALWAYS AS (id % 4) STORED) ENGINE=InnoDB;
-- readers
-- question: limit
-- bind: text:c3a4 int:4
SELECT s FROM t1 WHERE (h IN (?, x'61') OR id = ?) LIMIT 2;
-- change: through FULL ddl-drop-column
ALTER TABLE t1 DROP s;
