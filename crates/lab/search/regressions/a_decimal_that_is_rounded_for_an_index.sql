-- # MariaDB rounds the constant to the scale of the column when it looks it up in an index: = -1.5 finds -2.
-- setup
CREATE TABLE t0 (id SMALLINT UNSIGNED NOT NULL, a VARCHAR(8) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NULL, b DECIMAL(5,0) NOT NULL, d TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NULL, e BIGINT NULL, KEY k2 (b)) ENGINE=InnoDB;
-- readers
-- question: point
SELECT t0.* FROM t0 WHERE b = -1.5;
-- change: direct FULL transaction
-- bind: int:3 text:f09f9880 double:-1.5 text:7373 int:3 int:-2 text:3035 double:5.0 text:c39f null
INSERT t0 (id, a, b, d, e) VALUES (?, ?, ?, ?, ?), (?, ?, ?, ?, ?);
