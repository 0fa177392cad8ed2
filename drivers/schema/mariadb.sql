-- Types of MariaDB alone.
CREATE TABLE t_mariadb (id INT PRIMARY KEY, uuid_c UUID, six INET6, four INET4) ENGINE=InnoDB;
INSERT INTO t_mariadb VALUES
    (1, '123e4567-e89b-12d3-a456-426655440000', '2001:db8::ff00:42:8329', '192.0.2.1'),
    (2, NULL, NULL, NULL),
    (3, '00000000-0000-0000-0000-000000000000', '::', '0.0.0.0');
