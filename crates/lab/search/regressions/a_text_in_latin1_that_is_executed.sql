-- # Text under latin1 is executed as latin1: else the server is asked for another constant.
-- setup
CREATE TABLE t0 (id BIGINT NOT NULL, d CHAR(4) CHARACTER SET latin1 COLLATE latin1_swedish_ci NOT NULL, e BIGINT NULL, g INT NULL) ENGINE=InnoDB;
INSERT IGNORE INTO t0 (id, d, e, g) VALUES (4, 'Ä', NULL, 4);
-- readers
SET NAMES latin1;
-- question: point
SELECT id, d, e, g FROM t0 WHERE d = 'Ä' ORDER BY id;
-- change: held FULL update-nothing
-- asks
SELECT id, d, e, g FROM t0 WHERE d = 'Ä' ORDER BY id;
