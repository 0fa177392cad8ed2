-- The tables that every driver reads, on every server. Each statement ends with a semicolon at the end of a line.
-- Names begin with t_, or with p_ where Remora passes reads through; each has a column `id`, by which programs read
-- row by row.

SET time_zone = '+00:00';
SET NAMES utf8mb4;
SET sql_mode = '';

CREATE TABLE t_integers (
    id INT PRIMARY KEY,
    tiny TINYINT, tiny_u TINYINT UNSIGNED,
    small SMALLINT, small_u SMALLINT UNSIGNED,
    medium MEDIUMINT, medium_u MEDIUMINT UNSIGNED,
    plain INT, plain_u INT UNSIGNED,
    big BIGINT, big_u BIGINT UNSIGNED,
    truth BOOLEAN, padded INT(8) ZEROFILL
) ENGINE=InnoDB;
INSERT INTO t_integers VALUES
    (1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, TRUE, 42),
    (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (3, -128, 0, -32768, 0, -8388608, 0, -2147483648, 0, -9223372036854775808, 0, FALSE, 0),
    (4, 127, 255, 32767, 65535, 8388607, 16777215, 2147483647, 4294967295, 9223372036854775807,
        18446744073709551615, TRUE, 99999999),
    (5, -1, 1, -1, 1, -1, 1, -1, 1, -9007199254740993, 9007199254740993, TRUE, 1);

CREATE TABLE t_decimals (
    id INT PRIMARY KEY,
    short_d DECIMAL(5,2), long_d DECIMAL(65,30), whole_d DECIMAL(65,0), unsigned_d DECIMAL(10,4) UNSIGNED,
    single_f FLOAT, double_f DOUBLE, scaled_f DOUBLE(10,3), unsigned_f FLOAT UNSIGNED
) ENGINE=InnoDB;
INSERT INTO t_decimals VALUES
    (1, 1.50, 0.100000000000000000000000000001, 12345678901234567890123456789012345678901234567890, 0.5,
        1.5, 0.1, 12.345, 2.25),
    (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (3, -999.99, -99999999999999999999999999999999999.999999999999999999999999999999,
        -99999999999999999999999999999999999999999999999999999999999999999, 0,
        -3.40282e38, -1.7976931348623157e308, -9999999.999, 0),
    (4, 999.99, 99999999999999999999999999999999999.999999999999999999999999999999,
        99999999999999999999999999999999999999999999999999999999999999999, 999999.9999,
        3.40282e38, 1.7976931348623157e308, 9999999.999, 3.40282e38),
    (5, 0, 0, 0, 0.0001, 1.17549e-38, 2.2250738585072014e-308, -0.001, 16777216);

CREATE TABLE t_dates (
    id INT PRIMARY KEY,
    day_c DATE, moment DATETIME, moment_3 DATETIME(3), moment_6 DATETIME(6),
    stamp TIMESTAMP NULL DEFAULT NULL, stamp_6 TIMESTAMP(6) NULL DEFAULT NULL, year_c YEAR
) ENGINE=InnoDB;
INSERT INTO t_dates VALUES
    (1, '2024-02-29', '2024-02-29 12:34:56', '2024-02-29 12:34:56.789', '2024-02-29 12:34:56.789012',
        '2024-02-29 12:34:56', '2024-02-29 12:34:56.789012', 2024),
    (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (3, '1000-01-01', '1000-01-01 00:00:00', '1000-01-01 00:00:00.000', '1000-01-01 00:00:00.000000',
        '1970-01-01 00:00:01', '1970-01-01 00:00:01.000000', 1901),
    (4, '9999-12-31', '9999-12-31 23:59:59', '9999-12-31 23:59:59.999', '9999-12-31 23:59:59.999999',
        '2038-01-19 03:14:07', '2038-01-19 03:14:07.999999', 2155),
    (5, '2000-01-01', '2000-01-01 00:00:00', '2000-01-01 00:00:00.001', '2000-01-01 00:00:00.000001',
        '2000-01-01 00:00:00', '2000-01-01 00:00:00.000001', 0);

-- A name that begins with p_: Remora passes its reads through (here because the server may complete a TIME by the
-- current day).
CREATE TABLE p_times (id INT PRIMARY KEY, time_c TIME, time_3 TIME(3), time_6 TIME(6)) ENGINE=InnoDB;
INSERT INTO p_times VALUES
    (1, '12:34:56', '12:34:56.789', '12:34:56.789012'),
    (2, NULL, NULL, NULL),
    (3, '-838:59:59', '-838:59:58.999', '-838:59:58.999999'),
    (4, '838:59:59', '838:59:58.999', '838:59:58.999999'),
    (5, '00:00:00', '00:00:00.001', '00:00:00.000001');

CREATE TABLE t_zero_dates (
    id INT PRIMARY KEY,
    day_c DATE, moment DATETIME, moment_6 DATETIME(6), stamp TIMESTAMP NULL DEFAULT NULL
) ENGINE=InnoDB;
INSERT INTO t_zero_dates VALUES
    (1, '0000-00-00', '0000-00-00 00:00:00', '0000-00-00 00:00:00', '0000-00-00 00:00:00'),
    (2, '2020-00-00', '2020-01-00 00:00:00', '2020-00-01 01:02:03', '0000-00-00 00:00:00');

CREATE TABLE t_strings (
    id INT PRIMARY KEY,
    fixed_c CHAR(10) CHARACTER SET utf8mb4, flexible VARCHAR(255) CHARACTER SET utf8mb4,
    tiny_t TINYTEXT CHARACTER SET utf8mb4, text_t TEXT CHARACTER SET utf8mb4,
    medium_t MEDIUMTEXT CHARACTER SET utf8mb4, long_t LONGTEXT CHARACTER SET utf8mb4,
    latin VARCHAR(50) CHARACTER SET latin1, three_byte VARCHAR(50) CHARACTER SET utf8,
    ucs VARCHAR(50) CHARACTER SET ucs2, wide VARCHAR(50) CHARACTER SET utf16,
    cyrillic VARCHAR(50) CHARACTER SET cp1251, japanese VARCHAR(50) CHARACTER SET sjis,
    exact VARCHAR(50) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
) ENGINE=InnoDB;
INSERT INTO t_strings VALUES
    (1, 'fixed', 'varying', 'tiny', 'text', 'medium', 'long', 'latin', 'utf8', 'ucs2', 'utf16', 'cp1251', 'sjis', 'bin'),
    (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (3, '', '', '', '', '', '', '', '', '', '', '', '', ''),
    (4, 'äöü€🐟', 'äöü€🐟 remora', '🐟🐟', 'ﬁsh\n\t\\''"', 'Привет', '日本語', 'Ünïcödé €', 'Привет 日本語',
        'Привет', '🐟日本', 'Привет', '日本語', 'e\u0301'),
    (5, 'end  ', 'end  ', REPEAT('t', 255), REPEAT('x', 65535), REPEAT('m', 70000), REPEAT('l', 100000),
        REPEAT('é', 50), REPEAT('я', 50), REPEAT('я', 50), REPEAT('🐟', 25), REPEAT('я', 50), REPEAT('語', 25), ' ');

CREATE TABLE t_blobs (
    id INT PRIMARY KEY,
    fixed_b BINARY(16), varying_b VARBINARY(300), tiny_b TINYBLOB, blob_b BLOB, medium_b MEDIUMBLOB, long_b LONGBLOB
) ENGINE=InnoDB;
INSERT INTO t_blobs VALUES
    (1, 'sixteen', 'bytes', 'tiny', 'blob', 'medium', 'long'),
    (2, NULL, NULL, NULL, NULL, NULL, NULL),
    (3, '', '', '', '', '', ''),
    (4, 0x00FF00FF00FF00FF00FF00FF00FF00FF, 0x000102030405060708090A0B0C0D0E0F101A1B5C7F8081FBFCFDFEFF, 0xFF, 0x00, 0xFFFE,
        0x0000000000),
    (5, REPEAT(0xFB, 16), REPEAT(0xFC, 300), REPEAT(0xFD, 255), REPEAT(0xFE, 65535), REPEAT(0xFF, 70000), REPEAT(0x00, 100000));

CREATE TABLE t_choices (
    id INT PRIMARY KEY,
    bit_1 BIT(1), bit_8 BIT(8), bit_33 BIT(33), bit_64 BIT(64),
    choice ENUM('small', 'größer', '') CHARACTER SET utf8mb4, choices SET('a', 'b', 'ä') CHARACTER SET utf8mb4
) ENGINE=InnoDB;
INSERT INTO t_choices VALUES
    (1, b'1', b'10101010', b'1', 1, 'small', 'a'),
    (2, NULL, NULL, NULL, NULL, NULL, NULL),
    (3, b'0', 0, 0, 0, '', ''),
    (4, b'1', 255, 8589934591, 18446744073709551615, 'größer', 'a,b');

CREATE TABLE t_geometry (
    id INT PRIMARY KEY,
    any_g GEOMETRY, point_g POINT, line_g LINESTRING, polygon_g POLYGON, points_g MULTIPOINT, all_g GEOMETRYCOLLECTION
) ENGINE=InnoDB;
INSERT INTO t_geometry VALUES
    (1, ST_GeomFromText('POINT(1 2)'), ST_GeomFromText('POINT(-1.5 2.25)'), ST_GeomFromText('LINESTRING(0 0,1 1,2 3)'),
        ST_GeomFromText('POLYGON((0 0,4 0,4 4,0 4,0 0),(1 1,2 1,2 2,1 2,1 1))'), ST_GeomFromText('MULTIPOINT(1 1,2 2)'),
        ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(0 0,1 1))')),
    (2, NULL, NULL, NULL, NULL, NULL, NULL);

CREATE TABLE t_names (
    id INT UNSIGNED NOT NULL AUTO_INCREMENT,
    `with space` VARCHAR(20) NOT NULL DEFAULT 'x', `größe €` INT NOT NULL, `select` INT, `a.b` INT,
    unique_c INT NOT NULL, indexed INT,
    changed TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
    PRIMARY KEY (id), UNIQUE KEY unique_c (unique_c), KEY indexed (indexed)
) ENGINE=InnoDB;
INSERT INTO t_names VALUES
    (1, 'one', 1, 1, 1, 1, 1, '2024-01-01 00:00:00'),
    (2, 'two', 2, NULL, NULL, 2, NULL, '2024-01-02 00:00:00');

CREATE TABLE t_empty (id INT PRIMARY KEY, name VARCHAR(10), moment DATETIME(6), amount DECIMAL(10,2)) ENGINE=InnoDB;

-- Rows for streaming: 4^7.
CREATE TABLE many (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40), amount DECIMAL(12,3)) ENGINE=InnoDB;
INSERT INTO many (name, amount)
    SELECT CONCAT('row ', a.id, b.id, c.id, d.id, e.id, f.id, g.id), a.id * 1.125 + g.id
    FROM t_decimals a, t_decimals b, t_decimals c, t_decimals d, t_decimals e, t_decimals f, t_decimals g
    WHERE a.id < 5 AND b.id < 5 AND c.id < 5 AND d.id < 5 AND e.id < 5 AND f.id < 5 AND g.id < 5
    ORDER BY a.id, b.id, c.id, d.id, e.id, f.id, g.id;

-- One row of 20 MB.
CREATE TABLE large (id INT PRIMARY KEY, data LONGBLOB) ENGINE=InnoDB;
INSERT INTO large VALUES (1, REPEAT('remora 20 MB packet.', 1000000));
