-- For servers that know the type: MySQL 5.7 and later, MariaDB.
CREATE TABLE t_json (id INT PRIMARY KEY, doc JSON) ENGINE=InnoDB;
INSERT INTO t_json VALUES
    (1, '{"a": 1, "b": [true, false, null], "c": "text"}'),
    (2, NULL),
    (3, '[]'),
    (4, '"größe 🐟"'),
    (5, '{"big": 18446744073709551615, "float": 1.5e10, "nested": {"x": {"y": [1, 2, {"z": ""}]}}}');
-- Passed through: virtual columns may depend on more than the table.
CREATE TABLE p_generated (
    id INT PRIMARY KEY, price INT, doubled INT AS (price * 2) VIRTUAL, kept INT AS (price + 1) STORED
) ENGINE=InnoDB;
INSERT INTO p_generated (id, price) VALUES (1, 10), (2, NULL);
