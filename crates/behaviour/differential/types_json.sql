-- JSON: a type on MySQL, text on MariaDB.
-- file servers: mysql-5.7+, mariadb
-- file hit: yes
CREATE TABLE j (id INT PRIMARY KEY, doc JSON);
INSERT INTO j VALUES (1, '{"a": 1, "b": [1, 2, {"c": null}], "text": "ünï \\"q\\""}'), (2, '[]'), (3, NULL), (4, 'null'), (5, '"scalar"'), (6, '12.50'), (7, 'true'), (8, '{"z": 1e100, "a": -0, "": "empty key", "nested": {"deep": {"deeper": [[[]]]}}}');
SELECT * FROM j;
SELECT doc FROM j WHERE id = 1;
SELECT id, JSON_EXTRACT(doc, '$.a'), JSON_EXTRACT(doc, '$.b[2].c') FROM j;
SELECT JSON_UNQUOTE(JSON_EXTRACT(doc, '$.text')) FROM j;
SELECT id, JSON_TYPE(doc), JSON_VALID(doc), JSON_LENGTH(doc), JSON_DEPTH(doc) FROM j;
SELECT JSON_KEYS(doc) FROM j WHERE id IN (1, 8);
SELECT id FROM j WHERE JSON_CONTAINS(doc, '1', '$.a');
SELECT JSON_CONTAINS_PATH(doc, 'one', '$.a', '$.x') FROM j;
SELECT JSON_SEARCH(doc, 'one', 'scalar') FROM j;
SELECT JSON_OBJECT('id', id, 'doc', doc), JSON_ARRAY(id, 'x', NULL) FROM j;
SELECT JSON_SET(doc, '$.new', 1), JSON_INSERT(doc, '$.a', 9), JSON_REPLACE(doc, '$.a', 9), JSON_REMOVE(doc, '$.b') FROM j WHERE id = 1;
SELECT JSON_ARRAY_APPEND(doc, '$', id), JSON_ARRAY_INSERT('[1,2]', '$[0]', id) FROM j WHERE id = 2;
SELECT JSON_QUOTE('a"b'), JSON_UNQUOTE('"a\\nb"') FROM j WHERE id = 1;
SELECT doc -> '$.a', doc ->> '$.text' FROM j WHERE id = 1; -- servers: mysql-5.7+; hit: any
SELECT JSON_EXTRACT(doc, 'no path') FROM j WHERE id = 1; -- error: none, 3143; hit: any
INSERT INTO j VALUES (9, '{broken'); -- error: 3140, 4025
SELECT COUNT(*), MAX(id) FROM j;
SELECT id FROM j WHERE doc = '[]';
SELECT id, doc FROM j ORDER BY doc, id; -- hit: any
SELECT doc FROM j GROUP BY doc ORDER BY doc; -- hit: any
SELECT JSON_OBJECTAGG(id, doc), JSON_ARRAYAGG(id) FROM j WHERE id IN (1, 2); -- hit: any
SELECT CAST(doc AS CHAR) FROM j;
-- values: '$.a'
SELECT JSON_EXTRACT(doc, ?) FROM j;
UPDATE j SET doc = JSON_SET(doc, '$.a', 2) WHERE id = 1;
SELECT doc FROM j WHERE id = 1;
SELECT jt.* FROM j, JSON_TABLE(doc, '$.b[*]' COLUMNS (n FOR ORDINALITY, v VARCHAR(20) PATH '$')) AS jt WHERE id = 1; -- servers: mysql-8.0, mariadb; hit: no
-- A function that some servers don't have is known where it is the server's own.
SELECT JSON_VALUE(doc, '$.a') FROM j; -- servers: mysql-8.0, mariadb; hit: any
