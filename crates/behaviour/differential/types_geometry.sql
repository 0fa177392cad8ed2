-- Geometry: bytes of their own format.
-- file hit: yes
CREATE TABLE g (id INT PRIMARY KEY, g GEOMETRY, p POINT, l LINESTRING, y POLYGON, c GEOMETRYCOLLECTION);
INSERT INTO g VALUES (1, ST_GeomFromText('POINT(1 2)'), ST_GeomFromText('POINT(-1.5 2e10)'), ST_GeomFromText('LINESTRING(0 0,1 1,2 0)'), ST_GeomFromText('POLYGON((0 0,10 0,10 10,0 10,0 0),(2 2,3 2,3 3,2 3,2 2))'), ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(0 0,1 1))'));
INSERT INTO g VALUES (2, NULL, NULL, NULL, NULL, NULL);
INSERT INTO g (id, g) VALUES (3, ST_GeomFromText('MULTIPOINT(0 0,1 1)')), (4, ST_GeomFromText('MULTILINESTRING((0 0,1 1),(2 2,3 3))')), (5, ST_GeomFromText('MULTIPOLYGON(((0 0,1 0,1 1,0 0)))'));
SELECT * FROM g;
SELECT id, ST_AsText(g), ST_AsText(p), ST_AsText(l) FROM g;
SELECT HEX(ST_AsBinary(g)) FROM g;
SELECT ST_X(p), ST_Y(p), ST_SRID(p), ST_GeometryType(g), ST_Dimension(g) FROM g;
SELECT ST_Area(y), ST_Length(l), ST_NumPoints(l), ST_NumInteriorRings(y) FROM g;
SELECT ST_AsText(ST_StartPoint(l)), ST_AsText(ST_ExteriorRing(y)), ST_AsText(ST_Envelope(y)) FROM g WHERE id = 1;
SELECT ST_Contains(y, ST_GeomFromText('POINT(5 5)')), ST_Within(p, y), ST_Distance(p, ST_GeomFromText('POINT(0 0)')) FROM g WHERE id = 1;
SELECT id FROM g WHERE ST_Intersects(y, ST_GeomFromText('POINT(1 1)'));
INSERT INTO g (id, p) VALUES (9, 'not a point'); -- error: 1416
SELECT ST_GeomFromText('POINT(1)') FROM g; -- error: none, 3037
