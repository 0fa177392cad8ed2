SELECT COUNT(*), SUM(plain), AVG(plain), MIN(big), MAX(big_u), SUM(single_f) FROM t_integers JOIN t_decimals USING (id)
SELECT id, big_u + 0, big * 1.5, tiny / 3, plain % 7, -small, NOT truth FROM t_integers ORDER BY id
SELECT CONCAT(flexible, '/', latin), UPPER(text_t), LENGTH(long_t), HEX(wide), CHAR_LENGTH(japanese) FROM t_strings WHERE id < 5 ORDER BY id
SELECT i.id AS `the id`, s.flexible AS 'text', NULL AS nothing, 1 AS one, 1.5 AS dec_c, 1e3 AS flt, 'x' AS str, 0x41 AS hex_c FROM t_integers i LEFT JOIN t_strings s ON s.id = i.id + 2 ORDER BY i.id
SELECT DATE_ADD(day_c, INTERVAL 1 DAY), moment_6, EXTRACT(YEAR FROM moment), TO_DAYS(moment), stamp FROM t_dates WHERE id IN (1, 5) ORDER BY id
SELECT a.id, a.id, b.id FROM t_empty a RIGHT JOIN t_names b ON a.id = b.id ORDER BY b.id
SELECT CAST(id AS CHAR), CAST(id AS SIGNED), CAST(id AS UNSIGNED), CAST(id AS DECIMAL(10,3)), CAST('2024-01-01' AS DATE), CAST('x' AS BINARY) FROM t_names ORDER BY id
SELECT * FROM t_empty
SELECT id FROM t_integers UNION ALL SELECT id FROM t_names ORDER BY 1
SELECT choice, COUNT(*) FROM t_choices GROUP BY choice ORDER BY choice
SELECT id, EXISTS (SELECT 1 FROM t_names n WHERE n.id = i.id), (SELECT MAX(unique_c) FROM t_names) FROM t_integers i ORDER BY id
